#include "src/ops/loss/loss.h"

#include "src/ops/dispatch.h"
#include "src/ops/loss/backends.h"

namespace tally::train {

void cross_entropy(Stream& s, const Tensor& logits, const Tensor& labels, int64_t vocabulary,
                   bool backward, LossFactor factor, const StepState* state, const Tensor& losses) {
  TALLY_BACKEND(s, cross_entropy(s, logits, labels, vocabulary, backward, factor, state, losses));
}

void linear_cross_entropy(const Compute& c, const Tensor& x, const Tensor& w, const Tensor& labels,
                          int64_t vocabulary, LossFactor factor, const StepState* state,
                          const Tensor& losses, const Tensor& scales, const Tensor& e) {
  TALLY_BACKEND(c.stream, linear_cross_entropy(c, x, w, labels, vocabulary, factor, state, losses,
                                               scales, e));
}

bool linear_cross_entropy_pays(const Compute& c, const Tensor& x, const Tensor& w,
                               const Tensor& labels, int64_t vocabulary, const Tensor& losses,
                               const Tensor& scales, const Tensor& e) {
  return TALLY_BACKEND(c.stream,
                       linear_cross_entropy_pays(c, x, w, labels, vocabulary, losses, scales, e));
}

void cross_entropy_sums(Stream& s, const Tensor& logits, const Tensor& labels,
                        VocabularyColumns columns, const Tensor& sums) {
  TALLY_BACKEND(s, cross_entropy_sums(s, logits, labels, columns, sums));
}

void cross_entropy_from_sums(Stream& s, const Tensor& logits, const Tensor& labels,
                             VocabularyColumns columns, const Tensor& all_sums, bool backward,
                             LossFactor factor, const StepState* state, const Tensor& losses) {
  TALLY_BACKEND(s, cross_entropy_from_sums(s, logits, labels, columns, all_sums, backward, factor,
                                           state, losses));
}

void add_losses(Stream& s, const Tensor& losses, LossFactor factor, double* sum) {
  TALLY_BACKEND(s, add_losses(s, losses, factor, sum));
}

void add_correct(Stream& s, const Tensor& logits, const Tensor& labels, int64_t vocabulary,
                 double* correct) {
  TALLY_BACKEND(s, add_correct(s, logits, labels, vocabulary, correct));
}

}  // namespace tally::train
