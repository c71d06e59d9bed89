// Parts of the loops of the CPU's operations, written so that the compiler vectorizes them: an
// exponential without a call, and sums in lanes of fixed number. A loop's last bits depend on the
// CPU: the compiler fuses multiplications with additions where the CPU has such instructions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// A function with this mark is compiled for AVX-512, for AVX2 and for every CPU of its kind; the
// program takes the best one that runs here when it starts. Sanitizers look at one version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define TALLY_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TALLY_CLONES
#endif
// Part of a function with the mark above, and compiled as it is.
#define TALLY_INLINE inline __attribute__((always_inline))

namespace tally::train::cpu {

// exp(x) within 2 units in the last place; 0 and infinity beyond float32's range; NaN for NaN.
// Cephes' expf (S. Moshier): x = n ln 2 + r, and a polynomial of r.
TALLY_INLINE float exponential(float x) {
  constexpr float log2_e = 1.44269504088896341F, to_nearest = 12582912.0F;  // 1.5 * 2^23
  constexpr float ln2_high = 0.693359375F, ln2_low = -2.12194440e-4F;
  x = x < -104.0F ? -104.0F : x;
  x = x > 89.0F ? 89.0F : x;
  const float rounded = x * log2_e + to_nearest, n = rounded - to_nearest;
  const float r = (x - n * ln2_high) - n * ln2_low;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float e = (p * r) * r + r + 1.0F;
  // 2^n in two factors, because 2^-149 and 2^128 are no normal numbers.
  const int32_t whole = std::bit_cast<int32_t>(rounded) - std::bit_cast<int32_t>(to_nearest);
  const int32_t half = whole >> 1;
  const float first = std::bit_cast<float>((half + 127) << 23);
  const float second = std::bit_cast<float>((whole - half + 127) << 23);
  return e * first * second;
}
TALLY_INLINE double exponential(double x) {
  return std::exp(x);
}

inline constexpr int64_t lanes = 8;

// The sum of f(i) over [0, n) in double, in eight sums of every eighth: a single one would wait for
// every addition.
template <typename F>
TALLY_INLINE double sum_in_lanes(int64_t n, F&& f) {
  double sum[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int64_t k = 0; k < lanes; ++k) sum[k] += static_cast<double>(f(i + k));
  for (; i < n; ++i) sum[0] += static_cast<double>(f(i));
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

// The largest of x[0 ... n). NaN is passed over, unless nothing else is there.
template <typename T>
TALLY_INLINE T maximum(const T* x, int64_t n) {
  constexpr int64_t wide = 16;
  T top[wide];
  for (T& t : top) t = -std::numeric_limits<T>::infinity();
  int64_t i = 0;
  for (; i + wide <= n; i += wide)
    for (int64_t k = 0; k < wide; ++k) top[k] = x[i + k] > top[k] ? x[i + k] : top[k];
  for (; i < n; ++i) top[0] = x[i] > top[0] ? x[i] : top[0];
  T most = top[0];
  for (const T& t : top) most = t > most ? t : most;
  return most;
}

}  // namespace tally::train::cpu
