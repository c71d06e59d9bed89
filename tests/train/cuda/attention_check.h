// Attention of one shape on the GPU against float64 on the CPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "src/device/cuda/cuda_stream.h"
#include "src/ops/attention/attention.h"
#include "src/ops/attention/hopper/kernels.h"
#include "tests/train/cuda/both.h"

namespace tally::train {

inline AttentionShape shape_of(int64_t batch, int64_t tokens, int64_t heads, int64_t head_dim,
                               bool causal, double dropout) {
  return {batch,
          tokens,
          heads,
          head_dim,
          causal ? AttentionMask::causal : AttentionMask::none,
          1 / std::sqrt(static_cast<double>(head_dim)),
          dropout};
}

// Where documents of these lengths begin, then the end of all up to a place for each token.
inline Pair cu_seqlens_of(Both& b, const AttentionShape& a, const std::vector<int64_t>& lengths) {
  const int64_t all = a.batch * a.tokens;
  std::vector<double> starts{0};
  for (const int64_t n : lengths) starts.push_back(starts.back() + static_cast<double>(n));
  REQUIRE(starts.back() == static_cast<double>(all));
  starts.resize(static_cast<size_t>(all + 1), static_cast<double>(all));
  return b.put({all + 1}, DType::i32, DType::i32, starts);
}

struct Ways {
  bool repeatable = false, float64_gemms = true, three_tf32 = false, own_16_bits = true;
  bool known_documents = false;  // how many and how long they are, which cuDNN needs
};

// Forward and backward against float64. `lengths`: of the documents, in order; none: a document is a
// sequence. Returns the back end that served.
inline std::string check(const Kind& kind, AttentionShape a, const Ways& ways = {},
                         const std::vector<int64_t>& lengths = {}) {
  Both b(kind);
  a.documents = !lengths.empty();
  const Pair cu_seqlens = a.documents ? cu_seqlens_of(b, a, lengths) : Pair();
  if (ways.known_documents) {
    a.most_documents = static_cast<int64_t>(lengths.size()) + 3;
    a.longest = *std::max_element(lengths.begin(), lengths.end());
  }

  b.gpu.options.deterministic = ways.repeatable;
  b.gpu.options.fusions.float64 = ways.float64_gemms;
  b.gpu.options.tf32x3_attention = ways.three_tf32;
  b.gpu.options.fusions.attention = ways.own_16_bits;
  const int64_t rows = a.heads + 2 * a.kv_heads();
  const Pair qkv = b.input({a.batch, a.tokens, rows, a.head_dim});
  const Pair out = b.output({a.batch, a.tokens, a.heads, a.head_dim});
  const Pair stats = b.statistics({a.batch, a.heads, a.tokens});
  const Pair dout = b.input({a.batch, a.tokens, a.heads, a.head_dim});
  const Pair dqkv = b.output({a.batch, a.tokens, rows, a.head_dim});
  const Tensor work = b.scratch(attention_workspace(*b.gpu, a, kind.type));
  AttentionArgs on_cpu = packed_attention(a, qkv.cpu, {Out(out.cpu), Out(stats.cpu)}, {}, 11),
                on_gpu =
                    packed_attention(a, qkv.gpu, {Out(out.gpu), Out(stats.gpu)}, Out(work), 11);
  on_cpu.cu_seqlens = cu_seqlens.cpu;
  on_gpu.cu_seqlens = cu_seqlens.gpu;
  attention_forward(*b.cpu, on_cpu);
  attention_forward(*b.gpu, on_gpu);
  const std::string backend = attention_backend(*b.gpu, a, kind.type);
  INFO(backend, " B ", a.batch, " T ", a.tokens, " H ", a.heads, " G ", a.kv_heads(), " D ",
       a.head_dim, " causal ", a.causal(), " dropout ", a.dropout, " documents ", lengths.size());
  CHECK_CLOSE(b, out, kind.tolerance);
  // Of a single key the statistic is the score itself, whose terms may cancel.
  const double cancels = a.tokens == 1 ? 10 : 1;
  if (backend != "cudnn" || !a.documents) {  // cuDNN keeps those of documents in another order
    CHECK_CLOSE(b, stats,
                kind.mode == MatmulMode::tf32 ? cancels * 1e-3
                : kind.type == DType::f64     ? 1e-12
                                              : cancels * 1e-4);
  }
  const Pair q_sums = b.sum({a.heads * a.head_dim});
  attention_backward(*b.cpu, on_cpu, packed_gradients(a, dout.cpu, Out(dqkv.cpu), Out(q_sums.cpu)));
  attention_backward(*b.gpu, on_gpu, packed_gradients(a, dout.gpu, Out(dqkv.gpu), Out(q_sums.gpu)));
  // The error of four GEMMs in a row.
  CHECK_CLOSE(b, dqkv, kind.type == DType::f64 ? 1e-11 : 2 * kind.tolerance);
  CHECK_CLOSE(b, q_sums, kind.type == DType::f64 ? 1e-11 : 2 * kind.tolerance);
  return backend;
}

// Whether kernels for compute capability 9.0 exist and may run.
inline bool on_hopper() {
  Both b({DType::bf16, MatmulMode::ieee, "bf16", 1e-2});
  return cuda::cuda_stream(*b.gpu).capability() == 90 && cuda::hopper::built();
}

}  // namespace tally::train
