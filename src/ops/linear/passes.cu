// Activation and bias, forward and backward: bandwidth-bound kernels between GEMMs.
#include "src/ops/linear/passes.h"

#include <type_traits>

#include "src/ops/column_sums.cuh"
#include "src/ops/fp8/amax.cuh"
#include "src/ops/normal.cuh"

namespace tally::train::cuda {
namespace {

// gelu(v) = 0.5 v (1 + tanh(u)) with u = sqrt(2/pi) (v + 0.044715 v^3). 0.5 (1 + tanh(u)) is the
// logistic function of 2u, which is accurate for negative v.
__device__ inline float exponential(float x, float) {
  return expf(x);
}
__device__ inline double exponential(double x, double) {
  return exp(x);
}
__device__ inline float exponential(float x, __nv_bfloat16) {
  return __expf(x);
}
__device__ inline float exponential(float x, __half) {
  return __expf(x);
}

template <typename T>
__device__ inline Acc<T> reciprocal(Acc<T> x) {
  if constexpr (sizeof(T) == 2) return __fdividef(1.0F, x);
  return Acc<T>(1) / x;
}

template <typename T>
__device__ inline Acc<T> logistic_of_2u(Acc<T> v) {
  using A = Acc<T>;
  constexpr A scale = A(1.5957691216057307117597842397375);  // 2 sqrt(2/pi)
  const A two_u = scale * (v + A(0.044715) * v * v * v);
  return reciprocal<T>(A(1) + exponential(-two_u, T{}));
}
struct TanhGelu {
  template <typename T>
  static __device__ inline Acc<T> value(Acc<T> v) {
    return v * logistic_of_2u<T>(v);
  }
  template <typename T>
  static __device__ inline Acc<T> derivative(Acc<T> v) {
    using A = Acc<T>;
    const A p = logistic_of_2u<T>(v);
    const A derivative_of_2u =
        A(1.5957691216057307117597842397375) * (A(1) + A(3 * 0.044715) * v * v);
    return p + v * p * (A(1) - p) * derivative_of_2u;
  }
};

// gelu(v) = v Phi(v) and Phi(v) + v phi(v). erfc keeps the relative accuracy of Phi for negative v;
// with it these passes are bound by arithmetic, in 16 bits without it by memory.
__device__ inline float normal_distribution(float v) {
  return 0.5F * erfcf(v * -0.70710678118654752F);
}
__device__ inline double normal_distribution(double v) {
  return 0.5 * erfc(v * -0.70710678118654752440);
}
struct ErfGelu {
  template <typename T>
  static __device__ inline Acc<T> value(Acc<T> v) {
    if constexpr (sizeof(T) == 2) return v * normal_of(v).distribution;
    return v * normal_distribution(v);
  }
  template <typename T>
  static __device__ inline Acc<T> derivative(Acc<T> v) {
    using A = Acc<T>;
    if constexpr (sizeof(T) == 2) {
      const Normal n = normal_of(v);
      return n.distribution + v * n.density;
    }
    constexpr A density = A(0.39894228040143267793994605993438);  // 1 / sqrt(2 pi)
    return normal_distribution(v) + v * density * exponential(A(-0.5) * v * v, T{});
  }
};

struct NoActivation {};

// Calls f with the activation's formula.
template <typename F>
void with_formula(MlpActivation kind, F&& f) {
  switch (kind) {
    case MlpActivation::gelu_tanh:
      return f(TanhGelu());
    case MlpActivation::gelu_erf:
      return f(ErfGelu());
    case MlpActivation::swiglu:
      break;
  }
  throw DeviceError("a gated activation is not one of linear.h");
}

constexpr int pass_threads = 256;

// `pre` is written only with a bias, or for the derivative. y: null without an activation. amax:
// null where nobody wants it.
template <typename T>
struct BiasActivation {
  const T* bias;
  T *pre, *y;
  int64_t count, columns;
  unsigned* amax = nullptr;
};

template <typename T, int N, typename Formula, bool saves_derivative>
__global__ void __launch_bounds__(pass_threads) bias_activation_kernel(BiasActivation<T> p) {
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * pass_threads + threadIdx.x) * N;
  Vector<T, N> out = {};
  if (i < p.count) {
    Vector<T, N> x = load<T, N>(p.pre + i);
    if (p.bias) {
      const Vector<T, N> b = load<T, N>(p.bias + i % p.columns);
#pragma unroll
      for (int k = 0; k < N; ++k) x.v[k] = narrow<T>(widen(x.v[k]) + widen(b.v[k]));
      store<T, N>(p.pre + i, x);
    }
    if constexpr (!std::is_same_v<Formula, NoActivation>) {
#pragma unroll
      for (int k = 0; k < N; ++k) {
        out.v[k] = narrow<T>(Formula::template value<T>(widen(x.v[k])));
        if (saves_derivative) x.v[k] = narrow<T>(Formula::template derivative<T>(widen(x.v[k])));
      }
      store<T, N>(p.y + i, out);
      if (saves_derivative) store<T, N>(p.pre + i, x);
    }
  }
  if (p.amax) raise_amax<pass_threads>(largest_of(out), p.amax);
}

// The gradient's factor, from what was saved: the input.
template <typename Formula>
struct DerivativeAt {
  static constexpr bool reads = true;
  template <typename T>
  static __device__ inline Acc<T> of(Acc<T> input) {
    return Formula::template derivative<T>(input);
  }
};
// The gradient's factor, from what was saved: the derivative itself.
struct SavedDerivative {
  static constexpr bool reads = true;
  template <typename T>
  static __device__ inline Acc<T> of(Acc<T> saved) {
    return saved;
  }
};

template <typename Formula, bool saves_derivative, typename T>
void launch_bias_activation(CudaStream& s, const BiasActivation<T>& p) {
  if (p.count == 0) return;
  constexpr int N = vector_size<T>;
  if (vectorizable<T>(p.columns, p.bias, p.pre, p.y)) {
    const auto blocks = static_cast<unsigned>(divide_up(p.count / N, pass_threads));
    bias_activation_kernel<T, N, Formula, saves_derivative>
        <<<blocks, pass_threads, 0, s.stream()>>>(p);
  } else {
    const auto blocks = static_cast<unsigned>(divide_up(p.count, pass_threads));
    bias_activation_kernel<T, 1, Formula, saves_derivative>
        <<<blocks, pass_threads, 0, s.stream()>>>(p);
  }
  CUDA_LAUNCHED();
}

// A block adds sums[N] times 32 columns of w[N,K] to 32 elements of `out` (null: none), and as many
// elements of sums to `db`.
template <typename T>
__global__ void __launch_bounds__(1024)
    row_times_matrix_kernel(const Acc<T>* sums, const T* w, Acc<T>* db, Acc<T>* out, int64_t n,
                            int64_t k) {
  using A = Acc<T>;
  __shared__ A shared[32][33];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
  A sum = 0;
  if (out && column < k) {
#pragma unroll 8
    for (int64_t i = threadIdx.y; i < n; i += 32) sum += sums[i] * widen(w[i * k + column]);
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = warp_sum(shared[threadIdx.x][threadIdx.y]);
  const int64_t target = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.y;
  if (threadIdx.x == 0 && out && target < k) out[target] += sum;
  if (threadIdx.y == 0 && column < n) db[column] += sums[column];
}

}  // namespace

void add_bias(CudaStream& s, const In& b, const Out& y) {
  by_type(y.dtype, __func__, [&](auto zero) {
    using T = decltype(zero);
    launch_bias_activation<NoActivation, false, T>(
        s, {b.as<T>(), y.as<T>(), nullptr, y.numel(), y.dim(-1)});
  });
}

void activation(CudaStream& s, const In& pre, const ActivationResult& out, MlpActivation kind) {
  if (out.amax.defined()) s.fill_zero(out.amax.data, out.amax.bytes());
  with_formula(kind, [&](auto formula) {
    by_type(out.y.dtype, "activation", [&](auto zero) {
      using T = decltype(zero);
      // The kernel only reads it without a bias.
      const BiasActivation<T> p{nullptr,       const_cast<T*>(pre.as<T>()),
                                out.y.as<T>(), pre.numel(),
                                pre.dim(-1),   out.amax.as<unsigned>()};
      launch_bias_activation<decltype(formula), false>(s, p);
    });
  });
}

void bias_activation(CudaStream& s, const In& b, const ActivationOutputs& out,
                     ActivationForm form) {
  const Out& pre = out.saved;
  with_formula(form.kind, [&](auto formula) {
    by_type(out.y.dtype, "bias_activation", [&](auto zero) {
      using T = decltype(zero);
      using Formula = decltype(formula);
      const BiasActivation<T> p{b.as<T>(), pre.as<T>(), out.y.as<T>(), pre.numel(), pre.dim(-1)};
      form.saved == SavedValue::derivative ? launch_bias_activation<Formula, true>(s, p)
                                           : launch_bias_activation<Formula, false>(s, p);
    });
  });
}

void activation_gradient(CudaStream& s, const In& dy, const ActivationInput& f,
                         const ActivationPass& out) {
  if (out.amax.defined()) s.fill_zero(out.amax.data, out.amax.bytes());
  const SumOperands all{dy, f.saved, out.dpre, out.db, 0, dy.dim(-1), out.amax};
  if (f.form.saved == SavedValue::derivative)
    return sum_by_type<SavedDerivative>(s, "activation_gradient", all);
  with_formula(f.form.kind, [&](auto formula) {
    sum_by_type<DerivativeAt<decltype(formula)>>(s, "activation_gradient", all);
  });
}

void row_times_matrix(CudaStream& s, const In& sums, const In& w, const Out& db, const Out& out) {
  const int64_t n = w.dim(0), k = w.dim(1);
  const auto blocks = static_cast<unsigned>(divide_up(n > k ? n : k, 32));
  by_type(w.dtype, __func__, [&](auto zero) {
    using T = decltype(zero);
    using A = Acc<T>;
    row_times_matrix_kernel<T><<<blocks, dim3(32, 32), 0, s.stream()>>>(
        sums.as<A>(), w.as<T>(), db.as<A>(), out.as<A>(), n, k);
    CUDA_LAUNCHED();
  });
}

}  // namespace tally::train::cuda
