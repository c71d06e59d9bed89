// LAMB over a parameter table: which elements belong to one parameter, and the norms of parameters
// that several processes have parts of. The formula is in src/ops/optimizer/optimizer.h.
#pragma once

#include "src/device/arena.h"
#include "src/nn/parameters.h"
#include "src/ops/optimizer/optimizer.h"
#include "src/optim/optimizer_state.h"
#include "src/optim/sharding.h"
#include "src/parallel/collectives/mesh.h"

namespace tally::train {

class Lamb {
 public:
  // `buffers`: what this process updates of `table`. `mesh` and `sharding` as for Optimizer. All of
  // them outlive this. Throws OutOfMemory.
  Lamb(const AdamW& hyper, const ParameterTable& table, const OptimizerBuffers& buffers,
       Stream& stream, const Mesh* mesh, const Sharding* sharding);

  // The step's gradients to new weights; collective over the processes that have parts of the same
  // parameters. Leaves the gradients undefined, or zero where `zero_gradients`. Enqueues only.
  //
  // The padding of the vocabulary stays as it is.
  //
  // The first and the last stage of a pipeline update their copies of a tied embedding each by
  // itself. Their trust ratios may differ by the rounding of a float64 sum.
  void step(const StepState* state, bool zero_gradients);

 private:
  void make_tables(const std::vector<LambPiece>& pieces, int64_t rows);

  const AdamW hyper_;
  Stream& stream_;
  Arena arena_;
  const LambBuffers buffers_;
  LambTables tables_;
  std::vector<Communicator*> sharers_;  // a parameter's; they add up sums of squares
};

}  // namespace tally::train
