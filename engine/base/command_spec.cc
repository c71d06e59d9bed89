#include "engine/base/command_spec.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "engine/base/text.h"

namespace tally {
namespace {

// CLI11 shows the values of IsMember() as "TEXT:{csv,pretty}".
std::vector<std::string> listed_values(const std::string& type) {
  const size_t open = type.find('{'), close = type.find('}', open);
  std::vector<std::string> values;
  if (open == std::string::npos || close == std::string::npos) return values;
  for (size_t at = open + 1; at <= close;) {
    const size_t end = std::min(type.find(',', at), close);
    values.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return values;
}

bool has_word(const std::string& text, const std::string& word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const auto letter = [&](size_t i) {
      return i < text.size() && std::isupper(static_cast<unsigned char>(text[i])) != 0;
    };
    if ((at == 0 || !letter(at - 1)) && !letter(at + word.size())) return true;
  }
  return false;
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0 && option.get_type_size_max() > 0;
}

OptionSpec option_spec(const CLI::Option& option, const KnownValues& known) {
  OptionSpec spec;
  for (const std::string& name : option.get_snames()) spec.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) spec.names.push_back("--" + name);
  spec.help = option.get_description();
  spec.group = option.get_group();
  if (!takes_value(option)) return spec;
  spec.value = option.get_option_text();
  const std::string type = option.get_type_name();
  spec.choices = listed_values(type);
  // Behind a colon CLI11 describes what it checks.
  if (spec.value.empty())
    spec.value = spec.choices.empty() ? type.substr(0, type.find(':')) : "WORD";
  spec.initial = option.get_default_str();
  for (const std::string& name : spec.names) {
    if (const auto found = known.find(name); found != known.end()) spec.choices = found->second;
  }
  // A plain text that CLI11 does not describe: the name says whether it is a file.
  if (spec.value == "TEXT" && spec.choices.empty()) {
    for (const std::string& name : spec.names) {
      for (const char* of_file : {"--input", "--output", "--config", "--outpath"})
        if (starts_with(name, of_file)) spec.value = "PATH";
      if (name.size() > 5 && name.compare(name.size() - 5, 5, "-file") == 0) spec.value = "FILE";
    }
  }
  const bool folder = has_word(spec.value, "DIR") || has_word(spec.value, "RUN");
  spec.takes =
      has_word(spec.value, "FILE") || has_word(spec.value, "PREFIX") || has_word(spec.value, "PATH")
          ? OptionSpec::Takes::file
      : folder ? OptionSpec::Takes::folder
               : OptionSpec::Takes::word;
  return spec;
}

}  // namespace

CommandSpec command_spec(const CLI::App& app, std::vector<std::string> names,
                         const KnownValues& known) {
  CommandSpec spec;
  spec.names = std::move(names);
  spec.summary = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // not in the help
    if (option->nonpositional()) {
      spec.options.push_back(option_spec(*option, known));
      continue;
    }
    PositionalSpec positional;
    positional.value = option->get_option_text();
    if (positional.value.empty()) positional.value = option->get_name(true);
    positional.help = option->get_description();
    positional.choices = listed_values(option->get_type_name());
    if (const auto found = known.find(option->get_name(true)); found != known.end())
      positional.choices = found->second;
    spec.positionals.push_back(std::move(positional));
  }
  return spec;
}

namespace {

// Text that roff prints as it is.
std::string roff(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool starts_line = i == 0 || text[i - 1] == '\n';
    if (starts_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else if (c == '`') {
      out += "\\(ga";
    } else {
      out += c;
    }
  }
  return out;
}

std::string upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

std::string option_entry(const OptionSpec& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back("\\fB" + roff(name) + "\\fR");
  std::string text = ".TP\n" + join(names, ", ");
  if (!option.value.empty()) text += " \\fI" + roff(option.value) + "\\fR";
  text += "\n" + roff(option.help);
  if (!option.choices.empty() && option.help.find(option.choices.front()) == std::string::npos)
    text += " (" + roff(join(option.choices, ", ")) + ")";
  if (!option.initial.empty()) text += " (default: " + roff(option.initial) + ")";
  return text + "\n";
}

std::string options_text(const std::vector<OptionSpec>& options, const std::string& heading) {
  std::string text, group;
  for (const OptionSpec& option : options) {
    if (option.group != group) {
      group = option.group;
      if (group != "Options" && group != "OPTIONS") text += heading + " \"" + roff(group) + "\"\n";
    }
    text += option_entry(option);
  }
  return text;
}

std::string command_entry(const ProgramSpec& program, const CommandSpec& command) {
  std::string text = ".SS \"" + roff(program.name + " " + join(command.names, ", "));
  if (!command.options.empty()) text += " [OPTIONS]";
  for (const PositionalSpec& positional : command.positionals)
    text += " [" + roff(positional.value) + "]";
  text += "\"\n" + roff(command.summary) + "\n";
  for (const PositionalSpec& positional : command.positionals)
    text += ".TP\n\\fI" + roff(positional.value) + "\\fR\n" + roff(positional.help) + "\n";
  return text + options_text(command.options, ".PP\n.B");
}

std::string section_text(const ManualSection& section) {
  std::string text = ".SH " + roff(upper(section.title)) + "\n";
  bool verbatim = false;
  std::istringstream lines(section.text);
  for (std::string line; std::getline(lines, line);) {
    const bool is_verbatim = starts_with(line, "  ");
    if (is_verbatim != verbatim) text += is_verbatim ? ".PP\n.nf\n" : ".fi\n.PP\n";
    verbatim = is_verbatim;
    text += line.empty() ? ".PP\n" : roff(line) + "\n";
  }
  return text + (verbatim ? ".fi\n" : "");
}

}  // namespace

std::string manual_page(const ProgramSpec& program) {
  std::string text = fmt::format(".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n",
                                 roff(upper(program.name)), roff(program.name), program.version,
                                 roff(program.name), roff(program.brief));
  text += fmt::format(".SH SYNOPSIS\n.B {}\n[OPTIONS] [COMMAND] [ARGUMENTS]\n", roff(program.name));
  text += ".SH DESCRIPTION\n" + roff(program.summary) + "\n";
  text += ".SH OPTIONS\n" + options_text(program.common, ".SS");
  for (const CommandSpec& command : program.commands) {
    if (contains(command.names, "")) text += options_text(command.options, ".SS");
  }
  text += ".SH COMMANDS\n";
  for (const CommandSpec& command : program.commands) {
    if (!contains(command.names, "")) text += command_entry(program, command);
  }
  for (const ManualSection& section : program.sections) text += section_text(section);
  if (!program.see_also.empty()) {
    text += ".SH SEE ALSO\n";
    for (size_t i = 0; i < program.see_also.size(); ++i) {
      const std::string& page = program.see_also[i];
      const size_t open = page.find('(');
      text += fmt::format(".BR {} {}{}\n", roff(page.substr(0, open)), page.substr(open),
                          i + 1 < program.see_also.size() ? "," : "");
    }
  }
  return text;
}

}  // namespace tally
