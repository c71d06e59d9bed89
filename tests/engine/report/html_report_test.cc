// The report in HTML: what it shows, what it escapes, and that it stays small. A real browser opens
// it in tests/acceptance/report_browser_test.py.
#include "engine/report/html_report.h"

#include <doctest/doctest.h>

using namespace tally;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ReportTable table(size_t rows) {
  ReportTable t;
  t.name = "scaling";
  t.grid.header = {"n", "tps[tokens/s]"};
  t.numeric = {true, true};
  for (size_t i = 0; i < rows; ++i) {
    t.grid.rows.push_back({std::to_string(i), std::to_string(i * 1000)});
    t.failed.push_back(i == 1);
  }
  return t;
}

const char* const kHostile = "<script>alert(1)</script>\"' onload=\"x\x01\xff";
const char* const kHarmless = "&lt;script&gt;alert(1)&lt;/script&gt;&quot;' onload=&quot;x��";

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("the report shows tables, verdicts and failures") {
  Report report;
  report.title = "Scaling";
  ReportTable t = table(3);
  t.references_passed = 2;
  report.tables.push_back(t);
  CHECK(has(html_report(report), "✓ 2 references held."));
  report.tables[0].missed = {"row 2 (n=4): time is 587.1; expected <= 560"};
  report.tables[0].link = "run 1/result/a:b.dat";
  report.tables[0].notes = {"row 2 FAILED: workpackage 1"};
  ReportRun run;
  run.title = "scaling, run 0";
  run.link = "run 1";
  run.facts = {{"Tags", "a, b"}};
  run.failures.push_back({"workpackage 1 (s) failed", "n=1", "Error (exit 3)\nlast line", "r/1"});
  report.runs.push_back(run);
  const std::string html = html_report(report);
  CHECK(has(html, "<p><b>✗</b> 1 of 3 references missed, 1 workpackage failed.</p>"));
  // The list, which the verdict has, too, is folded.
  CHECK(has(html,
            "<details><summary><span class=\"bad\">✗ 1 of 3 references missed</span></summary>"));
  CHECK(has(html, "<li>row 2 (n=4): time is 587.1; expected &lt;= 560</li>"));
  CHECK(has(html, "<tr class=\"f\"><td>1</td><td>1000</td></tr>"));
  CHECK(has(html, "<a href=\"./run%201/result/a%3Ab.dat\">run 1/result/a:b.dat</a>"));
  CHECK(has(html, "<dt>Tags</dt><dd>a, b</dd>"));
  CHECK(has(html, "<a href=\"./r/1\">workpackage 1 (s) failed</a>"));
  CHECK(has(html, "<pre>Error (exit 3)\nlast line</pre>"));
}

TEST_CASE("the verdict is one sentence with a sign") {
  Report report;
  report.runs.emplace_back();
  report.runs[0].workpackages = 12;
  report.tables.push_back(table(3));
  const auto said = [&] {
    const ReportVerdict verdict = verdict_of(report);
    return std::string(verdict.sign()) + " " + verdict.sentence;
  };
  CHECK(said() == "✓ All fine: 12 workpackages done.");
  report.tables[0].references_passed = 3;
  CHECK(said() == "✓ All fine: 12 workpackages done, 3 references held.");
  report.tables[0].doubtful["BUSY"] = 1;
  report.tables.push_back(table(3));
  report.tables[1].doubtful["BUSY"] = 2;  // of the same workpackages
  CHECK(said() == "! 12 workpackages done, 3 references held, but 2 rows BUSY.");
  report.tables[0].doubtful = {{"CHANGED", 1}, {"SHORT", 3}};
  report.tables[1].doubtful.clear();
  report.tables[1].empty_cells = 2;
  report.charts.push_back({"c", "", "it has no points"});
  CHECK(
      said() ==
      "! 12 workpackages done, 3 references held, but 1 row CHANGED, 3 rows SHORT, 2 cells without "
      "a value, 1 chart not drawn.");
  report.charts.clear();
  report.tables.pop_back();
  report.tables.push_back(table(0));
  CHECK(has(said(), "but 1 row CHANGED, 3 rows SHORT, 1 table without rows."));
  report.tables.pop_back();
  report.tables[0].doubtful.clear();
  report.tables[0].warned = {"row 1: ..."};
  report.runs[0].unfinished = 12;
  CHECK(said() ==
        "! 3 references held, but 12 workpackages have not ended, 1 reference with `action: warn` "
        "missed.");
  report.runs[0].unfinished = 0;
  report.tables[0].warned.clear();
  report.tables[0].missed = {"row 2: ..."};
  report.runs[0].failures.push_back(
      {"6 workpackages (s) failed", "", "exit code 1", "r", 6, "exit code 1"});
  CHECK(said() == "✗ 1 of 4 references missed, 6 of 12 workpackages failed.");
  const std::string html = html_report(report);
  const size_t verdict = html.find("<div class=\"verdict bad\">");
  CHECK(verdict < html.find("<h2"));
  CHECK(has(html, "<li><a href=\"#s0\">scaling</a>: row 2: ...</li>"));
  CHECK(has(html, "<li><a href=\"#failed\">6 workpackages (s) failed</a>: exit code 1</li>"));
}

TEST_CASE("what was run is folded at the end, charts stand above their table") {
  Report report;
  report.tables = {table(2), table(3)};
  report.charts.push_back({"c", "<svg>wide</svg>", "", "<svg>narrow</svg>", 1});
  ReportRun run;
  run.title = "scaling, run 0";
  run.facts = {{"Host", "n1"}};
  report.runs.push_back(run);
  const std::string html = html_report(report);
  const size_t chart =
      html.find("<div class=\"chart both\">\n<svg>wide</svg><svg>narrow</svg></div>");
  CHECK(html.find("id=\"t0\"") < chart);
  CHECK(chart < html.find("id=\"t1\""));
  const size_t folded = html.find("<details id=\"run\"><summary><h2>What was run</h2></summary>");
  CHECK(html.find("id=\"t1\"") < folded);
  CHECK(folded < html.find("<dt>Host</dt><dd>n1</dd>"));
  CHECK(!has(html, "is not drawn"));
  report.charts[0].notes = {"1 row is not drawn.", "2 rows are busy."};
  CHECK(has(html_report(report), "<li>1 row is not drawn.</li>"));
  report.charts.push_back({"d", "<svg>d</svg>", "", "", 1, {"1 row is not drawn."}});
  CHECK(has(html_report(report), "<li>2 of 2 charts: 1 row is not drawn.</li>"));
  CHECK(has(html_report(report), "<li>1 of 2 charts: 2 rows are busy.</li>"));
  report.charts.pop_back();
  // A list of contents from three tables on.
  CHECK(!has(html, "<nav"));
  report.tables.push_back(table(1));
  CHECK(has(html_report(report), "<nav aria-label=\"contents\">"));
  CHECK(has(html_report(report), "<li><a href=\"#s2\">scaling</a></li>"));
}

TEST_CASE("several runs side by side: what was run, and their values") {
  Report report;
  for (const char* host : {"n1", "n2"}) {
    ReportRun run;
    run.title = std::string("run on ") + host;
    run.link = host;
    run.facts = {{"Host", host}, {"CPU", "AMD"}};
    report.runs.push_back(run);
  }
  report.tables.push_back(table(2));
  report.tables[0].beside.header = {"n", "tps, run 0", "tps, run 1", "change"};
  report.tables[0].beside.rows = {{"1", "10", "11", "+10.0 %"}};
  report.tables[0].beside_numeric = {true, true, true, true};
  const std::string html = html_report(report);
  CHECK(has(html, "<tr class=\"d\"><th scope=\"row\">Host</th><td>n1</td><td>n2</td></tr>"));
  CHECK(has(html, "<tr><th scope=\"row\">CPU</th><td>AMD</td><td>AMD</td></tr>"));
  CHECK(has(html, "<th scope=\"col\"><a href=\"./n2\">run on n2</a></th>"));
  CHECK(has(html, "<tr><td>1</td><td>10</td><td>11</td><td>+10.0 %</td></tr>"));
}

TEST_CASE("cells that miss a reference are marked, marks are badges") {
  Report report;
  ReportTable t = table(3);
  t.grid.header.emplace_back("machine");
  for (auto& row : t.grid.rows) row.emplace_back("BUSY, THROTTLED");
  t.grid.rows[2][2] = "PCI: größer <b>";
  t.marks = {false, false, true};
  t.misses = {
      {0, 1, "expected > \"5\"", false}, {2, 1, "expected > 7", true}, {2, 9, "no column", false}};
  report.tables.push_back(t);
  const std::string html = html_report(report);
  CHECK(has(
      html,
      "<tr class=\"m\"><td>0</td><td class=\"x\" title=\"expected &gt; &quot;5&quot;\">0</td>"
      "<td><b class=\"badge doubt\">BUSY</b>, <b class=\"badge doubt\">THROTTLED</b></td></tr>"));
  CHECK(has(html,
            "<tr class=\"m\"><td class=\"x\" title=\"no column\">2</td><td class=\"w\" "
            "title=\"expected &gt; 7\">2000</td><td>PCI: größer &lt;b&gt;</td></tr>"));
}

TEST_CASE("equal failures are one, with their members folded") {
  Report report;
  ReportRun run;
  run.failures.push_back({"2 workpackages (s) failed",
                          "n=0",
                          "exit code 1",
                          "r/1",
                          2,
                          "",
                          {{"workpackage 1: n=0 m=a", "r/1"}, {"workpackage 2: n=0 m=b", "r/2"}}});
  report.runs.push_back(run);
  const std::string html = html_report(report);
  CHECK(has(html, "<summary>all 2</summary>"));
  CHECK(has(html, "<li><a href=\"./r/2\">workpackage 2: n=0 m=b</a></li>"));
  CHECK(count(html, "<pre>") == 1);
}

TEST_CASE("hostile values are texts wherever they stand") {
  Report report;
  report.title = report.made = kHostile;
  ReportTable t = table(1);
  t.name = t.grid.header[0] = t.grid.rows[0][0] = kHostile;
  t.notes = t.missed = {kHostile};
  t.link = kHostile;
  report.tables.push_back(t);
  ReportRun run;
  run.title = run.link = kHostile;
  run.facts = {{kHostile, kHostile}};
  run.failures.push_back({kHostile, kHostile, kHostile, kHostile});
  report.runs.push_back(run);
  report.charts.push_back({kHostile, "", kHostile});
  const std::string html = html_report(report);
  CHECK(!has(html, "<script>alert"));
  CHECK(!has(html, "\" onload"));
  CHECK(count(html, kHarmless) >= 15);
  CHECK(count(html, "<script>") == 1);
}

TEST_CASE("10,000 rows: the first are shown, and the page says so") {
  Report report;
  report.tables.push_back(table(10000));
  report.tables[0].link = "result/t.dat";
  const std::string html = html_report(report);
  CHECK(html.size() < 200000);
  CHECK(html.size() > 150000);
  CHECK(has(html, "of 10000 rows are shown; all are in <a href=\"./result/t.dat\">"));
  // Two tables share the room.
  report.tables.push_back(table(5));
  const std::string both = html_report(report);
  CHECK(both.size() < 200000);
  CHECK(has(both, "<td>4</td><td>4000</td>"));
}

TEST_CASE("many failures and large charts do not make the page large") {
  Report report;
  ReportRun run;
  for (int i = 0; i < 1000; ++i)
    run.failures.push_back({"workpackage", "", std::string(5000, 'x'), "r"});
  report.runs.push_back(run);
  report.tables.push_back(table(10000));
  for (int i = 0; i < 10; ++i) report.charts.push_back({"c", std::string(30000, ' '), ""});
  const std::string html = html_report(report);
  CHECK(html.size() < 200000);
  CHECK(has(html, "<b>✗</b> 1000 workpackages failed."));
  CHECK(has(html, "Chart c is left out: it is too large for this page."));
  CHECK(has(html, "more.</p>"));
}

TEST_CASE("no rows, and no tables") {
  Report report;
  CHECK(has(html_report(report), "The input defines no table."));
  report.tables.push_back(table(0));
  CHECK(has(html_report(report), "The table has no rows."));
}

TEST_CASE("only long texts are broken into lines") {
  Report report;
  ReportTable t;
  t.name = "t";
  t.grid.header = {"n", "machine", "why", "lines"};
  t.numeric = {true, false, false, false};
  const std::string forty = "0123456789012345678901234567890123456789";
  std::string umlauts;
  for (int i = 0; i < 40; ++i) umlauts += "\xc3\xa4";
  t.grid.rows = {{"1", umlauts, "short", forty + "\n" + forty}, {"2", forty, forty + "x", ""}};
  t.failed = {false, false};
  report.tables.push_back(t);
  CHECK(has(html_report(report),
            "<style>#t0 :is(th,td):nth-child(1){text-align:right}#t0 td:nth-child(3){white-space:"
            "pre-wrap;overflow-wrap:anywhere;min-width:20rem}</style>"));
}
