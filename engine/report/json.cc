#include "engine/report/json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "engine/base/files.h"
#include "engine/python/value.h"
#include "engine/results/rows/point_key.h"
#include "engine/results/table/columns.h"
#include "engine/results/table/marks.h"
#include "engine/workflow/table_names.h"

namespace tally {
namespace {

using Json = nlohmann::ordered_json;

// Rows are written one by one, so that a table of 100,000 rows needs no tree of all of them.
// Programs may print bytes that are no UTF-8; JSON must be UTF-8.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json number(double value) {
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json json_of(const Value& value) {
  if (value.none()) return nullptr;
  if (const auto* text = std::get_if<std::string>(&value.data)) return *text;
  if (const auto* whole = std::get_if<long long>(&value.data)) return *whole;
  if (const auto* real = std::get_if<double>(&value.data)) return number(*real);
  const std::string text = value.str();  // a whole number beyond long long
  Json whole = Json::parse(text);
  return whole.is_number_integer() ? whole : Json(text);  // a double would change its digits
}

Json column_of(const TableColumn& column) {
  const ColumnInfo& info = column.info;
  Json out = {{"key", info.name}, {"name", column.name.value}, {"title", info.title}};
  if (!info.unit.empty()) out["unit"] = info.unit;
  if (column.statistic != nullptr) out["statistic"] = column.statistic->word;
  if (column.uncertainty != Uncertainty::none)
    out["uncertainty"] = uncertainty_word(column.uncertainty);
  if (column.better != Better::unknown) out["better"] = better_word(column.better);
  return out;
}

Json summary_of(const Summary& summary) {
  Json out = {{"sample", Json::array()}, {"n", summary.sample.size()}, {"of", summary.repeats}};
  for (const double value : summary.sample) out["sample"].push_back(number(value));
  if (summary.interval) {
    out["low"] = number(summary.interval->low);
    out["high"] = number(summary.interval->high);
    out["too_few"] = summary.too_few;
  }
  out["outliers"] = summary.outliers.indexes;
  return out;
}

Json row_of(const Record& row, const ResultTable& table) {
  Json values = Json::object();
  for (const TableColumn& column : table.columns) {
    if (column.info.kind == ColumnKind::own) continue;  // the row itself says it
    values[column.info.name] = json_of(row.values.at(column.info.name));
  }
  Json out = {{"run", row.run},
              {"workpackage", row.id},
              {"status", state_word(row)},
              {"repeats", row.all_repeats},
              {"values", std::move(values)}};
  if (row.busy > 0) {
    out["busy"] = {{"repeats", row.busy}, {"cores_of_others", number(row.disturbance.cores)}};
    if (!row.disturbance.gpu_users.empty()) out["busy"]["gpus"] = row.disturbance.gpu_users.str();
  }
  if (row.throttled > 0)
    out["throttled"] = {{"repeats", row.throttled}, {"what", row.disturbance.throttling.str()}};
  for (const auto& [name, seconds] : short_values_of(row, table.columns))
    out["short"][name] = number(seconds);
  if (!row.summaries.empty()) {
    for (const auto& [key, summary] : row.summaries) out["statistics"][key] = summary_of(summary);
  }
  if (!row.notes.empty()) out["notes"] = row.notes;
  return out;
}

Json head_of(const RenderedResult& one, const Sources& sources) {
  Json head = {{"name", one.name}, {"columns", Json::array()}, {"notes", Json::array()}};
  for (const TableColumn& column : one.table.columns) {
    if (column.info.kind != ColumnKind::own) head["columns"].push_back(column_of(column));
  }
  for (const Note& note : one.table.notes) head["notes"].push_back(note.str());
  Json missed = Json::array();
  for (const MissedReference& reference : one.table.missed)
    missed.push_back({{"place", position_text(sources, reference)}, {"text", reference.text}});
  Json warned = Json::array();
  for (const MissedReference& reference : one.table.warned)
    warned.push_back({{"place", position_text(sources, reference)}, {"text", reference.text}});
  head["references"] = {{"passed", one.table.references_passed},
                        {"missed", std::move(missed)},
                        {"warned", std::move(warned)}};
  return head;
}

}  // namespace

std::string json_document(const std::vector<ReportedRun>& runs,
                          const std::vector<RenderedResult>& tables, const Sources& sources,
                          const std::string& version) {
  Json head = {{"format", "tally-result"}, {"version", 1}, {"program", "tally " + version}};
  head["runs"] = Json::array();
  for (const ReportedRun& run : runs) {
    Json one = {{"id", run.id}, {"directory", run.directory}, {"benchmark", run.benchmark}};
    for (const auto& [name, value] : run.machine) one["machine"][name] = value;
    head["runs"].push_back(std::move(one));
  }
  std::string out = text_of(head);
  out.back() = ',';
  out += "\n\"tables\":[";
  bool first_table = true;
  for (const RenderedResult& one : tables) {
    if (one.definition == nullptr) continue;
    out += first_table ? "\n" : ",\n";
    first_table = false;
    std::string text = text_of(head_of(one, sources));
    text.back() = ',';
    out += text + "\n\"rows\":[";
    for (size_t i = 0; i < one.table.rows.size(); ++i)
      out += (i == 0 ? "\n" : ",\n") + text_of(row_of(one.table.rows[i], one.table));
    out += "]}";
  }
  return out + "]}\n";
}

std::string json_lines(const std::vector<RenderedResult>& tables) {
  std::string out;
  for (const RenderedResult& one : tables) {
    if (one.definition == nullptr) continue;
    for (const Record& row : one.table.rows) {
      Json line = {{"table", one.name}};
      line.update(row_of(row, one.table));
      out += text_of(line) + "\n";
    }
  }
  return out;
}

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
  RowKey shown;
  for (const auto& [key, name] : parameters)
    shown.values[name] = stored_text(json.at("values").at(key));
  row.point = {nullptr, row.id, std::move(shown)};
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
    ColumnInfo& info = table.columns.emplace_back();
    info.name = column.at("key").get<std::string>();
    info.title = column.value("title", name);
    info.unit = column.value("unit", "");
    if (free.count(name) == 0 || column.contains("statistic")) continue;
    parameters[info.name] = name;
    table.parameters.insert(name);
  }
  for (const StoredJson& row : json.at("rows"))
    table.rows.push_back(stored_row(row, parameters, patterns));
  return table;
}

}  // namespace

Status read_stored_result(const std::string& path, const Benchmark& benchmark, StoredResult* out) {
  std::string text;
  TRY(read_file(path, &text));
  const std::set<std::string> free = free_parameters(benchmark);
  std::set<std::string> patterns;
  for (const Pattern& pattern : all_patterns(benchmark)) patterns.insert(pattern.name.value);
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

namespace {

// File names and messages may hold bytes that are not UTF-8; JSON must be UTF-8.
std::string indented_text(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// A path as a URI reference, relative unless the path is absolute.
std::string uri(const std::string& path) {
  std::string out = path[0] == '/' ? "file://" : "";
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '/' || c == '.' || c == '-' || c == '_' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace

std::string problems_as_json(const std::vector<Problem>& problems) {
  size_t errors = 0;
  size_t warnings = 0;
  Json list = Json::array();
  for (const Problem& p : problems) {
    if (p.severity == Severity::error) ++errors;
    if (p.severity == Severity::warning) ++warnings;
    Json one = {{"severity", severity_word(p.severity)}, {"message", p.message}};
    if (!p.hint.empty()) one["hint"] = p.hint;
    if (!p.file.empty()) one.update({{"file", p.file}, {"line", p.line}, {"column", p.column}});
    list.push_back(std::move(one));
  }
  return indented_text(
      {{"version", 1}, {"errors", errors}, {"warnings", warnings}, {"problems", list}});
}

std::string problems_as_sarif(const std::vector<Problem>& problems, const std::string& version) {
  Json results = Json::array();
  for (const Problem& p : problems) {
    const std::string text = p.hint.empty() ? p.message : p.message + "\n" + p.hint;
    Json result = {{"ruleId", "workflow"},
                   {"level", severity_word(p.severity)},
                   {"message", {{"text", text}}}};
    if (!p.file.empty()) {
      const Json region = {{"startLine", p.line}, {"startColumn", p.column}};
      const Json place = {{"artifactLocation", {{"uri", uri(p.file)}}}, {"region", region}};
      result["locations"] = Json::array({{{"physicalLocation", place}}});
    }
    results.push_back(std::move(result));
  }
  const Json rule = {{"id", "workflow"},
                     {"shortDescription", {{"text", "A problem in a workflow file"}}}};
  const Json driver = {{"name", "tally"}, {"version", version}, {"rules", Json::array({rule})}};
  const Json run = {
      {"tool", {{"driver", driver}}}, {"columnKind", "unicodeCodePoints"}, {"results", results}};
  return indented_text({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                        {"version", "2.1.0"},
                        {"runs", Json::array({run})}});
}

}  // namespace tally
