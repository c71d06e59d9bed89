#include "engine/results/judge/definition_changes.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/base/secrets.h"
#include "engine/base/text.h"
#include "engine/results/read/patterns.h"
#include "engine/results/rows/point_key.h"
#include "engine/results/table/columns.h"

namespace tally {
namespace {

// Marks are no part of a definition: a line may have moved.
using Definition = std::vector<std::string>;

Definition as_definition(const Column& column) {
  Definition out = {column.expression.value,
                    column.statistic == nullptr ? "" : column.statistic->word,
                    std::to_string(static_cast<int>(column.uncertainty))};
  for (const auto& [name, value] : column.relative_to) {
    out.push_back(name.value);
    out.push_back(value.value);
  }
  return out;
}

Definition as_definition(const Pattern& pattern) {
  return {pattern.value.value, std::to_string(static_cast<int>(pattern.mode)),
          std::to_string(static_cast<int>(pattern.type)),
          pattern.default_value ? "=" + *pattern.default_value : "",
          pattern.dotall ? "dotall" : ""};
}

Definition as_definition(const Analyser& analyser) {
  Definition out = {analyser.reduce ? "reduce" : ""};
  for (const Text& use : analyser.use) out.push_back(use.value);
  for (const Analyse& analyse : analyser.analyse) {
    out.push_back("step " + analyse.step.value);
    for (const AnalyseFile& file : analyse.files) {
      out.push_back("file " + file.path.value);
      for (const Text& use : file.use) out.push_back(use.value);
    }
  }
  return out;
}

// Definitions of one kind by what they are called in a message. Several may have one name.
using NamedDefinitions = std::map<std::string, std::vector<Definition>>;

NamedDefinitions columns_of(const Table& table) {
  NamedDefinitions out;
  for (const Column& column : table.columns)
    out["column '" + column_key(column) + "'"].push_back(as_definition(column));
  return out;
}

// Whether one of the words is the pattern, or a statistic of it: rate_avg, rate_median,
// rate_avg_median.
bool uses(const std::set<std::string>& words, const std::string& pattern) {
  return std::ranges::any_of(words,
                             [&](const std::string& word) { return is_value_of(word, pattern); });
}

NamedDefinitions named_patterns(const Benchmark& benchmark, const std::set<std::string>& words) {
  NamedDefinitions out;
  for (const Pattern& pattern : all_patterns(benchmark)) {
    if (uses(words, pattern.name.value))
      out["pattern '" + pattern.name.value + "'"].push_back(as_definition(pattern));
  }
  return out;
}

NamedDefinitions analysers_of(const Benchmark& benchmark) {
  NamedDefinitions out;
  for (const Analyser& analyser : benchmark.analysers)
    out["analyser '" + analyser.name.value + "'"].push_back(as_definition(analyser));
  return out;
}

void add_changed(const NamedDefinitions& before, const NamedDefinitions& after,
                 std::vector<std::string>& out) {
  for (const auto& [name, definitions] : after) {
    const auto found = before.find(name);
    if (found != before.end() && found->second != definitions) out.push_back(name);
  }
}

using Texts = std::map<std::string, Definition>;  // what defines the work, by what it is called

Definition commands_of(const Step& step) {
  Definition out;
  if (!step.launch.value.empty()) out.push_back(step.launch.value);
  for (const Step& component : step.components) out.push_back(component.launch.value);
  for (const Operation& operation : step.operations) {
    out.push_back(operation.command.value);
    if (operation.active.value != "true") out.push_back("active: " + operation.active.value);
  }
  return out;
}

Definition resources_of(const Step& step) {
  const Resources& r = step.resources;
  Definition out;
  const std::pair<const char*, const Text*> all[] = {
      {"nodes", &r.nodes},        {"tasks", &r.tasks_per_node}, {"cpus", &r.cpus_per_task},
      {"gpus", &r.gpus_per_node}, {"partition", &r.partition},  {"memory", &r.memory},
      {"hint", &r.hint}};
  for (const auto& [name, text] : all) {
    if (!text->value.empty()) out.push_back(std::string(name) + "=" + text->value);
  }
  for (const Step& component : step.components) {
    out.emplace_back("component");
    for (std::string& one : resources_of(component)) out.push_back(std::move(one));
  }
  return out;
}

Definition environment_of(const Step& step) {
  Definition out;
  for (const auto& [name, value] : step.env) out.push_back(name.value + "=" + value.value);
  for (const Text& name : step.env_unset) out.push_back("unset " + name.value);
  for (const Text& module : step.modules) out.push_back("module " + module.value);
  if (!step.container.image.value.empty()) out.push_back("image " + step.container.image.value);
  return out;
}

Texts work_of(const Benchmark& benchmark, const std::set<std::string>& joined) {
  Texts out;
  for (const Parameter& parameter : all_parameters(benchmark)) {
    const std::string& name = parameter.name.value;
    const std::string& text = parameter.value.value;
    if (joined.count(name) == 0)
      out["parameter '" + name + "'"].push_back(names_secret(name) ? "(secret)" : text);
  }
  for (const Step& step : benchmark.steps) {
    const std::string of = " of step '" + step.name.value + "'";
    out["the commands" + of] = commands_of(step);
    out["the resources" + of] = resources_of(step);
    out["the environment" + of] = environment_of(step);
  }
  for (const auto& [set_name, set] : benchmark.substitute_sets) {
    Definition& texts = out["substituteset '" + set_name + "'"];
    for (const Substitution& one : set.substitutions)
      texts.push_back(one.source.value + " -> " + one.dest.value);
  }
  return out;
}

// The first text that the other definition does not have.
std::string first_new(const Definition& own, const Definition& other) {
  constexpr size_t kMost = 100;
  for (const std::string& one : own) {
    if (contains(other, one)) continue;
    const std::string line = one_line(strip(one));
    size_t end = std::min(line.size(), kMost);
    while (end < line.size() && (static_cast<unsigned char>(line[end]) & 0xC0U) == 0x80U) --end;
    return end == line.size() ? line : line.substr(0, end) + "...";
  }
  return "nothing else";
}

// The unit of each pattern that a column uses. One with several units has none of them here.
std::map<std::string, std::string> units_of(const Benchmark& benchmark,
                                            const std::set<std::string>& words) {
  std::map<std::string, std::set<std::string>> all;
  for (const Pattern& pattern : all_patterns(benchmark)) {
    if (!pattern.unit.empty() && uses(words, pattern.name.value))
      all[pattern.name.value].insert(pattern.unit);
  }
  std::map<std::string, std::string> units;
  for (const auto& [name, of_name] : all) {
    if (of_name.size() == 1) units.emplace(name, *of_name.begin());
  }
  return units;
}

}  // namespace

std::vector<UnitChange> unit_changes(const Benchmark& before, const Benchmark& after,
                                     const Column& column) {
  std::set<std::string> words = {column.name.value};
  add_words(column.expression.value, words);
  const std::map<std::string, std::string> old_units = units_of(before, words);
  std::vector<UnitChange> changes;
  for (const auto& [name, unit] : units_of(after, words)) {
    const auto old = old_units.find(name);
    if (old != old_units.end() && old->second != unit) changes.push_back({name, old->second, unit});
  }
  return changes;
}

std::vector<WorkChange> work_changes(const Benchmark& before, const Benchmark& after) {
  const std::set<std::string> joined = free_parameters(after);
  const Texts old_work = work_of(before, joined);
  const Texts new_work = work_of(after, joined);
  std::set<std::string> names;
  for (const Texts* work : {&old_work, &new_work}) {
    for (const auto& [name, texts] : *work) names.insert(name);
  }
  std::vector<WorkChange> changes;
  for (const std::string& name : names) {
    const auto find = [&](const Texts& work) {
      const auto found = work.find(name);
      return found == work.end() ? Definition{} : found->second;
    };
    const Definition old_texts = find(old_work);
    const Definition new_texts = find(new_work);
    if (old_texts != new_texts)
      changes.push_back({name, first_new(old_texts, new_texts), first_new(new_texts, old_texts)});
  }
  return changes;
}

std::vector<std::string> table_changes(const Benchmark& before, const Table& table_before,
                                       const Benchmark& after, const Table& table_after) {
  std::vector<std::string> out;
  if (strip(table_before.filter.value) != strip(table_after.filter.value))
    out.emplace_back("filter");
  add_changed(columns_of(table_before), columns_of(table_after), out);
  std::set<std::string> words = names_in(table_before);
  words.merge(names_in(table_after));
  add_changed(named_patterns(before, words), named_patterns(after, words), out);
  add_changed(analysers_of(before), analysers_of(after), out);
  return out;
}

}  // namespace tally
