// The MLP's products with GELU after them, forward and backward. What is fused and what is a pass
// of its own is decided by timing.
#include <fmt/format.h>

#include <algorithm>

#include "src/ops/cuda/check.h"
#include "src/ops/cuda/cuda_ops.h"
#include "src/ops/cuda/kernels.h"
#include "src/ops/cuda/linear_parts.h"

namespace tally::train::cuda {
namespace {

// The gradients of a product with GELU after it, as matrices.
struct GeluGradient {
  Tensor dy, w, kept, dpre;  // [M,K], [K,F], [M,F], [M,F]
  GeluKeeps keeps;
  int64_t rows() const { return dy.dim(0); }
  int64_t columns() const { return w.dim(1); }
};

// Rows of a piece so that pieces of about `bytes` cover all rows and, where it comes out even, are
// equal: they share one tuned product then.
int64_t rows_a_piece(const GeluGradient& g, int64_t bytes) {
  const int64_t rows = g.rows(),
                row_bytes = static_cast<int64_t>(size_of(g.kept.dtype)) * g.columns();
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

// GELU's pass over `rows` rows from `first` on, once their product lies in `part`.
void gelu_pass(CudaStream& s, const GeluGradient& g, int64_t first, const Tensor& part,
               const Tensor& out, const Tensor& db) {
  gelu_backward(s, part, g.kept.rows(first, part.dim(0)), out, db, g.keeps);
}

// In one of CUTLASS's kernels.
void gelu_backward_fused(CudaStream& s, const FusedKernel& kernel, FusedProduct p,
                         const GeluGradient& g, const Tensor& db) {
  const int64_t parts = (p.tokens + kernel.tile_tokens - 1) / kernel.tile_tokens;
  const bool room = static_cast<size_t>(parts * p.features) * sizeof(float) <= s.workspace_bytes();
  if (db.defined() && room) p.parts = static_cast<float*>(s.workspace());
  CUDA_CHECK(kernel.launch(p, s.multiprocessors_for_products(), s.stream()));
  if (!db.defined()) return;
  if (room) {
    add_parts(s, p.parts, parts, p.features, db);
  } else {
    column_sums(s, g.dpre, 0, db);
  }
}

// The product overwrites `dpre`, which is not `kept`: as a whole, in pieces of which GELU's pass
// finds a part in the cache, or in one kernel of CUTLASS's.
void gelu_backward_apart(CudaStream& s, const GeluGradient& g, const Tensor& db) {
  constexpr int64_t piece_bytes = int64_t{64} << 20;
  using Way = std::function<void(const Tensor& sums)>;
  const auto in_pieces = [&](int64_t piece, const Tensor& sums) {
    for (int64_t first = 0; first < g.rows(); first += piece) {
      const int64_t count = std::min(piece, g.rows() - first);
      const Tensor part = g.dpre.rows(first, count);
      matmul(s, product(g.dy.rows(first, count), g.w, false, part));
      gelu_pass(s, g, first, part, part, sums);
    }
  };
  std::vector<Way> ways{[&](const Tensor& sums) { in_pieces(g.rows(), sums); }};
  const int64_t piece = rows_a_piece(g, piece_bytes);
  if (piece < g.rows())
    ways.emplace_back([&, piece](const Tensor& sums) { in_pieces(piece, sums); });
  const MatMul plain = product(g.dy, g.w, false, g.dpre);
  const FusedProduct own = fused_product(plain, Tensor(), g.kept.data, g.dpre);
  for (const FusedKernel* kernel :
       serving(s, s.fused_gelu, gelu_backward_kernels(g.keeps), own, g.dpre.dtype)) {
    ways.emplace_back(
        [&, kernel](const Tensor& sums) { gelu_backward_fused(s, *kernel, own, g, sums); });
  }
  // A rehearsal adds its sums where nobody reads them.
  std::vector<std::function<void()>> rehearsals;
  for (const Way& way : ways) {
    rehearsals.emplace_back([&] {
      way(db.defined() ? Tensor(s.second_workspace(), db.dtype, {g.columns()}) : Tensor());
    });
  }
  const char* op = g.keeps == GeluKeeps::slope ? "slope-apart" : "dgelu-apart";
  const std::string key = shape_key(op, s, plain) + fmt::format("/{}", ways.size());
  ways[static_cast<size_t>(fastest(s, key, rehearsals))](db);
}

// `dpre` is `kept`, so that the product needs another place: in pieces of rows through the second
// workspace. Small pieces are still in the cache when GELU's pass reads them, large ones make
// better products: timing decides.
void gelu_backward_in_place(CudaStream& s, const GeluGradient& g, const Tensor& db) {
  const auto most = static_cast<int64_t>(s.second_workspace_bytes());
  void* scratch = s.second_workspace();
  const auto run = [&](int64_t piece, bool rehearsal) {
    for (int64_t first = 0; first < g.rows(); first += piece) {
      const int64_t count = std::min(piece, g.rows() - first);
      const Tensor part(scratch, g.dpre.dtype, {count, g.columns()});
      matmul(s, product(g.dy.rows(first, count), g.w, false, part));
      // A rehearsal leaves `kept` and `db` as they are.
      gelu_pass(s, g, first, part, rehearsal ? part : g.dpre.rows(first, count),
                rehearsal ? Tensor() : db);
    }
  };
  std::vector<int64_t> pieces;
  std::vector<std::function<void()>> ways;
  for (const int64_t bytes : {most, most / 2, most / 4}) {
    const int64_t piece = rows_a_piece(g, bytes);
    if (!pieces.empty() && (piece == pieces.back() || pieces.front() >= g.rows())) continue;
    pieces.push_back(piece);
    ways.emplace_back([&run, piece] { run(piece, true); });
  }
  const char* op = g.keeps == GeluKeeps::slope ? "slope" : "dgelu";
  const std::string key =
      shape_key(op, s, product(g.dy, g.w, false, g.dpre)) + fmt::format("/{}", ways.size());
  run(pieces[static_cast<size_t>(fastest(s, key, ways))], false);
}

}  // namespace

GeluKeeps faster_gelu_keeps(Stream& stream, DType type, int64_t n, int64_t k) {
  const CudaStream& s = cuda_stream(stream);
  FusedProduct p;
  p.tokens = 1;
  p.features = n;
  p.inner = k;
  const auto served = [&](const FusedKernels& kernels) {
    return !serving(s, s.fused_gelu, kernels, p, type).empty();
  };
  return served(gelu_forward_kernels(GeluKeeps::slope)) &&
                 served(gelu_backward_kernels(GeluKeeps::slope))
             ? GeluKeeps::slope
             : GeluKeeps::input;
}

void linear_gelu_forward(Stream& stream, const Tensor& x, const Tensor& w, const Tensor& b,
                         const Tensor& kept, const Tensor& y, GeluKeeps keeps) {
  CudaStream& s = cuda_stream(stream);
  const bool slope = keeps == GeluKeeps::slope;
  const MatMul plain = product(x, w, true, kept);
  std::vector<std::function<void()>> ways;
  if (b.defined()) {
    const MatMul biased = with_epilogue(plain, Epilogue::bias, b, nullptr);
    if (matmul_supported(s, biased)) {
      ways.emplace_back([&s, biased, &kept, &y, keeps] {
        matmul(s, biased);
        gelu(s, Tensor(), kept, y, keeps);
      });
    }
    MatMul fused = with_epilogue(plain, Epilogue::gelu_aux_bias, b, kept.data);
    fused.out = y.data;
    // The library's GELU is an approximation good for 16-bit results only.
    if (s.fused_gelu && !slope && size_of(y.dtype) == 2 && matmul_supported(s, fused)) {
      ways.emplace_back([&s, fused] { matmul(s, fused); });
    }
    const FusedProduct own = fused_product(plain, b, kept.data, y);
    for (const FusedKernel* kernel :
         serving(s, s.fused_gelu, gelu_forward_kernels(keeps), own, y.dtype)) {
      ways.emplace_back([&s, own, kernel] {
        CUDA_CHECK(kernel->launch(own, s.multiprocessors_for_products(), s.stream()));
      });
    }
  }
  ways.emplace_back([&] {
    matmul(s, plain);
    gelu(s, b, kept, y, keeps);
  });
  const std::string key =
      shape_key(slope ? "gelu-slope" : "gelu", s, plain) + std::to_string(ways.size());
  ways[static_cast<size_t>(fastest(s, key, ways))]();
}

void gelu_forward(Stream& stream, const Tensor& pre, const Tensor& y) {
  gelu(cuda_stream(stream), Tensor(), pre, y, GeluKeeps::input);
}

void linear_backward_input_gelu(Stream& stream, const Tensor& dy, const Tensor& w,
                                const Tensor& kept, const Tensor& dpre, const Tensor& db,
                                GeluKeeps keeps) {
  CudaStream& s = cuda_stream(stream);
  const int64_t columns = w.dim(1), inner = dy.dim(-1), rows = inner ? dy.numel() / inner : 0;
  if (rows == 0 || columns == 0) return;
  const GeluGradient g{dy.view({rows, inner}), w, kept.view({rows, columns}),
                       dpre.view({rows, columns}), keeps};
  if (dpre.data == kept.data) {
    gelu_backward_in_place(s, g, db);
  } else {
    gelu_backward_apart(s, g, db);
  }
}

}  // namespace tally::train::cuda
