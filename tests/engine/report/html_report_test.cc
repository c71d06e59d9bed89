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
  CHECK(has(html, "✗ 1 of 3 references missed:"));
  CHECK(has(html, "<li>row 2 (n=4): time is 587.1; expected &lt;= 560</li>"));
  CHECK(has(html, "<tr class=\"f\"><td>1</td><td>1000</td></tr>"));
  CHECK(has(html, "<a href=\"./run%201/result/a%3Ab.dat\">run 1/result/a:b.dat</a>"));
  CHECK(has(html, "<dt>Tags</dt><dd>a, b</dd>"));
  CHECK(has(html, "<a href=\"./r/1\">workpackage 1 (s) failed</a>"));
  CHECK(has(html, "<pre>Error (exit 3)\nlast line</pre>"));
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
  CHECK(has(html, "✗ 1000 workpackages failed"));
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
