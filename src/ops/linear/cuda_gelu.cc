// The MLP's GEMMs with GELU, forward and backward. Autotune decides what is fused.
#include <fmt/format.h>

#include <algorithm>

#include "src/device/cuda/check.h"
#include "src/ops/linear/backends.h"
#include "src/ops/linear/cuda_parts.h"
#include "src/ops/linear/passes.h"

namespace tally::train::cuda {
namespace {

// The backward pass of a GEMM with GELU, as matrices.
struct GeluGradient {
  Tensor dy, w, saved, dpre;  // [M,K], [K,F], [M,F], [M,F]
  SavedGelu form;
  GeluKind kind;
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
void gelu_pass(CudaStream& s, const GeluGradient& g, int64_t first, const Tensor& part,
               const Tensor& out, const Tensor& db) {
  gelu_gradient(s, part, g.saved.rows(first, part.dim(0)), out, db, g.form, g.kind);
}

// Runs the whole backward pass in one CUTLASS kernel.
void gelu_backward_fused(const CudaCompute& c, const FusedKernel& kernel, FusedGemm p,
                         const GeluGradient& g, const Tensor& db) {
  CudaStream& s = c.stream;
  const int64_t parts = (p.tokens + kernel.tile_tokens - 1) / kernel.tile_tokens;
  const bool room = static_cast<size_t>(parts * p.features) * sizeof(float) <= s.workspace_bytes();
  if (db.defined() && room) p.parts = static_cast<float*>(s.workspace());
  CUDA_CHECK(kernel.launch(p, c.sms_for_gemms(), s.stream()));
  if (!db.defined()) return;
  if (room) {
    add_parts(s, p.parts, parts, p.features, db);
  } else {
    column_sums(s, g.dpre, 0, db);
  }
}

// The GEMM overwrites `dpre`, which is not `saved`: as a whole, in pieces that are still in the
// cache when GELU's kernel reads them, or in one CUTLASS kernel.
void gelu_backward_apart(const CudaCompute& c, const GeluGradient& g, const Tensor& db) {
  CudaStream& s = c.stream;
  constexpr int64_t piece_bytes = int64_t{64} << 20;
  using Variant = std::function<void(const Tensor& sums)>;
  const auto in_pieces = [&](int64_t piece, const Tensor& sums) {
    for (int64_t first = 0; first < g.rows(); first += piece) {
      const int64_t count = std::min(piece, g.rows() - first);
      const Tensor part = g.dpre.rows(first, count);
      gemm(c, gemm_problem(g.dy.rows(first, count), g.w, false, part));
      gelu_pass(s, g, first, part, part, sums);
    }
  };
  std::vector<Variant> variants{[&](const Tensor& sums) { in_pieces(g.rows(), sums); }};
  const int64_t piece = rows_a_piece(g, piece_bytes);
  if (piece < g.rows())
    variants.emplace_back([&, piece](const Tensor& sums) { in_pieces(piece, sums); });
  const GemmProblem plain = gemm_problem(g.dy, g.w, false, g.dpre);
  const FusedGemm own = fused_gemm(plain, Tensor(), g.saved.data, g.dpre);
  for (const FusedKernel* kernel :
       serving(s, c.options.fused_gelu, gelu_backward_kernels(g.dpre.dtype, g.form, g.kind), own)) {
    variants.emplace_back(
        [&, kernel](const Tensor& sums) { gelu_backward_fused(c, *kernel, own, g, sums); });
  }
  // A timed run adds its sums to scratch that nothing reads.
  std::vector<std::function<void()>> timed;
  for (const Variant& variant : variants) {
    timed.emplace_back([&] {
      variant(db.defined() ? Tensor(s.second_workspace(), db.dtype, {g.columns()}) : Tensor());
    });
  }
  const char* op = g.form == SavedGelu::derivative ? "slope-apart"
                   : g.kind == GeluKind::erf       ? "derf-apart"
                                                   : "dgelu-apart";
  const std::string key = shape_key(op, c, plain) + fmt::format("/{}", variants.size());
  variants[static_cast<size_t>(fastest(c, key, timed))](db);
}

// `dpre` is `saved`, so the GEMM needs other memory: pieces of rows go through the second
// workspace. Small pieces are still in the cache when GELU's kernel reads them, large ones make
// faster GEMMs. Autotune decides.
void gelu_backward_in_place(const CudaCompute& c, const GeluGradient& g, const Tensor& db) {
  CudaStream& s = c.stream;
  const auto most = static_cast<int64_t>(s.second_workspace_bytes());
  void* scratch = s.second_workspace();
  const auto run = [&](int64_t piece, bool timed) {
    for (int64_t first = 0; first < g.rows(); first += piece) {
      const int64_t count = std::min(piece, g.rows() - first);
      const Tensor part(scratch, g.dpre.dtype, {count, g.columns()});
      gemm(c, gemm_problem(g.dy.rows(first, count), g.w, false, part));
      // A timed run must not change `saved` and `db`.
      gelu_pass(s, g, first, part, timed ? part : g.dpre.rows(first, count), timed ? Tensor() : db);
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
  const char* op = g.form == SavedGelu::derivative ? "slope"
                   : g.kind == GeluKind::erf       ? "derf"
                                                   : "dgelu";
  const std::string key = shape_key(op, c, gemm_problem(g.dy, g.w, false, g.dpre)) +
                          fmt::format("/{}", variants.size());
  run(pieces[static_cast<size_t>(fastest(c, key, variants))], false);
}

}  // namespace

SavedGelu faster_saved_gelu(const Compute& c, DType type, int64_t n, int64_t k, GeluKind kind) {
  const CudaStream& s = cuda_stream(c.stream);
  FusedGemm p;
  p.tokens = 1;
  p.features = n;
  p.inner = k;
  const auto served = [&](const FusedKernels& kernels) {
    return !serving(s, c.options.fused_gelu, kernels, p).empty();
  };
  return served(gelu_forward_kernels(type, SavedGelu::derivative, kind)) &&
                 served(gelu_backward_kernels(type, SavedGelu::derivative, kind))
             ? SavedGelu::derivative
             : SavedGelu::input;
}

void linear_gelu_forward(const Compute& compute, const Tensor& x, const Tensor& w, const Tensor& b,
                         const Tensor& saved, const Tensor& y, SavedGelu form, GeluKind kind) {
  const CudaCompute c = cuda_compute(compute);
  CudaStream& s = c.stream;
  const bool derivative = form == SavedGelu::derivative;
  const GemmProblem plain = gemm_problem(x, w, true, saved);
  std::vector<std::function<void()>> variants;
  if (b.defined()) {
    const GemmProblem biased = with_epilogue(plain, Epilogue::bias, b, nullptr);
    if (gemm_supported(c, biased)) {
      variants.emplace_back([&s, c, biased, &saved, &y, form, kind] {
        gemm(c, biased);
        gelu(s, Tensor(), saved, y, form, kind);
      });
    }
    GemmProblem fused = with_epilogue(plain, Epilogue::gelu_aux_bias, b, saved.data);
    fused.out = y.data;
    // The library's GELU is the tanh form, accurate enough for 16-bit results only.
    if (c.options.fused_gelu && !derivative && kind == GeluKind::tanh && size_of(y.dtype) == 2 &&
        gemm_supported(c, fused)) {
      variants.emplace_back([c, fused] { gemm(c, fused); });
    }
    const FusedGemm own = fused_gemm(plain, b, saved.data, y);
    for (const FusedKernel* kernel :
         serving(s, c.options.fused_gelu, gelu_forward_kernels(y.dtype, form, kind), own)) {
      variants.emplace_back([c, own, kernel] {
        CUDA_CHECK(kernel->launch(own, c.sms_for_gemms(), c.stream.stream()));
      });
    }
  }
  variants.emplace_back([&] {
    gemm(c, plain);
    gelu(s, b, saved, y, form, kind);
  });
  const std::string op =
      std::string(kind == GeluKind::erf ? "erf-gelu" : "gelu") + (derivative ? "-slope" : "");
  const std::string key = shape_key(op.c_str(), c, plain) + std::to_string(variants.size());
  variants[static_cast<size_t>(fastest(c, key, variants))]();
}

void gelu_forward(Stream& stream, const Tensor& pre, const Tensor& y, GeluKind kind) {
  gelu(cuda_stream(stream), Tensor(), pre, y, SavedGelu::input, kind);
}

void gelu_backward(Stream& stream, const Tensor& dy, const Tensor& pre, const Tensor& dpre,
                   GeluKind kind) {
  gelu_gradient(cuda_stream(stream), dy, pre, dpre, Tensor(), SavedGelu::input, kind);
}

void linear_backward_input_gelu(const Compute& compute, const Tensor& dy, const Tensor& w,
                                const Tensor& saved, const Tensor& dpre, const Tensor& db,
                                SavedGelu form, GeluKind kind) {
  const CudaCompute c = cuda_compute(compute);
  const int64_t columns = w.dim(1), inner = dy.dim(-1), rows = inner ? dy.numel() / inner : 0;
  if (rows == 0 || columns == 0) return;
  const GeluGradient g{dy.view({rows, inner}),     w,    saved.view({rows, columns}),
                       dpre.view({rows, columns}), form, kind};
  if (dpre.data == saved.data) {
    gelu_backward_in_place(c, g, db);
  } else {
    gelu_backward_apart(c, g, db);
  }
}

}  // namespace tally::train::cuda
