#include "src/ops/embedding/embedding.h"

#include "tests/train/cuda/both.h"

namespace tally::train {
namespace {

TEST_CASE("cuda: embedding_forward" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const int64_t c : {int64_t{64}, int64_t{57}}) {
      for (const double dropout : {0.0, 0.25}) {
        Both b(kind);
        const Pair ids = b.integers({3, 40}, 0, 99), wte = b.input({100, c}),
                   wpe = b.input({64, c});
        const Pair out = b.output({3, 40, c}), tokens_only = b.output({3, 40, c});
        embedding_forward(*b.cpu, {ids.cpu}, {wte.cpu, wpe.cpu}, {dropout, 9}, Out(out.cpu));
        embedding_forward(*b.gpu, {ids.gpu}, {wte.gpu, wpe.gpu}, {dropout, 9}, Out(out.gpu));
        CHECK_CLOSE(b, out, kind.tolerance);
        embedding_forward(*b.cpu, {ids.cpu}, {wte.cpu}, {dropout, 9}, Out(tokens_only.cpu));
        embedding_forward(*b.gpu, {ids.gpu}, {wte.gpu}, {dropout, 9}, Out(tokens_only.gpu));
        CHECK_CLOSE(b, tokens_only, kind.tolerance);
      }
    }
  }
}

// Few tokens: long runs over many chunks. Many: most occur once or never.
TEST_CASE("cuda: embedding_backward adds in a fixed order" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const int vocabulary : {1, 3, 50, 5000}) {
      for (const int64_t c : {int64_t{1032}, int64_t{57}}) {
        for (const double dropout : {0.0, 0.25}) {
          Both b(kind);
          const int64_t batch = 5, length = 101;
          const Pair ids = b.integers({batch, length}, 0, vocabulary - 1);
          const Pair dout = b.input({batch, length, c});
          const Pair dwte = b.sum({vocabulary, c}), dwpe = b.sum({128, c});
          const std::vector<double> before = Both::read(dwte.gpu, *b.gpu);
          embedding_backward(*b.cpu, {ids.cpu}, dout.cpu, {dropout, 3},
                             {Out(dwte.cpu), Out(dwpe.cpu)});
          embedding_backward(*b.gpu, {ids.gpu}, dout.gpu, {dropout, 3},
                             {Out(dwte.gpu), Out(dwpe.gpu)});
          INFO("vocabulary ", vocabulary, " columns ", c, " dropout ", dropout);
          CHECK_CLOSE(b, dwte, kind.tolerance);
          CHECK_CLOSE(b, dwpe, kind.tolerance);
          const std::vector<double> first = Both::read(dwte.gpu, *b.gpu);
          Both::write(dwte.gpu, *b.gpu, before);
          embedding_backward(*b.gpu, {ids.gpu}, dout.gpu, {dropout, 3},
                             {Out(dwte.gpu), Out(dwpe.gpu)});
          CHECK(Both::read(dwte.gpu, *b.gpu) == first);
        }
      }
    }
  }
}

// Many tokens at one position: long runs over many chunks. Documents: each position several times.
TEST_CASE("cuda: embeddings at given positions, added in a fixed order" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const int places : {1, 3, 128}) {
      for (const int64_t c : {int64_t{1032}, int64_t{57}}) {
        for (const double dropout : {0.0, 0.25}) {
          Both b(kind);
          const int64_t batch = 5, length = 101, vocabulary = 50;
          const Pair ids = b.integers({batch, length}, 0, vocabulary - 1);
          const Pair positions = b.integers({batch, length}, 0, places - 1);
          const Pair wte = b.input({vocabulary, c}), wpe = b.input({128, c});
          const Pair out = b.output({batch, length, c}), dout = b.input({batch, length, c});
          const Pair dwte = b.sum({vocabulary, c}), dwpe = b.sum({128, c});
          const Tensor before = b.copy_of(dwpe.gpu);
          INFO("places ", places, " columns ", c, " dropout ", dropout);
          embedding_forward(*b.cpu, {ids.cpu, positions.cpu}, {wte.cpu, wpe.cpu}, {dropout, 9},
                            Out(out.cpu));
          embedding_forward(*b.gpu, {ids.gpu, positions.gpu}, {wte.gpu, wpe.gpu}, {dropout, 9},
                            Out(out.gpu));
          CHECK_CLOSE(b, out, kind.tolerance);
          embedding_backward(*b.cpu, {ids.cpu, positions.cpu}, dout.cpu, {dropout, 3},
                             {Out(dwte.cpu), Out(dwpe.cpu)});
          embedding_backward(*b.gpu, {ids.gpu, positions.gpu}, dout.gpu, {dropout, 3},
                             {Out(dwte.gpu), Out(dwpe.gpu)});
          CHECK_CLOSE(b, dwte, kind.tolerance);
          CHECK_CLOSE(b, dwpe, kind.tolerance);
          const std::vector<double> first = Both::read(dwpe.gpu, *b.gpu);
          b.restore(dwpe, before);
          embedding_backward(*b.gpu, {ids.gpu, positions.gpu}, dout.gpu, {dropout, 3},
                             {Out(dwte.gpu), Out(dwpe.gpu)});
          CHECK(Both::read(dwpe.gpu, *b.gpu) == first);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tally::train
