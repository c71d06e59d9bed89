// The matrices whose casts to FP8 replicas gather instead of their weights (TableMemory::fp8_blocks).
// Each process casts what it has updated. The scale of a matrix is that of its largest magnitude in
// all processes, so that the bytes are those of a cast of the whole matrix.
#pragma once

#include <vector>

#include "src/optim/sharding.h"

namespace tally::train {

class Fp8Shares {
 public:
  // `tensor`: the processes that divide the matrices; null: this one has them. All outlive this.
  Fp8Shares(Stream& stream, const ParameterTable& table, const Sharding& sharding,
            Communicator* tensor);

  // Whether a range's bytes are gathered: all of its parameters are such matrices.
  bool has(const Sharding::Range& r) const;
  // The bytes of elements of such a range, u8.
  Tensor bytes(const FlatRange& range) const { return table_.fp8(range); }
  // Finds the magnitudes, and casts this process's shares to bytes(Range::own). Collective.
  void cast();

 private:
  // This process's share of a matrix, as a matrix of neighbours; it may be empty.
  struct Share {
    Tensor weights, amax, bytes;
  };

  Stream& stream_;
  const ParameterTable& table_;
  const Sharding& sharding_;
  Communicator* const tensor_;
  std::vector<Share> shares_;  // one of every matrix
  Arena arena_;
  Tensor scale_;  // scratch
};

}  // namespace tally::train
