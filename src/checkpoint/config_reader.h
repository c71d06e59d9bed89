// A model's config.json while it is read. Private to checkpoint/.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "src/device/mlp_activation.h"

namespace tally::train {

using ConfigJson = nlohmann::ordered_json;

// A config.json while it is read.
class ConfigReader {
 public:
  ConfigReader(std::string path, ConfigJson json)
      : path_(std::move(path)), json_(std::move(json)) {}
  std::runtime_error bad(const std::string& why) const {
    return std::runtime_error(fmt::format("'{}' {}", path_, why));
  }
  bool has(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }
  template <typename T>
  T get(const char* key, const T& missing) const {
    if (!has(key)) return missing;
    try {
      return json_[key].template get<T>();
    } catch (const ConfigJson::exception&) {
      throw bad(fmt::format("has {} for \"{}\", which is not of the expected kind",
                            json_[key].dump(), key));
    }
  }
  double probability(const char* key, double missing = 0.1) const {
    const auto value = get<double>(key, missing);
    if (!(value >= 0 && value < 1))
      throw bad(fmt::format("has the {} {}, which is not in [0, 1)", key, value));
    return value;
  }
  double positive(const char* key, double missing) const {
    const auto value = get<double>(key, missing);
    if (!(value > 0)) throw bad(fmt::format("has the {} {}, which is not positive", key, value));
    return value;
  }
  int64_t size(const char* key) const {
    if (has(key) && !json_[key].is_number_integer())
      throw bad(
          fmt::format("has {} for \"{}\", which is not a whole number", json_[key].dump(), key));
    const auto value = get<int64_t>(key, 0);
    if (value < 1) throw bad(fmt::format("has no positive \"{}\"", key));
    return value;
  }
  // The same of a number that transformers also reads under another name.
  int64_t size(const char* key, const char* alias) const {
    if (!has(alias)) return size(key);
    const int64_t value = size(alias);
    if (has(key) && size(key) != value)
      throw bad(
          fmt::format("has {} for \"{}\" and {} for \"{}\", which mean the same: leave one out",
                      size(key), key, value, alias));
    return value;
  }
  // The activation of an MLP; `missing` where the file has none. Any other must be gated as it is.
  MlpActivation activation(const char* key, MlpActivation missing) const {
    const MlpActivationEntry& usual = entry_of(missing);
    const auto given = get<std::string>(key, usual.name);
    std::string names;
    for (const MlpActivationEntry& entry : mlp_activations) {
      if (entry.gated != usual.gated) continue;
      if (given == entry.name || given == entry.synonym) return entry.kind;
      names += (names.empty() ? "" : ", ") + std::string(entry.name);
    }
    throw bad(fmt::format("has the activation \"{}\", which is not one of the supported: {}", given,
                          names));
  }
  // Throws for a model that is computed differently from ours.
  void refuse(const char* key, bool bad_value) const {
    if (get<bool>(key, !bad_value) == bad_value) {
      throw bad(fmt::format("has \"{}\": {}, which is not supported", key, bad_value));
    }
  }

  const ConfigJson& json() const { return json_; }

 private:
  std::string path_;
  ConfigJson json_;
};

}  // namespace tally::train
