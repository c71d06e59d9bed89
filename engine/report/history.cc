#include "engine/report/history.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <unordered_map>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/results/rows/point_key.h"
#include "engine/results/table/columns.h"
#include "engine/results/table/marks.h"
#include "engine/statistics/change_points.h"
#include "engine/workflow/table_names.h"

namespace tally {
namespace {

using Json = nlohmann::ordered_json;

// The texts that tell the rows of a table apart, in every run of the same workflow: the parameters
// that the table shows, then the others that have several values in the run, and the step and the
// repeat where the rows differ in them.
class RowKeys {
 public:
  explicit RowKeys(const Benchmark& benchmark)
      : parameters_(parameter_order(benchmark)), free_(free_parameters(benchmark)) {}

  // One text for each row. No two are equal.
  std::vector<std::string> of(const ResultTable& table) const {
    std::set<std::string> steps;
    for (const Record& row : table.rows) steps.insert(*row.step);
    const ShownPoint point(table.columns, parameters_);
    std::vector<std::string> texts;
    std::unordered_map<std::string, int> count;
    texts.reserve(table.rows.size());
    count.reserve(table.rows.size());
    for (const Record& row : table.rows) {
      texts.push_back(text_of(table, point, row, steps.size() > 1));
      ++count[texts.back()];
    }
    std::unordered_map<std::string, int> seen;
    for (std::string& text : texts) {  // each repeat is a row of its own, for example
      if (count[text] > 1) text += fmt::format("{}row={}", text.empty() ? "" : " ", ++seen[text]);
    }
    return texts;
  }

 private:
  std::string text_of(const ResultTable& table, const ShownPoint& point, const Record& row,
                      bool with_step) const {
    std::string text;
    const auto add = [&](std::string_view name, std::string_view value) {
      if (!text.empty()) text += ' ';
      text.append(name).append(1, '=').append(value);
    };
    std::vector<std::string_view> shown;
    const std::vector<const Value*> values = point.of(row);
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string& name = table.columns[point.columns()[i]].name.value;
      if (values[i] == nullptr) continue;
      add(name, values[i]->str());
      shown.push_back(name);
    }
    for (const auto& [name, value] : row.point.differing(free_))
      if (!contains(shown, name)) add(name, value);
    if (with_step) add("step", *row.step);
    return text;
  }

  std::vector<std::string> parameters_;
  std::set<std::string> free_;
};

// A text in quotes. One of plain characters needs no library: there may be 100,000 of them.
void add_json(const std::string& text, std::string& out) {
  const bool plain = std::ranges::all_of(
      text, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (plain) {
    out.append(1, '"').append(text).append(1, '"');
  } else {
    out += Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

// Writes the rows of one column one by one, so that a table of 100,000 rows needs no tree of all of
// them. Their common part is made once.
class RowWriter {
 public:
  RowWriter(const RenderedResult& one, const TableColumn& column) : column_(column) {
    begin_ = "{\"table\":";
    add_json(one.name, begin_);
    begin_ += ",\"parameters\":";
    metric_ = ",\"metric\":";
    add_json(column.name.value, metric_);
    metric_ += ",\"sample\":";
    if (!column.info.unit.empty()) {
      end_ += ",\"unit\":";
      add_json(column.info.unit, end_);
    }
    if (column.better != Better::unknown)
      end_ += std::string(",\"better\":\"") + better_word(column.better) + "\"";
  }

  void add(const Record& row, const Summary& summary, const std::string& parameters, bool reused,
           std::string& out) const {
    out += begin_;
    add_json(parameters, out);
    out += metric_;
    out += Json(summary.sample).dump();
    out += ",\"of\":" + std::to_string(summary.repeats) + end_;
    // An earlier version of tally knows `failed` alone.
    if (!row.measured() || reused) out += ",\"failed\":true";
    std::string mark;
    if (!row.measured() && !row.failed()) mark = state_mark(row);
    if (row.measured() && reused) mark = kReused;
    if (!mark.empty()) {
      out += ",\"mark\":";
      add_json(mark, out);
    }
    if (row.busy > 0) out += ",\"busy\":true";
    if (row.throttled > 0) out += ",\"throttled\":true";
    if (!short_values_of(row, column_).empty()) out += ",\"short\":true";
    out += '}';
  }

 private:
  const TableColumn& column_;
  std::string begin_, metric_, end_;
};

Status read_one(const std::string& path, std::vector<HistoryEntry>* entries) {
  std::string text;
  TRY(read_file(path, &text));
  const Json file = Json::parse(text, nullptr, false);
  const auto bad = [&](const char* why) {
    return Status::error(
        fmt::format("'{}': {}; remove the file, or write it again with `tally "
                    "result`",
                    path, why));
  };
  if (!file.is_object() || file.value("format", "") != "tally-history")
    return bad("it is not a history of tally's");
  if (file.value("version", 0) != 1) return bad("it is of another version of tally");
  try {
    const Json& run = file.at("run");
    for (const Json& row : file.at("rows")) {
      HistoryEntry& entry = entries->emplace_back();
      entry.run = run.at("id").get<int>();
      entry.start = run.at("start").get<std::string>();
      entry.benchmark = run.at("benchmark").get<std::string>();
      entry.unfinished = run.value("unfinished", "");
      if (run.contains("machine")) {
        for (const auto& [name, value] : run.at("machine").items())
          entry.machine.emplace_back(name, value.get<std::string>());
      }
      entry.table = row.at("table").get<std::string>();
      entry.parameters = row.at("parameters").get<std::string>();
      entry.metric = row.at("metric").get<std::string>();
      entry.unit = row.value("unit", "");
      entry.better = row.value("better", "");
      entry.repeats = row.at("of").get<int>();
      entry.failed = row.value("failed", false);
      entry.mark = row.value("mark", entry.failed ? "FAILED" : "");
      entry.busy = row.value("busy", false);
      entry.throttled = row.value("throttled", false);
      entry.too_short = row.value("short", false);
      for (const Json& value : row.at("sample")) entry.sample.push_back(value.get<double>());
    }
  } catch (const Json::exception&) {
    return bad("a part of it is missing");
  }
  return Status::ok();
}

HistoryPoint::Change change(const HistoryEntry& entry, double before, double after) {
  const bool up = after > before;
  std::string word = up ? "rises" : "falls";
  if (!entry.better.empty()) word = (entry.better == "higher") == up ? "improves" : "regresses";
  return {word, before, after};
}

// The rows of the columns with `statistic` or `better`. Empty: there are none.
std::string history_rows(const Benchmark& benchmark, const std::vector<RenderedResult>& tables) {
  const RowKeys keys(benchmark);
  std::string rows;
  for (const RenderedResult& one : tables) {
    if (one.definition == nullptr) continue;
    const std::vector<std::string> parameters = keys.of(one.table);
    std::set<std::string> seen;
    for (const TableColumn& column : one.table.columns) {
      // A metric with two statistics has one sample.
      const bool summarised = std::ranges::any_of(one.table.rows, [&](const Record& row) {
        return row.summaries.count(column.info.name) != 0;
      });
      if (!summarised || !column.relative_to.empty() || !seen.insert(column.name.value).second)
        continue;
      const RowWriter writer(one, column);
      for (size_t i = 0; i < one.table.rows.size(); ++i) {
        const Record& row = one.table.rows[i];
        const auto summary = row.summaries.find(column.info.name);
        if (summary == row.summaries.end()) continue;
        rows += rows.empty() ? "\n" : ",\n";
        writer.add(row, summary->second, parameters[i], is_reused(benchmark, row, column), rows);
      }
    }
  }
  return rows;
}

// "OUTPATH/history.d/000003.json"
std::string history_path(const std::string& outpath, int run) {
  return fmt::format("{}/history.d/{:06}.json", outpath, run);
}

}  // namespace

Status write_history(const Run& run, const ReportedRun& reported,
                     const std::vector<RenderedResult>& tables, const std::string& unfinished,
                     const std::string& version) {
  const std::string rows = history_rows(run.definitions(), tables);
  if (rows.empty()) return Status::ok();
  Json head = {{"format", "tally-history"}, {"version", 1}, {"program", "tally " + version}};
  head["run"] = {{"id", reported.id},
                 {"directory", reported.directory},
                 {"benchmark", reported.benchmark},
                 {"start", run.journal().run().start}};
  if (!unfinished.empty()) head["run"]["unfinished"] = unfinished;
  for (const auto& [name, value] : reported.machine) head["run"]["machine"][name] = value;
  std::string text = head.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.back() = ',';
  const std::string folder = reported.directory.substr(0, reported.directory.rfind('/'));
  TRY(make_directories(folder + "/history.d"));
  return write_file(history_path(folder, run.directory().id),
                    text + "\n\"rows\":[" + rows + "]}\n");
}

Status read_history(const std::string& outpath, std::vector<HistoryEntry>* entries) {
  std::vector<std::string> paths;
  const std::string files = escaped_for_matching(outpath) + "/history.d/*.json";
  TRY(matching_paths(files, &paths));
  for (const std::string& path : paths) {
    TRY(read_one(path, entries));
  }
  std::ranges::stable_sort(
      *entries, [](const HistoryEntry& a, const HistoryEntry& b) { return a.run < b.run; });
  return Status::ok();
}

HistorySeries history_series(std::vector<HistoryEntry> entries) {
  HistorySeries series;
  statistics::Sample medians;
  std::vector<size_t> measured;
  for (HistoryEntry& entry : entries) {
    HistoryPoint& point = series.emplace_back();
    const statistics::Sample& sample = entry.sample;
    if (!sample.empty()) point.median = statistics::median(sample);
    if (sample.size() >= statistics::kFewestForMedian)
      point.interval = statistics::median_interval(sample).interval;
    if (point.median && !entry.failed) {
      medians.push_back(*point.median);
      measured.push_back(series.size() - 1);
    }
    point.entry = std::move(entry);
  }
  std::vector<size_t> starts = statistics::change_points(medians);
  starts.push_back(medians.size());
  for (size_t k = 0, before = 0; k + 1 < starts.size(); ++k) {
    const auto level = [&](size_t from, size_t to) {
      return statistics::median({medians.begin() + static_cast<std::ptrdiff_t>(from),
                                 medians.begin() + static_cast<std::ptrdiff_t>(to)});
    };
    HistoryPoint& point = series[measured[starts[k]]];
    point.change = change(point.entry, level(before, starts[k]), level(starts[k], starts[k + 1]));
    before = starts[k];
  }
  return series;
}

namespace {

Json finite_number(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json change_of(const HistoryPoint::Change& change) {
  const bool ratio = change.before > 0;
  return {{"word", change.word},
          {"before", finite_number(change.before)},
          {"after", finite_number(change.after)},
          {"change", ratio ? finite_number(change.after / change.before - 1) : Json()}};
}

Json point_of(const HistoryPoint& point) {
  const HistoryEntry& entry = point.entry;
  Json out = {
      {"run", entry.run},
      {"start", entry.start},
      {"sample", entry.sample},
      {"of", entry.repeats},
      {"median", point.median ? finite_number(*point.median) : Json()},
      {"low", point.interval ? finite_number(point.interval->low) : Json()},
      {"high", point.interval ? finite_number(point.interval->high) : Json()},
      {"failed", entry.failed},
      {"reused", entry.mark == kReused},
      {"busy", entry.busy},
      {"throttled", entry.throttled},
      {"change", point.change ? change_of(*point.change) : Json()},
  };
  if (entry.too_short) out["short"] = true;
  for (const auto& [name, value] : entry.machine) out["machine"][name] = value;
  return out;
}

}  // namespace

std::string history_json(const std::string& metric, const std::vector<HistorySeries>& series,
                         const std::string& version) {
  Json out = {{"format", "tally-metric-history"},
              {"version", 1},
              {"program", "tally " + version},
              {"metric", metric},
              {"series", Json::array()}};
  for (const HistorySeries& one : series) {
    const HistoryEntry& entry = one.front().entry;
    Json points = Json::array();
    for (const HistoryPoint& point : one) points.push_back(point_of(point));
    out["series"].push_back({{"benchmark", entry.benchmark},
                             {"table", entry.table},
                             {"parameters", entry.parameters},
                             {"unit", entry.unit},
                             {"better", entry.better.empty() ? Json() : Json(entry.better)},
                             {"points", std::move(points)}});
  }
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tally
