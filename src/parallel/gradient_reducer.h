// Data parallelism: the gradients of all ranks added once a step, while the rest of the backward
// pass runs.
#pragma once

#include <utility>
#include <vector>

#include "src/parallel/communicator.h"

namespace tally::train {

// Gradients are final in an order that the model knows; it reports them (ready), and every `bucket`
// of neighbours is added at once, beside what follows. With one rank nothing is done. Nothing is
// allocated after the first step, and everything can be recorded in a CUDA graph.
class GradientReducer {
 public:
  // `gradients`: the flat buffer (f32 or f64), rank 1; it and the communicator outlive this.
  // `bucket`: elements that are worth a message of their own; 0: all at the end.
  GradientReducer(Communicator& communicator, Stream& stream, const Tensor& gradients,
                  int64_t bucket);

  // The last backward pass of a step begins: from here on ready() counts.
  void begin();
  // A tensor within the flat buffer will not change any more in this step.
  void ready(const Tensor& gradient);
  // Adds what is left; later work on the stream sees the sums. The gradients of a step that never
  // called ready() are all left.
  void finish();

 private:
  void flush();
  Tensor range(int64_t begin, int64_t end) const;

  Communicator& communicator_;
  Stream& stream_;
  const Tensor gradients_;
  const int64_t bucket_;
  bool armed_ = false;
  int64_t begin_ = 0, end_ = 0;                       // reported and not yet sent; a range
  std::vector<std::pair<int64_t, int64_t>> reduced_;  // sent, from and to
};

}  // namespace tally::train
