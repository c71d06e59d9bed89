#include "src/measure/busy_processors.h"

#include <sched.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>

namespace tally::train {
namespace {

struct Ticks {
  uint64_t idle = 0, all = 0;
};

// Times by number of the processor, from lines "cpu3 user nice system idle iowait irq softirq steal
// ...". The fields after these (guests) are part of user.
std::map<int, Ticks> ticks_of(const std::string& root) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::map<int, Ticks> found;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return found;
  std::ifstream in(root + "proc/stat");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("cpu", 0) != 0 || line.size() < 4 || line[3] == ' ') continue;
    std::istringstream fields(line.substr(3));
    int processor = -1;
    fields >> processor;
    if (processor < 0 || processor >= CPU_SETSIZE || !CPU_ISSET(processor, &allowed)) continue;
    Ticks& t = found[processor];
    for (int field = 0; field < 8; ++field) {
      uint64_t value = 0;
      fields >> value;
      t.all += value;
      if (field == 3 || field == 4) t.idle += value;
    }
  }
  return found;
}

}  // namespace

int busy_processors(const std::function<void()>& pause, const std::string& root) {
  const std::map<int, Ticks> before = ticks_of(root);
  if (before.empty()) return 0;
  pause();
  const std::map<int, Ticks> after = ticks_of(root);
  double busy = 0;
  for (const auto& [processor, then] : before) {
    const auto now = after.find(processor);
    if (now == after.end() || now->second.all <= then.all) continue;
    const double all = static_cast<double>(now->second.all - then.all);
    busy += 1 - static_cast<double>(now->second.idle - then.idle) / all;
  }
  return static_cast<int>(std::lround(busy));
}

}  // namespace tally::train
