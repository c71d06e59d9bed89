// SplitMix64 (Steele, Lea & Flood 2014): a step of the generator, and a good mixing function.
// Neighbouring numbers become unrelated ones.
#pragma once

#include <cstdint>

#include "src/device/host_device.h"

namespace tally::train {

constexpr uint64_t split_mix_gamma = 0x9E3779B97F4A7C15ull;

TALLY_HOST_DEVICE constexpr uint64_t mix64(uint64_t x) {
  x += split_mix_gamma;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace tally::train
