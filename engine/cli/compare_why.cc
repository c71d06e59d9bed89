// tally compare --why: the difference of two steps over the bars of their waterfalls.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "engine/cli/explained.h"
#include "engine/cli/option_parsing.h"
#include "engine/cli/prepare.h"
#include "engine/cli/runs.h"
#include "engine/report/grid.h"

namespace tally {
namespace {

class WhyCommand {
 public:
  WhyCommand(const Settings& settings, const CompareArgs& args)
      : settings_(settings), args_(args) {}

  int run() {
    if (!args_.by.empty() || !args_.metric.empty() || !args_.better.empty() ||
        args_.null_comparison) {
      print_error(settings_, "--why compares the bars of two steps, and no columns",
                  "leave out --by, --metric, --better and --null");
      return kBadInput;
    }
    if (args_.style == "json") {
      print_error(settings_, "--why has no JSON", "take -s csv");
      return kBadInput;
    }
    std::vector<ExplainedSide> sides;
    if (!sides_of_words(&sides)) return kBadInput;
    return show(sides.front(), sides.back());
  }

 private:
  bool sides_of_words(std::vector<ExplainedSide>* sides) const {
    std::vector<std::string> words = args_.runs;
    if (!args_.ids.empty()) {
      const std::vector<RunDirectory> found =
          find_runs(settings_, {words.empty() ? "." : words.front(), args_.ids});
      if (found.empty()) return false;
      words.clear();
      for (const RunDirectory& one : found) words.push_back(one.path);
    }
    if (words.size() != 2) {
      print_error(settings_, fmt::format("--why compares two steps, not {}", words.size()),
                  "name two runs, two records of tally-train or two workpackages' folders");
      return false;
    }
    for (const std::string& word : words) {
      ExplainedSide& side = sides->emplace_back();
      side.name = word;
      if (!points_of(word, &side.points)) return false;
      if (!side.points.empty()) continue;
      print_error(settings_, fmt::format("{}: nothing in it explains where its time went", word),
                  "run it again with `tally-train --explain --record FILE`");
      return false;
    }
    return true;
  }

  // A record, a workpackage's folder, or a run.
  bool points_of(const std::string& word, std::vector<ExplainedPoint>* points) const {
    if (is_file(word)) {
      std::optional<TimeWaterfall> one;
      if (print_if_error(settings_, read_waterfall(word, &one))) return false;
      if (one) points->push_back({{}, {}, *one, 1});
      return true;
    }
    std::error_code ignored;
    if (std::filesystem::is_directory(word + "/work", ignored)) {
      std::vector<TimeWaterfall> found;
      if (print_if_error(settings_, waterfalls_in(word + "/work", &found))) return false;
      if (!found.empty()) points->push_back({{}, {}, mean_of(found), found.size()});
      return true;
    }
    const std::vector<RunDirectory> found = find_runs(settings_, {word, {}});
    if (found.empty()) return false;
    const auto run = open_results(settings_, found.front());
    return run && !print_if_error(settings_, explained_points(*run, points));
  }

  int show(const ExplainedSide& base, const ExplainedSide& other) const {
    const std::vector<ExplainedPair> pairs = pairs_of(base.points, other.points);
    if (pairs.empty()) {
      print_error(settings_, "no point of the first run is in the second one",
                  "name a workpackage's folder of each, as OUTPATH/000003/000001_train");
      return kBadInput;
    }
    const size_t lone = base.points.size() + other.points.size() - 2 * pairs.size();
    for (const ExplainedPair& pair : pairs) show_pair(base.name, other.name, pair);
    if (lone > 0)
      fmt::print(stderr, "note: {} point{} in one of the runs alone\n", lone,
                 lone == 1 ? " is" : "s are");
    return kFine;
  }

  void show_pair(const std::string& base, const std::string& other,
                 const ExplainedPair& pair) const {
    const TimeWaterfall& before = pair.base->waterfall;
    const TimeWaterfall& after = pair.other->waterfall;
    const Grid grid = why_grid(before, after);
    const std::string label = label_of(*pair.base);
    if (args_.style == "csv") {
      fmt::print("{}", layout(grid, "why", {}));
      return;
    }
    fmt::print("{}{}{}\n\n", label, label.empty() ? "" : ": ",
               why_sentence(base, before, other, after));
    fmt::print("{}\n", args_.style == "markdown"
                           ? markdown(grid, false, "why")
                           : layout(for_stdout(grid), "why", {TableStyle::pretty}));
    note_remainder(base, before);
    note_remainder(other, after);
  }

  static void note_remainder(const std::string& name, const TimeWaterfall& waterfall) {
    constexpr double kMost = 0.02;
    for (const TimeBar& bar : waterfall.bars) {
      const double share = bar.seconds / waterfall.seconds;
      if (bar.name != "remainder" || (share <= kMost && share >= -kMost)) continue;
      fmt::print(stderr, "note: the bars of {} leave {:.1f} % of its step unexplained\n", name,
                 100 * share);
    }
  }

  const Settings& settings_;
  const CompareArgs& args_;
};

}  // namespace

int compare_why_command(const Settings& settings, const CompareArgs& args) {
  return WhyCommand(settings, args).run();
}

}  // namespace tally
