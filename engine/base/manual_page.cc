#include "engine/base/manual_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "engine/base/text.h"

namespace tally {
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
    if (std::find(command.names.begin(), command.names.end(), "") != command.names.end())
      text += options_text(command.options, ".SS");
  }
  text += ".SH COMMANDS\n";
  for (const CommandSpec& command : program.commands) {
    if (std::find(command.names.begin(), command.names.end(), "") == command.names.end())
      text += command_entry(program, command);
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
