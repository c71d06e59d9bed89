#include <algorithm>
#include <cmath>
#include <vector>

#include "src/device/cpu/types.h"
#include "src/ops/attention/attention.h"

namespace tally::train::cpu {

namespace {

void rotate(Stream&, Out qkv, const RotaryPositions& r, bool inverse) {
  const In& positions = r.positions;
  const int64_t batch = qkv.dim(0), tokens = qkv.dim(1), width = qkv.dim(-1);
  const int64_t row_length = qkv.numel() / (batch * tokens);
  const int64_t half = static_cast<int64_t>(static_cast<double>(width) * r.fraction) / 2;
  int64_t length = tokens;  // positions there are
  for (int64_t i = 0; positions.defined() && i < positions.numel(); ++i)
    length = std::max<int64_t>(length, positions.as<int32_t>()[i] + 1);
  std::vector<double> frequency(static_cast<size_t>(half));
  for (int64_t i = 0; i < half; ++i)
    frequency[static_cast<size_t>(i)] = rotary_frequency(r.angles, i, half);
  std::vector<double> cosine(static_cast<size_t>(length * half)), sine(cosine.size());
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(t) * frequency[static_cast<size_t>(i)];
      cosine[static_cast<size_t>(t * half + i)] = std::cos(angle);
      sine[static_cast<size_t>(t * half + i)] = inverse ? -std::sin(angle) : std::sin(angle);
    }
  }
  with_type(qkv.dtype, rotary_embedding.name(), [&]<typename T>() {
    using A = accumulate_t<T>;
    at::parallel_for(0, batch * tokens, 16, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t position = positions.defined() ? positions.as<int32_t>()[row] : row % tokens;
        const double* c = cosine.data() + position * half;
        const double* s = sine.data() + position * half;
        // Q's heads, then K's.
        T* head = qkv.as<T>() + row * row_length;
        for (int64_t h = 0; h < row_length / width - r.kv_heads; ++h, head += width) {
          for (int64_t i = 0; i < half; ++i) {
            const A a = static_cast<A>(head[i]), b = static_cast<A>(head[i + half]);
            const A cc = static_cast<A>(c[i]), ss = static_cast<A>(s[i]);
            head[i] = static_cast<T>(a * cc - b * ss);
            head[i + half] = static_cast<T>(b * cc + a * ss);
          }
        }
      }
    });
  });
}

const OnCpu version(rotary_embedding, rotate);

}  // namespace
}  // namespace tally::train::cpu
