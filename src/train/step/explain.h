// --explain: where the time of a step goes. After the measured steps some of them are done again
// under CUPTI, and each GEMM of a step alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "src/device/profiler.h"
#include "src/measure/explanation.h"
#include "src/parallel/control/rendezvous.h"
#include "src/train/step/step_loop.h"

namespace tally::train {

// Steps that are done again: some until the GPU is as warm as it was, those that are divided with
// the one before them, whose end is their begin, and one for its GEMMs.
inline constexpr int64_t explain_warm_up = 5, explain_traced = 8;
inline constexpr int64_t explain_steps = explain_warm_up + explain_traced + 2;

// The profiler of --explain. Throws InputError with one clear sentence where there is none.
std::unique_ptr<DeviceProfiler> open_explain_profiler(Stream& stream);

struct ExplainParts {
  StepLoop& loop;  // that has done its steps
  DeviceProfiler& profiler;
  Stream& stream;
  Rendezvous& meeting;
};
// Collective. The weights are others afterwards. Empty on all ranks where a trace is not complete,
// and *why says so.
Explanation explain(const ExplainParts& parts, std::string* why);

}  // namespace tally::train
