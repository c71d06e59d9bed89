#include "src/measure/peak_rates.h"

#include <array>
#include <string_view>

namespace tally::train {
namespace {

// Dense rates in TFLOP/s; 0: not in the datasheet. fp64 is the rate of the tensor cores where they
// have one.
struct Row {
  std::string_view name;  // part of the driver's name; the first row that matches counts
  double fp8, half, bf16, tf32, fp32, fp64;
  std::string_view source;
};
constexpr std::array<Row, 20> rows{{
    {"H200 NVL", 1671, 835.5, 835.5, 417.5, 60, 60, "NVIDIA H200 datasheet, NVL"},
    {"H200", 1979, 989.5, 989.5, 494.5, 67, 67, "NVIDIA H200 datasheet, SXM"},
    {"GH200", 1979, 989.5, 989.5, 494.5, 67, 67, "NVIDIA GH200 datasheet"},
    {"H100 PCIe", 1513, 756.5, 756.5, 378, 51, 51, "NVIDIA H100 datasheet, PCIe"},
    {"H100 NVL", 1671, 835.5, 835.5, 417.5, 60, 60, "NVIDIA H100 datasheet, NVL"},
    {"H100", 1979, 989.5, 989.5, 494.5, 67, 67, "NVIDIA H100 datasheet, SXM"},
    {"B200", 4500, 2250, 2250, 1125, 75, 37, "NVIDIA Blackwell datasheet, B200"},
    {"A100", 0, 312, 312, 156, 19.5, 19.5, "NVIDIA A100 datasheet"},
    {"A800", 0, 312, 312, 156, 19.5, 9.7, "NVIDIA A800 datasheet"},
    {"A30", 0, 165, 165, 82, 10.3, 10.3, "NVIDIA A30 datasheet"},
    {"A40", 0, 149.7, 149.7, 74.8, 37.4, 0, "NVIDIA A40 datasheet"},
    {"A10", 0, 125, 125, 62.5, 31.2, 0, "NVIDIA A10 datasheet"},
    {"L40S", 733, 362.05, 362.05, 183, 91.6, 0, "NVIDIA L40S datasheet"},
    {"L40", 362, 181.05, 181.05, 90.5, 90.5, 0, "NVIDIA L40 datasheet"},
    {"L4", 242.5, 121, 121, 60, 30.3, 0, "NVIDIA L4 datasheet"},
    {"V100-PCIE", 0, 112, 0, 0, 14, 7, "NVIDIA V100 datasheet, PCIe"},
    {"V100", 0, 125, 0, 0, 15.7, 7.8, "NVIDIA V100 datasheet, SXM2"},
    {"Tesla T4", 0, 65, 0, 0, 8.1, 0, "NVIDIA T4 datasheet"},
    {"RTX 4090", 0, 165.2, 165.2, 82.6, 82.6, 1.3, "NVIDIA Ada GPU architecture whitepaper"},
    {"RTX 3090", 0, 71, 71, 35.6, 35.6, 0.56, "NVIDIA Ampere GA102 whitepaper"},
}};

// "A10" must not match "A100".
bool names(std::string_view gpu, std::string_view part) {
  const size_t at = gpu.find(part);
  if (at == std::string_view::npos) return false;
  const auto is_word = [&](size_t i) {
    return i < gpu.size() && ((gpu[i] >= '0' && gpu[i] <= '9') ||
                              (gpu[i] >= 'A' && gpu[i] <= 'Z') || (gpu[i] >= 'a' && gpu[i] <= 'z'));
  };
  return !is_word(at + part.size()) && (at == 0 || !is_word(at - 1));
}

const Row* row_of(const std::string& gpu) {
  for (const Row& row : rows)
    if (names(gpu, row.name)) return &row;
  return nullptr;
}

double rate_of(const Row& row, Precision precision) {
  switch (precision) {
    case Precision::f16:
      return row.half;
    case Precision::bf16:
      return row.bf16;
    case Precision::tf32:
      return row.tf32;
    case Precision::tf32x3:
      return row.tf32 / 3;
    case Precision::f32:
      return row.fp32;
    case Precision::f64:
      return row.fp64;
  }
  return 0;
}

std::optional<PeakRate> given(double rate, const Row& row) {
  if (rate <= 0) return std::nullopt;
  return PeakRate{rate, std::string(row.source)};
}

}  // namespace

std::optional<PeakRate> peak_rate(const std::string& gpu, Precision precision) {
  const Row* row = row_of(gpu);
  return row ? given(rate_of(*row, precision), *row) : std::nullopt;
}

std::optional<PeakRate> fp8_peak_rate(const std::string& gpu) {
  const Row* row = row_of(gpu);
  return row ? given(row->fp8, *row) : std::nullopt;
}

}  // namespace tally::train
