#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "engine/base/text.h"
#include "engine/report/html_report.h"

namespace tally {
namespace {

struct VerdictCounts {
  size_t workpackages = 0, unfinished = 0, failed = 0;
  size_t held = 0, missed = 0, warned = 0;
  std::map<std::string, size_t> doubtful;  // rows by mark
  size_t empty_cells = 0, empty_tables = 0, lost_charts = 0;
};

VerdictCounts counts_of(const Report& report) {
  VerdictCounts out;
  for (const ReportRun& run : report.runs) {
    out.workpackages += run.workpackages;
    out.unfinished += run.unfinished;
    for (const ReportFailure& failure : run.failures) out.failed += failure.count;
  }
  for (const ReportTable& table : report.tables) {
    out.held += static_cast<size_t>(std::max(0, table.references_passed));
    out.missed += table.missed.size();
    out.warned += table.warned.size();
    for (const auto& [mark, rows] : table.doubtful) {
      size_t& most = out.doubtful[mark];
      most = std::max(most, rows);  // the tables show the same work
    }
    out.empty_cells += table.empty_cells;
    out.empty_tables += table.grid.rows.empty() ? 1 : 0;
  }
  for (const ReportChart& chart : report.charts) out.lost_charts += chart.svg.empty() ? 1 : 0;
  return out;
}

std::string several(size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string of_all(size_t count, size_t all, const char* what) {
  return all <= count ? several(count, what) : fmt::format("{} of {}", count, several(all, what));
}

// The faults that keep a report from being fine, besides misses and failures.
std::vector<std::string> doubts_of(const VerdictCounts& counts) {
  std::vector<std::string> doubts;
  if (counts.unfinished > 0)
    doubts.push_back(of_all(counts.unfinished, counts.workpackages, "workpackage") +
                     (counts.unfinished == 1 ? " has not ended" : " have not ended"));
  if (counts.warned > 0)
    doubts.push_back(several(counts.warned, "reference") + " with `action: warn` missed");
  for (const auto& [mark, rows] : counts.doubtful)
    doubts.push_back(several(rows, "row") + " " + mark);
  if (counts.empty_cells > 0)
    doubts.push_back(several(counts.empty_cells, "cell") + " without a value");
  if (counts.empty_tables > 0)
    doubts.push_back(several(counts.empty_tables, "table") + " without rows");
  if (counts.lost_charts > 0) doubts.push_back(several(counts.lost_charts, "chart") + " not drawn");
  return doubts;
}

}  // namespace

const char* ReportVerdict::sign() const {
  return verdict == ReportLevel::fine ? "✓" : verdict == ReportLevel::warned ? "!" : "✗";
}

ReportVerdict verdict_of(const Report& report) {
  const VerdictCounts counts = counts_of(report);
  ReportVerdict out;
  std::vector<std::string> bad;
  const std::vector<std::string> doubtful = doubts_of(counts);
  if (counts.missed > 0)
    bad.push_back(of_all(counts.missed, counts.held + counts.missed, "reference") + " missed");
  if (counts.failed > 0)
    bad.push_back(of_all(counts.failed, counts.workpackages, "workpackage") + " failed");
  if (!bad.empty()) {
    out.verdict = ReportLevel::bad;
    bad.insert(bad.end(), doubtful.begin(), doubtful.end());
    out.sentence = join(bad, ", ") + ".";
    return out;
  }
  std::vector<std::string> good;
  const size_t done = counts.workpackages - std::min(counts.workpackages, counts.unfinished);
  if (done > 0) good.push_back(several(done, "workpackage") + " done");
  if (counts.held > 0) good.push_back(several(counts.held, "reference") + " held");
  out.verdict = doubtful.empty() ? ReportLevel::fine : ReportLevel::warned;
  if (doubtful.empty()) {
    out.sentence = good.empty() ? "Nothing failed." : "All fine: " + join(good, ", ") + ".";
    return out;
  }
  out.sentence = (good.empty() ? "But " : join(good, ", ") + ", but ") + join(doubtful, ", ") + ".";
  return out;
}

}  // namespace tally
