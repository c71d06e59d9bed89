#include "src/train/gathered_state.h"

#include <algorithm>

namespace tally::train {

GatheredState::GatheredState(const Sharding& sharding, const OptimizerBuffers& own,
                             const ParameterTable& table, Stream& stream, bool keep)
    : elements_(table.elements()) {
  // One range at a time, which needs little memory on the device.
  int64_t largest = 0;
  for (const Sharding::Range& r : sharding.ranges()) largest = std::max(largest, r.whole.count());
  Arena arena(stream);
  const Tensor staging = arena.make(own.master.dtype, {largest}, "the optimizer's state");
  const std::array<Tensor, 3> shares{own.master, own.first_moment, own.second_moment};
  for (size_t i = 0; i < shares.size(); ++i)
    buffers_[i] = gather(sharding, shares[i], elements_, staging, stream, keep);
}

GatheredState::Buffer GatheredState::gather(const Sharding& sharding, const Tensor& own,
                                            int64_t elements, const Tensor& staging, Stream& stream,
                                            bool keep) {
  Buffer buffer;
  if (keep) {
    buffer.bytes.resize(static_cast<size_t>(elements) * size_of(own.dtype));
    buffer.tensor = Tensor(buffer.bytes.data(), own.dtype, {elements});
  }
  int64_t at = 0;
  for (const Sharding::Range& r : sharding.ranges()) {
    const Tensor whole = staging.rows(0, r.whole.count());
    sharding.replicas().all_gather(stream, own.rows(at, r.own.count()), whole);
    at += r.own.count();
    if (keep)
      stream.copy(buffer.tensor.rows(r.whole.first, whole.numel()).data, whole.data, whole.bytes());
    stream.synchronize();
  }
  return buffer;
}

OptimizerBuffers GatheredState::buffers() const {
  return {buffers_[0].tensor, buffers_[1].tensor, buffers_[2].tensor, {{0, elements_}}};
}

}  // namespace tally::train
