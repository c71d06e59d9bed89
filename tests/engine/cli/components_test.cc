// Heterogeneous jobs: what `components` of a run step make of its job script, and what is refused.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// Lines 1 to 6, then `step`.
std::string bench(const std::string& step, const std::string& platform = "slurm") {
  return "name: b\noutpath: runs\nparameterset: {name: p, parameter: [{name: n, _: \"2,3\"}, "
         "{name: "
         "c, _: \"a:1;b\"}]}\n"
         "step:\n  name: s\n  kind: run\n  use: p\n  platform: " +
         platform + "\n" + step;
}

constexpr const char* kTwo =
    "  components:\n"
    "    - resources: {nodes: 1, gpus_per_node: 4, cpus_per_task: 8, time: 30m, options: {qos: "
    "high}}\n"
    "      launch: ./train --nodes $nodes > out\n"
    "    - resources: {nodes: $n, tasks_per_node: 3, cpus_per_task: 2, partition: cpu, memory: "
    "8G,\n"
    "                  options: {gpus: 2, constraint: \"a b\"}}\n"
    "      launch: ./load --nodes $nodes\n";

void refused(const Shell& shell, const std::string& place, const std::string& message) {
  for (const char* command : {"validate b.yaml", "run b.yaml -n", "script b.yaml --out o"}) {
    CAPTURE(command);
    const Ran ran = shell.tally(command);
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, "b.yaml:" + place + ": error: "), ran.err);
    CHECK_MESSAGE(has(ran.err, message), ran.err);
    CHECK_MESSAGE(ran.err.find("error: ") == ran.err.rfind("error: "), ran.err);
  }
}

}  // namespace

TEST_CASE("each component has its part of the job script's head and of srun's line") {
  const Shell shell;
  shell.file("b.yaml", bench(kTwo));
  CHECK(shell.tally("validate b.yaml").code == 0);
  const std::string out = shell.tally("run b.yaml -n --script 1").out;
  CHECK_MESSAGE(has(out,
                    "#SBATCH --qos=high\n#SBATCH hetjob\n#SBATCH --nodes=3\n#SBATCH "
                    "--ntasks-per-node=3\n#SBATCH --cpus-per-task=2\n#SBATCH --mem=8G\n#SBATCH "
                    "--time=00:30:00\n#SBATCH --partition=cpu\n#SBATCH --gpus=2\n#SBATCH "
                    "--constraint=\"a b\"\n\n"),
                out);
  CHECK_MESSAGE(has(out,
                    "srun --het-group=0 ./train --nodes 1 > out : --het-group=1 --cpus-per-task=2 "
                    "env OMP_NUM_THREADS=2 ./load --nodes 3\n"),
                out);
}

TEST_CASE("the texts of a step and of its components know the nodes of all of them") {
  const Shell shell;
  std::string step = kTwo;
  for (size_t at = step.find("--nodes $nodes"); at != std::string::npos;
       at = step.find("--nodes $nodes", at + 1))
    step.replace(at, 14, "--nodes $nodes --all ${totalnodes}");
  shell.file("b.yaml", bench(step + "  env: {ALL: $totalnodes}\n"));
  const std::string out = shell.tally("run b.yaml -n --script 1").out;
  CHECK_MESSAGE(has(out, "./train --nodes 1 --all 4 > out : "), out);
  CHECK_MESSAGE(has(out, "./load --nodes 3 --all 4\n"), out);
  CHECK_MESSAGE(has(out, "ALL=\"4\"\n"), out);
}

TEST_CASE("the platform's values and options hold for each component") {
  const Shell shell;
  shell.file(
      "site.yaml",
      "platform:\n  name: site\n  partition: all\n  account: me\n  mpi: pmix\n  tasks_per_node: "
      "2\n  env: {OMP_NUM_THREADS: 1}\n  options: {qos: low, exclusive: true}\n");
  shell.file("b.yaml", bench(kTwo, "site.yaml"));
  const std::string out = shell.tally("run b.yaml -n --script 0").out;
  CHECK_MESSAGE(has(out, "#SBATCH --exclusive\n#SBATCH --qos=high\n#SBATCH hetjob\n"), out);
  CHECK_MESSAGE(has(out,
                    "#SBATCH --partition=cpu\n#SBATCH --account=me\n#SBATCH --qos=low\n#SBATCH "
                    "--exclusive\n#SBATCH --gpus=2\n"),
                out);
  CHECK_MESSAGE(has(out,
                    "srun --mpi=pmix --het-group=0 ./train --nodes 1 > out : --mpi=pmix "
                    "--het-group=1 --cpus-per-task=2 ./load --nodes 2\n"),
                out);
}

TEST_CASE("node-hours and limits count the nodes of all components") {
  const Shell shell;
  shell.file("b.yaml", bench(kTwo));
  const std::string out = shell.tally("run b.yaml -n").out;
  CHECK_MESSAGE(has(out, "1 job x 3 nodes x 00:30:00 = 1.5 node-hours"), out);
  CHECK_MESSAGE(has(out, "1 job x 4 nodes x 00:30:00 = 2.0 node-hours"), out);
  CHECK_MESSAGE(has(out, "asks for: nodes=1 cpus_per_task=8 gpus_per_node=4 time=30m and "), out);
  const Ran ran = shell.tally("run b.yaml --max-node-hours 3.4");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "3.5 node-hours in 2 jobs, more than the 3.4"), ran.err);
  CHECK(shell.tally("run b.yaml -n --max-node-hours 3.5").code == 0);
}

TEST_CASE("components that are no job are refused at their place") {
  const Shell shell;
  const std::string two = "    - {resources: {nodes: 1}, launch: ./b}\n";
  const auto says = [&](const std::string& step, const std::string& place,
                        const std::string& message, const std::string& platform = "slurm") {
    CAPTURE(step);
    shell.file("b.yaml", bench(step, platform));
    refused(shell, place, message);
  };
  const std::string one = "  components:\n    - {resources: {nodes: 1}, launch: ./a}\n";
  says("  resources: {nodes: 1}\n" + one + two, "9:3", "step 's' has 'resources' and 'components'");
  says("  launch: ./c\n" + one + two, "9:3", "step 's' has 'launch' and 'components'");
  says("  pack: array\n" + one + two, "9:3", "step 's' has 'pack' and 'components'");
  says(one + "    - {resources: {nodez: 1}, launch: ./b}\n", "11:20",
       "unknown key 'nodez' in resources");
  says(one + "    - {nodes: 1, launch: ./b}\n", "11:8", "unknown key 'nodes' in components");
  says(one + "    - {resources: {nodes: 1}}\n", "11:8", "a component of step 's' launches nothing");
  says("  components: []\n", "4:1", "step 's' does nothing");
  says(one + "    - {resources: {nodes: 1, time: 5m}, launch: ./b}\n", "11:36",
       "the components of a job have one time limit");
  says(one + "    - {resources: {nodes: [1, 2]}, launch: ./b}\n", "11:28",
       "'nodes' of a component has one value");
  says(one + "    - {resources: {nodes: 0}, launch: ./b}\n", "11:27",
       "step 's': nodes \"0\" is not a whole number of at least 1");
  says(one + "    - {resources: {nodes: 1, options: {time: 5}}, launch: ./b}\n", "11:40",
       "option 'time' has the meaning of the key 'time'");
  says(one + "    - {resources: {gpus_per_node: 1, options: {gpus: 2}}, launch: ./b}\n", "11:48",
       "option 'gpus' contradicts the key 'gpus_per_node'");
  says(one + "    - {resources: {memory: much}, launch: ./b}\n", "11:28",
       "memory 'much' is not an amount that sbatch reads");
  says(one + "    - {launch: srun ./b}\n", "11:16", "begins with 'srun'");
  for (const char* more : {"./b | tee x", "./b && ./c", "./b; ./c", "./b 1 : 2", "./b $c"}) {
    says(one + "    - {launch: \"" + more + "\"}\n", "11:16", "a component launches one program");
  }
  says(one + two, "11:8", "needs Slurm, and its scheduler is Grid Engine", "sge");
  says(one + two, "11:8", "needs Slurm, and it runs on this machine", "local");
  shell.file("mpi.yaml", "platform:\n  name: mpi\n  launcher: mpirun -n $tasks\n");
  says(one + two, "11:8", "started by srun, and its platform's launcher is 'mpirun", "mpi.yaml");
}

TEST_CASE("texts of the shell that are one program are one") {
  const Shell shell;
  shell.file("b.yaml", bench("  components:\n    - launch: \"bash -c 'a | b; c : d' > out 2>&1\"\n"
                             "    - launch: ./b $(nproc) host:1 \\; \"x & y\"\n"));
  const Ran ran = shell.tally("validate b.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  // One component, as tags may leave it, is a job like others.
  shell.file("b.yaml",
             bench("  components:\n    - {launch: \"./a | b\", resources: {nodes: 2}}\n"));
  const std::string out = shell.tally("run b.yaml -n --script 0").out;
  CHECK_MESSAGE(has(out, "  srun ./a | b\n"), out);
  CHECK(!has(out, "hetjob"));
}
