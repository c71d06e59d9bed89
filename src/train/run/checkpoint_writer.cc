#include "src/train/run/checkpoint_writer.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace tally::train {
namespace {

// The buffers of a state that this process writes; master weights that are the weights are not
// listed twice.
std::vector<Tensor*> written_buffers(ParameterState* state, bool optimizer,
                                     const SaveGroup& group) {
  std::vector<Tensor*> buffers;
  const bool writes_all = !group.divided();
  OptimizerBuffers& o = state->optimizer;
  const bool state_too = optimizer && o.first_moment.defined() && (writes_all || group.part() >= 0);
  const bool shared = o.master.defined() && o.master.data == state->weights.data;
  if (writes_all || group.writes_model() || (state_too && shared))
    buffers.push_back(&state->weights);
  if (!state_too) return buffers;
  if (!shared) buffers.push_back(&o.master);
  buffers.push_back(&o.first_moment);
  if (o.second_moment.defined()) buffers.push_back(&o.second_moment);
  return buffers;
}

size_t aligned(size_t bytes) {
  constexpr size_t alignment = 256;
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::string root, const ModelConfig& config,
                                   const SideFiles& side, SaveGroup group, int processes,
                                   Print note, std::function<size_t()> available)
    : root_(std::move(root)),
      config_(config),
      side_(side),
      group_(std::move(group)),
      processes_(processes),
      note_(std::move(note)),
      available_(std::move(available)),
      host_(make_stream(Device{})) {}

CheckpointWriter::~CheckpointWriter() {
  if (thread_.joinable()) thread_.join();
}

// Memory that is kept from an earlier copy has been found to fit.
bool CheckpointWriter::copy_fits(size_t bytes, Stream& stream) {
  if (memory_bytes_ >= bytes) return true;
  memory_.reset();
  memory_bytes_ = 0;
  // Files in the page cache and batches that are read ahead need memory, too.
  const size_t available = available_();
  const size_t all = bytes * static_cast<size_t>(processes_);
  const bool fits = available == unknown_memory || all <= available / 4 * 3;
  if (fits) {
    try {
      memory_ = std::make_unique<HostMemory>(stream, bytes);
      memory_bytes_ = bytes;
      return true;
    } catch (const std::runtime_error&) {  // out of memory, or of pinned memory: the note below
    }
  }
  if (!noted_)
    note_(
        fmt::format("checkpoints are written while training waits: a copy of the state needs "
                    "{:.1f} GB of host memory, and {:.1f} GB are available",
                    static_cast<double>(all) / 1e9, static_cast<double>(available) / 1e9));
  noted_ = true;
  return false;
}

void CheckpointWriter::start(const TrainingState& state, const ParameterState& parameters,
                             Stream& stream) {
  done_ = false;
  result_ = SaveResult{state.iteration, "", ""};
  ParameterState copy = parameters;
  const std::vector<Tensor*> buffers = written_buffers(&copy, state.optimizer, group_);
  size_t bytes = 0;
  for (const Tensor* t : buffers) bytes += aligned(t->bytes());
  if (!copy_fits(bytes, stream)) {
    write(state, parameters, stream);
    return;
  }
  const bool shared = copy.optimizer.master.data == copy.weights.data;
  char* to = memory_ ? memory_->as<char>() : nullptr;  // null where there is nothing to write
  for (Tensor* t : buffers) {
    stream.copy(to, t->data, t->bytes());
    t->data = to;
    to += aligned(t->bytes());
  }
  if (shared) copy.optimizer.master.data = copy.weights.data;
  stream.synchronize();
  parameters_ = *parameters.parameters;
  copy.parameters = &parameters_;
  if (parameters.model) {
    model_ = *parameters.model;
    copy.model = &model_;
  }
  thread_ = std::thread([this, state, copy] { write(state, copy, *host_); });
}

void CheckpointWriter::write(const TrainingState& state, const ParameterState& parameters,
                             Stream& stream) {
  try {
    result_->folder = save_checkpoint(root_, state, config_, parameters, stream, side_, group_);
  } catch (const SharedFailure& e) {
    result_->error = e.what();
  } catch (const std::exception& e) {
    if (group_.divided()) fatal_ = std::current_exception();
    result_->error = e.what();
  }
  done_ = true;
}

std::optional<SaveResult> CheckpointWriter::wait() {
  if (thread_.joinable()) thread_.join();
  if (fatal_) std::rethrow_exception(std::exchange(fatal_, nullptr));
  return std::exchange(result_, std::nullopt);
}

std::optional<SaveResult> CheckpointWriter::finished() {
  return done_ ? wait() : std::nullopt;
}

}  // namespace tally::train
