// `tally compare` through the program.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// Two points. Repeat i prints base * n + (7 * i) % 10 / 10, so that the noise is below 1 %.
std::string own(int base, int repeats, const std::string& column,
                const std::string& parameters = {}, const std::string& condition = "true") {
  return "name: b\noutpath: run\n"
         "parameterset: {name: ps, parameter: [{name: n, type: int, _: \"1,2\"}" +
         parameters +
         "]}\n"
         "patternset: {name: pt, pattern: {name: rate, type: float, unit: x/s, _: "
         "\"rate=$jube_pat_fp\"}}\n"
         "step: {name: s, kind: run, use: ps, repeat: " +
         std::to_string(repeats) + ", do: \"echo rate=$(($n * " + std::to_string(base) +
         ")).$(((7 * $jube_wp_iteration) % 10)); " + condition +
         "\"}\n"
         "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, column: [n, " +
         column + "]}}\n";
}

const std::string kHigher = "{_: rate, better: higher}";

void run(const Shell& shell, const std::string& text) {
  shell.file("b.yaml", text);
  const Ran ran = shell.tally("run b.yaml -q");
  CHECK_MESSAGE(ran.code <= 1, ran.err);
}

}  // namespace

TEST_CASE("compare: exit codes and verdicts") {
  const Shell shell;
  run(shell, own(100, 6, kHigher));
  run(shell, own(100, 6, kHigher));
  run(shell, own(110, 6, kHigher));
  struct Row {
    const char* arguments;
    int code;
    const char* verdicts;
  };
  const Row rows[] = {
      {"run/000000 run/000001", 0,
       "0 regressed, 0 improved, 2 same, 0 unclear, at a threshold of 2%"},
      {"run/000000 run/000002", 0, "0 regressed, 2 improved, 0 same, 0 unclear"},
      {"run/000002 run/000000", 5, "2 regressed, 0 improved, 0 same, 0 unclear"},
      {"run/000002 run/000000 --threshold 15%", 0, "0 regressed, 0 improved, 2 same, 0 unclear"},
      {"run/000000 run/000002 --threshold 10%", 0, "0 regressed, 0 improved, 0 same, 2 unclear"},
      {"run/000000 run/000002 --threshold 10% --strict", 5, "2 unclear"},
      {"run/000000 run/000002 --metric rate --better lower", 5, "2 regressed"},
      {"run/000000 b.yaml", 0, "2 improved"},  // the newest run
      {"run/000000 --null", 0, "null comparison: 0 of 2 rows differ"},
      {"run/000000", 2, ""},
      {"run/000000 run/000001 run/000002", 2, ""},
      {"run/000000 run/000000", 2, ""},
      {"run/000000 run/000009", 2, ""},
      {"run/000000 run/000001 --threshold 2", 2, ""},
      {"run/000000 run/000001 --metric rat", 2, ""},
      {"run/000000 run/000001 --better lower", 2, ""},
      {"run/000000 run/000001 --by m", 2, ""},
      {"run/000000 --null --by n", 2, ""},
  };
  for (const Row& row : rows) {
    const Ran ran = shell.tally(std::string("compare ") + row.arguments);
    INFO(row.arguments);
    CHECK_MESSAGE(ran.code == row.code, (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.out, row.verdicts), (ran.out + ran.err));
    CHECK(has(ran.err, "error: ") == (row.code == 2));
    if (row.code == 2) CHECK(ran.out.empty());
  }
}

// Repeats print 100.0, .7, .4, .1, .8, .5; medians by hand. p = 2 / C(12, 6), times two rows.
TEST_CASE("compare: the table") {
  const Shell shell;
  run(shell, own(100, 6, kHigher));
  run(shell, own(110, 6, kHigher));
  const Ran ran = shell.tally("compare run/000000 run/000001 -s csv");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out,
                    "n,metric,base,base n,new,new n,change %,low %,high %,p,verdict\n"
                    "1,rate,100.45,6,110.45,6,+9.96,"),
                ran.out);
  CHECK_MESSAGE(has(ran.out, ",0.0043,improved\n2,rate,200.45,6,220.45,6,+9.98,"), ran.out);
}

TEST_CASE("compare: too few repeats are unclear, and it is said how many would do") {
  const Shell shell;
  run(shell, own(100, 3, kHigher));
  run(shell, own(50, 3, kHigher));
  const Ran ran = shell.tally("compare run/000000 run/000001");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out, "0 regressed, 0 improved, 0 same, 2 unclear"), ran.out);
  // How many would do is a column, not a note for each row.
  CHECK_MESSAGE(has(ran.out, "| p | needed n | verdict |\n"), ran.out);
  CHECK_MESSAGE(has(ran.out, " |        5 | unclear |\n"), ran.out);
  CHECK_MESSAGE(!has(ran.err, "unclear"), ran.err);
  CHECK(has(shell.tally("compare run/000000 run/000001 -s json").out,
            "row 1 (n=1; rate): unclear: 3 and 3 repeats; 5 repeats a side would decide"));
}

TEST_CASE("compare: many unclear rows are no notes beside a table, and -s json has them all") {
  const Shell shell;
  std::string text = own(100, 3, kHigher);
  text.replace(text.find("\"1,2\""), 5,
               "\"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22\"");
  run(shell, text);
  run(shell, text);
  const Ran ran = shell.tally("compare run/000000 run/000001");
  CHECK_MESSAGE(!has(ran.err, "row "), ran.err);
  CHECK_MESSAGE(!has(ran.err, "more notes"), ran.err);
  CHECK(has(shell.tally("compare run/000000 run/000001 -s json").out, "row 22 (n=22; rate): uncl"));
}

TEST_CASE("compare: a workflow that does not say which direction is better") {
  const Shell shell;
  run(shell, own(100, 4, "rate"));
  run(shell, own(110, 4, "rate"));
  Ran ran = shell.tally("compare run/000000 run/000001");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "not known which direction is better"), ran.err);
  ran = shell.tally("compare run/000000 run/000001 --metric rate --better lower");
  CHECK_MESSAGE(has(ran.out, "0 regressed, 0 improved, 0 same, 2 unclear"), ran.out);  // Holm
  // The second run's definitions are used for both.
  run(shell, own(110, 6, kHigher));
  run(shell, own(110, 6, kHigher));
  CHECK(shell.tally("compare run/000000 run/000003").code == 0);
}

TEST_CASE("compare: rows are joined on their parameters, --by leaves one out") {
  const Shell shell;
  const auto version = [](const std::string& value) {
    return ", {name: version, _: \"" + value + "\"}";
  };
  run(shell, own(100, 6, kHigher, version("one")));
  run(shell, own(100, 6, kHigher, version("two")));
  Ran ran = shell.tally("compare run/000000 run/000001");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err,
                    "they differ in 'version' (one and two): name such a parameter with "
                    "--by"),
                ran.err);
  ran = shell.tally("compare run/000000 run/000001 --by version -s csv");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out, "n,base version,version,metric,"), ran.out);
  CHECK_MESSAGE(has(ran.out, "1,one,two,rate,100.45,6,100.45,6,+0.00,"), ran.out);
  // Rows without a partner are said.
  std::string text = own(100, 6, kHigher, version("one"));
  text.replace(text.find("\"1,2\""), 5, "\"2,3\"");
  run(shell, text);
  ran = shell.tally("compare run/000000 run/000002 -s csv");
  CHECK_MESSAGE(has(ran.out, "\nrate,200.45,6,200.45,"), ran.out);
  CHECK_MESSAGE(has(ran.err, "note: t: 1 row is only in the first run: n=1, version=one\n"),
                ran.err);
  CHECK_MESSAGE(has(ran.err, "note: t: 1 row is only in the second run: n=3, version=one\n"),
                ran.err);
}

TEST_CASE("compare: two rows of a run with the same parameters cannot be told apart") {
  const Shell shell;
  const auto each_repeat = [](int repeats, const std::string& values) {
    std::string text = own(100, repeats, kHigher);
    text.replace(text.find("\"1,2\""), 5, "\"" + values + "\"");
    return text.replace(text.find("use: pt, analyse"), 7, "reduce: false, use: pt");
  };
  run(shell, each_repeat(1, "1,2"));
  run(shell, each_repeat(2, "1,2"));
  run(shell, each_repeat(2, "3,4"));
  const auto refuses = [&](const char* runs, const char* workpackages) {
    const Ran ran = shell.tally(std::string("compare ") + runs);
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, std::string("the rows of workpackages ") + workpackages +
                                   " have the same parameters"),
                  ran.err);
  };
  refuses("run/000000 run/000001", "0 and 2");
  refuses("run/000000 run/000002", "0 and 2");  // without a partner in the first run
  refuses("run/000001 run/000000", "0 and 2");
}

TEST_CASE("compare: one run by a parameter") {
  const Shell shell;
  run(shell, own(100, 6, "m, {_: rate, better: lower}", ", {name: m, _: \"a,b,c\"}"));
  const Ran ran = shell.tally("compare run --by n -s csv");
  CHECK(ran.code == 5);
  CHECK_MESSAGE(has(ran.out, "m,base n,n,metric,base,base n,new,new n,change %"), ran.out);
  CHECK_MESSAGE(has(ran.out, "b,1,2,rate,100.45,6,200.45,6,+99.55,"), ran.out);
  CHECK(shell.tally("compare run --by m").code == 0);
  run(shell, own(100, 6, kHigher, {}, "test $n -eq 1"));
  const Ran failed = shell.tally("compare run/000001 --by n");
  CHECK_MESSAGE(has(failed.err, "unclear: it failed in the new row"), failed.err);
}

TEST_CASE("compare: a column that is relative to a row of its own run is no metric") {
  const Shell shell;
  run(shell,
      own(100, 6, "{_: rate, better: higher}, {_: rate, relative_to: {n: 1}, title: speedup}"));
  const Ran ran = shell.tally("compare run --by n --metric speedup --better higher");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "--metric: 'speedup' is relative to another row of its own run"),
                ran.err);
  // With `better` it is named without --metric.
  for (const char* column :
       {"{_: rate, relative_to: {n: 1}, title: speedup, better: higher}",
        "{_: rate, relative_to: {n: 1}, title: speedup, statistic: median, better: higher}",
        "{_: speedup, expression: rate / baseline.rate, relative_to: {n: 1}, better: higher}"}) {
    CAPTURE(column);
    shell.clear();
    run(shell, own(100, 2, column));
    for (const char* command : {"compare run --by n", "compare run --null"}) {
      const Ran named = shell.tally(command);
      CHECK(named.code == 2);
      CHECK_MESSAGE(has(named.err,
                        "column 'speedup' is relative to another row of its own run, which is no "
                        "measurement"),
                    named.err);
    }
    const Ran history = shell.tally("history run");
    CHECK(history.code == 2);
    CHECK_MESSAGE(has(history.err, "`statistic` or `better` and without `relative_to`"),
                  history.err);
  }
  // The metric itself has no direction.
  shell.clear();
  run(shell, own(100, 2, "rate, {_: rate, relative_to: {n: 1}, title: speedup}"));
  CHECK(has(shell.tally("compare run --by n --metric rate").err, "not known which direction"));
}

TEST_CASE("compare: failed repeats do not count, and a failed row is not merely unclear") {
  const Shell shell;
  run(shell, own(100, 6, kHigher));
  run(shell, own(100, 6, kHigher, {}, "test $n -eq 1 -o $jube_wp_iteration -gt 0"));
  Ran ran = shell.tally("compare run/000000 run/000001 -s csv");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out, "2,rate,200.45,6,200.5,5,"), ran.out);
  CHECK_MESSAGE(
      has(ran.err, "note: row 2 (n=2; rate): 1 of 6 repeats have no value in the second run\n"),
      ran.err);
  CHECK_MESSAGE(!has(ran.err, "row 1 (n=1; rate)"), ran.err);
  run(shell, own(100, 6, kHigher, {}, "test $n -eq 1"));
  ran = shell.tally("compare run/000000 run/000002");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "note: row 2 (n=2; rate): unclear: it failed in the second run"),
                ran.err);
}

TEST_CASE("compare: changed derived parameters and commands are said") {
  const Shell shell;
  const auto text = [](const std::string& steps, const std::string& command) {
    return "name: c\noutpath: run\n"
           "parameterset: {name: p, parameter: [{name: n, type: int, _: \"1,2\"}, "
           "{name: steps, mode: python, _: \"" +
           steps +
           "\"}]}\n"
           "step: {name: s, kind: run, use: p, repeat: 8, do: '" +
           command +
           "'}\n"
           "patternset: {name: o, pattern: [{name: time, type: float, _: 'time=(\\S+)'}]}\n"
           "analyser: {name: a, use: o, analyse: [{step: s, file: stdout}]}\n"
           "result: {use: a, table: {name: t, column: [n, {_: time, better: lower}]}}\n";
  };
  const std::string command = "echo time=$steps.$jube_wp_iteration";
  run(shell, text("$n*10", command));
  run(shell, text("$n*5", command));
  run(shell, text("$n*5", "sleep 0; " + command));
  Ran ran = shell.tally("compare run/000000 run/000001");
  CHECK_MESSAGE(has(ran.err, "note: the runs differ in parameter 'steps': $n*10; $n*5\n"), ran.err);
  CHECK_MESSAGE(!has(ran.err, "command"), ran.err);
  ran = shell.tally("compare run/000001 run/000002");
  CHECK_MESSAGE(has(ran.err, "note: the runs differ in the commands of step 's': " + command +
                                 "; sleep 0; " + command + "\n"),
                ran.err);
  CHECK_MESSAGE(!has(ran.err, "parameter"), ran.err);
  // -u changes what is read, not what was run.
  CHECK(shell.tally("result run -i 0 -u b.yaml").code == 0);
  ran = shell.tally("compare run/000000 run/000002 -s json");
  CHECK_MESSAGE(has(ran.out, "\"name\": \"parameter 'steps'\""), ran.out);
}

TEST_CASE("compare: --by takes the first value of the workflow as the base") {
  const Shell shell;
  // Sorted by the name or by the time, another value than fp32 has the first row.
  for (const char* sort : {"prec", "time"}) {
    run(shell,
        "name: b\noutpath: run\n"
        "parameterset: {name: p, parameter: [{name: prec, _: \"fp32,bf16\"}, {name: m, _: "
        "\"1,2\"}]}\n"
        "step: {name: s, kind: run, use: p, repeat: 8, do: 'case $prec$m in fp321) echo "
        "time=1.$jube_wp_iteration;; fp322) echo time=10.$jube_wp_iteration;; *) echo "
        "time=5.$jube_wp_iteration;; esac'}\n"
        "patternset: {name: o, pattern: [{name: time, type: float, _: 'time=(\\S+)'}]}\n"
        "analyser: {name: a, use: o, analyse: [{step: s, file: stdout}]}\n"
        "result: {use: a, table: {name: t, sort: " +
            std::string(sort) +
            ", column: [prec, m, {_: time, statistic: median, better: lower}]}}\n");
    const Ran ran = shell.tally("compare run --by prec -s csv");
    CHECK_MESSAGE(has(ran.out, "\n1,fp32,bf16,time,"), ran.out);
    CHECK_MESSAGE(has(ran.out, "\n2,fp32,bf16,time,"), ran.out);
    CHECK_MESSAGE(has(ran.err, "note: the base is prec=fp32, the first value in the workflow\n"),
                  ran.err);
  }
}

TEST_CASE("compare: many changes of the workflow are one note") {
  const Shell shell;
  const auto derived = [](int factor) {
    std::string text;
    for (int i = 0; i < 10; ++i)
      text += ", {name: d" + std::to_string(i) + ", mode: python, _: \"$n*" +
              std::to_string(factor) + "\"}";
    return text;
  };
  run(shell, own(100, 4, kHigher, derived(1)));
  run(shell, own(100, 4, kHigher, derived(2)));
  const Ran ran = shell.tally("compare run/000000 run/000001");
  CHECK_MESSAGE(has(ran.err, "note: the runs differ in parameter 'd7': $n*1; $n*2\n"), ran.err);
  CHECK_MESSAGE(has(ran.err, "note: the runs also differ in parameter 'd8', parameter 'd9'\n"),
                ran.err);
}
