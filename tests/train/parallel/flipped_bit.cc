// tally-train on a GPU that computes wrongly: with $FLIP_STEP one bit of one gradient is another one
// in that step, counted from 1. Runs on the CPU alone.
#include <cstdint>
#include <cstdlib>

#include "src/device/step_state.h"
#include "src/ops/optimizer/optimizer.h"

// The linker gives these names to tally-train's main() and to this one (--wrap=main).
extern "C" int __real_main(int argc, char** argv);
extern "C" int __wrap_main(int argc, char** argv);

namespace {

using namespace tally::train;

constexpr size_t flipped_element = 1000;
constexpr uint32_t flipped_bit = 1U << 22;

// What the operation does by itself, with the same numbers.
void norm_of_flipped(Stream& s, In gradients, StepState* state) {
  static const long flip_step = std::strtol(std::getenv("FLIP_STEP"), nullptr, 10);
  static long step = 0;
  if (++step == flip_step)
    static_cast<uint32_t*>(const_cast<void*>(gradients.data))[flipped_element] ^= flipped_bit;
  state->gradient_squares = 0;
  add_gradient_squares(s, gradients, state);
  finish_gradient_norm(s, state);
}

}  // namespace

int __wrap_main(int argc, char** argv) {
  if (std::getenv("FLIP_STEP") != nullptr) gradient_norm.serve(DeviceKind::cpu, norm_of_flipped);
  return __real_main(argc, argv);
}
