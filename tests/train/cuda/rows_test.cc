#include "src/ops/rows/rows.h"

#include "tests/train/cuda/both.h"

namespace tally::train {
namespace {

TEST_CASE("cuda: chosen rows and rows of a table" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const int64_t c : {int64_t{64}, int64_t{57}}) {
      Both b(kind);
      const Pair x = b.input({9, c}), table = b.input({2, c}), types = b.integers({9}, 0, 1);
      const Pair rows = b.put({4}, DType::i32, DType::i32, {7, 0, 8, 3});
      const Pair out = b.output({4, c}), from = b.input({4, c});
      gather_rows(*b.cpu, x.cpu, rows.cpu, Out(out.cpu));
      gather_rows(*b.gpu, x.gpu, rows.gpu, Out(out.gpu));
      CHECK_CLOSE(b, out, kind.tolerance);
      add_to_rows(*b.cpu, from.cpu, rows.cpu, Out(x.cpu));
      add_to_rows(*b.gpu, from.gpu, rows.gpu, Out(x.gpu));
      CHECK_CLOSE(b, x, kind.tolerance);
      add_embedding(*b.cpu, types.cpu, table.cpu, Out(x.cpu));
      add_embedding(*b.gpu, types.gpu, table.gpu, Out(x.gpu));
      CHECK_CLOSE(b, x, kind.tolerance);
    }
  }
}

TEST_CASE("cuda: columns as rows over sequences, and back" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    Both b(kind);
    const Pair x = b.input({12, 2}), out = b.output({2, 3, 5}), dx = b.output({12, 2});
    const Pair firsts = b.put({3}, DType::i32, DType::i32, {0, 4, 7});
    const Pair lengths = b.put({3}, DType::i32, DType::i32, {3, 1, 5});
    columns_to_rows(*b.cpu, x.cpu, {firsts.cpu, lengths.cpu}, Out(out.cpu));
    columns_to_rows(*b.gpu, x.gpu, {firsts.gpu, lengths.gpu}, Out(out.gpu));
    CHECK(Both::read(out.gpu, *b.gpu) == Both::read(out.cpu, *b.cpu));
    const Pair g = b.input({2, 3, 5});
    rows_to_columns(*b.cpu, g.cpu, {firsts.cpu, lengths.cpu}, Out(dx.cpu));
    rows_to_columns(*b.gpu, g.gpu, {firsts.gpu, lengths.gpu}, Out(dx.gpu));
    CHECK(Both::read(dx.gpu, *b.gpu) == Both::read(dx.cpu, *b.cpu));
  }
}

TEST_CASE("cuda: activations of heads" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const Activation activation : {Activation::tanh, Activation::relu}) {
      Both b(kind);
      const Pair x = b.input({9, 57}), y = b.output({9, 57}), dy = b.input({9, 57});
      activation_forward(*b.cpu, activation, x.cpu, Out(y.cpu));
      activation_forward(*b.gpu, activation, x.gpu, Out(y.gpu));
      CHECK_CLOSE(b, y, kind.tolerance);
      activation_backward(*b.cpu, activation, dy.cpu, y.cpu, Out(dy.cpu));
      activation_backward(*b.gpu, activation, dy.gpu, y.gpu, Out(dy.gpu));
      CHECK_CLOSE(b, dy, 2 * kind.tolerance);
    }
  }
}

}  // namespace
}  // namespace tally::train
