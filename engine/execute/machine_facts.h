// The facts that a result depends on besides the workflow: this machine, its software and its
// state.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tally {

using Facts = std::vector<std::pair<std::string, std::string>>;

class GpuDevices;

// Host, kernel, CPU, memory, GPUs, fabric, modules, environment; the commit of the folder `home` if
// Git is there; the versions of the compilers that PATH names. Facts that cannot be read are left
// out. `gpus`: null if there are none that can be read; `no_gpus` then says why. The fact
// kUnwatchedGpus says that the machine has GPUs all the same. `root`: where /proc and /sys are,
// which tests replace.
Facts machine_facts(const std::string& home, const GpuDevices* gpus = nullptr,
                    const std::string& no_gpus = "", const std::string& root = "");
inline constexpr const char* kUnwatchedGpus = "GPUs not watched";
// The load averages, "0.52 0.40 0.31". Empty: unknown.
std::string load_average(const std::string& root = "");
// The facts of a run of several sessions. Where sessions differ, the values are joined by " / ".
Facts merged(const std::vector<Facts>& sessions);

struct FactDifference {
  std::string name, base, other;  // empty: it was not known
};
// The facts in which two runs differ, without those that differ from run to run on one machine.
std::vector<FactDifference> differences(const Facts& base, const Facts& other);

}  // namespace tally
