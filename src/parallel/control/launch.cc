#include "src/parallel/control/launch.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>

#include "src/parallel/control/host_list.h"

namespace tally::train {
namespace {

template <typename... Args>
[[noreturn]] void fail_launch(fmt::format_string<Args...> text, Args&&... args) {
  throw LaunchError(fmt::format(text, std::forward<Args>(args)...));
}

// Environment variables with their names, so that messages can show them.
class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}
  bool has(const char* name) const { return !text(name).empty(); }
  std::string text(const char* name) const {
    const char* value = environment_(name);
    return value == nullptr ? "" : value;
  }
  std::optional<int> number(const char* name) const {
    const std::string value = text(name);
    if (value.empty()) return std::nullopt;
    int n = 0;
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, n);
    if (stop != end || error != std::errc() || n < 0)
      fail_launch("{}={} is not a number of processes or a rank", name, value);
    return n;
  }
  int number(const char* name, const char* beside) const {
    const auto n = number(name);
    if (!n)
      fail_launch("{}={} is set and {} is not: set both or neither", beside, text(beside), name);
    return *n;
  }

 private:
  const Environment& environment_;
};

// The ranks that one launcher's variables give. The names are for messages.
struct Claim {
  int rank = 0, size = 1;
  std::optional<int> local_rank, local_size, nodes;
  const char* source = "";
  const char* rank_name = "";
  const char* size_name = "";
};

std::optional<Claim> claim_of(const Variables& v, const char* source, const char* rank,
                              const char* size, const char* local_rank, const char* local_size) {
  if (!v.has(rank) && !v.has(size)) return std::nullopt;
  Claim c;
  c.rank = v.number(rank, size);
  c.size = v.number(size, rank);
  c.local_rank = v.number(local_rank);
  c.local_size = v.number(local_size);
  c.source = source;
  c.rank_name = rank;
  c.size_name = size;
  if (c.size < 1 || c.rank >= c.size)
    fail_launch("{}={} and {}={} cannot both be true", rank, c.rank, size, c.size);
  return c;
}

std::optional<Claim> claim_of_slurm(const Variables& v) {
  // Only srun sets it. A batch script has the job's variables and is one process.
  if (!v.has("SLURM_STEP_NUM_TASKS")) return std::nullopt;
  auto c = claim_of(v, "srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "");
  c->nodes = v.number("SLURM_STEP_NUM_NODES");
  if (!c->nodes) c->nodes = v.number("SLURM_NNODES");
  const auto node = v.number("SLURM_NODEID");
  if (node && v.has("SLURM_STEP_TASKS_PER_NODE")) {
    const auto tasks = expand_tasks_per_node(v.text("SLURM_STEP_TASKS_PER_NODE"));
    if (static_cast<size_t>(*node) < tasks.size())
      c->local_size = tasks[static_cast<size_t>(*node)];
  }
  return c;
}

// The launcher around this process: the innermost of those that start processes per node.
std::optional<Claim> outer_claim(const Variables& v) {
  const auto slurm = claim_of_slurm(v);
  if (auto c = claim_of(v, "mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                        "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"))
    return c;
  if (auto c = claim_of(v, "PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")) {
    // Slurm's own PMI has less information than Slurm's variables.
    if (slurm && slurm->size == c->size && slurm->rank == c->rank) return slurm;
    return c;
  }
  if (const auto pmix = v.number("PMIX_RANK"); slurm && pmix && *pmix != slurm->rank)
    fail_launch(
        "PMIX_RANK={} and SLURM_PROCID={} disagree: start the program by srun --mpi=pmix directly",
        *pmix, slurm->rank);
  return slurm;
}

// The claim of RANK and WORLD_SIZE, unless one is missing and another launcher gives the same.
std::optional<Claim> torchrun_claim(const Variables& v, const std::optional<Claim>& outer) {
  const auto size = v.number("WORLD_SIZE");
  const auto rank = v.number("RANK");
  if (!size && !rank) return std::nullopt;
  if (!rank && size && (*size == 1 || (outer && outer->size == *size))) return std::nullopt;
  return claim_of(v, "RANK and WORLD_SIZE", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE");
}

// A process of one launcher may have started several itself (torchrun, or a parent tally-train).
// Otherwise the two launchers must agree.
void check_agreement(const Variables& v, const Claim& inner, const Claim& outer) {
  if (v.has("TORCHELASTIC_RUN_ID") || v.has("TALLY_SUPERVISED") || outer.size == 1) return;
  if (inner.size == outer.size && inner.rank == outer.rank) return;
  fail_launch(
      "{}={} and {}={} contradict {}, which says {}={} and {}={}: unset {} and {}, or start the "
      "program without {}",
      inner.rank_name, inner.rank, inner.size_name, inner.size, outer.source, outer.rank_name,
      outer.rank, outer.size_name, outer.size, inner.rank_name, inner.size_name, outer.source);
}

// The same number on all ranks of a run, seldom the same for two.
uint64_t hash_of(const std::string& text) {
  uint64_t h = 14695981039346656037ULL;  // FNV-1a
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return h ^ (h >> 29);
}

// The name that mpirun or Slurm gives to the processes that it has started.
std::string launcher_run(const Variables& v) {
  if (v.has("OMPI_COMM_WORLD_SIZE")) {
    for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"})
      if (v.has(name)) return "mpirun " + v.text(name);
  }
  if (v.has("SLURM_JOB_ID"))
    return fmt::format("Slurm {}.{}", v.text("SLURM_JOB_ID"), v.text("SLURM_STEP_ID"));
  return "";
}

std::string run_name(const Variables& v) {
  if (v.has("TALLY_SUPERVISED")) return v.text("TALLY_SUPERVISED");
  if (v.has("TORCHELASTIC_RUN_ID")) return "torchrun " + v.text("TORCHELASTIC_RUN_ID");
  return launcher_run(v);
}

// These ports lie below those that systems use for outgoing connections.
int port_for(const std::string& run) {
  return 12000 + static_cast<int>(hash_of(run) % 20000);
}

// A parent tally-train has evaluated the flags already, so its port counts.
int choose_port(const LaunchOptions& options, const Variables& v, const std::string& run) {
  if (options.port != 0 && !v.has("TALLY_SUPERVISED")) return options.port;
  // torchrun's own process may listen at MASTER_PORT, for PyTorch's store. A tally-train that it
  // started has given its own ranks another port.
  const bool taken = v.text("TORCHELASTIC_USE_AGENT_STORE") == "True" && !v.has("TALLY_SUPERVISED");
  if (taken) return port_for(run + " " + v.text("MASTER_PORT"));
  if (const std::string text = v.text("MASTER_PORT"); !text.empty()) {
    int port = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (stop != text.data() + text.size() || error != std::errc() || port < 1 || port > 65535)
      fail_launch("MASTER_PORT={} is not a valid port: 1 to 65535", text);
    return port;
  }
  if (run.empty()) return 29500;  // torchrun's
  return port_for(run);
}

std::string choose_address(const LaunchOptions& options, const Variables& v, const Launch& launch) {
  if (!options.address.empty() && !launch.supervised) return options.address;
  if (v.has("MASTER_ADDR")) return v.text("MASTER_ADDR");
  if (launch.nodes == 1) return "127.0.0.1";
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"})
    if (v.has(name))
      return with_suffix(expand_host_list(v.text(name)).front(), options.address_suffix);
  fail_launch(
      "{} started {} processes on several hosts, and it is not known where they meet: give "
      "--master-addr HOST or MASTER_ADDR, the host of rank 0",
      launch.source, launch.size);
}

// Slurm and mpirun start all processes in the same folder, and give no secret.
TokenSource choose_token(const LaunchOptions& options, const Variables& v, const Launch& launch) {
  TokenSource token;
  const bool variable = v.has(token_variable);
  if (!options.token_file.empty() && !(launch.supervised && variable)) {
    token.file = options.token_file;
  } else if (variable) {
    token.text = v.text(token_variable);
    check_token(token.text, token_variable);
  } else if (std::string name = launcher_run(v); !name.empty()) {
    for (char& c : name)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.') c = '-';
    token.file = fmt::format(".tally-train.{}.{}.token", name, launch.port);
    token.zero_makes = true;
  }
  return token;
}

Launch launch_of(const Claim& c) {
  Launch launch;
  launch.rank = c.rank;
  launch.size = c.size;
  launch.source = c.source;
  if (c.size == 1) return launch;
  if (!c.local_rank)
    fail_launch(
        "{}={} of {} processes, and it is not known which of its host's processes this is: set "
        "LOCAL_RANK",
        c.rank_name, c.rank, c.size);
  launch.local_rank = *c.local_rank;
  // Only Slurm counts nodes. Elsewhere what matters is whether there is one host or several.
  launch.local_size = c.local_size.value_or(c.nodes == 1 ? c.size : *c.local_rank + 1);
  launch.nodes = c.nodes.value_or(c.local_size == c.size ? 1 : 2);
  if (launch.local_rank >= launch.local_size)
    fail_launch("local rank {} of {} local processes ({}) is impossible", launch.local_rank,
                launch.local_size, c.source);
  return launch;
}

}  // namespace

std::string with_suffix(const std::string& host, const std::string& suffix) {
  const size_t dot = std::min(host.find('.'), host.size());
  return host.substr(0, dot) + suffix + host.substr(dot);
}

Launch discover_launch(const LaunchOptions& options, const Environment& environment) {
  const Variables v(environment);
  const auto outer = outer_claim(v);
  const auto inner = torchrun_claim(v, outer);
  const bool supervised = v.has("TALLY_SUPERVISED");
  if (inner && outer) check_agreement(v, *inner, *outer);
  const bool starts = options.processes > 0 && !supervised;
  if (starts && inner && inner->size > 1)
    fail_launch(
        "--nproc-per-node starts processes, and {}={} says that a launcher did already: leave one "
        "of them out",
        inner->size_name, inner->size);
  std::optional<Claim> claim = inner ? inner : outer;
  if (inner && outer && inner->size == outer->size && inner->rank == outer->rank) {
    // The launcher around torchrun may say what its variables leave open.
    if (!claim->local_rank) claim->local_rank = outer->local_rank;
    if (!claim->local_size) claim->local_size = outer->local_size;
    if (!claim->nodes) claim->nodes = outer->nodes;
  }
  Launch launch = claim ? launch_of(*claim) : Launch();
  if (starts && launch.local_size > 1)
    fail_launch(
        "--nproc-per-node {}: {} started {} processes on this host already, and each would start "
        "as many: give {} one process a node, or leave out --nproc-per-node",
        options.processes, launch.source, launch.local_size, launch.source);
  launch.supervised = supervised;
  launch.run = run_name(v);
  if (supervised) launch.source = "--nproc-per-node";
  const bool collected = supervised || (outer && outer->size == launch.size);
  launch.own_output =
      inner && !collected && (!v.has("TORCHELASTIC_RUN_ID") || launch.local_rank == 0);
  launch.mpi = outer && outer->size == launch.size && launch.size > 1;
  if (launch.size > 1) {
    launch.address = choose_address(options, v, launch);
    launch.port = choose_port(options, v, launch.run);
    launch.token = choose_token(options, v, launch);
  }
  if (const auto fd = v.number("TALLY_RENDEZVOUS_FD"); supervised && fd && launch.rank == 0)
    launch.listening_fd = *fd;
  if (const auto fd = v.number("TALLY_SUPERVISOR_FD"); supervised && fd) launch.supervisor_fd = *fd;
  return launch;
}

}  // namespace tally::train
