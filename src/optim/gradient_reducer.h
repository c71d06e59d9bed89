// Data parallelism: the gradients of all ranks are summed once a step, overlapped with the rest of
// the backward pass. Under ZeRO each rank gets the sum of its shares alone, once a step or, where
// the gradients are shared as well (ZeRO 2), after every backward pass.
#pragma once

#include <cstdint>
#include <vector>

#include "src/nn/parameters.h"
#include "src/optim/gradient_buckets.h"
#include "src/optim/reduction_groups.h"
#include "src/optim/sharding.h"
#include "src/parallel/collectives/communicator.h"

namespace tally::train {

// A bucket is reduced as soon as all its parameters are reported. With one rank nothing is done.
// A step allocates nothing, and all of it can be recorded in a CUDA graph.
class GradientReducer {
 public:
  // All of them outlive this. Gradients in no bucket are reduced at the end of a step. The weights
  // of a bucket have the same group.
  GradientReducer(const ReductionGroups& groups, Stream& stream, const ParameterTable& table,
                  const std::vector<GradientBucket>& buckets);
  // Reduces by reduce-scatter, in the ranges of `sharding`.
  GradientReducer(Stream& stream, const ParameterTable& table, const Sharding& sharding);

  // A backward pass begins, of the `first` micro batch of a step, the `last`, or both: calls of
  // ready() count from here on.
  void begin(bool first, bool last);
  // The gradient of a parameter is final in this backward pass.
  void ready(int parameter);
  // The backward pass has ended: later work may overwrite the gradients.
  void end();
  // The step's passes have ended. Reduces what is left; later work on the stream sees the sums. The
  // gradients of passes that never called ready() are all left.
  void finish();

 private:
  // The gradients that are reduced at a time.
  struct Part {
    FlatRange whole;
    Communicator* group = nullptr;
    std::vector<int> parameters;             // empty: no bucket
    const Sharding::Range* range = nullptr;  // null: an all-reduce
    size_t missing = 0;                      // missing `parameters` in this pass
    bool reduced = false;                    // in this step
  };

  GradientReducer(const ReductionGroups& groups, Stream& stream, const ParameterTable& table,
                  std::vector<Part> parts, bool every_pass);
  static std::vector<Part> parts_of(const ReductionGroups& groups, const ParameterTable& table,
                                    const std::vector<GradientBucket>& buckets);
  static std::vector<Part> parts_of(const Sharding& sharding);
  void start(Part* part);
  void reduce_rest();
  void reduce(const FlatRange& range);
  void wait();

  const std::vector<Communicator*> groups_;
  const bool alone_;  // every group is one rank
  Stream& stream_;
  const ParameterTable& table_;
  std::vector<Part> parts_;  // in the order of the flat buffer
  // Neighbours in the flat buffer whose weights have the same group, up to an element.
  struct Run {
    int64_t end;
    Communicator* group;
  };
  std::vector<Run> runs_;
  const bool every_pass_;
  std::vector<int> part_of_;  // each parameter's; -1: none
  bool armed_ = false, first_ = true;
};

}  // namespace tally::train
