// The policy by which a run computes. It is decided once from the flags (Config::policy), and is
// part of every Compute.
#pragma once

#include <cstdint>
#include <iterator>
#include <utility>

namespace tally::train {

// Modes of float32 GEMMs: in IEEE float32; from operands rounded to TF32; or from operands split
// into two TF32 numbers each, of whose four partial GEMMs the three large ones are added up (Ootomo
// & Yokota 2022, "Recovering single precision accuracy from Tensor Cores").
enum class MatmulMode : uint8_t { ieee, tf32, tf32x3 };

// Optimizations of the explicit model's step (--no-fusion turns them off, to measure each). None of
// them changes the result beyond rounding.
struct Fusions {
  bool residual = true;         // the branch's GEMM adds the residual (without dropout)
  bool bias_sums = true;        // LayerNorm's backward pass sums the gradient of the branch's bias
  bool qkv_bias = true;         // gradients of K's and V's bias without reading dK and dV
  bool overwrite = true;        // a step's first micro batch overwrites the weights' gradients
  bool gelu = true;             // GELU in the epilogues of the MLP's GEMMs; false: its own kernel
  bool gelu_derivative = true;  // GELU's derivative is saved where kernels serve it
  bool bias = true;             // GEMMs with a bias may use our CUTLASS kernels instead of cuBLASLt
  bool deferred_update = true;  // 16 bits: the update overlaps with the next forward pass
  // f32 GEMMs (MatmulMode::ieee) may run on float64 tensor cores where autotune chooses them. Sums
  // are taken in float64 and rounded once. Attention uses them wherever the GPU has them: it sums
  // in float64 within a block of keys or queries and adds the blocks in float32. false: float32
  // multiply-adds everywhere.
  bool float64 = true;
  bool attention = true;  // 16 bits: attention may use our Hopper kernels; false: cuDNN
  bool head = true;       // fused linear cross-entropy, where it is faster
};

// The fusions' names in --no-fusion and the record.
inline constexpr std::pair<const char*, bool Fusions::*> fusion_names[] = {
    {"residual", &Fusions::residual}, {"bias-sums", &Fusions::bias_sums},
    {"qkv-bias", &Fusions::qkv_bias}, {"overwrite", &Fusions::overwrite},
    {"gelu", &Fusions::gelu},         {"gelu-derivative", &Fusions::gelu_derivative},
    {"bias", &Fusions::bias},         {"deferred-update", &Fusions::deferred_update},
    {"float64", &Fusions::float64},   {"attention", &Fusions::attention},
    {"head", &Fusions::head}};
static_assert(sizeof(Fusions) == std::size(fusion_names) * sizeof(bool), "a fusion has no name");

struct Policy {
  MatmulMode matmul_mode = MatmulMode::ieee;  // follows from --precision
  // f32 attention computes its GEMMs as tf32x3, whatever matmul_mode is (GPUs with such a kernel).
  bool tf32x3_attention = false;
  // Results repeat bit for bit from run to run: algorithms are chosen by rule instead of by timing,
  // and nothing is summed by atomic additions.
  bool deterministic = false;
  Fusions fusions;
};

}  // namespace tally::train
