// tally doctor: what is said of a machine that has a thing, and of one that has not.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// An empty folder as PATH but for these programs.
Ran doctor(const Shell& shell, const std::string& before = "") {
  return shell.sh(before + "PATH=$PWD/bin \"$TALLY\" doctor");
}

}  // namespace

TEST_CASE("doctor: a machine without anything says what does not work, and why") {
  const Shell shell;
  shell.sh("mkdir bin");
  const Ran ran = doctor(shell);
  CHECK_MESSAGE(ran.code == 0, ran.err);
  for (const char* text : {"Machine\n  Host ", "\n  CPU  ", "\n  Memory ", "\nThis folder\n  Path ",
                           " free\n", "\nMissing\n", "\n  Scheduler           sbatch: ",
                           "`tally script` writes the job scripts\n",
                           "\n  python3             it is not in PATH: expressions (`where`, "
                           "`mode: python`) are errors\n",
                           "\n  Containers          neither apptainer, "}) {
    CAPTURE(text);
    CHECK_MESSAGE(has(ran.out, text), ran.out);
  }
}

TEST_CASE("doctor: what PATH has is shown with its version, and is not missing") {
  const Shell shell;
  shell.sh("mkdir bin && ln -s \"$(command -v sh)\" bin/sh");
  const auto program = [&](const char* name, const std::string& body) {
    shell.file(std::string("bin/") + name, "#!/bin/sh\n" + body);
    shell.sh(std::string("chmod +x bin/") + name);
  };
  program("sbatch", "echo slurm-wlm 24.11.5\n");
  program("sinfo",
          "echo 'gpu*|4|72|480000|gpu:gh200:4|1-00:00:00|up'\necho "
          "'old|1|8|16000|(null)|infinite|drain'\n");
  program("sacct", "echo Slurm accounting storage is disabled >&2; exit 1\n");
  program("python3", "echo Python 3.11.2\n");
  program("apptainer", "");
  const Ran ran = doctor(shell);
  CHECK_MESSAGE(ran.code == 0, ran.err);
  for (const char* text :
       {"\nJobs\n  Scheduler           slurm-wlm 24.11.5\n",
        "\n  Partition           gpu*: 4 nodes of 72 CPUs and 480000 MB, gpu:gh200:4, limit "
        "1-00:00:00\n",
        "\n  Partition           old: 1 node of 8 CPUs and 16000 MB, limit infinite, drain\n",
        "\n  Accounting          none: ", "\n  python3             Python 3.11.2 (/",
        "/bin/apptainer\n"}) {
    CAPTURE(text);
    CHECK_MESSAGE(has(ran.out, text), ran.out);
  }
  const std::string missing = ran.out.substr(ran.out.find("\nMissing\n"));
  for (const char* name : {"  Scheduler", "  python3", "  Containers"})
    CHECK_MESSAGE(!has(missing, name), ran.out);
}

TEST_CASE("doctor: a folder in which no run can be kept is exit code 1") {
  const Shell shell;
  shell.sh("mkdir bin");
  // Root may write everywhere but there.
  const Ran ran = shell.sh("cd /proc && PATH=/nowhere \"$TALLY\" doctor");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out, "\n  File system         proc"), ran.out);
  CHECK_MESSAGE(has(ran.out, "\n  Runs                no file can be made in it: "), ran.out);
}

// The programs stand for those of a cluster that Tally has not seen: lines as their manuals show them.
TEST_CASE("platform detect: PBS, LSF and Flux by what their commands print") {
  const Shell shell;
  const auto program = [&](const char* name, const std::string& body) {
    shell.sh("mkdir -p bin");
    shell.file(std::string("bin/") + name, "#!/bin/sh\n" + body);
    shell.sh(std::string("chmod +x bin/") + name);
  };
  const auto detect = [&](const std::string& scheduler) {
    const Ran ran = shell.sh("PATH=$PWD/bin:$PATH \"$TALLY\" platform detect --scheduler " +
                             scheduler + " -o " + scheduler + ".yaml");
    CHECK_MESSAGE(ran.code == 0, ran.err);
    const Ran valid = shell.tally("validate " + scheduler + ".yaml");
    CHECK_MESSAGE(valid.code == 0, valid.err);
    return shell.content(scheduler + ".yaml");
  };
  for (const char* name : {"qsub", "bsub", "bjobs"}) program(name, "exit 1\n");
  program("pbsnodes",
          "for n in 1 2; do printf 'node%s\\n     Mom = node%s\\n     ntype = PBS\\n     state = "
          "free\\n"
          "     resources_available.mem = 527672492kb\\n     resources_available.ncpus = 64\\n"
          "     resources_available.ngpus = 4\\n\\n' $n $n; done\n"
          "printf 'login\\n     resources_available.ncpus = 8\\n     resources_available.mem = "
          "1kb\\n'\n");
  program(
      "qstat",
      "printf 'Queue: route\\n    queue_type = Route\\n    started = True\\n\\nQueue: workq\\n"
      "    queue_type = Execution\\n    resources_max.walltime = 24:00:00\\n    enabled = True\\n"
      "    started = True\\n\\n'\n");
  const std::string pbs = detect("pbs");
  for (const char* text :
       {"  scheduler: pbs\n",
        "  partition: workq               # workq: 2 nodes of 64 CPUs and 527672492kb, ngpus=4, "
        "limit 24:00:00\n",
        "\n  gpus_per_node: 4 ", "\n  # cpus_per_task: 16 ", "\n  # max_time: 86400 "})
    CHECK_MESSAGE(has(pbs, text), pbs);
  CHECK(!has(pbs, "route"));
  program(
      "bqueues",
      "echo 'QUEUE_NAME      PRIO STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN  SUSP'\n"
      "echo 'normal           30  Open:Active       -    -    -    -     0     0     0     0'\n"
      "echo 'night            20  Open:Inact        -    -    -    -     0     0     0     0'\n");
  const std::string lsf = detect("lsf");
  for (const char* text : {"\n  # partition:                   # fill in one of these\n",
                           "\n  # partition: normal            # normal\n",
                           "\n  # partition: night             # night: Open:Inact\n"})
    CHECK_MESSAGE(has(lsf, text), lsf);
  program("flux", "[ \"$1 $2\" = 'queue list' ] && echo 'batch|||||8h|'\n");
  const std::string flux = detect("flux");
  for (const char* text :
       {"\n  partition: batch               # batch: limit 8h\n", "\n  # max_time: 28800 "})
    CHECK_MESSAGE(has(flux, text), flux);
  // A scheduler that says nothing is an error in its words, and no file.
  program("bqueues",
          "echo 'Failed in an LSF library call: LIM is down; try later' >&2; exit 255\n");
  const Ran ran =
      shell.sh("PATH=$PWD/bin:$PATH \"$TALLY\" platform detect --scheduler lsf -o n.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "LIM is down"), ran.err);
  CHECK(!shell.exists("n.yaml"));
}
