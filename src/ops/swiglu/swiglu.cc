#include "src/ops/swiglu/swiglu.h"

#include "src/ops/dispatch.h"
#include "src/ops/swiglu/backends.h"

namespace tally::train {

void swiglu_forward(Stream& s, const Tensor& h, const Tensor& y) {
  TALLY_BACKEND(s, swiglu_forward(s, h, y));
}

void swiglu_backward(Stream& s, const Tensor& dy, const Tensor& h, const Tensor& dh) {
  TALLY_BACKEND(s, swiglu_backward(s, dy, h, dh));
}

}  // namespace tally::train
