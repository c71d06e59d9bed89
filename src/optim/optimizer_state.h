// The optimizer's state of every parameter: master weights and moments, as flat buffers with the
// parameter table's offsets.
#pragma once

#include "src/nn/parameters.h"

namespace tally::train {

// Elements [first, last) of the table's flat buffers.
struct FlatRange {
  int64_t first = 0, last = 0;
};

// Views; f32, or f64 for f64. All undefined without an optimizer.
struct OptimizerBuffers {
  // The weights to which updates are added. In f32 and f64 the table's weights themselves.
  Tensor master;
  Tensor first_moment, second_moment;
  // The elements of the table's flat buffers that the three hold, one range after the other: all of
  // them unless processes share the state.
  std::vector<FlatRange> ranges;
};

// Owns them, on the stream's device. Moments start at zero; master weights of 16-bit types are
// written with the weights (ParameterTable::initialize, a checkpoint).
class OptimizerState {
 public:
  // `table` was laid out on `stream`; both outlive this. Throws OutOfMemory.
  OptimizerState(const ParameterTable& table, Stream& stream);
  ~OptimizerState();
  OptimizerState(const OptimizerState&) = delete;
  OptimizerState& operator=(const OptimizerState&) = delete;

  const OptimizerBuffers& buffers() const { return buffers_; }

 private:
  Stream& stream_;
  OptimizerBuffers buffers_;
  bool owns_master_ = false;
};

}  // namespace tally::train
