// The MLP's GEMMs with their activation, forward and backward. Autotune decides what is fused.
#include <fmt/format.h>

#include <algorithm>

#include "src/device/cuda/check.h"
#include "src/ops/column_sums.h"
#include "src/ops/gemm/problem.h"
#include "src/ops/linear/gelu_kernels.h"
#include "src/ops/linear/passes.h"

namespace tally::train::cuda {
namespace {

// The backward pass of a GEMM with an activation, as matrices.
struct GemmGradient {
  In dy, w, saved;  // [M,K], [K,F], [M,F]
  Out dpre;         // [M,F]
  ActivationForm form;
  int64_t rows() const { return dy.dim(0); }
  int64_t columns() const { return w.dim(1); }
};

// The names of remembered choices.
std::string forward_key(ActivationForm form) {
  const std::string name = form.kind == MlpActivation::gelu_tanh  ? "gelu"
                           : form.kind == MlpActivation::gelu_erf ? "erf-gelu"
                                                                  : entry_of(form.kind).name;
  return name + (form.saved == SavedValue::derivative ? "-slope" : "");
}
std::string backward_key(ActivationForm form) {
  if (form.saved == SavedValue::derivative) return "slope";
  if (form.kind == MlpActivation::gelu_erf) return "derf";
  return std::string("d") +
         (form.kind == MlpActivation::gelu_tanh ? "gelu" : entry_of(form.kind).name);
}

// Rows of a piece, so that pieces of about `bytes` cover all rows. They are equal where the rows
// divide, because equal pieces share one tuned GEMM.
int64_t rows_a_piece(const GemmGradient& g, int64_t bytes) {
  const int64_t rows = g.rows(),
                row_bytes = static_cast<int64_t>(size_of(g.saved.dtype)) * g.columns();
  const int64_t piece = bytes / row_bytes;
  if (piece < 1) {
    throw DeviceError(
        fmt::format("linear_backward_input_activation: rows of {} bytes are too long", row_bytes));
  }
  if (piece >= rows) return rows;
  // The next number of pieces that divides the rows, unless there is none near.
  const int64_t least = (rows + piece - 1) / piece;
  for (int64_t pieces = least; pieces < 2 * least; ++pieces) {
    if (rows % pieces == 0) return rows / pieces;
  }
  return (rows + least - 1) / least;
}

// Runs the activation's kernel over rows from `first` on, once their GEMM's result is in `part`.
void gradient_pass(CudaStream& s, const GemmGradient& g, int64_t first, const In& part,
                   const ActivationGradients& out) {
  activation_gradient(s, part, {g.saved.rows(first, part.dim(0)), g.form}, {out.dpre, out.db, {}});
}

// Runs the whole backward pass in one CUTLASS kernel.
void backward_fused(const CudaCompute& c, const FusedKernel& kernel, FusedGemm p,
                    const GemmGradient& g, const Out& db) {
  CudaStream& s = c.stream;
  const int64_t parts = (p.tokens + kernel.tile_tokens - 1) / kernel.tile_tokens;
  const bool room = static_cast<size_t>(parts * p.features) * sizeof(float) <= s.workspace_bytes();
  if (db.defined() && room) p.parts = static_cast<float*>(s.workspace());
  CUDA_CHECK(kernel.launch(p, c.sms_for_gemms(), s.stream()));
  if (!db.defined()) return;
  if (room) {
    add_shares(s, {p.parts, parts, p.features}, db);
  } else {
    column_sums(s, g.dpre, 0, db);
  }
}

// The GEMM overwrites `dpre`, which is not `saved`: as a whole, in pieces that are still in the
// cache when the activation's kernel reads them, or in one CUTLASS kernel.
void backward_apart(const CudaCompute& c, const GemmGradient& g, const Out& db) {
  CudaStream& s = c.stream;
  constexpr int64_t piece_bytes = int64_t{64} << 20;
  using Variant = std::function<void(const Out& sums)>;
  const auto in_pieces = [&](int64_t piece, const Out& sums) {
    for (int64_t first = 0; first < g.rows(); first += piece) {
      const int64_t count = std::min(piece, g.rows() - first);
      const Out part = g.dpre.rows(first, count);
      gemm(c, gemm_problem(g.dy.rows(first, count), g.w, false, part));
      gradient_pass(s, g, first, part, {part, sums});
    }
  };
  std::vector<Variant> variants{[&](const Out& sums) { in_pieces(g.rows(), sums); }};
  const int64_t piece = rows_a_piece(g, piece_bytes);
  if (piece < g.rows())
    variants.emplace_back([&, piece](const Out& sums) { in_pieces(piece, sums); });
  const GemmProblem plain = gemm_problem(g.dy, g.w, false, g.dpre);
  FusedGemm own = fused_gemm(plain, {}, g.dpre);
  own.source = g.saved.data;
  for (const FusedKernel* kernel :
       serving(s, c.options.fusions.gelu, gelu_backward_kernels(g.dpre.dtype, g.form), own)) {
    variants.emplace_back(
        [&, kernel](const Out& sums) { backward_fused(c, *kernel, own, g, sums); });
  }
  // A timed run adds its sums to scratch that nothing reads.
  std::vector<std::function<void()>> timed;
  for (const Variant& variant : variants) {
    timed.emplace_back([&] {
      variant(Out(db.defined() ? Tensor(s.second_workspace(), db.dtype, {g.columns()}) : Tensor()));
    });
  }
  const std::string key = shape_key((backward_key(g.form) + "-apart").c_str(), c, plain) +
                          fmt::format("/{}", variants.size());
  variants[static_cast<size_t>(fastest(c, key, timed))](db);
}

// `dpre` is `saved`, so the GEMM needs other memory: pieces of rows go through the second
// workspace. Small pieces are still in the cache when the activation's kernel reads them, large
// ones make faster GEMMs. Autotune decides.
void backward_in_place(const CudaCompute& c, const GemmGradient& g, const Out& db) {
  CudaStream& s = c.stream;
  const auto most = static_cast<int64_t>(s.second_workspace_bytes());
  void* scratch = s.second_workspace();
  const auto run = [&](int64_t piece, bool timed) {
    for (int64_t first = 0; first < g.rows(); first += piece) {
      const int64_t count = std::min(piece, g.rows() - first);
      const Out part(Tensor(scratch, g.dpre.dtype, {count, g.columns()}));
      gemm(c, gemm_problem(g.dy.rows(first, count), g.w, false, part));
      // A timed run must not change `saved` and `db`.
      gradient_pass(s, g, first, part,
                    {timed ? part : g.dpre.rows(first, count), timed ? Out() : db});
    }
  };
  std::vector<int64_t> pieces;
  std::vector<std::function<void()>> variants;
  for (const int64_t bytes : {most, most / 2, most / 4}) {
    const int64_t piece = rows_a_piece(g, bytes);
    if (!pieces.empty() && (piece == pieces.back() || pieces.front() >= g.rows())) continue;
    pieces.push_back(piece);
    variants.emplace_back([&run, piece] { run(piece, true); });
  }
  const std::string key =
      shape_key(backward_key(g.form).c_str(), c, gemm_problem(g.dy, g.w, false, g.dpre)) +
      fmt::format("/{}", variants.size());
  run(pieces[static_cast<size_t>(fastest(c, key, variants))], false);
}

SavedValue faster_saved(const Compute& c, DType type, int64_t n, int64_t k, MlpActivation kind) {
  const CudaStream& s = cuda_stream(c.stream);
  FusedGemm p;
  p.tokens = 1;
  p.features = n;
  p.inner = k;
  const ActivationForm form{kind, SavedValue::derivative};
  const auto served = [&](const KernelList<FusedKernel>& kernels) {
    return !serving(s, c.options.fusions.gelu, kernels, p).empty();
  };
  return served(gelu_forward_kernels(type, form)) && served(gelu_backward_kernels(type, form))
             ? SavedValue::derivative
             : SavedValue::input;
}

using Variants = std::vector<std::function<void()>>;

// The versions whose GEMM adds the bias, and perhaps applies the activation.
Variants biased_variants(const CudaCompute& c, const GemmProblem& plain, const In& b,
                         ActivationForm form, const ActivationOutputs& out) {
  Variants variants;
  const GemmProblem biased = with_epilogue(plain, Epilogue::bias, b, nullptr);
  if (gemm_supported(c, biased)) {
    variants.emplace_back([c, biased, &out, form] {
      gemm(c, biased);
      bias_activation(c.stream, {}, out, form);
    });
  }
  GemmProblem fused = with_epilogue(plain, Epilogue::gelu_aux_bias, b, out.saved.data);
  fused.out = out.y.data;
  // The library's GELU is the tanh form, accurate enough for 16-bit results only.
  if (c.options.fusions.gelu && form.saved == SavedValue::input &&
      form.kind == MlpActivation::gelu_tanh && size_of(out.y.dtype) == 2 &&
      gemm_supported(c, fused)) {
    variants.emplace_back([c, fused] { gemm(c, fused); });
  }
  FusedGemm own = fused_gemm(plain, b, out.y);
  own.aux = out.saved.data;
  for (const FusedKernel* kernel :
       serving(c.stream, c.options.fusions.gelu, gelu_forward_kernels(out.y.dtype, form), own)) {
    variants.emplace_back([c, own, kernel] {
      CUDA_CHECK(kernel->launch(own, c.sms_for_gemms(), c.stream.stream()));
    });
  }
  return variants;
}

void forward(const Compute& compute, In x, LinearWeights weights, ActivationForm form,
             ActivationOutputs out) {
  const CudaCompute c = cuda_compute(compute);
  const GemmProblem plain = gemm_problem(x, weights.w, true, out.saved);
  Variants variants;
  if (weights.b.defined()) variants = biased_variants(c, plain, weights.b, form, out);
  variants.emplace_back([&] {
    gemm(c, plain);
    bias_activation(c.stream, weights.b, out, form);
  });
  const std::string key =
      shape_key(forward_key(form).c_str(), c, plain) + std::to_string(variants.size());
  variants[static_cast<size_t>(fastest(c, key, variants))]();
}

void forward_alone(Stream& s, In pre, Out y, MlpActivation kind, Out amax) {
  activation(cuda_stream(s), pre, {y, amax}, kind);
}

void backward_alone(Stream& s, In dy, In pre, MlpActivation kind, ActivationPass out) {
  activation_gradient(cuda_stream(s), dy, {pre, {kind, SavedValue::input}}, out);
}

void backward(const Compute& compute, In dy, In w, ActivationInput f, ActivationGradients out) {
  const CudaCompute c = cuda_compute(compute);
  const int64_t columns = w.dim(1), inner = dy.dim(-1), rows = inner ? dy.numel() / inner : 0;
  if (rows == 0 || columns == 0) return;
  const GemmGradient g{dy.view({rows, inner}), w, f.saved.view({rows, columns}),
                       out.dpre.view({rows, columns}), f.form};
  if (out.dpre.data == f.saved.data) {
    backward_in_place(c, g, out.db);
  } else {
    backward_apart(c, g, out.db);
  }
}

const OnCuda versions[] = {{faster_saved_value, faster_saved},
                           {linear_activation_forward, forward},
                           {mlp_activation_forward, forward_alone},
                           {mlp_activation_backward, backward_alone},
                           {linear_backward_input_activation, backward}};

}  // namespace

KernelList<FusedKernel> gelu_forward_kernels(DType type, ActivationForm form) {
  const bool derivative = form.saved == SavedValue::derivative;
  if (form.kind == MlpActivation::gelu_tanh)
    return fused_kernels(derivative ? FusedWork::gelu_derivative : FusedWork::gelu, type);
  if (form.kind == MlpActivation::gelu_erf && derivative)
    return fused_kernels(FusedWork::erf_gelu_derivative, type);
  return {};
}

KernelList<FusedKernel> gelu_backward_kernels(DType type, ActivationForm form) {
  const bool derivative = form.saved == SavedValue::derivative;
  if (form.kind == MlpActivation::gelu_tanh && type != DType::f16)
    return fused_kernels(derivative ? FusedWork::times_derivative : FusedWork::gelu_gradient, type);
  // The erf form is served with its derivative alone, and f16 with the erf form alone.
  if (form.kind == MlpActivation::gelu_erf && derivative)
    return fused_kernels(FusedWork::times_derivative, type);
  return {};
}

}  // namespace tally::train::cuda
