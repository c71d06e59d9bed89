// Matrix products of the layers. What is fused and what is a pass of its own is decided by timing.
#include <fmt/format.h>

#include <algorithm>

#include "src/ops/cuda/check.h"
#include "src/ops/cuda/cuda_ops.h"
#include "src/ops/cuda/gemm.h"
#include "src/ops/cuda/gemm_cutlass.h"
#include "src/ops/cuda/gemm_float64.h"
#include "src/ops/cuda/kernels.h"

namespace tally::train::cuda {
namespace {

// out = x op(w), x[M,K] flattened to two dimensions.
MatMul product(const Tensor& x, const Tensor& w, bool w_transposed, const Tensor& out) {
  MatMul p;
  p.inner = x.dim(-1);
  p.rows = p.inner ? x.numel() / p.inner : 0;
  p.cols = w_transposed ? w.dim(0) : w.dim(1);
  p.a = {x.data, x.dtype, p.inner, 0, false};
  p.b = {w.data, w.dtype, w.dim(1), 0, w_transposed};
  p.out = out.data;
  p.out_dtype = out.dtype;
  p.out_leading = p.cols;
  return p;
}

std::string shape_key(const char* op, CudaStream& s, const MatMul& p) {
  return fmt::format("{}/{}x{}x{}/{}{}{}", op, p.rows, p.cols, p.inner, dtype_name(p.out_dtype),
                     s.matmul_mode == MatmulMode::tf32                            ? "t"
                     : s.matmul_mode == MatmulMode::tf32x3                        ? "3"
                     : p.a.dtype == DType::f32 && cuda::float64_products_serve(s) ? "d"
                                                                                  : "",
                     s.products_leave > 0 ? fmt::format("l{}/", s.products_leave) : "");
}

MatMul with_epilogue(MatMul p, Epilogue epilogue, const Tensor& b, void* aux) {
  p.epilogue = epilogue;
  p.bias = b.data;
  p.aux = aux;
  return p;
}

// Rows of a piece so that pieces of about `bytes` cover all rows and, where it comes out even, are
// equal: they share one tuned product then.
int64_t rows_a_piece(int64_t rows, int64_t row_bytes, int64_t bytes) {
  int64_t piece = bytes / row_bytes;
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

// The same product with bias `b`, for CUTLASS's kernels.
FusedProduct fused_product(const MatMul& plain, const Tensor& b, void* pre, const Tensor& out) {
  FusedProduct p;
  p.tokens = plain.rows;
  p.features = plain.cols;
  p.inner = plain.inner;
  p.x = plain.a.data;
  p.weight = plain.b.data;
  p.bias = b.data;
  p.pre = pre;
  p.out = out.data;
  return p;
}

// Those of CUTLASS's kernels that serve this problem here, none unless `wanted`.
std::vector<const FusedKernel*> serving(const CudaStream& s, bool wanted,
                                        const FusedKernels& kernels, const FusedProduct& p,
                                        DType type) {
  std::vector<const FusedKernel*> found;
  const auto bits = reinterpret_cast<uintptr_t>(p.x) | reinterpret_cast<uintptr_t>(p.weight) |
                    reinterpret_cast<uintptr_t>(p.pre) | reinterpret_cast<uintptr_t>(p.out) |
                    reinterpret_cast<uintptr_t>(p.bias);
  if (!wanted || type != DType::bf16 || s.capability() != 90 || bits % 16 != 0) return found;
  for (int i = 0; i < kernels.count; ++i) {
    if (kernels.list[i]->supported(p)) found.push_back(kernels.list[i]);
  }
  return found;
}

// dpre = (dy w) gelu'(pre) in one pass, and db += its column sums. dpre may be `pre`.
void gelu_backward_fused(CudaStream& s, const FusedKernel& kernel, const Tensor& dy,
                         const Tensor& w, const Tensor& pre, const Tensor& dpre, const Tensor& db) {
  FusedProduct p;
  p.features = w.dim(1);
  p.inner = w.dim(0);
  p.tokens = dy.numel() / p.inner;
  p.x = dy.data;
  p.weight = w.data;
  p.pre = pre.data;
  p.out = dpre.data;
  const int64_t parts = (p.tokens + kernel.tile_tokens - 1) / kernel.tile_tokens;
  const bool sums = db.defined();
  if (sums) p.parts = static_cast<float*>(s.workspace());
  if (sums && static_cast<size_t>(parts * p.features) * sizeof(float) > s.workspace_bytes()) {
    gelu_backward_fused(s, kernel, dy, w, pre, dpre, Tensor());
    return column_sums(s, dpre, 0, db);
  }
  CUDA_CHECK(kernel.launch(p, s.multiprocessors_for_products(), s.stream()));
  if (sums) add_parts(s, p.parts, parts, p.features, db);
}

// The product needs a place beside `pre`: in pieces of rows through the second workspace. Small
// pieces are still in the cache when GELU's pass reads them, large ones make better products; on
// Hopper there are kernels that do it all in one pass: timing decides.
void gelu_backward_in_place(CudaStream& s, const Tensor& dy, const Tensor& w, const Tensor& pre,
                            const Tensor& db, GeluKeeps keeps) {
  const int64_t columns = w.dim(1), inner = dy.dim(-1), rows = inner ? dy.numel() / inner : 0;
  const auto row_bytes = static_cast<int64_t>(size_of(pre.dtype)) * columns;
  const auto most = static_cast<int64_t>(s.second_workspace_bytes());
  void* scratch = s.second_workspace();
  const Tensor dy2 = dy.view({rows, inner}), pre2 = pre.view({rows, columns});
  const auto run = [&](int64_t piece, bool rehearsal) {
    for (int64_t first = 0; first < rows; first += piece) {
      const int64_t count = std::min(piece, rows - first);
      const Tensor part(scratch, pre.dtype, {count, columns}), here = pre2.rows(first, count);
      matmul(s, product(dy2.rows(first, count), w, false, part));
      // A rehearsal leaves `pre` and `db` as they are.
      gelu_backward(s, part, here, rehearsal ? part : here, rehearsal ? Tensor() : db, keeps);
    }
  };
  std::vector<int64_t> pieces;
  std::vector<std::function<void()>> ways;
  for (const int64_t bytes : {most, most / 2, most / 4}) {
    const int64_t piece = rows_a_piece(rows, row_bytes, bytes);
    if (!pieces.empty() && (piece == pieces.back() || rows <= most / row_bytes)) continue;
    pieces.push_back(piece);
    ways.emplace_back([&run, piece] { run(piece, true); });
  }
  // The rehearsal of a kernel that works in place writes elsewhere, so in pieces too.
  FusedProduct whole;
  whole.tokens = rows;
  whole.features = columns;
  whole.inner = inner;
  whole.x = dy.data;
  whole.weight = w.data;
  whole.pre = whole.out = pre.data;
  const auto kernels = serving(s, s.fused_gelu, gelu_backward_kernels(keeps), whole, pre.dtype);
  for (const FusedKernel* kernel : kernels) {
    ways.emplace_back([&, kernel] {
      const int64_t piece = rows_a_piece(rows, row_bytes, most);
      for (int64_t first = 0; first < rows; first += piece) {
        const int64_t count = std::min(piece, rows - first);
        const Tensor part(scratch, pre.dtype, {count, columns});
        gelu_backward_fused(s, *kernel, dy2.rows(first, count), w, pre2.rows(first, count), part,
                            Tensor());
      }
    });
  }
  const std::string key =
      shape_key(keeps == GeluKeeps::slope ? "slope" : "dgelu", s, product(dy2, w, false, pre2)) +
      fmt::format("/{}", ways.size());
  const auto choice = static_cast<size_t>(fastest(s, key, ways));
  if (choice < pieces.size()) return run(pieces[choice], false);
  gelu_backward_fused(s, *kernels[choice - pieces.size()], dy2, w, pre2, pre2, db);
}

}  // namespace

void linear_forward(Stream& stream, const Tensor& x, const Tensor& w, const Tensor& b,
                    const Tensor& y, const Tensor& residual) {
  CudaStream& s = cuda_stream(stream);
  MatMul plain = product(x, w, true, y);
  if (residual.defined()) {
    plain.beta = 1;
    plain.addend = residual.data;
    if (residual.data != y.data && !matmul_supported(s, plain)) {
      s.copy(y.data, residual.data, y.bytes());
      plain.addend = y.data;
    }
  }
  if (!b.defined()) return matmul(s, plain);
  const MatMul fused = with_epilogue(plain, Epilogue::bias, b, nullptr);
  const auto two_passes = [&] {
    matmul(s, plain);
    add_bias(s, b, y);
  };
  if (!matmul_supported(s, fused)) return two_passes();
  // What is added in place would be added once a rehearsal.
  if (plain.addend == y.data && residual.defined()) return matmul(s, fused);
  std::vector<std::function<void()>> ways{[&] { matmul(s, fused); }, two_passes};
  const FusedProduct own = fused_product(plain, b, residual.data, y);
  const FusedKernels kernels = residual.defined() ? bias_residual_kernels() : bias_kernels();
  for (const FusedKernel* kernel : serving(s, s.own_bias_products, kernels, own, y.dtype)) {
    ways.emplace_back([&s, own, kernel] {
      CUDA_CHECK(kernel->launch(own, s.multiprocessors_for_products(), s.stream()));
    });
  }
  const std::string key = shape_key(residual.defined() ? "bias+" : "bias", s, plain);
  ways[static_cast<size_t>(fastest(s, key + std::to_string(ways.size()), ways))]();
}

bool float64_products_serve(Stream& stream) {
  const CudaStream& s = cuda_stream(stream);
  return s.float64_products && s.capability() == 90 && s.matmul_mode == MatmulMode::ieee &&
         float64_products_built();
}

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

void linear_backward_input(Stream& stream, const Tensor& dy, const Tensor& w, const Tensor& dx) {
  matmul(cuda_stream(stream), product(dy, w, false, dx));
}

void linear_backward_input_gelu(Stream& stream, const Tensor& dy, const Tensor& w,
                                const Tensor& kept, const Tensor& dpre, const Tensor& db,
                                GeluKeeps keeps) {
  CudaStream& s = cuda_stream(stream);
  if (dpre.data != kept.data) {
    matmul(s, product(dy, w, false, dpre));
    gelu_backward(s, dpre, kept, dpre, db, keeps);
    return;
  }
  gelu_backward_in_place(s, dy, w, kept, db, keeps);
}

void linear_backward_weight(Stream& stream, const Tensor& dy, const Tensor& x, const Tensor& dw,
                            const Tensor& db, bool accumulate) {
  CudaStream& s = cuda_stream(stream);
  MatMul p;
  p.rows = dy.dim(-1);
  p.cols = x.dim(-1);
  p.inner = p.cols ? x.numel() / p.cols : 0;
  p.a = {dy.data, dy.dtype, p.rows, 0, true};
  p.b = {x.data, x.dtype, p.cols, 0, false};
  p.out = dw.data;
  p.out_dtype = dw.dtype;
  p.out_leading = p.cols;
  p.beta = accumulate ? 1 : 0;
  if (p.inner > 0) {
    matmul(s, p);
  } else if (!accumulate) {
    s.fill_zero(dw.data, dw.bytes());
  }
  if (db.defined()) column_sums(s, dy, 0, db);
}

void linear_backward_bias(Stream& stream, const Tensor& dy, int64_t first, const Tensor& db) {
  column_sums(cuda_stream(stream), dy, first, db);
}

void linear_backward_bias_input(Stream& stream, const Tensor& sums, const Tensor& w,
                                const Tensor& db, const Tensor& dbx) {
  product_row(cuda_stream(stream), sums, w, db, dbx);
}

}  // namespace tally::train::cuda
