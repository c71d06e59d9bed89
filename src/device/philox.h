// Random numbers, the same on the CPU and on every GPU: the counter-based generator Philox 4x32
// (Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011). Initial
// weights take ten rounds. Dropout takes seven, the fewest that pass all of TestU01's BigCrush
// (table 2 there), because attention draws a number for each pair of tokens. Dropout's key is the
// 64-bit seed of its site. Element i of the tensor takes 16 bits, those at 16 (i
// % 2) of word i % 8 / 2 of counter i / 8. The mask is not stored: the backward pass draws it
// again.
#pragma once

#include <cstdint>

#include "src/device/host_device.h"
#include "src/device/split_mix.h"

namespace tally::train {

struct Philox4 {
  uint32_t word[4];
};

TALLY_HOST_DEVICE uint32_t multiply_high(uint32_t a, uint32_t b) {
#ifdef __CUDA_ARCH__
  return __umulhi(a, b);
#else
  return static_cast<uint32_t>((static_cast<uint64_t>(a) * b) >> 32);
#endif
}

// `rounds` over the 128-bit counter (low 64 bits `counter`, high 64 bits `stream`).
template <int rounds = 10>
TALLY_HOST_DEVICE Philox4 philox(uint64_t key, uint64_t counter, uint64_t stream = 0) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
  uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
  for (int round = 0; round < rounds; ++round) {
    const uint32_t h0 = multiply_high(0xD2511F53u, c0), l0 = 0xD2511F53u * c0;
    const uint32_t h1 = multiply_high(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
    c0 = h1 ^ c1 ^ k0;
    c1 = l1;
    c2 = h0 ^ c3 ^ k1;
    c3 = l0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return Philox4{{c0, c1, c2, c3}};
}

// Dropout with probability p (rounded to 1/65536) keeps an element when its 16 bits are at least
// this; 65536 keeps none.
TALLY_HOST_DEVICE uint32_t dropout_threshold(double p) {
  const double scaled = p * 65536.0 + 0.5;
  return scaled >= 65536.0 ? 65536u : static_cast<uint32_t>(scaled);
}

// The factor of a kept element: 1 / (1 - p) for the rounded p, so that the mean stays.
TALLY_HOST_DEVICE double dropout_scale(double p) {
  const uint32_t threshold = dropout_threshold(p);
  return threshold < 65536u ? 65536.0 / (65536u - threshold) : 0.0;
}

// The bits of elements 8 group .. 8 group + 7.
TALLY_HOST_DEVICE Philox4 dropout_draw(uint64_t seed, uint64_t group) {
  return philox<7>(seed, group);
}

// Whether the element of the lower (part 0) or the upper (1) half of a word is kept.
TALLY_HOST_DEVICE bool dropout_keeps_half(uint32_t word, int part, uint32_t threshold) {
  return (part == 0 ? word & 0xffffu : word >> 16) >= threshold;
}

TALLY_HOST_DEVICE bool dropout_keeps(uint64_t seed, uint64_t i, uint32_t threshold) {
  return dropout_keeps_half(dropout_draw(seed, i >> 3).word[(i & 7) >> 1], static_cast<int>(i & 1),
                            threshold);
}

// The seed of one site (layer and operation) in one micro batch, from the micro batch's seed: one
// round of SplitMix64's finalizer, so that neighbouring sites and seeds are unrelated.
TALLY_HOST_DEVICE uint64_t site_seed(uint64_t seed, uint64_t site) {
  return mix64(seed + split_mix_gamma * site);
}

}  // namespace tally::train
