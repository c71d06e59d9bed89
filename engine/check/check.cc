#include "engine/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/check/build.h"
#include "engine/check/elements.h"
#include "engine/check/job_check.h"
#include "engine/check/name_check.h"
#include "engine/check/other_files.h"
#include "engine/check/parameter_check.h"
#include "engine/check/result_check.h"
#include "engine/check/schema_check.h"
#include "engine/check/sets.h"
#include "engine/check/tags_and_selection.h"
#include "engine/read/input_files.h"

namespace tally {

namespace {

// Applies a benchmark's file_path_ref, which replaces the input file's folder. Paths in that folder
// or below it are moved to the new folder.
void move_files(const std::string& home, const std::string& folder, FileSet* set) {
  for (auto& entry : set->entries) {
    auto* copy = std::get_if<FileCopy>(&entry);
    if (copy == nullptr) continue;
    std::string& path = copy->file_path;
    if (path == home) {
      path = folder;
    } else if (starts_with(path, home + "/")) {
      path = join_path(folder, path.substr(home.size() + 1));
    }
  }
}

Benchmark make_benchmark(const Element& root, const Element& element, const SetFile& home,
                         SetBuilder& sets, Diagnostics& diagnostics) {
  Benchmark benchmark;
  auto text = [&](const char* name) {
    const Attribute* found = element.find(name);
    return found ? Text{std::string(strip(found->value.value)), found->value.mark} : Text{};
  };
  benchmark.name = text("name");
  benchmark.outpath = text("outpath");
  benchmark.file_path = home.directory;
  benchmark.input_file = home.path;
  const std::string reference = expand_path(text("file_path_ref").value);
  if (!reference.empty()) benchmark.file_path = join_path(home.directory, reference);
  sets.add_all(root, home, &benchmark);
  sets.add_all(element, home, &benchmark);
  build_benchmark(element, home, sets, &benchmark, diagnostics);
  if (!reference.empty()) {
    for (auto& [name, set] : benchmark.file_sets)
      move_files(home.directory, benchmark.file_path, &set);
  }
  return benchmark;
}

void check_unique_names(const std::vector<Benchmark>& benchmarks, Diagnostics& diagnostics) {
  std::map<std::string, Mark> seen;
  for (const Benchmark& benchmark : benchmarks) {
    if (benchmark.name.value.empty()) continue;
    auto inserted = seen.emplace(benchmark.name.value, benchmark.name.mark);
    if (inserted.second) continue;
    diagnostics.error(benchmark.name.mark,
                      fmt::format("benchmark '{}' is defined twice", benchmark.name.value));
    diagnostics.note(inserted.first->second, "the first one is here");
  }
}

// Removes what a new definition of a run's results does not use, so that no fault in it is
// reported.
void remove_work(Element* element) {
  const auto is_work = [](const Element& child) {
    return child.name == "step" || (is_set(child.name) && child.name != "patternset");
  };
  std::erase_if(element->children, is_work);
  for (Element& child : element->children) {
    if (child.name == "benchmark") remove_work(&child);
  }
}

// Gives the new definition of a run's results the work that the run has done.
void add_work(const Benchmark& run, Benchmark* benchmark) {
  benchmark->parameter_sets = run.parameter_sets;
  benchmark->substitute_sets = run.substitute_sets;
  benchmark->file_sets = run.file_sets;
  benchmark->steps = run.steps;
}

// The benchmark as the document describes it today, beside the run that was made. Null: the document
// has patterns and results alone, or faults.
std::shared_ptr<const Benchmark> benchmark_of_today(const Document& document, CheckOptions options,
                                                    Sources sources, const std::string& name) {
  options.run = nullptr;
  Diagnostics ignored;
  std::optional<Workflow> own = check_document(document, options, sources, ignored);
  if (!own) return nullptr;
  for (Benchmark& one : own->benchmarks) {
    if (one.name.value == name && !one.steps.empty())
      return std::make_shared<const Benchmark>(std::move(one));
  }
  return nullptr;
}

void check_benchmark(const Benchmark& benchmark, const CheckOptions& options,
                     const RemovedNames& removed, const Sources& sources,
                     Diagnostics& diagnostics) {
  // Names that a run has stored were accepted when it was begun.
  const bool strict_names = benchmark.rules.unknown_names_are_errors && !options.stored;
  check_statistics(benchmark, diagnostics);
  if (strict_names) check_numbers(benchmark, diagnostics);
  if (options.run != nullptr) {
    check_named_by_results(benchmark, removed, strict_names, sources, diagnostics);
    return;
  }
  check_named(benchmark, removed, strict_names, sources, diagnostics);
  check_dollar_names(benchmark, strict_names, sources, diagnostics);
  check_parameters(benchmark, options.strict || benchmark.rules.harmless_mistakes_are_errors,
                   diagnostics);
  if (strict_names) check_types(benchmark, diagnostics);
  if (!options.stored) check_job_scripts(benchmark, diagnostics);
  if (!options.stored) check_result_steps(benchmark, diagnostics);
}

// JUBE refuses a file that says it was written for a newer JUBE.
void check_version(const Element& root, bool strict, Diagnostics& diagnostics) {
  constexpr std::array kNewest = {2, 7, 1};
  const Attribute* version = root.find("version");
  if (version == nullptr) return;
  std::array<int, 3> numbers = {};
  size_t count = 0;
  bool valid = true;
  for (const std::string& part : split_strip(version->value.value, ".")) {
    valid = valid && count < numbers.size() && !part.empty() && part.size() < 6 &&
            std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    if (valid) numbers[count++] = std::stoi(part);
  }
  if (valid && numbers <= kNewest) return;
  const std::string message =
      valid ? fmt::format("the file was written for JUBE {}, which is newer than 2.7.1",
                          version->value.value)
            : fmt::format("invalid version number '{}'", version->value.value);
  const std::string hint = valid ? "what only that version has is not known here" : "2.7.1 is one";
  if (strict) {
    diagnostics.error(version->value.mark, message, hint);
  } else {
    diagnostics.warning(version->value.mark, message, hint);
  }
}

}  // namespace

std::optional<Workflow> check_document(const Document& document, const CheckOptions& options,
                                       Sources& sources, Diagnostics& diagnostics) {
  if (diagnostics.has_errors()) return std::nullopt;  // the document was not read completely
  Rules rules = rules_of(document.root, options.called_as_jube);
  // Results that are defined anew are in the language of the run.
  if (options.run != nullptr && options.run->rules == Rules::tally()) rules = Rules::tally();
  Element whole = document.root;
  if (options.run != nullptr) remove_work(&whole);
  if (rules.plain_values_as_written)
    use_core_values(document, options.plain_text, &whole, diagnostics);
  check_schema(whole, options.strict || rules.unknown_keys_are_errors, document.is_xml,
               diagnostics);
  if (!options.stored) check_version(whole, options.strict, diagnostics);

  std::set<std::string> tags = tags_in_force(document, options);
  std::set<std::string> used_tags;
  collect_tag_names(document.root, &used_tags);
  Element root = whole;
  remove_untagged(tags, &root);
  RemovedNames removed = removed_names(whole, root);

  SetFiles files(options, rules, tags, sources, diagnostics);
  const SetFile* home = files.add_main(document, root);
  SetBuilder sets(files, rules, *options.kinds, diagnostics);
  Workflow workflow;
  for (const Element* element : selected_benchmarks(home->document.root, options, diagnostics)) {
    workflow.benchmarks.push_back(
        make_benchmark(home->document.root, *element, *home, sets, diagnostics));
    workflow.benchmarks.back().rules = rules;
    for (Step& step : workflow.benchmarks.back().steps) {
      step.kinds = options.kinds;
      for (Step& component : step.components) component.kinds = options.kinds;
    }
    if (options.run == nullptr) continue;
    Benchmark& benchmark = workflow.benchmarks.back();
    add_work(*options.run, &benchmark);
    if (!options.stored)
      benchmark.today = benchmark_of_today(document, options, sources, benchmark.name.value);
  }
  used_tags.insert(files.used_tags().begin(), files.used_tags().end());
  // Names that tags removed from files of sets are not known one by one.
  removed["tags of other files"] = files.used_tags();
  const OtherFiles others{document, whole, options, rules, tags, sources};
  const bool own = rules.unknown_names_are_errors && !options.stored;
  if (own && !std::includes(used_tags.begin(), used_tags.end(), tags.begin(), tags.end()))
    used_tags.merge(tags_of_all_files(others));
  check_tag_rules(home->document.root, {tags, used_tags, own}, options, diagnostics);
  if (options.all_platforms) check_other_platforms(others, diagnostics);
  check_unique_names(workflow.benchmarks, diagnostics);
  for (const auto& set : options.set) apply_set(set, &workflow.benchmarks, diagnostics);
  for (const Benchmark& benchmark : workflow.benchmarks)
    check_benchmark(benchmark, options, removed, sources, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  workflow.tags.assign(tags.begin(), tags.end());
  return workflow;
}

}  // namespace tally
