// The memory that each process of a run holds on its device, from the configuration alone. Nothing
// is allocated. On a CPU with one process it is what the program allocates, to the byte (a test
// compares). src/train/run/memory_estimate.h and the plan both ask here.
//
// The tensors are our own: the table in src/nn/block.h and Transformer::plan_scratch(). Encoders have
// heads and parameters of their own (encoder_memory.h), and are planned for micro batches of real tokens
// alone. With t tensor
// parallel ranks, matrices and what lies inside attention and MLP are divided by t (Shoeybi et al.
// 2019, arXiv:1909.08053, section 3); the residual stream and the norms are divided only with
// sequence parallelism (Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.2).
#pragma once

#include <cstdint>
#include <vector>

#include "src/config/config.h"
#include "src/plan/gpus.h"
#include "src/plan/layout.h"

namespace tally::train {

// Where a stage runs, as far as its memory depends on that.
struct MemoryTarget {
  bool gpu = false;
  double memory = 0;    // bytes of the GPU; 0: not known
  int capability = 90;  // of the GPU
};
MemoryTarget target_of(const GpuKind& kind);

// Numbers of one process. All bytes are doubles, because sizes that no machine has must not
// overflow.
struct StageMemory {
  int stage = 0;
  int64_t layers = 0;
  int64_t sets = 0;       // of activations, at most
  double parameters = 0;  // a number, not bytes: of this process's part
  double weights = 0;     // bytes, as all that follows
  double gradients = 0;
  double optimizer = 0;    // master weights where the weights are 16 bits, and the moments
  double activations = 0;  // what all sets keep for their backward pass
  double shared = 0;       // what is recomputed, and the gradients on their way back
  double logits = 0;       // those held at once; also the gradient of queries, keys and values
  double workspace = 0;    // scratch of kernels
  double messages = 0;     // buffers of sequence parallelism and ZeRO 2
  double context = 0;      // the driver's, kernels' code, and NCCL's buffers; not in bytes_peak()

  double states() const { return weights + gradients + optimizer; }
  double scratch() const { return activations + shared + logits + workspace; }
  // What Stream::bytes_peak() counts.
  double allocated() const { return states() + scratch() + messages; }
  double total() const { return allocated() + context; }
};

// `trains`: with an optimizer. Stage `stage` of config.pipeline_parallel.
StageMemory stage_memory(const Config& config, int stage, const MemoryTarget& target,
                         bool trains = true);
std::vector<StageMemory> all_stages(const Config& config, const MemoryTarget& target);
// The stage that needs most.
const StageMemory& worst_stage(const std::vector<StageMemory>& stages);

// Tokens whose logits are held at once, as LmHead::rows_at_once(), for `columns` logits each.
int64_t logit_rows(int64_t tokens, int64_t columns, const ModelConfig& model, DType type, bool gpu);

// Megatron-LM's own activations of stage 0 for the same layout, bytes, for comparison: 16-bit
// types, masks of dropout of one byte. Per layer, with sequence s, micro batch b, hidden h, heads a
// and tensor parallel size t (Korthikanti et al. 2022, table 2; section 5 for recomputation):
//              plain                                 with sequence parallelism
//   none       s b h (10 + 24 / t + 5 a s / (h t))   s b h (34 + 5 a s / h) / t
//   selective  s b h (10 + 24 / t)                   34 s b h / t
//   full       2 s b h                               2 s b h / t
double megatron_activation_bytes(const Config& config);

// What a run needs at least: the layout with the fewest nodes that holds the model.
struct SmallestRun {
  int nodes = 0;  // 0: none up to the limit
  int tensor = 1, pipeline = 1, data = 1;
  double bytes = 0;  // of the worst stage
};
// Tensor parallel within a node, any pipeline that divides the layers, and as many replicas as the
// nodes hold. Precision, micro batch, recomputation, ZeRO and sequence parallelism stay.
SmallestRun smallest_run(const Config& config, const GpuKind& kind, int gpus_per_node);

}  // namespace tally::train
