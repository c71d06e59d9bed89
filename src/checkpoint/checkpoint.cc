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
#include "src/device/convert.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

// The optimizer's three flat buffers and their prefixes in the file.
constexpr std::array<const char*, 3> kPrefixes{"master.", "exp_avg.", "exp_avg_sq."};
std::array<Tensor, 3> optimizer_buffers(const ParameterState& state) {
  return {state.optimizer.master, state.optimizer.first_moment, state.optimizer.second_moment};
}

void write_text(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.append(text.data(), text.size());
  file.sync_and_keep();
}

void save_optimizer(const std::string& path, const ParameterState& state, Stream& stream) {
  std::vector<TensorSource> sources;
  const auto buffers = optimizer_buffers(state);
  for (size_t i = 0; i < buffers.size(); ++i) {
    for (const Parameter& parameter : *state.parameters) {
      const Tensor range = parameter_range(buffers[i], parameter);
      sources.push_back({kPrefixes[i] + parameter.name, range.dtype, parameter.shape,
                         [range, &stream](char* out) {
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
  json["optimizer"] = s.optimizer;
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
    s.optimizer = json.value("optimizer", true);
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

// Renames the finished directory to its final name. An existing one (from before the run was
// resumed) is kept under another name until the text file names the new one.
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

// Checks each of the optimizer's tensors against the table. `type`: of all of them.
void check_optimizer(const SafetensorsFile& file, const std::vector<Parameter>& parameters,
                     DType type) {
  const auto bad = [&](const std::string& why) {
    return std::runtime_error(fmt::format("'{}' does not fit this run: {}", file.path(), why));
  };
  for (const char* prefix : kPrefixes) {
    for (const Parameter& parameter : parameters) {
      const std::string name = prefix + parameter.name;
      const auto found = file.tensors().find(name);
      if (found == file.tensors().end()) throw bad(fmt::format("'{}' is missing", name));
      const StoredTensor& stored = found->second;
      if (stored.shape != parameter.shape || stored.dtype != safetensors_name(type)) {
        throw bad(
            fmt::format("'{}' is {} [{}], and {} [{}] is needed: resume with the model and "
                        "precision that it was saved with",
                        name, stored.dtype, fmt::join(stored.shape, ", "), safetensors_name(type),
                        fmt::join(parameter.shape, ", ")));
      }
    }
  }
  const size_t needed = kPrefixes.size() * parameters.size();
  if (file.tensors().size() != needed)
    throw bad(fmt::format("it holds {} tensors, and {} are needed", file.tensors().size(), needed));
}

void round_master(const ParameterState& state, Stream& stream) {
  for (const Parameter& parameter : *state.parameters) {
    const Tensor from = parameter_range(state.optimizer.master, parameter);
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
                            Stream& stream, const SideFiles& side) {
  try {
    fs::create_directories(root);
    remove_leftovers(root, false);
    const Unfinished unfinished(fs::path(root) / temporary_name(directory_name(state.iteration)));
    const fs::path& made = unfinished.path;
    save_model_weights((made / "model.safetensors").string(), config, parameters, stream);
    if (state.optimizer && parameters.optimizer.first_moment.defined()) {
      save_optimizer((made / "optimizer.safetensors").string(), parameters, stream);
    }
    write_text((made / "config.json").string(),
               model_config_json(config, parameters.weights.dtype, side));
    write_text((made / "state.json").string(), state_text(state));
    for (const auto& [name, bytes] : side.files) write_text((made / name).string(), bytes);
    sync_directory(made.string());
    publish(root, made, state.iteration);
  } catch (const fs::filesystem_error& error) {
    throw std::runtime_error(fmt::format("the checkpoint under '{}' cannot be written: {}", root,
                                         error.code().message()));
  }
  return (fs::path(root) / directory_name(state.iteration)).string();
}

TrainingState read_training_state(const std::string& directory) {
  return read_state((fs::path(directory) / "state.json").string());
}

TrainingState check_checkpoint(const std::string& directory,
                               const std::vector<Parameter>& parameters, DType master) {
  const fs::path at(directory);
  TrainingState state = read_training_state(directory);
  if (!state.optimizer)
    throw std::runtime_error(
        fmt::format("'{}' has no optimizer's state (it was saved with --no-save-optim): give "
                    "--no-load-optim to resume with its weights alone, or --finetune to start at "
                    "iteration 0 with them",
                    directory));
  check_optimizer(SafetensorsFile((at / "optimizer.safetensors").string()), parameters, master);
  return state;
}

std::optional<TrainingState> load_checkpoint(const std::string& root, const ModelConfig& config,
                                             const ParameterState& parameters, Stream& stream) {
  const std::optional<std::string> directory = latest_checkpoint(root);
  if (!directory) return std::nullopt;
  const fs::path at(*directory);
  TrainingState state = read_state((at / "state.json").string());
  if (!parameters.optimizer.first_moment.defined()) {  // evaluation
    load_model_weights(at.string(), config, parameters, stream);
    return state;
  }
  const SafetensorsFile optimizer((at / "optimizer.safetensors").string());
  check_optimizer(optimizer, *parameters.parameters, parameters.optimizer.master.dtype);
  const auto buffers = optimizer_buffers(parameters);
  for (size_t i = 0; i < buffers.size(); ++i) {
    for (const Parameter& parameter : *parameters.parameters) {
      const StoredTensor& stored = optimizer.tensors().at(kPrefixes[i] + parameter.name);
      stream.copy(parameter_range(buffers[i], parameter).data, stored.data, stored.bytes);
    }
  }
  stream.synchronize();
  // Every step rounds the weights from the master weights, and so does loading.
  if (parameters.optimizer.master.data != parameters.weights.data) round_master(parameters, stream);
  return state;
}

}  // namespace tally::train
