#include "src/train/step/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace tally::train {

namespace {

// The flag that keeps the loss's scale up in an fp16 run; null: the scale falls as far as it helps.
const char* flag_of_scale(const Config& c) {
  if (c.precision != Precision::f16) return nullptr;
  if (c.loss_scale > 0) return "--loss-scale";
  return c.min_loss_scale > 1 ? "--min-loss-scale" : nullptr;
}

}  // namespace

std::string advice_for_divergence(const Config& c, bool updated) {
  const char* scale = flag_of_scale(c);
  if (!updated) {
    const bool wide = c.precision == Precision::f32 || c.precision == Precision::f64;
    return "no step has changed the weights yet, so that the learning rate is not the cause: " +
           (scale ? fmt::format("lower {} or ", scale) : "") +
           std::string(wide ? "start from other weights" : "train with --precision fp32");
  }
  std::vector<std::string> advice{"lower --lr", "lengthen the warm-up"};
  if (scale) advice.insert(advice.begin(), fmt::format("lower {}", scale));
  if (c.optimizer.clip == 0) advice.emplace_back("clip gradients (--clip-grad 1)");
  switch (c.precision) {
    case Precision::f16:
      advice.emplace_back("train with --precision bf16 or fp32");
      break;
    case Precision::bf16:
    case Precision::tf32:
    case Precision::tf32x3:
      advice.emplace_back("train with --precision fp32");
      break;
    case Precision::f32:
    case Precision::f64:
      break;
  }
  const std::string last = advice.back();
  advice.pop_back();
  return fmt::format("{}{} or {}", fmt::join(advice, ", "), advice.size() > 1 ? "," : "", last);
}

}  // namespace tally::train
