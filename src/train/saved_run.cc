#include "src/train/saved_run.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tally::train {

SavedRun saved_run(const std::string& config_json) {
  SavedRun saved;
  if (config_json.empty()) return saved;
  try {
    const nlohmann::json json = nlohmann::json::parse(config_json);
    saved.precision = json.value("precision", "");
  } catch (const nlohmann::json::exception&) {  // written for people, so it may be anything
    return {};
  }
  return saved;
}

std::vector<std::string> differences(const SavedRun& saved, const Config& c) {
  std::vector<std::string> notes;
  const std::string precision = precision_name(c.precision);
  if (!saved.precision.empty() && saved.precision != precision)
    notes.push_back(fmt::format(
        "--precision: the checkpoint was trained in {}, and this run trains in {}: give "
        "--precision {} to train as before",
        saved.precision, precision, saved.precision));
  return notes;
}

}  // namespace tally::train
