// float32 GEMMs on the float64 tensor cores, each tile shape and layout by itself, because timing
// decides which of them an operation takes.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "src/device/cuda/cuda_stream.h"
#include "src/ops/gemm/float64.h"
#include "src/ops/linear/linear.h"
#include "tests/train/cuda/both.h"

namespace tally::train {
namespace {

const Kind f32{DType::f32, MatmulMode::ieee, "f32", 1e-7};

struct Size {
  int64_t rows, cols, inner;
};
// Fewer rows than a tile, edges within one, partial slices, many slices of one tile, several tiles
// in each direction, and rows and columns that boxes divide and tiles do not.
const std::vector<Size> sizes = {{4, 4, 4},        {40, 36, 20},    {132, 100, 36},
                                 {128, 128, 4096}, {300, 260, 200}, {520, 392, 96},
                                 {256, 384, 512},  {288, 160, 96},  {288, 416, 40}};

struct Problem {
  Both both{f32};
  Size n;
  Pair a, b, bias, addend, out;
  cuda::Float64Gemm product;
  Tensor parts, marks;

  Problem(const Size& size, bool a_transposed, bool b_transposed)
      : n(size),
        a(a_transposed ? both.input({n.inner, n.rows}) : both.input({n.rows, n.inner})),
        b(b_transposed ? both.input({n.cols, n.inner}) : both.input({n.inner, n.cols})),
        bias(both.input({n.cols})),
        addend(both.input({n.rows, n.cols})),
        out(both.output({n.rows, n.cols})),
        parts(both.scratch(cuda::float64_parts_bytes(stream().sms()))),
        marks(both.scratch(cuda::float64_flags_bytes(stream().sms()))) {
    both.gpu->fill_zero(marks.data, marks.bytes());
    product.rows = n.rows;
    product.cols = n.cols;
    product.inner = n.inner;
    product.a = static_cast<const float*>(a.gpu.data);
    product.b = static_cast<const float*>(b.gpu.data);
    product.a_leading = a_transposed ? n.rows : n.inner;
    product.b_leading = b_transposed ? n.inner : n.cols;
    product.a_transposed = a_transposed;
    product.b_transposed = b_transposed;
    product.out = static_cast<float*>(out.gpu.data);
    product.out_leading = n.cols;
  }

  cuda::CudaStream& stream() { return cuda::cuda_stream(*both.gpu); }
  std::vector<double> run(int tile, int sms) {
    REQUIRE(cuda::float64_gemm_supported(product));
    REQUIRE(cuda::float64_gemm(product, tile, sms, parts.data, marks.data, stream().stream()) ==
            cudaSuccess);
    return Both::read(out.gpu, *both.gpu);
  }

  std::vector<double> expected() {
    const auto va = Both::read(a.cpu, *both.cpu), vb = Both::read(b.cpu, *both.cpu),
               vbias = Both::read(bias.cpu, *both.cpu), vadd = Both::read(addend.cpu, *both.cpu);
    std::vector<double> sums(static_cast<size_t>(n.rows * n.cols));
    for (int64_t i = 0; i < n.rows; ++i) {
      for (int64_t k = 0; k < n.inner; ++k) {
        const double x =
            va[static_cast<size_t>(product.a_transposed ? k * n.rows + i : i * n.inner + k)];
        for (int64_t j = 0; j < n.cols; ++j) {
          sums[static_cast<size_t>(i * n.cols + j)] +=
              x * vb[static_cast<size_t>(product.b_transposed ? j * n.inner + k : k * n.cols + j)];
        }
      }
      for (int64_t j = 0; j < n.cols; ++j) {
        const auto at = static_cast<size_t>(i * n.cols + j);
        if (product.bias) sums[at] += vbias[static_cast<size_t>(j)];
        if (product.addend) sums[at] += vadd[at];
      }
    }
    return sums;
  }
};

// Sums in float64, rounded once: half a unit in the last place, and the difference of float64 sums
// in another order. float32 sums are tens of units off where terms cancel.
void check_rounded_once(const std::vector<double>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double unit = std::ldexp(1.0, std::max(std::ilogb(want[i]), -126) - 23);
    const double error = std::abs(got[i] - want[i]) / (0.5 * unit + 1e-11);
    worst = error <= worst ? worst : error;  // a NaN is the worst
  }
  CHECK(worst <= 1.000001);
}

bool serves() {
  Both b(f32);
  return cuda::cuda_stream(*b.gpu).capability() == 90 && cuda::float64_gemms_built();
}

TEST_CASE("cuda: float32 GEMMs on float64 tensor cores round once" * NEEDS_GPU) {
  if (!serves()) return;
  for (const Size& n : sizes) {
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        Problem p(n, a_transposed, b_transposed);
        const std::vector<double> want = p.expected();
        for (int tile = 0; tile < cuda::float64_tiles; ++tile) {
          CAPTURE(tile);
          CAPTURE(n.rows);
          CAPTURE(n.cols);
          CAPTURE(n.inner);
          CAPTURE(a_transposed);
          CAPTURE(b_transposed);
          p.both.poison(p.out);
          check_rounded_once(p.run(tile, p.stream().sms()), want);
        }
      }
    }
  }
}

TEST_CASE("cuda: float64 tensor cores: bias and addend, in place too" * NEEDS_GPU) {
  if (!serves()) return;
  for (int tile = 0; tile < cuda::float64_tiles; ++tile) {
    for (const bool b_transposed : {false, true}) {
      for (const bool in_place : {false, true}) {
        Problem p({300, 260, 72}, false, b_transposed);
        p.product.bias = static_cast<const float*>(p.bias.gpu.data);
        p.product.addend = static_cast<const float*>(p.addend.gpu.data);
        if (in_place) {
          p.both.gpu->copy(p.out.gpu.data, p.addend.gpu.data, p.out.gpu.bytes());
          p.product.addend = p.product.out;
        }
        check_rounded_once(p.run(tile, p.stream().sms()), p.expected());
      }
    }
  }
}

TEST_CASE("cuda: float64 tensor cores: any number of SMs, repeatable" * NEEDS_GPU) {
  if (!serves()) return;
  for (const Size& n : {Size{520, 392, 256}, Size{900, 700, 20}, Size{64, 64, 2000}}) {
    Problem p(n, true, false);
    const std::vector<double> want = p.expected();
    for (int tile = 0; tile < cuda::float64_tiles; ++tile) {
      for (const int sms : {1, 2, 3, 7, 20, 50, p.stream().sms()}) {
        CAPTURE(tile);
        CAPTURE(sms);
        const std::vector<double> once = p.run(tile, sms);
        check_rounded_once(once, want);
        p.both.gpu->fill_zero(p.out.gpu.data, p.out.gpu.bytes());
        CHECK(p.run(tile, sms) == once);
        std::vector<unsigned> left(p.marks.bytes() / sizeof(unsigned), 1U);
        p.both.gpu->copy(left.data(), p.marks.data, p.marks.bytes());
        p.both.gpu->synchronize();
        CHECK(std::count(left.begin(), left.end(), 0U) == static_cast<int64_t>(left.size()));
      }
    }
  }
}

// By rule, independent of timing: in-place addition, and fewer SMs than there are.
TEST_CASE("cuda: float64 tensor cores: float32 weight gradients" * NEEDS_GPU) {
  if (!serves()) return;
  for (const int leave : {0, 8}) {
    Both b(f32);
    const Pair dy = b.input({600, 260}), x = b.input({600, 392}), dw = b.sum({260, 392});
    b.gpu.options.deterministic = true;
    b.gpu.options.reserved_sms = leave;
    linear_backward_weight(*b.cpu, dy.cpu, x.cpu, {Out(dw.cpu)});
    linear_backward_weight(*b.gpu, dy.gpu, x.gpu, {Out(dw.gpu)});
    b.gpu.options.deterministic = false;
    b.gpu.options.reserved_sms = 0;
    check_rounded_once(Both::read(dw.gpu, *b.gpu), Both::read(dw.cpu, *b.cpu));
  }
}

TEST_CASE("cuda: float64 tensor cores: unsupported problems are refused" * NEEDS_GPU) {
  if (!serves()) return;
  Problem p({64, 64, 64}, false, true);
  CHECK(cuda::float64_gemm_supported(p.product));
  cuda::Float64Gemm odd = p.product;
  odd.a_leading = 66;
  CHECK_FALSE(cuda::float64_gemm_supported(odd));
  odd = p.product;
  odd.b += 1;
  CHECK_FALSE(cuda::float64_gemm_supported(odd));
  odd = p.product;
  odd.out_leading = 60;
  CHECK_FALSE(cuda::float64_gemm_supported(odd));
  odd = p.product;
  odd.rows = odd.out_leading = int64_t{1} << 40;
  CHECK_FALSE(cuda::float64_gemm_supported(odd));
}

TEST_CASE("cuda: float32 layers take float64 tensor cores where they may" * NEEDS_GPU) {
  if (!serves()) return;
  for (const bool wanted : {true, false}) {
    Both b(f32);
    const Pair x = b.input({256, 512}), w = b.input({128, 512}), y = b.output({256, 128});
    b.gpu.options.fusions.float64 = wanted;
    b.gpu.options.deterministic = true;  // by rule, independent of timing
    linear_forward(*b.cpu, x.cpu, {w.cpu}, Out(y.cpu), {});
    linear_forward(*b.gpu, x.gpu, {w.gpu}, Out(y.gpu), {});
    const auto got = Both::read(y.gpu, *b.gpu), want = Both::read(y.cpu, *b.cpu);
    int64_t nearest = 0;
    for (size_t i = 0; i < got.size(); ++i) nearest += got[i] == static_cast<float>(want[i]);
    b.gpu.options.fusions.float64 = true;
    b.gpu.options.deterministic = false;
    CAPTURE(nearest);
    CHECK((nearest > static_cast<int64_t>(got.size()) * 999 / 1000) == wanted);
  }
}

// The content of a file while the variable that names it is set; both are restored afterwards.
struct TuningFile {
  std::string path =
      (std::filesystem::temp_directory_path() / ("tally-tuning-" + std::to_string(getpid())))
          .string();
  std::string before;
  bool was_set;

  TuningFile() : was_set(std::getenv("TALLY_TUNING_CACHE") != nullptr) {
    if (was_set) before = std::getenv("TALLY_TUNING_CACHE");
    setenv("TALLY_TUNING_CACHE", path.c_str(), 1);
    write("");
  }
  ~TuningFile() {
    if (was_set) {
      setenv("TALLY_TUNING_CACHE", before.c_str(), 1);
    } else {
      unsetenv("TALLY_TUNING_CACHE");
    }
    std::filesystem::remove(path);
  }
  TuningFile(const TuningFile&) = delete;
  TuningFile& operator=(const TuningFile&) = delete;

  void write(const std::string& text) const { std::ofstream(path) << text; }
  std::string read() const {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
};

TEST_CASE("cuda: a tuned tile is read from the file again" * NEEDS_GPU) {
  if (!serves()) return;
  const TuningFile file;
  Both b(f32);
  const Pair x = b.input({256, 512}), w = b.input({128, 512}), y = b.output({256, 128});
  linear_forward(*b.cpu, x.cpu, {w.cpu}, Out(y.cpu), {});
  const std::vector<double> want = Both::read(y.cpu, *b.cpu);
  const auto run = [&] {
    const auto stream = make_stream(Device{DeviceKind::cuda, 0});
    stream->fill_zero(y.gpu.data, y.gpu.bytes());
    linear_forward(*stream, x.gpu, {w.gpu}, Out(y.gpu), {});
    return Both::read(y.gpu, *stream);
  };
  run();
  const std::string found = file.read();
  REQUIRE(std::count(found.begin(), found.end(), '\n') == 1);
  std::string kind, key;
  std::istringstream(found) >> kind >> key;
  if (kind == "choice") key = key.substr(key.find('/') + 1);  // without "float64/"

  for (int tile = 0; tile < cuda::float64_tiles; ++tile) {
    CAPTURE(tile);
    const std::string line = "choice float64/" + key + " " + std::to_string(tile) + "\n";
    file.write(line);
    check_rounded_once(run(), want);
    CHECK(file.read() == line);  // nothing was timed
  }
  // An invalid tile, and an algorithm of too few words: timed again.
  const std::string damaged = "choice float64/" + key + " 7\ngemm " + key + " 12\n";
  file.write(damaged);
  run();
  const std::string after = file.read();
  CHECK(after.substr(0, damaged.size()) == damaged);
  CHECK(std::count(after.begin(), after.end(), '\n') == 3);
}

}  // namespace
}  // namespace tally::train
