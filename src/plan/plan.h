// The plan of a run (tally-train --plan): what a layout needs on each GPU, what its GPUs send, how
// long a step takes, and on how many nodes the model fits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/plan/smallest_run.h"
#include "src/plan/stage_count.h"
#include "src/plan/time_model.h"

namespace tally::train {

struct Plan {
  Config config;
  PlanLayout layout;
  std::optional<GpuKind> kind;  // --plan-device's
  std::vector<StageMemory> stages;
  std::vector<StepVolumes> volumes;     // one for each stage
  std::optional<StepTime> time;         // set if the kind's rates are known
  double efficiency = 0;                // GEMMs' efficiency that `time` assumes
  std::optional<SmallestRun> smallest;  // set if the kind is known

  const StageMemory& worst() const { return worst_stage(stages); }
  // Single changes with which the layout fits, as flags; empty where it fits or no kind is known.
  std::vector<std::string> changes;
  // True where no kind was given.
  bool fits() const { return !kind || worst().total() <= kind->memory; }
};

// Throws UsageError for a --plan-device that is not known.
Plan make_plan(const Config& config);

std::string plan_text(const Plan& plan);
// All figures, bytes and seconds; docs/planner.md lists the keys.
std::string plan_json(const Plan& plan);

}  // namespace tally::train
