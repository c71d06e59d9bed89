#include "src/ops/norm/norm.h"

#include "src/ops/dispatch.h"
#include "src/ops/norm/backends.h"

namespace tally::train {

void layernorm_forward(Stream& s, const Tensor& x, const Tensor& gamma, const Tensor& beta,
                       double epsilon, const Tensor& y, const Tensor& mean, const Tensor& rstd) {
  TALLY_BACKEND(s, layernorm_forward(s, x, gamma, beta, epsilon, y, mean, rstd));
}

void residual_layernorm_forward(Stream& s, const Tensor& x, const Tensor& delta,
                                const Tensor& gamma, const Tensor& beta, double epsilon,
                                double dropout, DropoutSeed seed, const Tensor& r, const Tensor& y,
                                const Tensor& mean, const Tensor& rstd) {
  TALLY_BACKEND(s, residual_layernorm_forward(s, x, delta, gamma, beta, epsilon, dropout, seed, r,
                                              y, mean, rstd));
}

void layernorm_backward(Stream& s, const Tensor& dy, const Tensor& x, const Tensor& gamma,
                        const Tensor& mean, const Tensor& rstd, const Tensor& residual_grad,
                        const Tensor& dx, const Tensor& dgamma, const Tensor& dbeta, double dropout,
                        DropoutSeed seed, const Tensor& ddelta, const Tensor& workspace,
                        const Tensor& dbias) {
  TALLY_BACKEND(s, layernorm_backward(s, dy, x, gamma, mean, rstd, residual_grad, dx, dgamma, dbeta,
                                      dropout, seed, ddelta, workspace, dbias));
}

void residual_forward(Stream& s, const Tensor& x, const Tensor& delta, double dropout,
                      DropoutSeed seed, const Tensor& r) {
  TALLY_BACKEND(s, residual_forward(s, x, delta, dropout, seed, r));
}

void apply_dropout(Stream& s, const Tensor& x, double dropout, DropoutSeed seed, const Tensor& y) {
  TALLY_BACKEND(s, apply_dropout(s, x, dropout, seed, y));
}

size_t layernorm_workspace(Stream& s, int64_t rows, int64_t columns) {
  return TALLY_BACKEND(s, layernorm_workspace(s, rows, columns));
}

}  // namespace tally::train
