#include "src/ops/loss.h"

#include "src/ops/dispatch.h"

namespace tally::train {

void cross_entropy(Stream& s, const Tensor& logits, const Tensor& targets, int64_t vocabulary,
                   bool backward, double factor, const StepState* state, const Tensor& losses) {
  TALLY_BACKEND(s, cross_entropy(s, logits, targets, vocabulary, backward, factor, state, losses));
}

void add_losses(Stream& s, const Tensor& losses, double factor, StepState* state) {
  TALLY_BACKEND(s, add_losses(s, losses, factor, state));
}

}  // namespace tally::train
