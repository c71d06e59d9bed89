// The machine of a run: what a reader needs to judge its numbers.
#pragma once

#include <cstddef>
#include <string>

namespace tally::train {

std::string host_name();
// UTC, ISO 8601 with seconds: "2026-11-21T06:00:00Z".
std::string utc_now();
// Version of the cuDNN that is loaded in this process, as "9.19.0"; empty when none is.
std::string loaded_cudnn_version();
// NVIDIA GPUs that this host's driver lists, whether or not this build can use them.
int nvidia_gpus_of_host(const std::string& root = "/");
// Highest resident memory of this process so far, in bytes.
size_t peak_resident_bytes();
// Threads to compute with: OMP_NUM_THREADS, else SLURM_CPUS_PER_TASK, else the processors that this
// process may run on, divided by the `local_size` processes of the run on this host unless the
// launcher has bound each to its own. A container's or a service's share of processor time (cgroup
// cpu.max, cpu.cfs_quota_us) counts for all of them together: more threads than that would wait for
// each other while the kernel holds them back.
int default_threads(int local_size = 1, const std::string& root = "/");
// Whether the user or the launcher has said how many (OMP_NUM_THREADS, SLURM_CPUS_PER_TASK).
bool threads_are_given();

}  // namespace tally::train
