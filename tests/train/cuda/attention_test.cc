#include <cstdlib>
#include <cstring>

#include "src/ops/gemm/float64.h"
#include "tests/train/cuda/attention_check.h"

namespace tally::train {
namespace {

TEST_CASE("cuda: attention, every type, mask and odd size" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const bool causal : {true, false}) {
      check(kind, shape_of(2, 64, 3, 16, causal, 0));
      check(kind, shape_of(5, 33, 2, 17, causal, 0));  // more batch than heads; no cuDNN
      check(kind, shape_of(1, 200, 2, 40, causal, 0));
    }
    check(kind, shape_of(1, 1, 1, 8, true, 0));
  }
}

TEST_CASE("cuda: our attention kernels draw the CPU's dropout mask" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) == 2) continue;  // cuDNN draws its own
    check(kind, shape_of(2, 48, 3, 16, true, 0.3));
    check(kind, shape_of(3, 20, 2, 12, false, 0.3));
  }
}

TEST_CASE("cuda: attention at GPT-2's head sizes" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) != 2) continue;
    for (const int64_t head_dim : {64, 80, 96, 128}) {
      for (const bool repeatable : {false, true}) {
        const std::string backend =
            check(kind, shape_of(2, 256, 2, head_dim, true, 0), {.repeatable = repeatable});
        WARN(backend == (on_hopper() && (head_dim == 64 || head_dim == 128) && !repeatable
                             ? "hopper"
                             : "cudnn"));
      }
    }
    check(kind, shape_of(1, 160, 2, 160, true, 0));
    check(kind, shape_of(1, 100, 3, 64, true, 0));
  }
}

// The flash kernels that should serve a kind of float32.
std::string flash(const Kind& kind, bool float64_gemms = true) {
  Both b(kind);
  const bool float64 = cuda::cuda_stream(*b.gpu).capability() == 90 &&
                       cuda::float64_gemms_built() && kind.mode == MatmulMode::ieee;
  return float64 && float64_gemms ? "flash-float64" : "flash";
}

// True where a block has the shared memory that heads of 128 need, as on Hopper.
bool wide_heads_fit() {
  Both b({DType::f32, MatmulMode::ieee, "f32", 1e-5});
  return cuda::cuda_stream(*b.gpu).capability() >= 90;
}

TEST_CASE("cuda: flash attention of float32 over several blocks" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    if (kind.type != DType::f32) continue;
    for (const bool float64 : {true, false}) {
      if (float64 && flash(kind) == "flash") continue;  // no such kernels here: the same twice
      const std::string name = flash(kind, float64);
      const auto serves = [&](const AttentionShape& a) {
        return check(kind, a, {.float64_gemms = float64});
      };
      for (const bool causal : {true, false}) {
        CHECK(serves(shape_of(2, 300, 2, 64, causal, 0)) == name);
        // Single values are copied; the last block is odd.
        CHECK(serves(shape_of(1, 257, 3, 50, causal, 0)) == name);
        for (const int64_t head_dim : {100, 128}) {
          const std::string wide = serves(shape_of(1, 200, 2, head_dim, causal, 0));
          if (wide_heads_fit()) CHECK(wide == name);
        }
      }
      CHECK(serves(shape_of(1, 192, 2, 64, true, 0.3)) == name);
      CHECK(serves(shape_of(1, 65, 1, 144, true, 0)) == "unfused");
    }
  }
}

// The option and the sums: within one block of keys float64 sums are exact except for the rounding
// of the result, and the probabilities are exact here.
TEST_CASE("cuda: flash attention of float32 takes float64 tensor cores where it may" * NEEDS_GPU) {
  const Kind kind{DType::f32, MatmulMode::ieee, "f32", 1e-5};
  if (flash(kind) != "flash-float64") return;
  const AttentionShape a = shape_of(1, 64, 2, 64, false, 0);
  for (const bool wanted : {true, false}) {
    Both b(kind);
    b.gpu.options.fusions.float64 = wanted;
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    std::vector<double> values(64 * 3 * 2 * 64);  // Q and K of zeros: every probability is 1 / 64
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = i / 128 % 3 == 2 ? rounded(normal(random), DType::f32) : 0;
    const Pair qkv = b.put({1, 64, 3, 2, 64}, DType::f64, DType::f32, values);
    const Pair out = b.output({1, 64, 2, 64}), stats = b.statistics({1, 2, 64});
    const Tensor work = b.scratch(attention_workspace(*b.gpu, a, kind.type));
    attention_forward(*b.cpu, packed_attention(a, qkv.cpu, {Out(out.cpu), Out(stats.cpu)}, {}, 11));
    attention_forward(*b.gpu,
                      packed_attention(a, qkv.gpu, {Out(out.gpu), Out(stats.gpu)}, Out(work), 11));
    const auto got = Both::read(out.gpu, *b.gpu), want = Both::read(out.cpu, *b.cpu);
    size_t nearest = 0;
    for (size_t i = 0; i < got.size(); ++i) nearest += got[i] == static_cast<float>(want[i]);
    CAPTURE(nearest);
    CHECK((nearest > got.size() * 99 / 100) == wanted);
  }
}

TEST_CASE("cuda: flash attention of float32 by three TF32 GEMMs where asked for" * NEEDS_GPU) {
  const Kind kind{DType::f32, MatmulMode::ieee, "f32", 1e-5};
  const AttentionShape a = shape_of(2, 200, 2, 64, true, 0.1);
  CHECK(check(kind, a, {.three_tf32 = true}) == "flash-tf32x3");
  CHECK(check(kind, a) == flash(kind));
}

// More than the second dimension of a grid, and more than one piece backward.
TEST_CASE("cuda: flash attention of float32, very many short heads" * NEEDS_GPU) {
  const Kind kind{DType::f32, MatmulMode::ieee, "f32", 1e-5};
  CHECK(check(kind, shape_of(70000, 2, 1, 4, true, 0)) == flash(kind));
}

// One head has 128 MiB of blocks of dS, so that three pass in two pieces.
TEST_CASE("cuda: flash attention of float32, more heads than fit" * NEEDS_GPU) {
  const AttentionShape a = shape_of(1, 8128, 3, 8, true, 0);
  Both b({DType::f32, MatmulMode::ieee, "f32", 1e-5});
  const Pair qkv = b.input({a.batch, a.tokens, 3, a.heads, a.head_dim}, 0.5);
  const Pair dout = b.input({a.batch, a.tokens, a.heads, a.head_dim});
  std::vector<std::vector<double>> results;
  for (const char* way : {"", "", "unfused"}) {
    setenv("TALLY_ATTENTION", way, 1);
    const Pair out = b.output({a.batch, a.tokens, a.heads, a.head_dim});
    const Pair stats = b.statistics({a.batch, a.heads, a.tokens});
    const Pair dqkv = b.output({a.batch, a.tokens, 3, a.heads, a.head_dim});
    const Tensor work = b.scratch(attention_workspace(*b.gpu, a, DType::f32));
    attention_forward(*b.gpu,
                      packed_attention(a, qkv.gpu, {Out(out.gpu), Out(stats.gpu)}, Out(work), 11));
    attention_backward(*b.gpu,
                       packed_attention(a, qkv.gpu, {Out(out.gpu), Out(stats.gpu)}, Out(work), 11),
                       packed_gradients(a, dout.gpu, Out(dqkv.gpu)));
    results.push_back(Both::read(dqkv.gpu, *b.gpu));
  }
  unsetenv("TALLY_ATTENTION");
  CHECK(results[0] == results[1]);  // repeatable to the bit
  double difference = 0, norm = 0;
  for (size_t i = 0; i < results[0].size(); ++i) {
    difference += std::pow(results[0][i] - results[2][i], 2);
    norm += std::pow(results[2][i], 2);
  }
  CHECK(std::sqrt(difference / norm) < 1e-5);
}

// The NaN of the CPU and that of the GPU, whose bits are all set: rounding up its last bits would
// make it a zero.
double not_a_number(bool of_gpu) {
  const uint64_t bits = of_gpu ? 0x7fffffffffffffffU : 0x7ff8000000000000U;
  double x = 0;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

TEST_CASE("cuda: attention preserves NaNs" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    if (kind.type != DType::f32) continue;
    for (int i = 0; i < 6; ++i) {
      const int which = i / 2;
      const bool of_gpu = i % 2 == 1;
      Both b(kind);
      const AttentionShape a = shape_of(1, 70, 1, 64, true, 0);
      std::vector<double> values(70 * 3 * 64, 0.5);
      const size_t at = (3 * size_t{40} + static_cast<size_t>(which)) * 64 + 7;
      values[at] = not_a_number(of_gpu);
      const Pair qkv = b.put({1, 70, 3, 1, 64}, DType::f64, DType::f32, values);
      const std::vector<double> zeros(70 * 64, 0.0);  // output() holds NaNs of its own
      const Tensor result = b.put({1, 70, 1, 64}, DType::f32, DType::f32, zeros).gpu;
      const Pair stats = b.statistics({1, 1, 70});
      attention_forward(
          *b.gpu, packed_attention(a, qkv.gpu, {Out(result), Out(stats.gpu)},
                                   Out(b.scratch(attention_workspace(*b.gpu, a, kind.type))), 11));
      const std::vector<double> got = Both::read(result, *b.gpu);
      INFO(std::string(kind.name), " in ", which, " of the GPU ", of_gpu);
      CHECK(std::isnan(got[40 * 64 + 7]));  // row 40, whichever of Q, K and V had it
      if (which < 2) CHECK_FALSE(std::isnan(got[39 * 64 + 7]));  // of V, 0 times NaN enters
    }
  }
}

TEST_CASE("cuda: unfused attention serves 16-bit types too" * NEEDS_GPU) {
  setenv("TALLY_ATTENTION", "unfused", 1);
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) != 2) {
      CHECK(check(kind, shape_of(2, 128, 4, 64, true, 0.1)) == "unfused");
      continue;
    }
    CHECK(check(kind, shape_of(2, 128, 4, 64, true, 0)) == "unfused");
    CHECK(check(kind, shape_of(2, 128, 4, 64, true, 0.1)) == "unfused");
  }
  unsetenv("TALLY_ATTENTION");
}

// Heads that go together lie in one sequence, or in all of the batch.
TEST_CASE("cuda: attention within documents, every type, mask and dropout" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const bool causal : {true, false}) {
      for (const double dropout : {0.0, 0.3}) {
        const auto served = [&](const AttentionShape& a, const std::vector<int64_t>& lengths) {
          return check(kind, a, {}, lengths);
        };
        CHECK(served(shape_of(2, 150, 3, 20, causal, dropout), {1, 60, 89, 149, 1}) == "unfused");
        CHECK(served(shape_of(5, 33, 2, 64, causal, dropout),
                     {33, 1, 1, 1, 30, 16, 17, 32, 1, 10, 23}) == "unfused");
        CHECK(served(shape_of(1, 128, 2, 64, causal, dropout), {128}) == "unfused");
      }
    }
  }
}

// More documents are announced than there are, and the longest is no multiple of a tile.
TEST_CASE("cuda: attention within documents by cuDNN" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) != 2) continue;
    for (const bool causal : {true, false}) {
      for (const int64_t head_dim : {32, 64, 128}) {  // cuDNN takes a second for each shape
        const Ways ways{.repeatable = head_dim == 32, .known_documents = true};
        CHECK(check(kind, shape_of(1, 512, 3, head_dim, causal, 0), ways,
                    {1, 128, 127, 60, 150, 46}) == "cudnn");
      }
      CHECK(check(kind, shape_of(3, 96, 2, 64, causal, 0),
                  {.own_16_bits = false, .known_documents = true},
                  {96, 40, 56, 90, 1, 5}) == "cudnn");
    }
  }
}

// Each part in memory of its own, and gradients too.
void check_unpacked(const Kind& kind, AttentionShape a) {
  Both b(kind);
  a.packed = false;
  const std::initializer_list<int64_t> rows{a.batch, a.tokens, a.heads, a.head_dim};
  const Pair cu_seqlens = a.documents ? cu_seqlens_of(b, a, {40, 30, 1, 69}) : Pair();
  const Pair q = b.input(rows), k = b.input(rows), v = b.input(rows), dout = b.input(rows);
  const Pair out = b.output(rows), dq = b.output(rows), dk = b.output(rows), dv = b.output(rows);
  const Pair stats = b.statistics({a.batch, a.heads, a.tokens});
  const Tensor work = b.scratch(attention_workspace(*b.gpu, a, kind.type));
  const auto run = [&](const Compute& c, Tensor Pair::*side) {
    const int64_t stride = a.heads * a.head_dim;
    const auto in = [&](const Pair& p) { return HeadsIn{(p.*side).data, stride}; };
    const auto out_of = [&](const Pair& p) { return HeadsOut{(p.*side).data, stride}; };
    AttentionArgs args;
    args.shape = a;
    args.dtype = (q.*side).dtype;
    args.q = in(q);
    args.k = in(k);
    args.v = in(v);
    args.out = Out(out.*side);
    args.stats = Out(stats.*side);
    args.cu_seqlens = cu_seqlens.*side;
    args.workspace = Out(work);
    attention_forward(c, args);
    attention_backward(c, args, {dout.*side, out_of(dq), out_of(dk), out_of(dv), {}});
  };
  run(*b.cpu, &Pair::cpu);
  run(*b.gpu, &Pair::gpu);
  CHECK_CLOSE(b, out, kind.tolerance);
  for (const Pair& gradient : {dq, dk, dv})
    CHECK_CLOSE(b, gradient, kind.type == DType::f64 ? 1e-11 : 2 * kind.tolerance);
}

TEST_CASE("cuda: attention of operands that are not packed" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    AttentionShape a = shape_of(2, 70, 3, 24, true, 0);
    a.documents = true;
    check_unpacked(kind, a);
    // A shape that another version serves where the operands are packed, with less scratch.
    check_unpacked(kind, shape_of(2, 128, 2, 64, true, 0));
  }
}

// out is linear in V for a fixed mask, so <dout, out> = <dV, V>, but only where the backward pass
// draws the mask of the forward pass.
TEST_CASE("cuda: attention's dropout is the same mask forward and backward" * NEEDS_GPU) {
  const Kind kind{DType::bf16, MatmulMode::ieee, "bf16", 1e-2};
  const AttentionShape a = shape_of(2, 256, 4, 64, true, 0.4);
  Both b(kind);
  const Pair qkv = b.input({a.batch, a.tokens, 3, a.heads, a.head_dim});
  const Pair out = b.output({a.batch, a.tokens, a.heads, a.head_dim}),
             other = b.output({a.batch, a.tokens, a.heads, a.head_dim});
  const Pair stats = b.statistics({a.batch, a.heads, a.tokens});
  const Pair dqkv = b.output({a.batch, a.tokens, 3, a.heads, a.head_dim});
  const Tensor work = b.scratch(attention_workspace(*b.gpu, a, kind.type));
  attention_forward(*b.gpu,
                    packed_attention(a, qkv.gpu, {Out(other.gpu), Out(stats.gpu)}, Out(work), 12));
  attention_forward(*b.gpu,
                    packed_attention(a, qkv.gpu, {Out(out.gpu), Out(stats.gpu)}, Out(work), 11));
  CHECK(Both::read(out.gpu, *b.gpu) != Both::read(other.gpu, *b.gpu));
  // dout = out makes <dout, out> large against rounding.
  attention_backward(*b.gpu,
                     packed_attention(a, qkv.gpu, {Out(out.gpu), Out(stats.gpu)}, Out(work), 11),
                     packed_gradients(a, out.gpu, Out(dqkv.gpu)));
  const std::vector<double> o = Both::read(out.gpu, *b.gpu), x = Both::read(qkv.gpu, *b.gpu),
                            g = Both::read(dqkv.gpu, *b.gpu);
  double left = 0, right = 0;
  for (const double v : o) left += v * v;
  const auto row = static_cast<size_t>(a.heads * a.head_dim);
  for (size_t i = 0; i < x.size(); ++i) {
    if (i / row % 3 == 2) right += x[i] * g[i];
  }
  CHECK(right == doctest::Approx(left).epsilon(1e-2));
}

TEST_CASE("cuda: attention of grouped queries, every type, mask and dropout" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const bool causal : {true, false}) {
      for (const int64_t groups : {1, 2, 4}) {
        AttentionShape a = shape_of(2, 150, 8, 64, causal, 0);
        a.groups = groups;
        const std::string backend = check(kind, a);
        const bool narrow = size_of(kind.type) == 2;
        CHECK((backend == "unfused" || (narrow && backend == "cudnn")));
        a = shape_of(3, 37, 4, 20, causal, 0);
        a.groups = groups;
        check(kind, a);
        a.dropout = 0.2;
        if (!narrow) check(kind, a);  // cuDNN's masks are its own
        check(kind, a, {}, {30, 7, 37, 5, 32});
      }
    }
  }
}

TEST_CASE("cuda: rotary of fewer heads of K" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    Both b(kind);
    const Pair qkv = b.input({2, 70, 12, 24});
    rotary_embedding(*b.cpu, Out(qkv.cpu), {{}, 2, {10000}, 1}, false);
    rotary_embedding(*b.gpu, Out(qkv.gpu), {{}, 2, {10000}, 1}, false);
    CHECK_CLOSE(b, qkv, kind.tolerance);
  }
}

TEST_CASE("cuda: rotary, and back" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const double fraction : {1.0, 0.5}) {
      Both b(kind);
      const Pair qkv = b.input({2, 70, 3, 5, 24});
      rotary_embedding(*b.cpu, Out(qkv.cpu), {{}, 5, {10000}, fraction}, false);
      rotary_embedding(*b.gpu, Out(qkv.gpu), {{}, 5, {10000}, fraction}, false);
      CHECK_CLOSE(b, qkv, kind.tolerance);
      rotary_embedding(*b.cpu, Out(qkv.cpu), {{}, 5, {10000}, fraction}, true);
      rotary_embedding(*b.gpu, Out(qkv.gpu), {{}, 5, {10000}, fraction}, true);
      CHECK_CLOSE(b, qkv, kind.tolerance);
    }
  }
}

TEST_CASE("cuda: rotary, scaled as Llama 3.1's" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    Both b(kind);
    const Pair qkv = b.input({2, 70, 12, 24});
    const RotaryPositions positions{{}, 2, {10000, {8, 1, 4, 32}}, 1};
    rotary_embedding(*b.cpu, Out(qkv.cpu), positions, false);
    rotary_embedding(*b.gpu, Out(qkv.gpu), positions, false);
    CHECK_CLOSE(b, qkv, kind.tolerance);
  }
}

// Some beyond the sequence's length, none in order.
TEST_CASE("cuda: rotary at given positions, and back" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const double fraction : {1.0, 0.5}) {
      Both b(kind);
      const Pair qkv = b.input({2, 70, 3, 5, 24}), positions = b.integers({2, 70}, 0, 200);
      const Tensor before = b.copy_of(qkv.gpu);
      for (const bool inverse : {false, true}) {
        rotary_embedding(*b.cpu, Out(qkv.cpu), {positions.cpu, 5, {10000}, fraction}, inverse);
        rotary_embedding(*b.gpu, Out(qkv.gpu), {positions.gpu, 5, {10000}, fraction}, inverse);
        CHECK_CLOSE(b, qkv, kind.tolerance);
        if (!inverse) CHECK(Both::read(qkv.gpu, *b.gpu) != Both::read(before, *b.gpu));
      }
    }
  }
}

}  // namespace
}  // namespace tally::train
