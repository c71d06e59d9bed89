// norm.h on the counting device: a pass over each operand.
#include "src/ops/counting.h"
#include "src/ops/norm/norm.h"

namespace tally::train::counting {
namespace {

void forward(Stream& s, In x, NormWeights, NormOutputs out) {
  pass(s, x, out.y, out.mean, out.rstd);
}

void residual_norm(Stream& s, ResidualSum sum, NormWeights, Out r, NormOutputs out) {
  pass(s, sum.x, sum.delta, r, out.y, out.mean, out.rstd);
}

void residual(Stream& s, ResidualSum sum, Out r) {
  pass(s, sum.x, sum.delta, r);
}

void dropout(Stream& s, In x, DropoutMask, Out y) {
  pass(s, x, y);
}

void backward(Stream& s, const NormOperands& in, const NormGradients& out) {
  pass(s, in.dy, in.x, in.mean, in.rstd, in.residual_grad, out.dx, out.ddelta);
}

const OnCounting versions[] = {{layernorm_forward, forward},
                               {residual_layernorm_forward, residual_norm},
                               {residual_forward, residual},
                               {apply_dropout, dropout},
                               {layernorm_backward, backward}};

}  // namespace
}  // namespace tally::train::counting
