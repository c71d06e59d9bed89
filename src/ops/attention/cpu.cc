#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/device/cpu/aten_views.h"
#include "src/device/cpu/vector_math.h"
#include "src/ops/attention/attention.h"

namespace tally::train::cpu {
namespace {

// Query rows handled at once. This bounds the scratch to so many rows of scores a thread. Columns
// that no row of the block sees are never computed.
constexpr int64_t block_rows = 128;

// One head's matrix [T, D] inside a packed tensor with `stride` elements between tokens.
at::Tensor head_view(const void* data, DType dtype, int64_t offset, int64_t tokens, int64_t width,
                     int64_t stride) {
  // ATen knows no memory that is only read.
  auto* const begin = static_cast<char*>(const_cast<void*>(data));
  return at::from_blob(begin + static_cast<size_t>(offset) * size_of(dtype), {tokens, width},
                       {stride, 1}, at::TensorOptions().dtype(scalar_type(dtype)));
}

// The matrices of one head of Q: views.
struct Head {
  Head(const AttentionArgs& args, int64_t index)
      : a(args), b(index / args.shape.heads), h(index % args.shape.heads) {}
  template <typename Data>
  at::Tensor of(const Heads<Data>& rows) const {
    return of(rows, h);
  }
  // The rows of K or V.
  template <typename Data>
  at::Tensor of_group(const Heads<Data>& rows) const {
    return of(rows, h * a.shape.kv_heads() / a.shape.heads);
  }
  at::Tensor of(const In& out) const {
    return of(HeadsIn{out.data, a.shape.heads * a.shape.head_dim});
  }
  const AttentionArgs& a;
  const int64_t b, h;

 private:
  template <typename Data>
  at::Tensor of(const Heads<Data>& rows, int64_t head) const {
    const AttentionShape& s = a.shape;
    return head_view(rows.data, a.dtype, b * s.tokens * rows.stride + head * s.head_dim, s.tokens,
                     s.head_dim, rows.stride);
  }
};

at::Tensor widened(const at::Tensor& t, at::ScalarType type) {
  return t.scalar_type() == type ? t : t.to(type);
}

// Keys [first, last) that a query sees.
struct Seen {
  int64_t first, last;
};

// Rows [first, first + rows) of one head's attention matrix over keys [key, key + columns): those
// that any of the rows sees.
struct Block {
  int64_t first, rows, key, columns;
  // The columns that a row sees, of these.
  Seen within(const Seen& s) const { return {s.first - key, s.last - key}; }
};

// The keys that each query of a sequence sees.
std::vector<Seen> seen_of(const AttentionArgs& a, int64_t sequence) {
  const AttentionShape& s = a.shape;
  std::vector<Seen> seen(static_cast<size_t>(s.tokens), Seen{0, s.tokens});
  if (a.cu_seqlens.defined()) {
    const int32_t* begin = a.cu_seqlens.as<int32_t>();
    const int32_t* end = begin + a.cu_seqlens.numel();
    for (int64_t i = 0; i < s.tokens; ++i) {
      const int64_t token = sequence * s.tokens + i;
      // Finds the first document that begins after the token; the token belongs to the one before
      // it.
      const int32_t* next = std::upper_bound(begin, end, token);
      seen[static_cast<size_t>(i)] = {*(next - 1) - sequence * s.tokens,
                                      std::min(*next - sequence * s.tokens, s.tokens)};
    }
  }
  if (s.causal())
    for (int64_t i = 0; i < s.tokens; ++i) seen[static_cast<size_t>(i)].last = i + 1;
  return seen;
}

// Documents lie one after the other, so that the first row sees the first key, and the last row the
// last one.
std::vector<Block> blocks_of(const std::vector<Seen>& seen) {
  const auto tokens = static_cast<int64_t>(seen.size());
  std::vector<Block> blocks;
  for (int64_t i = 0; i < tokens; i += block_rows) {
    const int64_t rows = std::min(block_rows, tokens - i);
    const int64_t key = seen[static_cast<size_t>(i)].first;
    blocks.push_back({i, rows, key, seen[static_cast<size_t>(i + rows - 1)].last - key});
  }
  return blocks;
}

// p <- softmax(scale p) over what the row sees, 0 elsewhere. Returns the log of the sum of
// exponentials.
template <typename A>
TALLY_CLONES A softmax_row(A* p, const Seen& s, int64_t columns, A scale) {
  A* const x = p + s.first;
  const int64_t n = s.last - s.first;
  const A top = maximum(x, n) * scale;
  for (int64_t j = 0; j < n; ++j) x[j] = exponential(x[j] * scale - top);
  const double sum = sum_in_lanes(n, [x](int64_t j) { return x[j]; });
  const A inverse = static_cast<A>(1.0 / sum);
  for (int64_t j = 0; j < n; ++j) x[j] *= inverse;
  std::fill(p, x, A(0));
  std::fill(x + n, p + columns, A(0));
  return static_cast<A>(static_cast<double>(top) + std::log(sum));
}

// p <- exp(scale p - lse) for what the row sees, 0 elsewhere.
template <typename A>
TALLY_CLONES void probability_row(A* p, const Seen& s, int64_t columns, A scale, A lse) {
  for (int64_t j = s.first; j < s.last; ++j) p[j] = exponential(p[j] * scale - lse);
  std::fill(p, p + s.first, A(0));
  std::fill(p + s.last, p + columns, A(0));
}

// dp <- p (dp - d) scale
template <typename A>
TALLY_CLONES void score_gradient_row(const A* p, A d, int64_t columns, A scale, A* dp) {
  for (int64_t j = 0; j < columns; ++j) dp[j] = p[j] * (dp[j] - d) * scale;
}

template <typename A>
struct Attention {
  const AttentionArgs& args;
  const AttentionShape& shape = args.shape;
  uint64_t seed = args.seed.get();
  at::ScalarType type = std::is_same_v<A, double> ? at::kDouble : at::kFloat;

  at::Tensor scratch(int64_t rows, int64_t columns) const {
    return at::empty({rows, columns}, at::TensorOptions().dtype(type));
  }

  // scores <- exp(scale scores - lse[row]), 0 for keys that a row does not see.
  void probabilities(const Block& b, const Seen* seen, const A* lse, at::Tensor& scores) const {
    A* p = scores.data_ptr<A>();
    for (int64_t i = 0; i < b.rows; ++i, p += b.columns) {
      const Seen s = b.within(seen[b.first + i]);
      probability_row(p, s, b.columns, static_cast<A>(shape.scale), lse[i]);
    }
  }

  // values[i, j] *= mask, for the head's rows of the block.
  void drop(int64_t head, const Block& b, const Seen* seen, at::Tensor& values,
            std::vector<A>& mask) const {
    A* p = values.data_ptr<A>();
    mask.resize(static_cast<size_t>(b.columns));
    for (int64_t i = 0; i < b.rows; ++i, p += b.columns) {
      const Seen& s = seen[b.first + i];
      const int64_t element = (head * shape.tokens + b.first + i) * shape.tokens + s.first;
      draw_mask(shape.dropout, seed, static_cast<uint64_t>(element), s.last - s.first, mask.data());
      A* const x = p + (s.first - b.key);
      for (int64_t j = 0; j < s.last - s.first; ++j) x[j] *= mask[static_cast<size_t>(j)];
    }
  }

  void forward(int64_t index) const {
    const Head head(args, index);
    const at::Tensor q = widened(head.of(args.q), type), k = widened(head.of_group(args.k), type);
    const at::Tensor v = widened(head.of_group(args.v), type);
    at::Tensor o = head.of(args.out);
    A* lse = args.stats.as<A>() + index * shape.tokens;
    const std::vector<Seen> seen = seen_of(args, head.b);
    std::vector<A> mask;
    for (const Block& b : blocks_of(seen)) {
      at::Tensor p = scratch(b.rows, b.columns);
      at::mm_out(p, q.narrow(0, b.first, b.rows), k.narrow(0, b.key, b.columns).t());
      A* row = p.data_ptr<A>();
      for (int64_t i = 0; i < b.rows; ++i, row += b.columns) {
        const Seen s = b.within(seen[static_cast<size_t>(b.first + i)]);
        lse[b.first + i] = softmax_row(row, s, b.columns, static_cast<A>(shape.scale));
      }
      if (shape.dropout > 0) drop(index, b, seen.data(), p, mask);
      at::Tensor rows = o.narrow(0, b.first, b.rows);
      product(p, v.narrow(0, b.key, b.columns), rows);
    }
  }

  // out = a b, rounded at the end where out's type is narrower.
  void product(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) const {
    if (out.scalar_type() == type) {
      at::mm_out(out, a, b);
    } else {
      out.copy_(at::mm(a, b));
    }
  }

  // P = softmax(scale Q K^T), Pm = P mask, D = rowsum(dO O):
  //   dV = Pm^T dO,  dS = P (mask (dO V^T) - D) scale,  dQ = dS K,  dK = dS^T Q
  // The gradients of one head of Q; dK and dV are added to.
  void backward(int64_t index, const AttentionGradients& gradients, at::Tensor& dk,
                at::Tensor& dv) const {
    const Head head(args, index);
    const at::Tensor q = widened(head.of(args.q), type), k = widened(head.of_group(args.k), type);
    const at::Tensor v = widened(head.of_group(args.v), type);
    const at::Tensor o = widened(head.of(args.out), type);
    const at::Tensor g = widened(head.of(gradients.dout), type);
    const at::Tensor d = at::mul(g, o).sum(1);
    at::Tensor dq = head.of(gradients.dq);
    const A* lse = args.stats.as<A>() + index * shape.tokens;
    const std::vector<Seen> seen = seen_of(args, head.b);
    std::vector<A> mask;
    for (const Block& b : blocks_of(seen)) {
      const at::Tensor qb = q.narrow(0, b.first, b.rows), gb = g.narrow(0, b.first, b.rows);
      const at::Tensor kb = k.narrow(0, b.key, b.columns), vb = v.narrow(0, b.key, b.columns);
      at::Tensor p = at::mm(qb, kb.t());
      probabilities(b, seen.data(), lse + b.first, p);
      at::Tensor dp = at::mm(gb, vb.t());
      at::Tensor dvb = dv.narrow(0, b.key, b.columns), dkb = dk.narrow(0, b.key, b.columns);
      if (shape.dropout > 0) {
        at::Tensor dropped = p.clone();
        drop(index, b, seen.data(), dropped, mask);
        dvb.addmm_(dropped.t(), gb);
        drop(index, b, seen.data(), dp, mask);
      } else {
        dvb.addmm_(p.t(), gb);
      }
      score_gradient(b, p, d.data_ptr<A>() + b.first, dp);
      at::Tensor rows = dq.narrow(0, b.first, b.rows);
      product(dp, kb, rows);
      dkb.addmm_(dp.t(), qb);
    }
  }

  // The gradients of the heads that share head `index` of K and V.
  void backward_group(int64_t index, const AttentionGradients& gradients) const {
    const int64_t shared = shape.heads / shape.kv_heads(), first = index * shared;
    at::Tensor dk = scratch(shape.tokens, shape.head_dim).zero_(),
               dv = scratch(shape.tokens, shape.head_dim).zero_();
    for (int64_t i = first; i < first + shared; ++i) backward(i, gradients, dk, dv);
    const Head head(args, first);
    head.of_group(gradients.dk).copy_(dk);
    head.of_group(gradients.dv).copy_(dv);
  }

  // dp <- P (dp - D) scale
  void score_gradient(const Block& b, const at::Tensor& p, const A* d, at::Tensor& dp) const {
    const A* probability = p.data_ptr<A>();
    A* row = dp.data_ptr<A>();
    for (int64_t i = 0; i < b.rows; ++i, row += b.columns, probability += b.columns)
      score_gradient_row(probability, d[i], b.columns, static_cast<A>(shape.scale), row);
  }
};

const char* backend(const Compute&, const AttentionShape&, DType) {
  return "aten";
}

size_t workspace(const Compute&, const AttentionShape&, DType) {
  return 0;
}

void forward(const Compute&, const AttentionArgs& args) {
  with_type(args.dtype, attention_forward.name(), [&]<typename T>() {
    const Attention<accumulate_t<T>> attention{args};
    at::parallel_for(0, args.shape.batch * args.shape.heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) attention.forward(i);
    });
  });
}

void backward(const Compute&, const AttentionArgs& args, const AttentionGradients& gradients) {
  const AttentionShape& s = args.shape;
  with_type(args.dtype, attention_backward.name(), [&]<typename T>() {
    const Attention<accumulate_t<T>> attention{args};
    at::parallel_for(0, s.batch * s.kv_heads(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) attention.backward_group(i, gradients);
    });
    if (!gradients.q_sums.defined()) return;
    add_column_sums(static_cast<const T*>(gradients.dq.data), s.batch * s.tokens,
                    gradients.dq.stride, s.heads * s.head_dim,
                    gradients.q_sums.as<accumulate_t<T>>());
  });
}

const OnCpu attention_versions[] = {{attention_backend, backend},
                                    {attention_workspace, workspace},
                                    {attention_forward, forward},
                                    {attention_backward, backward}};

}  // namespace
}  // namespace tally::train::cpu
