// The division of a run's layers, micro batches and states over its GPUs.
#pragma once

#include <cstdint>

#include "src/config/config.h"

namespace tally::train {

struct PlanLayout {
  int tensor = 1, pipeline = 1, data = 1;
  int64_t chunks = 1;         // virtual stages of each stage; 1: the plain 1F1B schedule
  int64_t micro_batches = 1;  // micro batches of a replica in one step
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

// Sets of activations that stage i of p holds at most for one of its chunks. A set is what a micro
// batch leaves in a chunk from its forward pass to its backward pass. The schedules are those of
// src/train/step/pipeline_schedule.h; a test compares.
//   1F1B         min(m, p - i) of m micro batches (Narayanan et al. 2021, arXiv:2104.04473, 2.2.1)
//   interleaved  the warm-up has 2 (p - i - 1) + (v - 1) p passes; together the sets of stage 0 hold
//                about 1 + (p - 1) / (p v) times the activations of all layers (Korthikanti et al.
//                2022, arXiv:2205.05198, section 4.2.3)
int64_t sets_in_flight(const PlanLayout& layout, int stage, int64_t chunk);
// The activation sets of all chunks of the stage.
int64_t sets_in_flight(const PlanLayout& layout, int stage);

// Idle time of the pipeline over the time of its work: (p - 1) / (v m) (Narayanan et al. 2021,
// section 2.2.2).
double bubble_over_work(const PlanLayout& layout);
// Share of the step in which a stage works: m / (m + (p - 1) / v).
double pipeline_efficiency(const PlanLayout& layout);

}  // namespace tally::train
