// Views of numbers in memory. They own nothing and know nothing of LibTorch or CUDA, so that
// kernels, models and tests can share them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace tally::train {

// e4m3, e5m2: FP8, which only GEMMs read (ops/fp8/fp8.h).
enum class DType : uint8_t { f64, f32, bf16, f16, i64, i32, u16, u8, e4m3, e5m2 };

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
    case DType::e4m3:
    case DType::e5m2:
      return 1;
  }
  return 0;
}
const char* dtype_name(DType t);

// counting: computes nothing, and counts what the others would do (counting/counting_stream.h).
enum class DeviceKind : uint8_t { cpu, cuda, counting };
constexpr size_t device_kinds = 3;
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  bool counts_as_gpu = false;  // a counting device that stands for a GPU
  bool is_cuda() const { return kind == DeviceKind::cuda; }
  // Decides how a model computes, and so what it allocates.
  bool is_gpu() const { return is_cuda() || counts_as_gpu; }
};

// A dense row-major view of at most five dimensions, of memory that `Self` may write (Data: void)
// or only read (const void).
template <typename Self, typename Data>
struct View {
  Data* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  std::array<int64_t, 5> shape{};

  View() = default;
  View(Data* d, DType t, std::initializer_list<int64_t> s) : data(d), dtype(t) {
    for (int64_t n : s) shape[static_cast<size_t>(rank++)] = n;
  }
  // The same view with other rights.
  template <typename Other, typename OtherData>
  explicit View(const View<Other, OtherData>& v)
      : data(v.data), dtype(v.dtype), rank(v.rank), shape(v.shape) {}

  bool defined() const { return data != nullptr; }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[static_cast<size_t>(i)];
    return n;
  }
  size_t bytes() const { return static_cast<size_t>(numel()) * size_of(dtype); }
  int64_t dim(int i) const { return shape[static_cast<size_t>(i < 0 ? rank + i : i)]; }
  // The same memory with another shape of equal size.
  Self view(std::initializer_list<int64_t> s) const {
    Self v;
    static_cast<View&>(v) = View(data, dtype, s);
    return v;
  }
  // Rows [first, first + count) of the first dimension.
  Self rows(int64_t first, int64_t count) const {
    Self v;
    static_cast<View&>(v) = *this;
    const int64_t stride = shape[0] ? numel() / shape[0] : 0;
    v.data = as<char>() + static_cast<size_t>(first * stride) * size_of(dtype);
    v.shape[0] = count;
    return v;
  }
  template <typename T>
  auto as() const {
    return static_cast<std::conditional_t<std::is_const_v<Data>, const T, T>*>(data);
  }
};

// A view whose owner decides what happens to it: what layers keep and hand on.
struct Tensor : View<Tensor, void> {
  using View::View;
};

// A tensor that an operation writes, or adds to. Callers name it as such, `Out(y)`: nothing becomes
// one by itself, so that operands cannot change places.
struct Out : View<Out, void> {
  Out() = default;
  explicit Out(const Tensor& t) : View(t) {}
};

// A tensor that an operation only reads.
struct In : View<In, const void> {
  In() = default;
  In(const Tensor& t) : View(t) {}
  In(const Out& t) : View(t) {}
};

}  // namespace tally::train
