#include "engine/report/stored_result.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/files.h"
#include "engine/python/value.h"
#include "engine/results/rows/point_key.h"

namespace tally {
namespace {

using StoredJson = nlohmann::json;

// A parameter as a table shows it.
std::string stored_text(const StoredJson& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return python_repr(value.get<double>());
  return value.is_null() ? std::string() : value.dump();
}

Summary stored_summary(const StoredJson& json) {
  Summary summary;
  for (const StoredJson& value : json.at("sample"))
    if (value.is_number()) summary.sample.push_back(value.get<double>());
  summary.repeats = json.at("of").get<int>();
  return summary;
}

Record stored_row(const StoredJson& json, const std::map<std::string, std::string>& parameters,
                  const std::set<std::string>& patterns) {
  Record row;
  row.id = json.at("workpackage").get<int>();
  row.run = json.at("run").get<int>();
  row.all_repeats = json.at("repeats").get<int>();
  const auto status = json.at("status").get<std::string>();
  row.reused = status == "reused";
  if (row.reused) row.reused_values.edit() = patterns;
  row.state = row.reused ? State::done : state_named(status).value_or(State::lost);
  for (const auto& [key, name] : parameters)
    row.match.edit().values[name] = stored_text(json.at("values").at(key));
  if (json.contains("busy")) row.busy = json.at("busy").at("repeats").get<int>();
  if (json.contains("throttled")) row.throttled = json.at("throttled").at("repeats").get<int>();
  if (json.contains("short")) {
    for (const auto& [name, seconds] : json.at("short").items())
      row.short_values.edit()[name] = seconds.get<double>();
  }
  if (json.contains("statistics")) {
    for (const auto& [key, summary] : json.at("statistics").items())
      row.summaries[key] = stored_summary(summary);
  }
  return row;
}

StoredTable stored_table(const StoredJson& json, const std::set<std::string>& free,
                         const std::set<std::string>& patterns) {
  StoredTable table;
  std::map<std::string, std::string> parameters;  // by the column's key
  for (const StoredJson& column : json.at("columns")) {
    const auto name = column.at("name").get<std::string>();
    table.units[column.at("key").get<std::string>()] = column.value("unit", "");
    if (free.count(name) == 0 || column.contains("statistic")) continue;
    parameters[column.at("key").get<std::string>()] = name;
    table.parameters.insert(name);
  }
  for (const StoredJson& row : json.at("rows"))
    table.rows.push_back(stored_row(row, parameters, patterns));
  return table;
}

}  // namespace

Status read_stored_result(const std::string& path, const Benchmark& benchmark, StoredResult* out) {
  std::string text;
  if (Status s = read_file(path, &text); !s) return s;
  const std::set<std::string> free = free_parameters(benchmark);
  std::set<std::string> patterns;
  for (const auto& [set_name, set] : benchmark.pattern_sets)
    for (const Pattern& pattern : set.patterns) patterns.insert(pattern.name.value);
  try {
    const StoredJson document = StoredJson::parse(text);
    if (document.value("format", "") != "tally-result")
      return Status::error(fmt::format("'{}' is no result of tally", path))
          .with_hint("`tally result -s json RUN` writes one");
    const StoredJson& runs = document.at("runs");
    if (runs.size() != 1)
      return Status::error(fmt::format("'{}' has the tables of {} runs", path, runs.size()))
          .with_hint("write the tables of one run: `tally result -s json RUN`");
    out->run.id = runs.at(0).at("id").get<int>();
    out->run.directory = runs.at(0).at("directory").get<std::string>();
    out->run.benchmark = runs.at(0).at("benchmark").get<std::string>();
    if (runs.at(0).contains("machine")) {
      for (const auto& [name, value] : runs.at(0).at("machine").items())
        out->run.machine.emplace_back(name, value.get<std::string>());
    }
    for (const StoredJson& table : document.at("tables"))
      out->tables[table.at("name").get<std::string>()] = stored_table(table, free, patterns);
  } catch (const nlohmann::json::exception& error) {
    return Status::error(fmt::format("'{}' is no result of tally: {}", path, error.what()))
        .with_hint("`tally result -s json RUN` writes one");
  }
  return Status::ok();
}

}  // namespace tally
