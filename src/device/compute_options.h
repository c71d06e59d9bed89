// How operations compute. Options are passed as a value with the stream, so that a Stream is only a
// queue, and work on a side stream may use other options than the work that it overlaps with.
#pragma once

#include <cstdint>

#include "src/device/stream.h"

namespace tally::train {

// How float32 GEMMs are computed: in IEEE float32; from operands rounded to TF32; or from operands
// split into two TF32 numbers each, of whose four partial GEMMs the three large ones are added up
// (Ootomo & Yokota 2022, "Recovering single precision accuracy from Tensor Cores").
enum class MatmulMode : uint8_t { ieee, tf32, tf32x3 };

struct ComputeOptions {
  MatmulMode matmul_mode = MatmulMode::ieee;
  // f32 attention computes its GEMMs as tf32x3, whatever matmul_mode is (GPUs with such a kernel).
  bool tf32x3_attention = false;
  // GELU in the epilogues of the MLP's GEMMs where the GPU has kernels for it; false: GELU is a
  // kernel of its own.
  bool fused_gelu = true;
  // GEMMs with a bias may use our CUTLASS kernels where autotuning chooses them; false: cuBLASLt.
  bool fused_bias = true;
  // f32 GEMMs (MatmulMode::ieee) may run on float64 tensor cores where autotune chooses them. Sums
  // are taken in float64 and rounded once. Attention uses them wherever the GPU has them: it sums
  // in float64 within a block of keys or queries and adds the blocks in float32. false: float32
  // multiply-adds everywhere.
  bool float64_gemms = true;
  // 16-bit attention may use our Hopper kernels; false: cuDNN where it serves.
  bool hopper_attention = true;
  // Results repeat bit for bit from run to run: algorithms are chosen by rule instead of by timing,
  // and nothing is summed by atomic additions.
  bool deterministic = false;
  // Reserved SMs: SMs that GEMMs leave to a side stream; 0: none. 16-bit GEMMs and those on float64
  // tensor cores obey it. Attention does not.
  int reserved_sms = 0;
  // The number of tokens differs from call to call: what is tuned for one number serves others that
  // are nearly the same, instead of being tuned anew.
  bool tokens_vary = false;
};

// Where and how an operation runs. The stream outlives it. A Stream& converts to it with default
// options, and it converts to the Stream& that operations without options take.
struct Compute {
  Compute(Stream& s, const ComputeOptions& o = {}) : stream(s), options(o) {}
  operator Stream&() const { return stream; }

  Stream& stream;
  ComputeOptions options;
};

}  // namespace tally::train
