// The settings of a run as one table (settings_*.cc). A row says everything about a setting: the
// flag that gives it, what the flag takes, the default, the check of a single value, its help; its
// key and value in the record; what messages call it. The parser, `tally-train reference`,
// completion, the record's configuration and the agreement of ranks are loops over it. Private to
// config/, but for the record.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/config/json_values.h"

namespace tally::train {

struct Config;
struct Flags;

// The part of a setting in which the ranks of a run must agree.
enum class Agreement : uint8_t {
  value,
  given,  // whether it is given: paths differ from host to host
  none    // each rank may have its own
};

struct Setting {
  using Json = nlohmann::ordered_json;
  enum class Form : uint8_t { none, toggle, value, list };  // none: it has no flag of its own

  // The flag.
  Form form = Form::none;
  std::string group, flags;          // "--layernorm-epsilon,--norm-epsilon"
  std::string type, help, initial;   // the help's words; `initial`: the default
  std::vector<std::string> choices;  // the values that it takes, where these are all there are
  // Takes the words that were given, of a toggle none. Throws UsageError.
  std::function<void(const std::vector<std::string>& words)> store;

  // The record. An empty key: it is not in the record.
  std::string key;  // "training.lr": in the record's configuration
  Json value;
  std::string label;  // its name in messages: "--lr"
  Agreement agreement = Agreement::value;

  std::string first_flag() const { return flags.substr(0, flags.find(',')); }

  // Each changes this row and returns it.
  Setting& record(std::string record_key);  // the value that the flag stored
  Setting& record(std::string record_key, Json recorded);
  Setting& called(std::string text);  // otherwise its first flag
  Setting& shown(std::string text);   // the default in the help
  Setting& offers(std::vector<std::string> values);
  Setting& agree(Agreement part);
};

// A value of a flag that takes one of several.
template <typename T>
struct Choice {
  const char* name;
  T value;
  bool listed = true;  // false: another spelling, which messages do not list
};

// Python's underscores between digits are accepted. Throws UsageError, which names the flag, for
// anything that is no number and for values below `least` or above `most`.
template <typename T>
T parse_number(const std::string& flag, const std::string& given, T least, T most);
// Throws UsageError.
[[noreturn]] void refuse_value(const std::string& flag, const std::string& why);
// "a, b, c"
std::string listed(const std::vector<std::string>& names);
bool same_word(const std::string& a, const std::string& b);  // upper and lower case are the same

template <typename T>
struct Unwrapped {
  using type = T;
  static constexpr bool optional = false;
};
template <typename T>
struct Unwrapped<std::optional<T>> {
  using type = T;
  static constexpr bool optional = true;
};

// Makes rows. Fields outlive the table; a row's value in the record is that of the moment in which
// the row is made. The last of repeated flags counts, as in argparse.
class SettingTable {
 public:
  using Json = nlohmann::ordered_json;

  void group(std::string name) { group_ = std::move(name); }

  // A default outside the bounds stands for "not given", and the help does not show it.
  template <typename Field>
  Setting& number(const std::string& flags, Field* field, typename Unwrapped<Field>::type least,
                  const std::string& help,
                  typename Unwrapped<Field>::type most =
                      std::numeric_limits<typename Unwrapped<Field>::type>::max()) {
    using T = typename Unwrapped<Field>::type;
    Setting& row = add(Setting::Form::value, flags, help);
    row.type = std::is_floating_point_v<T> ? "NUMBER" : "INT";
    row.store = [=, flag = row.first_flag()](const std::vector<std::string>& words) {
      *field = parse_number<T>(flag, words.back(), least, most);
    };
    row.value = json_of(*field);
    if constexpr (!Unwrapped<Field>::optional) {
      if (*field >= least && *field <= most) row.initial = fmt::format("{}", *field);
    }
    return row;
  }

  // A number in [0, 1).
  template <typename Field>
  Setting& probability(const std::string& flags, Field* field, const std::string& help) {
    return number(flags, field, 0.0, help, std::nextafter(1.0, 0.0));
  }

  // Any text. `check` throws UsageError for what it refuses.
  using Check = std::function<void(const std::string& flag, const std::string& text)>;
  template <typename Field>
  Setting& text(const std::string& flags, Field* field, const std::string& type,
                const std::string& help, Check check = {}) {
    Setting& row = add(Setting::Form::value, flags, help);
    row.type = type;
    row.store = [field, check = std::move(check),
                 flag = row.first_flag()](const std::vector<std::string>& words) {
      if (check) check(flag, words.back());
      *field = words.back();
    };
    row.value = json_of(*field);
    if constexpr (std::is_same_v<Field, std::string>) row.initial = *field;
    return row;
  }

  // A text that `store` reads.
  Setting& parsed(const std::string& flags, const std::string& type, const std::string& help,
                  std::function<void(const std::string& flag, const std::string& text)> store);

  template <typename Field>
  Setting& choice(const std::string& flags, Field* field, const std::string& type,
                  std::vector<Choice<typename Unwrapped<Field>::type>> all,
                  const std::string& help) {
    Setting& row = add(Setting::Form::value, flags, help);
    row.type = type;
    for (const auto& one : all)
      if (one.listed) row.choices.emplace_back(one.name);
    const auto name_of = [&all](const typename Unwrapped<Field>::type& value) -> std::string {
      for (const auto& one : all)
        if (one.value == value) return one.name;
      return "";
    };
    if constexpr (Unwrapped<Field>::optional) {
      row.value = *field ? text_or_null(name_of(**field)) : Json(nullptr);
    } else {
      row.initial = name_of(*field);
      row.value = text_or_null(row.initial);
    }
    row.store = [field, all = std::move(all), names = row.choices,
                 flag = row.first_flag()](const std::vector<std::string>& words) {
      for (const auto& one : all)
        if (same_word(one.name, words.back())) return void(*field = one.value);
      refuse_value(flag, fmt::format("'{}' is not known: {}", words.back(), listed(names)));
    };
    return row;
  }

  // One or more values; a later use of the flag replaces an earlier one.
  Setting& list(const std::string& flags, std::vector<std::string>* field, const std::string& type,
                const std::string& help);
  Setting& list(const std::string& flags, const std::string& type, const std::string& help,
                std::function<void(const std::vector<std::string>&)> store);
  // A flag without a value that turns `field` on, or off.
  Setting& turns_on(const std::string& flags, bool* field, const std::string& help);
  Setting& turns_off(const std::string& flags, bool* field, const std::string& help);
  // A setting that follows from others. `called`: what messages call it.
  Setting& follows(std::string key, Json value, std::string called);
  // A flag that is accepted because command lines written for Megatron-LM have it; `why` says why
  // it has no effect.
  void ignored(const std::string& flag, bool takes_value, const std::string& why,
               std::vector<std::string>* notes);

  const std::vector<Setting>& rows() const { return rows_; }

 private:
  Setting& add(Setting::Form form, const std::string& flags, const std::string& help);

  std::string group_;
  std::vector<Setting> rows_;
};

// The table over the values of `flags`, which outlives it.
std::vector<Setting> settings(Flags* flags);
// The rows that the record has, with the values of `config`. The keys are the same for every run.
std::vector<Setting> recorded_settings(const Config& config);

// The parts of the table, in the order of the help.
void add_model_settings(SettingTable* table, Flags* flags);
void add_training_settings(SettingTable* table, Flags* flags);
void add_encoder_settings(SettingTable* table, Flags* flags);
void add_data_settings(SettingTable* table, Flags* flags);
void add_output_settings(SettingTable* table, Flags* flags);
void add_device_settings(SettingTable* table, Flags* flags);
void add_parallel_settings(SettingTable* table, Flags* flags);
void add_launch_settings(SettingTable* table, Flags* flags);
void add_measure_settings(SettingTable* table, Flags* flags);
void add_plan_settings(SettingTable* table, Flags* flags);
void add_ignored_settings(SettingTable* table, Flags* flags);

}  // namespace tally::train
