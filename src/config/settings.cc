#include "src/config/settings.h"

#include <cctype>
#include <charconv>

#include "src/config/args.h"
#include "src/config/flags.h"

namespace tally::train {
namespace {

// Python accepts underscores between digits (300_000_000), and so do benchmark files.
std::string without_underscores(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between_digits = text[i] == '_' && i > 0 && i + 1 < text.size() &&
                                std::isdigit(static_cast<unsigned char>(text[i - 1])) &&
                                std::isdigit(static_cast<unsigned char>(text[i + 1]));
    if (!between_digits) out += text[i];
  }
  return out;
}

}  // namespace

void refuse_value(const std::string& flag, const std::string& why) {
  throw UsageError(flag + ": " + why);
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

bool same_word(const std::string& a, const std::string& b) {
  const auto low = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return low(x) == low(y); });
}

template <typename T>
T parse_number(const std::string& flag, const std::string& given, T least, T most) {
  const std::string text = without_underscores(given);
  T value{};
  const char* first = text.data();
  const char* last = first + text.size();
  if (first != last && *first == '+') ++first;
  const auto [end, error] = std::from_chars(first, last, value);
  const char* kind = std::is_floating_point_v<T> ? "number" : "whole number";
  const auto too_small = [&] {
    refuse_value(flag, fmt::format("{} is too small: at least {}", given, least));
  };
  if constexpr (std::is_unsigned_v<T>) {
    int64_t negative{};
    const auto sign = std::from_chars(first, last, negative);
    if (sign.ec == std::errc() && sign.ptr == last && negative < 0) too_small();
  }
  if (error == std::errc::result_out_of_range)
    refuse_value(flag, fmt::format("{} is too large", given));
  if (error != std::errc() || end != last)
    refuse_value(flag, fmt::format("'{}' is not a {}", given, kind));
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) refuse_value(flag, fmt::format("'{}' is not a {}", given, kind));
  }
  if (value < least) too_small();
  if (std::is_floating_point_v<T> && value > most &&
      most == static_cast<T>(std::nextafter(1.0, 0.0)))
    refuse_value(flag, fmt::format("{} is too large: it must be below 1", given));
  if (value > most) refuse_value(flag, fmt::format("{} is too large: at most {}", given, most));
  return value;
}

template int parse_number(const std::string&, const std::string&, int, int);
template int64_t parse_number(const std::string&, const std::string&, int64_t, int64_t);
template uint64_t parse_number(const std::string&, const std::string&, uint64_t, uint64_t);
template double parse_number(const std::string&, const std::string&, double, double);

Setting& Setting::record(std::string record_key) {
  key = std::move(record_key);
  return *this;
}

Setting& Setting::record(std::string record_key, Json recorded) {
  value = std::move(recorded);
  return record(std::move(record_key));
}

Setting& Setting::called(std::string text) {
  label = std::move(text);
  return *this;
}

Setting& Setting::shown(std::string text) {
  initial = std::move(text);
  return *this;
}

Setting& Setting::offers(std::vector<std::string> values) {
  choices = std::move(values);
  return *this;
}

Setting& Setting::agree(Agreement part) {
  agreement = part;
  return *this;
}

Setting& SettingTable::add(Setting::Form form, const std::string& flags, const std::string& help) {
  Setting& row = rows_.emplace_back();
  row.form = form;
  row.group = group_;
  row.flags = flags;
  row.help = help;
  row.label = row.first_flag();
  return row;
}

Setting& SettingTable::parsed(const std::string& flags, const std::string& type,
                              const std::string& help,
                              std::function<void(const std::string&, const std::string&)> store) {
  Setting& row = add(Setting::Form::value, flags, help);
  row.type = type;
  row.store = [store = std::move(store), flag = row.first_flag()](
                  const std::vector<std::string>& words) { store(flag, words.back()); };
  return row;
}

Setting& SettingTable::list(const std::string& flags, std::vector<std::string>* field,
                            const std::string& type, const std::string& help) {
  Setting& row =
      list(flags, type, help, [field](const std::vector<std::string>& words) { *field = words; });
  row.value = *field;
  return row;
}

Setting& SettingTable::list(const std::string& flags, const std::string& type,
                            const std::string& help,
                            std::function<void(const std::vector<std::string>&)> store) {
  Setting& row = add(Setting::Form::list, flags, help);
  row.type = type;
  row.store = std::move(store);
  return row;
}

Setting& SettingTable::turns_on(const std::string& flags, bool* field, const std::string& help) {
  Setting& row = add(Setting::Form::toggle, flags, help);
  row.store = [field](const std::vector<std::string>&) { *field = true; };
  row.value = *field;
  return row;
}

Setting& SettingTable::turns_off(const std::string& flags, bool* field, const std::string& help) {
  Setting& row = add(Setting::Form::toggle, flags, help);
  row.store = [field](const std::vector<std::string>&) { *field = false; };
  row.value = *field;
  return row;
}

Setting& SettingTable::follows(std::string key, Json value, std::string called) {
  Setting& row = add(Setting::Form::none, "", "");
  return row.record(std::move(key), std::move(value)).called(std::move(called));
}

void SettingTable::ignored(const std::string& flag, bool takes_value, const std::string& why,
                           std::vector<std::string>* notes) {
  Setting& row = add(takes_value ? Setting::Form::value : Setting::Form::toggle, flag, why);
  if (takes_value) row.type = "VALUE";
  row.store = [notes, note = fmt::format("{} ({})", flag, why)](const std::vector<std::string>&) {
    if (std::find(notes->begin(), notes->end(), note) == notes->end()) notes->push_back(note);
  };
}

std::vector<Setting> settings(Flags* flags) {
  SettingTable table;
  for (const auto& add_part :
       {add_model_settings, add_training_settings, add_encoder_settings, add_data_settings,
        add_output_settings, add_device_settings, add_parallel_settings, add_launch_settings,
        add_measure_settings, add_plan_settings, add_ignored_settings})
    add_part(&table, flags);
  return table.rows();
}

std::vector<Setting> recorded_settings(const Config& config) {
  Flags flags;
  flags.config = config;
  std::vector<Setting> recorded;
  for (Setting& row : settings(&flags))
    if (!row.key.empty()) recorded.push_back(std::move(row));
  return recorded;
}

}  // namespace tally::train
