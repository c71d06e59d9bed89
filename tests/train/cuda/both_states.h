// A step's state on the CPU and on the GPU.
#pragma once

#include "src/device/step_state.h"
#include "tests/train/cuda/both.h"

namespace tally::train {

struct BothStates {
  explicit BothStates(Both& b) : both(b) {
    const size_t doubles = sizeof(StepState) / sizeof(double);
    memory = b.put({static_cast<int64_t>(doubles)}, DType::f64, DType::f64, {});
    set(StepState{});
  }
  void set(const StepState& s) const {
    both.cpu->copy(memory.cpu.data, &s, sizeof s);
    both.gpu->copy(memory.gpu.data, &s, sizeof s);
    both.cpu->synchronize();
    both.gpu->synchronize();
  }
  StepState* cpu() const { return memory.cpu.as<StepState>(); }
  StepState* gpu() const { return memory.gpu.as<StepState>(); }
  StepState read() const {
    StepState s;
    both.gpu->copy(&s, memory.gpu.data, sizeof s);
    both.gpu->synchronize();
    return s;
  }
  Both& both;
  Pair memory;
};

}  // namespace tally::train
