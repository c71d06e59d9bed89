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
