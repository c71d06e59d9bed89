// What commands print for people, and that what they offer works: failures, the dry run, scripts, help, test reports.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::count_of;
using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// m=0 fails as long as there is no file `go`.
const char* kFails =
    "name: b\n"
    "parameters: {n: [1, 2, 3], m: [0, 1]}\n"
    "run: sh -c 'echo x >>$jube_benchmark_home/log; test $m = 1 || test -e "
    "$jube_benchmark_home/go || { echo no go >&2; exit 3; }; echo v $n'\n"
    "metrics: {v: 'v $jube_pat_int'}\n";

}  // namespace

TEST_CASE("what is offered after a failure does what failed again, and nothing else") {
  const Shell shell;
  shell.file("b.yaml", kFails);
  Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out,
                    "failed: 3 of 6 (run, m=0): exit code 3: no go (b.yaml:3:6; first: "
                    "b_run/000000/000000_run/work/stderr)\n\n"
                    "To do what failed again: tally continue b_run --id 0 --failed\n"
                    "To see more of the run: tally info b_run --id 0\n"),
                ran.out);
  CHECK(count_of(shell.content("log"), "x") == 6);
  // `continue` alone does nothing of it.
  CHECK(shell.tally("continue b_run").code == 1);
  CHECK(count_of(shell.content("log"), "x") == 6);
  ran = shell.tally("continue b_run --id 0 --failed");
  CHECK_MESSAGE(ran.code == 1, (ran.out + ran.err));
  CHECK(count_of(shell.content("log"), "x") == 9);
  shell.file("go", "");
  ran = shell.sh("$(\"$TALLY\" continue b_run | sed -n 's/^To do what failed again: //p')");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK(count_of(shell.content("log"), "x") == 12);
  CHECK_MESSAGE(has(ran.out, "|      run |   6 |    0 |    0 |     0 |    6 |\n"), ran.out);
  CHECK_MESSAGE(!has(ran.out, "--failed"), ran.out);
  ran = shell.tally("continue b_run --failed");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(ran.err == "note: b_run/000000: nothing has failed\n", ran.err);
  CHECK(count_of(shell.content("log"), "x") == 12);
}

TEST_CASE("continue --failed: a failed step that others wait for, and a value that had no file") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "parameterset: {name: p, parameter: {name: n, type: int, _: [1, 2]}}\n"
             "step:\n"
             "  - {name: one, kind: run, use: p, do: 'test $n = 1 || test -e "
             "$jube_benchmark_home/go'}\n"
             "  - {name: two, kind: run, depend: one, do: 'echo v $n'}\n");
  CHECK(shell.tally("run b.yaml").code == 1);
  CHECK(shell.sh("ls run/000000 | grep -c _two").out == "1\n");
  shell.file("go", "");
  const Ran ran = shell.tally("continue run --failed");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK(shell.sh("cat run/000000/*_two/work/stdout").out == "v 1\nv 2\n");
}

TEST_CASE("no banner; by JUBE's name its words") {
  const Shell shell;
  shell.file("b.yaml", "name: b\noutpath: run\nstep: {name: s, do: echo}\n");
  Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(ran.out ==
                    "Running step s in run/000000\n\n"
                    "  | stepname | all | open | wait | error | done |\n"
                    "  |----------|-----|------|------|-------|------|\n"
                    "  |        s |   1 |    0 |    0 |     0 |    1 |\n\n"
                    "To see more of the run: tally info run --id 0\n\n",
                ran.out);
  ran = shell.sh("ln -s \"$TALLY\" jube; ./jube run b.yaml");
  CHECK_MESSAGE(has(ran.out, "# benchmark: b\n# id: 1\n#\n#\n####"), ran.out);
  CHECK_MESSAGE(has(ran.out, ">>>>   result: ./jube result run --id 1\n"), ran.out);
  CHECK(!has(ran.out, "To see more"));
}

TEST_CASE("the dry run shows the user's parameters, and paths from the current folder") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "parameterset: {name: p, parameter: [{name: n, type: int, _: [1, 2]}, {name: data, _: "
             "$jube_benchmark_home/../in/x.bin}, {name: size, _: 7}]}\n"
             "step: [{name: get, kind: setup, do: echo}, {name: s, kind: run, depend: get, use: p, "
             "platform: slurm, resources: {nodes: 1, time: 5m}, launch: ./a $n $data $size}]\n");
  shell.sh("mkdir sub; cp b.yaml sub/");
  Ran ran = shell.tally("run -n sub/b.yaml");
  CHECK_MESSAGE(has(ran.out, "  the same everywhere: data=in/x.bin size=7\n"), ran.out);
  CHECK_MESSAGE(
      has(ran.out, "  #000000 get  will run: nothing of this step is kept from earlier runs\n"),
      ran.out);
  ran = shell.tally("-v run -n sub/b.yaml");
  CHECK_MESSAGE(has(ran.out, "data=" + shell.root() + "/sub/../in/x.bin size=7 "), ran.out);
  CHECK_MESSAGE(has(ran.out, " scheduler=slurm "), ran.out);
}

TEST_CASE("script says what each script lacks that a run would have made") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "parameterset: {name: p, parameter: {name: n, type: int, _: [1, 2]}}\n"
             "fileset: {name: inputs, copy: in.txt}\n"
             "step: [{name: get, kind: setup, do: echo}, {name: s, kind: run, depend: get, use: "
             "[p, inputs], platform: slurm, resources: {nodes: 1, time: 5m}, launch: ./a $n, do: "
             "echo first},\n"
             "{name: t, kind: run, platform: slurm, resources: {nodes: 1, time: 5m}, launch: "
             "hostname}]\n");
  shell.file("in.txt", "x\n");
  const Ran ran = shell.tally("script b.yaml --out out");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK_MESSAGE(ran.err ==
                    "note: submitted by hand, the 2 scripts of step 's' lack: the work of step "
                    "'get' (a link `get`), the files of file set 'inputs', what its `do` does; "
                    "`tally run` makes it first\n",
                ran.err);
}

TEST_CASE("help: commands in groups with an example, options as they are typed") {
  const Shell shell;
  Ran ran = shell.tally("help");
  CHECK_MESSAGE(has(ran.out, "Usage: tally COMMAND ... [options]\n"), ran.out);
  for (const char* group : {"\nWrite and check files, as `tally validate pi.yaml`:\n  validate  ",
                            "\nRun, as `tally run pi.yaml --tag slurm`:\n  run  ",
                            "\nLook at results, as `tally result pi_run --id last`:\n  result  ",
                            "\nLook after runs, as `tally info pi_run --id last`:\n  info  ",
                            "\nHelp, as `tally help run`:\n  help  "})
    CHECK_MESSAGE(has(ran.out, group), ran.out);
  for (const char* command :
       {"new",     "run",     "continue", "watch",    "result", "analyse",  "plot",      "report",
        "compare", "archive", "verify",   "history",  "meter",  "doctor",   "reference", "info",
        "status",  "log",     "output",   "comment",  "remove", "validate", "tag",       "show",
        "script",  "help",    "complete", "platform", "fleet"}) {
    CAPTURE(command);
    CHECK(has(ran.out, "\n  " + std::string(command) + "  "));
    const Ran one = shell.tally("help " + std::string(command));
    CHECK(has(one.out, "\nExample: tally " + std::string(command)));
    for (const char* word :
         {"[OPTIONS]", "{false}", "REQUIRED", "SUBCOMMAND", "Positionals", "INT"})
      CHECK_MESSAGE(!has(one.out, word), one.out);
  }
  CHECK(has(shell.tally("run --help").out, "\n  --wait | --no-wait          stay until"));
  CHECK(has(shell.tally("run --help").out, "Usage: tally run FILE ... [options]\n"));
  CHECK(has(shell.tally("comment --help").out, "Usage: tally comment COMMENT DIR [options]\n"));
}

TEST_CASE("JUnit: names of parameters and repeat only, which a further point leaves as they are") {
  const Shell shell;
  const auto bench = [&](const std::string& list) {
    shell.file("b.yaml",
               "name: b\noutpath: run\n"
               "parameterset: {name: p, parameter: [{name: n, type: int, _: " +
                   list +
                   "}, {name: opt, _: -O2}, {name: twice, mode: python, _: '$n * 2'}, {name: "
                   "token, _: hidden}]}\n"
                   "step: [{name: get, kind: run, do: echo}, {name: s, kind: run, use: p, repeat: "
                   "2, do: 'echo v=$n'}]\n");
  };
  bench("[2]");
  CHECK(shell.tally("run b.yaml --junit one.xml").code == 0);
  bench("[1, 2]");
  CHECK(shell.tally("run b.yaml --junit two.xml").code == 0);
  const std::string one = shell.content("one.xml"), two = shell.content("two.xml");
  CHECK_MESSAGE(has(one, "<testsuite name=\"b\" "), one);
  for (const char* name : {"<testcase classname=\"b.get\" name=\"get\" ",
                           "<testcase classname=\"b.s\" name=\"n=2, opt=-O2, repeat 1\" ",
                           "<testcase classname=\"b.s\" name=\"n=2, opt=-O2, repeat 2\" "}) {
    CHECK_MESSAGE(has(one, name), one);
    CHECK_MESSAGE(has(two, name), two);
  }
  CHECK(has(two, "name=\"n=1, opt=-O2, repeat 2\""));
  // To standard output, and nothing else there.
  const Ran ran = shell.tally("run b.yaml --junit -");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(ran.out.rfind("<?xml", 0) == 0, ran.out);
  CHECK_MESSAGE(ran.out.rfind("</testsuites>\n") == ran.out.size() - 14, ran.out);
  CHECK_MESSAGE(has(ran.err, "Running steps get, s in run/000002\n"), ran.err);
  CHECK(!shell.exists("-"));
}

TEST_CASE("compare takes a result in JSON for the first run") {
  const Shell shell;
  const auto bench = [&](const std::string& unit, const std::string& columns) {
    shell.file(
        "b.yaml",
        "name: b\noutpath: run\n"
        "parameterset: {name: p, parameter: [{name: n, type: int, _: [1, 2]}, {name: hidden, "
        "_: x}]}\n"
        "step: {name: s, kind: run, use: p, repeat: 6, quiet_check: false, do: 'echo "
        "rate=$n$jube_benchmark_home | sed \"s|/.*||\" | sed \"s|$|$$RATE|\"'}\n"
        "patternset: {name: o, pattern: {name: rate, type: float, unit: " +
            unit +
            ", _: 'rate=$jube_pat_fp'}}\n"
            "analyser: {name: a, use: o, reduce: true, analyse: {step: s, file: stdout}}\n"
            "result: {use: a, table: {name: t, column: [" +
            columns + ", {_: rate, better: higher, statistic: median}]}}\n");
  };
  bench("MB/s", "n");
  CHECK(
      shell.sh("RATE=00 \"$TALLY\" run b.yaml && \"$TALLY\" result run -s json >base.json").code ==
      0);
  CHECK(shell.sh("RATE=50 \"$TALLY\" run b.yaml && rm -r run/000000").code == 0);
  Ran ran = shell.tally("compare base.json run");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.out, "| 1 |   rate |  100 |      6 | 150 |     6 |   +50.00 |"), ran.out);
  CHECK_MESSAGE(has(ran.out, "0 regressed, 2 improved, 0 same, 0 unclear"), ran.out);
  CHECK(shell.sh("RATE=00 \"$TALLY\" run b.yaml && \"$TALLY\" result run -i 1 -s json >high.json")
            .code == 0);
  ran = shell.tally("compare high.json run");
  CHECK(ran.code == 5);
  CHECK(has(ran.out, "2 regressed, 0 improved"));
  // What cannot be compared.
  ran = shell.tally("compare run base.json");
  CHECK(ran.code == 2);
  CHECK(ran.err ==
        "tally: error: 'base.json' stands for the first of two runs only\n"
        "hint: the second is a run, whose workflow says what is better\n");
  shell.file("no.json", "{}");
  ran = shell.tally("compare no.json run");
  CHECK(ran.code == 2);
  CHECK(ran.err ==
        "tally: error: 'no.json' is no result of tally\n"
        "hint: `tally result -s json RUN` writes one\n");
  bench("GB/s", "n");
  CHECK(shell.sh("RATE=00 \"$TALLY\" run b.yaml").code == 0);
  ran = shell.tally("compare base.json run");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(
      has(ran.err, "error: 'rate' has the unit 'MB/s' in 'base.json' and 'GB/s' in the run\n"),
      ran.err);
}

TEST_CASE("the reason of a failure is the line that says it, not the last one") {
  const struct {
    const char* printed;
    const char* reason;
  } cases[] = {
      {"cc1: fatal error: m.c: No such file\\ncompilation terminated.",
       "cc1: fatal error: m.c: No such file"},
      {"m.c:1:3: error: bad\\n    1 | x y\\n      |   ^", "m.c:1:3: error: bad"},
      {"ld: cannot find -lm\\ncollect2: error: ld returned 1 exit status", "ld: cannot find -lm"},
      {"m.c:9: Error: odd\\nmake[1]: *** [Makefile:3: m] Error 1\\nmake: Leaving directory x",
       "m.c:9: Error: odd"},
      {"slurmstepd-n1: error: execve(): ./w: No such file\\nsrun: error: n3: task 2: Exited with "
       "exit code 2",
       "error: execve(): ./w: No such file"},
      {"srun: error: n3: task 2: Exited with exit code 2",
       "srun: error: n3: task 2: Exited with exit code 2"},
      {"Traceback (most recent call last):\\n  File x\\nValueError: 5", "ValueError: 5"},
      {"boom: no input\\n\\n", "boom: no input"},
      {"error: first\\nwhat follows", "error: first"},
  };
  for (const auto& [printed, reason] : cases) {
    const Shell shell;
    shell.file("b.yaml", "name: b\noutpath: run\nstep: {name: s, kind: run, do: \"printf '" +
                             std::string(printed) + "\\n' >&2; exit 3\"}\n");
    shell.sh("sed -i 's/\\\\n/\\\\\\\\n/g' b.yaml");
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(has(ran.out, "exit code 3: " + std::string(reason) + " (b.yaml:3:"), ran.out);
  }
}
