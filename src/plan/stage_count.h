// Counts what a process of a run allocates, sends and computes in a step. There is no formula here:
// the stages of the process, its optimizer and what reduces its gradients are made on a device that
// counts (src/device/counting/counting_stream.h) with communicators that write down what they would
// send (src/parallel/collectives/rehearsal.h). Then one micro batch of each kind goes through them:
// the first of a step, and a later one. On a CPU the memory is what the program allocates, to the
// byte (a test compares); src/train/run/memory_estimate.h asks here, too.
//
// A stage's layers are alike. So of more than 16, four are made: every further one adds what the
// fourth adds to three.
#pragma once

#include <cstdint>
#include <vector>

#include "src/config/config.h"
#include "src/device/counting/counting_stream.h"
#include "src/plan/gpus.h"
#include "src/plan/layout.h"

namespace tally::train {

CountedDevice target_of(const GpuKind& kind);

// Numbers of one process. All bytes are doubles, because sizes that no machine has must not
// overflow.
struct StageMemory {
  int stage = 0;
  int64_t layers = 0;
  int64_t sets = 0;       // sets of activations, at most
  double parameters = 0;  // a number, not bytes: of this process's part
  double weights = 0;     // bytes, as all that follows
  double gradients = 0;
  double optimizer = 0;    // master weights where the weights are 16 bits, and the moments
  double activations = 0;  // memory that all sets keep for their backward pass
  double shared = 0;       // recomputed activations, and the gradients on their way back
  double logits = 0;       // logits held at once; also the gradient of queries, keys and values
  double workspace = 0;    // scratch of kernels
  double messages = 0;     // buffers of sequence parallelism
  // The driver's, kernels' code, and NCCL's buffers; not in bytes_peak(). An estimate.
  double context = 0;

  double states() const { return weights + gradients + optimizer; }
  double scratch() const { return activations + shared + logits + workspace; }
  // The bytes that Stream::bytes_peak() counts.
  double allocated() const { return states() + scratch() + messages; }
  double total() const { return allocated() + context; }
};

// Bytes that one GPU sends to others in a step, by the ring algorithms
// (src/parallel/collectives/rehearsal.h); it receives as many.
struct StepVolumes {
  double tensor = 0;     // among the shards of a layer
  double pipeline = 0;   // to the stages before and after
  double data = 0;       // gradients and weights, among replicas
  double embedding = 0;  // tied weights: their gradients, between the first and the last stage
  double total() const { return tensor + pipeline + data + embedding; }
};

struct StageCount {
  StageMemory memory;
  StepVolumes sent;
  CountedWork update;  // the optimizer's work in a step
};

// Stage `stage` of config.pipeline_parallel.
StageCount count_stage(const Config& config, int stage, const CountedDevice& target);
std::vector<StageCount> count_stages(const Config& config, const CountedDevice& target);
// The same with all layers made.
StageCount count_every_layer(const Config& config, int stage, const CountedDevice& target);
// Counts its parts alone, which takes less time. `trains`: with an optimizer.
StageMemory stage_memory(const Config& config, int stage, const CountedDevice& target,
                         bool trains = true);
StepVolumes step_volumes(const Config& config, int stage);
std::vector<StageMemory> all_stages(const Config& config, const CountedDevice& target);
// The stage that needs most.
const StageMemory& worst_stage(const std::vector<StageMemory>& stages);

// One layer or the head, and one micro batch. `sent`: bytes among tensor parallel ranks.
struct PassCount {
  CountedWork work;
  double sent = 0;
};
struct LayerCount {
  PassCount forward, backward;
};
// A layer of a language model. With recomputation the backward pass has it.
LayerCount count_layer(const Config& config, const CountedDevice& target);
// The part above the layers.
LayerCount count_head(const Config& config, const CountedDevice& target);
// The message between two stages: [M,C], or a tensor parallel rank's part of it.
double border_bytes(const Config& config);

}  // namespace tally::train
