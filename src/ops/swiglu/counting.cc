// swiglu.h on the counting device: a pass over each operand.
#include "src/ops/counting.h"
#include "src/ops/swiglu/swiglu.h"

namespace tally::train::counting {
namespace {

void forward(Stream& s, In h, Out y, Out) {
  pass(s, h, y);
}
void backward(Stream& s, In dy, In h, Out dh, Out) {
  pass(s, dy, h, dh);
}

const OnCounting versions[] = {{swiglu_forward, forward}, {swiglu_backward, backward}};

}  // namespace
}  // namespace tally::train::counting
