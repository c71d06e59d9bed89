#include "src/nn/fp8.h"

namespace tally::train {

Tensor find_amaxes(const Compute& c, const TensorParallel& tensor, const Fp8Scratch& scratch,
                   const Tensor& x, bool divided, const Tensor& amaxes) {
  if (!divided || !tensor.divides()) {
    const Tensor one = amaxes.rows(0, 1);
    fp8_amax(c, x, Out(one));
    return one;
  }
  fp8_amax(c, x, Out(scratch.amax));
  tensor.group->all_gather(c, scratch.amax, amaxes);
  return amaxes;
}

}  // namespace tally::train
