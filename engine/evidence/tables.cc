#include "engine/evidence/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/files.h"
#include "engine/report/json.h"
#include "engine/report/run_results.h"
#include "engine/results/rows/analyse.h"

namespace tally {
namespace {

constexpr auto kReplace = nlohmann::json::error_handler_t::replace;

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + "\"";
}

// Adds what workpackages printed for analysers without repeats, of which no samples are kept.
void add_other_values(Evaluator& evaluator, const RunResults& results,
                      std::vector<Sample>* samples) {
  std::set<std::string> known;
  for (const Sample& one : *samples) known.insert(one.analyser);
  for (const Analyser& analyser : results.definitions->analysers) {
    if (known.count(analyser.name.value) != 0) continue;
    Diagnostics said;  // by results_of()
    std::vector<WorkpackageResult> each;
    analyse({*results.definitions, evaluator, said}, analyser, results.views, &each);
    for (const WorkpackageResult& one : each)
      for (const auto& [pattern, value] : one.values)
        samples->push_back({one.id, analyser.name.value, pattern, {}, value.str(), {}});
  }
}

std::string samples_csv(std::vector<Sample> samples) {
  const auto place = [](const Sample& one) {
    return std::tie(one.workpackage, one.analyser, one.pattern, one.value);
  };
  std::ranges::stable_sort(samples,
                           [&](const Sample& a, const Sample& b) { return place(a) < place(b); });
  std::string text = "workpackage,analyser,pattern,value\n";
  for (const Sample& one : samples)
    text += fmt::format("{},{},{},{}\n", one.workpackage, csv_cell(one.analyser),
                        csv_cell(one.pattern), csv_cell(one.value));
  return text;
}

// A table may have a name that is no name of a file.
std::string file_name(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || c == '\\' || static_cast<unsigned char>(c) < ' '; },
      '_');
  return name;
}

// Notes name files of the run's folder. They do so as if it were where it was first: a copy says the
// same wherever it is read.
std::string with_first_paths(std::string json, const Run& run, const std::string& first) {
  const auto quoted = [](const std::string& path) {
    const std::string text = nlohmann::json(path + "/").dump(-1, ' ', false, kReplace);
    return text.substr(1, text.size() - 2);
  };
  const std::string here = quoted(absolute_path(run.directory().path));
  const std::string there = quoted(first);
  for (size_t at = json.find(here); here != there && at != std::string::npos;
       at = json.find(here, at + there.size()))
    json.replace(at, here.size(), there);
  return json;
}

}  // namespace

Settings reading(const Settings& settings) {
  Settings own = settings;
  own.no_exec = true;
  own.called_as_jube = false;
  own.strict = false;
  return own;
}

Status open_archived(const Settings& settings, const std::string& folder,
                     std::unique_ptr<Run>* out) {
  const Settings own = reading(settings);
  TRY(Run::open({0, folder}, Run::Access::read, own, out));
  Run& run = **out;
  if (run.input().workflow) TRY(run.read_definitions(own));
  if (run.input().workflow && !run.definitions_input().diagnostics.has_errors())
    return Status::ok();
  return Status::error(folder + ": its input cannot be read by this tally:\n" +
                       run.definitions_input().diagnostics.format(run.definitions_input().sources));
}

Status make_evidence(const Run& run, const std::string& version, Evaluator& evaluator,
                     Evidence* out) {
  const Settings settings;
  RunResults results;
  TRY(read_workpackages(settings, run, run.definitions(), &results));
  ResultRequest request;
  request.write = false;
  request.samples = true;
  results_of(settings, request, evaluator, &results);
  add_other_values(evaluator, results, &results.samples);
  EvidenceTexts& texts = out->texts;
  texts["samples.csv"] = samples_csv(std::move(results.samples));
  const std::vector<RenderedResult> tables = results.take_outputs();
  for (const RenderedResult& one : tables)
    if (one.has_file) texts["tables/" + file_name(one.name) + ".dat"] = one.file_text;
  ReportedRun head{run.journal().run().id, {}, run.definitions().name.value, {}};
  TRY(run.journal().archived_from(&head.directory));
  texts["tables/tables.json"] =
      with_first_paths(json_document({head}, tables, run.sources(), version), run, head.directory);
  out->unfinished = results.unfinished;
  out->said = std::move(results.diagnostics);
  return Status::ok();
}

}  // namespace tally
