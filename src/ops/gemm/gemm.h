// GEMMs through cuBLASLt, with the algorithm chosen by autotuning: the library's own first choice is
// up to 14% slower on the shapes of a GPT. For float32 the kernels of float64.h are timed as well.
// Each (shape, types, epilogue) is timed once, on the operands of its first call. The choice is kept
// in memory and in a file, see GemmPlans.
#pragma once

#include <functional>
#include <istream>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/device/cuda/cuda_stream.h"

namespace tally::train::cuda {

// One row-major matrix, or `batch` of them `stride` elements apart.
struct Operand {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t leading = 0;      // elements from one stored row to the next
  int64_t stride = 0;       // elements from one matrix of the batch to the next
  bool transposed = false;  // stored as the transpose of what enters the product
};

enum class Epilogue : uint8_t {
  none,
  bias,           // + bias[cols]
  gelu_aux_bias,  // aux = product + bias[cols]; out = gelu(aux), tanh form
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
  bool split = false;          // f32 operands that hold TF32 numbers, see gemm_split.cu
};

// Enqueues the product. The first eager call of a new shape tunes it: it waits for the GPU then,
// and may allocate a copy of `out` while it does (beta != 0).
void gemm(const CudaCompute& c, const GemmProblem& problem);
// An f32 product as two of TF32 numbers: each operand is split into a large and a small part. First
// comes small large + large small, as one product over parts laid side by side along `inner`, then
// large large is added to it, with the epilogue. The parts lie in memory of the stream, until its
// next product.
struct SplitProblem {
  GemmProblem small, large;
};
SplitProblem split_problem(CudaStream& s, const GemmProblem& problem);

// Whether f32 GEMMs may run on float64 tensor cores here (ComputeOptions::float64_gemms).
bool float64_gemms_serve(const CudaCompute& c);

// Whether something serves it (the library does not have every combination of epilogues and types).
bool gemm_supported(const CudaCompute& c, const GemmProblem& problem);

// Which of several equivalent ways is fastest, timed at the first eager call under this key and
// remembered. Every variant must leave what the caller can go on with, and be repeatable. While a
// graph is recorded or with options.deterministic: 0. Tests take each in turn, see GemmPlans::forced.
int fastest(const CudaCompute& c, const std::string& key,
            const std::vector<std::function<void()>>& variants);

using Algorithms = std::vector<cublasLtMatmulHeuristicResult_t>;

// What was tuned on one device, kept in tuning_file()'s file; one that cannot be read or written is
// done without.
class GemmPlans {
 public:
  struct Plan;
  explicit GemmPlans(const DeviceInfo& device);
  ~GemmPlans();
  GemmPlans(const GemmPlans&) = delete;
  GemmPlans& operator=(const GemmPlans&) = delete;

  // The plan of a problem; null when no algorithm serves it. Tunes when it may.
  Plan* plan(const CudaCompute& c, const GemmProblem& problem);
  // Index remembered under a key, -1 when none.
  int choice(const std::string& key) const;
  void remember(const std::string& key, int index);
  // Every choice in use, a line each as in the file.
  std::string text() const;
  // Takes over choices of such a text. Plans that were made differently are made anew.
  void adopt(const std::string& text);

  // For tests, which must not depend on what timing finds: fastest() takes this variant (the last
  // one where there are fewer) unless it is negative, and leaves in `variants` how many it had.
  int forced = -1, variants = 0;

 private:
  Plan* make(const CudaCompute& c, const GemmProblem& problem, const std::string& key,
             bool may_tune);
  bool recall(const CudaCompute& c, const GemmProblem& problem, const std::string& key,
              Plan* plan) const;
  bool tune(const CudaCompute& c, const GemmProblem& problem, const std::string& key,
            const Algorithms& algorithms, Plan* plan);
  void read(std::istream& in);
  void append(const std::string& line) const;

  std::string file_;
  std::unordered_map<std::string, std::unique_ptr<Plan>> plans_;
  std::unordered_map<std::string, std::vector<uint64_t>> stored_;  // algorithms read from the file
  std::unordered_map<std::string, int> choices_;
};

// The plans of the stream's device.
GemmPlans& gemm_plans(CudaStream& s);

}  // namespace tally::train::cuda
