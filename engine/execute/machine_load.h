// The state of this machine while workpackages run: other programs, throttling, slow clocks.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/energy/gpu_devices.h"
#include "engine/workpackage/measured.h"

namespace tally {

// Ticks of CPU time up to one moment.
struct LoadSample {
  std::chrono::steady_clock::time_point time;
  double busy = 0;  // of all programs, seconds
  double own = 0;   // of this process and its descendants, seconds
};

class MachineLoad {
 public:
  // `proc`: the folder to read, which tests replace. `pid`: the process whose descendants are ours.
  explicit MachineLoad(std::string proc = "/proc", int pid = 0);

  // A sample, unless /proc cannot be read.
  std::optional<LoadSample> sample() const;

 private:
  std::string proc_;
  int pid_;
  double tick_;  // seconds
};

// Returns how many cores other programs used between two samples, on average, unless the
// time between them is too short to tell.
std::optional<double> cores_of_others(const LoadSample& from, const LoadSample& to);

// Whether others used so much that a measurement may have suffered: half a core, and more than the
// kernel's accounting may be wrong by (3 % of what our own programs used).
bool disturbs(const LoadSample& from, const LoadSample& to);

// Whether this machine's CPUs are slower than they should be, from Linux's /sys: thermal
// throttling, and clocks below the base clock.
class CpuClocks {
 public:
  // `root`: where /proc and /sys are, which tests replace.
  explicit CpuClocks(std::string root = "");

  // Whether the clocks of busy CPUs can be judged, so that look() is worth calling.
  bool has_clocks() const { return !base_.empty(); }
  // Takes a look at the clocks of CPUs that were busy since the last look. Call it about once a
  // second while something is measured.
  void look();

  // All that was seen up to one moment.
  struct Sample {
    long long events = 0;  // of thermal throttling, since the machine was started
    double looks = 0;      // at a busy CPU
    double ghz = 0;        // sum over the looks
    double base_ghz = 0;   // sum over the looks
  };
  Sample sample() const;

 private:
  struct Times {
    double busy = 0, all = 0;
  };
  std::map<int, Times> times() const;

  std::string root_;
  std::vector<std::string> counters_;  // files with numbers of throttling events
  std::map<int, double> base_;         // GHz, by CPU
  std::map<int, Times> before_;        // at the last look
  Sample seen_;
};

// "CPU: 12 thermal throttling events", "CPU: 1.80 GHz, below the base clock of 2.40 GHz"; both; or
// empty: the CPUs were as fast as they should be between the two samples.
std::string cpu_throttling(const CpuClocks::Sample& from, const CpuClocks::Sample& to);

// Notices that GPUs which workpackages use are used by other programs, too, or are throttled.
class GpuWatch {
 public:
  // The owner of a process.
  struct Owner {
    enum class Kind {
      workpackage,
      run,      // this run's, but it is not known which workpackage's
      other,    // another program's
      unknown,  // it has ended, or the kernel does not show it to us
    };
    Kind kind = Kind::unknown;
    int workpackage = -1;
  };
  using FindOwner = std::function<Owner(int pid)>;
  // `gpus` must outlive the object.
  GpuWatch(const GpuDevices& gpus, FindOwner find_owner);

  void started(int workpackage);
  // Looks at all GPUs. Call it about once a second while something is measured: only what a look
  // sees is known.
  void look();
  // The workpackage has ended. Adds what was seen on the GPUs that it used.
  void ended(int workpackage, Disturbance* disturbance);

 private:
  struct Seen {
    bool used = false;             // by the workpackage
    std::set<std::string> others;  // "process 4711 (python3)"
    uint64_t throttle = 0;
    // The time between looks that both found the GPU busy: seconds in all, and seconds below its
    // base clock that the power limit does not explain.
    double busy = 0, below = 0;
    std::optional<GpuWork> last;  // the last look
  };
  struct Watched {
    std::vector<Seen> gpus;
    double last = 0;  // seconds: the time of the last look
  };
  static void add_work(const GpuWork& work, double seconds, Seen* seen);
  void note_process(size_t gpu, int pid);
  static std::string throttling(const Seen& seen);

  const GpuDevices& gpus_;
  FindOwner find_owner_;
  std::vector<GpuSettings> settings_;
  std::map<int, Watched> watched_;
};

// The owner of a process. `run`: the mark of the run (left_behind.h).
GpuWatch::Owner owner_of(int pid, const std::string& run);

}  // namespace tally
