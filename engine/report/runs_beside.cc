#include "engine/report/runs_beside.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/base/text.h"
#include "engine/results/table/columns.h"
#include "engine/results/table/marks.h"

namespace tally {
namespace {

class BesideMaker {
 public:
  BesideMaker(const RenderedResult& joined, const std::vector<std::string>& parameters)
      : joined_(joined), point_(joined.table.columns, parameters, 1) {
    for (size_t i = 1; i < joined.table.columns.size(); ++i) {
      const ColumnInfo& info = joined.table.columns[i].info;
      if (!point_.has(i) && info.kind != ColumnKind::own && info.numeric()) metrics_.push_back(i);
    }
  }

  RunsBeside make() {
    if (metrics_.empty() || !gather() || runs_.size() < 2) return {};
    RunsBeside out;
    const std::vector<std::string>& names = joined_.grid.header;
    for (const size_t key : point_.columns()) {
      out.grid.header.push_back(names[key]);
      out.numeric.push_back(joined_.table.columns[key].info.numeric());
    }
    const bool two = runs_.size() == 2;
    for (const size_t metric : metrics_) {
      for (const std::string& run : runs_)
        out.grid.header.push_back(fmt::format("{}, run {}", names[metric], run));
      if (two) out.grid.header.emplace_back("change");
    }
    out.numeric.resize(out.grid.header.size(), true);
    out.grid.widths.resize(out.grid.header.size(), 0);
    for (const auto& [point, rows] : points_) out.grid.rows.push_back(line(point, rows, two));
    return out;
  }

 private:
  // Whether each run has one row for each point.
  bool gather() {
    std::map<std::vector<std::string>, size_t> indexes;
    for (size_t i = 0; i < joined_.grid.rows.size(); ++i) {
      const std::vector<std::string>& cells = joined_.grid.rows[i];
      std::vector<std::string> point;
      for (const size_t key : point_.columns()) point.push_back(cells[key]);
      const auto [at, is_new] = indexes.try_emplace(point, points_.size());
      if (is_new) points_.emplace_back(point, std::map<std::string, size_t>());
      if (!points_[at->second].second.emplace(cells.front(), i).second) return false;
      if (!contains(runs_, cells.front())) runs_.push_back(cells.front());
    }
    return true;
  }

  std::vector<std::string> line(std::vector<std::string> cells,
                                const std::map<std::string, size_t>& rows, bool two) const {
    for (const size_t metric : metrics_) {
      std::vector<const Value*> values;
      for (const std::string& run : runs_) {
        const auto row = rows.find(run);
        values.push_back(nullptr);
        cells.emplace_back();
        if (row == rows.end()) continue;
        const Record& record = joined_.table.rows[row->second];
        const TableColumn& column = joined_.table.columns[metric];
        if (record.measured()) values.back() = record.values.find(column.info.name);
        cells.back() = record.measured()
                           ? marked(joined_.grid.rows[row->second][metric], record, column)
                           : state_mark(record);  // as FAILED
      }
      if (two) cells.push_back(change(values[0], values[1]));
    }
    return cells;
  }

  // The value with its marks: "3.1 BUSY".
  static std::string marked(const std::string& cell, const Record& record,
                            const TableColumn& column) {
    std::string marks = marks_of(record, column);
    add_mark(names_reused(record, column), kReused, &marks);
    return cell.empty() || marks.empty() ? cell : cell + " " + marks;
  }

  // "+3.1 %". Empty: there is nothing to compare.
  static std::string change(const Value* from, const Value* to) {
    if (from == nullptr || to == nullptr || !from->number() || !to->number()) return {};
    if (from->as_double() == 0) return {};
    const double percent = 100 * (to->as_double() / from->as_double() - 1);
    return std::isfinite(percent) ? fmt::format("{:+.1f} %", percent) : "";
  }

  const RenderedResult& joined_;
  const ShownPoint point_;
  std::vector<size_t> metrics_;
  std::vector<std::string> runs_;
  std::vector<std::pair<std::vector<std::string>, std::map<std::string, size_t>>> points_;
};

}  // namespace

RunsBeside runs_beside(const RenderedResult& joined, const std::vector<std::string>& parameters) {
  return BesideMaker(joined, parameters).make();
}

}  // namespace tally
