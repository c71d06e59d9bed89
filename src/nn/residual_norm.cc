#include "src/nn/residual_norm.h"

#include "src/ops/linear/linear.h"
#include "src/ops/norm/norm.h"

namespace tally::train {

// y under the mask of the embeddings' dropout, and its gradient alike.
void ResidualNorm::mask_output(const LayerContext& c, const Dropout& dropout,
                               const Tensor& y) const {
  if (drops_output_ && dropout.hidden > 0)
    apply_dropout(c.compute, y, dropout.hidden, dropout.at(DropoutSite::embedding), y);
}

void ResidualNorm::norm(const LayerContext& c, const Dropout& dropout,
                        const NormActivations& a) const {
  layernorm_forward(c.compute, a.r, weight_.value, bias_.value, epsilon_, a.y, a.mean, a.rstd);
  mask_output(c, dropout, a.y);
}

namespace {

// The branch's output before its dropout, in `out`.
void compute_branch(const LayerContext& c, const Branch& branch, const Tensor& out) {
  if (!c.tensor.divides()) return branch.linear->forward(c, branch.x, out);
  branch.linear->forward_part(c, branch.x, c.tensor.partial_of(out));
  c.tensor.reduce(c.compute, out);
}

// Whether the GEMM adds the residual.
bool adds_residual(const LayerContext& c, const Dropout& dropout) {
  return dropout.hidden == 0 && c.fusions.residual && !c.tensor.divides();
}

}  // namespace

void ResidualNorm::add(const LayerContext& c, const Branch& branch, const Tensor& residual,
                       const Dropout& dropout, const Tensor& scratch, const Tensor& r) {
  if (adds_residual(c, dropout)) return branch.linear->forward(c, branch.x, r, residual);
  compute_branch(c, branch, scratch);
  residual_forward(c.compute, residual, scratch, dropout.hidden,
                   dropout.at(branch.site, branch.layer), r);
}

void ResidualNorm::backward_add(const LayerContext& c, const Branch& branch, const Dropout& dropout,
                                const BackwardFlow& flow) {
  if (dropout.hidden > 0)
    apply_dropout(c.compute, flow.residual, dropout.hidden, dropout.at(branch.site, branch.layer),
                  flow.branch);
  if (branch.bias_gradient.defined())
    linear_backward_bias(c.compute, flow.at_branch(dropout), 0, branch.bias_gradient);
}

// Without dropout the GEMM adds the residual, which saves writing and reading the branch's output.
void ResidualNorm::forward(const LayerContext& c, const Branch& branch, const Tensor& residual,
                           const Dropout& dropout, const Tensor& scratch,
                           const NormActivations& a) const {
  if (adds_residual(c, dropout)) {
    branch.linear->forward(c, branch.x, a.r, residual);
    norm(c, dropout, a);
    return;
  }
  compute_branch(c, branch, scratch);
  residual_layernorm_forward(c.compute, residual, scratch, weight_.value, bias_.value, epsilon_,
                             dropout.hidden, dropout.at(branch.site, branch.layer), a.r, a.y,
                             a.mean, a.rstd);
}

void ResidualNorm::backward(const LayerContext& c, const NormActivations& a, const Branch* branch,
                            const Dropout& dropout, bool last, const BackwardFlow& flow) const {
  mask_output(c, dropout, flow.normed);
  const bool masked = branch && dropout.hidden > 0;
  const bool has_bias = branch && branch->bias_gradient.defined();
  const bool sums = has_bias && c.fusions.bias_sums;
  layernorm_backward(c.compute, flow.normed, a.r, weight_.value, a.mean, a.rstd,
                     last || flow.post_norm ? Tensor() : flow.residual, flow.residual,
                     weight_.gradient, bias_.gradient, dropout.hidden,
                     masked ? dropout.at(branch->site, branch->layer) : DropoutSeed(),
                     masked ? flow.branch : Tensor(), c.workspace,
                     sums ? branch->bias_gradient : Tensor());
  if (has_bias && !sums)
    linear_backward_bias(c.compute, flow.at_branch(dropout), 0, branch->bias_gradient);
}

}  // namespace tally::train
