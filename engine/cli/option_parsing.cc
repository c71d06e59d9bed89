#include "engine/cli/option_parsing.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "engine/base/text.h"
#include "engine/cli/runs.h"

namespace tally {
namespace {

constexpr char kMark = '\x01';

}  // namespace

bool is_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}
bool exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}
bool is_id(const std::string& word) {
  int id = 0;
  return word == "last" || word == "all" || parse_id(word, &id);
}

bool parse_percent(const std::string& text, double* fraction) {
  if (text.size() < 2 || text.back() != '%') return false;
  char* end = nullptr;
  *fraction = std::strtod(text.c_str(), &end) / 100;
  return end == text.c_str() + text.size() - 1 && *fraction >= 0 && *fraction < 1;
}

// CLI11's own check would print the limits of a double.
CLI::Validator at_least(long least) {
  return {[least](std::string& word) -> std::string {
            const bool digits = !word.empty() && word.size() < 10 &&
                                word.find_first_not_of("0123456789") == std::string::npos;
            if (digits && std::stol(word) >= least) return {};
            return fmt::format("'{}' is not a whole number of at least {}", word, least);
          },
          ""};
}

CLI::Validator amount() {
  return {[](std::string& word) -> std::string {
            char* end = nullptr;
            const double number = std::strtod(word.c_str(), &end);
            const bool whole = !word.empty() && end == word.c_str() + word.size();
            if (whole && std::isfinite(number) && number >= 0) return {};
            return fmt::format("'{}' is not a number of at least 0", word);
          },
          ""};
}

std::string with_mark(std::string word) {
  const char last = word.empty() ? ' ' : word.back();
  if (last == ']' || last == kMark || word == "++") word += kMark;
  return word;
}

std::string without_mark(std::string word) {
  if (!word.empty() && word.back() == kMark) word.pop_back();
  return word;
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    if (sub->get_name() == name) return sub;
  }
  return nullptr;
}

namespace {

// The command that the arguments name. Null: they name none.
const CLI::App* command_of(const CLI::App& app, int argc, char** argv) {
  const CLI::App* sub = nullptr;
  for (int i = 1; i < argc && sub == nullptr; ++i) sub = find_command(app, argv[i]);
  return sub;
}

// The options of the program and of the command `sub`, which may be null.
std::vector<const CLI::Option*> options_for(const CLI::App& app, const CLI::App* sub) {
  std::vector<const CLI::Option*> options = app.get_options();
  if (sub == nullptr) return options;
  const std::vector<const CLI::Option*> own = sub->get_options();
  options.insert(options.end(), own.begin(), own.end());
  return options;
}

}  // namespace

std::string unabbreviated(const CLI::App& app, int argc, char** argv, const std::string& word) {
  Words known;
  for (const CLI::Option* option : options_for(app, command_of(app, argc, argv))) {
    for (const std::string& name : option->get_lnames()) known.push_back(name);
  }
  return unabbreviated(word, known);
}

void complain(const Settings& settings, const CLI::App& app, int argc, char** argv,
              const CLI::ParseError& error) {
  const CLI::App* sub = command_of(app, argc, argv);
  Words known;
  for (const CLI::Option* option : options_for(app, sub)) {
    for (const std::string& s : option->get_snames()) known.push_back("-" + s);
    for (const std::string& l : option->get_lnames()) known.push_back("--" + l);
  }
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word.size() < 2 || word[0] != '-' || is_id(word)) continue;
    if (word == "--") break;
    word = word.substr(0, word.find('='));
    if (word[1] != '-') word = word.substr(0, 2);
    if (contains(known, word)) continue;
    print_error(settings,
                fmt::format("unknown option '{}'{}", word,
                            sub != nullptr ? " of " + sub->get_name() : std::string()),
                did_you_mean(word, known));
    return;
  }
  std::string what = error.what();
  std::erase(what, kMark);
  const size_t missing = what.find(": 1 required");
  print_error(settings,
              missing == std::string::npos ? what : what.substr(0, missing) + " needs a value",
              fmt::format("see {} help{}", settings.command,
                          sub != nullptr ? " " + sub->get_name() : std::string()));
}

}  // namespace tally
