#include "src/plan/megatron.h"

#include <algorithm>

#include "src/plan/layout.h"
#include "src/plan/units.h"

namespace tally::train {

double megatron_activation_bytes(const Config& c) {
  const PlanLayout l = layout_of(c);
  const double t = l.tensor, h = real(c.model.hidden);
  const double sbh = real(c.sequence) * real(c.micro_batch) * h;
  const double scores = 5 * real(c.model.heads) * real(c.sequence) / h;
  const double outer = 10.0 / l.outer_shards();
  const double layer = c.recompute == Recompute::full        ? sbh * 2.0 / l.outer_shards()
                       : c.recompute == Recompute::selective ? sbh * (outer + 24 / t)
                                                             : sbh * (outer + (24 + scores) / t);
  // 1F1B: p micro batches at most; interleaved: more of them by 1 + (p - 1) / (p v).
  const double p = l.pipeline, v = real(l.chunks);
  const double stages = l.chunks > 1 ? p * (1 + (p - 1) / (p * v))
                                     : real(std::min<int64_t>(l.pipeline, l.micro_batches));
  return layer * real(layers_of_stage(c)) * stages;
}

}  // namespace tally::train
