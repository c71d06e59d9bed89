#include "engine/workflow/pattern_uses.h"

#include <algorithm>
#include <map>

namespace tally {
namespace {

// Fortran's exponents are numbers, too: D and Q (0.5D+02, 1.d0), and none before one of three
// digits (1.0-100). A letter behind them makes it a name.
const std::string* own_building_block(std::string_view name) {
  // The look ahead spares a number without an exponent the alternatives.
  static const std::string exponent =
      R"((?:(?=[-+DEQdeq])(?:[eE][-+]?\d+|[dDqQ][-+]?\d+(?!\w)|[-+]\d{3}(?!\w|\.\d))))";
  static const std::string number = R"([+-]?(?:(?:\d+\.\d+|\d+\.(?=)" + exponent + R"()|\.\d+))" +
                                    exponent + R"(?|\d+(?:[eE][-+]?\d+|[dDqQ][-+]?\d+(?!\w))?))";
  static const std::string with_group = "(" + number + ")";
  static const std::string without_group = "(?:" + number + ")";
  if (name == "jube_pat_fp") return &with_group;
  return name == "jube_pat_nfp" ? &without_group : nullptr;
}

const std::map<std::string, std::string, std::less<>>& all_blocks() {
  static const std::map<std::string, std::string, std::less<>> blocks = {
      {"jube_pat_int", R"(([+-]?\d+))"},
      {"jube_pat_nint", R"((?:[+-]?\d+))"},
      {"jube_pat_fp", R"(([+-]?(?:\d*\.?\d+(?:[eE][-+]?\d+)?|\d+\.)))"},
      {"jube_pat_nfp", R"((?:[+-]?(?:\d*\.?\d+(?:[eE][-+]?\d+)?|\d+\.)))"},
      {"jube_pat_wrd", R"((\S+))"},
      {"jube_pat_nwrd", R"((?:\S+))"},
      {"jube_pat_bl", R"((?:\s+))"}};
  return blocks;
}

}  // namespace

const std::string* pattern_building_block(std::string_view name, bool fortran) {
  if (const std::string* own = fortran ? own_building_block(name) : nullptr) return own;
  const auto found = all_blocks().find(name);
  return found == all_blocks().end() ? nullptr : &found->second;
}

std::vector<std::string> pattern_block_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : all_blocks()) names.push_back(name);
  return names;
}

std::vector<const Pattern*> patterns_of(const Benchmark& benchmark, const std::vector<Text>& use) {
  std::vector<const Pattern*> patterns;
  for (const Text& name : use) {
    auto set = benchmark.pattern_sets.find(name.value);
    if (set == benchmark.pattern_sets.end()) continue;
    for (const Pattern& pattern : set->second.patterns) patterns.push_back(&pattern);
  }
  return patterns;
}

std::vector<const Pattern*> patterns_for(const Benchmark& benchmark, const Analyser& analyser,
                                         const AnalyseFile& file) {
  std::vector<Text> use = analyser.use;
  use.insert(use.end(), file.use.begin(), file.use.end());
  std::vector<const Pattern*> patterns;
  for (const Pattern* one : patterns_of(benchmark, use)) {
    auto same = [&](const Pattern* other) { return other->name.value == one->name.value; };
    if (std::ranges::none_of(patterns, same)) patterns.push_back(one);
  }
  return patterns;
}

std::vector<RateTimes> rate_times(const Benchmark& benchmark, const Analyser& analyser) {
  std::vector<std::pair<const AnalyseFile*, std::vector<const Pattern*>>> files;
  for (const Analyse& analyse : analyser.analyse) {
    for (const AnalyseFile& file : analyse.files)
      files.emplace_back(&file, patterns_for(benchmark, analyser, file));
  }
  std::vector<RateTimes> rates;
  for (const auto& [file, patterns] : files) {
    for (const Pattern* one : patterns) {
      const bool known = std::ranges::any_of(
          rates, [one = one](const RateTimes& rate) { return rate.rate == one; });
      if (!one->measured_over.value.empty() && !known) rates.push_back({one, {}});
    }
  }
  for (RateTimes& rate : rates) {
    std::vector<SearchedIn> all;
    for (const auto& [file, patterns] : files) {
      const bool near = std::ranges::find(patterns, rate.rate) != patterns.end();
      for (const Pattern* one : patterns) {
        if (one->name.value != rate.rate->measured_over.value) continue;
        all.emplace_back(file, one);
        if (near) rate.times.emplace_back(file, one);
      }
    }
    if (rate.times.empty()) rate.times = std::move(all);
  }
  return rates;
}

std::vector<Text> used_pattern_sets(const Analyser& analyser) {
  std::vector<Text> uses = analyser.use;
  for (const Analyse& analyse : analyser.analyse) {
    for (const AnalyseFile& file : analyse.files)
      uses.insert(uses.end(), file.use.begin(), file.use.end());
  }
  return uses;
}

std::set<const Pattern*> patterns_of_rows(const Benchmark& benchmark, const Analyser& analyser) {
  const auto is_row = [&](const Pattern& pattern) {
    return std::ranges::any_of(analyser.rows,
                               [&](const Text& row) { return row.value == pattern.name.value; });
  };
  std::set<const Pattern*> patterns;
  for (const auto& [name, set] : benchmark.pattern_sets) {
    if (std::ranges::none_of(set.patterns, is_row)) continue;
    for (const Pattern& pattern : set.patterns) patterns.insert(&pattern);
  }
  return patterns;
}

namespace {

void add_ancestors(const Benchmark& benchmark, const std::string& step,
                   std::set<std::string>& names) {
  const Step* found = benchmark.find_step(step);
  if (found == nullptr) return;
  for (const Text& parent : found->depend) {
    if (names.insert(parent.value).second) add_ancestors(benchmark, parent.value, names);
  }
}

}  // namespace

std::set<std::string> steps_read(const Benchmark& benchmark, const Analyse& analyse,
                                 const AnalyseFile& file) {
  std::set<std::string> read;
  if (file.path.value.find('/') == std::string::npos) return read;
  std::set<std::string> ancestors;
  add_ancestors(benchmark, analyse.step.value, ancestors);
  std::string folder;
  for (const char c : file.path.value) {
    if (c == '/' && ancestors.count(folder) != 0) read.insert(folder);
    if (c == '/' || c == ',' || c == ' ') {
      folder.clear();
    } else {
      folder += c;
    }
  }
  return read;
}

}  // namespace tally
