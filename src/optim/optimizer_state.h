// The optimizer's state of every parameter: master weights and moments, as flat buffers with the
// parameter table's offsets. Under ZeRO (sharding.h) that of this process's shares.
#pragma once

#include "src/config/config.h"
#include "src/nn/parameters.h"

namespace tally::train {

// Views; f32, or f64 for f64. All undefined without an optimizer.
struct OptimizerBuffers {
  OptimizerKind kind = OptimizerKind::adam;
  // The weights to which updates are added. In f32 and f64 the table's weights themselves, unless
  // processes share the state: then a copy of this process's.
  Tensor master;
  // SGD's momentum is the first moment; it has no second one.
  Tensor first_moment, second_moment;
  // The elements of the table's flat buffers that the three hold, one range after the other: all of
  // them unless processes share the state.
  std::vector<FlatRange> ranges;
};

// Owns the buffers, on the stream's device. Moments start at zero; master weights that are
// not the table's are written with the weights (ParameterTable::initialize, a checkpoint).
class OptimizerState {
 public:
  // `table` was laid out on `stream`; both outlive this. `ranges`: what the state is kept of, where
  // processes share it; empty: all. Throws OutOfMemory.
  OptimizerState(const ParameterTable& table, Stream& stream, OptimizerKind kind,
                 std::vector<FlatRange> ranges = {});
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
