#include "src/optim/optimizer_state.h"

namespace tally::train {

OptimizerState::OptimizerState(const ParameterTable& table, Stream& stream) : stream_(stream) {
  const Tensor weights = table.weights();
  const DType type = table.gradients().dtype;
  const auto flat = [&](const char* what) {
    Tensor t(nullptr, type, {table.elements()});
    t.data = stream.allocate(t.bytes(), what);
    stream.fill_zero(t.data, t.bytes());
    return t;
  };
  owns_master_ = weights.dtype != type;
  buffers_.ranges = {{0, table.elements()}};
  buffers_.master = owns_master_ ? flat("master weights") : weights;
  buffers_.first_moment = flat("first moments");
  buffers_.second_moment = flat("second moments");
}

OptimizerState::~OptimizerState() {
  stream_.release(buffers_.second_moment.data);
  stream_.release(buffers_.first_moment.data);
  if (owns_master_) stream_.release(buffers_.master.data);
}

}  // namespace tally::train
