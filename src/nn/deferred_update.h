// The deferred update: the optimizer updates most parameters during the next step's forward pass.
// The forward pass of a step's first micro batch starts the update of a piece of the flat buffers
// after each block's attention, on a side stream and on a few reserved SMs. The GEMMs up to the
// next attention do not use those SMs. Attention uses every SM, so it waits for the piece before
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "src/nn/context.h"

namespace tally::train {

class DeferredUpdate {
 public:
  // Updates elements [first, last) of the flat buffers from the last step's gradients, on `stream`
  // and on so many SMs (0: all).
  using Update = std::function<void(Stream& stream, int64_t first, int64_t last, int sms)>;

  // `pieces`: piece l, which overlaps with block l, is [pieces[l], pieces[l + 1]). `sms`: how many
  // a piece takes on a GPU.
  DeferredUpdate(std::vector<int64_t> pieces, int sms) : pieces_(std::move(pieces)), sms_(sms) {}

  // The range of all pieces; empty when equal.
  int64_t first() const { return pieces_.front(); }
  int64_t last() const { return pieces_.back(); }
  void set(Update update) { update_ = std::move(update); }
  bool active() const { return static_cast<bool>(update_); }

  // Starts piece `block` and reserves its SMs in c->compute.
  void start(LayerContext* c, int64_t block) const;
  // Makes the stream wait for the piece that was started, and releases its SMs.
  void finish(LayerContext* c) const;

 private:
  const std::vector<int64_t> pieces_;
  const int sms_;
  Update update_;
};

}  // namespace tally::train
