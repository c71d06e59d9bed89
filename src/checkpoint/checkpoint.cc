#include "src/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/checkpoint/latest_checkpoint.h"
#include "src/checkpoint/model_config_file.h"
#include "src/checkpoint/safetensors.h"
#include "src/checkpoint/save_folder.h"
#include "src/data/json_fault.h"
#include "src/data/mapped_file.h"
#include "src/data/output_file.h"
#include "src/ops/convert.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

// The optimizer's three flat buffers and their names in the file.
struct Part {
  const char* prefix;
  Tensor flat;
};
std::array<Part, 3> optimizer_parts(const ParameterState& state) {
  return {{{"master.", state.master},
           {"exp_avg.", state.first_moment},
           {"exp_avg_sq.", state.second_moment}}};
}

void write_text(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.append(text.data(), text.size());
  file.sync_and_keep();
}

void save_optimizer(const std::string& path, const ParameterState& state, Stream& stream) {
  std::vector<TensorSource> sources;
  for (const Part& part : optimizer_parts(state)) {
    if (!part.flat.defined()) continue;
    for (const Parameter& parameter : *state.parameters) {
      const Tensor range = parameter_range(part.flat, parameter);
      sources.push_back(
          {part.prefix + parameter.name, range.dtype, parameter.shape, [range, &stream](char* out) {
             stream.copy(out, range.data, range.bytes());
             stream.synchronize();
           }});
    }
  }
  write_safetensors(path, std::move(sources));
}

std::string state_text(const TrainingState& s) {
  Json json;
  json["format"] = kFormat;
  json["iteration"] = s.iteration;
  json["consumed_samples"] = s.consumed_samples;
  json["optimizer_steps"] = s.optimizer_steps;
  json["skipped_iterations"] = s.skipped_iterations;
  json["loss_scale"] = s.loss_scale;
  json["loss_scale_good_steps"] = s.loss_scale_good_steps;
  json["loss_scale_hysteresis"] = s.loss_scale_hysteresis;
  json["seed"] = s.seed;
  json["sequence"] = s.sequence;
  json["config"] = s.config_json.empty() ? Json() : Json::parse(s.config_json);
  return json.dump(2) + "\n";
}

TrainingState read_state(const std::string& path) {
  const MappedFile file(path);
  TrainingState s;
  try {
    const Json json = Json::parse(file.data(), file.data() + file.size());
    const int format = json.at("format").get<int>();
    if (format != kFormat) {
      throw std::runtime_error(
          fmt::format("'{}' has format {} of another version of this program, and {} is read", path,
                      format, kFormat));
    }
    s.iteration = json.at("iteration").get<int64_t>();
    s.consumed_samples = json.at("consumed_samples").get<int64_t>();
    s.optimizer_steps = json.at("optimizer_steps").get<int64_t>();
    s.skipped_iterations = json.at("skipped_iterations").get<int64_t>();
    s.loss_scale = json.at("loss_scale").get<double>();
    s.loss_scale_good_steps = json.at("loss_scale_good_steps").get<int64_t>();
    s.loss_scale_hysteresis = json.at("loss_scale_hysteresis").get<int64_t>();
    s.seed = json.at("seed").get<uint64_t>();
    s.sequence = json.at("sequence").get<int64_t>();
    if (!json.at("config").is_null()) s.config_json = json.at("config").dump();
  } catch (const Json::exception& error) {
    throw std::runtime_error(fmt::format("'{}' is damaged: {}", path, json_fault(error)));
  }
  return s;
}

void sync_directory(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

// Puts the finished directory in its place. One that is there already (the run was resumed before
// it and came by again) waits under another name until the new one is named by the text file.
void publish(const fs::path& root, const fs::path& made, int64_t iteration) {
  const fs::path place = root / directory_name(iteration);
  const fs::path old = root / fmt::format(".{}.old", directory_name(iteration));
  if (fs::exists(place)) {
    fs::remove_all(old);
    fs::rename(place, old);
  }
  rename_durably(made.string(), place.string());
  const fs::path text = root / temporary_name(latest_file);
  write_text(text.string(), fmt::format("{}\n", iteration));
  rename_durably(text.string(), (root / latest_file).string());
  fs::remove_all(old);
}

// The optimizer's tensors, each checked against its place.
std::vector<std::pair<const StoredTensor*, Tensor>> match_optimizer(const SafetensorsFile& file,
                                                                    const ParameterState& state) {
  std::vector<std::pair<const StoredTensor*, Tensor>> matches;
  const auto bad = [&](const std::string& why) {
    return std::runtime_error(fmt::format("'{}' does not fit this run: {}", file.path(), why));
  };
  for (const Part& part : optimizer_parts(state)) {
    if (!part.flat.defined()) continue;
    for (const Parameter& parameter : *state.parameters) {
      const std::string name = part.prefix + parameter.name;
      const auto found = file.tensors().find(name);
      if (found == file.tensors().end()) throw bad(fmt::format("'{}' is missing", name));
      const StoredTensor& stored = found->second;
      if (stored.shape != parameter.shape || stored.dtype != safetensors_name(part.flat.dtype)) {
        throw bad(
            fmt::format("'{}' is {} [{}], and {} [{}] is needed: resume with the model and "
                        "precision that it was saved with",
                        name, stored.dtype, fmt::join(stored.shape, ", "),
                        safetensors_name(part.flat.dtype), fmt::join(parameter.shape, ", ")));
      }
      matches.emplace_back(&stored, parameter_range(part.flat, parameter));
    }
  }
  if (matches.size() != file.tensors().size()) {
    throw bad(fmt::format("it holds {} tensors, and {} are needed", file.tensors().size(),
                          matches.size()));
  }
  return matches;
}

void round_master(const ParameterState& state, Stream& stream) {
  for (const Parameter& parameter : *state.parameters) {
    const Tensor from = parameter_range(state.master, parameter);
    const Tensor to = parameter_range(state.weights, parameter);
    std::vector<char> wide(from.bytes());
    std::vector<char> narrow(to.bytes());
    stream.copy(wide.data(), from.data, wide.size());
    stream.synchronize();
    convert_elements(Tensor(wide.data(), from.dtype, {from.numel()}),
                     Tensor(narrow.data(), to.dtype, {to.numel()}));
    stream.copy(to.data, narrow.data(), narrow.size());
    stream.synchronize();
  }
}

}  // namespace

std::string save_checkpoint(const std::string& root, const TrainingState& state,
                            const ModelConfig& config, const ParameterState& parameters,
                            Stream& stream, const std::map<std::string, std::string>& files) {
  try {
    fs::create_directories(root);
    remove_leftovers(root, false);
    const fs::path made = fs::path(root) / temporary_name(directory_name(state.iteration));
    fs::remove_all(made);
    fs::create_directory(made);
    save_model_weights((made / "model.safetensors").string(), config, parameters, stream);
    if (parameters.first_moment.defined()) {
      save_optimizer((made / "optimizer.safetensors").string(), parameters, stream);
    }
    write_text((made / "config.json").string(),
               model_config_json(config, parameters.weights.dtype));
    write_text((made / "state.json").string(), state_text(state));
    for (const auto& [name, source] : files) {
      const MappedFile file(source);
      write_text((made / name).string(), std::string(file.data(), file.size()));
    }
    sync_directory(made.string());
    publish(root, made, state.iteration);
  } catch (const fs::filesystem_error& error) {
    throw std::runtime_error(fmt::format("the checkpoint under '{}' cannot be written: {}", root,
                                         error.code().message()));
  }
  return (fs::path(root) / directory_name(state.iteration)).string();
}

std::optional<TrainingState> load_checkpoint(const std::string& root, const ModelConfig& config,
                                             const ParameterState& parameters, Stream& stream) {
  const std::optional<std::string> directory = latest_checkpoint(root);
  if (!directory) return std::nullopt;
  const fs::path at(*directory);
  TrainingState state = read_state((at / "state.json").string());
  if (!parameters.first_moment.defined()) {  // evaluation
    load_model_weights(at.string(), config, parameters, stream);
    return state;
  }
  const SafetensorsFile optimizer((at / "optimizer.safetensors").string());
  const auto matches = match_optimizer(optimizer, parameters);
  for (const auto& [stored, range] : matches) {
    stream.copy(range.data, stored->data, stored->bytes);
  }
  stream.synchronize();
  // Every step and every way of making weights rounds them from the master weights.
  if (parameters.master.data != parameters.weights.data) round_master(parameters, stream);
  return state;
}

}  // namespace tally::train
