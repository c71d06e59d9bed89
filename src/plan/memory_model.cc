#include "src/plan/memory_model.h"

#include <algorithm>

#include "src/config/args.h"
#include "src/model/architecture.h"
#include "src/plan/encoder_memory.h"
#include "src/plan/units.h"

namespace tally::train {
namespace {

constexpr int64_t alignment = 128;  // ParameterTable::alignment

double bytes_of(DType type) {
  return static_cast<double>(size_of(type));
}

DType wide_type(const Config& c) {
  return c.compute_type() == DType::f64 ? DType::f64 : DType::f32;
}

// Elements of parameters, true and with the gaps that align them in the flat buffers.
struct Elements {
  double count = 0, aligned = 0;
  void add(int64_t n, double times = 1) {
    count += times * real(n);
    aligned += times * real((n + alignment - 1) / alignment * alignment);
  }
};

// The weights that a process of the stage has, its part of each.
Elements elements_of_stage(const Config& c, int stage) {
  ModelPart part;
  part.layers = layers_of_stage(c);
  part.first = stage == 0;
  part.last = stage + 1 == c.pipeline_parallel;
  Elements e;
  for_each_row(c.model, part, [&](const WeightRow& row, int64_t times) {
    e.add(row.elements(c.tensor_parallel), real(times));
  });
  return e;
}

// Sizes of the tensors of one micro batch, bytes.
struct Tensors {
  explicit Tensors(const Config& c)
      : type(bytes_of(c.compute_type())),
        wide(bytes_of(wide_type(c))),
        tokens(real(c.micro_batch) * real(c.sequence)),
        outer(real(layout_of(c).outer_shards())),
        inner(real(c.tensor_parallel)) {
    whole = tokens * real(c.model.hidden) * type;
    stream = whole / outer;
    attention = tokens * real(c.model.attention_width()) * type / inner;
    qkv = tokens * real(c.model.qkv_width()) * type / inner;
    ffn = tokens * real(c.model.ffn) * type / inner;
    fc = tokens * real(c.model.fc_width()) * type / inner;
    // RMSNorm has no mean.
    statistics = (c.model.block.norm == NormKind::rms ? 1 : 2) * tokens * wide / outer;
    attention_statistics = tokens * real(c.model.heads) * wide / inner;
    const double heads = real(c.model.heads + c.model.kv_heads());
    if (c.model.block.qk_norm)
      head_norm = tokens * heads * (real(c.model.head_dim()) * type + wide) / inner;
  }
  double type, wide, tokens, outer, inner;
  double whole;                             // [M,C]
  double stream;                            // [M,C] of the residual stream
  double attention, qkv;                    // [M,H D], [M,(H + 2 G) D]
  double ffn, fc;                           // [M,F], and of the MLP's first GEMM
  double statistics, attention_statistics;  // of a norm
  double head_norm = 0;
};

// The table of src/nn/block.h.
struct BlockBytes {
  explicit BlockBytes(const Tensors& t)
      : residual(t.stream),
        costly(2 * t.statistics + t.qkv + t.attention + t.attention_statistics + t.stream + t.fc +
               t.head_norm),
        cheap(2 * t.stream + t.ffn) {}
  double residual;  // in.r
  double costly;    // what only full recomputation computes again
  double cheap;     // what selective recomputation computes again

  double kept(Recompute r) const {
    return residual + (r == Recompute::full ? 0 : costly) + (r == Recompute::none ? cheap : 0);
  }
  double shared(Recompute r) const {
    return (r == Recompute::none ? 0 : cheap) + (r == Recompute::full ? costly : 0);
  }
};

// Scratch of attention's backward pass (attention_workspace()). cuDNN's is not known before the
// shape is asked for; it sums dQ in float32, as our kernel for Hopper does.
double attention_scratch(const Config& c, const MemoryTarget& target) {
  constexpr double pieces = 256 * mib;  // tile_memory, score_memory
  const bool grouped = c.model.kv_heads() < c.model.heads;
  const double heads = real(c.micro_batch) * real(c.model.heads) / c.tensor_parallel;
  const double rows = heads * real(c.sequence), d = real(c.model.head_dim());
  const double type = bytes_of(c.compute_type());
  // With query groups cuDNN has the gradients of K and V of each head of Q before it adds them up.
  if (type == 2) return rows * (d + 2) * 4 + 256 + (grouped ? 2 * rows * d * type : 0);
  const double square = real(c.sequence) * real(c.sequence);
  if (!grouped && c.compute_type() == DType::f32 && d <= 128 && target.capability >= 80) {
    const double blocks = real((c.sequence + 63) / 64);
    const double head = blocks * (blocks + 1) / 2 * 64 * 64 * 4;
    return rows * 4 + std::min(heads, std::max(1.0, pieces / head)) * head;
  }
  const double head = square * 2 * bytes_of(wide_type(c));
  const double together = grouped ? real(c.micro_batch) : heads;  // at most, in one GEMM
  return std::min(together, std::max(1.0, pieces / head)) * head + 1024;
}

// tf32x3: both operands of the largest GEMM, split in two (src/ops/gemm/split.cu): once for the
// main stream, and without tensor parallelism once for the weight gradients on the side stream. `logit_rows`: 0 on a stage
// without the head.
double split_bytes(const Config& c, double logit_rows) {
  if (c.precision != Precision::tf32x3) return 0;
  const double tokens = real(c.micro_batch) * real(c.sequence), hidden = real(c.model.hidden);
  const double ffn = real(c.model.fc_width()) / c.tensor_parallel;
  const double vocabulary = real(c.model.padded_vocabulary) / c.tensor_parallel;
  const double main = std::max((tokens + hidden) * ffn, (logit_rows + hidden) * vocabulary);
  const double side = std::max((ffn + hidden) * tokens, (vocabulary + hidden) * logit_rows);
  return 2 * 4 * (main + (c.tensor_parallel == 1 ? side : 0));
}

// Of the stream, which all chunks share.
double gemm_workspace(const MemoryTarget& target) {
  if (!target.gpu) return 0;
  return target.memory > 0 ? std::min(256 * mib, target.memory / 64) : 256 * mib;
}

// What Stream::bytes_peak() does not count: CUDA's context with the code of our kernels and the
// libraries', NCCL's buffers of each group of ranks that a process is in, and in them the 64 MiB in
// which copy engines stage gradients (src/parallel/nvlink/copy_engine.cc). Estimates, on the safe
// side; they depend on the driver, on NCCL's version and on the node.
double context_bytes(const PlanLayout& l, const MemoryTarget& target) {
  if (!target.gpu) return 0;
  const int groups = (l.gpus() > 1) + (l.tensor > 1) + (l.data > 1) + (l.pipeline > 1);
  return gib + groups * 0.5 * gib;
}

double message_bytes(const PlanLayout& l, const Tensors& t) {
  // Sequence parallelism: all tokens at the input of a column-parallel layer, and the sums of a
  // row-parallel one, in every chunk.
  return l.sequence ? real(l.chunks) * (2 * t.whole + std::max(t.whole, t.attention)) : 0;
}

// Gradients that a process keeps, as a number of elements. ZeRO 2: its share of the blocks' matrices
// and two blocks in work (TableLayout); the others whole (Sharding).
double kept_gradients(const Config& c, const PlanLayout& l, double elements) {
  if (l.zero < 2) return elements;
  const double block = real(block_matrices(c.model)) / l.tensor;
  const double layers = real(layers_of_stage(c));
  return elements - layers * block + (layers / l.data + std::min(2.0, layers)) * block;
}

void add_states(const Config& c, const PlanLayout& l, bool trains, StageMemory* s) {
  const Elements e = elements_of_stage(c, s->stage);
  const double weight = bytes_of(c.compute_type()), wide = bytes_of(wide_type(c));
  // Processes that share the state have copies of their share of the weights (OptimizerState).
  const double master = weight < wide || l.zero > 0 ? wide : 0;
  s->parameters = e.count;
  s->weights = e.aligned * weight;
  s->gradients = (trains ? kept_gradients(c, l, e.aligned) : e.aligned) * wide;
  const double moments = c.optimizer.kind == OptimizerKind::sgd ? 1 : 2;
  if (trains) s->optimizer = e.aligned * (moments * wide + master) / (l.zero >= 1 ? l.data : 1);
}

// One chunk of a stage: a Gpt of its own, with its activations and its scratch. The first and the
// last chunk of the model have the embedding and the head.
void add_chunk(const Config& c, int64_t chunk, const Tensors& t, const MemoryTarget& target,
               StageMemory* s) {
  const PlanLayout l = layout_of(c);
  const BlockBytes block(t);
  const bool first = s->stage == 0 && chunk == 0;
  const bool last = s->stage + 1 == l.pipeline && chunk + 1 == l.chunks;
  const double layers = real(layers_of_chunk(c));
  // Besides its blocks a set has the residual stream behind them, with the last norm's statistics,
  // and where there is a neighbour the gradient that comes from or goes to it.
  const double ends = t.stream + (last ? t.statistics : 0) + (first && last ? 0 : t.stream);
  const int64_t sets = sets_in_flight(l, s->stage, chunk);
  s->sets += sets;
  s->activations += real(sets) * (layers * block.kept(c.recompute) + ends);
  // Gpt::plan_scratch().
  const double normed = l.sequence ? t.stream : std::max(t.stream, t.attention);
  const double gradients = (c.model.hidden_dropout > 0 ? 2 : 1) * t.stream + normed;
  const bool encoder = !c.model.language_model();
  // Of encoders only pre-training predicts tokens. Masked tokens' logits may be those of all.
  const bool predicts = last && (!encoder || c.model.task == Task::pretraining);
  const double rows = predicts ? real(logit_rows(c.micro_batch * c.sequence,
                                                 c.model.padded_vocabulary / c.tensor_parallel,
                                                 c.model, c.compute_type(), target.gpu))
                               : 0;
  const double losses = last && !encoder ? t.tokens + rows : 0;
  const double divided = l.tensor > 1 ? 3 * rows * (1 + l.tensor) : 0;
  s->shared += block.shared(c.recompute) + gradients +
               (layers * real(c.model.hidden) + losses + divided) * t.wide;
  if (encoder) s->shared += encoder_head_bytes(c);
  const double logits = rows * real(c.model.padded_vocabulary) / t.inner * t.type;
  s->logits += std::max(logits, t.qkv);
  if (target.gpu) s->workspace += attention_scratch(c, target) + split_bytes(c, rows);
}

}  // namespace

int64_t logit_rows(int64_t tokens, int64_t columns, const ModelConfig& m, DType type, bool gpu) {
  const int64_t pieces = 12 * m.padded_vocabulary > m.layers * (4 * m.hidden + 2 * m.ffn) ? 2 : 4;
  const int64_t elements =
      gpu ? (int64_t{1} << 32) / static_cast<int64_t>(size_of(type)) : int64_t{1} << 23;
  const int64_t limit = std::max<int64_t>(1, elements / std::max<int64_t>(1, columns));
  int64_t rows = 1;
  while (rows * 2 <= limit && (!gpu || rows * 2 * pieces <= tokens)) rows *= 2;
  return std::min(rows, tokens);
}

MemoryTarget target_of(const GpuKind& kind) {
  return {true, kind.memory, kind.capability > 0 ? kind.capability : 90};
}

StageMemory stage_memory(const Config& c, int stage, const MemoryTarget& target, bool trains) {
  const PlanLayout l = layout_of(c);
  const Tensors t(c);
  StageMemory s;
  s.stage = stage;
  s.layers = layers_of_stage(c);
  add_states(c, l, trains, &s);
  for (int64_t chunk = 0; chunk < l.chunks; ++chunk) add_chunk(c, chunk, t, target, &s);
  s.workspace += gemm_workspace(target);
  s.messages = message_bytes(l, t);
  s.context = context_bytes(l, target);
  return s;
}

std::vector<StageMemory> all_stages(const Config& c, const MemoryTarget& target) {
  std::vector<StageMemory> stages;
  for (int i = 0; i < c.pipeline_parallel; ++i) stages.push_back(stage_memory(c, i, target));
  return stages;
}

const StageMemory& worst_stage(const std::vector<StageMemory>& stages) {
  return *std::max_element(
      stages.begin(), stages.end(),
      [](const StageMemory& a, const StageMemory& b) { return a.total() < b.total(); });
}

double megatron_activation_bytes(const Config& c) {
  const PlanLayout l = layout_of(c);
  const double t = l.tensor, h = real(c.model.hidden);
  const double sbh = real(c.sequence) * real(c.micro_batch) * h;
  const double scores = 5 * real(c.model.heads) * real(c.sequence) / h;
  const double outer = 10.0 / l.outer_shards();
  const double layer = c.recompute == Recompute::full        ? sbh * 2.0 / l.outer_shards()
                       : c.recompute == Recompute::selective ? sbh * (outer + 24 / t)
                                                             : sbh * (outer + (24 + scores) / t);
  // 1F1B: p micro batches at most; interleaved: more of them by 1 + (p - 1) / (p v).
  const double p = l.pipeline, v = real(l.chunks);
  const double stages = l.chunks > 1 ? p * (1 + (p - 1) / (p * v))
                                     : real(std::min<int64_t>(l.pipeline, l.micro_batches));
  return layer * real(layers_of_stage(c)) * stages;
}

namespace {

bool possible(const Config& c) {
  try {
    check_parallel_layout(c);
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

// The same run on `replicas` of a model that `tensor` x `pipeline` GPUs share, with as many micro
// batches as fill the pipeline.
Config with_layout(Config c, int tensor, int pipeline, int64_t replicas) {
  c.tensor_parallel = tensor;
  c.pipeline_parallel = pipeline;
  c.data_parallel = static_cast<int>(replicas);
  c.world_size = tensor * pipeline * c.data_parallel;
  c.sequence_parallel = c.sequence_parallel && tensor > 1;
  c.virtual_pipeline_layers = 0;
  c.global_batch = c.micro_batch * replicas * pipeline;
  return c;
}

// Of the worst stage. The stages between the second and the last need less than the second.
double most_bytes(const Config& c, const MemoryTarget& target) {
  double most = 0;
  for (const int stage : {0, 1, c.pipeline_parallel - 1})
    if (stage < c.pipeline_parallel) most = std::max(most, stage_memory(c, stage, target).total());
  return most;
}

}  // namespace

SmallestRun smallest_run(const Config& config, const GpuKind& kind, int gpus_per_node) {
  constexpr int most_nodes = 4096;
  std::vector<std::pair<int, int>> layouts;  // tensor, pipeline
  for (int tensor = 1; tensor <= gpus_per_node; ++tensor) {
    if (gpus_per_node % tensor != 0) continue;
    for (int pipeline = 1; pipeline <= config.model.layers; ++pipeline)
      if (config.model.layers % pipeline == 0 && possible(with_layout(config, tensor, pipeline, 1)))
        layouts.emplace_back(tensor, pipeline);
  }
  SmallestRun best;
  for (int nodes = 1; nodes <= most_nodes && best.nodes == 0; ++nodes) {
    const int64_t gpus = int64_t{nodes} * gpus_per_node;
    for (const auto& [tensor, pipeline] : layouts) {
      if (gpus % (int64_t{tensor} * pipeline) != 0) continue;
      const int64_t replicas = gpus / tensor / pipeline;
      const Config c = with_layout(config, tensor, pipeline, replicas);
      const double bytes = most_bytes(c, target_of(kind));
      if (bytes > kind.memory || (best.nodes > 0 && bytes >= best.bytes)) continue;
      best = {nodes, tensor, pipeline, static_cast<int>(replicas), bytes};
    }
  }
  return best;
}

}  // namespace tally::train
