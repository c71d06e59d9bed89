// Writes checkpoints while training continues.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/checkpoint/checkpoint.h"
#include "src/device/events.h"
#include "src/train/run/folders.h"
#include "src/train/run/host_memory.h"

namespace tally::train {

// The outcome of a save.
struct SaveResult {
  int64_t iteration = 0;
  std::string folder;
  std::string error;  // why it is missing, the same on all processes that write it; else empty
};

// One at a time: what this process writes is copied to host memory, and a thread writes it from
// there. Where the copy does not fit, training waits until the files are written.
class CheckpointWriter {
 public:
  // `root`: --save's folder. `group`: its exchange() is not used by others. `processes`: of this
  // host. `note` is called the first time that a copy does not fit into available(). `config` and
  // `side` outlive the writer.
  CheckpointWriter(
      std::string root, const ModelConfig& config, const SideFiles& side, SaveGroup group,
      int processes, Print note,
      std::function<size_t()> available = [] { return available_memory(); });
  // Waits for the files.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Returns when `parameters`, which `stream` has reached, may change. Call wait() before. Throws
  // OutOfMemory or DeviceError.
  void start(const TrainingState& state, const ParameterState& parameters, Stream& stream);
  // The result of the last start() that was not returned yet: waits for it, or returns nothing
  // while the files are being written. Throws what other processes cannot know of:
  // CommunicationError, no memory for what they exchange.
  std::optional<SaveResult> wait();
  std::optional<SaveResult> finished();

 private:
  bool copy_fits(size_t bytes, Stream& stream);
  void write(const TrainingState& state, const ParameterState& parameters, Stream& stream);

  const std::string root_;
  const ModelConfig& config_;
  const SideFiles& side_;
  const SaveGroup group_;
  const int processes_;
  const Print note_;
  const std::function<size_t()> available_;

  const std::unique_ptr<Stream> host_;  // the thread's
  std::unique_ptr<HostMemory> memory_;  // memory of the copies, kept for the next one
  size_t memory_bytes_ = 0;
  bool noted_ = false;

  std::vector<Parameter> parameters_, model_;  // parameters of the copied state
  std::thread thread_;
  std::atomic<bool> done_{false};
  std::optional<SaveResult> result_;  // the thread's until it has set done_
  // The failure that ends the run, because the other processes know nothing of it and wait.
  std::exception_ptr fatal_;
};

}  // namespace tally::train
