#include "src/optim/optimizer_state.h"

namespace tally::train {

OptimizerState::OptimizerState(const ParameterTable& table, Stream& stream, OptimizerKind kind,
                               std::vector<FlatRange> ranges)
    : stream_(stream) {
  const Tensor weights = table.weights();
  const DType type = table.gradients().dtype;
  const bool whole = ranges.empty();
  if (whole) ranges = {{0, table.elements()}};
  int64_t elements = 0;
  for (const FlatRange& r : ranges) elements += r.count();
  const auto flat = [&](const char* what) {
    Tensor t(nullptr, type, {elements});
    t.data = stream.allocate(t.bytes(), what);
    stream.fill_zero(t.data, t.bytes());
    return t;
  };
  buffers_.kind = kind;
  owns_master_ = weights.dtype != type || !whole;
  buffers_.ranges = std::move(ranges);
  buffers_.master = owns_master_ ? flat("master weights") : weights;
  buffers_.first_moment = flat("first moments");
  if (kind != OptimizerKind::sgd) buffers_.second_moment = flat("second moments");
}

OptimizerState::~OptimizerState() {
  stream_.release(buffers_.second_moment.data);
  stream_.release(buffers_.first_moment.data);
  if (owns_master_) stream_.release(buffers_.master.data);
}

}  // namespace tally::train
