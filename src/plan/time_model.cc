#include "src/plan/time_model.h"

#include <algorithm>

#include "src/measure/peak_rates.h"
#include "src/model/architecture.h"
#include "src/plan/memory_model.h"
#include "src/plan/units.h"
#include "src/plan/volumes.h"

namespace tally::train {
namespace {

// Shares of datasheet rates that kernels and collectives reach.
constexpr double memory_share = 0.8, link_share = 0.8, attention_share = 0.5;

// Sizes of one micro batch on one tensor parallel rank.
struct Sizes {
  Sizes(const Config& c, const PlanLayout& l)
      : tokens(real(c.micro_batch) * real(c.sequence)),
        hidden(real(c.model.hidden)),
        type(static_cast<double>(size_of(c.compute_type()))),
        stream(tokens * hidden * type / l.outer_shards()),
        inner(tokens * hidden * type / l.tensor),
        ffn(tokens * real(c.model.ffn) * type / l.tensor),
        gemms(2 * tokens * real(block_matrices(c.model)) / l.tensor),
        scores(real(c.micro_batch) * real(c.model.heads) * real(c.sequence) * real(c.sequence) /
               l.tensor),
        attention(4 * scores * real(c.model.head_dim())) {}
  double tokens, hidden, type;
  double stream, inner, ffn;  // bytes
  double gemms;               // FLOPs forward
  double scores;              // elements of the matrix of scores
  double attention;           // FLOPs forward, over all scores
};

// Attention alone.
LayerTime attention_time(const Sizes& s, const Machine& m, AttentionKind kind) {
  const double rate = m.peak * m.efficiency, bandwidth = m.memory_bandwidth * memory_share;
  if (kind == AttentionKind::flash) {
    // Backward: 5 GEMMs for the 2 of the forward pass (Dao et al. 2022, appendix B).
    const double forward = s.attention / 2 / (rate * attention_share);
    return {forward, 2.5 * forward};
  }
  const double pass = s.scores * s.type / bandwidth;
  return {s.attention / rate + 6 * pass, 2 * s.attention / rate + 8 * pass};
}

// Bytes that norms, residual additions, dropout and the activation read and write, besides GEMMs.
struct PassBytes {
  double forward, backward;
};

// Fused: a norm reads and writes the stream; with dropout it also reads a branch and writes the sum.
// A norm's backward pass reads two gradients and the stream, and writes one. SwiGLU is a pass by
// itself: it reads gates and ups and writes the output; backward it reads three and writes two.
PassBytes pass_bytes(const Config& c, const Sizes& s, bool fused) {
  const bool dropout = c.model.hidden_dropout > 0;
  const double gated = c.model.block.gated() ? s.ffn : 0;
  if (fused)
    return {(dropout ? 8 : 4) * s.stream + 3 * gated, (dropout ? 10 : 8) * s.stream + 5 * gated};
  const double forward = 8 * s.stream + 3 * s.ffn + 4 * s.inner;
  return {forward, 2 * forward};
}

}  // namespace

Machine machine_of(const Config& c, const GpuKind& kind) {
  Machine m;
  if (const auto rate = peak_rate(kind.name, c.precision)) m.peak = rate->tflops * 1e12;
  m.efficiency = c.plan.efficiency > 0            ? c.plan.efficiency
                 : size_of(c.compute_type()) == 2 ? kind.efficiency
                 : c.precision == Precision::f32  ? kind.fp32_efficiency
                                                  : 0;
  m.memory_bandwidth = kind.memory_bandwidth;
  m.nvlink = kind.nvlink;
  m.network = c.plan.network > 0 ? c.plan.network * 1e9 : kind.network;
  m.gpus_per_node = c.plan.gpus_per_node;
  return m;
}

double group_bandwidth(const Machine& m, int ranks, int stride) {
  if (ranks <= 1) return m.nvlink * link_share;
  const int64_t span = int64_t{ranks} * stride;
  if (span <= m.gpus_per_node) return m.nvlink * link_share;
  const int members = std::max(1, std::min(ranks, m.gpus_per_node / stride));
  return std::min(m.nvlink, m.network * members) * link_share;
}

LayerTime layer_time(const Config& c, const Machine& m, const ProgramTraits& traits) {
  const PlanLayout l = layout_of(c);
  const Sizes s(c, l);
  const double rate = m.peak * m.efficiency, bandwidth = m.memory_bandwidth * memory_share;
  const double link = group_bandwidth(m, l.tensor, 1);
  const LayerTime attention = attention_time(s, m, traits.attention);
  const PassBytes passes = pass_bytes(c, s, traits.fused);
  const double gathered = layer_gather_volume(c) / link;
  LayerTime t;
  t.forward = s.gemms / rate + attention.forward + passes.forward / bandwidth +
              layer_forward_volume(c) / link;
  // The messages overlap with the weight gradients, which are half of the GEMMs.
  const double overlap = s.gemms / rate;
  const double exposed = std::max(0.0, layer_backward_volume(c) / link + gathered - overlap);
  t.backward = 2 * s.gemms / rate + attention.backward + passes.backward / bandwidth + exposed;
  if (c.recompute == Recompute::full) t.backward += t.forward;
  const double activation = (c.model.block.gated() ? 3 : 2) * s.ffn;
  if (c.recompute == Recompute::selective)
    t.backward +=
        traits.recomputes_attention ? attention.forward : (4 * s.stream + activation) / bandwidth;
  return t;
}

// What the update of one parameter moves, and the norm of its gradient, which reads it once. The
// update reads gradient, master weight and moments, and writes all but the gradient. LAMB writes its
// direction in the gradient's place and reads it and the master weight again.
double update_bytes(const Config& c, double type) {
  const double moments = c.optimizer.kind == OptimizerKind::sgd ? 1 : 2;
  const double again = c.optimizer.kind == OptimizerKind::lamb ? 3 * 4 : 0;
  return (2 + moments) * 4 + (1 + moments) * 4 + type + 4 + again;
}

StepTime step_time(const Config& c, const Machine& m, const ProgramTraits& traits) {
  const PlanLayout l = layout_of(c);
  const Sizes s(c, l);
  const LayerTime layer = layer_time(c, m, traits);
  const double rate = m.peak * m.efficiency, bandwidth = m.memory_bandwidth * memory_share;
  const double micro_batches = real(l.micro_batches);
  const double vocabulary = real(c.model.padded_vocabulary) / l.tensor;
  StepTime t;
  // The head's three GEMMs and two passes over its logits belong to the last stage.
  const double head =
      6 * s.tokens * s.hidden * vocabulary / rate + 4 * s.tokens * vocabulary * s.type / bandwidth;
  t.work = micro_batches * real(layers_of_stage(c)) * (layer.forward + layer.backward);
  t.ends = micro_batches * head;
  t.bubble = (t.work + t.ends) * bubble_over_work(l);
  const int replicas_apart = l.tensor, stages_apart = l.tensor * l.data;
  const double border = border_bytes(c) / (traits.splits_messages && !l.sequence ? l.tensor : 1);
  if (l.pipeline > 1)
    t.messages =
        micro_batches * 2 * real(l.chunks) * border / group_bandwidth(m, l.pipeline, stages_apart);
  const StageMemory memory = stage_memory(c, 0, {});
  const StepVolumes volumes = step_volumes(c, 0);
  t.data = volumes.data / group_bandwidth(m, l.data, replicas_apart);
  if (volumes.embedding > 0)
    t.data += volumes.embedding / group_bandwidth(m, l.pipeline, stages_apart);
  const double updated = memory.parameters / (l.zero > 0 ? l.data : 1);
  t.optimizer = updated * update_bytes(c, s.type) / bandwidth;
  return t;
}

}  // namespace tally::train
