#include "src/train/memory_estimate.h"

#include <algorithm>

namespace tally::train {
namespace {

DType wide_type(const Config& c) {
  return c.compute_type() == DType::f64 ? DType::f64 : DType::f32;
}

// The gradients that a process keeps under ZeRO 2, as a share of all: its share of the blocks'
// matrices and whole those of two blocks (TableLayout), and all others (Sharding).
double kept_gradients(const Config& c) {
  if (!c.shard_gradients) return 1;
  const auto real = [](int64_t n) { return static_cast<double>(n); };
  const ModelConfig& m = c.model;
  const double block = real(m.hidden) * (4 * real(m.hidden) + 2 * real(m.ffn));
  const double blocks = real(m.layers) * block;
  const double shared = blocks / c.data_parallel + std::min(2.0, real(m.layers)) * block;
  return 1 + (shared - blocks) / real(m.parameters());
}

// Weights, gradients, two moments, and master weights where the weights are narrower or processes
// share the state (OptimizerState). Without an optimizer neither moments nor master weights.
double parameter_bytes(const Config& c) {
  const auto weight = static_cast<double>(size_of(c.compute_type()));
  const auto wide = static_cast<double>(size_of(wide_type(c)));
  const bool trains = c.command == Command::train && !c.skip_train;
  const bool shares = c.distributed_optimizer && trains;
  const double state = trains ? 2 * wide + (weight < wide || shares ? wide : 0) : 0;
  // The reference model works on copies, which have their own gradients.
  const double copies = c.reference ? (trains ? 2 : 1) * wide : 0;
  return static_cast<double>(c.model.parameters()) *
         (weight + wide * (trains ? kept_gradients(c) : 1) +
          (shares ? state / c.data_parallel : state) + copies);
}

// Tokens whose logits the explicit model holds at once on a CPU: as many as stay near the caches.
double rows_of_logits(const Config& c) {
  constexpr int64_t elements = int64_t{1} << 23;
  const int64_t limit = std::max<int64_t>(1, elements / c.model.padded_vocabulary);
  int64_t rows = 1;
  while (rows * 2 <= limit) rows *= 2;
  return std::min(static_cast<double>(rows),
                  static_cast<double>(c.micro_batch) * static_cast<double>(c.sequence));
}

// What autograd keeps of the reference model: at least what the explicit model keeps without
// recomputation, and all logits and attention probabilities.
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

}  // namespace

double planned_activation_bytes(const Config& c) {
  const auto real = [](int64_t n) { return static_cast<double>(n); };
  const ModelConfig& m = c.model;
  const auto type = static_cast<double>(size_of(c.compute_type()));
  const auto wide = static_cast<double>(size_of(wide_type(c)));
  const double tokens = real(c.micro_batch) * real(c.sequence);
  const double hidden = tokens * real(m.hidden) * type, ffn = tokens * real(m.ffn) * type;
  // A block: two residual streams, queries, keys and values, attention's output and what GELU's
  // gradient needs; statistics of two norms and of attention; two norms' outputs and GELU's.
  const double residual = hidden;
  const double kept = 5 * hidden + ffn + tokens * (4 + real(m.heads)) * wide;
  const double recomputable = 2 * hidden + ffn;
  const double whole = residual + kept + recomputable;
  const double others = c.recompute == Recompute::none        ? whole
                        : c.recompute == Recompute::selective ? residual + kept
                                                              : residual;
  const double blocks = whole + real(m.layers - 1) * others;
  // After the blocks: the last residual stream and its norm, three buffers of gradients or two,
  // logits or the gradient of queries, keys and values, losses and sums.
  const double rows = rows_of_logits(c);
  const double streams = (m.hidden_dropout > 0 ? 4 : 3) * hidden;
  const double logits = std::max(rows * real(m.padded_vocabulary) * type, 3 * hidden);
  const double sums = (3 * tokens + rows + real(m.layers) * real(m.hidden)) * wide;
  return blocks + streams + logits + sums;
}

MemoryEstimate estimate_memory(const Config& c) {
  MemoryEstimate e;
  e.parameters = parameter_bytes(c);
  const double tokens = static_cast<double>(c.micro_batch) * static_cast<double>(c.sequence);
  // The gradient at GELU's output, which every block's backward pass computes.
  const double scratch =
      c.command == Command::train && !c.skip_train
          ? tokens * static_cast<double>(c.model.ffn) * static_cast<double>(size_of(wide_type(c)))
          : 0;
  e.activations = (c.reference ? reference_bytes(c) : planned_activation_bytes(c)) + scratch;
  // Ids and targets. Eight micro batches are made ahead, those of two steps may be on their way to
  // the device (StepLoop), and one is being made; a short run has fewer.
  const auto of_step = static_cast<double>(c.micro_batches());
  const double steps = std::min(2.0, static_cast<double>(c.train_iterations));
  const double held = c.command == Command::train ? 8 + steps * of_step + 1 : 1;
  e.batches = held * 2 * tokens * static_cast<double>(size_of(DType::i32));
  return e;
}

}  // namespace tally::train
