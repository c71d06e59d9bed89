// The same operation on the CPU in float64 and on the GPU in the type under test, from the same
// numbers.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "src/device/compute_options.h"
#include "src/device/convert.h"
#include "src/device/stream.h"
#include "src/device/tensor.h"

namespace tally::train {

inline bool no_gpu() {
  return cuda_device_count() == 0;
}

// A test case that needs a GPU: TEST_CASE("..." * NEEDS_GPU).
#define NEEDS_GPU doctest::skip(::tally::train::no_gpu())

// The f16 nearest to x, as bits, and back (convert_elements() has its own test).
inline uint16_t to_f16(double x) {
  auto f = static_cast<float>(x);
  uint16_t bits = 0;
  convert_elements(Tensor(&f, DType::f32, {1}), Tensor(&bits, DType::f16, {1}));
  return bits;
}
inline double from_f16(uint16_t bits) {
  float f = 0;
  convert_elements(Tensor(&bits, DType::f16, {1}), Tensor(&f, DType::f32, {1}));
  return f;
}

inline double rounded(double x, DType t) {
  if (t == DType::f32) return static_cast<float>(x);
  if (t == DType::f16) return from_f16(to_f16(x));
  if (t != DType::bf16) return x;
  const auto f = static_cast<float>(x);
  uint32_t bits = 0;
  std::memcpy(&bits, &f, sizeof bits);
  bits += 0x7fffU + ((bits >> 16) & 1U);  // to nearest, ties to even
  bits &= 0xffff0000U;
  float out = 0;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

inline void encode(double x, DType t, void* at) {
  if (t == DType::f64) std::memcpy(at, &x, 8);
  if (t == DType::f32) {
    const auto f = static_cast<float>(x);
    std::memcpy(at, &f, 4);
  }
  if (t == DType::f16) {
    const uint16_t h = to_f16(x);
    std::memcpy(at, &h, 2);
  }
  if (t == DType::bf16) {
    const auto f = static_cast<float>(std::isnan(x) ? x : rounded(x, t));
    uint32_t bits = 0;
    std::memcpy(&bits, &f, 4);
    const auto high = static_cast<uint16_t>(bits >> 16);
    std::memcpy(at, &high, 2);
  }
  if (t == DType::i32) {
    const auto i = static_cast<int32_t>(x);
    std::memcpy(at, &i, 4);
  }
}

inline double decode(const void* at, DType t) {
  if (t == DType::f64) {
    double x = 0;
    std::memcpy(&x, at, 8);
    return x;
  }
  if (t == DType::f32) {
    float x = 0;
    std::memcpy(&x, at, 4);
    return x;
  }
  if (t == DType::f16) {
    uint16_t x = 0;
    std::memcpy(&x, at, 2);
    return from_f16(x);
  }
  if (t == DType::i32) {
    int32_t x = 0;
    std::memcpy(&x, at, 4);
    return x;
  }
  uint16_t high = 0;
  std::memcpy(&high, at, 2);
  const uint32_t bits = static_cast<uint32_t>(high) << 16;
  float x = 0;
  std::memcpy(&x, &bits, 4);
  return x;
}

struct Pair {
  Tensor cpu, gpu;
  Pair view(std::initializer_list<int64_t> shape) const {
    return {cpu.view(shape), gpu.view(shape)};
  }
};

// The arithmetic under test.
struct Kind {
  DType type;
  MatmulMode mode;
  const char* name;
  double tolerance;  // relative norm of the error against float64
  DType gradient() const { return type == DType::f64 ? DType::f64 : DType::f32; }
};

inline const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {{DType::f64, MatmulMode::ieee, "f64", 1e-12},
                                        {DType::f32, MatmulMode::ieee, "f32", 1e-5},
                                        {DType::f32, MatmulMode::tf32x3, "tf32x3", 1e-5},
                                        {DType::f32, MatmulMode::tf32, "tf32", 1e-3},
                                        {DType::bf16, MatmulMode::ieee, "bf16", 1e-2},
                                        {DType::f16, MatmulMode::ieee, "f16", 2e-3}};
  return all;
}

// The GPU's stream with the options of a test: -> is the stream, * what operations take.
struct GpuUnderTest {
  Stream* stream;
  ComputeOptions options;
  Stream* operator->() const { return stream; }
  Compute operator*() const { return {*stream, options}; }
};

class Both {
 public:
  explicit Both(const Kind& k, uint64_t seed = 1)
      : kind(k), cpu(shared(DeviceKind::cpu)), gpu{shared(DeviceKind::cuda), {}}, random_(seed) {
    gpu.options.matmul_mode = kind.mode;
  }
  ~Both() {
    for (const Pair& p : owned_) {
      cpu->release(p.cpu.data);
      gpu->release(p.gpu.data);
    }
  }
  Both(const Both&) = delete;
  Both& operator=(const Both&) = delete;

  // Normal numbers, rounded to the type under test on both sides.
  Pair input(std::initializer_list<int64_t> shape, double deviation = 1) {
    return normal(shape, kind.type, deviation);
  }
  // What an operation adds to: random, so that overwriting instead of adding is noticed.
  Pair sum(std::initializer_list<int64_t> shape, double deviation = 1) {
    return normal(shape, kind.gradient(), deviation);
  }
  // In [0.5, 1.5], the gradient type.
  Pair positive(std::initializer_list<int64_t> shape) {
    std::uniform_real_distribution<double> draw(0.5, 1.5);
    std::vector<double> values(
        static_cast<size_t>(Tensor(nullptr, kind.gradient(), shape).numel()));
    for (double& v : values) v = rounded(draw(random_), kind.gradient());
    return put(shape, DType::f64, kind.gradient(), values);
  }
  // NaN everywhere, so that an element that is not written is noticed.
  Pair output(std::initializer_list<int64_t> shape) { return poisoned(shape, kind.type); }
  Pair statistics(std::initializer_list<int64_t> shape) { return poisoned(shape, kind.gradient()); }

  Pair integers(std::initializer_list<int64_t> shape, int from, int to) {
    std::uniform_int_distribution<int> draw(from, to);
    std::vector<double> values(static_cast<size_t>(Tensor(nullptr, DType::i32, shape).numel()));
    for (double& v : values) v = draw(random_);
    return put(shape, DType::i32, DType::i32, values);
  }
  Pair put(std::initializer_list<int64_t> shape, DType cpu_type, DType gpu_type,
           const std::vector<double>& values) {
    Pair p{Tensor(nullptr, cpu_type, shape), Tensor(nullptr, gpu_type, shape)};
    p.cpu.data = cpu->allocate(p.cpu.bytes(), "test");
    p.gpu.data = gpu->allocate(p.gpu.bytes(), "test");
    owned_.push_back(p);
    write(p.cpu, *cpu, values);
    write(p.gpu, *gpu, values);
    return p;
  }
  Tensor scratch(size_t bytes) {
    const auto n = static_cast<int64_t>(bytes ? bytes : 1);
    return put({n}, DType::u8, DType::u8, {}).gpu;
  }
  Tensor cpu_scratch(size_t bytes) {
    const auto n = static_cast<int64_t>(bytes ? bytes : 1);
    return put({n}, DType::u8, DType::u8, {}).cpu;
  }

  static void write(const Tensor& t, Stream& s, const std::vector<double>& values) {
    if (values.empty()) return;
    std::vector<char> bytes(t.bytes());
    for (size_t i = 0; i < values.size(); ++i) {
      encode(values[i], t.dtype, bytes.data() + i * size_of(t.dtype));
    }
    s.copy(t.data, bytes.data(), bytes.size());
    s.synchronize();
  }
  static std::vector<double> read(const Tensor& t, Stream& s) {
    std::vector<char> bytes(t.bytes());
    s.copy(bytes.data(), t.data, bytes.size());
    s.synchronize();
    std::vector<double> values(static_cast<size_t>(t.numel()));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = decode(bytes.data() + i * size_of(t.dtype), t.dtype);
    }
    return values;
  }

  // gpu - cpu| / |cpu| over all elements; infinite where anything is a NaN.
  double error(const Pair& p) {
    const std::vector<double> want = read(p.cpu, *cpu), got = read(p.gpu, *gpu);
    double difference = 0, norm = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      difference += (got[i] - want[i]) * (got[i] - want[i]);
      norm += want[i] * want[i];
    }
    const double e = std::sqrt(difference) / std::max(std::sqrt(norm), 1e-300);
    if (std::isfinite(e)) return e;
    return norm == 0 && difference == 0 ? 0 : std::numeric_limits<double>::infinity();
  }

  Kind kind;
  Stream* cpu;
  GpuUnderTest gpu;

 private:
  // One stream a device for all cases, so that tuning is shared.
  static Stream* shared(DeviceKind kind_of_device) {
    static const std::unique_ptr<Stream> cpu_stream = make_stream(Device{DeviceKind::cpu, 0});
    if (kind_of_device == DeviceKind::cpu) return cpu_stream.get();
    static const std::unique_ptr<Stream> gpu_stream = make_stream(Device{DeviceKind::cuda, 0});
    return gpu_stream.get();
  }

  Pair normal(std::initializer_list<int64_t> shape, DType type, double deviation) {
    std::normal_distribution<double> draw(0, deviation);
    std::vector<double> values(static_cast<size_t>(Tensor(nullptr, type, shape).numel()));
    for (double& v : values) v = rounded(draw(random_), type);
    return put(shape, DType::f64, type, values);
  }
  Pair poisoned(std::initializer_list<int64_t> shape, DType type) {
    const auto n = static_cast<size_t>(Tensor(nullptr, type, shape).numel());
    return put(shape, DType::f64, type, std::vector<double>(n, std::nan("")));
  }

  std::mt19937_64 random_;
  std::vector<Pair> owned_;
};

#define CHECK_CLOSE(both, pair, tolerance)                                           \
  do {                                                                               \
    const double tally_error = (both).error(pair);                                   \
    INFO(std::string((both).kind.name), " " #pair ": relative error ", tally_error); \
    CHECK(tally_error <= (tolerance));                                               \
  } while (false)

}  // namespace tally::train
