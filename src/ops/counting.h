// Shared by the versions of operations for the counting device.
#pragma once

#include "src/device/compute_options.h"
#include "src/device/counting/counting_stream.h"

namespace tally::train::counting {

inline double real(int64_t n) {
  return static_cast<double>(n);
}

template <typename View>
double bytes_of(const View& v) {
  return v.defined() ? real(v.numel()) * static_cast<double>(size_of(v.dtype)) : 0;
}

// A pass that reads or writes each of these tensors once. Undefined ones do not count.
template <typename... Views>
void pass(Stream& s, const Views&... views) {
  counting_stream(s).count({.moved = (bytes_of(views) + ... + 0)});
}

// A GEMM out[rows, cols] = a[rows, inner] b[inner, cols] of this type, or `batch` of them, with the
// scratch that it needs on a GPU.
struct Gemm {
  int64_t rows = 0, cols = 0, inner = 0, batch = 1;
  double flops() const { return 2 * real(batch) * real(rows) * real(cols) * real(inner); }
};
// Counts the GEMM's scratch alone.
void need_scratch(const Compute& c, DType type, const Gemm& gemm);
void count_gemm(const Compute& c, DType type, const Gemm& gemm);

}  // namespace tally::train::counting
