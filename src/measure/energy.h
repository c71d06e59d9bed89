// Energy that a GPU uses for the steps of a training: its energy counter and its power sensor are
// read while the steps run, and what was used between two moments is found afterwards.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/energy/gpu_devices.h"
#include "src/measure/statistics.h"

namespace tally::train {

// Times are seconds on the host's steady clock.
struct PowerSample {
  double at = 0;
  GpuReading reading;
};
struct Span {
  double from = 0, to = 0;
};

struct SpanEnergy {
  double seconds = 0;
  std::optional<double> joules;          // from the energy counter
  std::optional<double> sampled_joules;  // the integral of the sensor's power
  uint64_t throttle = 0;                 // NVML's bits: every reason that was seen
  std::optional<double> sm_mhz;          // the mean clock of the SMs
  std::optional<unsigned> celsius;       // the highest temperature
};
// Power is taken as linear in time between two samples. A value is empty where a sample lacks it,
// or where the samples do not reach from the first span's begin to the last one's end. `samples`
// and `spans` in the order of time.
SpanEnergy energy_in(const std::vector<PowerSample>& samples, const std::vector<Span>& spans);

// The device had done all steps up to `iteration` and was idle at the time `at`.
struct StepsDone {
  int64_t iteration = 0;
  double at = 0;
};
// The spans in which the steps from index `first` on ran. Each group of steps that was waited for
// together ended at that moment and took the sum of its steps' seconds: work between groups (an
// evaluation, a checkpoint) is left out.
std::vector<Span> spans_of(const std::vector<Step>& steps, size_t first,
                           const std::vector<StepsDone>& done);

// A count of a GPU's faults at the run's end, and how much of it came in the run.
struct GpuFaults {
  std::string name;
  std::optional<uint64_t> count, in_run;  // empty: the GPU does not count that
};

// NVML's answers about a rank's GPU: the energy that it used for the steps after the warm-up, how it
// ran meanwhile, and its faults.
struct GpuEnergyUse {
  int rank = 0, local_rank = 0;
  std::string host;
  std::string gpu;   // its PCI address
  std::string uuid;  // empty: unknown
  SpanEnergy energy;
  std::optional<double> limit_watts, default_limit_watts;
  std::optional<unsigned> max_sm_mhz;
  std::vector<GpuFaults> faults;
  std::string not_available;  // why there is no number; empty: there is one
};

// Reads one GPU in a thread of its own, from its construction to finish().
class EnergySampler {
 public:
  // `interval`: seconds between two samples. In a long run it doubles from time to time, so that
  // the samples stay few.
  EnergySampler(std::unique_ptr<GpuDevices> gpus, size_t gpu, double interval = 0.1);
  ~EnergySampler();
  EnergySampler(const EnergySampler&) = delete;
  EnergySampler& operator=(const EnergySampler&) = delete;

  // The device has done the steps up to `iteration`, now.
  void steps_done(int64_t iteration);
  // Ends the reading. `steps` are all of this run's, `first` the index of the first that counts.
  GpuEnergyUse finish(const std::vector<Step>& steps, size_t first);

 private:
  void read_until_stopped();
  void sample();
  void stop();

  std::unique_ptr<GpuDevices> gpus_;
  const size_t gpu_;
  const std::vector<GpuCounter> before_;
  double interval_;
  std::vector<StepsDone> done_;
  std::mutex mutex_;  // for what follows
  std::condition_variable stopped_;
  bool stop_ = false;
  std::vector<PowerSample> samples_;
  std::thread thread_;
};

}  // namespace tally::train
