#include "engine/chart/from_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/text.h"
#include "engine/python/guarded_literal.h"
#include "engine/python/value.h"
#include "engine/results/table/columns.h"
#include "engine/results/table/marks.h"
#include "engine/statistics/intervals.h"
#include "engine/workflow/chart_words.h"

namespace tally {
namespace {

constexpr size_t kMostSeries = 24;
constexpr size_t kMostPanels = 24;
constexpr size_t kMostBars = 400;
constexpr size_t kLongestTitle = 44;

// Returns the index of `name` in `names`, which it joins if it is new.
size_t index_in(const std::string& name, std::vector<std::string>* names,
                std::map<std::string, size_t>* indexes) {
  const auto inserted = indexes->emplace(name, names->size());
  if (inserted.second) names->push_back(name);
  return inserted.first->second;
}

class FigureMaker {
 public:
  FigureMaker(const Chart& chart, const ResultTable& table, Figure* figure)
      : chart_(chart), table_(table), figure_(*figure) {}

  Status make() {
    figure_.name = chart_.name.value;
    figure_.title = chart_.title;
    figure_.kind = chart_.kind;
    figure_.ideal = chart_.ideal;
    figure_.x.logarithmic = chart_.log_x;
    figure_.y.logarithmic = chart_.log_y;
    figure_.y.from_zero = chart_.kind == ChartKind::bar || chart_.kind == ChartKind::line;
    TRY(find_columns());
    decide_axis();
    TRY(read_rows());
    if (figure_.panels.empty()) figure_.panels.emplace_back();
    TRY(add_published(chart_, by_name_, panel_names_, &figure_));
    TRY(check_size());
    for (Panel& panel : figure_.panels) {
      for (Series& series : panel.series) {
        TRY(finish_series(panel, &series));
      }
    }
    add_notes();
    return Status::ok();
  }

 private:
  const TableColumn* column(const std::string& name) const {
    for (const TableColumn& one : table_.columns)
      if (one.name.value == name && one.info.name == name) return &one;
    for (const TableColumn& one : table_.columns)
      if (one.title == name || one.name.value == name) return &one;
    return nullptr;
  }

  Status find(const Text& name, const TableColumn** found) const {
    if (name.value.empty()) return Status::ok();
    *found = column(name.value);
    if (*found != nullptr) return Status::ok();
    std::vector<std::string> names;
    for (const TableColumn& one : table_.columns) names.push_back(one.info.title);
    std::string hint = did_you_mean(name.value, names);
    if (hint.empty()) hint = "there are: " + join(names, ", ");
    return Status::error(fmt::format("there is no column '{}'; {}", name.value, hint));
  }

  static Axis axis(const TableColumn& column, Axis axis) {
    axis.title = column.info.title;
    if (column.title.empty()) axis.unit = column.info.unit;
    return axis;
  }

  Status find_columns() {
    const std::pair<const Text*, const TableColumn**> wanted[] = {
        {&chart_.x, &x_}, {&chart_.series, &series_}, {&chart_.facet, &facet_}};
    for (const auto& [name, into] : wanted) {
      TRY(find(*name, into));
    }
    const auto known = [this](const std::string& name) { return column(name) != nullptr; };
    for (const Text& name : drawn_columns(chart_.y, known)) {
      const TableColumn* one = nullptr;
      TRY(find(name, &one));
      drawn_.push_back(one);
    }
    if (x_ == nullptr || drawn_.empty()) return Status::error("a chart needs 'x' and 'y'");
    y_ = drawn_.front();
    figure_.less_is_better = chart_.ideal == ChartIdeal::inverse || y_->better == Better::lower;
    figure_.columns_are_series = drawn_.size() > 1;
    figure_.x = axis(*x_, figure_.x);
    figure_.y = axis(*y_, figure_.y);
    for (size_t i = 1; i < drawn_.size(); ++i) {
      const Axis other = axis(*drawn_[i], {});
      figure_.y.title += ", " + other.title;
      if (other.unit != figure_.y.unit) figure_.y.unit.clear();
    }
    // The legend has the names. Too many of them would hide the axis.
    if (drawn_.size() > 1 && figure_.y.title.size() > kLongestTitle)
      figure_.y.title = std::exchange(figure_.y.unit, "");
    if (series_ != nullptr) figure_.series_title = series_->info.title;
    switch (chart_.error) {
      case Uncertainty::none:
        break;
      case Uncertainty::ci:
        figure_.interval = "95 % confidence interval";
        break;
      case Uncertainty::range:
        figure_.interval = "minimum to maximum";
        break;
      case Uncertainty::mad:
        figure_.interval = "± median absolute deviation";
        break;
    }
    return Status::ok();
  }

  static const Value* value(const Record& row, const std::string& key) {
    return row.values.find(key);
  }

  // Bars stand at names. Other charts have numbers on the axis if all values are numbers.
  void decide_axis() {
    by_name_ = chart_.kind == ChartKind::bar ||
               (!x_->info.numeric() && x_->info.type != ColumnType::empty);
  }

  Status read_rows() {
    if (by_name_ && (chart_.log_x || chart_.ideal != ChartIdeal::none)) {
      const char* key = chart_.log_x ? "a logarithmic axis" : "an ideal line";
      const char* why =
          chart_.kind == ChartKind::bar ? "a bar chart has names there" : "the column has texts";
      return Status::error(
          fmt::format("{} needs numbers in x, '{}': {}", key, chart_.x.value, why));
    }
    if (chart_.kind == ChartKind::bar && chart_.log_y) {
      return Status::error(
          "bars begin at 0, which a logarithmic axis does not have; use kind: line");
    }
    for (size_t i = 0; i < table_.rows.size(); ++i) {
      TRY(read_row(table_.rows[i], i));
    }
    return Status::ok();
  }

  Status read_row(const Record& row, size_t index) {
    const std::vector<std::string> marks = split_strip(marks_of(row, table_.columns), " ");
    if (contains(marks, kBusy)) ++busy_;
    if (contains(marks, kThrottled)) ++throttled_;
    if (contains(marks, kShort)) ++short_;
    if (!row.measured()) {
      ++(row.failed()                  ? failed_
         : row.unfinished()            ? unfinished_
         : row.state == State::changed ? changed_
                                       : expected_);
      return Status::ok();
    }
    const Value* x = value(row, x_->info.name);
    if (x == nullptr) {
      ++missing_;
      return Status::ok();
    }
    if (std::ranges::any_of(drawn_,
                            [&](const TableColumn* one) { return names_reused(row, *one); }))
      ++reused_;
    if (drawn_.size() == 1) return read_value(row, index, *x);
    // A row has some of several columns, as one of numbers that were published for a few rows.
    const size_t before = points_;
    for (const TableColumn* one : drawn_) {
      const Value* own = value(row, one->info.name);
      if (own == nullptr || own->str().empty() || is_nan(*own)) continue;
      y_ = one;
      TRY(read_value(row, index, *x));
    }
    if (points_ == before) ++missing_;
    return Status::ok();
  }

  static bool is_nan(const Value& value) { return value.number() && std::isnan(value.as_double()); }

  // The value of the column y_.
  Status read_value(const Record& row, size_t index, const Value& x_value) {
    const Value* x = &x_value;
    const Value* y = value(row, y_->info.name);
    if (y == nullptr || (!y->number() && y->str().empty())) {
      ++missing_;
      return Status::ok();
    }
    // A value without a type is the number that it reads as.
    const std::optional<Value> number = y->number() ? *y : number_in(y->str());
    if (!number) {
      return Status::error(fmt::format("row {}: '{}' is '{}', not a number", index + 1,
                                       y_->name.value, shown(y->str())));
    }
    ChartPoint point{by_name_ ? 0 : x->as_double(), number->as_double(), {}, {}};
    if (!std::isfinite(point.x) || !std::isfinite(point.y)) {
      ++infinite_;
      return Status::ok();
    }
    if (by_name_) {
      point.x = static_cast<double>(index_in(x->str(), &figure_.x.categories, &categories_));
    }
    TRY(check_logarithm(point, index));
    add_interval(row, &point);
    ++points_;
    series_for(row)->points.push_back(point);
    return Status::ok();
  }

  static std::string shown(const std::string& text) {
    return text.size() <= 60 ? text : text.substr(0, 60) + "...";
  }

  Status check_logarithm(const ChartPoint& point, size_t index) const {
    const bool x = chart_.log_x && point.x <= 0;
    const bool y = chart_.log_y && point.y <= 0;
    if (!x && !y) return Status::ok();
    return Status::error(
        fmt::format("row {}: '{}' is {}; a logarithmic axis has positive numbers only", index + 1,
                    x ? chart_.x.value : y_->name.value, python_repr(x ? point.x : point.y)));
  }

  // A number beside the value: the table's own, or that of a column "tps_ci_low" or "Speed ci_low".
  std::optional<double> beside(const Record& row, const std::string& suffix) const {
    for (const std::string& key :
         {y_->info.name + "_" + suffix, y_->info.name + " " + suffix, y_->title + " " + suffix}) {
      const Value* found = value(row, key);
      if (found != nullptr && found->number() && std::isfinite(found->as_double()))
        return found->as_double();
    }
    return {};
  }

  // Whether the column of repeats in a table's file says "3 of 3": an interval of fewer than six is
  // the range.
  static bool has_few_repeats(const Record& row) {
    const Value* repeats = value(row, "repeats");
    if (repeats == nullptr || repeats->number()) return false;
    int counted = 0;
    int all = 0;
    return std::sscanf(repeats->str().c_str(), "%d of %d", &counted, &all) == 2 &&
           counted < static_cast<int>(statistics::kFewestForMedian);
  }

  void add_interval(const Record& row, ChartPoint* point) {
    if (chart_.error == Uncertainty::none) return;
    const auto summary = row.summaries.find(y_->info.name);
    if (summary != row.summaries.end() && summary->second.interval &&
        y_->uncertainty == chart_.error) {
      point->low = summary->second.interval->low;
      point->high = summary->second.interval->high;
      if (summary->second.too_few) ++ranges_;
    } else if (chart_.error == Uncertainty::mad) {
      const auto distance = beside(row, "mad");
      if (distance) point->low = point->y - *distance;
      if (distance) point->high = point->y + *distance;
    } else {
      const bool range = chart_.error == Uncertainty::range;
      point->low = beside(row, range ? "min" : "ci_low");
      point->high = beside(row, range ? "max" : "ci_high");
      if (!range && point->low && point->high && has_few_repeats(row)) ++ranges_;
    }
    if (!point->low || !point->high) {
      ++without_interval_;
    } else if (chart_.log_y && *point->low <= 0) {
      ++below_zero_;
    } else {
      return;
    }
    point->low.reset();
    point->high.reset();
  }

  Series* series_for(const Record& row) {
    const auto name = [&](const TableColumn* column) {
      const Value* found = column == nullptr ? nullptr : value(row, column->info.name);
      return found == nullptr ? std::string(column == nullptr ? "" : "(no value)") : found->str();
    };
    size_t panel_index = 0;
    if (facet_ != nullptr) {
      panel_index = index_in(name(facet_), &panel_names_, &panel_indexes_);
    }
    if (panel_index >= figure_.panels.size()) {
      figure_.panels.resize(panel_index + 1);
      if (facet_ != nullptr)
        figure_.panels[panel_index].title = facet_->info.title + " " + panel_names_[panel_index];
    }
    std::string title = series_ == nullptr ? "" : name(series_);
    if (drawn_.size() > 1) title += (title.empty() ? "" : ", ") + y_->info.title;
    const size_t index = title.empty() && series_ == nullptr
                             ? 0
                             : index_in(title, &figure_.series, &series_indexes_);
    Panel& panel = figure_.panels[panel_index];
    for (Series& one : panel.series)
      if (one.index == index) return &one;
    panel.series.push_back({index, {}, false});
    return &panel.series.back();
  }

  Status check_size() const {
    if (points_ > 0 && without_interval_ == points_) {
      return Status::error(fmt::format(
          "no row has the interval; it comes from the column's `uncertainty`, or from columns "
          "named after it: {}",
          chart_.error == Uncertainty::mad     ? chart_.y.value + "_mad"
          : chart_.error == Uncertainty::range ? chart_.y.value + "_min and _max"
                                               : chart_.y.value + "_ci_low and _ci_high"));
    }
    const char* hint =
        "choose another column, or fewer rows with the table's 'filter' or `plot --where`";
    if (figure_.series.size() > kMostSeries) {
      return Status::error(
          fmt::format("'{}' has {} values; at most {} series can be told apart; {}",
                      chart_.series.value, figure_.series.size(), kMostSeries, hint));
    }
    if (figure_.panels.size() > kMostPanels) {
      return Status::error(fmt::format("'{}' has {} values; a chart has at most {} panels; {}",
                                       chart_.facet.value, figure_.panels.size(), kMostPanels,
                                       hint));
    }
    const size_t bars = figure_.x.categories.size() * std::max<size_t>(1, figure_.series.size());
    if (chart_.kind == ChartKind::bar && bars > kMostBars) {
      return Status::error(fmt::format(
          "{} bars beside each other cannot be read, at most {} can; {}", bars, kMostBars, hint));
    }
    return Status::ok();
  }

  // Sorts the points of a line. A line or a bar has one value at each position.
  Status finish_series(const Panel& panel, Series* series) const {
    if (chart_.kind == ChartKind::scatter) return Status::ok();
    std::ranges::stable_sort(series->points,
                             [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
    if (chart_.ideal != ChartIdeal::none && !series->published && !series->points.empty() &&
        (series->points.front().x <= 0 || series->points.front().y <= 0)) {
      return Status::error("an ideal line begins at a point with positive 'x' and 'y'");
    }
    if (chart_.kind == ChartKind::curve) return Status::ok();
    for (size_t i = 1; i < series->points.size(); ++i) {
      if (series->points[i].x != series->points[i - 1].x) continue;
      const double x = series->points[i].x;
      const std::string at =
          by_name_ ? shown(figure_.x.categories[static_cast<size_t>(x)]) : python_repr(x);
      std::string which;
      if (series_ != nullptr)
        which +=
            fmt::format(" of {} {}", chart_.series.value, shown(figure_.series[series->index]));
      if (!panel.title.empty()) which += " in panel " + shown(panel.title);
      return Status::error(fmt::format(
          "several rows{} have {} = {}; name the column in which they differ as 'series' or "
          "'facet', or use kind: scatter",
          which, chart_.x.value, at));
    }
    return Status::ok();
  }

  void add_notes() {
    const auto note = [&](size_t count, const std::string& text) {
      if (count > 0) figure_.notes.push_back(text);
    };
    const auto are = [](size_t count) { return count == 1 ? "is" : "are"; };
    note(failed_,
         fmt::format("{} failed and {} not drawn.", counted(failed_, "row", "rows"), are(failed_)));
    note(unfinished_, fmt::format("{} not ended and {} not drawn.",
                                  counted(unfinished_, "row has", "rows have"), are(unfinished_)));
    note(expected_, fmt::format("{} in an outcome that the step expects and {} not drawn.",
                                counted(expected_, "row ended", "rows ended"), are(expected_)));
    note(changed_, fmt::format("{} output that changed after its end and {} not drawn.",
                               counted(changed_, "row has", "rows have"), are(changed_)));
    const auto were = [](size_t count) { return count == 1 ? "was" : "were"; };
    note(busy_, fmt::format("{} {} measured while other programs used the machine.",
                            counted(busy_, "row", "rows"), were(busy_)));
    note(reused_, fmt::format("{} values of reused work, not measured in this run.",
                              counted(reused_, "row has", "rows have")));
    note(throttled_, fmt::format("{} {} measured while the machine was throttled.",
                                 counted(throttled_, "row", "rows"), were(throttled_)));
    note(short_, fmt::format("{} values that were measured for less than a second.",
                             counted(short_, "row has", "rows have")));
    note(missing_, fmt::format("{} without a value {} not drawn.", counted(missing_, "row", "rows"),
                               are(missing_)));
    note(infinite_, fmt::format("{} with an infinite value or 'nan' {} not drawn.",
                                counted(infinite_, "row", "rows"), are(infinite_)));
    note(without_interval_,
         fmt::format("{} no interval.", counted(without_interval_, "point has", "points have")));
    note(ranges_, fmt::format("{} fewer than six repeats: the interval is the smallest to the "
                              "largest value.",
                              counted(ranges_, "point has", "points have")));
    note(below_zero_, fmt::format("{} not drawn: a logarithmic axis has positive numbers only.",
                                  counted(below_zero_, "interval reaches 0 or less and is",
                                          "intervals reach 0 or less and are")));
  }

  const Chart& chart_;
  const ResultTable& table_;
  Figure& figure_;
  const TableColumn* x_ = nullptr;
  const TableColumn* y_ = nullptr;         // the column that is being read
  std::vector<const TableColumn*> drawn_;  // those of y
  const TableColumn* series_ = nullptr;
  const TableColumn* facet_ = nullptr;
  bool by_name_ = false;
  std::map<std::string, size_t> categories_, series_indexes_, panel_indexes_;
  std::vector<std::string> panel_names_;
  size_t failed_ = 0, unfinished_ = 0, expected_ = 0, changed_ = 0, reused_ = 0, busy_ = 0,
         throttled_ = 0, short_ = 0, missing_ = 0, infinite_ = 0, without_interval_ = 0,
         below_zero_ = 0, ranges_ = 0, points_ = 0;
};

}  // namespace

Status figure_of(const Chart& chart, const ResultTable& table, Figure* figure) {
  *figure = Figure{};
  return FigureMaker(chart, table, figure).make();
}

}  // namespace tally
