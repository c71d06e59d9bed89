#include "src/nn/fp8.h"

namespace tally::train {

bool Fp8Magnitudes::gathers() const {
  return needed() && divided && tensor.divides();
}

Tensor Fp8Magnitudes::find(const Compute& c, const Tensor& x, bool found,
                           const Tensor& amaxes) const {
  if (!needed()) return {};
  if (!found) fp8_amax(c, x, Out(own(amaxes)));
  if (!gathers()) return amaxes.rows(0, 1);
  tensor.group->all_gather(c, scratch.amax, amaxes);
  return amaxes;
}

}  // namespace tally::train
