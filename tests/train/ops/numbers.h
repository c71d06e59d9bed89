// Tensors of random numbers on the CPU, and derivatives by finite differences.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "src/device/convert.h"
#include "src/device/stream.h"
#include "src/device/tensor.h"

namespace tally::train {

// A float64 tensor that owns its memory.
class Numbers {
 public:
  Numbers(std::initializer_list<int64_t> shape, uint64_t seed, double scale = 1) {
    tensor_ = Tensor(nullptr, DType::f64, shape);
    values_.resize(static_cast<size_t>(tensor_.numel()));
    tensor_.data = values_.data();
    if (seed == 0) return;
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal(0, scale);
    for (double& v : values_) v = normal(random);
  }
  Numbers(const Numbers& other) : values_(other.values_), tensor_(other.tensor_) {
    tensor_.data = values_.data();
  }
  Numbers& operator=(const Numbers&) = delete;

  operator const Tensor&() const { return tensor_; }  // NOLINT(google-explicit-constructor)
  operator In() const { return tensor_; }             // NOLINT(google-explicit-constructor)
  const Tensor& t() const { return tensor_; }
  std::vector<double>& values() { return values_; }
  const std::vector<double>& values() const { return values_; }
  double& operator[](size_t i) { return values_[i]; }
  double operator[](size_t i) const { return values_[i]; }
  size_t size() const { return values_.size(); }

 private:
  std::vector<double> values_;
  Tensor tensor_;
};

inline Numbers zeros(std::initializer_list<int64_t> shape) {
  return Numbers(shape, 0);
}

inline double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// d loss / d x by central differences, element by element. `loss` reads x.
inline std::vector<double> finite_differences(Numbers& x, const std::function<double()>& loss) {
  constexpr double step = 1e-5;
  std::vector<double> gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + step;
    const double up = loss();
    x[i] = kept - step;
    const double down = loss();
    x[i] = kept;
    gradient[i] = (up - down) / (2 * step);
  }
  return gradient;
}

// |a - b| / |b|
inline double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

// The numbers in another type, in memory of their own; `get` widens them again.
class Rounded {
 public:
  Rounded(const Numbers& from, DType type) : bytes_(from.size() * size_of(type)) {
    tensor_ = from.t();
    tensor_.dtype = type;
    tensor_.data = bytes_.data();
    convert_elements(from, tensor_);
  }
  Rounded(const Rounded&) = delete;
  Rounded& operator=(const Rounded&) = delete;
  operator const Tensor&() const { return tensor_; }  // NOLINT(google-explicit-constructor)
  operator In() const { return tensor_; }             // NOLINT(google-explicit-constructor)
  const Tensor& t() const { return tensor_; }
  std::vector<double> get() const {
    std::vector<double> out(static_cast<size_t>(tensor_.numel()));
    Tensor wide = tensor_;
    wide.dtype = DType::f64;
    wide.data = out.data();
    convert_elements(tensor_, wide);
    return out;
  }

 private:
  std::vector<char> bytes_;
  Tensor tensor_;
};

}  // namespace tally::train
