// norm.h and head_norm.h on the counting device: a pass over each operand.
#include "src/ops/counting.h"
#include "src/ops/norm/head_norm.h"
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

// The heads of Q and K are read, kept and written.
void heads_forward(Stream& s, Out, const HeadNormWeights&, const SavedHeads& saved) {
  pass(s, saved.raw, saved.raw, saved.raw, saved.rstd);
}

void heads_backward(Stream& s, const HeadNormWeights&, const SavedHeads& saved,
                    const HeadNormGradients&) {
  pass(s, saved.raw, saved.raw, saved.raw, saved.rstd);
}

const OnCounting versions[] = {
    {head_norm_forward, heads_forward}, {head_norm_backward, heads_backward},
    {layernorm_forward, forward},       {residual_layernorm_forward, residual_norm},
    {residual_forward, residual},       {apply_dropout, dropout},
    {layernorm_backward, backward}};

}  // namespace
}  // namespace tally::train::counting
