#include "engine/energy/meter.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/energy/gpu_devices.h"
#include "engine/energy/host_energy.h"

namespace tally {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// Reads all devices from time to time.
class Sampler {
 public:
  explicit Sampler(const MeterOptions& options) : cpu_(options.powercap), hwmon_(options.hwmon) {
    if (Status s = GpuDevices::open(&gpu_); !s) use_.no_gpu = s.message();
    if (Status s = cpu_.start(); !s) use_.no_cpu = s.message();
    if (Status s = hwmon_.start(); !s) use_.no_sensor = s.message();
    begin_ = Clock::now();
    last_ = begin_;
    for (size_t i = 0; gpu_ && i < gpu_->count(); ++i) {
      first_.push_back(gpu_->read(i));
      use_.gpus.push_back(
          {i, gpu_->name(i), {}, {}, gpu_->settings(i).limit_watts, first_[i].throttle, {}});
      if (first_[i].watts) use_.gpus[i].sampled_joules = 0;
    }
    before_ = first_;
    clocks_.resize(first_.size());
  }

  void sample() {
    const Clock::time_point now = Clock::now();
    const double step = seconds_between(last_, now);
    last_ = now;
    if (use_.no_cpu.empty()) {
      if (Status s = cpu_.update(); !s) use_.no_cpu = s.message();
    }
    hwmon_.update(step);
    for (GpuUse& gpu : use_.gpus) {
      const GpuReading reading = gpu_->read(gpu.gpu);
      GpuReading& before = before_[gpu.gpu];
      gpu.throttle |= reading.throttle;
      // The trapezoid between two samples.
      if (gpu.sampled_joules && reading.watts && before.watts) {
        *gpu.sampled_joules += step * (*reading.watts + *before.watts) / 2;
      } else {
        gpu.sampled_joules.reset();
      }
      if (reading.sm_mhz) {
        Mean& clock = clocks_[gpu.gpu];
        clock.sum += *reading.sm_mhz;
        gpu.mean_sm_mhz = clock.sum / ++clock.count;
      }
      const auto& start = first_[gpu.gpu].joules;
      gpu.joules =
          reading.joules && start ? std::optional<double>(*reading.joules - *start) : std::nullopt;
      before = reading;
    }
  }

  EnergyUse finish() {
    sample();
    use_.seconds = seconds_between(begin_, last_);
    if (use_.no_cpu.empty()) {
      for (const CpuEnergy::Domain& domain : cpu_.domains())
        use_.cpus.push_back({domain.name, domain.joules});
    }
    for (const HwmonEnergy::Sensor& sensor : hwmon_.sensors())
      use_.sensors.push_back({sensor.name, sensor.counter, sensor.joules});
    return use_;
  }

 private:
  struct Mean {
    double sum = 0;
    int count = 0;
  };

  std::unique_ptr<GpuDevices> gpu_;
  CpuEnergy cpu_;
  HwmonEnergy hwmon_;
  EnergyUse use_;
  Clock::time_point begin_, last_;
  std::vector<GpuReading> first_, before_;
  std::vector<Mean> clocks_;
};

// While it exists, an interrupt from the terminal goes to the program alone, so that it is measured
// to its end.
class IgnoredInterrupts {
 public:
  IgnoredInterrupts() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignore, &interrupt_);
    sigaction(SIGQUIT, &ignore, &quit_);
  }
  ~IgnoredInterrupts() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGQUIT, &quit_, nullptr);
  }
  IgnoredInterrupts(const IgnoredInterrupts&) = delete;
  IgnoredInterrupts& operator=(const IgnoredInterrupts&) = delete;

 private:
  struct sigaction interrupt_ {};
  struct sigaction quit_ {};
};

Status start(const std::vector<std::string>& command, pid_t* pid) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, SIGINT);
  sigaddset(&own, SIGQUIT);
  posix_spawnattr_setsigdefault(&attributes, &own);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int code = posix_spawnp(pid, words[0], nullptr, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (code == 0) return Status::ok();
  return Status::error(fmt::format("cannot start '{}': {}", command[0], std::strerror(code)));
}

std::string watts(const std::optional<double>& joules, double seconds) {
  return joules && seconds > 0 ? fmt::format("{:.1f} W", *joules / seconds) : "";
}

}  // namespace

Status measure_command(const std::vector<std::string>& command, const MeterOptions& options,
                       EnergyUse* use, int* exit_code) {
  const IgnoredInterrupts ignored;
  Sampler sampler(options);
  pid_t pid = 0;
  TRY(start(command, &pid));
  // The descriptor becomes readable when the program ends.
  const int ended = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  pollfd wait{ended, POLLIN, 0};
  int status = 0;
  const int milliseconds = std::max(1, static_cast<int>(std::lround(options.interval * 1000)));
  while (waitpid(pid, &status, WNOHANG) == 0) {
    poll(&wait, ended >= 0 ? 1 : 0, milliseconds);
    sampler.sample();
  }
  if (ended >= 0) close(ended);
  *use = sampler.finish();
  *exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return Status::ok();
}

std::string energy_lines(const EnergyUse& use) {
  std::string out = fmt::format("energy: {:.2f} s\n", use.seconds);
  for (const GpuUse& gpu : use.gpus) {
    const std::string device = fmt::format("energy: GPU {} ({})", gpu.gpu, gpu.name);
    if (!gpu.joules && !gpu.sampled_joules) {
      out += device + ": not available: this GPU has no energy counter and no power sensor\n";
      continue;
    }
    const std::optional<double>& joules = gpu.joules ? gpu.joules : gpu.sampled_joules;
    out += fmt::format("{}: {:.1f} J, {}{}{}, throttling: {}{}\n", device, *joules,
                       watts(joules, use.seconds),
                       gpu.limit_watts ? fmt::format(", limit {:.0f} W", *gpu.limit_watts) : "",
                       gpu.mean_sm_mhz ? fmt::format(", clock {:.0f} MHz", *gpu.mean_sm_mhz) : "",
                       throttle_words(gpu.throttle),
                       gpu.joules ? "" : ", from sampled power: there is no energy counter");
    // Below that the two readings of a short run differ by chance.
    constexpr double kLongEnough = 10;
    constexpr double kMost = 0.05;
    if (gpu.joules && gpu.sampled_joules && use.seconds >= kLongEnough &&
        std::fabs(*gpu.sampled_joules - *gpu.joules) > kMost * *gpu.joules)
      out +=
          fmt::format("{}: warning: sampled power gives {:.1f} J\n", device, *gpu.sampled_joules);
  }
  if (!use.no_gpu.empty()) out += "energy: GPU: not available: " + use.no_gpu + "\n";
  for (const CpuUse& cpu : use.cpus)
    out += fmt::format("energy: CPU {}: {:.1f} J, {}\n", cpu.name, cpu.joules,
                       watts(cpu.joules, use.seconds));
  if (!use.no_cpu.empty()) out += "energy: CPU: not available: " + use.no_cpu + "\n";
  for (const SensorUse& sensor : use.sensors) {
    const std::string name = "energy: sensor " + sensor.name + ": ";
    out += sensor.joules ? fmt::format("{}{:.1f} J, {}{}\n", name, *sensor.joules,
                                       watts(sensor.joules, use.seconds),
                                       sensor.counter ? "" : ", from sampled power")
                         : name + "not available: it could not be read all the time\n";
  }
  if (!use.no_sensor.empty()) out += "energy: sensor: not available: " + use.no_sensor + "\n";
  return out;
}

std::string energy_json(const EnergyUse& use, const std::vector<std::string>& command,
                        int exit_code) {
  const auto known = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  Json out = {{"format", "tally-energy"},
              {"version", 1},
              {"command", command},
              {"exit_code", exit_code},
              {"seconds", use.seconds},
              {"gpus", Json::array()},
              {"cpus", Json::array()},
              {"sensors", Json::array()},
              {"not_available", Json::object()}};
  for (const GpuUse& gpu : use.gpus) {
    out["gpus"].push_back({{"gpu", gpu.gpu},
                           {"name", gpu.name},
                           {"joules", known(gpu.joules)},
                           {"sampled_joules", known(gpu.sampled_joules)},
                           {"limit_watts", known(gpu.limit_watts)},
                           {"mean_sm_mhz", known(gpu.mean_sm_mhz)},
                           {"throttling", throttle_words(gpu.throttle)}});
  }
  for (const CpuUse& cpu : use.cpus)
    out["cpus"].push_back({{"name", cpu.name}, {"joules", cpu.joules}});
  for (const SensorUse& sensor : use.sensors)
    out["sensors"].push_back({{"name", sensor.name},
                              {"joules", known(sensor.joules)},
                              {"from", sensor.counter ? "counter" : "sampled power"}});
  if (!use.no_gpu.empty()) out["not_available"]["gpu"] = use.no_gpu;
  if (!use.no_cpu.empty()) out["not_available"]["cpu"] = use.no_cpu;
  if (!use.no_sensor.empty()) out["not_available"]["sensor"] = use.no_sensor;
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tally
