// The page of `tally report`: what it says of runs, whose rows, failures and values.
#include <doctest/doctest.h>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

const char* const kWorkflow = R"(name: b
outpath: run
parameterset:
  name: ps
  parameter: [{name: n, type: int, _: "1,2,4"}, {name: m, _: "a,b"}, {name: factor, type: int, _: 10}]
patternset: {name: pt, pattern: {name: rate, type: float, _: "rate=$jube_pat_fp"}}
step: {name: s, kind: run, use: ps, do: "echo rate=$(($n * $factor)); test $m != b || exit 3"}
analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}
result: {use: a, table: {name: t, column: [n, m, {_: rate, reference: "< 40"}]}}
)";

}  // namespace

TEST_CASE("a page: the verdict, the cell that misses, equal failures once") {
  const Shell shell;
  shell.file("b.yaml", kWorkflow);
  CHECK(shell.tally("run b.yaml").code == 5);
  Ran ran = shell.tally("report run -o r.html");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  const std::string html = shell.content("r.html");
  // Three failed, whose values do not count, and one is too high.
  CHECK(has(html, "<b>✗</b> 4 of 6 references missed, 3 of 6 workpackages failed"));
  CHECK(has(html, "<td class=\"x\" title=\"row 5 (n=4, m=a): rate is 40; expected &lt; 40"));
  CHECK(has(html, ">3 workpackages (s) failed</a></h3>\n<p class=\"soft\">m=b</p>"));
  CHECK(has(html, "workpackage 1: n=1 m=b factor=10</a></li>"));
  CHECK(has(html, "<b class=\"badge bad\">FAILED</b>"));
  ran = shell.tally("report run --format md");
  CHECK(has(ran.out, "\n**✗ 4 of 6 references missed, 3 of 6 workpackages failed"));
}

TEST_CASE("a page is not all fine where a value changed or is missing") {
  const Shell shell;
  const auto verdict = [&] {
    const Ran ran = shell.tally("report run --format md");
    const size_t at = ran.out.find("\n**");
    return at == std::string::npos ? ran.out + ran.err
                                   : ran.out.substr(at + 1, ran.out.find('\n', at + 1) - at - 1);
  };
  std::string text = kWorkflow;
  text.replace(text.find(", reference: \"< 40\""), 19, "");
  text.replace(text.find("; test $m != b || exit 3"), 24, " >log");
  text.replace(text.find("file: stdout"), 12, "file: log");
  shell.file("b.yaml", text);
  CHECK(shell.tally("run b.yaml --set m=a").code == 0);
  CHECK(verdict() == "**✓ All fine: 3 workpackages done.**");
  shell.sh("echo rate=99 >run/000000/000001_s/work/log");
  CHECK(verdict() == "**! 3 workpackages done, but 1 row CHANGED.**");
  shell.sh("rm run/000000/000002_s/work/log");
  CHECK(verdict() == "**! 3 workpackages done, but 2 rows CHANGED.**");
  shell.sh("rm -r run");
  shell.file("b.yaml", [&] {
    std::string some = text;
    some.replace(some.find("echo rate="), 10, "[ $n = 2 ] || echo rate=");
    some.replace(some.find(" >log"), 5, " >log; touch log");
    return some;
  }());
  CHECK(shell.tally("run b.yaml --set m=a").code == 0);
  CHECK(verdict() == "**! 3 workpackages done, but 1 cell without a value.**");
}

TEST_CASE("a page of two runs has them side by side") {
  const Shell shell;
  shell.file("b.yaml", kWorkflow);
  shell.tally("run b.yaml --set m=a");
  shell.tally("run b.yaml --set m=a --set factor=11");
  const Ran ran = shell.tally("report run -i all -o r.html");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  const std::string html = shell.content("r.html");
  CHECK(has(html,
            "<th scope=\"col\">rate, run 0</th><th scope=\"col\">rate, run 1</th>"
            "<th scope=\"col\">change</th>"));
  CHECK(has(html, "<tr><td>2</td><td>a</td><td>20.0</td><td>22.0</td><td>+10.0 %</td></tr>"));
  CHECK(has(html,
            "<tr class=\"d\"><th scope=\"row\">--set</th><td>m=a</td><td>m=a factor=11</td></tr>"));
  // A value that does not count is none.
  shell.tally("run b.yaml --set n=1");
  CHECK(shell.tally("report run -i 0 -i 2 -o r.html").code == 0);
  CHECK(has(shell.content("r.html"),
            "<tr><td>1</td><td>b</td><td></td><td><b class=\"badge bad\">FAILED"
            "</b></td><td></td></tr>"));
  // The rows of the second run that miss are those of its own.
  CHECK(has(html, "title=\"run 1: row 3 (n=4): rate is 44; expected &lt; 40"));
}
