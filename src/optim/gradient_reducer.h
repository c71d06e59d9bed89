// Data parallelism: the gradients of all ranks are summed once a step, overlapped with the rest of
// the backward pass.
#pragma once

#include <cstdint>
#include <vector>

#include "src/nn/parameters.h"
#include "src/parallel/communicator.h"

namespace tally::train {

// Parameters whose gradients are reduced together, by their places in ParameterTable::all(), and
// the elements of the flat buffer that they cover.
struct GradientBucket {
  std::vector<int> parameters;
  int64_t begin = 0, end = 0;
};

// Buckets of at least `elements` each (but the last), of the parameters in the order in which their
// gradients become final. A bucket's parameters are neighbours in the flat buffer.
std::vector<GradientBucket> gradient_buckets(const ParameterTable& table,
                                             const std::vector<int>& final_order, int64_t elements);

// A bucket is reduced as soon as all its parameters are reported. With one rank nothing is done.
// Nothing is allocated in a step, and everything can be recorded in a CUDA graph.
class GradientReducer {
 public:
  // All of them outlive this. Gradients in no bucket are reduced at the end.
  GradientReducer(Communicator& communicator, Stream& stream, const ParameterTable& table,
                  std::vector<GradientBucket> buckets);

  // The last backward pass of a step begins: calls of ready() count from here on.
  void begin();
  // The gradient of a parameter is final in this step.
  void ready(int parameter);
  // Reduces what is left; later work on the stream sees the sums. The gradients of a step that
  // never called ready() are all left.
  void finish();

 private:
  struct Progress {
    size_t missing = 0;
    bool reduced = false;
  };

  Communicator& communicator_;
  Stream& stream_;
  const Tensor gradients_;  // flat, f32 or f64
  const std::vector<GradientBucket> buckets_;
  std::vector<int> bucket_of_;    // of each parameter; -1: none
  std::vector<size_t> by_place_;  // buckets in the order of the flat buffer
  std::vector<Progress> progress_;
  bool armed_ = false;
};

}  // namespace tally::train
