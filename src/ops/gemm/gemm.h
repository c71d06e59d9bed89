// GEMMs on a GPU, and the choice among equivalent kernels by timing (autotune).
//   out[rows, cols] = alpha a[rows, inner] b[inner, cols] + beta addend, with an epilogue
// Row-major, each operand as stored or transposed, one matrix or a batch. Types of a and b: f64,
// f32, bf16, f16; bf16 and f16 operands may have an f32 result. Accumulation is in f32, or f64 for
// f64. Also FP8 (ops/fp8/fp8.h) with a bf16 or f32 result, not both e5m2: `a` as stored, `b`
// transposed, which is all that Hopper's tensor cores take; rows, cols and inner are multiples of 16.
// Scales of rows and of blocks (scaling.h) on compute capability 9.0 alone: both operands' of rows, or
// of vectors and blocks, not both of blocks.
//
// The versions, and what each serves:
//   cuBLASLt (tuned_gemm*.cc)           every type on every GPU; f32 in IEEE float32 or TF32
//   tf32x3 (split.cu)                   f32 with ComputeOptions::matmul_mode tf32x3: operands are
//                                       split into two TF32 numbers, two TF32 GEMMs of cuBLASLt
//                                       follow
//   float64 (float64*)                  f32 on the float64 tensor cores of compute capability 9.0,
//                                       with matmul_mode ieee: one matrix, alpha 1, beta 0 or 1, no
//                                       GELU, addresses and row distances of whole 16 bytes
//   CUTLASS (fused*)                    bf16, some f16, on compute capability 9.0, with epilogues that
//                                       cuBLASLt lacks or is slow at. linear.h calls these, gemm()
//                                       does not.
// The CPU has no part in this: its GEMMs are ATen's (cpu.h).
//
// The choice is made by time: at the first eager call of a shape (sizes, types, layouts, alignment,
// epilogue, reserved SMs) gemm() times up to 32 algorithms of cuBLASLt, and the float64 kernel
// where it serves, on the operands of that call. The library's own first choice is up to 14% slower
// on the shapes of a GPT. The choice is kept in memory and in a file (TunedGemms, tuning_file.h).
//   --deterministic       nothing is timed: the float64 kernel where it serves, else the library's
//                         first algorithm
//   f64, recorded calls   not timed: a known choice, else the library's first algorithm
//   --no-fusion float64   without the float64 kernel
//   --precision           tf32 and tf32x3 set matmul_mode
//   tokens_vary           rows and inner are rounded up in the key, to the next multiple of half of the
//                         power of two below, so that an algorithm found for one number of tokens
//                         serves its neighbours. Tuning a step takes about 40 s, and the batches of
//                         a data set should need it once or twice
//   reserved_sms          GEMMs leave these SMs to a side stream; only algorithms whose clusters
//                         are of one or two blocks are taken, where the library has some
//                         (candidates.cc)
//
// DeviceError: cuBLASLt has no algorithm for the GEMM; an operand is too large for tf32x3; a type
// is not a floating-point type; memory would have to be allocated while a CUDA graph is recorded.
#pragma once

#include <functional>
#include <istream>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/device/cuda/cuda_stream.h"
#include "src/ops/fp8/scaling.h"

namespace tally::train::cuda {

// One row-major matrix, or `batch` of them `stride` elements apart.
struct Operand {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t leading = 0;            // elements from one stored row to the next
  int64_t stride = 0;             // elements from one matrix of the batch to the next
  bool transposed = false;        // stored as the transpose of the operand
  const float* scales = nullptr;  // FP8: what its numbers are multiplied by, in device memory
  Fp8Scaling scaling = Fp8Scaling::tensor;
};

enum class Epilogue : uint8_t {
  none,
  bias,           // + bias[cols]
  gelu_aux_bias,  // aux = a b + bias[cols]; out = gelu(aux), tanh form
};

// out[rows, cols] = alpha a[rows, inner] b[inner, cols] + beta addend
struct GemmProblem {
  int64_t rows = 0, cols = 0, inner = 0, batch = 1;
  Operand a, b;
  void* out = nullptr;
  DType out_dtype = DType::f32;
  int64_t out_leading = 0, out_stride = 0;
  double alpha = 1, beta = 0;
  const void* addend = nullptr;  // laid out as `out`; null: `out` itself
  Epilogue epilogue = Epilogue::none;
  const void* bias = nullptr;  // out_dtype
  void* aux = nullptr;         // out_dtype, leading dimension out_leading
  bool split = false;          // f32 operands that hold TF32 numbers, see split.cu
  // FP8: sums are kept in fewer bits than float32 has, within the tensor cores.
  bool fast_sums = false;
};

// Enqueues the GEMM. The first eager call of a new shape tunes it: it waits for the GPU, and may
// allocate a copy of `out` meanwhile (beta != 0).
void gemm(const CudaCompute& c, const GemmProblem& problem);
// An f32 GEMM as two TF32 GEMMs: each operand is split into a large and a small part. The first
// computes small large + large small, as one GEMM over parts that lie side by side along `inner`.
// The second adds large large, with the epilogue. The parts lie in memory of the stream until its
// next GEMM.
struct SplitProblem {
  GemmProblem small, large;
};
SplitProblem split_problem(CudaStream& s, const GemmProblem& problem);

// Whether f32 GEMMs may run on float64 tensor cores here (Fusions::float64).
bool float64_gemms_serve(const CudaCompute& c);

// The size under which a number of rows, or of columns of a transposed operand, is tuned: itself,
// or with ComputeOptions::tokens_vary the next multiple of half of the power of two below it.
int64_t tuned_size(const ComputeOptions& o, int64_t size);

// Whether a kernel serves it (cuBLASLt does not have every combination of epilogues and types).
bool gemm_supported(const CudaCompute& c, const GemmProblem& problem);

// The index of the fastest of several equivalent variants, timed at the first eager call under this
// key and remembered. Every variant must leave operands that the caller can go on with, and be
// repeatable. While a graph is recorded (unless it is known), and with options.deterministic: 0.
// Tests force each variant in turn, see TunedGemms::forced.
int fastest(const CudaCompute& c, const std::string& key,
            const std::vector<std::function<void()>>& variants);

using Algorithms = std::vector<cublasLtMatmulHeuristicResult_t>;

// The choices of one device, kept in tuning_file()'s file. A file that cannot be read or written is
// ignored.
class TunedGemms {
 public:
  struct Gemm;
  explicit TunedGemms(const DeviceInfo& device);
  ~TunedGemms();
  TunedGemms(const TunedGemms&) = delete;
  TunedGemms& operator=(const TunedGemms&) = delete;

  // The tuned GEMM of a problem; null when no algorithm serves it. Tunes where that is possible.
  Gemm* find(const CudaCompute& c, const GemmProblem& problem);
  // The index remembered under a key; -1: none.
  int choice(const std::string& key) const;
  void remember(const std::string& key, int index);
  // Every choice in use, a line each as in the file.
  std::string text() const;
  // Takes over choices of such a text. GEMMs that were made differently are made anew.
  void adopt(const std::string& text);

  // The variant that fastest() returns unless negative, for tests, which must not depend on timing
  // (the last one where there are fewer). `variants` tells how many the last call had.
  int forced = -1, variants = 0;

 private:
  Gemm* make(const CudaCompute& c, const GemmProblem& problem, const std::string& key,
             bool may_tune);
  static bool resize(const CudaCompute& c, const GemmProblem& problem, Gemm* gemm);
  bool recall(const CudaCompute& c, const GemmProblem& problem, const std::string& key,
              Gemm* gemm) const;
  bool tune(const CudaCompute& c, const GemmProblem& problem, const std::string& key,
            const Algorithms& algorithms, Gemm* gemm);
  void read(std::istream& in);
  void append(const std::string& line) const;

  std::string file_;
  std::unordered_map<std::string, std::unique_ptr<Gemm>> gemms_;
  std::unordered_map<std::string, std::vector<uint64_t>> stored_;  // algorithms read from the file
  std::unordered_map<std::string, int> choices_;
};

// The tuned GEMMs of the stream's device.
TunedGemms& tuned_gemms(CudaStream& s);

}  // namespace tally::train::cuda
