#include "engine/plan/source_check.h"

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/workspace/substitute_files.h"

namespace tally {
namespace {

// Whether the source is the same for every workpackage and outside the work directory.
bool is_constant(const FileCopy& entry) {
  return !entry.internal && entry.active.value == "true" && !has_dollar(entry.source.value) &&
         !has_dollar(entry.source_dir) && !has_dollar(entry.file_path_ref) &&
         !has_dollar(entry.target.value);
}

void check_set(const FileSet& set, const std::string& step, bool first, Diagnostics& diagnostics) {
  for (const auto& entry : set.entries) {
    const auto* copy = std::get_if<FileCopy>(&entry);
    if (copy == nullptr) return;  // a prepare command may create the files that follow
    if (!is_constant(*copy)) continue;
    std::vector<PlannedFile> files;
    const Status found = list_files(
        *copy, [](std::string_view) { return nullptr; }, "", &files);
    if (found) continue;
    const std::string message = fmt::format("step '{}': {}", step, found.message());
    if (first) {
      diagnostics.error(copy->source.mark, message,
                        "relative paths start from the input file's folder");
    } else {
      diagnostics.warning(copy->source.mark, message,
                          "the step waits for no other: does one that runs before make it?");
    }
  }
}

}  // namespace

void check_sources(const Benchmark& benchmark, Diagnostics& diagnostics) {
  for (const Step& step : benchmark.steps) {
    if (!step.depend.empty() || step.active.value != "true") continue;
    for (const Text& use : step.use) {
      for (const std::string& name : split_strip(use.value, ",")) {
        const auto set = benchmark.file_sets.find(name);
        if (set == benchmark.file_sets.end()) continue;
        check_set(set->second, step.name.value, &step == &benchmark.steps.front(), diagnostics);
      }
    }
  }
}

}  // namespace tally
