#include "src/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <future>
#include <sstream>
#include <stdexcept>

#include "src/checkpoint/latest_checkpoint.h"
#include "src/checkpoint/manifest.h"
#include "src/checkpoint/model_config_file.h"
#include "src/checkpoint/optimizer_files.h"
#include "src/checkpoint/save_folder.h"
#include "src/checkpoint/state_file.h"
#include "src/data/text/output_file.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;

FileChecksum write_with_checksum(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.append(text.data(), text.size());
  file.sync_and_keep();
  return file_checksum(text.data(), text.size());
}

// A part's checksums as the text that it sends to the first process, and back.
std::string checksums_text(const FileChecksum& sum) {
  std::string text = std::to_string(sum.bytes);
  for (const uint64_t block : sum.blocks) text += " " + checksum_text(block);
  return text;
}
FileChecksum parse_checksums(const std::string& text) {
  std::istringstream in(text);
  FileChecksum sum;
  in >> sum.bytes;
  std::string word;
  for (uint64_t block = 0; in >> word && parse_checksum(word, &block);) sum.blocks.push_back(block);
  return sum;
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
  const fs::path folder = root / directory_name(iteration);
  const fs::path old = root / fmt::format(".{}.old", directory_name(iteration));
  if (fs::exists(folder)) {
    fs::remove_all(old);
    fs::rename(folder, old);
  }
  rename_durably(made.string(), folder.string());
  const fs::path text = root / temporary_name(latest_file);
  write_with_checksum(text.string(), fmt::format("{}\n", iteration));
  rename_durably(text.string(), (root / latest_file).string());
  fs::remove_all(old);
}

const std::vector<Parameter>& whole_model(const ParameterState& state) {
  return state.model ? *state.model : *state.parameters;
}

// A checkpoint that is being written.
class Save {
 public:
  Save(const std::string& root, const TrainingState& state, const ModelConfig& config,
       const ParameterState& parameters, Stream& stream, const SideFiles& side,
       const SaveGroup& group)
      : root_(root),
        state_(state),
        config_(config),
        parameters_(parameters),
        stream_(stream),
        side_(side),
        group_(group) {}

  void run() {
    const std::vector<std::string> names = together([this] { return begin(); });
    folder_ = root_ / names.front();
    const std::vector<std::string> parts = together([this] { return write(); });
    const std::vector<std::string> model = together([this] { return read_model_back(); });
    together([&] {
      if (group_.first()) finish(parts, model);
      return "";
    });
  }

 private:
  std::vector<std::string> together(const std::function<std::string()>& work) {
    return work_together(group_, [&] {
      try {
        return work();
      } catch (const fs::filesystem_error& error) {
        throw std::runtime_error(fmt::format("the checkpoint under '{}' cannot be written: {}",
                                             root_.string(), error.code().message()));
      }
    });
  }
  bool has_optimizer() const {
    return state_.optimizer && parameters_.optimizer.first_moment.defined();
  }
  std::string path(const char* name) const { return (folder_ / name).string(); }

  // Makes the folder that all write in; its name.
  std::string begin() {
    if (!group_.first()) return "";
    fs::create_directories(root_);
    remove_leftovers(root_, false);
    unfinished_.emplace(root_ / temporary_name(directory_name(state_.iteration)));
    if (group_.divided()) make_model_file((unfinished_->path / model_file).string(), parameters_);
    return unfinished_->path.filename().string();
  }

  // Returns the checksums of this process's part of the optimizer's state; empty: it has none.
  std::string write() {
    if (!group_.divided()) {
      files_.push_back({model_file, save_model_weights(path(model_file), parameters_, stream_)});
      if (!has_optimizer()) return "";
      return checksums_text(save_whole_optimizer(path(whole_optimizer_file), parameters_, stream_));
    }
    if (!fs::exists(folder_))
      throw std::runtime_error(
          fmt::format("'{}', which rank 0 has made, does not exist here: give --save a folder that "
                      "all hosts share",
                      folder_.string()));
    if (group_.writes_model()) write_model_part(path(model_file), parameters_, stream_);
    if (!has_optimizer() || group_.part() < 0) return "";
    return checksums_text(save_optimizer_part(
        path(part_name(group_.part(), group_.parts()).c_str()), parameters_, stream_));
  }

  // Nobody has written all of the file of several processes: each reads a share of its blocks.
  // Returns their checksums.
  std::string read_model_back() {
    if (!group_.divided() || group_.part() < 0) return "";
    FileChecksum share;
    share.bytes = fs::file_size(path(model_file));
    share.blocks =
        read_block_checksums(path(model_file), share.bytes, static_cast<size_t>(group_.part()),
                             static_cast<size_t>(group_.parts()));
    return checksums_text(share);
  }

  // `model`: what read_model_back() returned on every process, in the order of ranks.
  FileChecksum model_checksum(const std::vector<std::string>& model) const {
    FileChecksum whole;
    std::vector<std::vector<uint64_t>> shares(static_cast<size_t>(group_.parts()));
    for (size_t rank = 0; rank < model.size(); ++rank) {
      if (model[rank].empty()) continue;
      const FileChecksum share = parse_checksums(model[rank]);
      whole.bytes = share.bytes;
      shares[static_cast<size_t>(group_.part_of(static_cast<int>(rank)))] = share.blocks;
    }
    for (size_t i = 0; i < whole.block_count(); ++i)
      whole.blocks.push_back(shares[i % shares.size()].at(i / shares.size()));
    return whole;
  }

  // The manifest of the optimizer's state, with the checksums that write() returned on every
  // process.
  Manifest optimizer_manifest(const std::vector<std::string>& parts) const {
    Manifest manifest;
    if (!has_optimizer()) return manifest;
    if (!group_.divided()) {
      manifest.files = {{whole_optimizer_file, parse_checksums(parts.front())}};
      return manifest;
    }
    manifest = manifest_of_parts(folder_.string(), group_.parts(), parameters_.optimizer.kind);
    check_manifest(manifest, whole_model(parameters_), config_.vocabulary,
                   parameters_.optimizer.master.dtype);
    for (size_t rank = 0; rank < parts.size(); ++rank)
      if (!parts[rank].empty())
        manifest.files[static_cast<size_t>(group_.part_of(static_cast<int>(rank)))].sum =
            parse_checksums(parts[rank]);
    return manifest;
  }

  void finish(const std::vector<std::string>& parts, const std::vector<std::string>& model) {
    if (group_.divided()) files_.push_back({model_file, model_checksum(model)});
    add("config.json", model_config_json(config_, parameters_.weights.dtype, side_));
    add(state_file, state_text(state_));
    for (const auto& [name, bytes] : side_.files) add(name, bytes);
    write_with_checksum(path(manifest_file), manifest_text(optimizer_manifest(parts), files_));
    sync_directory(folder_.string());
    publish(root_, folder_, state_.iteration);
  }

  void add(const std::string& name, const std::string& text) {
    files_.push_back({name, write_with_checksum(path(name.c_str()), text)});
  }

  const fs::path root_;
  const TrainingState& state_;
  const ModelConfig& config_;
  const ParameterState& parameters_;
  Stream& stream_;
  const SideFiles& side_;
  const SaveGroup& group_;
  std::optional<Unfinished> unfinished_;  // only on the first process
  fs::path folder_;
  std::vector<StoredFile> files_;  // written so far, but for the optimizer's state
};

}  // namespace

std::string save_checkpoint(const std::string& root, const TrainingState& state,
                            const ModelConfig& config, const ParameterState& parameters,
                            Stream& stream, const SideFiles& side, const SaveGroup& group) {
  Save(root, state, config, parameters, stream, side, group).run();
  return (fs::path(root) / directory_name(state.iteration)).string();
}

TrainingState read_training_state(const std::string& directory) {
  check_folder(directory);
  return read_state((fs::path(directory) / state_file).string());
}

bool lacks_checksums(const std::string& directory) {
  return fs::exists(fs::path(directory) / state_file) && stored_files(directory).empty();
}

TrainingState check_checkpoint(const std::string& directory, const ModelConfig& config,
                               const std::vector<Parameter>& parameters, DType master,
                               OptimizerKind kind) {
  TrainingState state = read_training_state(directory);
  if (!state.optimizer)
    throw std::runtime_error(
        fmt::format("'{}' has no optimizer's state (it was saved with --no-save-optim): give "
                    "--no-load-optim to resume with its weights alone, or --finetune to start at "
                    "iteration 0 with them",
                    directory));
  if (state.optimizer_kind != optimizer_name(kind))
    throw std::runtime_error(
        fmt::format("'{}' has the state of --optimizer {}, and this run's optimizer is {}: give "
                    "--optimizer {}, --no-load-optim to resume with its weights alone, or "
                    "--finetune to start at iteration 0 with them",
                    directory, state.optimizer_kind, optimizer_name(kind), state.optimizer_kind));
  const Manifest manifest = read_manifest(directory);
  check_manifest(manifest, parameters, config.vocabulary, master);
  check_files(manifest);
  return state;
}

std::optional<TrainingState> load_checkpoint(const std::string& root, const ModelConfig& config,
                                             const ParameterState& parameters, Stream& stream) {
  const std::optional<std::string> directory = latest_checkpoint(root);
  if (!directory) return std::nullopt;
  TrainingState state = read_training_state(*directory);
  if (!parameters.optimizer.first_moment.defined()) {  // evaluation
    load_model_weights(*directory, config, parameters, stream);
    return state;
  }
  StoredOptimizer stored(*directory, parameters.optimizer.kind);
  check_manifest(stored.manifest(), whole_model(parameters), config.vocabulary,
                 parameters.optimizer.master.dtype);
  stored.open(parameters);
  // Both read the same pages. Where no thread is to be had, get() does the work.
  std::future<void> checked =
      std::async(std::launch::async | std::launch::deferred, [&] { stored.check(); });
  try {
    load_optimizer(stored, parameters, stream);
  } catch (...) {
    checked.get();  // damage is why, if there is any
    throw;
  }
  checked.get();
  return state;
}

}  // namespace tally::train
