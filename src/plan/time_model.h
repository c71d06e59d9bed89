// The time of a layout's step. The model has one measured number: the share of the GPU's peak rate
// that GEMMs reach. Everything else comes from datasheets and from counting.
//
// A stage's time for a micro batch, forward and backward, is the sum of
//   GEMMs       FLOPs / (peak x efficiency)
//   attention   FLOPs / (peak x efficiency x attention's share), see AttentionKind
//   passes      bytes that norms, GELU, dropout and residuals move / (memory bandwidth x 0.8)
//   tensor      bytes sent / bandwidth; those of the backward pass overlap with the weight
//               gradients' GEMMs, and count where they take longer
// FLOPs and bytes are those of our program, as it counts them itself (stage_count.h). A step is
//   (m + (p - 1) / v) x the slowest stage + m x v x 2 messages between stages + embedding and head
//   + the data parallel communication + the optimizer.
#pragma once

#include "src/config/config.h"
#include "src/plan/gpus.h"
#include "src/plan/layout.h"

namespace tally::train {

// The computation of attention.
//   flash    no matrix of scores in memory, the causal half only, at half of the GEMMs' rate
//   unfused  GEMMs over all scores, and passes over the matrix: 6 forward and 8 backward
enum class AttentionKind { flash, unfused };

// Differences of other programs from ours, for comparison with published tables.
struct ProgramTraits {
  AttentionKind attention = AttentionKind::flash;
  // Bias, GELU, dropout and residual additions are in the epilogues of GEMMs and in the norms.
  bool fused = true;
  // Selective recomputation computes attention again (Korthikanti et al. 2022, section 5); ours
  // computes norms and GELU again.
  bool recomputes_attention = false;
  // Full recomputation does the whole forward pass again; ours leaves out what nothing reads, as
  // the MLP's second GEMM.
  bool recomputes_everything = false;
  // Tensor parallel ranks each send a part of a message between stages (Narayanan et al. 2021,
  // section 4.1); ours do so with sequence parallelism.
  bool splits_messages = false;
};

struct Machine {
  double peak = 0;              // FLOP/s of the precision
  double efficiency = 0;        // share of it that GEMMs reach
  double memory_bandwidth = 0;  // bytes/s
  NodeLinks links;              // between GPUs that NVLink connects
  double network = 0;           // bytes/s that a GPU sends to other nodes
  int linked = 4;               // GPUs that NVLink connects: a node's, or a rack's
};
// Rates of `kind` for the precision of `config`, with what --plan-network and --plan-efficiency
// replace. peak 0: the kind has no rates; efficiency 0: none was measured in this precision.
Machine machine_of(const Config& config, const GpuKind& kind);

// Seconds. A layer of one micro batch on one GPU.
struct LayerTime {
  double forward = 0, backward = 0;  // backward with what is recomputed
};
LayerTime layer_time(const Config& config, const Machine& machine, const ProgramTraits& traits);

struct StepTime {
  double work = 0;       // m micro batches in the slowest stage
  double bubble = 0;     // the pipeline's idle time
  double messages = 0;   // between stages
  double ends = 0;       // embedding, head and loss
  double data = 0;       // gradients and weights between replicas
  double optimizer = 0;  // the update
  double seconds() const { return work + bubble + messages + ends + data + optimizer; }
};
StepTime step_time(const Config& config, const Machine& machine, const ProgramTraits& traits = {});

// Bytes/s of a ring of `ranks` whose neighbours are `stride` ranks apart, for each member. Between
// GPUs that NVLink connects (a node's, or a rack's) it is that of their links. Beyond, the members
// there share the network adapters, one for each GPU, with the other groups of their kind.
double group_bandwidth(const Machine& machine, int ranks, int stride);
// The same between two members that are neighbours.
double pair_bandwidth(const Machine& machine, int ranks, int stride);

// The efficiency with which `seconds_of(machine)` is `seconds`: between 0.01 and 1.
template <typename SecondsOf>
double fitted_efficiency(Machine machine, double seconds, const SecondsOf& seconds_of) {
  double low = 0.01, high = 1;
  for (int i = 0; i < 60; ++i) {
    machine.efficiency = (low + high) / 2;
    (seconds_of(machine) > seconds ? low : high) = machine.efficiency;
  }
  return machine.efficiency;
}

}  // namespace tally::train
