#include <cmath>
#include <vector>

#include "src/device/cpu/types.h"
#include "src/device/cpu/vector_math.h"
#include "src/ops/norm/head_norm.h"

namespace tally::train::cpu {
namespace {

// The offsets of a token's heads: Q's, then K's.
struct HeadOffsets {
  HeadOffsets(const Out& qkv, int64_t kv_heads)
      : width(qkv.dim(-1)),
        tokens(qkv.dim(0) * qkv.dim(1)),
        token(tokens > 0 ? qkv.numel() / tokens : 0),
        heads(token / width - kv_heads),
        q(heads - kv_heads) {}
  int64_t width, tokens, token, heads, q;
};

void forward(Stream&, Out qkv, const HeadNormWeights& w, const SavedHeads& saved) {
  const HeadOffsets l(qkv, w.kv_heads);
  with_type(qkv.dtype, head_norm_forward.name(), [&]<typename T>() {
    using A = accumulate_t<T>;
    at::parallel_for(0, l.tokens * l.heads, 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* head = qkv.as<T>() + i / l.heads * l.token + i % l.heads * l.width;
        T* raw = saved.raw.as<T>() + i * l.width;
        const T* gamma = (i % l.heads < l.q ? w.q : w.k).as<T>();
        const double squares = sum_in_lanes(
            l.width, [head](int64_t j) { return static_cast<double>(head[j]) * head[j]; });
        const A scale =
            static_cast<A>(1.0 / std::sqrt(squares / static_cast<double>(l.width) + w.epsilon));
        saved.rstd.as<A>()[i] = scale;
        for (int64_t j = 0; j < l.width; ++j) {
          raw[j] = head[j];
          head[j] = static_cast<T>(static_cast<A>(raw[j]) * scale * static_cast<A>(gamma[j]));
        }
      }
    });
  });
}

// dx = rstd (g - n mean(g n)) with n the normalised head and g = dy gamma; dgamma += dy n.
void backward(Stream&, const HeadNormWeights& w, const SavedHeads& saved,
              const HeadNormGradients& out) {
  const HeadOffsets l(out.dqkv, w.kv_heads);
  with_type(out.dqkv.dtype, head_norm_backward.name(), [&]<typename T>() {
    using A = accumulate_t<T>;
    std::vector<double> sums(static_cast<size_t>(2 * l.width));
    for (int64_t i = 0; i < l.tokens * l.heads; ++i) {
      const bool of_q = i % l.heads < l.q;
      T* dy = out.dqkv.as<T>() + i / l.heads * l.token + i % l.heads * l.width;
      const T* raw = saved.raw.as<T>() + i * l.width;
      const T* gamma = (of_q ? w.q : w.k).as<T>();
      double* sum = sums.data() + (of_q ? 0 : l.width);
      const A rstd = saved.rstd.as<A>()[i];
      const double product = sum_in_lanes(l.width, [&](int64_t j) {
        return static_cast<double>(dy[j]) * static_cast<double>(gamma[j]) *
               static_cast<double>(static_cast<A>(raw[j]) * rstd);
      });
      const A mean = static_cast<A>(product / static_cast<double>(l.width));
      for (int64_t j = 0; j < l.width; ++j) {
        const A n = static_cast<A>(raw[j]) * rstd, d = static_cast<A>(dy[j]);
        sum[j] += static_cast<double>(d * n);
        dy[j] = static_cast<T>(rstd * (d * static_cast<A>(gamma[j]) - n * mean));
      }
    }
    for (int64_t j = 0; j < l.width; ++j) {
      out.dq.as<A>()[j] += static_cast<A>(sums[static_cast<size_t>(j)]);
      out.dk.as<A>()[j] += static_cast<A>(sums[static_cast<size_t>(l.width + j)]);
    }
  });
}

const OnCpu versions[] = {{head_norm_forward, forward}, {head_norm_backward, backward}};

}  // namespace
}  // namespace tally::train::cpu
