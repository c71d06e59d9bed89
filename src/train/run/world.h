// The processes of a run and how they end together.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/checkpoint/save_group.h"
#include "src/config/config.h"
#include "src/measure/record.h"
#include "src/parallel/collectives/communicator.h"
#include "src/parallel/collectives/mesh.h"
#include "src/parallel/control/launch.h"
#include "src/parallel/control/rendezvous.h"

namespace tally::train {

// The processes of a run. A single process ends a run by itself. The first failure of several ends
// all within seconds and with one message, from rank 0. Lives in main() until the process ends.
class World {
 public:
  // Connects to the other processes. `fault`: why this process cannot take part, of which it tells
  // the others. Throws CommunicationError, and StartFailed where this or another process cannot
  // take part.
  World(const Launch& launch, const LaunchOptions& options,
        const std::optional<Fault>& fault = std::nullopt);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const Launch& launch() const { return launch_; }
  int rank() const { return launch_.rank; }
  int size() const { return launch_.size; }
  bool is_primary() const { return launch_.rank == 0; }  // it prints and writes files
  Rendezvous& meeting() { return *meeting_; }

  // Rank 0 calls it at the first failure, before the process ends, to write the record.
  void set_on_failure(std::function<void(const Failure&)> on_failure);
  // Runs `write` while no failure ends this process, which would write the same file or read what
  // `write` changes. If one does, it does not return.
  void write_unless_ending(const std::function<void()>& write);
  // This process has failed, or was asked to stop where the ranks do not vote on it. One process:
  // prints the message and returns `code`. Several: notifies the others and ends this process.
  // `consequence`: the error may be the consequence of another process's failure.
  int fail(int code, const std::string& message, bool consequence = false);
  // A good end of the run.
  void done() { meeting_->done(); }

 private:
  [[noreturn]] void end(const Failure& first, bool report);
  void tell_supervisor() const;
  std::string named(const Failure& f) const;

  const Launch launch_;
  std::recursive_mutex mutex_;  // protects on_failure_ and the files that it writes
  std::function<void(const Failure&)> on_failure_;
  std::unique_ptr<Rendezvous> meeting_;
};

// The arrangement of a run's processes.
MeshShape mesh_shape(const Config& config);
// Their means to write checkpoints and models. `world` outlives it.
SaveGroup save_group(const Config& config, World& world, ExchangeKind exchange);

struct OpenCommunicator {
  std::unique_ptr<Communicator> communicator;
  ProcessFacts facts;
};

// Makes the communicator that `config`, the device and the launcher ask for. Collective. Throws
// InputError when the processes do not match.
OpenCommunicator open_communicator(const Config& config, World& world, Device device);

// 16 hexadecimal digits that are the same where the bits of a model's weights are: of the first
// replica, whose ranks are taken in their order. `flat`: this rank's weights (device memory).
// Collective.
std::string weights_hash(World& world, const MeshShape& shape, Stream& stream, const Tensor& flat);

// Checks that all replicas hold the same bits in `flat` (device memory), the weights of the same
// part of the model. Collective. Throws CheckFailed that names the ranks that differ from the first
// replica.
void check_same_weights(World& world, const MeshShape& shape, Stream& stream, const Tensor& flat,
                        const char* when);

}  // namespace tally::train
