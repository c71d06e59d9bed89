// The identity of this process among the processes of a run, according to what started it.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "src/parallel/control/errors.h"
#include "src/parallel/control/token.h"

namespace tally::train {

// The flags about it.
struct LaunchOptions {
  int processes = 0;           // --nproc-per-node; 0: not given
  std::string address;         // --master-addr
  std::string address_suffix;  // --master-addr-suffix
  int port = 0;                // --master-port; 0: not given
  std::string interface;       // --network-interface
  std::string token_file;      // --rendezvous-token-file
  std::string backend;         // --distributed-backend: "nccl", "mpi", "sockets", "" to choose
  bool prefix = false;         // --prefix-output
  // --distributed-timeout-minutes: how long processes wait for each other. Not given: each kind of
  // waiting has its own default.
  std::optional<double> timeout_minutes;
  double start_seconds() const { return timeout_minutes.value_or(10) * 60; }
  // The time for which a process may be silent while its host answers, and the time for which a
  // host may be. Less than a second would depend on scheduling.
  double silence_seconds() const { return std::max(1.0, timeout_minutes.value_or(0.1) * 60); }
  double host_silence_seconds() const { return std::max(1.0, timeout_minutes.value_or(1) * 60); }
  // The time for which an operation of a group may wait for its ranks.
  double operation_seconds() const { return std::max(1.0, timeout_minutes.value_or(10) * 60); }
  // The time from a request to stop to SIGKILL. It must be long enough for a large checkpoint.
  double stop_seconds() const { return timeout_minutes.value_or(10) * 60; }
};

struct Launch {
  int rank = 0, size = 1;              // among all processes
  int local_rank = 0, local_size = 1;  // on this host
  int nodes = 1;
  // "one process", "srun", "mpirun", "PMI", "RANK and WORLD_SIZE", "--nproc-per-node"
  std::string source = "one process";
  std::string run;  // the same on all ranks, different in runs that might meet by mistake
  // The address on which rank 0 waits for the others. Empty and 0 for one process.
  std::string address;
  int port = 0;
  TokenSource token;        // the ranks know each other by it
  int listening_fd = -1;    // rank 0 under --nproc-per-node: listens already
  int supervisor_fd = -1;   // the parent reports ranks that were killed here
  bool supervised = false;  // started by a tally-train, which watches
  bool mpi = false;         // an MPI launcher started exactly these processes
  // Nobody collects this process's output together with rank 0's: a person started it, or it is
  // the first that torchrun started on its host.
  bool own_output = false;
};

// Reads one variable of the environment: null when it is not set.
using Environment = std::function<const char*(const char*)>;

// Takes the first of: a parent tally-train or torchrun (RANK, WORLD_SIZE, LOCAL_RANK,
// LOCAL_WORLD_SIZE), mpirun (OMPI_*), PMI_*, srun (SLURM_*). Where two of them describe the same
// processes and disagree, or one is incomplete, it throws LaunchError with a sentence that names
// the variables. A batch script without srun is one process.
//   address: --master-addr, MASTER_ADDR, this host (one node), the first host of Slurm's list with
//   the
//            suffix after its first label
//   port:    --master-port, MASTER_PORT, one made of Slurm's job and step or of mpirun's job
//   token:   --rendezvous-token-file, TALLY_RENDEZVOUS_TOKEN (of a parent tally-train before the
//            flag), a file that rank 0 makes in the folder in which Slurm or mpirun started it; else none()
// With options.processes this is the launch of the tally-train that starts them: one per node.
Launch discover_launch(const LaunchOptions& options, const Environment& environment);

// "node3.cluster" with suffix "i": "node3i.cluster".
std::string with_suffix(const std::string& host, const std::string& suffix);

}  // namespace tally::train
