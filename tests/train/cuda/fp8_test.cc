#include "src/ops/fp8/fp8.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/device/cuda/cuda_stream.h"
#include "tests/train/cuda/both.h"
#include "tests/train/ops/fp8_numbers.h"

namespace tally::train {
namespace {

constexpr Fp8Scaling scalings[] = {Fp8Scaling::tensor, Fp8Scaling::row, Fp8Scaling::vector128,
                                   Fp8Scaling::block128};

// A matrix of the same bf16 numbers on both devices, cast to FP8 on both.
struct BothCasts {
  BothCasts(Both& b, const Pair& x, DType format, Fp8Scaling scaling = Fp8Scaling::tensor,
            bool with_rows = true, bool with_columns = true) {
    const int64_t height = x.gpu.dim(0), width = x.gpu.dim(1), count = height * width;
    const auto bytes = [&] { return b.put({count}, DType::u8, DType::u8, {}); };
    const auto scales = [&](int64_t rows, int64_t inner) {
      return b.put({fp8_scale_count(scaling, rows, inner)}, DType::f32, DType::f32, {});
    };
    const Pair rows = bytes(), columns = bytes(), largest = b.put({1}, DType::f32, DType::f32, {}),
               of_rows = scales(height, width),
               of_columns = scaling == Fp8Scaling::tensor ? of_rows : scales(width, height);
    const auto of = [&](auto part) {
      return Fp8Copies{
          with_rows ? Tensor(part(rows).data, format, {height, width}) : Tensor(),
          with_columns ? Tensor(part(columns).data, format, {width, height}) : Tensor(),
          part(of_rows), part(of_columns), scaling};
    };
    cpu = of([](const Pair& p) { return p.cpu; });
    gpu = of([](const Pair& p) { return p.gpu; });
    fp8_amax(*b.cpu, x.cpu, Out(largest.cpu));
    fp8_cast(*b.cpu, x.cpu, largest.cpu, cpu);
    fp8_amax(*b.gpu.stream, x.gpu, Out(largest.gpu));
    fp8_cast(*b.gpu.stream, x.gpu, largest.gpu, gpu);
    amax = largest;
  }
  Pair amax;
  Fp8Copies cpu, gpu;
};

Fp8Matrix rows_of(const Fp8Copies& q) {
  return {q.rows, q.row_scales, q.scaling};
}
Fp8Matrix columns_of(const Fp8Copies& q) {
  return {q.columns, q.column_scales, q.scaling};
}

// The scales of each number of an operand, as they lie in memory.
std::vector<double> scales_of(const Fp8Matrix& m, Stream& s) {
  const int64_t rows = m.data.dim(0), inner = m.data.dim(1);
  Tensor scales;
  static_cast<View<Tensor, void>&>(scales) =
      View<Tensor, void>(const_cast<void*>(m.scales.data), DType::f32, {m.scales.numel()});
  const std::vector<double> all = Both::read(scales, s);
  std::vector<double> found;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < inner; k += 16)
      found.push_back(all[fp8_scale_place(m.scaling, rows, inner, r, k)]);
  return found;
}

std::vector<uint8_t> bytes_of(const In& t, Stream& s) {
  std::vector<uint8_t> bytes(t.bytes());
  s.copy(bytes.data(), t.data, t.bytes());
  s.synchronize();
  return bytes;
}

Pair same_on_both(Both& b, std::initializer_list<int64_t> shape, DType type, double deviation) {
  const Pair drawn = b.input(shape, deviation);
  return b.put(shape, type, type, Both::read(drawn.cpu, *b.cpu));
}

void check_same(Both& b, const Fp8Matrix& gpu, const Fp8Matrix& cpu) {
  CHECK(scales_of(gpu, *b.gpu.stream) == scales_of(cpu, *b.cpu));
  CHECK(bytes_of(gpu.data, *b.gpu.stream) == bytes_of(cpu.data, *b.cpu));
}

TEST_CASE("cuda: FP8 casts are those of the CPU, byte for byte" * NEEDS_GPU) {
  for (const Fp8Scaling scaling : scalings)
    for (const DType type : {DType::bf16, DType::f16, DType::f32})
      for (const DType format : {DType::e4m3, DType::e5m2})
        for (const auto& [height, width] :
             {std::pair{16, 16}, {128, 64}, {144, 80}, {1024, 4096}, {4096, 1040}}) {
          Both b({type, MatmulMode::ieee, "", 0});
          const Pair x = same_on_both(b, {height, width}, type, 0.7);
          const BothCasts casts(b, x, format, scaling);
          INFO(static_cast<int>(scaling), " ", std::string(dtype_name(type)), " ",
               std::string(dtype_name(format)), " ", height, " ", width);
          CHECK(Both::read(casts.amax.gpu, *b.gpu.stream) == Both::read(casts.amax.cpu, *b.cpu));
          check_same(b, rows_of(casts.gpu), rows_of(casts.cpu));
          check_same(b, columns_of(casts.gpu), columns_of(casts.cpu));
          // One of the copies alone.
          const BothCasts rows(b, x, format, scaling, true, false);
          check_same(b, rows_of(rows.gpu), rows_of(casts.cpu));
          const BothCasts columns(b, x, format, scaling, false, true);
          check_same(b, columns_of(columns.gpu), columns_of(casts.cpu));
        }
}

TEST_CASE("cuda: FP8 rows cast in pieces, and completed, are those of a whole cast" * NEEDS_GPU) {
  for (const DType format : {DType::e4m3, DType::e5m2})
    for (const auto& [height, width, across] :
         {std::tuple{48, 32, 16}, {144, 80, 64}, {1024, 4096, 1024}}) {
      Both b({DType::bf16, MatmulMode::ieee, "", 0});
      Stream& s = *b.gpu.stream;
      const Pair x = same_on_both(b, {height, width}, DType::bf16, 0.7);
      const BothCasts whole(b, x, format);
      const int64_t count = int64_t{height} * width, piece = int64_t{across} * 7;
      const Pair bytes = b.put({count}, DType::u8, DType::u8, {}),
                 turned = b.put({count}, DType::u8, DType::u8, {}),
                 scale = b.put({1}, DType::f32, DType::f32, {});
      const Tensor flat = x.gpu.view({count});
      for (int64_t at = 0; at < count; at += piece) {
        const int64_t some = std::min(piece, count - at);
        const auto as_rows = [&](const Tensor& t, DType type) {
          return Tensor(t.rows(at, some).data, type, {some / across, across});
        };
        fp8_cast(s, as_rows(flat, DType::bf16), whole.amax.gpu,
                 {as_rows(bytes.gpu, format), {}, scale.gpu, {}, Fp8Scaling::tensor});
      }
      const Fp8Copies got{Tensor(bytes.gpu.data, format, {height, width}),
                          Tensor(turned.gpu.data, format, {width, height}), scale.gpu, scale.gpu,
                          Fp8Scaling::tensor};
      fp8_complete(s, whole.amax.gpu, got);
      INFO(std::string(dtype_name(format)), " ", height, " ", width);
      check_same(b, rows_of(got), rows_of(whole.cpu));
      check_same(b, columns_of(got), columns_of(whole.cpu));
    }
}

TEST_CASE("cuda: FP8 of zeros, an outlier, infinities and NaNs" * NEEDS_GPU) {
  Both b({DType::bf16, MatmulMode::ieee, "bf16", 0});
  for (const Fp8Scaling scaling : scalings)
    for (const double special : {0.0, 1e30, std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN()})
      for (const DType format : {DType::e4m3, DType::e5m2}) {
        std::vector<double> values(256, special == 0.0 ? 0.0 : 0.5);
        values[37] = special;
        const Pair x = b.put({16, 16}, DType::bf16, DType::bf16, values);
        const BothCasts casts(b, x, format, scaling);
        const auto check = [&](const Fp8Matrix& gpu, const Fp8Matrix& cpu) {
          const std::vector<uint8_t> got = bytes_of(gpu.data, *b.gpu.stream),
                                     want = bytes_of(cpu.data, *b.cpu);
          const std::vector<double> got_scales = scales_of(gpu, *b.gpu.stream),
                                    want_scales = scales_of(cpu, *b.cpu);
          for (size_t i = 0; i < got.size(); ++i) {
            const double g = fp8_value(got[i], format), w = fp8_value(want[i], format);
            const double gs = got_scales[i / 16], ws = want_scales[i / 16];
            INFO(static_cast<int>(scaling), " ", special, " ", std::string(dtype_name(format)), " ",
                 i);
            CHECK((std::isnan(w) ? std::isnan(g) : g == w));  // a NaN has several bytes
            CHECK((std::isnan(ws) ? std::isnan(gs) : gs == ws));
          }
        };
        check(rows_of(casts.gpu), rows_of(casts.cpu));
        check(columns_of(casts.gpu), columns_of(casts.cpu));
      }
}

// The operands of a GEMM that a recipe asks for.
struct Product {
  Fp8Scaling a, b;
  bool fast;  // it may take the fast sums
};
constexpr Product products[] = {{Fp8Scaling::tensor, Fp8Scaling::tensor, true},
                                {Fp8Scaling::row, Fp8Scaling::row, true},
                                {Fp8Scaling::vector128, Fp8Scaling::block128, false},
                                {Fp8Scaling::vector128, Fp8Scaling::vector128, false}};
enum class Form { plain, bias, residual, sums };

const Fp8Copies& side(const BothCasts& casts, bool gpu) {
  return gpu ? casts.gpu : casts.cpu;
}

void check_product(Both& b, const Product& product, const BothCasts& x, const BothCasts& w) {
  const int64_t m = x.gpu.rows.dim(0), n = w.gpu.rows.dim(0), k = x.gpu.rows.dim(1);
  const Pair bias = b.input({n}), residual = b.input({m, n});
  for (const Form form : {Form::plain, Form::bias, Form::residual, Form::sums})
    for (const bool fast : {false, true}) {
      if (fast && !product.fast) continue;
      const bool sums = form == Form::sums;
      const Pair y = sums ? b.sum({m, n}) : b.output({m, n});
      const auto run = [&](const Compute& c, bool gpu, auto of) {
        fp8_gemm(c, rows_of(side(x, gpu)), rows_of(side(w, gpu)), Out(of(y)),
                 {form == Form::bias || form == Form::residual ? of(bias) : Tensor(),
                  form == Form::residual ? of(residual)
                  : sums                 ? of(y)
                                         : Tensor(),
                  fast});
      };
      INFO(static_cast<int>(product.a), " by ", static_cast<int>(product.b), ", ", m, " ", n, " ",
           k, " form ", static_cast<int>(form), " fast ", fast);
      run({*b.cpu, {}}, false, [](const Pair& p) { return p.cpu; });
      run(*b.gpu, true, [](const Pair& p) { return p.gpu; });
      // Sums in the tensor cores' 14 bits cost more the longer they are.
      CHECK_CLOSE(b, y, sums && !fast ? 1e-3 : 4e-3);
    }
}

void check_products(const Product& product) {
  Both b({DType::bf16, MatmulMode::ieee, "bf16", 4e-3});
  const int capability = cuda::cuda_stream(*b.gpu.stream).capability();
  if (product.a == Fp8Scaling::tensor ? capability < fp8_capability : capability != 90) return;
  struct Formats {
    DType a, b;
  };
  for (const Formats formats : {Formats{DType::e4m3, DType::e4m3}, {DType::e5m2, DType::e4m3}})
    for (const auto& [m, n, k] :
         {std::tuple{16, 16, 16}, {128, 256, 512}, {144, 1040, 272}, {2048, 1040, 4096}}) {
      // The recipe has gradients in E4M3.
      if (formats.a == DType::e5m2 && product.a == Fp8Scaling::row) continue;
      const BothCasts x(b, same_on_both(b, {m, k}, DType::bf16, 1), formats.a, product.a);
      const BothCasts w(b, same_on_both(b, {n, k}, DType::bf16, 0.02), formats.b, product.b);
      check_product(b, product, x, w);
    }
}

TEST_CASE("cuda: FP8 GEMMs of tensors, with a bias, an addend, and sums of gradients" * NEEDS_GPU) {
  check_products(products[0]);
}
TEST_CASE("cuda: FP8 GEMMs of rows, with a bias, an addend, and sums of gradients" * NEEDS_GPU) {
  check_products(products[1]);
}
TEST_CASE("cuda: FP8 GEMMs of vectors and blocks, with a bias, an addend, and sums of gradients" *
          NEEDS_GPU) {
  check_products(products[2]);
}
TEST_CASE("cuda: FP8 GEMMs of vectors, with a bias, an addend, and sums of gradients" * NEEDS_GPU) {
  check_products(products[3]);
}

}  // namespace
}  // namespace tally::train
