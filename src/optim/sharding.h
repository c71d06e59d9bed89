// ZeRO (Rajbhandari et al., arXiv:1910.02054), Megatron-LM's distributed optimizer: the replicas of
// the model share the optimizer's state (ZeRO 1) and the gradients (ZeRO 2). The flat buffers are
// divided into ranges, which are gradient buckets and what lies between them. Each replica owns an
// equal share of every range: it gets the sum of that share's gradients, updates its weights, and
// all others get these from it.
#pragma once

#include <cstdint>
#include <vector>

#include "src/config/config.h"
#include "src/device/arena.h"
#include "src/nn/parameters.h"
#include "src/optim/gradient_buckets.h"
#include "src/parallel/collectives/communicator.h"

namespace tally::train {

// The arrangement of a table in which `replicas` processes can share every range evenly, in parts
// that start at multiples of 16 elements.
TableMemory sharded_memory(int replicas, bool shard_gradients);
// The same for a run. The matrices of blocks in FP8 are gathered as casts where they have one scale:
// the numbers of the weights' casts, in half of bf16's bytes.
TableMemory sharded_memory(const Config& config, int replicas);

class Sharding {
 public:
  struct Range {
    FlatRange whole;
    FlatRange own;                // this process's share of it
    std::vector<int> parameters;  // a bucket's, by their indices in the table; empty: no bucket
    Tensor gradient;              // gradient of `whole`, where backward passes compute it
    // The sum over all processes of the gradient of `own`: a part of `gradient`, or, for a bucket
    // under ZeRO 2, memory of its own, to which every micro batch adds.
    Tensor own_gradient;
    bool accumulates = false;  // the latter
  };

  struct Options {
    int64_t bucket_elements = 0;   // see gradient_buckets()
    bool shard_gradients = false;  // ZeRO 2: every block is a bucket
    // A parameter that is a range by itself; -1: none. Another stage of the pipeline has it, too,
    // and its table shares it in the same way.
    int alone = -1;
  };
  // `table` was allocated with sharded_memory() on `stream`; `final_order`: of its parameters, see
  // gradient_buckets(). All outlive this. Throws OutOfMemory.
  Sharding(Communicator& replicas, const ParameterTable& table, Stream& stream,
           const std::vector<int>& final_order, const Options& options);

  // All elements, in the order of the flat buffers.
  const std::vector<Range>& ranges() const { return ranges_; }
  // The ranges that this process owns, in the order of the flat buffers.
  std::vector<FlatRange> owned() const;
  Communicator& replicas() const { return replicas_; }
  // The sum of the gradient of this process's share of Options::alone; undefined without.
  Tensor alone() const;
  // Whether every micro batch's gradients are reduced (ZeRO 2); else those of a step are.
  bool shards_gradients() const { return shards_gradients_; }

 private:
  void add(const FlatRange& whole, std::vector<int> parameters);
  void add_rest(const FlatRange& rest);

  Communicator& replicas_;
  const ParameterTable& table_;
  const FlatRange alone_;  // empty: none
  const bool shards_gradients_;
  std::vector<Range> ranges_;
  Arena arena_;
};

}  // namespace tally::train
