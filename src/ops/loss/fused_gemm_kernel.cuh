// One CUTLASS kernel of fused_gemm.h for one cluster shape: rows are tokens, so that a
// token's sum over the columns of a tile stays in registers until the tile's end.
#pragma once

#include "src/ops/gemm/fused_kernel.cuh"
#include "src/ops/loss/fused_gemm.h"

namespace cutlass::epilogue::fusion {

// The epilogue node above accumulators, shifts and labels. It needs to know an element's column,
// which CUTLASS's own compute nodes do not get.
struct ExponentialNode {
  struct SharedStorage {};
  struct Arguments {
    int vocabulary = 0;
  };
  using Params = Arguments;
  Params params;

  template <class ProblemShape>
  static constexpr Params to_underlying_arguments(const ProblemShape&, const Arguments& a, void*) {
    return a;
  }
  template <class ProblemShape>
  static bool can_implement(const ProblemShape&, const Arguments&) {
    return true;
  }
  template <class ProblemShape>
  static size_t get_workspace_size(const ProblemShape&, const Arguments&) {
    return 0;
  }
  template <class ProblemShape>
  static Status initialize_workspace(const ProblemShape&, const Arguments&, void*, cudaStream_t,
                                     CudaHostAdapter* = nullptr) {
    return Status::kSuccess;
  }

  CUTLASS_HOST_DEVICE ExponentialNode() {}
  CUTLASS_HOST_DEVICE ExponentialNode(const Params& p, const SharedStorage&) : params(p) {}
  CUTLASS_DEVICE bool is_producer_load_needed() const { return false; }
  CUTLASS_DEVICE bool is_C_load_needed() const { return false; }
  template <class... Args>
  CUTLASS_DEVICE auto get_producer_load_callbacks(const ProducerLoadArgs<Args...>&) {
    return EmptyProducerLoadCallbacks{};
  }

  // 2^min(x, largest_exponent). NaNs are preserved, so that a run that has diverged shows it.
  CUTLASS_DEVICE static float power(float x) {
    float least, y;
    asm("min.NaN.f32 %0, %1, %2;"
        : "=f"(least)
        : "f"(x), "f"(tally::train::cuda::largest_exponent));
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(least));
    return y;
  }

  template <class Coordinates>
  struct ConsumerStoreCallbacks : EmptyConsumerStoreCallbacks {
    Coordinates columns;  // columns of this thread's elements, from `first` on
    int first, vocabulary;
    CUTLASS_DEVICE ConsumerStoreCallbacks(Coordinates c, int f, int v)
        : columns(c), first(f), vocabulary(v) {}

    template <int N>
    CUTLASS_DEVICE Array<float, N> visit(const Array<float, N>&, int epi_v, int epi_m, int epi_n,
                                         const Array<float, N>& accumulated,
                                         const Array<float, N>& shifts,
                                         const Array<int32_t, N>& labels) {
      constexpr float log2_e = 1.44269504F;
      const auto here = columns(cute::_, cute::_, cute::_, epi_m, epi_n);
      Array<float, N> y;
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < N; ++i) {
        const int column = cute::get<1>(here(epi_v * N + i));
        const bool counts = column != labels[i] - first && column < vocabulary - first;
        const float e = power(fmaf(accumulated[i], log2_e, -shifts[i]));
        y[i] = counts ? e : 0.0F;
      }
      return y;
    }
  };

  template <bool ReferenceSrc, class... Args>
  CUTLASS_DEVICE auto get_consumer_store_callbacks(const ConsumerStoreArgs<Args...>& args) {
    const int columns = cute::get<1>(args.problem_shape_mnkl);
    const int first = columns - static_cast<int>(cute::get<1>(args.residue_tCcD));
    return ConsumerStoreCallbacks<cute::remove_cvref_t<decltype(args.tCcD)>>(args.tCcD, first,
                                                                             params.vocabulary);
  }
};

}  // namespace cutlass::epilogue::fusion

namespace tally::train::cuda::fused {

template <typename Tile, typename Cluster>
struct CrossEntropy {
  using Element = bf16;
  using RowMajor = cutlass::layout::RowMajor;
  using Column = cute::Stride<cute::_1, cute::_0, int64_t>;
  template <typename T>
  using OfToken = cutlass::epilogue::fusion::Sm90ColBroadcast<0, Tile, T, T, Column, 4>;
  // The result is rounded, after its sum over the tile's columns: of all of them, since the node
  // leaves 0 where there are none.
  using Fusion = cutlass::epilogue::fusion::Sm90EVT<
      cutlass::epilogue::fusion::Sm90Compute<cutlass::epilogue::thread::Identity, Element, float,
                                             nearest>,
      cutlass::epilogue::fusion::Sm90EVT<
          cutlass::epilogue::fusion::Sm90ColReduction<cutlass::plus, cutlass::plus, cutlass::plus,
                                                      0, Tile, float, float, nearest, Column, 4,
                                                      true, false, false>,
          cutlass::epilogue::fusion::Sm90EVT<cutlass::epilogue::fusion::ExponentialNode,
                                             cutlass::epilogue::fusion::Sm90AccFetch,
                                             OfToken<float>, OfToken<int32_t>>>>;
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, RowMajor, aligned,
      Element, RowMajor, aligned, EpilogueSchedule<false>, Fusion>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, RowMajor, aligned, Element,
      ColumnMajor, aligned, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
          sizeof(typename Epilogue::SharedStorage))>,
      MainloopSchedule<false>>::CollectiveOp;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<
      cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int>, Mainloop, Epilogue>>;

  static typename Gemm::Arguments arguments(const CrossEntropyGemm& p, int sms) {
    const auto m = static_cast<int>(p.tokens), n = static_cast<int>(p.columns);
    const auto k = static_cast<int>(p.inner);
    auto a = plain_gemm<Gemm>(m, n, k, p.x, p.weight, p.out, sms, p.swizzle);
    a.epilogue.thread = {{{{},  // the accumulators
                           {p.shifts, 0.0F, {}},
                           {p.labels, 0, {}},
                           {static_cast<int>(p.vocabulary)}},
                          {p.parts, 0.0F, {}}},  // the sums
                         {}};                    // rounded
    return a;
  }

  // The sums are written tile by tile; columns end where the matrix ends.
  static bool supported(const CrossEntropyGemm& p) {
    return p.tokens > 0 && p.tokens % cute::size<0>(Tile{}) == 0 && p.tokens <= INT32_MAX &&
           p.columns > 0 && p.columns % aligned == 0 && p.columns <= INT32_MAX && p.inner > 0 &&
           p.inner % aligned == 0 && p.inner <= INT32_MAX;
  }

  static cudaError_t launch(const CrossEntropyGemm& p, int sms, cudaStream_t stream) {
    return start<Gemm>(arguments(p, sms), stream);
  }

  static constexpr CrossEntropyKernel entry(const char* name) {
    return {name, cute::size<1>(Tile{}), supported, launch};
  }
};

}  // namespace tally::train::cuda::fused
