#include "src/measure/peak_rates.h"

#include "src/device/gpu_table.h"

namespace tally::train {
namespace {

double rate_of(const GpuRates& rates, Precision precision) {
  switch (precision) {
    case Precision::f16:
      return rates.f16;
    case Precision::bf16:
      return rates.bf16;
    case Precision::tf32:
      return rates.tf32;
    case Precision::tf32x3:
      return rates.tf32 / 3;
    case Precision::f32:
      return rates.f32;
    case Precision::f64:
      return rates.f64;
  }
  return 0;
}

std::optional<PeakRate> given(double rate, const KnownGpu& gpu) {
  if (rate <= 0) return std::nullopt;
  return PeakRate{rate, std::string(gpu.source)};
}

}  // namespace

std::optional<PeakRate> peak_rate(const std::string& gpu, Precision precision) {
  const KnownGpu* known = find_gpu(gpu);
  return known ? given(rate_of(known->tflops, precision), *known) : std::nullopt;
}

std::optional<PeakRate> fp8_peak_rate(const std::string& gpu) {
  const KnownGpu* known = find_gpu(gpu);
  return known ? given(known->tflops.fp8, *known) : std::nullopt;
}

}  // namespace tally::train
