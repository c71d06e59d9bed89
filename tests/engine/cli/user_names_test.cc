// Parameters with the names of a platform, and of values that Tally gives to jobs, are the user's.
// Lists under `resources` are parameters. Tags and platforms that nothing knows are errors.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using namespace tally;
using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// All names that platforms or kinds of step use, and which a user may want.
constexpr const char* kNames =
    "parameters: {nodes: [1, 2], tasks: 7, taskspernode: 8, memory: big, queue: fifo, account: me, "
    "env: prod, modules: core, launch: moon, container: box, scheduler: cfq, signal: sine, "
    "starter: dish, submit: form, timelimit: 3, preprocess: wash, options: none, job_begin: "
    "dawn}\n";
constexpr const char* kLaunch =
    "run: {do: 'echo of=$nodes', launch: 'echo n=$nodes $tasks $taskspernode $memory $queue "
    "$account "
    "$env $modules $launch $container $scheduler $signal $starter $submit $timelimit $preprocess "
    "$options $job_begin'}\n";
constexpr const char* kMetric = "metrics: {n: 'n=$jube_pat_int'}\n";
constexpr const char* kWords =
    " 7 8 big fifo me prod core moon box cfq sine dish form 3 wash none dawn\n";

}  // namespace

TEST_CASE("names of the user's: parameters with a platform's names have their values on each") {
  for (const char* on : {"", "on: local\n"}) {
    CAPTURE(on);
    const Shell shell;
    shell.file("b.yaml", std::string("name: b\n") + kNames + on + kLaunch + kMetric);
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
    CHECK_MESSAGE(ran.err == "", ran.err);
    for (int i = 0; i < 2; ++i) {
      const std::string nodes = std::to_string(i + 1);
      CHECK(shell.content("b_run/000000/00000" + std::to_string(i) + "_run/work/stdout") ==
            "of=" + nodes + "\nn=" + nodes + kWords);
    }
    CHECK_MESSAGE(
        has(ran.out,
            "| nodes | tasks | taskspernode | memory | queue | account |  env | modules | "
            "launch | container | scheduler | signal | starter | submit | timelimit | "
            "preprocess | options | job_begin | n |\n"),
        ran.out);
    CHECK_MESSAGE(has(ran.out,
                      "|     2 |     7 |            8 |    big |  fifo |      me | prod |    core "
                      "|   moon |   "
                      "    box |       cfq |   sine |    dish |   form |         3 |       wash |  "
                      "  none |     "
                      " dawn | 2 |\n"),
                  ran.out);
  }
}

TEST_CASE("names of the user's: a job script has what `resources` and the platform say") {
  const Shell shell;
  for (const char* asks :
       {"", "resources: {nodes: $nodes, tasks_per_node: 4, memory: 1G, time: 5m}\n"}) {
    CAPTURE(asks);
    shell.file("b.yaml", std::string("name: b\non: slurm\n") + kNames + asks + kLaunch + kMetric);
    const Ran ran = shell.tally("run -n --script 1 b.yaml");
    CHECK_MESSAGE(ran.code == 0, ran.err);
    const bool any = *asks != '\0';
    for (const char* line :
         {any ? "#SBATCH --nodes=2\n" : "#SBATCH --nodes=1\n",
          any ? "#SBATCH --ntasks-per-node=4\n" : "#SBATCH --ntasks-per-node=1\n",
          any ? "#SBATCH --time=00:05:00\n" : "#SBATCH --time=00:30:00\n",
          any ? "#SBATCH --mem=1G\n" : "#SBATCH --signal=B:TERM@60\n",
          "  srun echo n=2 7 8 big fifo me prod core moon box cfq sine dish form "
          "3 wash none dawn\n"})
      CHECK_MESSAGE(has(ran.out, line), ran.out);
    for (const char* users : {"\nmodule", "\ncore", "\nwash"}) CHECK(!has(ran.out, users));
    CHECK(!has(ran.out, "#SBATCH --partition"));
    CHECK(!has(ran.out, "#SBATCH --account"));
  }
}

TEST_CASE("names of the user's: the first example of docs/platforms.md runs as it is printed") {
  const Shell shell;
  const std::string page = "\"" TALLY_SOURCE "/docs/platforms.md\"";
  const auto block = [&](int number) {
    return "awk '/^```/ { n += on = !on; next } on && n == " + std::to_string(number) + "' " + page;
  };
  shell.sh("mkdir sites; " + block(1) + " >b.yaml; " + block(2) + " >sites/mycluster.yaml");
  shell.file("train", "#!/bin/sh\necho \"$@\"\n");
  shell.sh("chmod +x train");
  CHECK(shell.tally("validate b.yaml").code == 0);
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK(shell.content("scaling_run/000000/000002_train/work/stdout") == "--layers 24 --nodes 4\n");
  for (const char* tag : {"slurm", "mycluster"}) {
    const Ran plan = shell.tally(std::string("run -n --script 1 b.yaml --tag ") + tag);
    CHECK_MESSAGE(plan.code == 0, plan.err);
    CHECK_MESSAGE(has(plan.out, "#SBATCH --nodes=2\n"), plan.out);
    CHECK_MESSAGE(has(plan.out, "/train --layers 24 --nodes 2\n"), plan.out);
  }
}

TEST_CASE("names of the user's: a step before has the name, a step after has the platform") {
  const Shell shell;
  const std::string first =
      "name: b\noutpath: run\n"
      "parameterset: {name: p, parameter: [{name: nodes, type: int, _: [1, 2]}, {name: queue, _: "
      "q}]}\n";
  shell.file("b.yaml",
             first +
                 "step:\n"
                 "  - {name: get, kind: setup, use: p, do: echo $nodes}\n"
                 "  - {name: s, kind: run, depend: get, platform: slurm, resources: {nodes: "
                 "$nodes}, launch: 'echo $nodes $queue $tasks'}\n");
  Ran ran = shell.tally("run -n --script 3 b.yaml");
  CHECK_MESSAGE(ran.err == "", ran.err);
  CHECK_MESSAGE(has(ran.out, "#SBATCH --nodes=2\n"), ran.out);
  CHECK_MESSAGE(has(ran.out, "  srun echo 2 q 2\n"), ran.out);
  // The other way round: the platform's values come first, then the user's.
  shell.file("b.yaml",
             first +
                 "step:\n"
                 "  - {name: s, kind: run, platform: local, launch: 'echo of $nodes'}\n"
                 "  - {name: t, kind: run, depend: s, use: p, do: 'echo $nodes $queue'}\n");
  ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(ran.err == "", ran.err);
  CHECK(shell.content("run/000000/000000_s/work/stdout") == "of 1\n");
  CHECK(shell.content("run/000000/000002_t/work/stdout") == "2 q\n");
}

TEST_CASE("names of the user's: a run that is continued has both values, and --set is the user's") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\nparameters: {nodes: [1, 2], account: a}\non: slurm\nresources: {nodes: "
             "$nodes}\nrun: echo n=$nodes $account\n");
  Ran ran = shell.tally("run -n --set nodes=3 --set account=b --script 0 b.yaml");
  CHECK_MESSAGE(has(ran.out, "#SBATCH --nodes=3\n"), (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.out, "srun echo n=3 b\n"), ran.out);
  CHECK(!has(ran.out, "#SBATCH --account"));
  shell.file("c.yaml",
             "name: c\nparameters: {nodes: [1, 2], modules: m}\non: local\nrun: 'test -e "
             "$jube_benchmark_home/go && echo n=$nodes $modules'\n");
  CHECK(shell.tally("run c.yaml").code != 0);
  shell.sh("touch go");
  ran = shell.tally("remove -w 0 -w 1 --force c_run; \"$TALLY\" continue c_run");
  CHECK_MESSAGE(shell.content("c_run/000000/000001_run/work/stdout") == "n=2 m\n",
                (ran.out + ran.err));
}

TEST_CASE("names of the user's: metrics with a platform's names") {
  const Shell shell;
  for (const char* on : {"", "on: local\n", "resources: {nodes: 2, memory: 1G}\n"}) {
    CAPTURE(on);
    shell.file("b.yaml",
               std::string("name: b\n") + on +
                   "run: echo memory=3 nodes=4 env=5 container=6 tasks=7\nmetrics:\n"
                   "  {memory: 'memory=$jube_pat_int', nodes: 'nodes=$jube_pat_int', env: "
                   "'env=$jube_pat_int', container: 'container=$jube_pat_int', tasks: "
                   "'tasks=$jube_pat_int'}\n");
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK_MESSAGE(has(ran.out,
                      "| memory | nodes | env | container | tasks |\n"
                      "|--------|-------|-----|-----------|-------|\n"
                      "|      3 |     4 |   5 |         6 |     7 |\n"),
                  ran.out);
  }
}

TEST_CASE("names of the user's: two sets that the user wrote still may not share a name") {
  const Shell shell;
  shell.file(
      "b.yaml",
      "name: b\nparameterset:\n"
      "  - {name: systemParameter, init_with: 'slurm:systemParameter', parameter: {name: nodes, "
      "type: int, _: '1,2'}}\n"
      "  - {name: p, parameter: {name: nodes, _: 3}}\n"
      "step: {name: s, kind: run, use: [p, systemParameter], do: echo $nodes}\n");
  const Ran ran = shell.tally("validate b.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(
      has(ran.err,
          "Cannot use parameterset 'systemParameter' in step 's'.\nParameter 'nodes' is/are "
          "already defined by a different parameterset.\n"),
      ran.err);
}

TEST_CASE("names of the user's: what jobs ask for is said by `resources` alone, and that is said") {
  const Shell shell;
  const auto said = [&](const std::string& keys) {
    shell.file("b.yaml", "name: b\nparameters: {nodes: [1, 2]}\n" + keys + "run: echo $nodes\n");
    return shell.tally("run -n b.yaml").err;
  };
  CHECK(said("on: slurm\nresources: {time: 5m}\n") ==
        "b.yaml:2:14: warning: parameter 'nodes' is not what the jobs of step 'run' ask for: its "
        "`resources` have no `nodes`\n"
        "    parameters: {nodes: [1, 2]}\n"
        "                 ^~~~~\n"
        "hint: resources: {nodes: $nodes}\n");
  CHECK(said("on: slurm\nresources: {nodes: $nodes}\n") == "");
  CHECK(said("on: slurm\nresources: {nodes: 1, tasks_per_node: $nodes}\n") == "");
  CHECK(said("on: local\n") == "");
  CHECK(said("") == "");
}

TEST_CASE("resources: a list is a parameter of the key's name") {
  const Shell shell;
  shell.file(
      "b.yaml",
      "name: b\noutpath: run\n"
      "step:\n  name: s\n  kind: run\n  platform: [{tag: '!slurm', _: local}, {tag: slurm, _: "
      "slurm}]\n"
      "  resources: {nodes: [1, 2, 4], tasks_per_node: 4, partition: ['a,b', c], time: 5m}\n"
      "  launch: echo n=$nodes $tasks $partition\n"
      "patternset: {name: o, pattern: {name: n, type: int, _: 'n=$jube_pat_int'}}\n"
      "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
      "result: {use: a, table: {name: t, column: [nodes, partition, tasks, {_: n, "
      "relative_to: {nodes: 1}}]}}\n");
  Ran ran = shell.tally("run -n b.yaml");
  CHECK_MESSAGE(has(ran.out, "plan  b: 6 points -> 6 workpackages\n"), (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.out, "  #000005 s  nodes=4 partition=c\n"), ran.out);
  ran = shell.tally("run -n --tag slurm --script 4 b.yaml");
  CHECK_MESSAGE(has(ran.out, "#SBATCH --nodes=4\n"), (ran.out + ran.err));
  CHECK(has(ran.out, "#SBATCH --partition=a,b\n"));
  CHECK(has(ran.out, "srun echo n=4 16 a,b\n"));
  ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(
      has(ran.out, "nodes,partition,tasks,n\n1,\"a,b\",4,1.0\n1,c,4,1.0\n2,\"a,b\",8,2.0\n"),
      ran.out);
  ran = shell.tally("run -n --set nodes=8 b.yaml");
  CHECK_MESSAGE(has(ran.out, "plan  b: 2 points -> 2 workpackages\n"), (ran.out + ran.err));
}

TEST_CASE("resources: lists in the short form have columns, and `show` keeps them") {
  const Shell shell;
  shell.file(
      "b.yaml",
      "name: b\nresources: {nodes: [1, 2], cpus_per_task: [3]}\nrun: echo t=$nodes\nmetrics: "
      "{t: 't=$jube_pat_int'}\n");
  Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.out, "| nodes | cpus_per_task | t |\n"), (ran.out + ran.err));
  ran = shell.tally("show b.yaml");
  CHECK_MESSAGE(has(ran.out,
                    "  resources:\n    nodes:\n      - 1\n      - 2\n    cpus_per_task:\n   "
                    "   - 3\n"),
                ran.out);
  shell.file("long.yaml", ran.out);
  CHECK(shell.tally("show long.yaml").out == ran.out);
}

TEST_CASE("resources: what no list may hold is an error at its place") {
  const Shell shell;
  const auto said = [&](const std::string& resources) {
    shell.file("b.yaml", "name: b\nrun: echo\nresources: {" + resources + "}\n");
    return shell.tally("validate b.yaml").err;
  };
  CHECK(said("nodes: [1, two]") ==
        "b.yaml:3:24: error: 'two' is not a valid value for 'nodes' in resources\n"
        "    resources: {nodes: [1, two]}\n"
        "                           ^~~\n"
        "hint: a whole number, or a $parameter\n");
  CHECK(has(said("nodes: []"),
            "b.yaml:3:20: error: 'nodes' of a resources has an empty list\n"
            "    resources: {nodes: []}\n"
            "                       ^\n"
            "hint: leave the key out, or give it a value\n"));
  CHECK(has(said("nodes: [[1, 2]]"),
            "b.yaml:3:21: error: a value in the list of 'nodes' is one value, not a list\n"));
}

TEST_CASE("tags: one that no file names is an error, with the nearest one") {
  const Shell shell;
  shell.file("sites/inner.yaml",
             "platform:\n  - {tag: '!deep', name: a, scheduler: local}\n"
             "  - {tag: deep, name: b, scheduler: slurm}\n");
  shell.file(
      "sites/p.yaml",
      "parameterset: {name: shared, parameter: [{name: x, _: 1}, {name: x, tag: large, _: 2}]}\n");
  shell.file("part.yaml", "- {name: y, _: 1}\n- {name: y, tag: extra, _: 2}\n");
  shell.file("b.yaml",
             "name: b\n"
             "parameterset:\n"
             "  - {name: p, parameter: {name: m, mode: tag, _: 'moded'}}\n"
             "  - {name: q, init_with: 'sites/p.yaml:shared', tag: other}\n"
             "  - {name: r, parameter: !include part.yaml}\n"
             "step:\n  name: s\n  kind: run\n  use: [p, r]\n"
             "  platform: [{tag: '!site', _: local}, {tag: site, _: sites/inner.yaml}]\n"
             "  launch: echo $m\n");
  // Of the file, its includes, files of sets and platforms that other tags choose, and mode: tag.
  for (const char* tag : {"site", "deep", "site,deep", "other", "large", "extra", "moded"}) {
    const Ran ran = shell.tally(std::string("run -n b.yaml --tag ") + tag);
    CHECK_MESSAGE(ran.code == 0, (tag + ran.err));
    CHECK_MESSAGE(ran.err == "", ran.err);
  }
  for (const char* command : {"validate", "run -n", "run"}) {
    for (const auto& [tag, near] : {std::pair{"siet", "site"},
                                    {"depe", "deep"},
                                    {"lage", "large"},
                                    {"extr", "extra"},
                                    {"modded", "moded"}}) {
      const Ran ran = shell.tally(std::string(command) + " b.yaml --tag " + tag);
      CHECK(ran.code == 2);
      CHECK(ran.err == std::string("tally: error: tag '") + tag +
                           "' appears nowhere in the file\nhint: did you mean '" + near + "'?\n");
    }
  }
  shell.file(
      "c.yaml",
      "name: c\nselection: {tag: slrum}\nstep: {name: s, kind: run, platform: [{tag: slurm, _: "
      "slurm}, {tag: '!slurm', _: local}], launch: echo}\n");
  CHECK(shell.tally("run -n c.yaml").err ==
        "c.yaml:2:18: error: tag 'slrum' appears nowhere in the file\n"
        "    selection: {tag: slrum}\n"
        "                     ^~~~~\n"
        "hint: did you mean 'slurm'?\n");
  // The name of a parameter's tag is known only with its value.
  shell.file(
      "d.yaml",
      "name: d\nparameterset: {name: p, parameter: [{name: w, _: 'a,b'}, {name: m, mode: tag, _: "
      "$w}]}\nstep: {name: s, kind: run, use: p, do: echo $m}\n");
  CHECK(shell.tally("run -n d.yaml --tag a").code == 0);
  // JUBE runs such a file without it.
  shell.file("e.yaml", "name: e\nstep: {name: s, tag: '!x', do: echo}\n");
  const Ran ran = shell.tally("run -n e.yaml --tag y");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.err, "warning: tag 'y' appears nowhere in the file\n"), ran.err);
}

TEST_CASE("validate: all platforms that tags can choose are checked, and the shipped ones known") {
  const Shell shell;
  const auto said = [&](const std::string& platforms) {
    shell.file("b.yaml", "name: b\nstep:\n  name: s\n  kind: run\n  platform:\n" + platforms +
                             "  launch: echo\n");
    return shell.tally("validate b.yaml").err;
  };
  const std::string local = "    - {tag: '!there', _: local}\n";
  CHECK(said(local + "    - {tag: there, _: slurn}\n") ==
        "b.yaml:7:23: error: file 'slurn' not found\n"
        "        - {tag: there, _: slurn}\n"
        "                          ^~~~~\n"
        "hint: did you mean 'slurm'?\n");
  shell.file("site.yaml", "platform: {name: here, scheduler: slurm, acount: x}\n");
  CHECK(has(said(local + "    - {tag: there, _: site.yaml}\n"),
            "site.yaml:1:42: error: unknown key 'acount' in platform 'here'\n"));
  shell.file("site.yaml", "platform: {name: here, scheduler: slurmm}\n");
  CHECK(has(said(local + "    - {tag: there, _: site.yaml}\n"), "error:"));
  // One file for two clusters: the tag that chooses the file chooses in it.
  shell.file("site.yaml",
             "platform:\n  - {tag: one, name: one, account: a}\n  - {tag: two, name: two}\n");
  const std::string two =
      "    - {tag: '!one+!two', _: local}\n    - {tag: one|two, _: site.yaml}\n";
  CHECK(said(two) == "");
  for (const char* name : {"slurm", "pbs", "lsf", "sge", "flux"})
    CHECK(said(local + "    - {tag: there, _: " + name + "}\n") == "");
  // A run needs the one that it takes.
  CHECK(said(local + "    - {tag: there, _: gone.yaml}\n") != "");
  CHECK(shell.tally("run -n b.yaml").code == 0);
}

TEST_CASE("platforms: a step's own takes the place of the one of the step before") {
  const Shell shell;
  shell.file("here.yaml",
             "platform: {name: here, scheduler: local, env: {SITE: one}, time: 10m}\n");
  shell.file(
      "b.yaml",
      "name: b\noutpath: run\n"
      "parameterset: {name: p, parameter: {name: nodes, type: int, _: [3, 4]}}\n"
      "step:\n"
      "- {name: a, kind: run, use: p, platform: here.yaml, launch: 'sh -c \"echo $nodes $SITE "
      "$timelimit\"'}\n"
      "- {name: b, kind: run, depend: a, platform: local, launch: 'sh -c \"echo $nodes "
      "[$SITE] $scheduler\"'}\n"
      "- {name: c, depend: b, do: 'echo $nodes $scheduler'}\n");
  CHECK(shell.tally("validate b.yaml").code == 0);
  const Ran ran = shell.sh("SITE=none \"$TALLY\" -q run b.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(shell.content("run/000000/000000_a/work/stdout") == "3 one 00:10:00\n");
  CHECK(shell.content("run/000000/000003_b/work/stdout") == "4 [none] local\n");
  CHECK(shell.content("run/000000/000005_c/work/stdout") == "4 local\n");
  // The same of clusters, and the step's own resources.
  shell.file(
      "c.yaml",
      "name: c\noutpath: run\n"
      "step:\n"
      "- {name: a, kind: run, platform: slurm, resources: {nodes: 2, time: 5m}, launch: x}\n"
      "- {name: b, kind: run, depend: a, platform: slurm, resources: {time: 1m}, launch: x}\n"
      "- {name: c, kind: run, depend: b, platform: slurm, launch: x}\n");
  const Ran plan = shell.tally("run -n c.yaml");
  CHECK_MESSAGE(plan.code == 0, plan.err);
  CHECK(plan.err.empty());
  CHECK(has(plan.out, "  a: 1 job x 2 nodes x 00:05:00"));
  CHECK(has(plan.out, "  b: 1 job x 1 node x 00:01:00"));
  CHECK(has(plan.out, "  c: 1 job x 1 node x 00:30:00"));
}
