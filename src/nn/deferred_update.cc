#include "src/nn/deferred_update.h"

namespace tally::train {

void DeferredUpdate::start(LayerContext* c, int64_t block) const {
  const auto piece = static_cast<size_t>(block);
  const int64_t first = pieces_[piece], last = pieces_[piece + 1];
  if (first == last) return;
  c->side->launch([&](Stream& stream) { update_(stream, first, last, sms_); });
  c->compute.options.reserved_sms = sms_;
}

void DeferredUpdate::finish(LayerContext* c) const {
  c->side->wait();
  c->compute.options.reserved_sms = 0;
}

}  // namespace tally::train
