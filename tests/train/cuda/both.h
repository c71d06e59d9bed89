// The same operation on the CPU in float64 and on the GPU in the type under test, from the same
// numbers.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
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

// Rounded to the type, all in one call: one by one takes longer than the operations under test.
inline void round_all(std::vector<double>& values, DType t) {
  if (t == DType::f64) return;
  std::vector<char> bytes(values.size() * size_of(t));
  const auto n = static_cast<int64_t>(values.size());
  const Tensor wide(values.data(), DType::f64, {n}), narrow(bytes.data(), t, {n});
  convert_elements(wide, narrow);
  convert_elements(narrow, wide);
}
inline double rounded(double x, DType t) {
  std::vector<double> one{x};
  round_all(one, t);
  return one[0];
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

// One of each type, for operations without a GEMM.
inline std::vector<Kind> types() {
  std::vector<Kind> all;
  for (const Kind& kind : kinds())
    if (kind.mode == MatmulMode::ieee) all.push_back(kind);
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
      : kind(k),
        cpu(shared(DeviceKind::cpu)),
        gpu{shared(DeviceKind::cuda), {}},
        random_(seed),
        place_(seed * 104729 % normals().size()) {
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
    for (double& v : values) v = draw(random_);
    round_all(values, kind.gradient());
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

  // Device memory with what `t` on the GPU holds now, to restore what an operation overwrites.
  Tensor copy_of(const Tensor& t) {
    Tensor copy = t;
    copy.data = scratch(t.bytes()).data;
    gpu->copy(copy.data, t.data, t.bytes());
    return copy;
  }
  void restore(const Pair& p, const Tensor& copy) const {
    gpu->copy(p.gpu.data, copy.data, copy.bytes());
  }
  // Not-a-number everywhere on the GPU: what the operation before left there cannot pass for the next
  // one's.
  void poison(const Pair& p) const { poison(p.gpu, *gpu); }

  static void write(const Tensor& t, Stream& s, const std::vector<double>& values) {
    if (values.empty()) return;
    if (t.dtype == DType::f64) {
      REQUIRE(values.size() * sizeof(double) == t.bytes());
      s.copy(t.data, values.data(), t.bytes());
      s.synchronize();
      return;
    }
    std::vector<char> bytes(t.bytes());
    if (t.dtype == DType::i32) {
      std::copy(values.begin(), values.end(), reinterpret_cast<int32_t*>(bytes.data()));
    } else {
      convert_elements(Tensor(const_cast<double*>(values.data()), DType::f64,
                              {static_cast<int64_t>(values.size())}),
                       Tensor(bytes.data(), t.dtype, {t.numel()}));
    }
    s.copy(t.data, bytes.data(), bytes.size());
    s.synchronize();
  }
  static std::vector<double> read(const Tensor& t, Stream& s) {
    std::vector<double> values(static_cast<size_t>(t.numel()));
    if (t.dtype == DType::f64) {
      s.copy(values.data(), t.data, t.bytes());
      s.synchronize();
      return values;
    }
    std::vector<char> bytes(t.bytes());
    s.copy(bytes.data(), t.data, bytes.size());
    s.synchronize();
    if (t.dtype == DType::i32) {
      const auto* numbers = reinterpret_cast<const int32_t*>(bytes.data());
      std::copy(numbers, numbers + values.size(), values.begin());
    } else {
      convert_elements(Tensor(bytes.data(), t.dtype, {t.numel()}),
                       Tensor(values.data(), DType::f64, {t.numel()}));
    }
    return values;
  }

  // gpu - cpu| / |cpu| over all elements; infinite where anything is a NaN.
  double error(const Pair& p) {
    const std::vector<double> got = read(p.gpu, *gpu);
    std::vector<double> other;  // where the CPU's are not float64 already
    if (p.cpu.dtype != DType::f64) other = read(p.cpu, *cpu);
    const double* want = other.empty() ? p.cpu.as<double>() : other.data();
    double difference = 0, norm = 0;
    for (size_t i = 0; i < got.size(); ++i) {
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

  // Drawn once for all cases: drawing takes longer than most operations. Their number is a prime, so
  // that no tensor begins again where another began.
  static const std::vector<double>& normals() {
    static const std::vector<double> table = [] {
      std::mt19937_64 random(1);
      std::normal_distribution<double> draw;
      std::vector<double> values(4194301);
      for (double& v : values) v = draw(random);
      return values;
    }();
    return table;
  }

  Pair normal(std::initializer_list<int64_t> shape, DType type, double deviation) {
    const std::vector<double>& table = normals();
    std::vector<double> values(static_cast<size_t>(Tensor(nullptr, type, shape).numel()));
    for (double& v : values) {
      v = table[place_] * deviation;
      if (++place_ == table.size()) place_ = 0;
    }
    round_all(values, type);
    return put(shape, DType::f64, type, values);
  }
  Pair poisoned(std::initializer_list<int64_t> shape, DType type) {
    const Pair p = put(shape, DType::f64, type, {});
    poison(p.cpu, *cpu);
    poison(p.gpu, *gpu);
    return p;
  }
  // All bits set are not a number in any of the types.
  static void poison(const Tensor& t, Stream& s) {
    const std::vector<char> ones(t.bytes(), static_cast<char>(0xff));
    s.copy(t.data, ones.data(), ones.size());
    s.synchronize();
  }

  std::mt19937_64 random_;
  size_t place_;  // in normals()
  std::vector<Pair> owned_;
};

#define CHECK_CLOSE(both, pair, tolerance)                                           \
  do {                                                                               \
    const double tally_error = (both).error(pair);                                   \
    INFO(std::string((both).kind.name), " " #pair ": relative error ", tally_error); \
    CHECK(tally_error <= (tolerance));                                               \
  } while (false)

}  // namespace tally::train
