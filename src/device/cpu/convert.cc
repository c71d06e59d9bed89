#include "src/device/convert.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>

#include "src/device/cpu/types.h"
#include "src/device/devices.h"

namespace tally::train {

void cpu::convert_elements(const Tensor& from, const Tensor& to) {
  if (from.numel() != to.numel()) {
    throw std::invalid_argument("convert_elements: the tensors differ in size");
  }
  cpu::with_type(from.dtype, "convert_elements", [&]<typename From>() {
    cpu::with_type(to.dtype, "convert_elements", [&]<typename To>() {
      const From* f = from.as<From>();
      To* t = to.as<To>();
      at::parallel_for(0, from.numel(), 1 << 16, [&](int64_t begin, int64_t end) {
        // Converts through the wider type of the two, so that no number is rounded twice.
        using Wide = std::conditional_t<std::is_same_v<From, double> && std::is_same_v<To, double>,
                                        double, cpu::accumulate_t<From>>;
        for (int64_t i = begin; i < end; ++i) t[i] = static_cast<To>(static_cast<Wide>(f[i]));
      });
    });
  });
}

namespace {

// Whether all bits of the exponent are set in one of the numbers.
template <typename Bits>
bool has_not_finite(const char* data, int64_t count, Bits exponent) {
  bool found = false;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * static_cast<int64_t>(sizeof bits), sizeof bits);
    found |= (bits & exponent) == exponent;
  }
  return found;
}

bool has_not_finite(const char* data, DType dtype, int64_t count) {
  switch (dtype) {
    case DType::f64:
      return has_not_finite<uint64_t>(data, count, 0x7ff0000000000000);
    case DType::f32:
      return has_not_finite<uint32_t>(data, count, 0x7f800000);
    case DType::bf16:
      return has_not_finite<uint16_t>(data, count, 0x7f80);
    case DType::f16:
      return has_not_finite<uint16_t>(data, count, 0x7c00);
    default:
      throw std::invalid_argument("first_not_finite: the type has no such numbers");
  }
}

}  // namespace

std::optional<int64_t> first_not_finite(const char* data, DType dtype, int64_t count) {
  constexpr int64_t block = 1 << 16;
  const auto bytes = static_cast<int64_t>(size_of(dtype));
  std::atomic<int64_t> first{count};  // the first block that has one
  at::parallel_for(0, (count + block - 1) / block, 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin * block; at < std::min(count, end * block); at += block) {
      if (!has_not_finite(data + at * bytes, dtype, std::min(block, count - at))) continue;
      int64_t known = first;
      while (at < known && !first.compare_exchange_weak(known, at)) {
      }
      return;
    }
  });
  for (int64_t i = first; i < count; ++i)
    if (has_not_finite(data + i * bytes, dtype, 1)) return i;
  return std::nullopt;
}

void dropout_mask(double p, uint64_t seed, const Tensor& out) {
  if (out.dtype == DType::f64) {
    cpu::draw_mask(p, seed, 0, out.numel(), out.as<double>());
  } else if (out.dtype == DType::f32) {
    cpu::draw_mask(p, seed, 0, out.numel(), out.as<float>());
  } else {
    throw std::invalid_argument("dropout_mask: the mask must be float32 or float64");
  }
}

}  // namespace tally::train
