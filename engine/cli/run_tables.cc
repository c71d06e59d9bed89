#include "engine/cli/run_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "engine/base/text.h"
#include "engine/cli/prepare.h"
#include "engine/expand/evaluator.h"
#include "engine/report/joined.h"

namespace tally {
namespace {

// What stands in the column "id": the number, or the folder if two runs have the same number.
std::vector<Value> names_of_runs(std::span<const Run> runs) {
  std::set<int> ids;
  for (const Run& run : runs) ids.insert(run.directory().id);
  std::vector<Value> names;
  for (const Run& run : runs) {
    if (ids.size() == runs.size()) {
      names.emplace_back().data = static_cast<long long>(run.directory().id);
    } else {
      names.emplace_back().data = run.directory().path;
    }
  }
  return names;
}

}  // namespace

bool open_runs(const Settings& settings, const std::vector<std::string>& folders,
               const std::vector<std::string>& ids, std::vector<Run>* runs) {
  for (const std::string& folder : folders) {
    const std::vector<RunDirectory> found = find_runs(settings, {folder, ids});
    if (found.empty()) return false;
    for (const RunDirectory& directory : found) {
      const auto run = open_results(settings, directory);
      if (!run) return false;
      runs->push_back(std::move(*run));
    }
  }
  return true;
}

const Table* table_of(const Result& result, const RenderedResult& rendered) {
  for (const auto& output : result.outputs) {
    const Table* table = std::get_if<Table>(&output);
    if (rendered.is_table && table != nullptr && table->name.value == rendered.name) return table;
  }
  return nullptr;
}

namespace {

// Tables of several runs that make one. The newest run's is the first one.
struct Group {
  std::string benchmark, table;
  size_t nth = 0;  // a result may have several tables of one name
  std::vector<std::pair<size_t, RunTable*>> members;  // run and table
};

// The runs with the one whose definitions come first at the front: the last one, or where tables are
// of any benchmark the one with the highest id, in whatever order they are shown.
std::vector<size_t> newest_first(std::span<const Run> runs, bool one_benchmark) {
  std::vector<size_t> order;
  for (size_t run = runs.size(); run-- > 0;) order.push_back(run);
  if (!one_benchmark)
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return runs[a].directory().id > runs[b].directory().id;
    });
  return order;
}

std::vector<Group> groups_of(std::span<const Run> runs, bool one_benchmark,
                             std::vector<std::vector<RunTable>>& of_runs) {
  std::vector<Group> groups;
  for (const size_t run : newest_first(runs, one_benchmark)) {
    const std::string& benchmark = runs[run].definitions().name.value;
    std::map<std::string, size_t> times;
    for (RunTable& table : of_runs[run]) {
      const std::string& name = table.rendered.name;
      const size_t nth = times[name]++;
      const auto found = std::find_if(groups.begin(), groups.end(), [&](const Group& one) {
        return (!one_benchmark || one.benchmark == benchmark) && one.table == name &&
               one.nth == nth;
      });
      Group& group =
          found == groups.end() ? groups.emplace_back(Group{benchmark, name, nth, {}}) : *found;
      group.members.emplace_back(run, &table);
    }
  }
  return groups;
}

// Names the benchmark of a table where the runs are of several.
void note_benchmark(const Group& group, const std::vector<Value>& names, RenderedResult& joined) {
  std::vector<std::string> ids;
  for (const auto& [run, table] : group.members) ids.insert(ids.begin(), names[run].str());
  joined.table.notes.insert(
      joined.table.notes.begin(),
      {"", fmt::format("this table is of benchmark '{}', run{} {}", group.benchmark,
                       ids.size() == 1 ? "" : "s", join(ids, ", "))});
}

// The tables of one run, computed by its own definitions.
bool tables_of_run(const Settings& settings, const Run& run, Evaluator& evaluator,
                   std::set<std::string>* said, std::vector<RunTable>* tables) {
  std::vector<WorkpackageView> views;
  if (!read_views(settings, run, run.definitions(), &views)) return false;
  Diagnostics diagnostics = result_diagnostics(settings);
  RenderOptions options;
  options.write = false;
  for (const Result& result : run.definitions().results) {
    const Records records =
        result_records(run.definitions(), result, views, evaluator, diagnostics);
    const ResultTables maker(run.definitions(), records, evaluator, diagnostics);
    for (RenderedResult& one : render(run.definitions(), result, maker, options, "", diagnostics)) {
      const Table* table = table_of(result, one);
      if (table != nullptr) tables->push_back({&result, table, std::move(one)});
    }
  }
  print_once(settings, diagnostics, run.sources(), said);
  return !diagnostics.has_errors();
}

}  // namespace

bool join_tables(const Settings& settings, std::span<const Run> runs,
                 std::vector<std::vector<RunTable>> of_runs, const RenderOptions& options,
                 std::vector<RunTable>* joined) {
  const std::vector<Value> names = names_of_runs(runs);
  const Rules& rules = runs.back().definitions().rules;
  const bool one_benchmark = rules.tables_join_one_benchmark;
  const bool several =
      one_benchmark && std::any_of(runs.begin(), runs.end(), [&](const Run& run) {
        return run.definitions().name.value != runs.back().definitions().name.value;
      });
  bool fine = true;
  for (const Group& group : groups_of(runs, one_benchmark, of_runs)) {
    const RunTable& newest = *group.members.front().second;
    RunTable out{newest.result, newest.table, {}};
    std::vector<RunPart> parts;
    for (auto member = group.members.rbegin(); member != group.members.rend(); ++member) {
      const Run& run = runs[member->first];
      parts.push_back({names[member->first], &run.definitions(), member->second->table,
                       &run.sources(), std::move(member->second->rendered), member->first});
    }
    const JoinOptions how{rules, !settings.called_as_jube};
    if (Status made = join_parts(std::move(parts), options, how, &out.rendered); !made) {
      print_error(settings, made.message());
      fine = false;
      continue;
    }
    if (several) note_benchmark(group, names, out.rendered);
    joined->push_back(std::move(out));
  }
  return fine;
}

bool tables_of_runs(const Settings& settings, std::span<const Run> runs,
                    std::vector<RunTable>* tables) {
  const std::unique_ptr<Evaluator> evaluator = make_result_evaluator(settings);
  std::vector<std::vector<RunTable>> of_runs;
  std::set<std::string> said;
  bool fine = true;
  for (const Run& run : runs)
    fine = tables_of_run(settings, run, *evaluator, &said, &of_runs.emplace_back()) && fine;
  if (!fine) return false;
  if (runs.size() > 1) return join_tables(settings, runs, std::move(of_runs), {}, tables);
  *tables = std::move(of_runs.front());
  return true;
}

void print_once(const Settings& settings, const Diagnostics& diagnostics, const Sources& sources,
                std::set<std::string>* said) {
  if (said->insert(diagnostics.format(sources)).second)
    print_diagnostics(settings, diagnostics, sources);
}

}  // namespace tally
