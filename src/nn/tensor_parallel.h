// Tensor and sequence parallelism (Shoeybi et al., arXiv:1909.08053; Korthikanti et al.,
// arXiv:2205.05198): the processes of a group divide the GEMMs of a layer among themselves.
//   column parallel  w[N,K] by rows: each process computes N / shards columns of y, from all of x
//   row parallel     w[N,K] by columns: each process computes a part of every element of y from its
//                    K / shards columns of x, and the parts are added up
// Between a row-parallel and the next column-parallel GEMM every process holds all tokens and does
// the same work, or with sequence parallelism M / shards of the tokens: a "part". Any even division
// of the tokens would do, since nothing there looks at two of them; part s is rows s M / shards
// onwards.
#pragma once

#include "src/device/stream.h"
#include "src/device/tensor.h"
#include "src/parallel/collectives/communicator.h"

namespace tally::train {

struct TensorParallel {
  Communicator* group = nullptr;  // null: this process has the whole layer
  bool sequence = false;          // sequence parallelism
  // Memory of sequence parallelism, [M,C] each: all tokens of a part, all tokens of a second part
  // at the same time, and partial sums for all tokens.
  Tensor gathered, second, partial;
  // The same of parts that are cast to FP8, u8[M C], and of gradients; undefined where none are.
  Tensor gathered_casts, second_casts, gradient_casts;

  int shards() const { return group ? group->size() : 1; }
  int shard() const { return group ? group->rank() : 0; }
  bool divides() const { return shards() > 1; }

  // All tokens of `part`: itself, or `gathered` after it has been filled.
  Tensor gather(Stream& s, const Tensor& part) const;
  // The same to another of the memories above, where place_of_cast() is the place for the cast of
  // this process's part[M/shards,C]. Only with sequence parallelism.
  Tensor gather_to(Stream& s, const Tensor& memory, const Tensor& part) const;
  Tensor place_of_cast(const Tensor& memory, DType format, const Tensor& part) const;
  // Memory for the partial sums of all tokens whose sum over the processes goes to `part`.
  Tensor partial_of(const Tensor& part) const { return sequence ? partial : part; }
  // part = the sum over the processes of partial_of(part): of this process's tokens, or of all.
  void reduce(Stream& s, const Tensor& part) const;

  // The same; with sequence parallelism they overlap with what is enqueued later: before wait() the
  // result must not be read, nor the operand overwritten. start_gather() fills `second`.
  Tensor start_gather(Stream& s, const Tensor& part) const;
  Tensor start_gather_to(Stream& s, const Tensor& memory, const Tensor& part) const;
  void start_reduce(Stream& s, const Tensor& part) const;
  void wait(Stream& s) const;

 private:
  Tensor all_of(const Tensor& memory, DType type, const Tensor& part) const {
    return Tensor(memory.data, type, {shards() * part.dim(0), part.dim(1)});
  }
};

}  // namespace tally::train
