#include "src/ops/fp8/fp8.h"

#include <limits>

#include "src/device/cuda/cuda_stream.h"
#include "tests/train/cuda/both.h"
#include "tests/train/ops/fp8_numbers.h"

namespace tally::train {
namespace {

// A matrix of the same bf16 numbers on both devices, cast to FP8 on both.
struct BothCasts {
  BothCasts(Both& b, const Pair& x, DType format, bool both_copies = true) {
    const int64_t height = x.gpu.dim(0), width = x.gpu.dim(1), count = height * width;
    const auto bytes = [&] { return b.put({count}, DType::u8, DType::u8, {}); };
    const Pair rows = bytes(), columns = bytes();
    amax = b.put({1}, DType::f32, DType::f32, {});
    scale = b.put({1}, DType::f32, DType::f32, {});
    const auto of = [&](const Tensor& r, const Tensor& c, const Tensor& s) {
      return Fp8Copies{Tensor(r.data, format, {height, width}),
                       both_copies ? Tensor(c.data, format, {width, height}) : Tensor(), s};
    };
    cpu = of(rows.cpu, columns.cpu, scale.cpu);
    gpu = of(rows.gpu, columns.gpu, scale.gpu);
    fp8_amax(*b.cpu, x.cpu, Out(amax.cpu));
    fp8_cast(*b.cpu, x.cpu, amax.cpu, cpu);
    fp8_amax(*b.gpu.stream, x.gpu, Out(amax.gpu));
    fp8_cast(*b.gpu.stream, x.gpu, amax.gpu, gpu);
  }
  Pair amax, scale;
  Fp8Copies cpu, gpu;
};

std::vector<uint8_t> bytes_of(const Tensor& t, Stream& s) {
  std::vector<uint8_t> bytes(t.bytes());
  s.copy(bytes.data(), t.data, t.bytes());
  s.synchronize();
  return bytes;
}

Pair same_on_both(Both& b, std::initializer_list<int64_t> shape, DType type, double deviation) {
  const Pair drawn = b.input(shape, deviation);
  return b.put(shape, type, type, Both::read(drawn.cpu, *b.cpu));
}

bool fp8_here(Both& b) {
  return cuda::cuda_stream(*b.gpu.stream).capability() >= fp8_capability;
}

TEST_CASE("cuda: FP8 casts are those of the CPU, byte for byte" * NEEDS_GPU) {
  for (const DType type : {DType::bf16, DType::f16, DType::f32})
    for (const DType format : {DType::e4m3, DType::e5m2})
      for (const auto& [height, width] :
           {std::pair{16, 16}, {128, 64}, {144, 80}, {1024, 4096}, {4096, 1040}}) {
        Both b({type, MatmulMode::ieee, "", 0});
        const Pair x = same_on_both(b, {height, width}, type, 0.7);
        const BothCasts casts(b, x, format);
        INFO(dtype_name(type), " ", dtype_name(format), " ", height, " ", width);
        CHECK(Both::read(casts.amax.gpu, *b.gpu.stream) == Both::read(casts.amax.cpu, *b.cpu));
        CHECK(Both::read(casts.scale.gpu, *b.gpu.stream) == Both::read(casts.scale.cpu, *b.cpu));
        CHECK(bytes_of(casts.gpu.rows, *b.gpu.stream) == bytes_of(casts.cpu.rows, *b.cpu));
        CHECK(bytes_of(casts.gpu.columns, *b.gpu.stream) == bytes_of(casts.cpu.columns, *b.cpu));
        const BothCasts rows(b, x, format, false);
        CHECK(bytes_of(rows.gpu.rows, *b.gpu.stream) == bytes_of(casts.cpu.rows, *b.cpu));
      }
}

TEST_CASE("cuda: FP8 of zeros, an outlier, infinities and NaNs" * NEEDS_GPU) {
  Both b({DType::bf16, MatmulMode::ieee, "bf16", 0});
  for (const double special : {0.0, 1e30, std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()})
    for (const DType format : {DType::e4m3, DType::e5m2}) {
      std::vector<double> values(256, special == 0.0 ? 0.0 : 0.5);
      values[37] = special;
      const Pair x = b.put({16, 16}, DType::bf16, DType::bf16, values);
      const BothCasts casts(b, x, format);
      const std::vector<uint8_t> got = bytes_of(casts.gpu.rows, *b.gpu.stream),
                                 want = bytes_of(casts.cpu.rows, *b.cpu);
      for (size_t i = 0; i < got.size(); ++i) {
        const double g = fp8_value(got[i], format), w = fp8_value(want[i], format);
        INFO(special, " ", dtype_name(format), " ", i);
        CHECK((std::isnan(w) ? std::isnan(g) : g == w));  // a NaN has several bytes
      }
    }
}

TEST_CASE("cuda: FP8 GEMMs, with a bias, an addend, and sums of gradients" * NEEDS_GPU) {
  Both b({DType::bf16, MatmulMode::ieee, "bf16", 4e-3});
  if (!fp8_here(b)) return;
  struct Formats {
    DType a, b;
  };
  for (const Formats formats : {Formats{DType::e4m3, DType::e4m3}, {DType::e5m2, DType::e4m3}})
    for (const auto& [m, n, k] : {std::tuple{16, 16, 16}, {128, 256, 512}, {2048, 1040, 4096}}) {
      const BothCasts x(b, same_on_both(b, {m, k}, DType::bf16, 1), formats.a);
      const BothCasts w(b, same_on_both(b, {n, k}, DType::bf16, 0.02), formats.b);
      const Pair bias = b.input({n}), residual = b.input({m, n});
      for (const int form : {0, 1, 2, 3})
        for (const bool fast : {false, true}) {
          const bool sums = form == 3;
          const Pair y = sums ? b.sum({m, n}) : b.output({m, n});
          const auto run = [&](const Compute& c, const Fp8Copies& a, const Fp8Copies& d, auto of) {
            fp8_gemm(c, {a.rows, a.scale}, {d.rows, d.scale}, Out(of(y)),
                     {form == 1 || form == 2 ? of(bias) : Tensor(),
                      form == 2 ? of(residual)
                      : sums    ? of(y)
                                : Tensor(),
                      fast});
          };
          INFO(m, " ", n, " ", k, " form ", form, " fast ", fast);
          run({*b.cpu, {}}, x.cpu, w.cpu, [](const Pair& p) { return p.cpu; });
          run(*b.gpu, x.gpu, w.gpu, [](const Pair& p) { return p.gpu; });
          // Sums in the tensor cores' 14 bits cost more the longer they are.
          CHECK_CLOSE(b, y, sums && !fast ? 1e-3 : 4e-3);
        }
    }
}

}  // namespace
}  // namespace tally::train
