// The drawings, held against those that people have looked at (tests/golden/charts). After a wanted
// change run with TALLY_WRITE_GOLDEN=1, and look at every picture that changed.
#include "engine/chart/svg.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "engine/chart/from_table.h"
#include "engine/chart/layout.h"
#include "engine/chart/markup.h"
#include "engine/workflow/chart_words.h"

using namespace tally;

namespace {

ResultTable table_of(const std::string& csv) {
  ResultTable table;
  REQUIRE(read_csv(csv, &table));
  return table;
}

Figure figure(const Chart& chart, const std::string& csv) {
  Figure out;
  const Status made = figure_of(chart, table_of(csv), &out);
  CHECK_MESSAGE(made, made.message());
  return out;
}

void golden(const std::string& name, const Figure& drawn) {
  const std::string path = TALLY_SOURCE_DIR "/tests/golden/charts/" + name + ".svg";
  const std::string now = svg(drawn);
  if (std::getenv("TALLY_WRITE_GOLDEN") != nullptr) std::ofstream(path) << now;
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  CHECK_MESSAGE(now == text.str(), name << ".svg is not as it was");
  CHECK(now == svg(drawn));
}

// How often `part` is in `text`.
size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

const char* const kScaling =
    "precision,gpus,tps[tokens/s],tps_ci_low,tps_ci_high\n"
    "fp32,1,9100,8800,9350\nfp32,2,17800,17100,18300\nfp32,4,34500,33200,36000\n"
    "fp32,8,66000,63000,68500\n"
    "bf16,1,34063,33900,34200\nbf16,2,67100,66500,67900\nbf16,4,131000,128000,133000\n"
    "bf16,8,249000,243000,255000\n"
    "fp8,1,48000,47000,48600\nfp8,2,94100,92800,95000\nfp8,4,181000,177000,184000\n"
    "fp8,8,330000,318000,341000\n";

Chart scaling() {
  Chart c;
  c.name.value = "scaling";
  c.title = "Strong scaling of GPT-2";
  c.x.value = "gpus";
  c.y.value = "tps";
  c.series.value = "precision";
  set_chart_error("ci", &c);
  set_chart_ideal("linear", &c);
  return c;
}

}  // namespace

TEST_CASE("golden: lines with intervals and ideal lines, linear and logarithmic") {
  Chart c = scaling();
  golden("line", figure(c, kScaling));
  set_chart_log("xy", &c);
  golden("line_log", figure(c, kScaling));
}

TEST_CASE("golden: published numbers beside the rows, up to which the ideal line goes") {
  Chart c;
  c.name.value = "published";
  c.title = "Time of the training";
  c.x.value = "gpus";
  c.y.value = "time";
  c.series.value = "batch";
  set_chart_ideal("inverse", &c);
  PublishedSeries large{{"V100, 256", {}}, {}, {}};
  REQUIRE(read_published_points("1: 60.5, 2: 29.9, 4: 16.55, 8: 9.45, 16: 5.83", &large.points));
  PublishedSeries half{{"V100, 128", {}}, {}, {}};
  REQUIRE(read_published_points("8: 10.33, 16: 6.51", &half.points));
  c.published = {large, half};
  golden("published", figure(c, "gpus,batch,time[s]\n1,256,42\n2,256,21.5\n2,128,24\n"));
}

TEST_CASE("golden: bars with intervals") {
  Chart c = scaling();
  set_chart_kind("bar", &c);
  set_chart_ideal("none", &c);
  golden("bar", figure(c, kScaling));
}

TEST_CASE("golden: bars at long names, below and above 0") {
  Chart c;
  c.name.value = "change";
  c.x.value = "case";
  c.y.value = "change";
  set_chart_kind("bar", &c);
  golden("bar_names",
         figure(c,
                "case,change[%]\nflash attention off,-31.5\nfused layer norm off,-4.2\n"
                "cuda graphs on,6.1\nactivation recomputation of all layers,-22\n"
                "sequence parallel,1.3\ntensor parallel 8,3.5\nbase,0\n"));
}

TEST_CASE("golden: scattered points of eight series") {
  std::string csv = "s,x,y\n";
  for (int s = 0; s < 8; ++s)
    for (int i = 0; i < 6; ++i)
      csv += "series " + std::to_string(s) + "," + std::to_string(i * 7 % 11 + s) + "," +
             std::to_string((i * 5 + s * 3) % 13 + 2) + "e6\n";
  Chart c;
  c.name.value = "scatter";
  c.x.value = "x";
  c.y.value = "y";
  c.series.value = "s";
  set_chart_kind("scatter", &c);
  golden("scatter", figure(c, csv));
}

TEST_CASE("golden: curves with bands, in panels") {
  std::string csv = "model,lr,step,loss,loss_min,loss_max\n";
  for (const char* model : {"small", "medium", "large"})
    for (int lr = 1; lr <= 2; ++lr)
      for (int i = 0; i <= 40; ++i) {
        const double loss = 3.0 + 7.0 / (1 + 0.15 * lr * i);
        csv += std::string(model) + "," + std::to_string(lr) + "e-3," + std::to_string(i * 25) +
               "," + std::to_string(loss) + "," + std::to_string(loss - 0.3) + "," +
               std::to_string(loss + 0.4) + "\n";
      }
  Chart c;
  c.name.value = "loss";
  c.title = "Training loss";
  c.x.value = "step";
  c.y.value = "loss";
  c.series.value = "lr";
  c.facet.value = "model";
  set_chart_kind("curve", &c);
  set_chart_error("range", &c);
  golden("curve_facets", figure(c, csv));
}

TEST_CASE("golden: no values, and hostile names") {
  Chart c;
  c.name.value = "x";
  c.title =
      "<script>alert('1')</script> & \"quotes\" \x01 and a title that is far too long for the "
      "width of the chart and goes on and on";
  c.x.value = "n";
  c.y.value = "t";
  c.series.value = "s";
  golden("empty", figure(c, "n,t,s\n"));
  golden("hostile", figure(c, "n,t,s\n1,2,<b>\"\n2,3,<b>\"\n1,4,a&b\x1b[0m\n"));
}

TEST_CASE("a drawing of 10,000 points stays small") {
  std::string csv = "n,t\n";
  for (int i = 0; i < 10000; ++i)
    csv += std::to_string(i) + "," + std::to_string(i * 7919 % 1000) + "\n";
  Chart c;
  c.name.value = "many";
  c.x.value = "n";
  c.y.value = "t";
  for (const char* kind : {"line", "curve", "scatter"}) {
    set_chart_kind(kind, &c);
    const std::string drawn = svg(figure(c, csv));
    CHECK_MESSAGE(drawn.size() < (std::string(kind) == "scatter" ? 130000 : 60000),
                  kind << drawn.size());
  }
}

TEST_CASE("an axis names the few values that there are") {
  Chart c;
  c.name.value = "c";
  c.x.value = "n";
  c.y.value = "t";
  const std::string few = svg(figure(c, "n,t\n48,1\n96,2\n144,3\n192,4\n"));
  for (const char* label : {">48<", ">96<", ">144<", ">192<"}) CHECK(count(few, label) == 1);
  CHECK(count(few, ">100<") == 0);
  // Values that lie too near to each other for their labels have round ticks.
  const std::string near = svg(figure(c, "n,t\n1000001,1\n1000002,2\n1900000,3\n"));
  CHECK(count(near, ">1.000001<") == 0);
}

TEST_CASE("one ideal line, through the best of the first points") {
  const auto lines = [](const std::string& drawn) {
    return count(drawn, "stroke-dasharray=\"1 4\"") - 1;  // one is in the legend
  };
  CHECK(lines(svg(figure(scaling(), kScaling))) == 1);
  Chart c = scaling();
  set_chart_error("none", &c);
  c.series.value = "precision";
  // The highest first point is that of b; a series that begins later has no line of its own.
  const Figure drawn =
      figure(c, "precision,gpus,tps[t]\na,1,10\na,2,20\nb,1,16\nb,2,30\nc,2,99\nc,4,100\n");
  CHECK(lines(svg(drawn)) == 1);
  set_chart_ideal("linear", &c);
  CHECK(svg(drawn).find(">60<") != std::string::npos);  // 16 * 4 is on the axis
  // Weak scaling: of times, the lowest is the best.
  set_chart_ideal("constant", &c);
  Figure weak = figure(c, "precision,gpus,tps\na,1,10\na,2,20\nb,1,16\nb,2,30\n");
  CHECK(chart::ideal_line(weak, weak.panels[0])->first.y == 16);
  weak.less_is_better = true;
  CHECK(chart::ideal_line(weak, weak.panels[0])->first.y == 10);
}

TEST_CASE("whiskers that would lie on each other stand side by side") {
  Chart c = scaling();
  set_chart_ideal("none", &c);
  const char* const head = "precision,gpus,tps,tps_ci_low,tps_ci_high\n";
  const std::string drawn = svg(
      figure(c, std::string(head) + "a,1,10,9,11\na,2,20,19,21\nb,1,10.2,9,11\nb,2,20.1,19,21\n"));
  // Each whisker begins at a place of its own.
  std::vector<std::string> places;
  for (size_t at = drawn.find("<path d=\"M"); at != std::string::npos;
       at = drawn.find("<path d=\"M", at + 1)) {
    const std::string path = drawn.substr(at, drawn.find('"', at + 9) - at);
    if (path.find("h8M") == std::string::npos) continue;
    const std::string place = path.substr(10, path.find(' ', 10) - 10);
    CHECK(std::find(places.begin(), places.end(), place) == places.end());
    places.push_back(place);
  }
  CHECK(places.size() == 4);
}

TEST_CASE("bars have plain colours") {
  Chart c = scaling();
  set_chart_kind("bar", &c);
  set_chart_ideal("none", &c);
  CHECK(count(svg(figure(c, kScaling)), "<pattern") == 0);
}

TEST_CASE("a narrow drawing has its letters as large as a wide one") {
  SvgOptions options;
  options.width = 440;
  const std::string drawn = svg(figure(scaling(), kScaling), options);
  CHECK(drawn.find("viewBox=\"0 0 440 ") != std::string::npos);
  CHECK(drawn.find("font-size=\"12\"") != std::string::npos);
}

TEST_CASE("a point's tooltip has its value and its interval") {
  const std::string drawn = svg(figure(scaling(), kScaling));
  CHECK(count(drawn, "<title>") == 12);
  CHECK(drawn.find("<title>bf16: gpus 1, tps 34,063 tokens/s (33,900 to 34,200)</title>") !=
        std::string::npos);
}

TEST_CASE("labels of an axis do not overlap") {
  for (int digits : {1, 4, 7, 9}) {
    std::string csv = "n,t\n";
    for (int i = 0; i < 40; ++i)
      csv += std::to_string(i) + std::string(static_cast<size_t>(digits), '7') + "," +
             std::to_string(i) + "\n";
    Chart c;
    c.name.value = "c";
    c.x.value = "n";
    c.y.value = "t";
    const std::string drawn = svg(figure(c, csv));
    // The labels below the axis stand at one height, in the order of x.
    double end = -1;
    size_t at = 0;
    while ((at = drawn.find("<text x=\"", at)) != std::string::npos) {
      const double x = std::strtod(drawn.c_str() + at + 9, nullptr);
      const size_t middle = drawn.find("text-anchor=\"middle\">", at);
      const size_t close = drawn.find("</text>", at);
      at = close;
      if (middle == std::string::npos || middle > close) continue;
      const std::string label = drawn.substr(middle + 21, close - middle - 21);
      if (label.find_first_not_of("0123456789,.") != std::string::npos) continue;
      CHECK(x - text_width(label) * 6 > end);
      end = x + text_width(label) * 6;
    }
    CHECK(end > 0);
  }
}
