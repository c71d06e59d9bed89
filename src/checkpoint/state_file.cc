#include "src/checkpoint/state_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/data/text/json_fault.h"
#include "src/data/text/mapped_file.h"

namespace tally::train {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kStateFormat = 1;
constexpr const char* kChecksums = "checksums";

}  // namespace

std::string state_text(const TrainingState& s) {
  Json json;
  json["format"] = kStateFormat;
  json[kChecksums] = true;
  json["iteration"] = s.iteration;
  json["consumed_samples"] = s.consumed_samples;
  json["scheduled_samples"] = s.scheduled_samples;
  json["optimizer_steps"] = s.optimizer_steps;
  json["skipped_iterations"] = s.skipped_iterations;
  json["loss_scale"] = s.loss_scale;
  json["loss_scale_good_steps"] = s.loss_scale_good_steps;
  json["loss_scale_hysteresis"] = s.loss_scale_hysteresis;
  json["seed"] = s.seed;
  json["sequence"] = s.sequence;
  json["optimizer"] = s.optimizer;
  json["optimizer_kind"] = s.optimizer_kind;
  json["config"] = s.config_json.empty() ? Json() : Json::parse(s.config_json);
  return json.dump(2) + "\n";
}

TrainingState read_state(const std::string& path) {
  const MappedFile file(path);
  TrainingState s;
  try {
    const Json json = Json::parse(file.data(), file.data() + file.size());
    const int format = json.at("format").get<int>();
    if (format != kStateFormat) {
      throw std::runtime_error(
          fmt::format("'{}' has format {} of another version of this program, and {} is read", path,
                      format, kStateFormat));
    }
    s.iteration = json.at("iteration").get<int64_t>();
    s.consumed_samples = json.at("consumed_samples").get<int64_t>();
    // Files without this field are of programs in which skipped updates advanced the schedule.
    s.scheduled_samples = json.value("scheduled_samples", s.consumed_samples);
    s.optimizer_steps = json.at("optimizer_steps").get<int64_t>();
    s.skipped_iterations = json.at("skipped_iterations").get<int64_t>();
    s.loss_scale = json.at("loss_scale").get<double>();
    s.loss_scale_good_steps = json.at("loss_scale_good_steps").get<int64_t>();
    s.loss_scale_hysteresis = json.at("loss_scale_hysteresis").get<int64_t>();
    s.seed = json.at("seed").get<uint64_t>();
    s.sequence = json.at("sequence").get<int64_t>();
    s.optimizer = json.value("optimizer", true);
    // Every optimizer was AdamW before there were others.
    s.optimizer_kind = json.value("optimizer_kind", "adam");
    if (!json.at("config").is_null()) s.config_json = json.at("config").dump();
  } catch (const Json::exception& error) {
    throw std::runtime_error(fmt::format("'{}' is damaged: {}", path, json_fault(error)));
  }
  return s;
}

bool was_saved_with_checksums(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) return false;
  const MappedFile file(path);
  const Json json = Json::parse(file.data(), file.data() + file.size(), nullptr, false);
  return json.is_object() && json.value(kChecksums, Json()) == true;
}

}  // namespace tally::train
