#include "src/ops/gemm/tuned_gemm.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/device/cuda/check.h"
#include "src/ops/gemm/float64.h"

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
    case DType::e4m3:
      return CUDA_R_8F_E4M3;
    case DType::e5m2:
      return CUDA_R_8F_E5M2;
    default:
      throw DeviceError(fmt::format("GEMM of {}: not a floating-point type", dtype_name(t)));
  }
}

cublasLtMatmulMatrixScale_t scale_mode(Fp8Scaling scaling) {
  switch (scaling) {
    case Fp8Scaling::tensor:
      break;
    case Fp8Scaling::row:
      return CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
    case Fp8Scaling::vector128:
      return CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    case Fp8Scaling::block128:
      return CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
  }
  return CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
}

bool in_tf32(const ComputeOptions& o, const GemmProblem& p) {
  return p.split || (o.matmul_mode == MatmulMode::tf32 && p.a.dtype == DType::f32);
}

Float64Gemm float64_problem(const GemmProblem& p) {
  const auto floats = [](const void* data) { return static_cast<const float*>(data); };
  Float64Gemm q;
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

bool adds_in_place(const GemmProblem& p) {
  return p.beta != 0 && (!p.addend || p.addend == p.out);
}

uint32_t out_alignment(const GemmProblem& p) {
  uint32_t own = alignment_of(p.out, p.out_dtype, p.out_leading, p.out_stride);
  if (p.aux) own = std::min(own, alignment_of(p.aux, p.out_dtype, p.out_leading, p.out_stride));
  if (p.beta == 0 || adds_in_place(p)) return own;
  return std::min(own, alignment_of(p.addend, p.out_dtype, p.out_leading, p.out_stride));
}

bool must_split(const ComputeOptions& o, const GemmProblem& p) {
  return o.matmul_mode == MatmulMode::tf32x3 && p.a.dtype == DType::f32 && !p.split;
}

bool float64_gemms_serve(const CudaCompute& c) {
  return c.options.fusions.float64 && c.stream.capability() == 90 &&
         c.options.matmul_mode == MatmulMode::ieee && float64_gemms_built();
}

bool float64_serves(const CudaCompute& c, const GemmProblem& p) {
  CudaStream& s = c.stream;
  return float64_gemms_serve(c) && !p.split && p.a.dtype == DType::f32 && p.b.dtype == DType::f32 &&
         p.out_dtype == DType::f32 && p.batch == 1 && p.alpha == 1 &&
         (p.beta == 0 || p.beta == 1) && p.epilogue != Epilogue::gelu_aux_bias &&
         float64_parts_bytes(s.sms()) <= s.tuning().workspace_bytes() &&
         float64_gemm_supported(float64_problem(p));
}

cudaError_t run_float64(const CudaCompute& c, const GemmProblem& p, int tile, void* out,
                        void* parts) {
  CudaStream& s = c.stream;
  Float64Gemm q = float64_problem(p);
  if (q.addend == q.out) q.addend = static_cast<const float*>(out);
  q.out = static_cast<float*>(out);
  void* marks = s.gemm_flags(float64_flags_bytes(s.sms()));
  return float64_gemm(q, tile, c.sms_for_gemms(), parts, marks, s.stream());
}

int64_t tuned_size(const ComputeOptions& o, int64_t size) {
  if (!o.tokens_vary || size < 16) return size;
  int64_t step = 1;
  while (step * 4 <= size) step *= 2;  // half of the power of two below
  return (size + step - 1) / step * step;
}

std::string key_of(const CudaCompute& c, const GemmProblem& p) {
  const bool one = p.batch == 1;
  const int64_t rows = one ? tuned_size(c.options, p.rows) : p.rows,
                inner = one ? tuned_size(c.options, p.inner) : p.inner;
  return fmt::format("{}x{}x{}*{}/{}{}/{}.{}.{}/{}.{}.{}/{}.{}.{}/a{}.{}.{}/e{}b{}{}", rows, p.cols,
                     inner, p.batch, p.a.transposed ? 'T' : 'N', p.b.transposed ? 'T' : 'N',
                     dtype_name(p.a.dtype), dtype_name(p.b.dtype), dtype_name(p.out_dtype),
                     p.a.leading, p.b.leading, p.out_leading, p.a.stride, p.b.stride, p.out_stride,
                     alignment_of(p.a.data, p.a.dtype, p.a.leading, p.a.stride),
                     alignment_of(p.b.data, p.b.dtype, p.b.leading, p.b.stride), out_alignment(p),
                     static_cast<int>(p.epilogue),
                     p.beta == 0        ? 0
                     : adds_in_place(p) ? 1
                                        : 2,
                     in_tf32(c.options, p)  ? "t"
                     : float64_serves(c, p) ? "d"
                     : p.fast_sums          ? "f"
                                            : "") +
         (p.a.scaling == Fp8Scaling::tensor ? ""
                                            : fmt::format("s{}{}", static_cast<int>(p.a.scaling),
                                                          static_cast<int>(p.b.scaling))) +
         (c.options.reserved_sms > 0 ? fmt::format("l{}", c.options.reserved_sms) : "");
}

MatrixLayout::MatrixLayout(DType t, int64_t rows, int64_t cols, int64_t leading, int64_t batch,
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

void MatrixLayout::resize(int64_t rows, int64_t cols) const {
  const auto set_size = [this](cublasLtMatrixLayoutAttribute_t what, int64_t size) {
    const auto value = static_cast<uint64_t>(size);
    CUBLAS_CHECK(cublasLtMatrixLayoutSetAttribute(layout_, what, &value, sizeof value));
  };
  set_size(CUBLASLT_MATRIX_LAYOUT_ROWS, rows);
  set_size(CUBLASLT_MATRIX_LAYOUT_COLS, cols);
}

TunedGemms::Gemm::Gemm(const CudaCompute& c, const GemmProblem& p)
    : first(p.b.dtype, p.b.transposed ? p.inner : p.cols, p.b.transposed ? p.cols : p.inner,
            p.b.leading, p.batch, p.b.stride),
      second(p.a.dtype, p.a.transposed ? p.rows : p.inner, p.a.transposed ? p.inner : p.rows,
             p.a.leading, p.batch, p.a.stride),
      result(p.out_dtype, p.cols, p.rows, p.out_leading, p.batch, p.out_stride),
      rows(p.rows),
      inner(p.inner),
      in_f64(p.out_dtype == DType::f64) {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  if (in_f64) compute = CUBLAS_COMPUTE_64F;
  if (in_tf32(c.options, p)) compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  CUBLAS_CHECK(cublasLtMatmulDescCreate(&desc, compute, in_f64 ? CUDA_R_64F : CUDA_R_32F));
  const cublasOperation_t op_first = p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t op_second = p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(desc, CUBLASLT_MATMUL_DESC_TRANSA, op_first);
  set(desc, CUBLASLT_MATMUL_DESC_TRANSB, op_second);
  if (c.options.reserved_sms > 0) use_sms(c.sms_for_gemms());
  if (p.fast_sums) set(desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t{1});
  if (p.a.scaling != Fp8Scaling::tensor) {
    set(desc, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, scale_mode(p.b.scaling));
    set(desc, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, scale_mode(p.a.scaling));
  }
  if (p.epilogue == Epilogue::none) return;
  const cublasLtEpilogue_t epilogue =
      p.epilogue == Epilogue::bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  set(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(p.out_dtype));
  if (p.epilogue == Epilogue::gelu_aux_bias) {
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.out_leading);
  }
}

void TunedGemms::Gemm::resize(const GemmProblem& p) {
  first.resize(p.b.transposed ? p.inner : p.cols, p.b.transposed ? p.cols : p.inner);
  second.resize(p.a.transposed ? p.rows : p.inner, p.a.transposed ? p.inner : p.rows);
  result.resize(p.cols, p.rows);
  rows = p.rows;
  inner = p.inner;
}

void TunedGemms::Gemm::use_sms(int count) const {
  set(desc, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, int32_t{count});
}

void TunedGemms::Gemm::point(const GemmProblem& p) const {
  if (p.a.scales) set(desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, p.a.scales);
  if (p.b.scales) set(desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, p.b.scales);
  if (p.epilogue == Epilogue::none) return;
  set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  if (p.epilogue == Epilogue::gelu_aux_bias)
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.aux);
}

cublasStatus_t TunedGemms::Gemm::run(CudaStream& s, const GemmProblem& p, void* out,
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
