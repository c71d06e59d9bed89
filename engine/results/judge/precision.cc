#include "engine/results/judge/precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/base/text.h"
#include "engine/results/read/views.h"
#include "engine/results/rows/groups.h"
#include "engine/results/rows/point_key.h"
#include "engine/results/table/repeats.h"

namespace tally {
namespace {

// The analyser that reads the metric of a step, for that step alone and without reducing repeats.
bool analyser_of(const Benchmark& benchmark, const Step& step, Analyser* out) {
  for (const Analyser& analyser : benchmark.analysers) {
    for (const Analyse& analyse : analyser.analyse) {
      if (analyse.step.value != step.name.value) continue;
      std::vector<Text> use = analyser.use;
      for (const AnalyseFile& file : analyse.files)
        use.insert(use.end(), file.use.begin(), file.use.end());
      const bool has_metric = std::ranges::any_of(use, [&](const Text& name) {
        const auto set = benchmark.pattern_sets.find(name.value);
        return set != benchmark.pattern_sets.end() &&
               std::ranges::any_of(set->second.patterns, [&](const Pattern& p) {
                 return p.name.value == step.until.metric.value;
               });
      });
      if (!has_metric) continue;
      *out = analyser;
      out->analyse = {analyse};
      out->reduce = false;
      return true;
    }
  }
  return false;
}

// The values that the repeats of one point have printed, and the repeats that have not started.
struct Repeats {
  std::vector<std::pair<int, double>> values;  // iteration, value
  std::vector<int> open;
};

Status values_of(const Benchmark& benchmark, const Step& step,
                 const std::vector<WorkpackageView>& views, Evaluator& evaluator,
                 std::map<int, double>* values) {
  Analyser analyser;
  const std::string& metric = step.until.metric.value;
  if (!analyser_of(benchmark, step, &analyser))
    return Status::error(
        fmt::format("no analyser reads '{}' of step '{}'", metric, step.name.value));
  Diagnostics diagnostics;
  std::vector<WorkpackageResult> each;
  analyse({benchmark, evaluator, diagnostics}, analyser, views, &each);
  for (const WorkpackageResult& one : each) {
    for (const auto& [name, value] : one.values) {
      if (name != metric || !value.number() || !std::isfinite(value.as_double())) continue;
      values->emplace(one.id, value.as_double());
    }
  }
  return Status::ok();
}

}  // namespace

Status repeats_not_needed(const Benchmark& benchmark, const Journal& journal,
                          const std::string& run_dir, Evaluator& evaluator, std::vector<int>* ids) {
  std::vector<WorkpackageView> views;
  TRY(workpackage_views(benchmark, journal, run_dir, &views));
  const auto known = std::make_shared<const Points>(views, benchmark.rules.fractions_are_kept);
  const std::set<std::string> varying = varying_parameters(benchmark);
  const std::unordered_map<int, size_t> families = find_families(
      by_id(views),
      [&](const WorkpackageView& view) { return key_of_repeats(known, view, varying); },
      [](const WorkpackageView&) { return std::string(); });
  for (const Step& step : benchmark.steps) {
    if (step.until.metric.value.empty()) continue;
    std::map<int, double> values;
    TRY(values_of(benchmark, step, views, evaluator, &values));
    std::map<size_t, Repeats> points;
    for (const WorkpackageView& view : views) {
      if (view.step != step.name.value || is_warmup(benchmark, view)) continue;
      Repeats& point = points[families.at(view.id)];
      const auto value = values.find(view.id);
      if (view.state == State::done && value != values.end())
        point.values.emplace_back(view.iteration, value->second);
      if (view.state == State::pending) point.open.push_back(view.id);
    }
    for (const auto& [family, point] : points) {
      statistics::Sample sample;
      for (const auto& [iteration, value] : point.values) sample.push_back(value);
      const double half_width = relative_half_width(sample);
      const bool enough = static_cast<int>(sample.size()) >= step.until.min && half_width >= 0 &&
                          half_width <= step.until.half_width;
      if (enough) ids->insert(ids->end(), point.open.begin(), point.open.end());
    }
  }
  return Status::ok();
}

}  // namespace tally
