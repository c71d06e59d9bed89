// The MLP's GEMMs with GELU, forward and backward. Autotune decides what is fused.
#include <fmt/format.h>

#include <algorithm>

#include "src/device/cuda/check.h"
#include "src/ops/column_sums.h"
#include "src/ops/gemm/problem.h"
#include "src/ops/linear/gelu_kernels.h"
#include "src/ops/linear/passes.h"

namespace tally::train::cuda {
namespace {

// The backward pass of a GEMM with GELU, as matrices.
struct GeluGradient {
  In dy, w, saved;  // [M,K], [K,F], [M,F]
  Out dpre;         // [M,F]
  GeluForm form;
  int64_t rows() const { return dy.dim(0); }
  int64_t columns() const { return w.dim(1); }
};

// Rows of a piece, so that pieces of about `bytes` cover all rows. They are equal where the rows
// divide, because equal pieces share one tuned GEMM.
int64_t rows_a_piece(const GeluGradient& g, int64_t bytes) {
  const int64_t rows = g.rows(),
                row_bytes = static_cast<int64_t>(size_of(g.saved.dtype)) * g.columns();
  const int64_t piece = bytes / row_bytes;
  if (piece < 1) {
    throw DeviceError(
        fmt::format("linear_backward_input_gelu: rows of {} bytes are too long", row_bytes));
  }
  if (piece >= rows) return rows;
  // The next number of pieces that divides the rows, unless there is none near.
  const int64_t least = (rows + piece - 1) / piece;
  for (int64_t pieces = least; pieces < 2 * least; ++pieces) {
    if (rows % pieces == 0) return rows / pieces;
  }
  return (rows + least - 1) / least;
}

// Runs GELU's kernel over rows from `first` on, once the result of their GEMM is in `part`.
void gelu_pass(CudaStream& s, const GeluGradient& g, int64_t first, const In& part,
               const GeluGradients& out) {
  gelu_gradient(s, part, {g.saved.rows(first, part.dim(0)), g.form}, {out.dpre, out.db, {}});
}

// Runs the whole backward pass in one CUTLASS kernel.
void gelu_backward_fused(const CudaCompute& c, const FusedKernel& kernel, FusedGemm p,
                         const GeluGradient& g, const Out& db) {
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
// cache when GELU's kernel reads them, or in one CUTLASS kernel.
void gelu_backward_apart(const CudaCompute& c, const GeluGradient& g, const Out& db) {
  CudaStream& s = c.stream;
  constexpr int64_t piece_bytes = int64_t{64} << 20;
  using Variant = std::function<void(const Out& sums)>;
  const auto in_pieces = [&](int64_t piece, const Out& sums) {
    for (int64_t first = 0; first < g.rows(); first += piece) {
      const int64_t count = std::min(piece, g.rows() - first);
      const Out part = g.dpre.rows(first, count);
      gemm(c, gemm_problem(g.dy.rows(first, count), g.w, false, part));
      gelu_pass(s, g, first, part, {part, sums});
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
        [&, kernel](const Out& sums) { gelu_backward_fused(c, *kernel, own, g, sums); });
  }
  // A timed run adds its sums to scratch that nothing reads.
  std::vector<std::function<void()>> timed;
  for (const Variant& variant : variants) {
    timed.emplace_back([&] {
      variant(Out(db.defined() ? Tensor(s.second_workspace(), db.dtype, {g.columns()}) : Tensor()));
    });
  }
  const char* op = g.form.saved == SavedGelu::derivative ? "slope-apart"
                   : g.form.kind == GeluKind::erf        ? "derf-apart"
                                                         : "dgelu-apart";
  const std::string key = shape_key(op, c, plain) + fmt::format("/{}", variants.size());
  variants[static_cast<size_t>(fastest(c, key, timed))](db);
}

// `dpre` is `saved`, so the GEMM needs other memory: pieces of rows go through the second
// workspace. Small pieces are still in the cache when GELU's kernel reads them, large ones make
// faster GEMMs. Autotune decides.
void gelu_backward_in_place(const CudaCompute& c, const GeluGradient& g, const Out& db) {
  CudaStream& s = c.stream;
  const auto most = static_cast<int64_t>(s.second_workspace_bytes());
  void* scratch = s.second_workspace();
  const auto run = [&](int64_t piece, bool timed) {
    for (int64_t first = 0; first < g.rows(); first += piece) {
      const int64_t count = std::min(piece, g.rows() - first);
      const Out part(Tensor(scratch, g.dpre.dtype, {count, g.columns()}));
      gemm(c, gemm_problem(g.dy.rows(first, count), g.w, false, part));
      // A timed run must not change `saved` and `db`.
      gelu_pass(s, g, first, part, {timed ? part : g.dpre.rows(first, count), timed ? Out() : db});
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
  const char* op = g.form.saved == SavedGelu::derivative ? "slope"
                   : g.form.kind == GeluKind::erf        ? "derf"
                                                         : "dgelu";
  const std::string key = shape_key(op, c, gemm_problem(g.dy, g.w, false, g.dpre)) +
                          fmt::format("/{}", variants.size());
  run(pieces[static_cast<size_t>(fastest(c, key, variants))], false);
}

SavedGelu faster_saved(const Compute& c, DType type, int64_t n, int64_t k, GeluKind kind) {
  const CudaStream& s = cuda_stream(c.stream);
  FusedGemm p;
  p.tokens = 1;
  p.features = n;
  p.inner = k;
  const GeluForm form{kind, SavedGelu::derivative};
  const auto served = [&](const KernelList<FusedKernel>& kernels) {
    return !serving(s, c.options.fusions.gelu, kernels, p).empty();
  };
  return served(gelu_forward_kernels(type, form)) && served(gelu_backward_kernels(type, form))
             ? SavedGelu::derivative
             : SavedGelu::input;
}

using Variants = std::vector<std::function<void()>>;

// The versions whose GEMM adds the bias, and perhaps takes GELU.
Variants biased_variants(const CudaCompute& c, const GemmProblem& plain, const In& b, GeluForm form,
                         const GeluOutputs& out) {
  Variants variants;
  const GemmProblem biased = with_epilogue(plain, Epilogue::bias, b, nullptr);
  if (gemm_supported(c, biased)) {
    variants.emplace_back([c, biased, &out, form] {
      gemm(c, biased);
      bias_gelu(c.stream, {}, out, form);
    });
  }
  GemmProblem fused = with_epilogue(plain, Epilogue::gelu_aux_bias, b, out.saved.data);
  fused.out = out.y.data;
  // The library's GELU is the tanh form, accurate enough for 16-bit results only.
  if (c.options.fusions.gelu && form.saved == SavedGelu::input && form.kind == GeluKind::tanh &&
      size_of(out.y.dtype) == 2 && gemm_supported(c, fused)) {
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

void forward(const Compute& compute, In x, LinearWeights weights, GeluForm form, GeluOutputs out) {
  const CudaCompute c = cuda_compute(compute);
  const GemmProblem plain = gemm_problem(x, weights.w, true, out.saved);
  Variants variants;
  if (weights.b.defined()) variants = biased_variants(c, plain, weights.b, form, out);
  variants.emplace_back([&] {
    gemm(c, plain);
    bias_gelu(c.stream, weights.b, out, form);
  });
  const std::string op = std::string(form.kind == GeluKind::erf ? "erf-gelu" : "gelu") +
                         (form.saved == SavedGelu::derivative ? "-slope" : "");
  const std::string key = shape_key(op.c_str(), c, plain) + std::to_string(variants.size());
  variants[static_cast<size_t>(fastest(c, key, variants))]();
}

void gelu_alone(Stream& s, In pre, Out y, GeluKind kind, Out amax) {
  gelu(cuda_stream(s), pre, {y, amax}, kind);
}

void gelu_alone_backward(Stream& s, In dy, In pre, GeluKind kind, GeluPass out) {
  gelu_gradient(cuda_stream(s), dy, {pre, {kind, SavedGelu::input}}, out);
}

void backward(const Compute& compute, In dy, In w, GeluInput gelu, GeluGradients out) {
  const CudaCompute c = cuda_compute(compute);
  const int64_t columns = w.dim(1), inner = dy.dim(-1), rows = inner ? dy.numel() / inner : 0;
  if (rows == 0 || columns == 0) return;
  const GeluGradient g{dy.view({rows, inner}), w, gelu.saved.view({rows, columns}),
                       out.dpre.view({rows, columns}), gelu.form};
  if (out.dpre.data == gelu.saved.data) {
    gelu_backward_in_place(c, g, out.db);
  } else {
    gelu_backward_apart(c, g, out.db);
  }
}

const OnCuda versions[] = {{faster_saved_gelu, faster_saved},
                           {linear_gelu_forward, forward},
                           {gelu_forward, gelu_alone},
                           {gelu_backward, gelu_alone_backward},
                           {linear_backward_input_gelu, backward}};

}  // namespace

KernelList<FusedKernel> gelu_forward_kernels(DType type, GeluForm form) {
  const bool derivative = form.saved == SavedGelu::derivative;
  if (form.kind == GeluKind::erf)
    return derivative ? fused_kernels(FusedWork::erf_gelu_derivative, type)
                      : KernelList<FusedKernel>();
  return fused_kernels(derivative ? FusedWork::gelu_derivative : FusedWork::gelu, type);
}

KernelList<FusedKernel> gelu_backward_kernels(DType type, GeluForm form) {
  const bool derivative = form.saved == SavedGelu::derivative;
  // The erf form is served with its derivative alone, and f16 with the erf form alone.
  if (form.kind == GeluKind::erf ? !derivative : type == DType::f16) return {};
  return fused_kernels(derivative ? FusedWork::times_derivative : FusedWork::gelu_gradient, type);
}

}  // namespace tally::train::cuda
