#include "src/ops/norm/norm.h"

#include <algorithm>

#include "tests/train/cuda/both.h"

namespace tally::train {
namespace {

// One warp a row in every number of vectors, two and four with places left empty and without,
// blocks a row, widths that no vector divides.
const std::vector<int64_t> widths = {8,    57,   256,  768,  1000, 1024, 1280,
                                     1600, 2048, 2049, 3592, 4096, 5120, 12288};

struct Size {
  int64_t rows, columns;
};
// A few rows of every width, and so many of some that each of the GPU's warps goes from row to row
// several times.
std::vector<Size> sizes() {
  std::vector<Size> all;
  for (const int64_t c : widths) all.push_back({21, c});
  all.insert(all.end(), {{12001, 768}, {3001, 1600}, {1701, 5120}});
  return all;
}

TEST_CASE("cuda: layernorm_forward" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const Size& size : sizes()) {
      const int64_t rows = size.rows, c = size.columns;
      Both b(kind);
      const Pair x = b.input({rows, c}), gamma = b.input({c}), beta = b.input({c}),
                 y = b.output({rows, c});
      const Pair mean = b.statistics({rows}), rstd = b.statistics({rows});
      layernorm_forward(*b.cpu, x.cpu, {gamma.cpu, beta.cpu, 1e-5},
                        {Out(y.cpu), Out(mean.cpu), Out(rstd.cpu)});
      layernorm_forward(*b.gpu, x.gpu, {gamma.gpu, beta.gpu, 1e-5},
                        {Out(y.gpu), Out(mean.gpu), Out(rstd.gpu)});
      INFO("rows ", rows, " columns ", c);
      CHECK_CLOSE(b, y, kind.tolerance);
      CHECK_CLOSE(b, mean, 1e-5);
      CHECK_CLOSE(b, rstd, 1e-5);
    }
  }
}

TEST_CASE("cuda: residual_layernorm_forward, with dropout" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const Size& size : sizes()) {
      const int64_t rows = size.rows, c = size.columns;
      for (const double dropout : {0.0, 0.3}) {
        if (rows > 21 && dropout == 0) continue;
        Both b(kind);
        const Pair x = b.input({rows, c}), delta = b.input({rows, c}), gamma = b.input({c}),
                   beta = b.input({c});
        const Pair r = b.output({rows, c}), y = b.output({rows, c});
        const Pair mean = b.statistics({rows}), rstd = b.statistics({rows});
        residual_layernorm_forward(*b.cpu, {x.cpu, delta.cpu, {dropout, 77}},
                                   {gamma.cpu, beta.cpu, 1e-5}, Out(r.cpu),
                                   {Out(y.cpu), Out(mean.cpu), Out(rstd.cpu)});
        residual_layernorm_forward(*b.gpu, {x.gpu, delta.gpu, {dropout, 77}},
                                   {gamma.gpu, beta.gpu, 1e-5}, Out(r.gpu),
                                   {Out(y.gpu), Out(mean.gpu), Out(rstd.gpu)});
        INFO("rows ", rows, " columns ", c, " dropout ", dropout);
        CHECK_CLOSE(b, r, kind.tolerance);
        CHECK_CLOSE(b, y, kind.tolerance);
      }
    }
  }
}

TEST_CASE("cuda: layernorm_backward" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const int64_t c : widths) {
      // For wide rows the CPU would be slow: of those only the warps that share a row.
      const int64_t most = c <= 2000 ? 3000 : c == 4096 ? 801 : 5;
      for (int64_t rows = 5; rows <= most; rows += std::max<int64_t>(most - 5, 1)) {
        Both b(kind);
        const Pair dy = b.input({rows, c}), x = b.input({rows, c}), gamma = b.input({c}),
                   beta = b.input({c});
        const Pair y = b.output({rows, c}), mean = b.statistics({rows}),
                   rstd = b.statistics({rows});
        layernorm_forward(*b.cpu, x.cpu, {gamma.cpu, beta.cpu, 1e-5},
                          {Out(y.cpu), Out(mean.cpu), Out(rstd.cpu)});
        layernorm_forward(*b.gpu, x.gpu, {gamma.gpu, beta.gpu, 1e-5},
                          {Out(y.gpu), Out(mean.gpu), Out(rstd.gpu)});
        const Pair dx = b.output({rows, c}), ddelta = b.output({rows, c});
        const Pair dgamma = b.sum({c}), dbeta = b.sum({c}), residual = b.input({rows, c}),
                   dbias = b.sum({c});
        INFO("rows ", rows, " columns ", c);
        // Alone; then with the residual's gradient, in its memory, and dropout's mask.
        layernorm_backward(*b.cpu, {dy.cpu, x.cpu, gamma.cpu, mean.cpu, rstd.cpu},
                           {Out(dx.cpu), Out(dgamma.cpu), Out(dbeta.cpu), Out(dbias.cpu)});
        layernorm_backward(*b.gpu, {dy.gpu, x.gpu, gamma.gpu, mean.gpu, rstd.gpu},
                           {Out(dx.gpu), Out(dgamma.gpu), Out(dbeta.gpu), Out(dbias.gpu)});
        CHECK_CLOSE(b, dx, kind.tolerance);
        layernorm_backward(*b.cpu, {dy.cpu, x.cpu, gamma.cpu, mean.cpu, rstd.cpu, residual.cpu},
                           {Out(residual.cpu),
                            Out(dgamma.cpu),
                            Out(dbeta.cpu),
                            Out(dbias.cpu),
                            Out(ddelta.cpu),
                            {0.2, 5}});
        layernorm_backward(*b.gpu, {dy.gpu, x.gpu, gamma.gpu, mean.gpu, rstd.gpu, residual.gpu},
                           {Out(residual.gpu),
                            Out(dgamma.gpu),
                            Out(dbeta.gpu),
                            Out(dbias.gpu),
                            Out(ddelta.gpu),
                            {0.2, 5}});
        CHECK_CLOSE(b, residual, kind.tolerance);
        CHECK_CLOSE(b, ddelta, kind.tolerance);
        CHECK_CLOSE(b, dgamma, kind.tolerance);
        CHECK_CLOSE(b, dbeta, kind.tolerance);
        CHECK_CLOSE(b, dbias, kind.tolerance);
      }
    }
  }
}

TEST_CASE("cuda: RMSNorm, forward and backward" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const Size& size : sizes()) {
      const int64_t rows = size.rows, c = size.columns;
      const double dropout = rows > 21 ? 0.3 : 0;
      Both b(kind);
      const Tensor none;
      const Pair x = b.input({rows, c}), delta = b.input({rows, c}), gamma = b.input({c});
      const Pair r = b.output({rows, c}), y = b.output({rows, c}), rstd = b.statistics({rows});
      INFO("rows ", rows, " columns ", c);
      residual_layernorm_forward(*b.cpu, {x.cpu, delta.cpu, {dropout, 77}}, {gamma.cpu, none, 1e-5},
                                 Out(r.cpu), {Out(y.cpu), Out(none), Out(rstd.cpu)});
      residual_layernorm_forward(*b.gpu, {x.gpu, delta.gpu, {dropout, 77}}, {gamma.gpu, none, 1e-5},
                                 Out(r.gpu), {Out(y.gpu), Out(none), Out(rstd.gpu)});
      CHECK_CLOSE(b, r, kind.tolerance);
      CHECK_CLOSE(b, y, kind.tolerance);
      CHECK_CLOSE(b, rstd, kind.type == DType::f64 ? 1e-12 : 1e-3);
      layernorm_forward(*b.cpu, x.cpu, {gamma.cpu, none, 1e-5},
                        {Out(y.cpu), Out(none), Out(rstd.cpu)});
      layernorm_forward(*b.gpu, x.gpu, {gamma.gpu, none, 1e-5},
                        {Out(y.gpu), Out(none), Out(rstd.gpu)});
      CHECK_CLOSE(b, y, kind.tolerance);
      CHECK_CLOSE(b, rstd, 1e-5);
      const Pair dy = b.input({rows, c}), residual = b.input({rows, c}), dx = b.output({rows, c});
      const Pair dgamma = b.sum({c}), ddelta = b.output({rows, c}), dbias = b.sum({c});
      layernorm_backward(*b.cpu, {dy.cpu, x.cpu, gamma.cpu, none, rstd.cpu, none},
                         {Out(dx.cpu), Out(dgamma.cpu)});
      layernorm_backward(*b.gpu, {dy.gpu, x.gpu, gamma.gpu, none, rstd.gpu, none},
                         {Out(dx.gpu), Out(dgamma.gpu)});
      CHECK_CLOSE(b, dx, kind.tolerance);
      CHECK_CLOSE(b, dgamma, kind.tolerance);
      layernorm_backward(
          *b.cpu, {dy.cpu, x.cpu, gamma.cpu, none, rstd.cpu, residual.cpu},
          {Out(dx.cpu), Out(dgamma.cpu), Out(none), Out(dbias.cpu), Out(ddelta.cpu), {0.2, 5}});
      layernorm_backward(
          *b.gpu, {dy.gpu, x.gpu, gamma.gpu, none, rstd.gpu, residual.gpu},
          {Out(dx.gpu), Out(dgamma.gpu), Out(none), Out(dbias.gpu), Out(ddelta.gpu), {0.2, 5}});
      CHECK_CLOSE(b, dx, kind.tolerance);
      CHECK_CLOSE(b, ddelta, kind.tolerance);
      CHECK_CLOSE(b, dgamma, kind.tolerance);
      CHECK_CLOSE(b, dbias, kind.tolerance);
    }
  }
}

}  // namespace
}  // namespace tally::train
