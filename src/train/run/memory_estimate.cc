#include "src/train/run/memory_estimate.h"
#include "src/model/architecture.h"

#include <algorithm>

#include "src/plan/stage_count.h"

namespace tally::train {
namespace {

DType wide_type(const Config& c) {
  return c.compute_type() == DType::f64 ? DType::f64 : DType::f32;
}

// The reference model works on copies, which have their own gradients.
double copies_of_reference(const Config& c, bool trains) {
  const auto wide = static_cast<double>(size_of(wide_type(c)));
  return c.reference ? static_cast<double>(parameter_count(c.model)) * (trains ? 2 : 1) * wide : 0;
}

// The stage of this process: its rank has the order of src/parallel/collectives/mesh.h.
int stage_of(const Config& c) {
  return c.rank / (c.tensor_parallel * c.data_parallel) % c.pipeline_parallel;
}

// The memory that autograd keeps of the reference model: at least what the explicit model keeps
// without recomputation, and all logits and attention probabilities.
double reference_bytes(Config c) {
  c.recompute = Recompute::none;
  if (c.compute_type() != DType::f64) c.precision = Precision::f32;
  const auto wide = static_cast<double>(size_of(wide_type(c)));
  const double tokens = static_cast<double>(c.micro_batch) * static_cast<double>(c.sequence);
  const double logits = tokens * static_cast<double>(c.model.padded_vocabulary);
  const double probabilities = static_cast<double>(c.model.layers * c.model.heads) * tokens *
                               static_cast<double>(c.sequence);
  return planned_activation_bytes(c) + wide * (logits + probabilities);
}

// Micro batches of encoders: six arrays of tokens each (EncoderUpload), those of two steps on their
// way to the device and one on it; two arrays of those that are made ahead.
double encoder_batches(const Config& c) {
  const bool trains = c.command == Command::train;
  const double steps = trains ? std::min(2.0, static_cast<double>(c.train_iterations)) : 0;
  const double held = steps * static_cast<double>(c.micro_batches()) + 2;
  const double made = trains ? c.micro_batches_ahead() : 0;
  return (held * 6 + made * 2) * static_cast<double>(c.micro_batch) *
         static_cast<double>(c.sequence) * static_cast<double>(size_of(DType::i32));
}

}  // namespace

double planned_activation_bytes(const Config& c) {
  return stage_memory(c, stage_of(c), {}).scratch();
}

MemoryEstimate estimate_memory(const Config& c) {
  MemoryEstimate e;
  const bool trains = c.command == Command::train && !c.skip_train;
  const StageMemory stage = stage_memory(c, stage_of(c), {}, trains);
  e.parameters = stage.states() + copies_of_reference(c, trains);
  const double tokens = static_cast<double>(c.micro_batch) * static_cast<double>(c.sequence);
  // The gradient at GELU's output, which every block's backward pass computes.
  const double scratch = trains ? tokens * static_cast<double>(c.model.ffn) / c.tensor_parallel *
                                      static_cast<double>(size_of(wide_type(c)))
                                : 0;
  e.activations = (c.reference ? reference_bytes(c) : stage.scratch() + stage.messages) + scratch;
  if (!c.model.language_model()) {
    e.batches = encoder_batches(c);
    return e;
  }
  // Ids and targets. Some micro batches are made ahead, those of two steps may be on their way to
  // the device (StepLoop), and one is being made; a short run has fewer.
  const auto of_step = static_cast<double>(c.micro_batches());
  const double steps = std::min(2.0, static_cast<double>(c.train_iterations));
  const double held =
      c.command == Command::train ? c.micro_batches_ahead() + steps * of_step + 1 : 1;
  e.batches = held * 2 * tokens * static_cast<double>(size_of(DType::i32));
  return e;
}

}  // namespace tally::train
