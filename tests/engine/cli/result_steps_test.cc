// Steps of kind: result: figures and files that are made from the tables.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// Two points, a table of them, and a step that counts how often it was done.
std::string workflow(const std::string& step, const std::string& point = "echo v=$n") {
  return "name: b\noutpath: run\n"
         "parameterset: {name: p, parameter: {name: n, type: int, _: [1, 2]}}\n"
         "fileset: {name: f, copy: head.txt}\n"
         "step:\n- {name: s, use: p, do: '" +
         point + "'}\n" + step +
         "patternset: {name: q, pattern: {name: v, type: int, _: 'v=(\\d+)'}}\n"
         "analyser: {name: a, use: q, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, style: pretty, column: [n, v]}}\n";
}

const char* kFigure =
    "- name: fig\n  kind: result\n  use: f\n  env: {KEY: '$jube_benchmark_name'}\n"
    "  do: ['cat head.txt t.csv >out.txt && echo $KEY >>out.txt', 'echo x >>$OUT/done.txt']\n";

}  // namespace

TEST_CASE("result steps: commands run with the tables beside them, once for equal tables") {
  const Shell shell;
  shell.file("b.yaml", workflow(kFigure));
  shell.file("head.txt", "head\n");
  const std::string out = "OUT=" + shell.root() + " \"$TALLY\" ";
  CHECK(shell.sh(out + "validate b.yaml --strict").code == 0);
  const Ran plan = shell.sh(out + "run -n b.yaml");
  CHECK_MESSAGE(has(plan.out, "  then fig, from the tables: in result/fig\n"), plan.out);
  const Ran ran = shell.sh(out + "run b.yaml");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.err, "note: step 'fig' is done: run/000000/result/fig\n"), ran.err);
  CHECK(shell.content("run/000000/result/fig/out.txt") == "head\nn,v\n1,1\n2,2\nb\n");
  CHECK(shell.content("done.txt") == "x\n");

  SUBCASE("nothing has changed") {
    CHECK(shell.sh(out + "result run").code == 0);
    CHECK(shell.content("done.txt") == "x\n");
  }
  SUBCASE("columns that a person leaves out change nothing") {
    CHECK(shell.sh(out + "result run --select v").code == 0);
    CHECK(shell.content("done.txt") == "x\n");
  }
  SUBCASE("a file of its sets has changed") {
    shell.file("head.txt", "other\n");
    CHECK(shell.sh(out + "result run").code == 0);
    CHECK(shell.content("run/000000/result/fig/out.txt") == "other\nn,v\n1,1\n2,2\nb\n");
    CHECK(shell.content("done.txt") == "x\nx\n");
  }
  SUBCASE("the tables have changed, and a command fails: the earlier files stay") {
    shell.file("run/000000/000001_s/work/stdout", "v=7\n");
    shell.file("head.txt", "");
    shell.sh("rm head.txt");
    const Ran again = shell.sh(out + "result run");
    CHECK(again.code == 1);
    CHECK_MESSAGE(has(again.err, "step 'fig': no files found using \"head.txt\""), again.err);
    CHECK(shell.content("run/000000/result/fig/out.txt") == "head\nn,v\n1,1\n2,2\nb\n");
  }
}

TEST_CASE("result steps: a command that fails keeps its work beside the earlier files") {
  const Shell shell;
  shell.file("b.yaml", workflow("- {name: fig, kind: result, do: ['echo half >out.txt', 'echo no "
                                "space >&2; exit 3']}\n"));
  const Ran ran = shell.tally("-q run b.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err,
                    "step 'fig': `echo no space >&2; exit 3` ended with exit code 3: no "
                    "space; see "),
                ran.err);
  CHECK(shell.content("run/000000/result/fig.failed/out.txt") == "half\n");
  CHECK(shell.sh("test ! -e run/000000/result/fig").code == 0);
  CHECK(shell.sh("test ! -e run/000000/result/fig.new").code == 0);
}

TEST_CASE("result steps: an unfinished run waits, and commands are not run with --no-exec") {
  const Shell shell;
  shell.file("head.txt", "head\n");
  shell.file("b.yaml", workflow(kFigure, "test -e go || kill -INT $PPID; echo v=$n"));
  const std::string out = "OUT=" + shell.root() + " \"$TALLY\" ";
  CHECK(shell.sh(out + "-q run -o run b.yaml").code != 0);
  const Ran half = shell.sh(out + "result run");
  CHECK_MESSAGE(has(half.err, "note: step 'fig' was not done: the run has not ended"), half.err);
  CHECK(shell.sh("test ! -e done.txt").code == 0);
  // The run is continued: now the tables are whole.
  int code = 1;
  for (int tries = 0; code != 0 && tries < 4; ++tries) {
    shell.sh("for i in run/000000/*_s/work; do touch $i/go; done");
    code = shell.sh(out + "-q continue run").code;
  }
  CHECK(code == 0);
  CHECK(shell.content("run/000000/result/fig/out.txt") == "head\nn,v\n1,1\n2,2\nb\n");
  CHECK(shell.content("done.txt") == "x\n");
  const Ran kept = shell.sh("rm -r run/000000/result/fig; " + out + "--no-exec result run");
  CHECK_MESSAGE(has(kept.err, "step 'fig' was not done: --no-exec allows no commands"), kept.err);
  CHECK(shell.content("done.txt") == "x\n");
}

TEST_CASE("result steps: a file within a folder of its sets counts, and a choice that is off not") {
  const Shell shell;
  shell.sh("mkdir lib; echo 1 >lib/a; echo 5 >off.txt");
  std::string text = workflow("- {name: fig, kind: result, use: f, do: 'cat lib/a; ls >names'}\n");
  text.replace(text.find("copy: head.txt"), 14, "copy: [lib, {active: 'false', _: off.txt}]");
  shell.file("b.yaml", text);
  CHECK(shell.tally("-q run b.yaml").code == 0);
  CHECK(shell.content("run/000000/result/fig/stdout") == "1\n");
  CHECK(!has(shell.content("run/000000/result/fig/names"), "off.txt"));
  shell.sh("echo 2 >lib/a");
  CHECK(shell.tally("result run").code == 0);
  CHECK(shell.content("run/000000/result/fig/stdout") == "2\n");
}

TEST_CASE("result steps: nothing is written behind a link that somebody put in the run's folder") {
  const Shell shell;
  shell.file("b.yaml", workflow("- {name: fig, kind: result, do: 'echo 1 >one'}\n"));
  CHECK(shell.tally("-q run b.yaml").code == 0);
  shell.sh("mkdir other; rm -r run/000000/result; ln -s ../../other run/000000/result");
  CHECK(shell.tally("result run").code != 0);
  CHECK(shell.sh("ls other | grep -c fig").out == "0\n");
}

TEST_CASE("result steps: two commands at once make the files once") {
  const Shell shell;
  shell.file("b.yaml", workflow("- {name: fig, kind: result, do: 'mkdir made; echo x >>$OUT'}\n"));
  const std::string out = "OUT=" + shell.root() + "/done.txt \"$TALLY\" ";
  CHECK(shell.sh(out + "-q run b.yaml").code == 0);
  const Ran ran =
      shell.sh("rm -r run/000000/result/fig; rm done.txt; " + out + "result run >one 2>&1 & " +
               out + "result run >two 2>&1; a=$?; wait $!; exit $((a + $?))");
  CHECK_MESSAGE(ran.code == 0, (shell.content("one") + shell.content("two")));
  CHECK(shell.content("done.txt") == "x\n");
}

TEST_CASE("result steps: keys of workpackages, parameters and waiting steps are errors") {
  const Shell shell;
  shell.file("head.txt", "head\n");
  const auto error = [&](const std::string& step) {
    shell.file("b.yaml", workflow(step));
    const Ran ran = shell.tally("validate b.yaml");
    CHECK(ran.code == 2);
    return ran.err;
  };
  CHECK(has(error("- {name: fig, kind: result, depend: s, do: 'true'}\n"),
            "'depend' in step 'fig' needs workpackages"));
  CHECK(has(error("- {name: fig, kind: result, iterations: 2, do: 'true'}\n"),
            "'iterations' in step 'fig' needs workpackages"));
  CHECK(has(error("- {name: fig, kind: result, do: {stdout: x, _: 'true'}}\n"),
            "'stdout' in step 'fig' needs workpackages"));
  CHECK(has(error("- {name: fig, kind: result, use: p, do: 'true'}\n"),
            "step 'fig' uses 'p', which is no file set"));
  CHECK(has(error("- {name: fig, kind: result}\n"), "step 'fig' does nothing"));
  CHECK(has(error("- {name: fig, kind: result, do: 'true'}\n- {name: z, depend: fig, do: x}\n"),
            "step 'z' depends on step 'fig', whose kind: result is done once"));
}
