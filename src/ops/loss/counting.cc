// loss.h on the counting device. The logits of a piece do not stay in a GPU's caches, so that what
// the GEMMs before and after the loss write and read of them is counted here.
#include "src/ops/counting.h"
#include "src/ops/loss/loss.h"

namespace tally::train::counting {
namespace {

// The GEMM writes the logits and this reads them; with a gradient this writes it, and the GEMMs
// that follow read it.
void loss(Stream& s, Out logits, Labels, std::optional<LossGradient> gradient, Out losses) {
  pass(s, logits, logits, losses);
  if (gradient) pass(s, logits, logits);
}

void fused(const Compute& c, const HeadOperands& head, LossGradient gradient,
           const HeadResults& results) {
  count_gemm(c, head.x.dtype,
             {.rows = head.x.dim(0), .cols = head.w.dim(0), .inner = head.w.dim(1)});
  loss(c.stream, results.e, head.labels, gradient, results.losses);
}

// The count assumes that it serves: timing decides on a GPU.
bool pays(const Compute& c, const HeadOperands& head, const HeadResults&) {
  const CountedDevice& counted = counting_stream(c.stream).counted();
  if (!counted.gpu) return head.x.dtype != DType::f16;
  return head.x.dtype == DType::bf16 && counted.capability == 90;
}

void sums(Stream& s, In logits, PartLabels, Out sums) {
  pass(s, logits, logits, sums);
}
void from_sums(Stream& s, const PartLogits& part, std::optional<LossGradient> gradient,
               Out losses) {
  pass(s, part.logits, part.all_sums, losses);
  if (gradient) pass(s, part.logits);
}

void add(Stream& s, In losses, LossFactor, double*) {
  pass(s, losses);
}
void correct(Stream& s, In logits, Labels, double*) {
  pass(s, logits);
}

const OnCounting versions[] = {{cross_entropy, loss},
                               {linear_cross_entropy, fused},
                               {linear_cross_entropy_pays, pays},
                               {cross_entropy_sums, sums},
                               {cross_entropy_from_sums, from_sums},
                               {add_losses, add},
                               {add_correct, correct}};

}  // namespace
}  // namespace tally::train::counting
