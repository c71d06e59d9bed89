// A divided vocabulary, and the addition to the residual stream alone, against the CPU.
#include "src/ops/embedding/embedding.h"
#include "src/ops/loss/loss.h"
#include "src/ops/norm/norm.h"
#include "src/ops/optimizer/optimizer.h"
#include "tests/train/cuda/both_states.h"

namespace tally::train {
namespace {

TEST_CASE("cuda: vocabulary-parallel cross-entropy" * NEEDS_GPU) {
  for (const Kind& kind : types())
    for (const int64_t width : {int64_t{25216}, int64_t{57}, int64_t{1024}})
      for (const VocabularyColumns columns :
           {VocabularyColumns{0, width}, VocabularyColumns{width, width - 30},
            VocabularyColumns{2 * width, 0}}) {
        Both b(kind);
        BothStates state(b);
        StepState values{};
        values.loss_scale = 8;
        state.set(values);
        const int64_t rows = 9, shards = 2;
        const Pair logits = b.input({rows, width}, 3);
        const Pair targets = b.integers({rows}, -1, static_cast<int>(2 * width) - 31);
        const Pair sums = b.statistics({3, rows}), all = b.statistics({shards, 3, rows});
        const Pair losses = b.statistics({rows});
        INFO("width ", width, " first ", columns.first);
        cross_entropy_sums(*b.cpu, logits.cpu, {targets.cpu, columns}, Out(sums.cpu));
        cross_entropy_sums(*b.gpu, logits.gpu, {targets.gpu, columns}, Out(sums.gpu));
        if (columns.count == 0) {  // of nothing: -infinity, and sums of 0
          const std::vector<double> got = Both::read(sums.gpu, *b.gpu);
          for (size_t i = 0; i < got.size(); ++i)
            CHECK(got[i] == (i < static_cast<size_t>(rows) ? -INFINITY : 0.0));
          continue;
        }
        CHECK_CLOSE(b, sums.view({3 * rows}), kind.type == DType::f64 ? 1e-12 : 1e-5);
        // The same sums twice: the joint maximum is one of two equal ones.
        for (int64_t s = 0; s < shards; ++s) {
          b.cpu->copy(all.cpu.rows(s, 1).data, sums.cpu.data, sums.cpu.bytes());
          b.gpu->copy(all.gpu.rows(s, 1).data, sums.gpu.data, sums.gpu.bytes());
        }
        b.gpu->synchronize();
        cross_entropy_from_sums(*b.cpu, {Out(logits.cpu), {targets.cpu, columns}, all.cpu},
                                LossGradient{0.25, state.cpu()}, Out(losses.cpu));
        cross_entropy_from_sums(*b.gpu, {Out(logits.gpu), {targets.gpu, columns}, all.gpu},
                                LossGradient{0.25, state.gpu()}, Out(losses.gpu));
        CHECK_CLOSE(b, losses, kind.type == DType::f64 ? 1e-12 : 1e-5);
        CHECK_CLOSE(b, logits, kind.tolerance);
      }
}

TEST_CASE("cuda: rows of a divided embedding" * NEEDS_GPU) {
  for (const Kind& kind : types())
    for (const int64_t c : {int64_t{1032}, int64_t{57}})
      for (const int64_t first : {int64_t{0}, int64_t{20}, int64_t{40}}) {
        Both b(kind);
        const int64_t batch = 5, length = 101, vocabulary = 60, rows = 20;
        const VocabularyPart part{first, vocabulary};
        const Pair ids = b.integers({batch, length}, 0, static_cast<int>(vocabulary) - 1);
        const Pair wte = b.input({rows, c}), wpe = b.input({128, c});
        const Pair out = b.output({batch, length, c}), dout = b.input({batch, length, c});
        const Pair dwte = b.sum({rows, c}), dwpe = b.sum({128, c});
        INFO("first ", first, " columns ", c);
        embedding_forward(*b.cpu, {ids.cpu, {}, part}, {wte.cpu, wpe.cpu}, {0.25, 9}, Out(out.cpu));
        embedding_forward(*b.gpu, {ids.gpu, {}, part}, {wte.gpu, wpe.gpu}, {0.25, 9}, Out(out.gpu));
        CHECK_CLOSE(b, out, kind.tolerance);
        embedding_backward(*b.cpu, {ids.cpu, {}, part}, dout.cpu, {0.25, 3},
                           {Out(dwte.cpu), Out(dwpe.cpu)});
        embedding_backward(*b.gpu, {ids.gpu, {}, part}, dout.gpu, {0.25, 3},
                           {Out(dwte.gpu), Out(dwpe.gpu)});
        CHECK_CLOSE(b, dwte, kind.tolerance);
        CHECK_CLOSE(b, dwpe, kind.tolerance);
      }
}

TEST_CASE("cuda: the addition to the residual stream alone" * NEEDS_GPU) {
  for (const Kind& kind : types())
    for (const int64_t c : {int64_t{1032}, int64_t{57}})
      for (const double dropout : {0.0, 0.25}) {
        Both b(kind);
        const Pair x = b.input({7, c}), delta = b.input({7, c}), r = b.output({7, c});
        const Pair ddelta = b.output({7, c});
        residual_forward(*b.cpu, {x.cpu, delta.cpu, {dropout, 5}}, Out(r.cpu));
        residual_forward(*b.gpu, {x.gpu, delta.gpu, {dropout, 5}}, Out(r.gpu));
        CHECK_CLOSE(b, r, kind.tolerance);
        apply_dropout(*b.cpu, x.cpu, {dropout, 5}, Out(ddelta.cpu));
        apply_dropout(*b.gpu, x.gpu, {dropout, 5}, Out(ddelta.gpu));
        CHECK_CLOSE(b, ddelta, kind.tolerance);
      }
}

TEST_CASE("cuda: the norm of a gradient in parts" * NEEDS_GPU) {
  for (const DType type : {DType::f32, DType::f64}) {
    Both b(Kind{type, MatmulMode::ieee, "", 1e-5});
    BothStates state(b);
    StepState values{};
    values.loss_scale = 8;
    values.clip = 0.5;
    state.set(values);
    const Pair first = b.sum({70001}), second = b.sum({129});
    for (const Pair& part : {first, second}) {
      add_gradient_squares(*b.cpu, part.cpu, state.cpu());
      add_gradient_squares(*b.gpu, part.gpu, state.gpu());
    }
    finish_gradient_norm(*b.cpu, state.cpu());
    finish_gradient_norm(*b.gpu, state.gpu());
    const StepState got = state.read();
    CHECK(got.grad_norm == doctest::Approx(state.cpu()->grad_norm).epsilon(1e-6));
    CHECK(got.clip_factor == doctest::Approx(state.cpu()->clip_factor).epsilon(1e-6));
    CHECK(got.found_inf == 0);
  }
}

}  // namespace
}  // namespace tally::train
