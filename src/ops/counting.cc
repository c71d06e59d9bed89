#include "src/ops/counting.h"

#include "src/ops/gemm/split_size.h"
#include "src/ops/tuned.h"

namespace tally::train::counting {

void need_scratch(const Compute& c, DType type, const Gemm& g) {
  CountingStream& s = counting_stream(c.stream);
  const bool splits = c.options.matmul_mode == MatmulMode::tf32x3 && type == DType::f32;
  if (!s.counted().gpu || !splits) return;
  const int64_t elements = split_size(g.batch, g.rows, g.cols, g.inner).all;
  s.need_split_memory(static_cast<size_t>(elements) * size_of(DType::f32));
}

void count_gemm(const Compute& c, DType type, const Gemm& g) {
  need_scratch(c, type, g);
  counting_stream(c.stream).count({.gemms = g.flops()});
}

namespace {

std::string nothing_tuned(Stream&) {
  return "";
}
void adopt_nothing(Stream&, const std::string&) {}

const OnCounting tuned_versions(tuned_algorithms, nothing_tuned);
const OnCounting adopt_versions(adopt_algorithms, adopt_nothing);

}  // namespace
}  // namespace tally::train::counting
