#include "src/device/convert.h"

#include <stdexcept>

#include "src/device/cpu/types.h"

namespace tally::train {

void convert_elements(const Tensor& from, const Tensor& to) {
  if (from.numel() != to.numel()) {
    throw std::invalid_argument("convert_elements: the tensors differ in size");
  }
  cpu::with_type(from.dtype, "convert_elements", [&]<typename From>() {
    cpu::with_type(to.dtype, "convert_elements", [&]<typename To>() {
      const From* f = from.as<From>();
      To* t = to.as<To>();
      at::parallel_for(0, from.numel(), 1 << 16, [&](int64_t begin, int64_t end) {
        // Through the wider type of the two, so that no number is rounded twice.
        using Wide = std::conditional_t<std::is_same_v<From, double> && std::is_same_v<To, double>,
                                        double, cpu::accumulate_t<From>>;
        for (int64_t i = begin; i < end; ++i) t[i] = static_cast<To>(static_cast<Wide>(f[i]));
      });
    });
  });
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
