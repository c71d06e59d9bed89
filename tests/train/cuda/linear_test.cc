#include "src/ops/linear/linear.h"

#include "src/ops/fp8/fp8.h"
#include "tests/train/cuda/both.h"

namespace tally::train {
namespace {

struct Shape {
  int64_t rows, out, in;
};
// Round sizes, sizes that no vector divides, a single row, many rows.
const std::vector<Shape> shapes = {{64, 128, 96}, {33, 57, 21}, {1, 8, 16}, {1030, 264, 72}};

TEST_CASE("cuda: linear_forward" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const Shape& n : shapes) {
      Both b(kind);
      const Pair x = b.input({n.rows, n.in}), w = b.input({n.out, n.in}), bias = b.input({n.out});
      const Pair y = b.output({n.rows, n.out}), plain = b.output({n.rows, n.out});
      linear_forward(*b.cpu, x.cpu, {w.cpu, bias.cpu}, Out(y.cpu), {});
      linear_forward(*b.gpu, x.gpu, {w.gpu, bias.gpu}, Out(y.gpu), {});
      CHECK_CLOSE(b, y, kind.tolerance);
      linear_forward(*b.cpu, x.cpu, {w.cpu}, Out(plain.cpu), {});
      linear_forward(*b.gpu, x.gpu, {w.gpu}, Out(plain.gpu), {});
      CHECK_CLOSE(b, plain, kind.tolerance);
    }
  }
}

TEST_CASE("cuda: linear_forward adds the residual" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const Shape& n : shapes) {
      for (const bool repeatable : {false, true}) {
        Both b(kind);
        b.gpu.options.deterministic = repeatable;
        const Pair x = b.input({n.rows, n.in}), w = b.input({n.out, n.in}), bias = b.input({n.out});
        const Pair y = b.output({n.rows, n.out});
        // In place first: the other variant is not tuned yet, and tuning it in place would add more
        // than once.
        for (const bool in_place : {true, false}) {
          const Pair residual = b.input({n.rows, n.out});
          const Pair& out = in_place ? residual : y;
          linear_forward(*b.cpu, x.cpu, {w.cpu, bias.cpu}, Out(out.cpu), residual.cpu);
          linear_forward(*b.gpu, x.gpu, {w.gpu, bias.gpu}, Out(out.gpu), residual.gpu);
          CHECK_CLOSE(b, out, kind.tolerance);
        }
      }
    }
  }
}

TEST_CASE("cuda: bias sums, of a range of columns and through a GEMM" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const Shape& n : shapes) {
      Both b(kind);
      const Pair dy = b.input({n.rows, 3 * n.out}), w = b.input({n.out, n.in}, 0.3);
      for (const int64_t first : {int64_t{0}, n.out, n.out + 1}) {
        const Pair db = b.sum({n.out});
        linear_backward_bias(*b.cpu, dy.cpu, first, Out(db.cpu));
        linear_backward_bias(*b.gpu, dy.gpu, first, Out(db.gpu));
        CHECK_CLOSE(b, db, kind.tolerance);
      }
      const Pair sums = b.sum({n.out}), db = b.sum({n.out}), dbx = b.sum({n.in});
      for (const bool through : {true, false}) {
        linear_backward_bias_input(*b.cpu, sums.cpu, w.cpu, Out(db.cpu),
                                   Out(through ? dbx.cpu : Tensor()));
        linear_backward_bias_input(*b.gpu, sums.gpu, w.gpu, Out(db.gpu),
                                   Out(through ? dbx.gpu : Tensor()));
      }
      CHECK_CLOSE(b, db, 1e-6);
      CHECK_CLOSE(b, dbx, 1e-5);
    }
  }
}

// The largest magnitudes that both passes find are those of what they store.
void check_largest(Both& b, const Pair& pre, const Pair& dy, MlpActivation kind) {
  Stream& s = *b.gpu.stream;
  const int64_t rows = pre.gpu.dim(0), columns = pre.gpu.dim(1);
  const Pair y = b.output({rows, columns}), dpre = b.output({rows, columns});
  const Pair found = b.put({1}, DType::f32, DType::f32, {7}),
             want = b.put({1}, DType::f32, DType::f32, {});
  const auto check = [&](const Tensor& result) {
    fp8_amax(s, result, Out(want.gpu));
    CHECK(Both::read(found.gpu, s) == Both::read(want.gpu, s));
  };
  mlp_activation_forward(s, pre.gpu, Out(y.gpu), kind, Out(found.gpu));
  check(y.gpu);
  mlp_activation_backward(s, dy.gpu, pre.gpu, kind, {Out(dpre.gpu), {}, Out(found.gpu)});
  check(dpre.gpu);
}

void check_activation(const Kind& kind, MlpActivation activation) {
  for (const Shape& n : shapes) {
    for (const bool repeatable : {false, true}) {
      Both b(kind);
      b.gpu.options.deterministic = repeatable;
      const Pair x = b.input({n.rows, n.in}), w = b.input({n.out, n.in}, 0.3),
                 bias = b.input({n.out});
      const Pair pre = b.output({n.rows, n.out}), y = b.output({n.rows, n.out});
      linear_activation_forward(*b.cpu, x.cpu, {w.cpu, bias.cpu}, {activation, SavedValue::input},
                                {Out(pre.cpu), Out(y.cpu)});
      linear_activation_forward(*b.gpu, x.gpu, {w.gpu, bias.gpu}, {activation, SavedValue::input},
                                {Out(pre.gpu), Out(y.gpu)});
      CHECK_CLOSE(b, pre, kind.tolerance);
      CHECK_CLOSE(b, y, kind.tolerance);
      const Pair slope = b.output({n.rows, n.out}), same = b.output({n.rows, n.out});
      linear_activation_forward(*b.cpu, x.cpu, {w.cpu, bias.cpu},
                                {activation, SavedValue::derivative},
                                {Out(slope.cpu), Out(same.cpu)});
      linear_activation_forward(*b.gpu, x.gpu, {w.gpu, bias.gpu},
                                {activation, SavedValue::derivative},
                                {Out(slope.gpu), Out(same.gpu)});
      CHECK_CLOSE(b, slope, kind.tolerance);
      CHECK_CLOSE(b, same, kind.tolerance);
      const Pair again = b.output({n.rows, n.out});
      mlp_activation_forward(*b.cpu, pre.cpu, Out(again.cpu), activation, {});
      mlp_activation_forward(*b.gpu, pre.gpu, Out(again.gpu), activation, {});
      CHECK_CLOSE(b, again, kind.tolerance);
      const Pair dy = b.input({n.rows, n.out}), dpre = b.output({n.rows, n.out}),
                 db = b.sum({n.out});
      mlp_activation_backward(*b.cpu, dy.cpu, pre.cpu, activation,
                              {Out(dpre.cpu), Out(db.cpu), {}});
      mlp_activation_backward(*b.gpu, dy.gpu, pre.gpu, activation,
                              {Out(dpre.gpu), Out(db.gpu), {}});
      CHECK_CLOSE(b, dpre, kind.tolerance);
      CHECK_CLOSE(b, db, kind.tolerance);
      if (kind.type != DType::f64) check_largest(b, pre, dy, activation);
    }
  }
}

TEST_CASE("cuda: linear_activation_forward, mlp_activation_forward and mlp_activation_backward" *
          NEEDS_GPU) {
  for (const Kind& kind : kinds())
    for (const MlpActivationEntry& entry : mlp_activations)
      if (!entry.gated) check_activation(kind, entry.kind);
}

TEST_CASE("cuda: linear_backward_input" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const Shape& n : shapes) {
      Both b(kind);
      const Pair dy = b.input({n.rows, n.out}), w = b.input({n.out, n.in}),
                 dx = b.output({n.rows, n.in});
      linear_backward_input(*b.cpu, dy.cpu, w.cpu, Out(dx.cpu), {});
      linear_backward_input(*b.gpu, dy.gpu, w.gpu, Out(dx.gpu), {});
      CHECK_CLOSE(b, dx, kind.tolerance);
      const Pair addend = b.input({n.rows, n.in}), sum = b.output({n.rows, n.in});
      linear_backward_input(*b.cpu, dy.cpu, w.cpu, Out(sum.cpu), addend.cpu);
      linear_backward_input(*b.gpu, dy.gpu, w.gpu, Out(sum.gpu), addend.gpu);
      CHECK_CLOSE(b, sum, kind.tolerance);
    }
  }
}

void check_activation_gradient(const Kind& kind, MlpActivation activation) {
  for (const Shape& n : shapes) {
    for (const SavedValue keeps : {SavedValue::input, SavedValue::derivative}) {
      for (const bool in_place : {false, true}) {
        Both b(kind);
        const Pair dy = b.input({n.rows, n.out}), w = b.input({n.out, n.in}),
                   pre = b.input({n.rows, n.in});
        const Pair db = b.sum({n.in});
        const Pair dpre = in_place ? pre : b.output({n.rows, n.in});
        linear_backward_input_activation(*b.cpu, dy.cpu, w.cpu, {pre.cpu, {activation, keeps}},
                                         {Out(dpre.cpu), Out(db.cpu)});
        linear_backward_input_activation(*b.gpu, dy.gpu, w.gpu, {pre.gpu, {activation, keeps}},
                                         {Out(dpre.gpu), Out(db.gpu)});
        CHECK_CLOSE(b, dpre, kind.tolerance);
        CHECK_CLOSE(b, db, kind.tolerance);
      }
    }
  }
}

TEST_CASE("cuda: linear_backward_input_activation, out of place and in place" * NEEDS_GPU) {
  for (const Kind& kind : kinds())
    for (const MlpActivationEntry& entry : mlp_activations)
      if (!entry.gated) check_activation_gradient(kind, entry.kind);
}

// More bytes than the second workspace holds, so several pieces of rows.
TEST_CASE("cuda: linear_backward_input_activation in place, in pieces" * NEEDS_GPU) {
  const Kind kind{DType::f32, MatmulMode::ieee, "f32", 1e-5};
  Both b(kind);
  const int64_t rows = 9000, in = 4096, out = 8;
  const Pair dy = b.input({rows, out}), w = b.input({out, in}), pre = b.input({rows, in}),
             db = b.sum({in});
  linear_backward_input_activation(*b.cpu, dy.cpu, w.cpu, {pre.cpu}, {Out(pre.cpu), Out(db.cpu)});
  linear_backward_input_activation(*b.gpu, dy.gpu, w.gpu, {pre.gpu}, {Out(pre.gpu), Out(db.gpu)});
  CHECK_CLOSE(b, pre, kind.tolerance);
  CHECK_CLOSE(b, db, kind.tolerance);
}

TEST_CASE("cuda: linear_backward_weight adds to the gradients" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const Shape& n : shapes) {
      Both b(kind);
      const Pair dy = b.input({n.rows, n.out}), x = b.input({n.rows, n.in});
      const Pair dw = b.sum({n.out, n.in}), db = b.sum({n.out});
      for (int turn = 0; turn < 2; ++turn) {  // the first call tunes, which must not change dw
        linear_backward_weight(*b.cpu, dy.cpu, x.cpu, {Out(dw.cpu), Out(db.cpu)});
        linear_backward_weight(*b.gpu, dy.gpu, x.gpu, {Out(dw.gpu), Out(db.gpu)});
      }
      CHECK_CLOSE(b, dw, kind.tolerance);
      CHECK_CLOSE(b, db, kind.tolerance);
      const Pair fresh = b.statistics({n.out, n.in});  // NaN where it is not overwritten
      for (int turn = 0; turn < 2; ++turn) {
        linear_backward_weight(*b.cpu, dy.cpu, x.cpu, {Out(fresh.cpu), {}, false});
        linear_backward_weight(*b.gpu, dy.gpu, x.gpu, {Out(fresh.gpu), {}, false});
      }
      CHECK_CLOSE(b, fresh, kind.tolerance);
    }
  }
}

}  // namespace
}  // namespace tally::train
