// fp8.h on the counting device.
#include "src/ops/counting.h"
#include "src/ops/fp8/fp8.h"

namespace tally::train::counting {
namespace {

void amax(Stream& s, In x, Out) {
  pass(s, x);
}
// Scales of columns need all rows first: x is read twice.
void cast(Stream& s, In x, In, Fp8Copies out) {
  if (out.scaling == Fp8Scaling::row && out.columns.defined()) pass(s, x);
  pass(s, x, out.rows, out.columns);
}

void complete(Stream& s, In, Fp8Copies out) {
  pass(s, out.rows, out.columns);
}

void gemm(const Compute& c, Fp8Matrix a, Fp8Matrix b, Out, Fp8Sum) {
  const Gemm g{.rows = a.data.dim(0), .cols = b.data.dim(0), .inner = a.data.dim(1)};
  counting_stream(c.stream).count({.fp8_gemms = g.flops()});
}

const OnCounting versions[] = {
    {fp8_amax, amax}, {fp8_cast, cast}, {fp8_complete, complete}, {fp8_gemm, gemm}};

}  // namespace
}  // namespace tally::train::counting
