#include "engine/base/command_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"

namespace tally {
namespace {

using Words = std::vector<std::string>;
using Takes = OptionSpec::Takes;

std::string identifier(std::string name) {
  for (char& c : name) {
    if (c == '-' || c == '.') c = '_';
  }
  return name;
}

// The commands that have names, without the empty one.
Words command_words(const ProgramSpec& program) {
  Words words;
  for (const CommandSpec& command : program.commands) {
    for (const std::string& name : command.names) {
      if (!name.empty()) words.push_back(name);
    }
  }
  return words;
}

Words option_words(const std::vector<OptionSpec>& options) {
  Words words;
  for (const OptionSpec& option : options) {
    words.insert(words.end(), option.names.begin(), option.names.end());
  }
  return words;
}

// ---------------------------------------------------------------------------------------- bash

// case labels of a command's names; the empty one as "".
std::string labels(const Words& names, const std::string& behind) {
  Words quoted;
  for (const std::string& name : names) quoted.push_back(fmt::format("'{}{}'", name, behind));
  return join(quoted, " | ");
}

// The words that follow an option that has a value: a case for each.
std::string bash_values(const std::vector<OptionSpec>& options, const Words& names) {
  std::string text;
  for (const OptionSpec& option : options) {
    if (option.takes == Takes::nothing) continue;
    Words cases;
    for (const std::string& command : names) {
      for (const std::string& name : option.names)
        cases.push_back(fmt::format("'{} {}'", command, name));
    }
    std::string answer;
    if (!option.choices.empty()) {
      answer =
          fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\")); ", join(option.choices, " "));
    } else if (option.takes == Takes::folder) {
      answer = "compopt -o dirnames; ";
    } else if (option.takes == Takes::file) {
      answer = "compopt -o default; ";
    }
    text += fmt::format("    {}) {}return ;;\n", join(cases, " | "), answer);
  }
  return text;
}

// ---------------------------------------------------------------------------------------- zsh

// Text in an option's description, within single quotes.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
      out += c == '\n' ? ' ' : c;
    }
  }
  return out;
}

std::string zsh_action(const OptionSpec& option) {
  if (!option.choices.empty()) {
    Words quoted;
    for (const std::string& choice : option.choices) quoted.push_back(zsh_text(choice));
    return "(" + join(quoted, " ") + ")";
  }
  return option.takes == Takes::folder ? "_files -/" : option.takes == Takes::file ? "_files" : " ";
}

std::string zsh_option(const OptionSpec& option) {
  std::string text;
  for (const std::string& name : option.names) {
    const bool is_long = starts_with(name, "--");
    text += fmt::format("    '*{}{}[{}]", name,
                        option.takes == Takes::nothing ? ""
                        : is_long                      ? "="
                                                       : "+",
                        zsh_text(option.help));
    if (option.takes != Takes::nothing)
      text += fmt::format(":{}:{}", zsh_text(option.value), zsh_action(option));
    text += "'\n";
  }
  return text;
}

std::string zsh_options(const std::vector<OptionSpec>& options) {
  std::string text;
  for (const OptionSpec& option : options) text += zsh_option(option);
  return text;
}

std::string zsh_positional(const CommandSpec& command) {
  if (!command.positionals.empty() && !command.positionals.front().choices.empty())
    return fmt::format("'*:{}:({})'", zsh_text(command.positionals.front().value),
                       join(command.positionals.front().choices, " "));
  return command.positionals.empty() ? "" : "'*:file:_files'";
}

// ---------------------------------------------------------------------------------------- fish

std::string fish_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

// The first clause of a help text, which fits on a line of the shell's list.
std::string first_clause(const std::string& help) {
  return help.substr(0, std::min(help.find(';'), help.find(" (")));
}

std::string fish_condition(const ProgramSpec& program, const Words& names) {
  const bool bare = contains(names, "");
  Words named;
  std::copy_if(names.begin(), names.end(), std::back_inserter(named),
               [](const std::string& name) { return !name.empty(); });
  if (!bare) return "__fish_seen_subcommand_from " + join(named, " ");
  Words others;
  for (const std::string& word : command_words(program)) {
    if (!contains(named, word)) others.push_back(word);
  }
  return others.empty() ? "" : "not __fish_seen_subcommand_from " + join(others, " ");
}

std::string fish_option(const std::string& name, const OptionSpec& option,
                        const std::string& condition) {
  std::string line = "complete -c " + name;
  if (!condition.empty()) line += fmt::format(" -n '{}'", condition);
  for (const std::string& word : option.names)
    line += starts_with(word, "--") ? " -l " + word.substr(2) : " -s " + word.substr(1);
  if (!option.choices.empty()) {
    line += fmt::format(" -x -a '{}'", fish_text(join(option.choices, " ")));
  } else if (option.takes == Takes::file) {
    line += " -r -F";
  } else if (option.takes == Takes::folder) {
    line += " -x -a '(__fish_complete_directories)'";
  } else if (option.takes == Takes::word) {
    line += " -x";
  }
  return line + fmt::format(" -d '{}'\n", fish_text(first_clause(option.help)));
}

}  // namespace

std::string bash_completion(const ProgramSpec& program) {
  const std::string function = "_" + identifier(program.name);
  const Words commands = command_words(program);
  std::string text = fmt::format(
      "# Completion of {0} for bash.\n"
      "{1}() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  local command='' options='' words='' i\n"
      "  # bash takes --color=always for three words.\n"
      "  if [[ $before == = ]]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi\n"
      "  if [[ $word == = ]]; then word=''; fi\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case ${{COMP_WORDS[i]}} in\n"
      "      {2}) command=${{COMP_WORDS[i]}}; break ;;\n"
      "    esac\n"
      "  done\n"
      "  COMPREPLY=()\n"
      "  case \"$command $before\" in\n",
      program.name, function, join(commands, " | "));
  for (const CommandSpec& command : program.commands)
    text += bash_values(command.options, command.names);
  Words all = commands;
  all.emplace_back("");
  text += bash_values(program.common, all);
  text += "  esac\n  case \"$command\" in\n";
  for (const CommandSpec& command : program.commands) {
    text += fmt::format("    {}) options='{}'", labels(command.names, ""),
                        join(option_words(command.options), " "));
    if (!command.positionals.empty() && !command.positionals.front().choices.empty())
      text += fmt::format(" words='{}'", join(command.positionals.front().choices, " "));
    text += " ;;\n";
  }
  text += fmt::format(
      "  esac\n"
      "  options+=' {}'\n"
      "  if [[ $word == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
      "  elif [[ -z $command ]]; then\n"
      "    COMPREPLY=($(compgen -W '{}' -- \"$word\"))\n"
      "  elif [[ -n $words ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "  else\n"
      "    compopt -o default\n"
      "  fi\n"
      "}}\n"
      "complete -F {} {}\n",
      join(option_words(program.common), " "), join(commands, " "), function, program.name);
  return text;
}

std::string zsh_completion(const ProgramSpec& program) {
  const std::string function = "_" + identifier(program.name);
  std::string list, cases, bare;
  for (const CommandSpec& command : program.commands) {
    Words names;
    for (const std::string& name : command.names) {
      if (name.empty()) continue;
      names.push_back(name);
      list += fmt::format("    '{}:{}'\n", name, zsh_text(first_clause(command.summary)));
    }
    if (names.size() < command.names.size()) bare = zsh_options(command.options);
    if (names.empty()) continue;
    cases += fmt::format("    {})\n      options+=(\n{})\n      positional=({}) ;;\n",
                         join(names, "|"), zsh_options(command.options), zsh_positional(command));
  }
  return fmt::format(
      "#compdef {0}\n"
      "# Completion of {0} for zsh.\n"
      "{1}() {{\n"
      "  local context state line curcontext=$curcontext ret=1\n"
      "  typeset -A opt_args\n"
      "  local -a commands options positional\n"
      "  commands=(\n{2})\n"
      "  options=(\n{3})\n"
      "  local command=${{words[(r)({4})]}}\n"
      "  case $command in\n{5}"
      "    *)\n      options+=(\n{6})\n"
      "      _arguments -C -S $options '1: :->command' && ret=0\n"
      "      [[ $state == command ]] && _describe -t commands command commands && ret=0\n"
      "      return ret ;;\n"
      "  esac\n"
      "  # The words behind the command.\n"
      "  local at=${{words[(i)$command]}}\n"
      "  words=(\"${{(@)words[at,-1]}}\")\n"
      "  (( CURRENT -= at - 1 ))\n"
      "  _arguments -S $options $positional\n"
      "}}\n"
      "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then {1} \"$@\"; else compdef {1} {0}; fi\n",
      program.name, function, list, zsh_options(program.common), join(command_words(program), "|"),
      cases, bare);
}

std::string fish_completion(const ProgramSpec& program) {
  const Words commands = command_words(program);
  const std::string none = "not __fish_seen_subcommand_from " + join(commands, " ");
  std::string text = fmt::format("# Completion of {} for fish.\n", program.name);
  for (const OptionSpec& option : program.common) text += fish_option(program.name, option, "");
  for (const CommandSpec& command : program.commands) {
    for (const std::string& name : command.names) {
      if (name.empty()) continue;
      text += fmt::format("complete -c {} -f -n '{}' -a {} -d '{}'\n", program.name, none, name,
                          fish_text(first_clause(command.summary)));
    }
    const std::string condition = fish_condition(program, command.names);
    for (const OptionSpec& option : command.options)
      text += fish_option(program.name, option, condition);
    for (const PositionalSpec& positional : command.positionals) {
      if (positional.choices.empty()) continue;
      text += fmt::format("complete -c {} -f -n '{}' -a '{}'\n", program.name, condition,
                          join(positional.choices, " "));
    }
  }
  return text;
}

}  // namespace tally
