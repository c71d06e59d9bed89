// One path: what a run would refuse, every command that takes an input file refuses with the same
// words, before anything is written.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

struct Bad {
  const char* name;
  const char* text;       // after "name: b\noutpath: runs\n"
  const char* place;      // where the first error is, and how it begins
  bool computed = false;  // a value must be computed for it: `validate` computes none
};

// Sets of a scheduler whose jobs are files nobody submits here.
#define ON_SLURM(RESOURCES, MORE)                                                                 \
  "step: {name: s, kind: run, platform: slurm, resources: {" RESOURCES "}, launch: \"true\"" MORE \
  "}\n"

const std::vector<Bad> kBad = {
    {"YAML", "step: {name: s, do: [echo}\n", "3:21: error: YAML syntax: this '[' is not closed"},
    {"an include", "step: !include nofile.yaml\n", "3:7: error: included file"},
    {"a kind", "step: {name: s, kind: ran, do: echo}\n", "3:23: error: 'ran' is no"},
    {"no such set", "step: {name: s, use: nix, do: echo}\n", "3:22: error: unknown set 'nix'"},
    {"no such step", "step: {name: s, depend: t, do: echo}\n", "3:25: error: unknown step 't'"},
    {"a circle of steps",
     "step: [{name: s, depend: t, do: echo}, {name: t, depend: s, do: echo}]\n",
     "3:58: error: Cannot resolve dependencies"},
    {"no such analyser",
     "step: {name: s, do: echo}\nresult: {use: an, table: {name: t, column: [v]}}\n",
     "4:15: error: unknown analyser 'an'"},
    {"a pattern",
     "step: {name: s, do: echo}\npatternset: {name: q, pattern: {name: v, _: \"v=(\"}}\n"
     "analyser: {name: an, use: q, analyse: {step: s, file: stdout}}\n"
     "result: {use: an, table: {name: t, column: [v]}}\n",
     "4:45: error: pattern 'v' is not a regular expression"},
    {"iterations", "step: {name: s, iterations: x, do: echo}\n", "3:29: error: 'x' is no"},
    {"no iterations", "step: {name: s, iterations: 0, do: echo}\n",
     "3:29: error: step 's': iterations=\"0\" is not a whole number of at least 1"},
    {"iterations by a parameter",
     "parameterset: {name: p, parameter: {name: a, _: \"1,two\"}}\n"
     "step: {name: s, use: p, iterations: $a, do: echo}\n",
     "4:37: error: step 's': iterations=\"two\" is not"},
    {"no repeat", "step: {name: s, kind: run, repeat: 0, do: echo}\n",
     "3:36: error: step 's': repeat=\"0\" is not"},
    {"cycles", "step: {name: s, cycles: x, do: echo}\n", "3:25: error: 'x' is no"},
    {"cycles by a parameter",
     "parameterset: {name: p, parameter: {name: a, _: \"1,two\"}}\n"
     "step: {name: s, use: p, kind: run, cycles: $a, do: echo}\n",
     "4:44: error: step 's': cycles \"two\" is not a whole number of at least 1"},
    {"procs", "step: {name: s, procs: x, do: echo}\n", "3:24: error: 'x' is no"},
    {"max_async", "step: {name: s, max_async: x, do: echo}\n", "3:28: error: 'x' is no"},
    {"timeout", "step: {name: s, kind: run, timeout: soon, do: echo}\n", "3:37: error: 'soon' is"},
    {"an outcome", "step: {name: s, kind: run, expect: nothing, do: echo}\n",
     "3:36: error: 'nothing' is no"},
    {"active", "step: {name: s, active: \"no\", do: echo}\n",
     "3:25: error: step 's': active=\"no\" is neither true, false nor a Python expression"},
    {"active by a parameter",
     "parameterset: {name: p, parameter: {name: a, _: \"1,nix\"}}\n"
     "step: {name: s, use: p, active: \"$a == 1\", do: echo}\n",
     "4:33: error: step 's': active=\"nix == 1\" is neither"},
    {"active of a command", "step: {name: s, do: {active: \"no\", _: echo}}\n",
     "3:30: error: a command of step 's': active=\"no\" is neither"},
    {"active of a command by a parameter",
     "parameterset: {name: p, parameter: {name: a, _: \"1,nix\"}}\n"
     "step: {name: s, use: p, do: {active: \"$a == 1\", _: echo}}\n",
     "4:38: error: a command of step 's': active=\"nix == 1\" is neither"},
    {"no nodes", ON_SLURM("nodes: 0", ""),
     "3:64: error: step 's': nodes \"0\" is not a whole number of at least 1"},
    {"nodes", ON_SLURM("nodes: many", ""), "3:64: error: 'many' is no"},
    {"nodes by a parameter",
     "parameterset: {name: p, parameter: {name: n, _: \"1,0\"}}\n"
     "step: {name: s, use: p, kind: run, platform: slurm, resources: {nodes: $n}, launch: x}\n",
     "4:72: error: step 's': nodes \"0\" is not"},
    {"tasks", ON_SLURM("nodes: 1, tasks_per_node: 0", ""),
     "3:83: error: step 's': tasks_per_node \"0\" is not"},
    {"CPUs", ON_SLURM("nodes: 1, cpus_per_task: 1.5", ""), "3:82: error: '1.5' is no"},
    {"time", ON_SLURM("nodes: 1, time: soon", ""), "3:73: error: 'soon' is no"},
    {"no time", ON_SLURM("nodes: 1, time: \"0\"", ""), "3:73: error: step 's': time \"0\" is not"},
    {"pack", ON_SLURM("nodes: 1", ", pack: {_: array, size: 0}"), "3:14: error: "},
    {"a platform", "step: {name: s, kind: run, platform: nowhere, launch: echo}\n",
     "3:38: error: file 'nowhere' not found"},
    {"a file to copy", "fileset: {name: f, copy: no.txt}\nstep: {name: s, use: f, do: echo}\n",
     "3:26: error: step 's': no files found using \"no.txt\""},
    {"a file to link", "fileset: {name: f, link: no.txt}\nstep: {name: s, use: f, do: echo}\n",
     "3:26: error: step 's': no files found using \"no.txt\""},
    {"a file by a built-in name",
     "fileset: {name: f, copy: $jube_benchmark_home/no.txt}\nstep: {name: s, use: f, do: echo}\n",
     "3:26: error: step 's': no files found using \""},
    {"a file by a parameter",
     "parameterset: {name: p, parameter: {name: n, _: \"bench,no\"}}\n"
     "fileset: {name: f, copy: $n.yaml}\nstep: {name: s, use: \"p,f\", do: echo}\n",
     "4:26: error: step 's': no files found using \"no.yaml\""},
    {"a file to substitute",
     "substituteset: {name: t, iofile: {in: no.txt, out: g.txt}, sub: {source: a, dest: b}}\n"
     "step: {name: s, use: t, do: echo}\n",
     "3:39: error: step 's': substitution set \"t\": file \"no.txt\" not found"},
    {"a value",
     "parameterset: {name: p, parameter: {name: a, mode: python, _: \"1/0\"}}\n"
     "step: {name: s, use: p, do: echo}\n",
     "3:63: error: Cannot evaluate \"1/0\" for parameter \"a\": division by zero", true},
    {"all values",
     "parameterset: {name: p, parameter: [{name: b, _: \"1,2\"}, {name: a, mode: python, _: "
     "\"$b/0\"}]}\nstep: {name: s, use: p, do: echo}\n",
     "3:85: error: Cannot evaluate \"1/0\" for parameter \"a\": division by zero", true},
    {"a name in a value",
     "parameterset: {name: p, parameter: [{name: b, _: \"x,true\"}, {name: a, mode: python, _: "
     "\"$b and 1\"}]}\nstep: {name: s, use: p, do: echo}\n",
     "3:88: error: Cannot evaluate \"x and 1\" for parameter \"a\": name 'x' is not defined"},
    {"a type",
     "parameterset: {name: p, parameter: {name: a, type: int, _: two}}\n"
     "step: {name: s, use: p, do: echo}\n",
     "3:60: error: "},
    {"a variable",
     "parameterset: {name: p, parameter: {name: a, mode: env, _: NO_SUCH_VARIABLE_X}}\n"
     "step: {name: s, use: p, do: echo}\n",
     "3:60: error: Cannot evaluate \"NO_SUCH_VARIABLE_X\""},
    {"a rule",
     "parameterset: {name: p, where: \"$a > nix\", parameter: [{name: a, _: \"1,2\"}]}\n"
     "step: {name: s, use: p, do: echo}\n",
     "3:32: error: Cannot evaluate the rule", true},
    {"sets that do not fit together",
     "parameterset: [{name: p, parameter: {name: a, _: 1}}, {name: q, parameter: {name: a, _: "
     "2}}]\n"
     "step: {name: s, use: \"p,q\", do: echo}\n",
     "4:22: error: Cannot use parameterset 'q' in step 's'"},
    {"a set by a parameter",
     "parameterset: {name: p, parameter: {name: a, _: nix}}\n"
     "step: {name: s, kind: setup, use: \"p,$a\", do: echo}\n",
     "4:35: error: <use>nix</use> not found"},
    {"zipped lists",
     "parameterset: {name: p, zip: [[a, b]], parameter: [{name: a, _: \"1,2\"}, {name: b, _: "
     "\"1,2,3\"}]}\nstep: {name: s, use: p, do: echo}\n",
     "3:31: error: zipped parameters differ"},
};

// The first line with an error.
std::string first_error(const std::string& text) {
  const size_t at = text.find("error: ");
  if (at == std::string::npos) return {};
  const size_t start = text.rfind('\n', at) + 1;  // npos + 1 is 0
  return text.substr(start, text.find('\n', at) - start);
}

}  // namespace

TEST_CASE("validate, run -n, run and script refuse the same files with the same words") {
  const Shell shell;
  for (const Bad& bad : kBad) {
    shell.clear();
    shell.file("bench.yaml", std::string("name: b\noutpath: runs\n") + bad.text);
    for (const char* command : {"validate bench.yaml", "run -n bench.yaml", "run bench.yaml",
                                "script bench.yaml --out jobs"}) {
      CAPTURE(std::string(bad.name));
      CAPTURE(std::string(command));
      const Ran ran = shell.tally(command);
      if (bad.computed && std::string(command) == "validate bench.yaml") {
        CHECK(ran.code == 0);
        CHECK(has(ran.out, "\n  not computed, nor checked what depends on it: "));
        continue;
      }
      CHECK(ran.code == 2);
      const std::string error = first_error(ran.err);
      CHECK_MESSAGE(error.rfind(std::string("bench.yaml:") + bad.place, 0) == 0, ran.err);
      CHECK(!shell.exists("runs"));
      CHECK(!shell.exists("jobs"));
    }
  }
}

TEST_CASE("what a platform does not allow is refused by all of them") {
  const Shell shell;
  shell.file("small.yaml", "platform: {name: small, max_node_hours: 10, max_time: 12h}\n");
  const auto with = [&](const std::string& resources) {
    shell.file(
        "bench.yaml",
        "name: b\noutpath: runs\nstep: {name: s, kind: run, platform: small.yaml, resources: {" +
            resources + "}, launch: \"true\"}\n");
  };
  for (const char* command : {"validate bench.yaml", "run -n bench.yaml", "run bench.yaml",
                              "script bench.yaml --out jobs"}) {
    CAPTURE(std::string(command));
    with("nodes: 4, time: 10h");
    Ran ran = shell.tally(command);
    CHECK(ran.code == 2);
    CHECK(has(ran.err, "error: the run may take 40.0 node-hours in 1 job, more than the 10 "));
    with("nodes: 1, time: 13h");
    ran = shell.tally(command);
    CHECK(ran.code == 2);
    CHECK(has(ran.err, "error: the time limit 13:00:00 of step 's' is beyond the 12h "));
  }
  CHECK(!shell.exists("runs"));
  CHECK(!shell.exists("jobs"));
}

TEST_CASE("values that only some workpackages cannot have are told once, where they are written") {
  const Shell shell;
  shell.file("bench.yaml",
             "name: b\noutpath: runs\nparameterset: {name: p, parameter: [{name: a, _: "
             "\"1,0,2,0,0\"}, {name: q, mode: python, _: \"10 // $a\"}]}\n"
             "step: {name: s, use: p, do: echo $q}\n");
  const std::string told =
      "bench.yaml:3:91: warning: Cannot evaluate \"10 // 0\" for parameter \"q\": integer division "
      "or modulo by zero\n";
  for (const auto& [command, code] :
       std::vector<std::pair<std::string, int>>{{"run -n bench.yaml", 1}, {"run bench.yaml", 1}}) {
    CAPTURE(command);
    const Ran ran = shell.tally(command);
    CHECK(ran.code == code);
    CHECK_MESSAGE(has(ran.err, told), ran.err);
    CHECK(has(ran.err, "hint: 3 of 5 workpackages of step 's' cannot be made; the others run\n"));
    CHECK(ran.err.find("warning:", ran.err.find(told) + told.size()) == std::string::npos);
  }
  // The summary tells it once, with the workpackages, at the parameter's place.
  const Ran ran = shell.tally("run bench.yaml");
  CHECK_MESSAGE(
      has(ran.out,
          "failed: 3 of 5 (s, a=0): Cannot evaluate \"10 // 0\" for parameter \"q\": integer "
          "division or modulo by zero (bench.yaml:3:91)\n"),
      ran.out);
}

TEST_CASE("all files are looked at before the first of them runs") {
  const Shell shell;
  shell.file("good.yaml", "name: g\noutpath: runs\nstep: {name: s, do: echo}\n");
  shell.file("bad.yaml", "name: b\noutpath: runs\nstep: {name: s, active: \"no\", do: echo}\n");
  CHECK(shell.tally("run good.yaml bad.yaml").code == 2);
  CHECK(!shell.exists("runs"));
}

TEST_CASE("validate and run do not run the commands of parameters; a dry run does") {
  const Shell shell;
  shell.file("bench.yaml",
             "name: b\noutpath: runs\nparameterset: {name: p, parameter: {name: a, mode: shell, _: "
             "\"echo x >>count; echo 1\"}}\nstep: {name: s, use: p, do: echo $a}\n");
  CHECK(shell.tally("validate bench.yaml").code == 0);
  CHECK(!shell.exists("count"));
  CHECK(shell.tally("run bench.yaml").code == 0);
  CHECK(shell.content("count") == "x\n");
  CHECK(shell.tally("run -n bench.yaml").code == 0);
  CHECK(shell.content("count") == "x\nx\n");
}

TEST_CASE("validate takes the file of a platform") {
  const Shell shell;
  shell.file("site.yaml",
             "platform:\n  name: jsc\n  partition: gpu\n  account: me\n  max_time: 24:00:00\n");
  Ran ran = shell.tally("validate site.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(ran.out, "site.yaml: fine: platform jsc (slurm)\n"));
  shell.file("site.yaml", "platform:\n  name: jsc\n  partitoin: gpu\n");
  ran = shell.tally("validate site.yaml");
  CHECK(ran.code == 2);
  CHECK(has(ran.err, "site.yaml:3:3: error: unknown key 'partitoin'"));
  shell.file("site.yaml", "platform: {name: jsc, time: 10h, max_time: 2h}\n");
  ran = shell.tally("validate site.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "beyond the 2h"), ran.err);
  ran = shell.tally("run site.yaml");
  CHECK(ran.code == 2);
  CHECK(has(ran.err, "error: 'site.yaml' describes a platform and has no step to run\n"));
  CHECK(shell.sh("\"$TALLY\" validate \"" TALLY_SOURCE "/templates/example-site.yaml\"").code == 0);
}

TEST_CASE("a launch line that begins with the platform's own starter is refused") {
  const Shell shell;
  const auto said = [&](const std::string& run, const std::string& on) {
    shell.file("b.yaml", "name: b\nrun: " + run + "\non: " + on + "\n");
    return shell.tally("validate b.yaml");
  };
  const Ran twice = said("srun -n 2 ./w", "slurm");
  CHECK(twice.code == 2);
  CHECK_MESSAGE(has(twice.err,
                    "b.yaml:2:6: error: the launch line of step 'run' begins with 'srun', and its "
                    "platform puts 'srun' before it: each task would start all of them again\n"),
                twice.err);
  CHECK(has(twice.err,
            "hint: write the program alone; the platform's `launcher` takes another starter\n"));
  for (const char* line : {"mpirun -n 4 true", "/usr/bin/srun true", "mpiexec true"})
    CHECK_MESSAGE(said(line, "slurm").code == 2, std::string(line));
  for (const char* line : {"true", "mysrun true", "env srun", "sh -c 'srun true'"})
    CHECK_MESSAGE(said(line, "slurm").code == 0, std::string(line));
  CHECK(said("mpirun -n 4 true", "local").code == 0);
}

TEST_CASE("without Slurm's commands nothing begins that they would submit") {
  const Shell shell;
  shell.sh(
      "mkdir bin; ln -s /bin/* /usr/bin/* bin 2>/dev/null; rm -f bin/sbatch bin/squeue bin/qdel "
      "bin/python3; "
      "ln -s \"$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')\" "
      "bin/python3");
  const auto ran = [&](const std::string& on) {
    shell.file("b.yaml", "name: b\noutpath: run\nrun: 'true'\non: " + on +
                             "\nresources: {nodes: 1, time: 5m}\n");
    return shell.sh("PATH=$PWD/bin \"$TALLY\" run b.yaml");
  };
  const Ran slurm = ran("slurm");
  CHECK(slurm.code == 2);
  CHECK_MESSAGE(has(slurm.err,
                    "error: no folder of PATH has Slurm's `sbatch` and `squeue`: nothing "
                    "can be submitted\n"),
                slurm.err);
  CHECK(!shell.exists("run"));
  const Ran pbs = ran("pbs");
  CHECK(pbs.code == 2);
  CHECK_MESSAGE(
      has(pbs.err, "error: no folder of PATH has `qdel` of PBS: nothing can be submitted"),
      pbs.err);
  CHECK(ran("local").code == 0);
}
