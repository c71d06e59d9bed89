// Figures from tables: what is drawn, what is not, and what is refused.
#include <doctest/doctest.h>

#include <limits>

#include "engine/chart/from_table.h"
#include "engine/workflow/chart_words.h"

using namespace tally;

namespace {

ResultTable table_of(const std::string& csv) {
  ResultTable table;
  REQUIRE(read_csv(csv, &table));
  return table;
}

Chart chart(const std::string& kind, const std::string& x, const std::string& y,
            const std::string& series = {}) {
  Chart c;
  c.name.value = "c";
  set_chart_kind(kind, &c);
  c.x.value = x;
  c.y.value = y;
  c.series.value = series;
  return c;
}

Figure figure(const Chart& c, const ResultTable& table) {
  Figure out;
  const Status made = figure_of(c, table, &out);
  CHECK_MESSAGE(made, made.message());
  return out;
}

std::string error_of(const Chart& c, const ResultTable& table) {
  Figure out;
  const Status made = figure_of(c, table, &out);
  CHECK(!made);
  return made.message();
}

}  // namespace

TEST_CASE("series in the order of the rows, their points in the order of x") {
  const ResultTable table = table_of("p,n,t[s]\nfp16,4,1\nfp16,1,4\nfp32,1,8\nfp32,2,5\n");
  const Figure f = figure(chart("line", "n", "t", "p"), table);
  CHECK(f.series == std::vector<std::string>{"fp16", "fp32"});
  CHECK(f.series_title == "p");
  CHECK(f.y.unit == "s");
  CHECK(f.y.from_zero);
  REQUIRE(f.panels.size() == 1);
  REQUIRE(f.panels[0].series.size() == 2);
  CHECK(f.panels[0].series[0].points[0].x == 1);
  CHECK(f.panels[0].series[0].points[1].y == 1);
}

TEST_CASE("rows that failed or have no value are counted, not drawn") {
  const ResultTable table =
      table_of("n,t,status\n1,1,done\n2,5,FAILED\n3,,done\n4,nan,done\n5,5,done\n");
  const Figure f = figure(chart("line", "n", "t"), table);
  CHECK(f.panels[0].series[0].points.size() == 2);
  CHECK(f.notes == std::vector<std::string>{"1 row failed and is not drawn.",
                                            "1 row without a value is not drawn.",
                                            "1 row with an infinite value or 'nan' is not drawn."});
}

TEST_CASE("no rows make an empty panel") {
  const Figure f = figure(chart("bar", "n", "t"), table_of("n,t\n"));
  REQUIRE(f.panels.size() == 1);
  CHECK(f.panels[0].series.empty());
}

TEST_CASE("intervals from the columns of statistics") {
  const ResultTable table =
      table_of("n,t,t_ci_low,t_ci_high,t_min,t_max,t_mad\n1,5,4,7,3,8,0.5\n2,6,,,5,9,1\n");
  Chart c = chart("line", "n", "t");
  set_chart_error("ci", &c);
  Figure f = figure(c, table);
  CHECK(f.interval == "95 % confidence interval");
  CHECK(f.panels[0].series[0].points[0].low == 4.0);
  CHECK(f.panels[0].series[0].points[0].high == 7.0);
  CHECK(!f.panels[0].series[0].points[1].low);
  CHECK(f.notes == std::vector<std::string>{"1 point has no interval."});
  set_chart_error("range", &c);
  f = figure(c, table);
  CHECK(f.panels[0].series[0].points[1].high == 9.0);
  set_chart_error("mad", &c);
  f = figure(c, table);
  CHECK(f.panels[0].series[0].points[0].low == 4.5);
  CHECK(f.panels[0].series[0].points[0].high == 5.5);
  CHECK(error_of(c, table_of("n,t\n1,5\n")) ==
        "no row has the interval; it comes from the column's `uncertainty`, or from columns named "
        "after it: t_mad");
}

TEST_CASE("the interval that the table has computed; that of few repeats is called what it is") {
  ResultTable table = table_of("n,t\n1,5\n2,6\n");
  table.columns[1].uncertainty = Uncertainty::ci;
  for (Record& row : table.rows) {
    Summary& summary = row.summaries["t"];
    summary.interval = statistics::Interval{4, 7};
    summary.too_few = row.values.at("n").as_double() == 2;
  }
  Chart c = chart("line", "n", "t");
  set_chart_error("ci", &c);
  const Figure f = figure(c, table);
  CHECK(f.panels[0].series[0].points[0].low == 4.0);
  CHECK(f.panels[0].series[0].points[1].high == 7.0);
  CHECK(f.notes == std::vector<std::string>{"1 point has fewer than six repeats: the interval is "
                                            "the smallest to the largest value."});
}

TEST_CASE("an interval that reaches 0 is not drawn on a logarithmic axis") {
  Chart c = chart("line", "n", "t");
  set_chart_error("mad", &c);
  set_chart_log("y", &c);
  const Figure f = figure(c, table_of("n,t,t_mad\n1,5,6\n2,6,1\n"));
  CHECK(!f.panels[0].series[0].points[0].low);
  CHECK(f.panels[0].series[0].points[1].low == 5.0);
  REQUIRE(f.notes.size() == 1);
}

TEST_CASE("texts along x are categories; facets are panels") {
  Chart c = chart("line", "p", "t");
  c.facet.value = "m";
  const Figure f = figure(c, table_of("p,t,m\na,1,x\nb,2,x\na,3,y\n"));
  CHECK(f.x.categories == std::vector<std::string>{"a", "b"});
  REQUIRE(f.panels.size() == 2);
  CHECK(f.panels[1].title == "m y");
}

TEST_CASE("what cannot be drawn is refused in one sentence") {
  const ResultTable table = table_of("n,t,p\n1,1,a\n1,2,b\n0,x,c\n");
  CHECK(error_of(chart("line", "m", "t"), table) == "there is no column 'm'; there are: n, t, p");
  CHECK(error_of(chart("line", "n", "t"), table) == "row 3: 't' is 'x', not a number");
  const ResultTable twice = table_of("n,t,p\n1,1,a\n1,2,b\n");
  CHECK(error_of(chart("line", "n", "t"), twice) ==
        "several rows have n = 1.0; name the column in which they differ as 'series' or 'facet', "
        "or use kind: scatter");
  CHECK(figure(chart("scatter", "n", "t"), twice).panels[0].series[0].points.size() == 2);
  CHECK(figure(chart("line", "n", "t", "p"), twice).series.size() == 2);
  Chart c = chart("line", "n", "t");
  set_chart_log("x", &c);
  CHECK(error_of(c, table_of("n,t\n0,1\n")) ==
        "row 1: 'n' is 0.0; a logarithmic axis has positive numbers only");
  CHECK(error_of(c, table_of("n,t\na,1\n")) ==
        "a logarithmic axis needs numbers in x, 'n': the column has texts");
  c = chart("bar", "n", "t");
  set_chart_ideal("linear", &c);
  CHECK(error_of(c, twice) == "an ideal line needs numbers in x, 'n': a bar chart has names there");
  std::string many = "n,t\n";
  for (int i = 0; i < 401; ++i) many += std::to_string(i) + ",1\n";
  CHECK(error_of(chart("bar", "n", "t"), table_of(many)) ==
        "401 bars beside each other cannot be read, at most 400 can; choose another column, or "
        "fewer rows with the table's 'filter' or `plot --where`");
  CHECK(error_of(chart("line", "t", "n", "n"), table_of(many)).find("at most 24 series") !=
        std::string::npos);
}

TEST_CASE("several columns are several series, and a row needs one of them") {
  const ResultTable table = table_of("n,t[s],\"ref, old\",p\n1,8,7,x\n2,5,,x\n4,,,x\n8,nan,2,x\n");
  Figure f = figure(chart("line", "n", "t, \"none\""), table_of("n,t,\"\"\"none\"\"\"\n1,2,3\n"));
  CHECK(f.series == std::vector<std::string>{"t", "\"none\""});
  // A name with a comma is one column.
  f = figure(chart("line", "n", "ref, old"), table);
  CHECK(f.series.empty());
  f = figure(chart("line", "n", "t,p"), table_of("n,t,p\n1,8,9\n2,5,\n"));
  CHECK(f.series == std::vector<std::string>{"t", "p"});
  REQUIRE(f.panels[0].series.size() == 2);
  CHECK(f.panels[0].series[0].points.size() == 2);
  CHECK(f.panels[0].series[1].points.size() == 1);
  CHECK(f.notes.empty());
  f = figure(chart("line", "n", "t,q", "p"), table_of("n,t,q,p\n1,8,7,x\n2,nan,3,x\n3,,,x\n"));
  CHECK(f.series == std::vector<std::string>{"x, t", "x, q"});
  CHECK(f.panels[0].series[0].points.size() == 1);
  CHECK(f.panels[0].series[1].points.size() == 2);
  CHECK(f.notes == std::vector<std::string>{"1 row without a value is not drawn."});
  CHECK(error_of(chart("line", "n", "t,q"), table) ==
        "there is no column 'q'; there are: n, t, ref, old, p");
  CHECK(error_of(chart("line", "n", "t,p"), table) == "row 1: 'p' is 'x', not a number");
}

TEST_CASE("published points: numbers, names with colons, and what is refused") {
  std::vector<PublishedPoint> points;
  REQUIRE(read_published_points("1: 60.5, 2 :29.9,a:b: 3", &points));
  REQUIRE(points.size() == 3);
  CHECK(points[1].x == "2");
  CHECK(points[1].y == 29.9);
  CHECK(points[2].x == "a:b");
  for (const char* wrong : {"", "1", "1: fast", "1:", ": 3", "1: 2,", "1: nan", "1: 2, 1: 3"})
    CHECK_MESSAGE(!read_published_points(wrong, &points), wrong);
  CHECK(read_published_points("1: 2, 8 = 6.4", &points).message() ==
        "'8 = 6.4' is not a point, which is written 'x: number'");
}

namespace {

PublishedSeries published(const std::string& name, const std::string& points,
                          const std::string& facet = {}) {
  PublishedSeries series;
  series.name.value = name;
  series.facet = facet;
  REQUIRE(read_published_points(points, &series.points));
  return series;
}

}  // namespace

TEST_CASE("a published series is drawn beside the rows, and sorted") {
  Chart c = chart("line", "n", "t");
  c.published = {published("V100", "16: 6, 8: 9"), published("A100", "2: 1")};
  const Figure f = figure(c, table_of("n,t\n1,20\n2,11\n"));
  CHECK(f.series == std::vector<std::string>{"t", "V100", "A100"});
  REQUIRE(f.panels[0].series.size() == 3);
  CHECK(!f.panels[0].series[0].published);
  CHECK(f.panels[0].series[1].published);
  CHECK(f.panels[0].series[1].points[0].x == 8);
  CHECK(f.panels[0].series[1].points[1].y == 6);
  c.published = {published("V100", "8: 9, many: 3")};
  CHECK(error_of(c, table_of("n,t\n1,20\n")) ==
        "published 'V100': x is 'many', and 'n' has numbers");
  c.published = {published("V100", "8: 0")};
  c.log_y = true;
  CHECK(error_of(c, table_of("n,t\n1,20\n")).find("not positive") != std::string::npos);
}

TEST_CASE("published bars stand at their names; a facet chooses the panel") {
  Chart c = chart("bar", "card", "t");
  c.published = {published("paper", "H100: 3, V100: 1")};
  const Figure bars = figure(c, table_of("card,t\nH100,2\n"));
  CHECK(bars.x.categories == std::vector<std::string>{"H100", "V100"});
  CHECK(bars.panels[0].series[1].points[1].x == 1);

  Chart lines = chart("line", "n", "t", "batch");
  lines.facet.value = "mode";
  lines.published = {published("V100", "1: 9", "gather"), published("all", "1: 8"),
                     published("no panel", "1: 7", "other")};
  const Figure f = figure(lines, table_of("n,t,batch,mode\n1,2,32,reduce\n1,3,32,gather\n"));
  CHECK(f.series == std::vector<std::string>{"32", "V100", "all"});
  REQUIRE(f.panels.size() == 2);
  CHECK(f.panels[0].series.size() == 2);
  CHECK(f.panels[1].series.size() == 3);
  CHECK(f.panels[1].series[1].points[0].y == 9);
}

TEST_CASE("published numbers alone: the rows failed, and the chart shows the others'") {
  Chart c = chart("line", "n", "t", "p");
  c.published = {published("V100", "1: 9")};
  const Figure f = figure(c, table_of("n,t,p,status\n1,2,a,FAILED\n"));
  CHECK(f.series == std::vector<std::string>{"V100"});
  CHECK(f.notes.size() == 1);
}
