// One CUTLASS kernel of fused.h for one tile shape. The GEMM is computed transposed,
// out^T[features, tokens] = weight^T x^T, so that a bias is one value a row and its gradient a sum
// over columns, which the epilogue keeps in registers.
#pragma once

#include <type_traits>

#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/epilogue/fusion/operations.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"
#include "src/ops/gemm/fused.h"
#include "src/ops/normal.cuh"

namespace tally::train::cuda {

// gelu(v) = v (1 + tanh(u)) / 2, u = sqrt(2/pi) (v + 0.044715 v^3). The hardware's tanh is accurate
// to 2^-11, below half a unit of the bf16 results. It takes one special-function operation an
// element, which matters because the epilogue limits these kernels.
__device__ inline float fast_tanh(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
constexpr float gelu_scale = 0.79788456F;  // sqrt(2/pi)
constexpr float gelu_cubic = 0.79788456F * 0.044715F;

__device__ inline float tanh_gelu_derivative(float v) {
  const float square = v * v;
  const float t = fast_tanh(v * fmaf(gelu_cubic, square, gelu_scale));
  const float slope = v * fmaf(1.5F * gelu_cubic, square, 0.5F * gelu_scale);  // u' v / 2
  return fmaf(fmaf(-t, t, 1.0F), slope, fmaf(0.5F, t, 0.5F));
}

template <typename T>
struct TanhGelu;
template <int N>
struct TanhGelu<cutlass::Array<float, N>> {
  static constexpr bool kIsHeavy = true;
  CUTLASS_DEVICE cutlass::Array<float, N> operator()(const cutlass::Array<float, N>& v) const {
    cutlass::Array<float, N> y;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < N; ++i) {
      const float t = fast_tanh(v[i] * fmaf(gelu_cubic, v[i] * v[i], gelu_scale));
      const float half = 0.5F * v[i];
      y[i] = fmaf(half, t, half);
    }
    return y;
  }
};

// gelu'(v), with the same tanh, which the compiler computes once for both.
template <typename T>
struct TanhGeluDerivative;
template <int N>
struct TanhGeluDerivative<cutlass::Array<float, N>> {
  static constexpr bool kIsHeavy = true;
  CUTLASS_DEVICE cutlass::Array<float, N> operator()(const cutlass::Array<float, N>& v) const {
    cutlass::Array<float, N> y;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < N; ++i) y[i] = tanh_gelu_derivative(v[i]);
    return y;
  }
};

template <typename T>
struct TanhGeluGradient;
template <int N>
struct TanhGeluGradient<cutlass::Array<float, N>> {
  static constexpr bool kIsHeavy = true;
  CUTLASS_DEVICE cutlass::Array<float, N> operator()(const cutlass::Array<float, N>& dy,
                                                     const cutlass::Array<float, N>& v) const {
    cutlass::Array<float, N> dx;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < N; ++i) dx[i] = dy[i] * tanh_gelu_derivative(v[i]);
    return dx;
  }
};

// gelu(v) = v Phi(v), with the derivative Phi(v) + v phi(v).
template <typename T>
struct ErfGelu;
template <int N>
struct ErfGelu<cutlass::Array<float, N>> {
  static constexpr bool kIsHeavy = true;
  CUTLASS_DEVICE cutlass::Array<float, N> operator()(const cutlass::Array<float, N>& v) const {
    cutlass::Array<float, N> y;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < N; ++i) y[i] = v[i] * normal_of(v[i]).distribution;
    return y;
  }
};
template <typename T>
struct ErfGeluDerivative;
template <int N>
struct ErfGeluDerivative<cutlass::Array<float, N>> {
  static constexpr bool kIsHeavy = true;
  CUTLASS_DEVICE cutlass::Array<float, N> operator()(const cutlass::Array<float, N>& v) const {
    cutlass::Array<float, N> y;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < N; ++i) {
      const Normal n = normal_of(v[i]);
      y[i] = fmaf(v[i], n.density, n.distribution);
    }
    return y;
  }
};

namespace fused {

using bf16 = cutlass::bfloat16_t;
using f16 = cutlass::half_t;
using ColumnMajor = cutlass::layout::ColumnMajor;
constexpr int aligned = 8;  // elements in 16 bytes
constexpr auto nearest = cutlass::FloatRoundStyle::round_to_nearest;

template <bool cooperative>
using MainloopSchedule =
    std::conditional_t<cooperative, cutlass::gemm::KernelTmaWarpSpecializedCooperative,
                       cutlass::gemm::KernelTmaWarpSpecializedPingpong>;
template <bool cooperative>
using EpilogueSchedule =
    std::conditional_t<cooperative, cutlass::epilogue::TmaWarpSpecializedCooperative,
                       cutlass::epilogue::TmaWarpSpecialized>;

// out = acc gelu'(v) with what was saved of v as the source operand, and the sums over a tile's
// tokens.
template <typename Element, typename Tile, template <typename> class Gradient>
using BackwardFusion = cutlass::epilogue::fusion::Sm90EVT<
    cutlass::epilogue::fusion::Sm90Compute<cutlass::epilogue::thread::Identity, Element, float,
                                           nearest>,
    cutlass::epilogue::fusion::Sm90EVT<
        cutlass::epilogue::fusion::Sm90ColReduction<
            cutlass::plus, cutlass::plus, cutlass::plus, 0, Tile, float, float, nearest,
            cute::Stride<cute::_1, cute::_0, int64_t>, 4, true, false>,
        cutlass::epilogue::fusion::Sm90EVT<
            cutlass::epilogue::fusion::Sm90Compute<Gradient, float, float, nearest>,
            cutlass::epilogue::fusion::Sm90AccFetch,
            cutlass::epilogue::fusion::Sm90SrcFetch<Element>>>>;

template <typename Element>
using BiasFusion =
    cutlass::epilogue::fusion::LinCombPerRowBias<Element, float, Element, void, float>;
template <typename Element>
using BiasResidualFusion =
    cutlass::epilogue::fusion::LinCombPerRowBias<Element, float, Element, Element, float>;
template <typename Element>
using ForwardFusion =
    cutlass::epilogue::fusion::LinCombPerRowBiasEltActAux<ColumnMajor, TanhGelu, Element, float,
                                                          Element, Element, void, float>;

// out = gelu(z), aux = gelu'(z), z = acc + bias: its callbacks are below.
template <typename Element, template <typename> class Gelu, template <typename> class Derivative>
struct BiasGeluDerivative
    : cutlass::epilogue::fusion::LinCombPerRowBiasEltActAux<ColumnMajor, Gelu, Element, float,
                                                            Element, Element, void, float> {};

}  // namespace fused
}  // namespace tally::train::cuda

namespace cutlass::epilogue::fusion {

// z = beta C + alpha acc + bias once, then two trees over it: the output's and the derivative's.
template <class Element, template <typename> class Gelu, template <typename> class Derivative,
          int StagesD, class CtaTile, class EpilogueTile, class SmemLayoutAtom, class CopyOpR2S>
using BiasGeluDerivativeTree = Sm90SplitTreeVisitor<
    Sm90LinCombPerRowBias<CtaTile, float, float, Element, void, float>,
    Sm90EVT<Sm90Compute<Gelu, Element, float, FloatRoundStyle::round_to_nearest>, Sm90AccFetch>,
    Sm90EVT<
        Sm90AuxStore<StagesD, EpilogueTile, Element, FloatRoundStyle::round_to_nearest,
                     cutlass::gemm::TagToStrideC_t<layout::ColumnMajor>, SmemLayoutAtom, CopyOpR2S>,
        Sm90EVT<Sm90Compute<Derivative, float, float, FloatRoundStyle::round_to_nearest>,
                Sm90AccFetch>>>;

template <int StagesC, int StagesD, int FragmentSize, bool ReuseSmemC, bool DelayTmaStore,
          class Element, template <typename> class Gelu, template <typename> class Derivative,
          class CtaTile, class EpilogueTile, class SmemLayoutAtom, class CopyOpR2S>
struct FusionCallbacks<
    epilogue::Sm90TmaWarpSpecialized<StagesC, StagesD, FragmentSize, ReuseSmemC, DelayTmaStore>,
    tally::train::cuda::fused::BiasGeluDerivative<Element, Gelu, Derivative>, CtaTile, EpilogueTile,
    SmemLayoutAtom, CopyOpR2S> : BiasGeluDerivativeTree<Element, Gelu, Derivative, StagesD, CtaTile,
                                                        EpilogueTile, SmemLayoutAtom, CopyOpR2S> {
  using Impl = BiasGeluDerivativeTree<Element, Gelu, Derivative, StagesD, CtaTile, EpilogueTile,
                                      SmemLayoutAtom, CopyOpR2S>;
  using Operation = tally::train::cuda::fused::BiasGeluDerivative<Element, Gelu, Derivative>;
  // The members that the callbacks of the plain GELU have.
  struct Arguments {
    float alpha = 1, beta = 0;
    const Element* bias_ptr = nullptr;
    using StrideAux = cutlass::gemm::TagToStrideC_t<layout::ColumnMajor>;
    Element* aux_ptr = nullptr;
    StrideAux dAux = {};

    operator typename Impl::Arguments() const {
      return {{{{beta}, {}, {}}, {}, {{{alpha}, {}, {}}, {}, {bias_ptr, Element(0), {}}, {}}, {}},
              {{{}, {}}, {aux_ptr, dAux}},
              {{}, {}}};
    }
  };
  using Impl::Impl;
};

}  // namespace cutlass::epilogue::fusion

namespace tally::train::cuda {
namespace fused {

using Work = FusedWork;

template <Work work, typename Element, typename Tile>
struct FusionOf {
  using type = BackwardFusion<Element, Tile, TanhGeluGradient>;
};
template <typename Element, typename Tile>
struct FusionOf<Work::times_derivative, Element, Tile> {
  using type = BackwardFusion<Element, Tile, cutlass::multiplies>;
};
template <typename Element, typename Tile>
struct FusionOf<Work::gelu_derivative, Element, Tile> {
  using type = BiasGeluDerivative<Element, TanhGelu, TanhGeluDerivative>;
};
template <typename Element, typename Tile>
struct FusionOf<Work::erf_gelu_derivative, Element, Tile> {
  using type = BiasGeluDerivative<Element, ErfGelu, ErfGeluDerivative>;
};
template <typename Element, typename Tile>
struct FusionOf<Work::gelu, Element, Tile> {
  using type = ForwardFusion<Element>;
};
template <typename Element, typename Tile>
struct FusionOf<Work::bias, Element, Tile> {
  using type = BiasFusion<Element>;
};
template <typename Element, typename Tile>
struct FusionOf<Work::bias_residual, Element, Tile> {
  using type = BiasResidualFusion<Element>;
};

template <typename Stride>
Stride packed(Stride stride, int rows, int columns) {
  return cutlass::make_cute_packed_stride(stride, cute::make_shape(rows, columns, 1));
}

// out[m,n] = a[m,k] b[k,n]; the caller adds the epilogue's other operands. `swizzle`: tiles along n
// that are traversed together along m.
template <typename Gemm>
typename Gemm::Arguments plain_gemm(int m, int n, int k, const void* a, const void* b, void* out,
                                    int sms, int swizzle) {
  using Element = typename Gemm::ElementA;
  typename Gemm::Arguments p{};
  p.mode = cutlass::gemm::GemmUniversalMode::kGemm;
  p.problem_shape = cute::make_shape(m, n, k);
  p.mainloop.ptr_A = static_cast<const Element*>(a);
  p.mainloop.dA = packed(typename Gemm::GemmKernel::StrideA{}, m, k);
  p.mainloop.ptr_B = static_cast<const Element*>(b);
  p.mainloop.dB = packed(typename Gemm::GemmKernel::StrideB{}, n, k);
  p.epilogue.ptr_D = static_cast<Element*>(out);
  p.epilogue.dD = packed(typename Gemm::GemmKernel::StrideD{}, m, n);
  p.hw_info.device_id = 0;
  p.hw_info.sm_count = sms;
  p.scheduler.raster_order =
      cutlass::gemm::kernel::detail::PersistentTileSchedulerSm90Params::RasterOrderOptions::AlongM;
  p.scheduler.max_swizzle_size = swizzle;
  return p;
}

template <typename Gemm>
cudaError_t start(const typename Gemm::Arguments& a, cudaStream_t stream) {
  if (Gemm::can_implement(a) != cutlass::Status::kSuccess || Gemm::get_workspace_size(a) != 0)
    return cudaErrorInvalidValue;
  Gemm gemm;
  if (gemm.run(a, nullptr, stream) == cutlass::Status::kSuccess) return cudaSuccess;
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? cudaErrorLaunchFailure : error;
}

template <Work work, typename Element, bool cooperative, typename Tile, typename Cluster,
          typename EpilogueTile = cutlass::epilogue::collective::EpilogueTileAuto>
struct Kernel {
  static constexpr bool forward = work != Work::gelu_gradient && work != Work::times_derivative;
  static constexpr bool sourced = !forward || work == Work::bias_residual;
  // A is weight^T[features, inner], B is x^T[inner, tokens].
  using LayoutA = std::conditional_t<forward, cutlass::layout::RowMajor, ColumnMajor>;
  using Source = std::conditional_t<sourced, Element, void>;
  using Fusion = typename FusionOf<work, Element, Tile>::type;

  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster, EpilogueTile, float,
      float, Source, ColumnMajor, aligned, Element, ColumnMajor, aligned,
      EpilogueSchedule<cooperative>, Fusion>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, LayoutA, aligned, Element,
      ColumnMajor, aligned, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
          sizeof(typename Epilogue::SharedStorage))>,
      MainloopSchedule<cooperative>>::CollectiveOp;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<
      cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int>, Mainloop, Epilogue>>;

  static typename Gemm::Arguments arguments(const FusedGemm& p, int sms) {
    const auto m = static_cast<int>(p.features), n = static_cast<int>(p.tokens);
    const auto k = static_cast<int>(p.inner);
    auto a = plain_gemm<Gemm>(m, n, k, p.weight, p.x, p.out, sms, p.swizzle);
    if constexpr (sourced) {
      a.epilogue.ptr_C = static_cast<const Element*>(p.source);
      a.epilogue.dC = a.epilogue.dD;
    }
    if constexpr (forward) {
      a.epilogue.thread.alpha = 1.0F;
      a.epilogue.thread.beta = sourced ? 1.0F : 0.0F;
      a.epilogue.thread.bias_ptr = static_cast<const Element*>(p.bias);
    } else {
      a.epilogue.thread = {{{{}, {}, {}}, {p.parts, 0.0F, {}}},  // the sums of acc gelu'(source)
                           {}};                                  // rounded
    }
    if constexpr (work == Work::gelu || work == Work::gelu_derivative ||
                  work == Work::erf_gelu_derivative) {
      a.epilogue.thread.aux_ptr = static_cast<Element*>(p.aux);
      a.epilogue.thread.dAux = packed(decltype(a.epilogue.thread.dAux){}, m, n);
    }
    return a;
  }

  static bool supported(const FusedGemm& p) {
    // GELU's gradient writes its sums tile by tile; everything else ends where the matrix ends.
    const int64_t step = forward ? aligned : cute::size<0>(Tile{});
    return p.features > 0 && p.features % step == 0 && p.inner % aligned == 0 && p.tokens > 0 &&
           p.tokens <= INT32_MAX && p.inner > 0 && p.inner <= INT32_MAX;
  }

  static cudaError_t launch(const FusedGemm& p, int sms, cudaStream_t stream) {
    return start<Gemm>(arguments(p, sms), stream);
  }

  static constexpr FusedKernel entry(const char* name) {
    return {name, cute::size<0>(Tile{}), cute::size<1>(Tile{}), supported, launch};
  }
};

}  // namespace fused
}  // namespace tally::train::cuda
