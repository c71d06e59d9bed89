#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/device/cpu/aten_views.h"
#include "src/ops/attention/backends.h"
#include "src/ops/linear/backends.h"

namespace tally::train::cpu {
namespace {

// Query rows handled at once: bounds the scratch to this many rows of scores a thread, and with a
// causal mask the columns right of the block are never computed.
constexpr int64_t block_rows = 128;

// One head's matrix [T, D] inside a packed tensor with `stride` elements between tokens.
at::Tensor head_view(void* data, DType dtype, int64_t offset, int64_t tokens, int64_t width,
                     int64_t stride) {
  return at::from_blob(static_cast<char*>(data) + static_cast<size_t>(offset) * size_of(dtype),
                       {tokens, width}, {stride, 1}, at::TensorOptions().dtype(scalar_type(dtype)));
}

// The matrices of one head in the accumulation type: views where no conversion is needed.
struct Head {
  Head(const AttentionShape& shape, int64_t index) : s(shape), index_(index) {}
  at::Tensor projection(const Tensor& qkv, int64_t which) const {
    const int64_t b = index_ / s.heads, h = index_ % s.heads, row = 3 * s.heads * s.head_dim;
    return head_view(qkv.data, qkv.dtype, b * s.tokens * row + (which * s.heads + h) * s.head_dim,
                     s.tokens, s.head_dim, row);
  }
  at::Tensor output(const Tensor& out) const {
    const int64_t b = index_ / s.heads, h = index_ % s.heads, row = s.heads * s.head_dim;
    return head_view(out.data, out.dtype, b * s.tokens * row + h * s.head_dim, s.tokens, s.head_dim,
                     row);
  }
  const AttentionShape& s;

 private:
  int64_t index_;
};

at::Tensor widened(const at::Tensor& t, at::ScalarType type) {
  return t.scalar_type() == type ? t : t.to(type);
}

// Rows [first, first + rows) of one head's attention matrix over `columns` keys.
struct Block {
  int64_t first, rows, columns;
};

int64_t visible(const AttentionShape& s, int64_t row) {
  return s.causal ? row + 1 : s.tokens;
}

std::vector<Block> blocks_of(const AttentionShape& s) {
  std::vector<Block> blocks;
  for (int64_t i = 0; i < s.tokens; i += block_rows) {
    const int64_t rows = std::min(block_rows, s.tokens - i);
    blocks.push_back({i, rows, s.causal ? i + rows : s.tokens});
  }
  return blocks;
}

template <typename A>
struct Attention {
  const AttentionShape& shape;
  uint64_t seed;
  at::ScalarType type = std::is_same_v<A, double> ? at::kDouble : at::kFloat;

  at::Tensor scratch(int64_t rows, int64_t columns) const {
    return at::empty({rows, columns}, at::TensorOptions().dtype(type));
  }

  // scores <- exp(scale scores - shift[row]); nothing is seen right of the diagonal of a causal
  // mask.
  void exponentials(const Block& b, const A* shift, at::Tensor& scores) const {
    A* p = scores.data_ptr<A>();
    const A scale = static_cast<A>(shape.scale);
    for (int64_t i = 0; i < b.rows; ++i, p += b.columns) {
      const int64_t n = visible(shape, b.first + i);
      for (int64_t j = 0; j < n; ++j) p[j] = p[j] * scale - shift[i];
      std::fill(p + n, p + b.columns, -std::numeric_limits<A>::infinity());
    }
    scores.exp_();
  }

  // values[i, j] *= mask, for the head's rows of the block.
  void drop(int64_t head, const Block& b, at::Tensor& values, std::vector<A>& mask) const {
    A* p = values.data_ptr<A>();
    mask.resize(static_cast<size_t>(b.columns));
    for (int64_t i = 0; i < b.rows; ++i, p += b.columns) {
      const int64_t element = (head * shape.tokens + b.first + i) * shape.tokens;
      const int64_t n = visible(shape, b.first + i);
      draw_mask(shape.dropout, seed, static_cast<uint64_t>(element), n, mask.data());
      for (int64_t j = 0; j < n; ++j) p[j] *= mask[static_cast<size_t>(j)];
    }
  }

  void forward(int64_t index, const Tensor& qkv, const Tensor& out, const Tensor& stats) const {
    const Head head(shape, index);
    const at::Tensor q = widened(head.projection(qkv, 0), type);
    const at::Tensor k = widened(head.projection(qkv, 1), type);
    const at::Tensor v = widened(head.projection(qkv, 2), type);
    at::Tensor o = head.output(out);
    A* lse = stats.as<A>() + index * shape.tokens;
    std::vector<A> top(block_rows), mask;
    for (const Block& b : blocks_of(shape)) {
      at::Tensor p = scratch(b.rows, b.columns);
      at::mm_out(p, q.narrow(0, b.first, b.rows), k.narrow(0, 0, b.columns).t());
      const A* score = p.data_ptr<A>();
      const A factor = static_cast<A>(shape.scale);
      for (int64_t i = 0; i < b.rows; ++i, score += b.columns) {
        top[static_cast<size_t>(i)] =
            *std::max_element(score, score + visible(shape, b.first + i)) * factor;
      }
      exponentials(b, top.data(), p);
      normalise(b, top.data(), p, lse + b.first);
      if (shape.dropout > 0) drop(index, b, p, mask);
      at::Tensor rows = o.narrow(0, b.first, b.rows);
      rows.copy_(at::mm(p, v.narrow(0, 0, b.columns)));
    }
  }

  // Each row divided by its sum; lse gets the log of the sum of exponentials.
  void normalise(const Block& b, const A* top, at::Tensor& p, A* lse) const {
    A* row = p.data_ptr<A>();
    for (int64_t i = 0; i < b.rows; ++i, row += b.columns) {
      const int64_t n = visible(shape, b.first + i);
      double sum = 0;
      for (int64_t j = 0; j < n; ++j) sum += static_cast<double>(row[j]);
      lse[i] = static_cast<A>(static_cast<double>(top[i]) + std::log(sum));
      const A inverse = static_cast<A>(1.0 / sum);
      for (int64_t j = 0; j < n; ++j) row[j] *= inverse;
    }
  }

  // With P = softmax(scale Q K^T), Pm = P mask, D = rowsum(dO O):
  //   dV = Pm^T dO,  dS = P (mask (dO V^T) - D) scale,  dQ = dS K,  dK = dS^T Q
  void backward(int64_t index, const Tensor& qkv, const Tensor& out, const Tensor& stats,
                const Tensor& dout, const Tensor& dqkv) const {
    const Head head(shape, index);
    const at::Tensor q = widened(head.projection(qkv, 0), type);
    const at::Tensor k = widened(head.projection(qkv, 1), type);
    const at::Tensor v = widened(head.projection(qkv, 2), type);
    const at::Tensor o = widened(head.output(out), type), g = widened(head.output(dout), type);
    const at::Tensor d = at::mul(g, o).sum(1);
    at::Tensor dq = head.projection(dqkv, 0);
    at::Tensor dk = scratch(shape.tokens, shape.head_dim).zero_(),
               dv = scratch(shape.tokens, shape.head_dim).zero_();
    const A* lse = stats.as<A>() + index * shape.tokens;
    std::vector<A> mask;
    for (const Block& b : blocks_of(shape)) {
      const at::Tensor qb = q.narrow(0, b.first, b.rows), gb = g.narrow(0, b.first, b.rows);
      const at::Tensor kb = k.narrow(0, 0, b.columns), vb = v.narrow(0, 0, b.columns);
      at::Tensor p = at::mm(qb, kb.t());
      exponentials(b, lse + b.first, p);
      at::Tensor dp = at::mm(gb, vb.t());
      at::Tensor dvb = dv.narrow(0, 0, b.columns), dkb = dk.narrow(0, 0, b.columns);
      if (shape.dropout > 0) {
        at::Tensor dropped = p.clone();
        drop(index, b, dropped, mask);
        dvb.addmm_(dropped.t(), gb);
        drop(index, b, dp, mask);
      } else {
        dvb.addmm_(p.t(), gb);
      }
      score_gradient(b, p, d.data_ptr<A>() + b.first, dp);
      dq.narrow(0, b.first, b.rows).copy_(at::mm(dp, kb));
      dkb.addmm_(dp.t(), qb);
    }
    head.projection(dqkv, 1).copy_(dk);
    head.projection(dqkv, 2).copy_(dv);
  }

  // dp <- P (dp - D) scale
  void score_gradient(const Block& b, const at::Tensor& p, const A* d, at::Tensor& dp) const {
    const A factor = static_cast<A>(shape.scale);
    const A* probability = p.data_ptr<A>();
    A* row = dp.data_ptr<A>();
    for (int64_t i = 0; i < b.rows; ++i, row += b.columns, probability += b.columns) {
      for (int64_t j = 0; j < b.columns; ++j) {
        row[j] = probability[j] * (row[j] - d[i]) * factor;
      }
    }
  }
};

}  // namespace

const char* attention_backend(const Compute&, const AttentionShape&, DType) {
  return "aten";
}

size_t attention_workspace(const Compute&, const AttentionShape&, DType) {
  return 0;
}

void attention_forward(const Compute&, const AttentionShape& shape, const Tensor& qkv,
                       const Tensor& out, const Tensor& stats, const Tensor&, DropoutSeed seed) {
  with_type(qkv.dtype, "attention_forward", [&]<typename T>() {
    const Attention<accumulate_t<T>> attention{shape, seed.get()};
    at::parallel_for(0, shape.batch * shape.heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) attention.forward(i, qkv, out, stats);
    });
  });
}

void attention_backward(const Compute& c, const AttentionShape& shape, const Tensor& qkv,
                        const Tensor& out, const Tensor& stats, const Tensor& dout,
                        const Tensor& dqkv, const Tensor&, DropoutSeed seed, const Tensor& q_sums) {
  with_type(qkv.dtype, "attention_backward", [&]<typename T>() {
    const Attention<accumulate_t<T>> attention{shape, seed.get()};
    at::parallel_for(0, shape.batch * shape.heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        attention.backward(i, qkv, out, stats, dout, dqkv);
      }
    });
  });
  if (!q_sums.defined()) return;
  const Tensor rows = dqkv.view({shape.batch * shape.tokens, 3 * shape.heads * shape.head_dim});
  cpu::linear_backward_bias(c, rows, 0, q_sums);
}

}  // namespace tally::train::cpu
