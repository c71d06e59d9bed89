#include "src/ops/cuda/gemm_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/ops/cuda/check.h"
#include "src/ops/cuda/cuda_ops.h"
#include "src/ops/cuda/gemm_float64.h"

namespace tally::train::cuda {
namespace {

cudaDataType_t data_type(DType t) {
  switch (t) {
    case DType::f64:
      return CUDA_R_64F;
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    default:
      throw DeviceError(
          fmt::format("matrix product of {}: not a floating-point type", dtype_name(t)));
  }
}

bool in_tf32(const CudaStream& s, const MatMul& p) {
  return p.split || (s.matmul_mode == MatmulMode::tf32 && p.a.dtype == DType::f32);
}

Float64Product float64_problem(const MatMul& p) {
  const auto floats = [](const void* data) { return static_cast<const float*>(data); };
  Float64Product q;
  q.rows = p.rows;
  q.cols = p.cols;
  q.inner = p.inner;
  q.a = floats(p.a.data);
  q.b = floats(p.b.data);
  q.a_leading = p.a.leading;
  q.b_leading = p.b.leading;
  q.a_transposed = p.a.transposed;
  q.b_transposed = p.b.transposed;
  q.out = static_cast<float*>(p.out);
  q.out_leading = p.out_leading;
  if (p.epilogue == Epilogue::bias) q.bias = floats(p.bias);
  if (p.beta != 0) q.addend = floats(p.addend ? p.addend : p.out);
  return q;
}

template <typename T>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t what, const T& value) {
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(desc, what, &value, sizeof value));
}

}  // namespace

uint32_t alignment_of(const void* data, DType t, int64_t leading, int64_t stride) {
  const auto bits = reinterpret_cast<uintptr_t>(data) |
                    static_cast<uintptr_t>(leading * static_cast<int64_t>(size_of(t))) |
                    static_cast<uintptr_t>(stride * static_cast<int64_t>(size_of(t))) | 256U;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

bool adds_in_place(const MatMul& p) {
  return p.beta != 0 && (!p.addend || p.addend == p.out);
}

uint32_t out_alignment(const MatMul& p) {
  uint32_t own = alignment_of(p.out, p.out_dtype, p.out_leading, p.out_stride);
  if (p.aux) own = std::min(own, alignment_of(p.aux, p.out_dtype, p.out_leading, p.out_stride));
  if (p.beta == 0 || adds_in_place(p)) return own;
  return std::min(own, alignment_of(p.addend, p.out_dtype, p.out_leading, p.out_stride));
}

bool must_split(const CudaStream& s, const MatMul& p) {
  return s.matmul_mode == MatmulMode::tf32x3 && p.a.dtype == DType::f32 && !p.split;
}

bool float64_serves(CudaStream& s, const MatMul& p) {
  return cuda::float64_products_serve(s) && !p.split && p.a.dtype == DType::f32 &&
         p.b.dtype == DType::f32 && p.out_dtype == DType::f32 && p.batch == 1 && p.alpha == 1 &&
         (p.beta == 0 || p.beta == 1) && p.epilogue != Epilogue::gelu_aux_bias &&
         float64_parts_bytes(s.multiprocessors()) <= s.tuning().workspace_bytes() &&
         float64_product_supported(float64_problem(p));
}

cudaError_t run_float64(CudaStream& s, const MatMul& p, int tile, void* out, void* parts) {
  Float64Product q = float64_problem(p);
  if (q.addend == q.out) q.addend = static_cast<const float*>(out);
  q.out = static_cast<float*>(out);
  void* marks = s.product_marks(float64_marks_bytes(s.multiprocessors()));
  return float64_product(q, tile, s.multiprocessors_for_products(), parts, marks, s.stream());
}

std::string key_of(CudaStream& s, const MatMul& p) {
  return fmt::format("{}x{}x{}*{}/{}{}/{}.{}.{}/{}.{}.{}/{}.{}.{}/a{}.{}.{}/e{}b{}{}", p.rows,
                     p.cols, p.inner, p.batch, p.a.transposed ? 'T' : 'N',
                     p.b.transposed ? 'T' : 'N', dtype_name(p.a.dtype), dtype_name(p.b.dtype),
                     dtype_name(p.out_dtype), p.a.leading, p.b.leading, p.out_leading, p.a.stride,
                     p.b.stride, p.out_stride,
                     alignment_of(p.a.data, p.a.dtype, p.a.leading, p.a.stride),
                     alignment_of(p.b.data, p.b.dtype, p.b.leading, p.b.stride), out_alignment(p),
                     static_cast<int>(p.epilogue),
                     p.beta == 0        ? 0
                     : adds_in_place(p) ? 1
                                        : 2,
                     in_tf32(s, p)          ? "t"
                     : float64_serves(s, p) ? "d"
                                            : "") +
         (s.products_leave > 0 ? fmt::format("l{}", s.products_leave) : "");
}

Layout::Layout(DType t, int64_t rows, int64_t cols, int64_t leading, int64_t batch,
               int64_t stride) {
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&layout_, data_type(t), static_cast<uint64_t>(rows),
                                          static_cast<uint64_t>(cols), leading));
  if (batch > 1) {
    const auto count = static_cast<int32_t>(batch);
    CUBLAS_CHECK(cublasLtMatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                  &count, sizeof count));
    CUBLAS_CHECK(cublasLtMatrixLayoutSetAttribute(
        layout_, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
  }
}

GemmPlans::Plan::Plan(const CudaStream& s, const MatMul& p)
    : first(p.b.dtype, p.b.transposed ? p.inner : p.cols, p.b.transposed ? p.cols : p.inner,
            p.b.leading, p.batch, p.b.stride),
      second(p.a.dtype, p.a.transposed ? p.rows : p.inner, p.a.transposed ? p.inner : p.rows,
             p.a.leading, p.batch, p.a.stride),
      result(p.out_dtype, p.cols, p.rows, p.out_leading, p.batch, p.out_stride),
      in_f64(p.out_dtype == DType::f64) {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  if (in_f64) compute = CUBLAS_COMPUTE_64F;
  if (in_tf32(s, p)) compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  CUBLAS_CHECK(cublasLtMatmulDescCreate(&desc, compute, in_f64 ? CUDA_R_64F : CUDA_R_32F));
  const cublasOperation_t op_first = p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t op_second = p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(desc, CUBLASLT_MATMUL_DESC_TRANSA, op_first);
  set(desc, CUBLASLT_MATMUL_DESC_TRANSB, op_second);
  if (s.products_leave > 0) use_multiprocessors(s.multiprocessors_for_products());
  if (p.epilogue == Epilogue::none) return;
  const cublasLtEpilogue_t epilogue =
      p.epilogue == Epilogue::bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  set(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(p.out_dtype));
  if (p.epilogue == Epilogue::gelu_aux_bias) {
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.out_leading);
  }
}

void GemmPlans::Plan::use_multiprocessors(int count) const {
  set(desc, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, int32_t{count});
}

void GemmPlans::Plan::point(const MatMul& p) const {
  if (p.epilogue == Epilogue::none) return;
  set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  if (p.epilogue == Epilogue::gelu_aux_bias)
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.aux);
}

cublasStatus_t GemmPlans::Plan::run(CudaStream& s, const MatMul& p, void* out,
                                    const cublasLtMatmulAlgo_t& algo, void* scratch,
                                    size_t bytes) const {
  const auto alpha = static_cast<float>(p.alpha);
  const auto beta = static_cast<float>(p.beta);
  const void* pa = in_f64 ? static_cast<const void*>(&p.alpha) : &alpha;
  const void* pb = in_f64 ? static_cast<const void*>(&p.beta) : &beta;
  const void* addend = p.beta == 0 || adds_in_place(p) ? out : p.addend;
  return cublasLtMatmul(s.blas(), desc, pa, p.b.data, first.get(), p.a.data, second.get(), pb,
                        addend, result.get(), out, result.get(), &algo, scratch, bytes, s.stream());
}

}  // namespace tally::train::cuda
