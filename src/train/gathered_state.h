// Under ZeRO no process has all of the optimizer's state: one gets it together for a checkpoint.
#pragma once

#include <array>
#include <vector>

#include "src/optim/optimizer_state.h"
#include "src/optim/sharding.h"

namespace tally::train {

class GatheredState {
 public:
  // Collective over the replicas. `keep`: this process gets the state, in host memory.
  GatheredState(const Sharding& sharding, const OptimizerBuffers& own, const ParameterTable& table,
                Stream& stream, bool keep);
  // All elements of the table. Undefined where not kept.
  OptimizerBuffers buffers() const;

 private:
  struct Buffer {
    std::vector<char> bytes;
    Tensor tensor;
  };
  static Buffer gather(const Sharding& sharding, const Tensor& own, int64_t elements,
                       const Tensor& staging, Stream& stream, bool keep);

  const int64_t elements_;
  std::array<Buffer, 3> buffers_;
};

}  // namespace tally::train
