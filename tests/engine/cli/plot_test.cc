// Charts through the program: `tally plot`, and `chart:` in a workflow's result.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// n = 1, 2, 4 on two machines; n=4 fails on the second.
std::string workflow(const std::string& chart) {
  return "name: b\noutpath: run\n"
         "parameterset:\n"
         "  name: ps\n"
         "  parameter:\n"
         "    - {name: n, type: int, _: \"1,2,4\"}\n"
         "    - {name: m, _: \"a,b\"}\n"
         "patternset: {name: pt, pattern: {name: rate, type: float, unit: G/s, _: "
         "\"rate=$jube_pat_fp\"}}\n"
         "step: {name: s, kind: run, use: ps, do: \"echo rate=$n.5; test $n$m != 4b\"}\n"
         "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
         "result:\n"
         "  use: a\n"
         "  table: {name: t, column: [n, m, {_: rate, title: Rate}]}\n"
         "  chart:\n" +
         chart;
}

bool is_xml(const Shell& shell, const std::string& file) {
  const Ran ran = shell.sh("command -v xmllint >/dev/null || exit 77; xmllint --noout " + file);
  if (ran.code == 77) MESSAGE("skipped: there is no xmllint");
  return ran.code == 0 || ran.code == 77;
}

}  // namespace

TEST_CASE("plot draws a CSV file") {
  const Shell shell;
  shell.file("a.csv", "n,t[s],p\n1,4.5,x\n2,2.5,x\n1,9,<y>\n");
  Ran ran = shell.tally("plot a.csv -x n -y t --series p --title 'a < b' -o c.svg");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(ran.out == "c.svg\n");
  CHECK(is_xml(shell, "c.svg"));
  CHECK(has(shell.content("c.svg"), "a &lt; b</text>"));
  CHECK(has(shell.content("c.svg"), "t [s]</text>"));
  CHECK(has(shell.content("c.svg"), "&lt;y&gt;</text>"));
  const std::string first = shell.content("c.svg");
  ran = shell.tally("plot a.csv --x n --metric t --series p --title 'a < b' -o c.svg");
  CHECK(ran.code == 0);
  CHECK(shell.content("c.svg") == first);
  // Two files are told apart by the column `file`; without --x the first column is taken.
  shell.file("b.csv", "n,t[s],p\n1,5,x\n2,3,x\n");
  shell.file("a.csv", "n,t[s],p\n1,4.5,x\n2,2.5,x\n");
  ran = shell.tally("plot a.csv b.csv --kind bar -x n -y t --series file -o d.svg");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(shell.content("d.svg"), "b.csv: n 2, t 3 s"));
}

TEST_CASE("plot draws several columns of some rows") {
  const Shell shell;
  shell.file("a.csv", "gpu,precision,train,eval\nA,fp32,3,9\nA,fp16,5,12\nB,fp32,4,11\n");
  const std::string base = "plot a.csv --kind bar -x gpu --metric train,eval -o c.svg ";
  Ran ran = shell.tally(base + "--where \"precision == 'fp32'\"");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(shell.content("c.svg"), "eval: gpu B, 11<"));
  CHECK(has(shell.content("c.svg"), ">train, eval</text>"));
  CHECK(!has(shell.content("c.svg"), "gpu A, 12<"));
  CHECK(shell.tally(base).code == 2);  // A has two rows
  ran = shell.tally(base + "--where \"precision == 'bf16'\"");
  CHECK(ran.code == 2);
  CHECK(has(ran.err, "no row meets --where \"precision == 'bf16'\""));
  ran = shell.tally(base + "--where \"precison == 'fp32'\"");
  CHECK(ran.code == 2);
  CHECK(has(ran.err, "precison"));
  CHECK(has(ran.err, "it is Python over the columns: gpu, precision, train, eval"));
}

TEST_CASE("plot writes a PNG, or says what is missing" *
          doctest::test_suite(tally::testing::kOpensALibrary)) {
  const Shell shell;
  shell.file("a.csv", "n,t\n1,4.5\n2,2.5\n");
  const Ran ran = shell.tally("plot a.csv -x n -y t -o c.png");
  if (ran.code != 0) {
    CHECK(ran.err ==
          "tally: error: a PNG needs the library librsvg-2.so.2, which is not installed (Debian: "
          "librsvg2-2); write a .svg instead\n");
    CHECK(!shell.exists("c.png"));
    MESSAGE("skipped: there is no librsvg");
    return;
  }
  const std::string png = shell.content("c.png");
  CHECK(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  CHECK(static_cast<int>(static_cast<unsigned char>(png[18])) * 256 +
            static_cast<unsigned char>(png[19]) ==
        1440);  // twice the width of the drawing
}

TEST_CASE("plot refuses what it cannot draw, and leaves the old picture") {
  const Shell shell;
  shell.file("a.csv", "n,t\n1,4.5\n2,x\n");
  shell.file("c.svg", "old");
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const Ran ran = shell.tally("plot " + arguments);
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, why), ran.err);
    CHECK(shell.content("c.svg") == "old");
  };
  refused("a.csv -x n -y t -o c.svg", "error: row 2: 't' is 'x', not a number\n");
  refused("a.csv -x n -y u -o c.svg", "error: there is no column 'u'; there are: n, t\n");
  refused("a.csv -x n -y t -o c.pdf", "error: -o c.pdf: a chart is written as .svg or .png\n");
  refused("a.csv -x n -y t --kind pie -o c.svg", "pie");
  refused("a.csv -x n -o c.svg", "--y");
  refused("nowhere -x n -y t -o c.svg", "Not a directory: \"nowhere\"");
  refused("a.csv . -x n -y t -o c.svg", "tables in files and runs do not make one chart");
  shell.file("a.csv", "n,t\n1\n");
  refused("a.csv -x n -y t -o c.svg", "a.csv: line 2: it has 1 cells, and the first line has 2\n");
}

TEST_CASE("a workflow's charts are drawn with its tables, from rows that did not fail") {
  const Shell shell;
  shell.file("b.yaml",
             workflow("    - {name: c, x: n, y: Rate, series: m, ideal: linear, log: xy}\n"
                      "    - {name: d, kind: bar, x: n, y: rate, facet: m}\n"));
  Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "note: 2 charts are drawn in run/000000/result: c.svg, d.svg\n"),
                ran.err);
  for (const char* file : {"run/000000/result/c.svg", "run/000000/result/d.svg"}) {
    CHECK(is_xml(shell, file));
    CHECK(has(shell.content(file), "1 row failed and is not drawn.</text>"));
  }
  const std::string drawn = shell.content("run/000000/result/c.svg");
  CHECK(has(drawn, "<title>a: n 4, Rate 4.5</title>"));
  CHECK(!has(drawn, "<title>b: n 4"));
  // The picture has all columns, whatever is printed.
  shell.sh("rm run/000000/result/*.svg");
  ran = shell.tally("result run --select n");
  CHECK(ran.code == 0);
  CHECK(shell.content("run/000000/result/c.svg") == drawn);
  ran = shell.tally("plot run -x n -y rate --series m -o e.svg");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(shell.content("e.svg"), "<title>a: n 4, Rate 4.5</title>"));
  // Called by the name jube there are no charts.
  shell.sh("rm run/000000/result/*.svg; ln -s \"$TALLY\" jube; ./jube result run");
  CHECK(!shell.exists("run/000000/result/c.svg"));
}

TEST_CASE("intervals over repeats are drawn") {
  const Shell shell;
  std::string text = workflow("    {name: c, x: n, y: Rate, series: m, error: range}\n");
  const auto replace = [&](const std::string& what, const std::string& with) {
    const size_t at = text.find(what);
    REQUIRE(at != std::string::npos);
    text.replace(at, what.size(), with);
  };
  replace("use: ps, do", "use: ps, repeat: 3, do");
  replace("rate=$n.5; test $n$m != 4b", "rate=$n.$jube_wp_iteration");
  replace("title: Rate}", "title: Rate, uncertainty: range}");
  shell.file("b.yaml", text);
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(
      has(shell.content("run/000000/result/c.svg"), "<title>a: n 4, Rate 4.1 (4 to 4.2)</title>"));
}

TEST_CASE("a metric over runs") {
  const Shell shell;
  shell.file("b.yaml", workflow("    {name: c, x: n, y: rate, series: m}\n"));
  shell.tally("run b.yaml");
  shell.tally("run b.yaml --set m=a");
  const Ran ran = shell.tally("plot run -i all --metric Rate --series n --facet m -o m.svg");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(shell.content("m.svg"), "<title>4: id 1, Rate 4.5</title>"));
}

TEST_CASE("a metric over runs of many rows: a line for each point of the parameters") {
  const Shell shell;
  shell.file("b.yaml", workflow("    {name: c, x: n, y: rate, series: m}\n"));
  shell.tally("run b.yaml");
  shell.tally("run b.yaml");
  Ran ran = shell.tally("plot run -i all --metric Rate -o m.svg");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(shell.content("m.svg"), "<title>4, a: id 1, Rate 4.5</title>"));
  CHECK(has(shell.content("m.svg"), "<title>2, b: id 0, Rate 2.5</title>"));
  CHECK(has(shell.content("m.svg"), ">n, m:</text>"));
  // One parameter that differs is the series itself.
  ran = shell.tally("plot run -i all --metric Rate --where \"m == 'a'\" -o one.svg");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(shell.content("one.svg"), "<title>4: id 1, Rate 4.5</title>"));
  CHECK(has(shell.content("one.svg"), ">n:</text>"));
}

TEST_CASE("a chart in XML") {
  const Shell shell;
  shell.file("b.xml",
             "<jube><benchmark name=\"b\" outpath=\"run\">\n"
             "<parameterset name=\"ps\"><parameter name=\"n\" type=\"int\">1,2</parameter>"
             "</parameterset>\n"
             "<step name=\"s\"><use>ps</use><do>true</do></step>\n"
             "<analyser name=\"a\"><analyse step=\"s\"/></analyser>\n"
             "<result><use>a</use><table name=\"t\"><column>n</column></table>\n"
             "<chart name=\"c\" x=\"n\" y=\"n\" kind=\"scatter\"/></result>\n"
             "</benchmark></jube>\n");
  const Ran ran = shell.tally("run b.xml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(shell.exists("run/000000/result/c.svg"));
}

TEST_CASE("mistakes in a chart are shown in their place") {
  const Shell shell;
  const auto refused = [&](const std::string& chart, const std::string& why) {
    shell.file("b.yaml", workflow("    " + chart + "\n"));
    const Ran ran = shell.tally("validate b.yaml");
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, why), ran.err);
  };
  refused("{name: c, x: n, y: rat}",
          "b.yaml:15:24: error: unknown column 'rat' in chart 'c' of table 't'\n"
          "        {name: c, x: n, y: rat}\n"
          "                           ^~~\n"
          "hint: did you mean 'rate'?\n");
  refused("{name: c, x: n, y: rate, kind: lines}", "b.yaml:15:36: error: ");
  refused("{name: c, x: n, y: rate, table: u}", "unknown table 'u' in chart 'c'");
  refused("{name: c, x: n}", "'y'");
  refused("{name: c, x: n, y: rate, colour: red}", "unknown key 'colour'");
  refused("{name: c, kind: bar, x: n, y: rate, log: y}",
          "b.yaml:15:46: error: a bar chart has no logarithmic axis\n");
  refused("{name: c, kind: bar, x: n, y: rate, ideal: linear}",
          "error: a bar chart has no ideal line\n");
  refused("{name: c, x: n, y: rate, error: ci}",
          "b.yaml:15:37: error: chart 'c' draws an interval that column 'rate' does not have\n");
  const auto with_published = [](const std::string& published) {
    return "{name: c, x: n, y: rate, published: " + published + "}";
  };
  refused(with_published("{name: V100, _: '1: 2, 8 = 6.4'}"),
          "error: published 'V100': '8 = 6.4' is not a point, which is written 'x: number'\n");
  refused(with_published("{name: V100, facet: fp16, _: '1: 2'}"),
          "error: published 'V100' names a panel, and the chart has one panel\n");
  refused(with_published("{name: V100}"), "error: ");
  refused(with_published("{_: '1: 2'}"), "'name'");
  refused("[{name: c, x: n, y: rate}, {name: c, x: n, y: rate}]",
          "error: chart 'c' is defined twice\n");
}

TEST_CASE("published numbers join a run's chart, as the tags say") {
  const Shell shell;
  shell.file("b.yaml", workflow("    name: c\n    x: n\n    y: rate\n    kind: scatter\n"
                                "    published:\n"
                                "      - {name: V100, _: '1: 2.5, 16: 9'}\n"
                                "      - {name: A100, tag: other, _: '1: 3'}\n"));
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(ran.code == 1, ran.err);  // as n=4 fails on the second machine
  const std::string chart = shell.content("run/000000/result/c.svg");
  CHECK(has(chart, "<title>V100: n 16, Rate 9</title>"));
  CHECK(!has(chart, "A100"));
  // A chart of a finished run keeps them, and so does the report.
  shell.tally("report run -o r.html");
  CHECK(has(shell.content("r.html"), "<title>V100: n 16, Rate 9</title>"));
}

TEST_CASE("a chart that cannot be drawn fails the result, not the tables") {
  const Shell shell;
  shell.file("b.yaml", workflow("    {name: c, x: n, y: rate}\n"));
  const Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err,
                    "b.yaml:15:12: error: chart 'c': several rows have n = 1.0; name the column in "
                    "which they differ as 'series' or 'facet', or use kind: scatter\n"),
                ran.err);
  CHECK(has(ran.out, "1,a,1.5"));
  CHECK(!shell.exists("run/000000/result/c.svg"));
}

TEST_CASE("plot reads the columns repeats and status of a table's file") {
  const Shell shell;
  shell.file("t.dat",
             "n,rate[s],rate_ci_low,rate_ci_high,repeats,status\n"
             "1,11.0,10.0,12.0,3 of 3,done\n"
             "2,21.5,21.0,22.0,6 of 6,done\n"
             "3,30,29,31,0 of 3,FAILED\n"
             "4,40,39,41,2 of 6,PENDING\n"
             "5,50,49,51,2 of 6,RUNNING\n"
             "6,60,59,61,6 of 6,expected\n");
  const Ran ran = shell.tally("plot t.dat -x n -y rate --error ci -o c.svg");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  const std::string svg = shell.content("c.svg");
  CHECK(has(
      svg,
      "1 point has fewer than six repeats: the interval is the smallest to the largest value."));
  CHECK(has(svg, "n 2, rate 21.5"));
  CHECK(has(svg, "1 row failed and is not drawn."));
  CHECK(has(svg, "2 rows have not ended and are not drawn."));
  CHECK(!has(svg, "n 4, rate"));
  CHECK(!has(svg, "n 6, rate"));
}
