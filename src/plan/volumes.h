// What the GPUs of a layout send to each other in one step. All figures are bytes that one GPU
// sends; with the ring algorithms it receives as many.
//
// A ring of n ranks over S bytes sends (n - 1) / n S for an all-gather (S: the result) or a
// reduce-scatter (S: the input), and twice that for an all-reduce (Thakur et al. 2005).
#pragma once

#include "src/config/config.h"
#include "src/plan/layout.h"

namespace tally::train {

struct StepVolumes {
  // Tensor parallel. A layer's forward pass has two all-reduces of the micro batch's residual
  // stream [M,C], its backward pass two (Shoeybi et al. 2019, section 3). With sequence parallelism
  // each is an all-gather and a reduce-scatter, and the backward pass gathers the inputs of the two
  // column-parallel layers again (Korthikanti et al. 2022, section 4.2.2). Full recomputation
  // repeats the forward pass. Embedding and head: an all-reduce each.
  double tensor = 0;
  // Pipeline: [M,C] of every micro batch forward and its gradient backward, at every border of a
  // chunk; divided by t with sequence parallelism.
  double pipeline = 0;
  // Data parallel. ZeRO 0: an all-reduce of the gradients in float32. ZeRO 1: a reduce-scatter of
  // them and an all-gather of the weights. ZeRO 2: the same, with a reduce-scatter after every
  // micro batch (Rajbhandari et al. 2020, arXiv:1910.02054, section 7).
  double data = 0;
  double embedding = 0;  // tied weights: their gradients, between the first and the last stage
  double total() const { return tensor + pipeline + data + embedding; }
};

StepVolumes step_volumes(const Config& config, int stage);

// One layer and one micro batch, bytes that each tensor parallel rank sends.
double layer_forward_volume(const Config& config);
// The backward pass without what it gathers again or computes again.
double layer_backward_volume(const Config& config);
// What the backward pass gathers again; 0 without sequence parallelism.
double layer_gather_volume(const Config& config);
// The message between two stages, [M,C] or a tensor parallel rank's part of it.
double border_bytes(const Config& config);

}  // namespace tally::train
