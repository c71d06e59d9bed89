// Notices that GPUs which workpackages use are used by other programs, too, or are throttled.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/energy/gpu_devices.h"
#include "engine/workpackage/disturbance.h"

namespace tally {

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
