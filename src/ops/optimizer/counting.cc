// optimizer.h on the counting device: a pass over each operand.
#include "src/ops/counting.h"
#include "src/ops/optimizer/optimizer.h"

namespace tally::train::counting {
namespace {

void norm(Stream& s, In gradients, StepState*) {
  pass(s, gradients);
}
void finish(Stream&, StepState*) {}

void add(Stream& s, In from, Out to) {
  pass(s, from, to, to);
}

// Gradients are read; master weights and moments are read and written; weights are written where
// they are not the master weights.
void update(Stream& s, const FlatUpdate& u) {
  const bool rounds = u.weights.data != u.master.data;
  pass(s, u.gradients, u.master, u.master, u.m, u.m, u.v, u.v, rounds ? u.weights : Out(),
       u.zero_gradients ? u.gradients : Out());
}
void adamw(Stream& s, const AdamW&, const StepState*, const FlatUpdate& u, int) {
  update(s, u);
}
void sgd(Stream& s, double, const StepState*, const FlatUpdate& u) {
  update(s, u);
}

// The direction takes the gradient's place.
void direction(Stream& s, const AdamW&, const StepState*, const LambBuffers& b,
               const LambTables& tables) {
  pass(s, b.master, b.master, b.master, b.m, b.m, b.v, b.v, tables.piece_sums);
}
// The direction and the master weights are read, both and the weights are written.
void step(Stream& s, const StepState*, const LambBuffers& b, const LambTables& tables,
          bool zero_gradients) {
  const bool rounds = b.weights.data != b.master.data;
  const Tensor weights(b.weights.data, b.weights.dtype, {b.master.numel()});
  pass(s, b.master, b.master, b.master, rounds ? weights : Tensor(), tables.norms,
       zero_gradients ? b.master : Out());
}

const OnCounting versions[] = {{gradient_norm, norm},
                               {add_gradient_squares, norm},
                               {finish_gradient_norm, finish},
                               {add_gradients, add},
                               {adamw_step, adamw},
                               {sgd_step, sgd},
                               {lamb_direction, direction},
                               {lamb_step, step}};

}  // namespace
}  // namespace tally::train::counting
