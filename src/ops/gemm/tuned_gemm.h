// One GEMM as it is computed: cuBLASLt's description of it with the best algorithm, or a kernel of
// our own. Private to gemm/.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <string>

#include "src/ops/gemm/gemm.h"

namespace tally::train::cuda {

// The largest power of two up to 256 that divides the address and both distances.
uint32_t alignment_of(const void* data, DType t, int64_t leading, int64_t stride);
// The same for `out`, what is added to it, and `aux`.
uint32_t out_alignment(const GemmProblem& p);
bool adds_in_place(const GemmProblem& p);
// Whether it is computed as two TF32 GEMMs, see split_problem().
bool must_split(const ComputeOptions& o, const GemmProblem& p);
// Whether the float64 tensor cores can compute it, see float64.h.
bool float64_serves(const CudaCompute& c, const GemmProblem& p);
// Enqueues it on them, into `out`; `parts`: scratch.
cudaError_t run_float64(const CudaCompute& c, const GemmProblem& p, int tile, void* out,
                        void* parts);
// Everything that one depends on, as one word.
std::string key_of(const CudaCompute& c, const GemmProblem& p);

class MatrixLayout {
 public:
  MatrixLayout(DType t, int64_t rows, int64_t cols, int64_t leading, int64_t batch, int64_t stride);
  ~MatrixLayout() { cublasLtMatrixLayoutDestroy(layout_); }
  MatrixLayout(const MatrixLayout&) = delete;
  MatrixLayout& operator=(const MatrixLayout&) = delete;
  cublasLtMatrixLayout_t get() const { return layout_; }
  void resize(int64_t rows, int64_t cols) const;

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

// A column-major view of the row-major problem: out^T = b^T a^T.
struct TunedGemms::Gemm {
  Gemm(const CudaCompute& c, const GemmProblem& p);
  ~Gemm() { cublasLtMatmulDescDestroy(desc); }
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  void take(const cublasLtMatmulHeuristicResult_t& found) {
    algorithm = found.algo;
    workspace = found.workspaceSize;
  }
  // The number of SMs that the library's kernels may use; 0: all.
  void use_sms(int count) const;
  // Sets this problem's rows and inner, for those that serve several (ComputeOptions::tokens_vary).
  void resize(const GemmProblem& p);
  // Sets this problem's addresses.
  void point(const GemmProblem& p) const;
  cublasStatus_t run(CudaStream& s, const GemmProblem& p, void* out,
                     const cublasLtMatmulAlgo_t& algo, void* scratch, size_t bytes) const;

  MatrixLayout first, second, result;
  int64_t rows, inner;
  cublasLtMatmulDesc_t desc = nullptr;
  bool in_f64;
  bool tuned = false;
  int float64_tile = -1;  // tile of float64.h's kernel where that is the fastest; -1: cuBLASLt
  cublasLtMatmulAlgo_t algorithm{};
  size_t workspace = 0;  // bytes that the algorithm needs
};

// The library's algorithms for a GEMM, best first by its own estimate, of `wanted` asked for. With
// reserved_sms only those that run in pairs (where there are some), and up to twice as many: a side
// stream occupies SMs in pairs across the GPU, and clusters of four fit into fewer spots than are
// free, so that some wait for others to end. Timing does not show this, because nothing overlaps
// with the GEMM then.
Algorithms candidates(const CudaCompute& c, const GemmProblem& p, const TunedGemms::Gemm& gemm,
                      int wanted);
// Whether its clusters have one or two blocks of threads.
bool runs_in_pairs(const cublasLtMatmulAlgo_t& algorithm);

}  // namespace tally::train::cuda
