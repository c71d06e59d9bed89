// ZeRO: all processes get the new weights from those that updated them. The blocks' weights arrive
// during the forward pass of the next step, each bucket while the blocks before it compute; those
// that this pass reads in FP8 arrive as casts, and the weights themselves with all().
#pragma once

#include <vector>

#include "src/nn/parameters.h"
#include "src/optim/fp8_shares.h"
#include "src/optim/sharding.h"

namespace tally::train {

class WeightGather {
 public:
  // `tensor`: see Fp8Shares. All of them outlive this.
  WeightGather(Stream& stream, const ParameterTable& table, const Sharding& sharding,
               Communicator* tensor = nullptr);

  // Gathers all weights themselves, before whatever is enqueued later.
  void all();

  // Overlapped with a forward pass: begin() before it, needs() before a parameter of a bucket is
  // read for the first time, finish() after it. Buckets are needed in the order of the flat
  // buffers. Weights of no bucket are there after begin().
  void begin();
  void needs(int parameter);
  void finish();

 private:
  enum class Progress : uint8_t { missing, started, here };
  void start_next(size_t from);
  void wait();
  // Elements of a range in the form that begin() gathers.
  Tensor read(const Sharding::Range& r, const FlatRange& elements) const;

  Stream& stream_;
  const Sharding& sharding_;
  const Tensor weights_;
  Fp8Shares fp8_;
  std::vector<int> range_of_;       // each parameter's range; -1: in no bucket
  std::vector<Progress> progress_;  // each range's
  bool active_ = false;             // between begin() and finish()
};

}  // namespace tally::train
