// Single commands: what they print and give back.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::count_of;
using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

constexpr const char* kBench = R"yaml(name: b
outpath: runs
comment: hello
parameterset:
  - {name: ps, parameter: [{name: a, type: int, _: "1,2"}, {name: c, tag: x, _: z}]}
patternset: {name: pt, pattern: {name: v, type: int, _: "v=$jube_pat_int"}}
step:
  - {name: s, use: ps, do: 'echo v=$a'}
  - {name: t, depend: s, do: 'echo t=$a'}
analyser: {name: an, use: pt, analyse: {step: s, file: stdout}}
result: {use: an, table: {name: r, column: [a, v]}}
)yaml";

}  // namespace

TEST_CASE("status: a run whose engine ended without finishing is INTERRUPTED" *
          doctest::test_suite(tally::testing::kSeesProcesses)) {
  const Shell shell;
  shell.file("hang.sh", "echo $$ >pid; exec sleep 50\n");
  shell.file("b.yaml",
             "name: b\noutpath: runs\nstep: {name: s, do: sh $jube_benchmark_home/hang.sh}\n");
  const Ran ran = shell.sh(
      "\"$TALLY\" run b.yaml >/dev/null 2>&1 & engine=$!\n"
      "while ! test -s runs/000000/000000_s/work/pid; do sleep 0.05; done\n"
      "\"$TALLY\" status runs\n"
      "kill -9 $engine; wait $engine 2>/dev/null\n"
      "\"$TALLY\" status runs\n"
      "ln -s \"$TALLY\" jube; ./jube status runs\n"
      "kill $(cat runs/000000/000000_s/work/pid)");
  CHECK_MESSAGE(ran.out == "RUNNING\nINTERRUPTED\nRUNNING\n", ran.out);
  CHECK(has(ran.err, "hint: `tally continue runs --id 0` resumes it\n"));
  // What waits for a file of its command goes on by itself.
  shell.clear();
  shell.file("b.yaml",
             "name: b\noutpath: runs\nstep: {name: s, do: {done_file: ready, _: echo}}\n");
  shell.tally("run b.yaml");
  CHECK(shell.tally("status runs").out == "RUNNING\n");
  shell.file("runs/000000/000000_s/work/ready", "");
  shell.tally("continue runs");
  CHECK(shell.tally("status runs").out == "FINISHED\n");
  // Seen to its end without a workpackage; killed before there was one.
  shell.clear();
  shell.file("b.yaml", "name: b\noutpath: runs\nstep: {name: s, active: false, do: echo}\n");
  shell.tally("run b.yaml");
  CHECK(shell.tally("status runs").out == "FINISHED\n");
  // The files of a run are for people; the journal says how it ended.
  shell.sh("rm runs/000000/workpackages.xml runs/000000/run.log");
  CHECK(shell.tally("status runs").out == "FINISHED\n");
  CHECK(has(shell.tally("info runs --id 0").out, "--- Benchmark finished ---"));
  shell.file("k.yaml",
             "name: k\noutpath: killed\n"
             "parameterset: {name: p, parameter: {name: x, mode: shell, _: kill -9 $PPID}}\n"
             "step: {name: s, use: p, do: echo}\n");
  shell.tally("run k.yaml");
  CHECK(shell.tally("status killed").out == "INTERRUPTED\n");
  CHECK(has(shell.tally("info killed --id 0").out, "--- Benchmark not finished! ---"));
}

TEST_CASE("--color holds for what result and analyse say, too") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: runs\n"
             "patternset: {name: pt, pattern: {name: v, type: int, _: \"v=$jube_pat_int\"}}\n"
             "step: {name: s, do: echo}\n"
             "analyser: {name: an, use: pt, analyse: {step: s, file: stdout}}\n"
             "result: {use: an, table: {name: r, column: [v]}}\n");
  shell.tally("run b.yaml");
  for (const char* command : {"result", "analyse"}) {
    const std::string words = command;
    CHECK_MESSAGE(has(shell.tally("--color always " + words + " runs").err, "\033["), words);
    CHECK_MESSAGE(!has(shell.tally(words + " runs").err, "\033["), words);
  }
}

TEST_CASE("exit codes are told by the program") {
  const Shell shell;
  const Ran all = shell.tally("help exit-codes");
  CHECK(all.code == 0);
  for (const char* line :
       {"  0  all went well. ", "  1  something failed. ", "  2  wrong input or command line. ",
        "  5  a reference was missed or a result regressed. "}) {
    CHECK_MESSAGE(has(all.out, line), all.out);
  }
  CHECK(has(shell.tally("--help").out, "help exit-codes"));
  // Words of the language, also as JUBE calls them; a command comes before a word.
  const Ran word = shell.tally("help workpackage");
  CHECK(word.code == 0);
  CHECK(has(word.out, "A workpackage is one execution of one step"));
  CHECK(has(shell.tally("help parameter_tag").out, "parameter (in parameterset)\n"));
  CHECK(has(shell.tally("help parameter").out, "\n  type "));
  CHECK(has(shell.tally("help result").out, "Usage: tally result"));
  CHECK(has(shell.tally("help result_tag").out, "  table "));
  CHECK(has(shell.tally("help words").out, "\nworkpackage\n"));
  // Keys of short files, but for those that are elements or commands as well.
  CHECK(has(shell.tally("help metrics").out, "metrics (beside `run`, in a short file): "));
  CHECK(has(shell.tally("help where").out, "where (in parameterset)\n"));
  const Ran unknown = shell.tally("help workpakage");
  CHECK(unknown.code == 2);
  CHECK(has(unknown.err, "there is no command or word 'workpakage'"));
  CHECK(has(unknown.err, "did you mean 'workpackage'"));
}

TEST_CASE("-n lists some of many workpackages, with --all and -v all of them") {
  const Shell shell;
  shell.file(
      "b.yaml",
      "name: b\noutpath: runs\nparameterset: {name: p, parameter: {name: a, mode: python, _: "
      "\"','.join(str(i) for i in range(100))\"}}\nstep: {name: s, use: p, do: echo $a}\n");
  const Ran some = shell.tally("run b.yaml -n");
  CHECK(has(some.out, "  #000019 s  a=19"));
  CHECK(!has(some.out, "#000020 s"));
  CHECK(has(some.out, "  ... and 80 workpackages more (--all lists them)\n"));
  CHECK(has(shell.tally("run b.yaml -n --all").out, "#000099 s"));
  CHECK(has(shell.tally("-v run b.yaml -n").out, "#000099 s"));
}

TEST_CASE("-q: tables, warnings and failures only") {
  const Shell shell;
  shell.file("b.yaml", kBench);
  Ran ran = shell.tally("-q run b.yaml -r");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(ran.out == "a,v\n1,1\n2,2\n\n", ran.out);
  shell.file("f.yaml", "name: f\noutpath: runs\nstep: {name: s, do: \"false\"}\n");
  ran = shell.tally("run f.yaml --quiet");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(
      ran.out ==
          "failed: 1 of 1 (s): exit code 1 (f.yaml:3:21; runs/000001/000000_s/work/stderr)\n\n",
      ran.out);
  CHECK(!has(ran.out, "####"));
}

TEST_CASE("-v says which workpackages ended, -vv what they printed; JUBE_VERBOSE is as many -v") {
  const Shell shell;
  shell.file("b.yaml", kBench);
  Ran ran = shell.tally("-v run b.yaml");
  CHECK(count_of(ran.err, "000001_s: done") == 1);
  CHECK(count_of(ran.out, "v=2") == 0);
  for (const char* command :
       {"\"$TALLY\" -vv run b.yaml", "JUBE_VERBOSE=2 \"$TALLY\" run b.yaml"}) {
    ran = shell.sh(command);
    CHECK(count_of(ran.err, "000001_s: done") == 1);
    CHECK(count_of(ran.out, "v=1") == 1);
    CHECK_MESSAGE(count_of(ran.out, "v=2") == 1, ran.out);
  }
}

TEST_CASE("colour: on a terminal, never with NO_COLOR, as --color says") {
  const Shell shell;
  shell.file("bad.yaml", "name: b\nstep: {name: s, use: nix, do: echo}\n");
  const std::string red = "\033[1;31m";
  CHECK(!has(shell.tally("validate bad.yaml").err, "\033["));
  CHECK(has(shell.tally("--color always validate bad.yaml").err, red));
  CHECK(has(shell.tally("validate none.yaml --color always").err, red + "error:"));
  CHECK(shell.tally("--color sometimes validate bad.yaml").code == 2);
  if (shell.sh("command -v script").code != 0) return;
  const std::string on_terminal = "TERM=xterm script -qec '\"$TALLY\" validate bad.yaml' /dev/null";
  CHECK(has(shell.sh(on_terminal).out, red));
  CHECK(!has(shell.sh("export NO_COLOR=1; " + on_terminal).out, "\033["));
  CHECK(has(shell.sh("export NO_COLOR=; " + on_terminal).out, red));
}

TEST_CASE("the live table names the parameters of what runs") {
  const Shell shell;
  if (shell.sh("command -v script").code != 0) return;
  shell.file(
      "b.yaml",
      "name: b\noutpath: runs\nparameterset: {name: p, parameter: [{name: a, _: \"one,two\"}, "
      "{name: same, _: all}]}\nstep: {name: s, use: p, procs: 2, do: sleep 2}\n");
  const Ran ran =
      shell.sh("TERM=xterm script -qec '\"$TALLY\" run b.yaml -j 2' /dev/null </dev/null");
  CHECK_MESSAGE(has(ran.out, "  here  000000_s     a=one       running"), ran.out);
  CHECK(has(ran.out, "  here  000001_s     a=two       running"));
}

TEST_CASE(
    "commands of JUBE's steps have the user's PATH; own kinds find the programs beside tally" *
    doctest::test_suite(tally::testing::kSeesProcesses)) {
  const Shell shell;
  shell.sh(
      "mkdir bin && cp \"$TALLY\" bin/tally && printf '#!/bin/sh\\necho ours\\n' >bin/tally-train "
      "&& "
      "chmod +x bin/tally-train");
  shell.file("plain.yaml",
             "name: b\noutpath: runs\nparameterset: {name: p, parameter: {name: a, mode: shell, _: "
             "'printf %s \"$PATH\"'}}\n"
             "step: {name: s, use: p, do: ['echo \"$a\"', 'echo \"$$PATH\"']}\n");
  shell.file("own.yaml",
             "name: b\noutpath: own\nparameterset: {name: p, parameter: {name: a, mode: shell, _: "
             "'printf %s \"$(command -v tally-train)\"'}}\n"
             "step: [{name: s, kind: run, use: p, do: ['echo \"$a\"', tally-train]},\n"
             "  {name: t, depend: s, do: 'command -v tally-train || echo \"$$PATH\"'}]\n");
  const std::string path = "PATH=/usr/bin:/bin bin/tally -q run ";
  CHECK(shell.sh(path + "plain.yaml").code == 0);
  CHECK(shell.content("runs/000000/000000_s/work/stdout") == "/usr/bin:/bin\n/usr/bin:/bin\n");
  const Ran ran = shell.sh(path + "own.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.out);
  CHECK(shell.content("own/000000/000000_s/work/stdout") ==
        shell.root() + "/bin/tally-train\nours\n");
  CHECK(shell.content("own/000000/000001_t/work/stdout") == "/usr/bin:/bin\n");
}

TEST_CASE("JUBE's commands: info with workpackages and parts, tag of a folder, output, remove") {
  const Shell shell;
  shell.file("b.yaml", kBench);
  REQUIRE(shell.tally("run b.yaml --tag x").code == 0);
  Ran ran = shell.tally("info runs --id 0 -w 1");
  CHECK(ran.code == 0);
  CHECK(has(ran.out, "# b Step: s\n"));
  CHECK(has(ran.out, " ID: 1\n"));
  CHECK(!has(ran.out, " ID: 0\n"));
  CHECK(!has(ran.out, "# b Step: t\n"));
  ran = shell.tally("info runs --id 0");
  for (const char* part : {"Parameter sets: ps\n", "Pattern sets: pt\n", "Analyser: an (of s)\n",
                           "Result: r\n", "\n--- Benchmark finished ---\n"}) {
    CHECK_MESSAGE(has(ran.out, part), ran.out);
  }
  for (const char* what : {"tag runs", "tag runs --id 0", "tag --id 0 runs", "tag runs/000000"}) {
    ran = shell.tally(what);
    CHECK(ran.code == 0);
    CHECK_MESSAGE(ran.out == "runs/000000 (b.yaml): 1 tag\n  x  (set)\n", ran.out, ran.err);
  }
  CHECK(shell.tally("tag b.yaml").out == "b.yaml: 1 tag\n  x\n");
  ran = shell.tally("output runs -s s -w 0 -o stdout");
  CHECK(ran.out == shell.root() + "/runs/000000/000000_s/work/stdout\n");
  // Nobody answers; somebody says no; JUBE has the same codes.
  CHECK(shell.sh("\"$TALLY\" remove runs </dev/null").code == 1);
  CHECK(shell.sh("echo n | \"$TALLY\" remove runs").code == 0);
  CHECK(shell.exists("runs/000000"));
  CHECK(shell.sh("ln -s \"$TALLY\" jube; ./jube update").code == 1);
  CHECK(shell.tally("update").code == 0);
}

TEST_CASE("commands in hints can be pasted, also where paths have blanks") {
  const Shell shell;
  shell.file("my bench.yaml", "name: b\noutpath: my runs\nstep: {name: s, do: echo}\n");
  CHECK(has(shell.tally("'my bench.yaml'").err, "did you mean `tally run 'my bench.yaml'`?"));
  const Ran ran = shell.tally("run 'my bench.yaml'");
  CHECK_MESSAGE(has(ran.out, "To see more of the run: tally info 'my runs' --id 0\n"), ran.out);
  // The program is called as it was called.
  shell.sh("mkdir -p 'my bin'; ln -s \"$TALLY\" 'my bin/tally2'");
  CHECK(has(shell.sh("'my bin/tally2' run 'my bench.yaml'").out,
            "To see more of the run: 'my bin/tally2' info 'my runs' --id 1\n"));
}

TEST_CASE("words of the command line are taken as they are: brackets, commas, ++, nothing") {
  const Shell shell;
  // The measured program gets the arguments that were given.
  Ran ran = shell.tally(
      "meter -- printf '<%s>\\n' '[a,b]' '[]' '[x]' ++ '{}' '' '[' ']' '[[1],[2]]' \"$(printf "
      "'a\\001')\"");
  CHECK_MESSAGE(ran.out.rfind("<[a,b]>\n<[]>\n<[x]>\n<++>\n<{}>\n<>\n<[>\n<]>\n<[[1],[2]]>\n"
                              "<a\x01>\nenergy: ",
                              0) == 0,
                (ran.out + ran.err));
  // Tags in every way of writing an option.
  shell.file(
      "t.yaml",
      "name: t\noutpath: runs\nparameterset: {name: p, parameter: [{name: n, tag: z, _: "
      "taken}, {name: n, tag: '!z', _: whole}]}\nstep: {name: s, use: p, do: 'echo n=$n'}\n");
  for (const char* tag : {"-t '[z]'", "-t'[z]'", "--tag '[z]'", "--tag='[z]'", "-t '[a,z]' b",
                          "-t '[]'", "-t ++", "--tag=++"}) {
    CAPTURE(std::string(tag));
    ran = shell.tally("run -n -v t.yaml " + std::string(tag));
    CHECK(ran.code == 0);
    CHECK_MESSAGE(has(ran.out, "n=whole"), (ran.out + ran.err));
  }
  ran = shell.tally("run -q --comment= t.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  // As in JUBE, an empty comment takes the place of the file's.
  shell.file("b.yaml", kBench);
  shell.tally("run -q -o commented b.yaml");
  shell.tally("run -q -o empty -m '' b.yaml");
  CHECK(has(shell.tally("info commented").out, "hello"));
  CHECK(!has(shell.tally("info empty").out, "hello"));
  CHECK(!has(shell.content("empty/000000/configuration.xml"), "hello"));
  // A folder's name is that folder, and of a comment nothing is cut off.
  shell.sh("mv runs run");
  ran = shell.tally("remove -f '[run]'");
  CHECK(ran.code != 0);
  CHECK_MESSAGE(has(ran.err, "\"[run]\""), ran.err);
  CHECK(shell.exists("run/000000"));
  for (const char* text : {"[hello, you]", "[x]", "++", "]"}) {
    CAPTURE(std::string(text));
    ran = shell.tally("comment '" + std::string(text) + "' run");
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK_MESSAGE(has(shell.tally("info run").out, text), shell.tally("info run").out);
  }
  ran = shell.tally("validate '[w,x]'");
  CHECK_MESSAGE(has(ran.err, "\"[w,x]\""), ran.err);
  // What is refused is shown as it was written.
  ran = shell.tally("help run '[b]' 'c]'");
  CHECK_MESSAGE((has(ran.err, " [b]") && has(ran.err, " c]")), ran.err);
  ran = shell.tally("run t.yaml -j '[1]'");
  CHECK_MESSAGE(has(ran.err, "'[1]' is not a whole number"), ran.err);
}

// The first step asks the engine to end, as a terminal or an administrator does.
TEST_CASE("a command that is asked to end begins no other run") {
  const Shell shell;
  shell.sh("printf 'test -e go || kill -s %s $PPID\\nsleep 1\\n' TERM > stop");
  for (const char* name : {"a", "b", "c"}) {
    shell.file(std::string(name) + ".yaml",
               std::string("name: ") + name +
                   "\noutpath: run\nstep: {name: s, do: \"cd $jube_benchmark_home; . ./stop\"}\n");
  }
  Ran ran = shell.tally("run a.yaml b.yaml c.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "interrupted: 2 further runs were not begun"), ran.err);
  CHECK(shell.sh("ls run").out == "000000\n");
  ran = shell.sh(
      "touch go; \"$TALLY\" -q run b.yaml && \"$TALLY\" remove run -i 1 -w 0 -f && rm go; "
      "\"$TALLY\" continue run -i all");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "interrupted: 1 further run was not begun"), (ran.out + ran.err));
  CHECK(shell.tally("status run -i 1").out != "FINISHED\n");
}

TEST_CASE("equal failures are said once, with the parameters that they share") {
  const Shell shell;
  shell.file(
      "b.yaml",
      "name: b\n"
      "parameters: {n: [1, 2, 3], m: [0, 1], same: 5}\n"
      "run: sh -c 'test $m = 1 || { echo must be one >&2; exit 3; }; test $n -lt 3 || exit 4; "
      "echo v $n'\n"
      "metrics: {v: 'v $jube_pat_int'}\n");
  const Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out,
                    "failed: 3 of 6 (run, m=0): exit code 3: must be one (b.yaml:3:6; first: "
                    "b_run/000000/000000_run/work/stderr)\n"
                    "failed: 1 of 6 (run, n=3, m=1): exit code 4 (b.yaml:3:6; "
                    "b_run/000000/000005_run/work/stderr)\n\n"
                    "To do what failed again: tally continue b_run --id 0 --failed\n"
                    "To see more of the run: tally info b_run --id 0\n"),
                ran.out);
  CHECK_MESSAGE(ran.err ==
                    "note: b: rows 1, 3, 5 FAILED: workpackages 0, 2, 4 (run) failed: exit code 3: "
                    "must be one\n"
                    "note: b: row 6 FAILED: workpackage 5 (run) failed: exit code 4\n",
                ran.err);
}
