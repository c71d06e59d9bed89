// The metrics of a chip and their values in CUPTI's counter data. This half of the range profiler
// needs no GPU.
#pragma once

#include <cupti.h>
#include <cupti_profiler_host.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/device/cuda/cupti_library.h"

namespace tally::train::cuda {

class CuptiMetrics {
 public:
  // `chip`: CUPTI's name. `availability`: CUPTI's image of the counters that the driver allows;
  // empty: all of the chip's. `library` outlives it. Throws DeviceError.
  CuptiMetrics(const CuptiLibrary& library, std::string chip, std::vector<uint8_t> availability);
  ~CuptiMetrics();
  CuptiMetrics(const CuptiMetrics&) = delete;
  CuptiMetrics& operator=(const CuptiMetrics&) = delete;

  const std::string& chip() const { return chip_; }
  // Name without a suffix.
  bool has(const std::string& base) const;
  // Metrics to read, once. Returns the number of passes. Throws DeviceError.
  int select(std::vector<std::string> metrics);
  // The image that the range profiler is given for them.
  const std::vector<uint8_t>& config() const { return config_; }
  const char** names() { return pointers_.data(); }
  size_t count() const { return pointers_.size(); }
  // The values of the selected metrics, for one range of the counter data. Throws DeviceError.
  std::vector<double> values(const std::vector<uint8_t>& counter_data, size_t range);

 private:
  const CuptiLibrary& library_;
  const std::string chip_;
  const std::vector<uint8_t> availability_;
  CUpti_Profiler_Host_Object* host_ = nullptr;
  std::vector<std::string> all_;  // base names, sorted
  std::vector<std::string> metrics_;
  std::vector<const char*> pointers_;
  std::vector<uint8_t> config_;
};

}  // namespace tally::train::cuda
