// Declares the flags of one group of the help. Private to config/.
#pragma once

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/config/flags.h"

namespace tally::train {

// A number with Python's underscores between digits. Throws CLI::ValidationError, which names the
// flag, for anything else and for values below `least` or above `most`.
template <typename T>
T parse_number(const std::string& flag, const std::string& given, T least, T most);

template <typename T>
struct Unwrapped {
  using type = T;
};
template <typename T>
struct Unwrapped<std::optional<T>> {
  using type = T;
};

// Declares flags of one group. Of repeated flags the last counts, as in argparse.
class FlagGroup {
 public:
  FlagGroup(CLI::App* app, std::string name) : app_(app), name_(std::move(name)) {}

  template <typename Field>
  CLI::Option* number(const std::string& flag, Field* field, typename Unwrapped<Field>::type least,
                      const std::string& help,
                      typename Unwrapped<Field>::type most =
                          std::numeric_limits<typename Unwrapped<Field>::type>::max()) {
    using T = typename Unwrapped<Field>::type;
    const std::string name = flag.substr(0, flag.find(','));
    auto* option = app_->add_option_function<std::string>(
        flag, [=](const std::string& text) { *field = parse_number<T>(name, text, least, most); },
        help);
    option->type_name(std::is_floating_point_v<T> ? "NUMBER" : "INT")->take_last()->group(name_);
    if constexpr (!std::is_same_v<Field, std::optional<T>>)
      option->default_str(fmt::format("{}", *field));
    return option;
  }
  // A number in [0, 1).
  template <typename Field>
  CLI::Option* probability(const std::string& flag, Field* field, const std::string& help) {
    return number(flag, field, 0.0, help, std::nextafter(1.0, 0.0));
  }
  template <typename Field>
  CLI::Option* text(const std::string& flag, Field* field, const std::string& type,
                    const std::string& help) {
    auto* option = app_->add_option_function<std::string>(
        flag, [field](const std::string& value) { *field = value; }, help);
    option->type_name(type)->take_last()->group(name_);
    if constexpr (std::is_same_v<Field, std::string>) {
      if (!field->empty()) option->default_str(*field);
    }
    return option;
  }
  // One or more values; a later use of the flag replaces an earlier one.
  CLI::Option* list(const std::string& flag, std::vector<std::string>* field,
                    const std::string& type, const std::string& help) {
    using Values = std::vector<std::string>;
    return app_
        ->add_option_function<Values>(
            flag, [field](const Values& values) { *field = values; }, help)
        ->trigger_on_parse()
        ->type_name(type)
        ->group(name_)
        ->expected(1, -1);
  }
  CLI::Option* toggle(const std::string& flag, bool* field, const std::string& help) {
    return app_->add_flag(flag, *field, help)->group(name_);
  }
  // A flag that is accepted because command lines written for Megatron-LM have it; `why` says why
  // it has no effect.
  void ignored(const std::string& flag, bool takes_value, const std::string& why, Flags* flags) {
    const auto note = [flags, flag, why] {
      const std::string entry = fmt::format("{} ({})", flag, why);
      for (const std::string& known : flags->ignored)
        if (known == entry) return;
      flags->ignored.push_back(entry);
    };
    CLI::Option* option = takes_value ? app_->add_option_function<std::string>(
                                                flag, [note](const std::string&) { note(); }, why)
                                            ->type_name("VALUE")
                                            ->take_last()
                                      : app_->add_flag_callback(flag, note, why);
    option->group(name_);
  }

 private:
  CLI::App* app_;
  std::string name_;
};

}  // namespace tally::train
