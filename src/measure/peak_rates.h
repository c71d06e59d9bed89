// The peak rate of a GPU from its datasheet: the denominator of model FLOPs utilisation (MFU).
#pragma once

#include <optional>
#include <string>

#include "src/config/config.h"

namespace tally::train {

struct PeakRate {
  double tflops = 0;   // dense, without sparsity, TFLOP/s
  std::string source;  // the datasheet
};

// Finds a GPU's rates by the name that the driver reports ("NVIDIA H200"). Empty for a GPU that is
// not in the table, for a precision its datasheet has no rate for, and for CPUs.
std::optional<PeakRate> peak_rate(const std::string& gpu, Precision precision);
// The same of GEMMs in FP8.
std::optional<PeakRate> fp8_peak_rate(const std::string& gpu);

}  // namespace tally::train
