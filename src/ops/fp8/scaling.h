// Scales of operands in FP8: which numbers share one, where it lies, and how large it is; and the
// recipes that choose among these for the GEMMs of a layer. An operand of a GEMM is [R,K], and K is
// what the GEMM sums over.
//   scaling    numbers with one scale           scales in memory, as cuBLASLt reads them
//   tensor     all                              [1]
//   row        a row                            [R]
//   vector128  128 neighbours of a row          [K / 128, R]
//   block128   128 neighbours of 128 rows       [R / 128, K / 128 rounded up to a multiple of 4]
// Quotients are rounded up: the last vectors and blocks of an operand may be shorter.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/device/tensor.h"

namespace tally::train {

// The first compute capability whose tensor cores take FP8.
inline constexpr int fp8_capability = 89;
inline constexpr float smallest_amax = 1e-30F;
constexpr float largest_of(DType format) {
  return format == DType::e4m3 ? 448.0F : 57344.0F;
}

enum class Fp8Scaling : uint8_t { tensor, row, vector128, block128 };
inline constexpr int64_t fp8_block = 128;

constexpr int64_t fp8_blocks(int64_t numbers) {
  return (numbers + fp8_block - 1) / fp8_block;
}
// Scales from the begin of one row of blocks to that of the next.
constexpr int64_t fp8_block_stride(int64_t inner) {
  return (fp8_blocks(inner) + 3) / 4 * 4;
}
// The scales of an operand, with those that only fill up.
constexpr int64_t fp8_scale_count(Fp8Scaling scaling, int64_t rows, int64_t inner) {
  switch (scaling) {
    case Fp8Scaling::tensor:
      return 1;
    case Fp8Scaling::row:
      return rows;
    case Fp8Scaling::vector128:
      return fp8_blocks(inner) * rows;
    case Fp8Scaling::block128:
      return fp8_blocks(rows) * fp8_block_stride(inner);
  }
  return 0;
}

// The multiplier of numbers of up to this magnitude before they are rounded, where the scale is
// 1 / multiplier and a power of two: the largest one that keeps them within the format. 0 of an
// infinity, NaN of a NaN.
constexpr float fp8_power_of_two(float amax, float largest) {
  const float multiplier = largest / (amax < smallest_amax ? smallest_amax : amax);
  if (!(multiplier >= 0)) return multiplier;  // NaN
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, multiplier) & 0x7f800000U);
}

// --fp8-recipe: the scaling of x, w and dy.
struct Fp8Recipe {
  std::string_view name;
  Fp8Scaling activations, weights, gradients;
  bool fast_forward;    // the forward pass may take the tensor cores' faster sums
  bool e5m2_gradients;  // it has a hybrid form
  int only_capability;  // GPUs of this capability alone compute it; 0: fp8_capability and later
  // The rate of its GEMMs over that of bf16's, for plans: measured at Llama 8B's sizes (bench/notes/fp8.md).
  double gemm_rate;
};
// tensorwise and rowwise as torchao has them, blockwise as Transformer Engine's Float8BlockScaling.
inline constexpr Fp8Recipe fp8_recipes[] = {
    {"tensorwise", Fp8Scaling::tensor, Fp8Scaling::tensor, Fp8Scaling::tensor, true, true, 0, 1.85},
    {"rowwise", Fp8Scaling::row, Fp8Scaling::row, Fp8Scaling::row, true, false, 90, 1.85},
    {"blockwise", Fp8Scaling::vector128, Fp8Scaling::block128, Fp8Scaling::vector128, false, true,
     90, 1.55}};
// Null: there is none of this name.
constexpr const Fp8Recipe* find_fp8_recipe(std::string_view name) {
  for (const Fp8Recipe& recipe : fp8_recipes)
    if (recipe.name == name) return &recipe;
  return nullptr;
}
constexpr bool fp8_serves(const Fp8Recipe& recipe, int capability) {
  return recipe.only_capability > 0 ? capability == recipe.only_capability
                                    : capability >= fp8_capability;
}

}  // namespace tally::train
