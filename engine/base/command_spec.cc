#include "engine/base/command_spec.h"

#include <algorithm>
#include <cctype>

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

}  // namespace tally
