#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/check/build.h"
#include "engine/check/elements.h"
#include "engine/workflow/chart_words.h"
#include "engine/workflow/table_names.h"

namespace tally {
namespace {

std::vector<std::string> split_attribute(const Element& element, const char* name) {
  std::vector<std::string> parts;
  for (Text& part : split_text(attribute_text(element, name))) {
    parts.push_back(std::move(part.value));
  }
  return parts;
}

Better better_of(std::string_view word) {
  if (word == "higher") return Better::higher;
  return word == "lower" ? Better::lower : Better::unknown;
}

Column column(const Element& element) {
  Column c;
  c.name = text_of(element);
  c.title = element.get("title");  // JUBE keeps blanks at its ends, too
  c.empty_title = c.title.empty() && element.find("title") != nullptr;
  c.format = strip(element.get("format"));
  c.colw = strip(element.get("colw"));
  if (const Attribute* null = element.find("null_value")) {
    c.null_value_set = true;
    c.null_value = null->value.value;
  }
  c.primary_key = boolean_or(element.get("primekey"), false);
  c.expression = attribute_text(element, "expression");
  c.statistic = statistic_of(strip(element.get("statistic")));
  c.uncertainty = uncertainty_of(strip(element.get("uncertainty")));
  c.better = better_of(strip(element.get("better")));
  const bool spread = c.uncertainty != Uncertainty::none;
  if (spread && c.statistic == nullptr) c.statistic = statistic_of("median");
  for (const Element& child : element.children) {
    if (child.name == "relative_to") c.relative_to = all_attributes(child);
  }
  return c;
}

Reference reference(const Element& element) {
  Reference r;
  r.column = attribute_text(element, "column");
  r.condition = text_of(element);
  r.note = attribute_text(element, "note");
  r.where = attribute_text(element, "where");
  r.of = strip(element.get("of"));
  r.platform = attribute_text(element, "platform");
  r.on_fail = attribute_text(element, "on_fail");
  const std::string given = element.get("action");
  const std::string_view action = strip(given);
  if (action == "warn") r.action = ReferenceAction::warn;
  if (action == "expect_fail") r.action = ReferenceAction::expect_fail;
  return r;
}

PublishedSeries published(const Element& element, const Chart& chart, Diagnostics& diagnostics) {
  PublishedSeries series;
  series.name = attribute_text(element, "name");
  series.facet = strip(element.get("facet"));
  if (Status read = read_published_points(text_of(element).value, &series.points); !read) {
    diagnostics.error(element.mark,
                      fmt::format("published '{}': {}", series.name.value, read.message()),
                      "write values of x and y, as \"1: 60.5, 2: 29.9\"");
  }
  if (!series.facet.empty() && chart.facet.value.empty()) {
    diagnostics.error(
        element.find("facet")->value.mark,
        fmt::format("published '{}' names a panel, and the chart has one panel", series.name.value),
        "give the chart a `facet`, or leave this one out");
  }
  return series;
}

Chart chart(const Element& element, Diagnostics& diagnostics) {
  Chart c;
  c.name = attribute_text(element, "name");
  c.table = attribute_text(element, "table");
  c.x = attribute_text(element, "x");
  c.y = attribute_text(element, "y");
  c.series = attribute_text(element, "series");
  c.facet = attribute_text(element, "facet");
  c.title = strip(element.get("title"));
  set_chart_kind(std::string(strip(element.get("kind"))), &c);
  set_chart_error(std::string(strip(element.get("error"))), &c);
  c.error_mark = attribute_text(element, "error").mark;
  set_chart_ideal(std::string(strip(element.get("ideal"))), &c);
  set_chart_log(std::string(strip(element.get("log"))), &c);
  if (c.kind == ChartKind::bar && (c.log_x || c.log_y)) {
    diagnostics.error(element.find("log")->value.mark, "a bar chart has no logarithmic axis",
                      "bars begin at 0: use kind: line or kind: scatter");
  }
  if (c.kind == ChartKind::bar && c.ideal != ChartIdeal::none) {
    diagnostics.error(element.find("ideal")->value.mark, "a bar chart has no ideal line",
                      "it has names along its axis, not numbers: use kind: line");
  }
  for (const Element& child : element.children)
    if (child.name == "published") c.published.push_back(published(child, c, diagnostics));
  return c;
}

Table table(const Element& element) {
  Table t;
  t.name = attribute_text(element, "name");
  std::string style(strip(element.get("style")));
  if (style == "pretty") t.style = TableStyle::pretty;
  if (style == "aligned") t.style = TableStyle::aligned;
  t.separator = element.get("separator", ",");
  t.sort = split_attribute(element, "sort");
  t.filter = attribute_text(element, "filter");
  t.transpose = boolean_or(element.get("transpose"), false);
  for (const Element& child : element.children) {
    if (child.name == "reference") t.references.push_back(reference(child));
    if (child.name != "column") continue;
    t.columns.push_back(column(child));
    for (const Element& below : child.children) {
      if (below.name != "reference") continue;
      Reference r = reference(below);
      r.column = t.columns.back().name;
      r.column_index = static_cast<int>(t.columns.size()) - 1;
      t.references.push_back(std::move(r));
    }
  }
  return t;
}

Syslog syslog(const Element& element) {
  Syslog s;
  s.name = attribute_text(element, "name");
  s.address = strip(element.get("address"));
  s.host = strip(element.get("host"));
  s.port = attribute_text(element, "port", s.host.empty() ? "" : "514").value;
  s.format = strip(element.get("format", "jube[%(process)s]: %(message)s"));
  s.sort = split_attribute(element, "sort");
  s.filter = attribute_text(element, "filter");
  for (const Element& child : element.children) {
    if (child.name == "key") s.keys.push_back(column(child));
  }
  return s;
}

Database database(const Element& element) {
  Database d;
  d.name = attribute_text(element, "name");
  d.file = attribute_text(element, "file");
  d.primary_keys = split_attribute(element, "primekeys");
  d.filter = attribute_text(element, "filter");
  for (const Element& child : element.children) {
    if (child.name != "key") continue;
    Column key = column(child);
    // `primekeys` may name the key or its column in the database.
    auto& primary = d.primary_keys;
    std::replace(primary.begin(), primary.end(), key.name.value, key.column_title());
    const bool listed = contains(primary, key.column_title());
    if (key.primary_key && !listed) primary.push_back(key.column_title());
    key.primary_key = key.primary_key || listed;
    d.keys.push_back(std::move(key));
  }
  return d;
}

}  // namespace

void add_output(const Element& element, Result* result, Diagnostics& diagnostics) {
  if (element.name == "table") result->outputs.emplace_back(table(element));
  if (element.name == "syslog") result->outputs.emplace_back(syslog(element));
  if (element.name == "database") result->outputs.emplace_back(database(element));
  if (element.name == "chart") result->charts.push_back(chart(element, diagnostics));
}

}  // namespace tally
