#include "src/plan/time_model.h"

#include <algorithm>

#include "src/measure/peak_rates.h"
#include "src/plan/stage_count.h"
#include "src/plan/units.h"

namespace tally::train {
namespace {

// Shares of datasheet rates that kernels and collectives reach.
constexpr double memory_share = 0.8, link_share = 0.8;

// The rate of flash attention over that of GEMMs. Heads of 128 give the matrix units twice the work of
// heads of 64 for each exponential (bench/notes/attention.md).
double attention_share(int64_t head_dim) {
  return head_dim >= 128 ? 0.7 : 0.5;
}

// Sizes of one micro batch on one tensor parallel rank, for what other programs do.
struct Sizes {
  Sizes(const Config& c, const PlanLayout& l)
      : tokens(real(c.micro_batch) * real(c.sequence)),
        type(static_cast<double>(size_of(c.compute_type()))),
        stream(tokens * real(c.model.hidden) * type / l.outer_shards()),
        inner(tokens * real(c.model.hidden) * type / l.tensor),
        ffn(tokens * real(c.model.ffn) * type / l.tensor),
        scores(real(c.micro_batch) * real(c.model.heads) * real(c.sequence) * real(c.sequence) /
               l.tensor),
        attention(4 * scores * real(c.model.head_dim())) {}
  double tokens, type;
  double stream, inner, ffn;  // bytes
  double scores;              // elements of the matrix of scores
  double attention;           // FLOPs forward, over all scores
};

// Seconds of a part's work, as our program does it.
struct Speeds {
  Speeds(const Config& c, const Machine& m)
      : gemms(m.peak * m.efficiency),
        fp8_gemms(gemms * c.fp8.recipe.gemm_rate),
        attention(gemms * attention_share(c.model.head_dim())),
        memory(m.memory_bandwidth * memory_share) {}
  double gemms, fp8_gemms, attention, memory;

  double seconds(const CountedWork& w) const {
    return gemm_seconds(w) + w.attention / attention + w.moved / memory;
  }
  double gemm_seconds(const CountedWork& w) const {
    return w.gemms / gemms + w.fp8_gemms / fp8_gemms;
  }
};

// Passes over the matrix of scores and GEMMs over all of it.
LayerTime unfused_attention(const Sizes& s, const Speeds& speeds) {
  const double pass = s.scores * s.type / speeds.memory;
  return {s.attention / speeds.gemms + 6 * pass, 2 * s.attention / speeds.gemms + 8 * pass};
}

// Bytes that norms, residual additions, dropout and the activation read and write where each is a
// pass of its own.
LayerTime unfused_passes(const Sizes& s, const Speeds& speeds) {
  const double forward = (8 * s.stream + 3 * s.ffn + 4 * s.inner) / speeds.memory;
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
  m.links = kind.links;
  m.network = c.plan.network > 0 ? c.plan.network * 1e9 : kind.network;
  m.linked = std::max(c.plan.gpus_per_node, kind.linked_by_switch);
  return m;
}

namespace {

// The bandwidth of a ring whose members that NVLink connects have `within` there.
double ring_bandwidth(const Machine& m, int ranks, int stride, double within) {
  if (ranks <= 1 || int64_t{ranks} * stride <= m.linked) return within * link_share;
  const int members = std::max(1, std::min(ranks, m.linked / stride));
  return std::min(within, m.network * members) * link_share;
}

}  // namespace

double group_bandwidth(const Machine& m, int ranks, int stride) {
  return ring_bandwidth(m, ranks, stride,
                        m.links.of(std::min(ranks, std::max(1, m.linked / stride))));
}

double pair_bandwidth(const Machine& m, int ranks, int stride) {
  return ring_bandwidth(m, ranks, stride, m.links.of(2));
}

namespace {

// The time of what our program computes again in a layer's backward pass.
double recomputation(const Config& c, const Speeds& speeds, double link) {
  if (c.recompute == Recompute::none) return 0;
  Config none = c;
  none.recompute = Recompute::none;
  const PassCount all = count_layer(c, {true}).backward, base = count_layer(none, {true}).backward;
  return speeds.seconds(all.work - base.work) + (all.sent - base.sent) / link;
}

}  // namespace

LayerTime layer_time(const Config& c, const Machine& m, const ProgramTraits& traits) {
  const PlanLayout l = layout_of(c);
  const Sizes s(c, l);
  const Speeds speeds(c, m);
  const double link = group_bandwidth(m, l.tensor, 1);
  Config none = c;
  none.recompute = Recompute::none;
  const LayerCount count = count_layer(none, {true});
  CountedWork forward = count.forward.work, backward = count.backward.work;
  LayerTime attention{forward.attention / speeds.attention, backward.attention / speeds.attention};
  if (traits.attention == AttentionKind::unfused) attention = unfused_attention(s, speeds);
  LayerTime passes{forward.moved / speeds.memory, backward.moved / speeds.memory};
  if (!traits.fused) passes = unfused_passes(s, speeds);
  LayerTime t;
  t.forward =
      speeds.gemm_seconds(forward) + attention.forward + passes.forward + count.forward.sent / link;
  // The messages overlap with the weight gradients, which are half of the GEMMs.
  const double overlap = speeds.gemm_seconds(backward) / 2;
  const double exposed = std::max(0.0, count.backward.sent / link - overlap);
  t.backward = speeds.gemm_seconds(backward) + attention.backward + passes.backward + exposed;
  t.backward += c.recompute == Recompute::full && traits.recomputes_everything ? t.forward
                : c.recompute == Recompute::selective && traits.recomputes_attention
                    ? attention.forward
                    : recomputation(c, speeds, link);
  return t;
}

StepTime step_time(const Config& c, const Machine& m, const ProgramTraits& traits) {
  const PlanLayout l = layout_of(c);
  const LayerTime layer = layer_time(c, m, traits);
  const Speeds speeds(c, m);
  const double micro_batches = real(l.micro_batches);
  StepTime t;
  // The head belongs to the last stage.
  const LayerCount head = count_head(c, {true});
  t.work = micro_batches * real(layers_of_stage(c)) * (layer.forward + layer.backward);
  t.ends = micro_batches * (speeds.seconds(head.forward.work) + speeds.seconds(head.backward.work));
  t.bubble = (t.work + t.ends) * bubble_over_work(l);
  const int replicas_apart = l.tensor, stages_apart = l.tensor * l.data;
  const double border = border_bytes(c) / (traits.splits_messages && !l.sequence ? l.tensor : 1);
  if (l.pipeline > 1)
    t.messages =
        micro_batches * 2 * real(l.chunks) * border / pair_bandwidth(m, l.pipeline, stages_apart);
  const StageCount first = count_stage(c, 0, {true});
  t.data = first.sent.data / group_bandwidth(m, l.data, replicas_apart);
  if (first.sent.embedding > 0)
    t.data += first.sent.embedding / pair_bandwidth(m, l.pipeline, stages_apart);
  t.optimizer = first.update.moved / speeds.memory;
  return t;
}

}  // namespace tally::train
