#include "engine/workflow/scheduler_options.h"

namespace tally {
namespace {

constexpr const char* kOutput =
    "a job's output goes to stdout and stderr of its workpackage, where results look for it";
constexpr const char* kFolder =
    "a job runs in its workpackage's folder; the step's work_dir names another one";
constexpr const char* kSubmits = "tally submits the job script and follows the job";
constexpr const char* kComponents =
    "heterogeneous jobs are not supported; a job script of your own (`template` of a platform) can "
    "have several components";
constexpr const char* kName = "a job's name is made of the benchmark's and the step's";

}  // namespace

const std::vector<SlurmOption>& slurm_options() {
  constexpr OptionArgument none = OptionArgument::none;
  constexpr OptionArgument some = OptionArgument::required;
  constexpr OptionArgument maybe = OptionArgument::optional;
  constexpr OptionUse key = OptionUse::key, own = OptionUse::own, free = OptionUse::free;
  static const std::vector<SlurmOption> options = {
      {"account", 'A', some, key, "account"},
      {"acctg-freq", 0, some},
      {"array", 'a', some, own, "the step's `pack: array` makes a job array of its workpackages"},
      {"batch", 0, some},
      {"bb", 0, some},
      {"bbf", 0, some},
      {"begin", 'b', some},
      {"chdir", 'D', some, own, kFolder},
      {"cluster-constraint", 0, some},
      {"clusters", 'M', some},
      {"comment", 0, some},
      {"consolidate-segments", 0, none},
      {"constraint", 'C', some},
      {"container", 0, some, key, "container"},
      {"container-id", 0, some},
      {"contiguous", 0, none},
      {"core-spec", 'S', some},
      {"cores-per-socket", 0, some},
      {"cpu-freq", 0, some},
      {"cpus-per-gpu", 0, some, key, "cpus_per_task"},
      {"cpus-per-task", 'c', some, key, "cpus_per_task"},
      {"deadline", 0, some},
      {"delay-boot", 0, some},
      {"dependency", 'd', some},
      {"distribution", 'm', some},
      {"error", 'e', some, own, kOutput},
      {"exclude", 'x', some},
      {"exclusive", 0, maybe, free, "", "user,mcs,topo,exclusive,oversubscribe"},
      {"export", 0, some},
      {"export-file", 0, some},
      {"extra", 0, some},
      {"extra-node-info", 'B', some},
      {"get-user-env", 0, maybe},
      {"gid", 0, some},
      {"gpu-bind", 0, some},
      {"gpu-freq", 0, some},
      {"gpus", 'G', some, OptionUse::beside_gpus},
      {"gpus-per-node", 0, some, key, "gpus_per_node"},
      {"gpus-per-socket", 0, some, OptionUse::beside_gpus},
      {"gpus-per-task", 0, some, OptionUse::beside_gpus},
      {"gres", 0, some, OptionUse::beside_gpus},
      {"gres-flags", 0, some},
      {"help", 'h', none, own, kSubmits},
      {"hetjob", 0, maybe, own, kComponents},
      {"hint", 0, some, key, "hint"},
      {"hold", 'H', none},
      {"ignore-pbs", 0, none},
      {"input", 'i', some},
      {"job-name", 'J', some, own, kName},
      {"kill-on-invalid-dep", 0, some},
      {"licenses", 'L', some},
      {"mail-type", 0, some},
      {"mail-user", 0, some},
      {"mcs-label", 0, some},
      {"mem", 0, some, key, "memory"},
      {"mem-bind", 0, some},
      {"mem-per-cpu", 0, some, OptionUse::beside_memory},
      {"mem-per-gpu", 0, some, OptionUse::beside_memory},
      {"mincpus", 0, some},
      {"network", 0, some},
      {"nice", 0, maybe},
      {"no-kill", 'k', maybe, free, "", "set,off,no"},
      {"no-requeue", 0, none},
      {"nodefile", 'F', some},
      {"nodelist", 'w', some},
      {"nodes", 'N', some, key, "nodes"},
      {"ntasks", 'n', some, key, "tasks_per_node"},
      {"ntasks-per-core", 0, some},
      {"ntasks-per-gpu", 0, some, key, "tasks_per_node"},
      {"ntasks-per-node", 0, some, key, "tasks_per_node"},
      {"ntasks-per-socket", 0, some},
      {"oom-kill-step", 0, maybe},
      {"open-mode", 0, some, own, kOutput},
      {"output", 'o', some, own, kOutput},
      {"overcommit", 'O', none},
      {"oversubscribe", 's', none},
      {"packjob", 0, maybe, own, kComponents},
      {"parsable", 0, none, own, kSubmits},
      {"partition", 'p', some, key, "partition"},
      {"power", 0, some},
      {"prefer", 0, some},
      {"priority", 0, some},
      {"profile", 0, some},
      {"propagate", 0, maybe, free, "",
       "ALL,NONE,AS,CORE,CPU,DATA,FSIZE,MEMLOCK,NOFILE,NPROC,RSS,STACK"},
      {"qos", 'q', some},
      {"quiet", 'Q', none},
      {"reboot", 0, none},
      {"requeue", 0, none},
      {"reservation", 0, some},
      {"resv-ports", 0, maybe},
      {"segment", 0, some},
      {"signal", 0, some, key, "signal"},
      {"sockets-per-node", 0, some},
      {"spread-job", 0, none},
      {"spread-segments", 0, none},
      {"stepmgr", 0, none},
      {"switches", 0, some},
      {"tasks-per-node", 0, some, key, "tasks_per_node"},
      {"test-only", 0, none, own, kSubmits},
      {"thread-spec", 0, some},
      {"threads-per-core", 0, some},
      {"time", 't', some, key, "time"},
      {"time-min", 0, some},
      {"tmp", 0, some},
      {"tres-bind", 0, some},
      {"tres-per-task", 0, some, OptionUse::beside_gpus},
      {"uid", 0, some},
      {"usage", 0, none, own, kSubmits},
      {"use-min-nodes", 0, none},
      {"verbose", 'v', none},
      {"version", 'V', none, own, kSubmits},
      {"wait", 'W', none, own, kSubmits},
      {"wait-all-nodes", 0, some},
      {"wckey", 0, some},
      {"wrap", 0, some, own, kSubmits},
  };
  return options;
}

}  // namespace tally
