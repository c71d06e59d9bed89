#include "engine/report/json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/results/table/columns.h"
#include "engine/results/table/marks.h"
#include "engine/results/table/repeats.h"
#include "engine/workflow/statistic_words.h"

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

Json column_of(const Column& column, const ResultTable& table) {
  Json out = {
      {"key", column_key(column)}, {"name", column.name.value}, {"title", column.column_title()}};
  if (const std::string& unit = table.unit_of(column); !unit.empty()) out["unit"] = unit;
  if (column.statistic != Statistic::none) out["statistic"] = statistic_word(column.statistic);
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
  for (const Column& column : table.columns) {
    if (is_own_column(column)) continue;  // the row itself says it
    const std::string key = column_key(column);
    values[key] = json_of(row.values.at(key));
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
  for (const Column& column : one.table.columns) {
    if (!is_own_column(column)) head["columns"].push_back(column_of(column, one.table));
  }
  for (const Note& note : one.table.notes) head["notes"].push_back(note.str());
  Json missed = Json::array();
  for (const MissedReference& reference : one.table.missed)
    missed.push_back({{"place", place(sources, reference)}, {"text", reference.text}});
  Json warned = Json::array();
  for (const MissedReference& reference : one.table.warned)
    warned.push_back({{"place", place(sources, reference)}, {"text", reference.text}});
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

}  // namespace tally
