#include "src/plan/volumes.h"

#include "src/plan/memory_model.h"
#include "src/plan/units.h"

namespace tally::train {
namespace {

// Share of a tensor that a ring of n ranks sends.
double ring(int n) {
  return n > 1 ? real(n - 1) / n : 0;
}

// [M,C] of a micro batch.
double stream_bytes(const Config& c) {
  return real(c.micro_batch) * real(c.sequence) * real(c.model.hidden) *
         static_cast<double>(size_of(c.compute_type()));
}

double tensor_volume(const Config& c, const PlanLayout& l, bool first, bool last) {
  const double forward = layer_forward_volume(c);
  const double layer = forward * (c.recompute == Recompute::full ? 2 : 1) +
                       layer_backward_volume(c) + layer_gather_volume(c);
  // The embedding's sum, and the gradient at the head's input; with sequence parallelism an
  // all-gather and a reduce-scatter instead of an all-reduce, and the gathering of the input again.
  const double end = 2 * ring(l.tensor) * stream_bytes(c);
  const double ends = (first ? end : 0) + (last ? end + layer_gather_volume(c) / 2 : 0);
  return real(l.micro_batches) * (real(layers_of_stage(c)) * layer + ends);
}

double pipeline_volume(const Config& c, const PlanLayout& l, bool first, bool last) {
  if (l.pipeline == 1) return 0;
  const double borders = 2 * real(l.chunks) - (first ? 1 : 0) - (last ? 1 : 0);
  return real(l.micro_batches) * borders * border_bytes(c);
}

double data_volume(const PlanLayout& l, const StageMemory& s, double gradients) {
  const double times = l.zero == 0 ? 2 : l.zero == 1 ? 1 : real(l.micro_batches);
  return ring(l.data) * (times * gradients + (l.zero > 0 ? s.weights : 0));
}

}  // namespace

double layer_forward_volume(const Config& c) {
  return 2 * 2 * ring(c.tensor_parallel) * stream_bytes(c);
}

double layer_backward_volume(const Config& c) {
  return layer_forward_volume(c);
}

double layer_gather_volume(const Config& c) {
  return layout_of(c).sequence ? 2 * ring(c.tensor_parallel) * stream_bytes(c) : 0;
}

double border_bytes(const Config& c) {
  return stream_bytes(c) / layout_of(c).outer_shards();
}

StepVolumes step_volumes(const Config& c, int stage) {
  const PlanLayout l = layout_of(c);
  const bool first = stage == 0, last = stage + 1 == l.pipeline;
  const StageMemory s = stage_memory(c, stage, {});
  const double wide =
      static_cast<double>(size_of(c.compute_type() == DType::f64 ? DType::f64 : DType::f32));
  StepVolumes v;
  v.tensor = tensor_volume(c, l, first, last);
  v.pipeline = pipeline_volume(c, l, first, last);
  v.data = data_volume(l, s, s.parameters * wide);
  if (c.model.tied_embeddings && l.pipeline > 1 && (first || last))
    v.embedding = real(c.model.padded_vocabulary) * real(c.model.hidden) / l.tensor * wide;
  return v;
}

}  // namespace tally::train
