// How a run's layers, micro batches and states are divided over its GPUs.
#pragma once

#include <cstdint>

#include "src/config/config.h"

namespace tally::train {

struct PlanLayout {
  int tensor = 1, pipeline = 1, data = 1;
  int64_t chunks = 1;         // virtual stages of each stage; 1: the plain 1F1B schedule
  int64_t micro_batches = 1;  // of a replica in one step
  int zero = 0;               // 0, 1, 2
  bool sequence = false;      // sequence parallelism

  int64_t gpus() const { return int64_t{tensor} * pipeline * data; }
  // Shards of what lies between the parallel layers: norms, residual stream.
  int outer_shards() const { return sequence ? tensor : 1; }
};

PlanLayout layout_of(const Config& config);
int64_t layers_of_stage(const Config& config);
// Layers of one chunk of a stage.
int64_t layers_of_chunk(const Config& config);

// Sets of activations that a stage holds at most. A set is what one micro batch leaves in one chunk
// of the stage. 1F1B: min(m, p - i) of them in stage i of p, with m micro batches (Narayanan et al.
// 2021, arXiv:2104.04473, section 2.2.1). Interleaved: Megatron-LM's warm-up, 2 (p - i - 1) + (v -
// 1) p, and the one that is under way (schedules.py); for stage 0 that is 1 + (p - 1) / (p v) times
// the layers of the stage x p (Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.3).
int64_t sets_in_flight(const PlanLayout& layout, int stage);

// Idle time of the pipeline over the time of its work: (p - 1) / (v m) (Narayanan et al. 2021,
// section 2.2.2).
double bubble_over_work(const PlanLayout& layout);
// Share of the step in which a stage works: m / (m + (p - 1) / v).
double pipeline_efficiency(const PlanLayout& layout);

}  // namespace tally::train
