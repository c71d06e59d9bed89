// Views of numbers in memory. A Tensor owns nothing and knows nothing of LibTorch or CUDA, so that
// kernels, models and tests can share it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace tally::train {

enum class DType : uint8_t { f64, f32, bf16, f16, i64, i32, u16, u8 };

constexpr size_t size_of(DType t) {
  switch (t) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
    case DType::u16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}
const char* dtype_name(DType t);

enum class DeviceKind : uint8_t { cpu, cuda };
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  bool is_cuda() const { return kind == DeviceKind::cuda; }
};

// A dense row-major view of at most five dimensions.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  std::array<int64_t, 5> shape{};

  Tensor() = default;
  Tensor(void* d, DType t, std::initializer_list<int64_t> s) : data(d), dtype(t) {
    for (int64_t n : s) shape[static_cast<size_t>(rank++)] = n;
  }
  bool defined() const { return data != nullptr; }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[static_cast<size_t>(i)];
    return n;
  }
  size_t bytes() const { return static_cast<size_t>(numel()) * size_of(dtype); }
  int64_t dim(int i) const { return shape[static_cast<size_t>(i < 0 ? rank + i : i)]; }
  // The same memory with another shape of equal size.
  Tensor view(std::initializer_list<int64_t> s) const { return Tensor(data, dtype, s); }
  // Rows [first, first + count) of the first dimension.
  Tensor rows(int64_t first, int64_t count) const {
    Tensor t = *this;
    const int64_t stride = shape[0] ? numel() / shape[0] : 0;
    t.data = static_cast<char*>(data) + static_cast<size_t>(first * stride) * size_of(dtype);
    t.shape[0] = count;
    return t;
  }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

}  // namespace tally::train
