#include "engine/results/rows/row_maker.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/expand/substitute.h"
#include "engine/results/read/patterns.h"
#include "engine/results/rows/derived.h"
#include "engine/results/rows/value_sources.h"
#include "engine/workflow/builtin_names.h"
#include "engine/workflow/pattern_uses.h"
#include "engine/workflow/table_names.h"

namespace tally {
namespace {

// Makes the rows of an analyser. The groups' files have been read.
class RowMaker {
 public:
  RowMaker(const RowSources& from, Evaluator& evaluator)
      : benchmark_(from.benchmark),
        analyser_(from.analyser),
        used_names_(from.used_names),
        patterns_(from.patterns),
        groups_(from.groups),
        evaluator_(evaluator),
        parameters_(from.used_names, from.benchmark.rules.fractions_are_kept),
        analyser_name_(from.analyser.name.value),
        sources_(from.benchmark, from.analyser, from.patterns, from.groups),
        shows_analyser_(from.used_names.has(kAnalyserColumn)) {
    if (from.benchmark.rules.rows_are_marked) rates_ = read_rates(from.benchmark, from.analyser);
    for (const Pattern* pattern : patterns_.all()) {
      std::vector<StatisticColumn>& columns = statistics_[pattern->name.value];
      for (const StoredStatistic& one : patterns_.statistics(pattern->name.value))
        columns.push_back({one, -1});
    }
  }

  Records make(Diagnostics& diagnostics) {
    find_origins();
    std::vector<Line> lines;
    lines.reserve(origins_.size());
    for (const RowOrigin& origin : origins_) {
      const std::vector<Groups::Above> above = groups_above(*origin.group);
      lines.push_back(
          make_line(*origin.group->members.front(), {origin.group->all, above}, origin));
      lines.back().failed = !all_ended_well(*origin.group);
    }
    derive({benchmark_, evaluator_, diagnostics}, patterns_.derived(), lines);
    std::vector<Measured> measured;
    for (size_t i = 0; !rates_.empty() && i < lines.size(); ++i) {
      const RowOrigin& origin = origins_[i];
      measured.push_back(
          {&lines[i].values, &origin, &origin.group->all, groups_above(*origin.group), {}});
    }
    std::vector<ShortValues> too_short = short_values(std::move(measured));
    Records records;
    columns_ = records.columns;
    records.rows.reserve(lines.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      add_record(origins_[i], std::move(lines[i].values), records);
      if (!too_short.empty()) add_short_values(std::move(too_short[i]), records.rows.back());
    }
    lines = {};
    if (used_names_.repeats()) add_repeats(records);
    patterns_.describe(records);
    return records;
  }

 private:
  using Names = std::set<std::string>;
  // The names that belong to a row of a group's files, and not to the group.
  struct InRows {
    Names patterns;
    std::set<SearchedIn> times;
  };
  // A group, or one row of its files, that a row comes from.
  struct RowOrigin {
    const Group* group;
    const MatchedRow* row;                  // one of the rows of its files; null: all of them
    std::shared_ptr<const InRows> in_rows;  // null: there is no row

    bool has_in_rows(const std::string& name) const {
      return row != nullptr && in_rows->patterns.count(name) != 0;
    }
    bool has_in_rows(const SearchedIn& time) const {
      return row != nullptr && in_rows->times.count(time) != 0;
    }
  };

  // The rows of a group are those in its own files. Without any, they are those of the nearest
  // group that it depends on: a step behind a measurement does not hide the measurement's rows.
  const MatchedRows& rows_of(const Group& group) const {
    if (!group.all.rows.empty()) return group.all.rows;
    for (const Group* ancestor : groups_.ancestors(group)) {
      if (!ancestor->all.rows.empty()) return ancestor->all.rows;
    }
    return group.all.rows;
  }

  void find_origins() {
    origins_.reserve(groups_.all().size());
    for (const Group& group : groups_.all()) {
      if (!group.leaf) continue;
      const MatchedRows& rows = rows_of(group);
      if (rows.empty()) {
        origins_.push_back({&group, nullptr, nullptr});
        continue;
      }
      const auto names = std::make_shared<InRows>();
      for (const MatchedRow& row : rows) {
        for (const auto& [name, statistics] : row.found) names->patterns.insert(name);
        for (const auto& [time, seconds] : row.seconds) names->times.insert(time.time);
      }
      for (const MatchedRow& row : rows) origins_.push_back({&group, &row, names});
    }
  }

  std::vector<Groups::Above> groups_above(const Group& group) const {
    std::vector<Groups::Above> above;
    for (const Group* ancestor : groups_.ancestors(group))
      above.push_back({ancestor->members.front(), &ancestor->all});
    return above;
  }

  // The files of a row, or of one of its repeats. `above`: those of the groups or workpackages that
  // it depends on, nearest first.
  struct Files {
    const InFiles& own;
    const std::vector<Groups::Above>& above;

    // By their places: 0 is the row's own, the others are those above.
    size_t size() const { return above.size() + 1; }
    const InFiles& at(size_t place) const { return place == 0 ? own : *above[place - 1].in_files; }
    // The nearest ones that have rows. Null: none has.
    const InFiles* with_rows() const {
      if (!own.rows.empty()) return &own;
      for (const Groups::Above& one : above) {
        if (!one.in_files->rows.empty()) return one.in_files;
      }
      return nullptr;
    }
    // The row there. Null: the origin is none of a row's, or the row is elsewhere.
    const MatchedRow* row_in(const InFiles& one, const RowOrigin& origin) const {
      return origin.row != nullptr && &one == with_rows() ? one.rows.find(origin.row->key)
                                                          : nullptr;
    }
  };

  // A statistic that lines have of a pattern, and its column in them. -1: no line has had it so far.
  struct StatisticColumn {
    StoredStatistic statistic;
    int number;
  };

  void add_statistics(const std::string& name, const Statistics& statistics, Cells& values) {
    if (statistics.count() == 0) return;
    std::vector<StatisticColumn>& columns = statistics_.at(name);  // the first: the value itself
    if (values.cell(columns.front().number) != nullptr) return;    // the child's own value
    for (auto& [statistic, number] : columns) {
      Value value = statistics.value_of(statistic.which);
      if (value.none()) continue;
      if (number < 0) number = line_columns_->add(statistic.name);
      values.set(number, std::move(value));
    }
  }

  // `row`: of these files; null: all matches count. `step`: of the row, where the files are of an
  // earlier step, whose values do not stand in for those of the row's step.
  void add_found(const InFiles& files, const MatchedRow* row, const RowOrigin& origin,
                 Cells& values, const std::string* step = nullptr) {
    const auto hidden = [&](const std::string& name) {
      return step != nullptr && sources_.prints(*step, name);
    };
    if (row != nullptr) {
      for (const auto& [name, statistics] : row->found) {
        if (!hidden(name)) add_statistics(name, statistics, values);
      }
    }
    for (const auto& [name, statistics] : files.found) {
      const bool of_rows = row != nullptr && origin.has_in_rows(name);
      if (!of_rows && !hidden(name)) add_statistics(name, statistics, values);
    }
  }

  // The line of a row, or of one of its repeats.
  Line make_line(const WorkpackageView& shown, const Files& files, const RowOrigin& origin) {
    Line line;
    line.values = Cells(line_columns_);
    line.parameters = &shown.values;
    add_found(files.own, files.row_in(files.own, origin), origin, line.values);
    // JUBE sets the defaults in each workpackage. Therefore the default of the last step wins even
    // if a parent's file had a match.
    add_defaults(shown.step, files.own.files, line.values);
    FoundFiles there = files.own.files;
    for (const Groups::Above& one : files.above)
      add_found(*one.in_files, files.row_in(*one.in_files, origin), origin, line.values,
                &shown.step);
    for (const Groups::Above& one : files.above) {
      const FoundFiles& theirs = one.in_files->files;
      add_defaults(one.workpackage->step, theirs, line.values);
      there.insert(there.end(), theirs.begin(), theirs.end());
    }
    for (const Pattern* pattern : patterns_.derived()) {
      if (!patterns_.applies(*pattern, there)) line.left_out.push_back(pattern);
    }
    return line;
  }

  void add_defaults(const std::string& step, const FoundFiles& files, Cells& values) const {
    for (const Pattern* pattern : patterns_.of(groups_.find(step))) {
      if (pattern->default_value && patterns_.applies(*pattern, files))
        add_default(*pattern, values);
    }
  }

  // Whether the row's work and that which it depends on led to what it was to measure. Else a
  // missing value is expected.
  bool all_ended_well(const Group& group) const {
    const std::vector<const Group*> above = groups_.ancestors(group);
    return groups_.any_ended_well(group) && std::ranges::all_of(above, [&](const Group* one) {
             return groups_.any_ended_well(*one);
           });
  }

  // Whether the row is that of one workpackage, which depends on no repeated one and only on
  // those that count (Groups::counts()). Then the only repeat has the row's values.
  bool is_single(const Group& group) const {
    const auto single = [](const Group& one) { return one.members.size() == 1; };
    if (!single(group) || groups_.planned_repeats(*group.members.front()).count != 1) return false;
    const std::vector<const WorkpackageView*> before = groups_.ancestors(*group.members.front());
    return std::ranges::all_of(before, [&](const auto* one) { return groups_.counts(*one); }) &&
           std::ranges::all_of(groups_.ancestors(group),
                               [&](const Group* one) { return single(*one); });
  }

  std::vector<Repeat> single_repeat(const Group& group, const Record& row) {
    if (!groups_.counts(*group.members.front())) return {};
    std::vector<Repeat> repeats(1);
    repeats.front().values = repeat_values(row.values);
    return repeats;
  }

  // The values of a row that statistics of repeats need.
  Cells repeat_values(const Cells& row) {
    Cells values(repeat_columns_);
    for (size_t i = 0; i < row.all().size(); ++i) {
      const std::string& name = columns_->name(i);
      if (i == in_repeats_.size())
        in_repeats_.push_back(used_names_.has_in_repeats(name) ? repeat_columns_->add(name) : -1);
      if (in_repeats_[i] >= 0 && !row.all()[i].none()) values.set(in_repeats_[i], row.all()[i]);
    }
    return values;
  }

  struct OneRepeat {
    size_t row;
    const WorkpackageView* workpackage;
    const InFiles* files;
    Names unmeasured;  // patterns
  };

  // Adds to each row the values of the workpackages that it is made of, those that count.
  void add_repeats(Records& records) {
    std::vector<Line> lines;
    std::vector<OneRepeat> repeats;
    for (size_t row = 0; row < origins_.size(); ++row) {
      const RowOrigin& origin = origins_[row];
      const Group& group = *origin.group;
      if (patterns_.derived().empty() && is_single(group)) {
        records.rows[row].repeats = single_repeat(group, records.rows[row]);
        continue;
      }
      for (const size_t i : repeats_in_order(group)) {
        const InFiles& own = group.of_member(i);
        const WorkpackageView& member = *group.members[i];
        const std::vector<Groups::Above> above = groups_.above(member);
        const Files files{own, above};
        const InFiles* with_rows = files.with_rows();
        // It may have printed no such row.
        if (origin.row != nullptr &&
            (with_rows == nullptr || with_rows->rows.find(origin.row->key) == nullptr))
          continue;
        lines.push_back(make_line(member, files, origin));
        ValueSources::Sources sources =
            sources_.sources_of(member, own.found, above, records.rows[row]);
        records.rows[row].repeats.emplace_back().from.set(std::move(sources.from));
        repeats.push_back({row, &member, &own, std::move(sources.unmeasured)});
      }
    }
    Diagnostics said_of_the_rows;
    derive({benchmark_, evaluator_, said_of_the_rows}, patterns_.derived(), lines);
    std::vector<Measured> measured;
    for (size_t i = 0; !rates_.empty() && i < lines.size(); ++i) {
      const OneRepeat& from = repeats[i];
      measured.push_back({&lines[i].values,
                          &origins_[from.row],
                          from.files,
                          groups_.above(*from.workpackage),
                          {}});
    }
    std::vector<ShortValues> too_short = short_values(std::move(measured));
    std::map<size_t, size_t> filled;  // repeats of each row
    for (size_t i = 0; i < lines.size(); ++i) {
      Record& row = records.rows[repeats[i].row];
      if (!too_short.empty()) add_short_values(std::move(too_short[i]), row);
      take_line(repeats[i], std::move(lines[i].values), row.repeats[filled[repeats[i].row]++],
                records);
    }
  }

  // Gives a repeat the values of its line.
  void take_line(const OneRepeat& from, Cells&& line, Repeat& repeat, Records& records) {
    for (const std::string& pattern : from.unmeasured) {
      for (const StoredStatistic& one : patterns_.statistics(pattern)) line.erase(one.name);
    }
    repeat.values = repeat_values(all_values(*from.workpackage, std::move(line), records));
  }

  // The members of a group that count, in the order of their iterations.
  std::vector<size_t> repeats_in_order(const Group& group) const {
    std::vector<size_t> order;
    for (size_t i = 0; i < group.members.size(); ++i) {
      if (groups_.counts(*group.members[i]) && !shares_work(group, *group.members[i]))
        order.push_back(i);
    }
    std::ranges::stable_sort(order, [&](size_t a, size_t b) {
      return group.members[a]->iteration < group.members[b]->iteration;
    });
    return order;
  }

  // All matches of a pattern in a row. Null: it was not searched for.
  static const Statistics* matches_of(const RowOrigin& origin, const std::string& pattern) {
    const Found& found = origin.has_in_rows(pattern) ? origin.row->found : origin.group->all.found;
    const auto own = found.find(pattern);
    return own == found.end() ? nullptr : &own->second;
  }

  // The place of the files that the row has the pattern's value from, as add_found() takes it.
  size_t place_of(const std::string& pattern, const Files& files, const RowOrigin& origin) const {
    const bool of_rows = origin.has_in_rows(pattern);
    for (size_t place = 0; place < files.size(); ++place) {
      const InFiles& one = files.at(place);
      const MatchedRow* row = files.row_in(one, origin);
      if (of_rows && row == nullptr) continue;
      const Found& found = of_rows ? row->found : one.found;
      const auto matches = found.find(pattern);
      if (matches != found.end() && matches->second.count() != 0) return place;
    }
    return 0;
  }
  // The nearest of those that its value is computed from.
  size_t place_of(const Rate& rate, const Files& files, const RowOrigin& origin) const {
    size_t nearest = files.size();
    for (const std::string& name : rate.read)
      nearest = std::min(nearest, place_of(name, files, origin));
    return nearest == files.size() ? 0 : nearest;
  }

  // The fewest seconds that matches at the place state of the rate's time: in the row that has the
  // rate, or else in the files that have it, or else in any.
  static StatedSeconds stated_at(size_t place, const Files& files, const RowOrigin& origin,
                                 const Rate& rate) {
    const InFiles& one = files.at(place);
    const MatchedRow* row = files.row_in(one, origin);
    StatedSeconds of_row, beside, anywhere;
    for (const SearchedIn& time : rate.times) {
      if (origin.has_in_rows(time)) {
        if (row != nullptr) take_seconds({time}, row->seconds, of_row);
        continue;
      }
      take_seconds({time, rate.rate}, one.seconds, beside);
      take_seconds({time}, one.seconds, anywhere);
    }
    const bool in_row = std::ranges::any_of(
        rate.read, [&](const std::string& name) { return origin.has_in_rows(name); });
    if (in_row && !of_row.empty()) return of_row;
    if (!beside.empty()) return beside;
    for (const auto& [time, seconds] : of_row) add_seconds(time, seconds, anywhere);
    return anywhere;
  }
  static void take_seconds(const StatedTime& time, const StatedSeconds& from, StatedSeconds& to) {
    const auto known = from.find(time);
    if (known != from.end()) add_seconds(time, known->second, to);
  }

  // A line, where its values are from, and the rates that it has.
  struct Measured {
    const Cells* line;
    const RowOrigin* origin;
    const InFiles* own;
    std::vector<Groups::Above> above;
    std::vector<std::pair<const Rate*, size_t>> rates;  // with their places
  };
  using ShortValues = std::map<std::string, double>;

  // A time that is computed is the line's. Where the rate is of an earlier step, it is that of a
  // line of this step.
  static bool is_computed(const Rate& rate) {
    return rate.times.front().second->mode != PatternMode::pattern;
  }
  struct LinesOfSteps {
    std::vector<Line> lines;
    std::map<std::pair<size_t, size_t>, size_t> numbers;  // by the row's or repeat's, and the place

    const Cells* find(size_t of, size_t place) const {
      const auto known = numbers.find({of, place});
      return known == numbers.end() ? nullptr : &lines[known->second].values;
    }
  };
  LinesOfSteps lines_of_steps(const std::vector<Measured>& all) {
    LinesOfSteps found;
    for (size_t i = 0; i < all.size(); ++i) {
      const Measured& one = all[i];
      for (const auto& [rate, place] : one.rates) {
        if (place == 0 || !is_computed(*rate)) continue;
        if (!found.numbers.try_emplace({i, place}, found.lines.size()).second) continue;
        const Groups::Above& at = one.above[place - 1];
        const std::vector<Groups::Above> above(
            one.above.begin() + static_cast<std::ptrdiff_t>(place), one.above.end());
        found.lines.push_back(make_line(*at.workpackage, {*at.in_files, above}, *one.origin));
      }
    }
    Diagnostics said_of_the_rows;
    derive({benchmark_, evaluator_, said_of_the_rows}, patterns_.derived(), found.lines);
    return found;
  }

  // The patterns of each line whose value was measured for too short a time, by what its files or the
  // line say of it (`measured_over`), and those that are computed from them. The fewest seconds count.
  std::vector<ShortValues> short_values(std::vector<Measured> all) {
    for (Measured& one : all) {
      const Files files{*one.own, one.above};
      for (const Rate& rate : rates_) {
        if (one.line->has(rate.rate->name.value) && !rate.times.empty())
          one.rates.emplace_back(&rate, place_of(rate, files, *one.origin));
      }
    }
    const LinesOfSteps lines = lines_of_steps(all);
    std::vector<ShortValues> found(all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      for (const auto& [rate, place] : all[i].rates) {
        const Cells* line = lines.find(i, place);
        for (const auto& [time, seconds] : seconds_of(all[i], *rate, place, line)) {
          if (seconds >= kSteadySeconds) continue;
          const auto [known, is_new] = found[i].try_emplace(rate->rate->name.value, seconds);
          if (!is_new) known->second = std::min(known->second, seconds);
        }
      }
      add_computed(found[i]);
    }
    return found;
  }

  // The seconds that the rate's place states, or else what it depends on, or else later steps.
  static StatedSeconds seconds_of(const Measured& measured, const Rate& rate, size_t place,
                                  const Cells* line_of_step) {
    const Files files{*measured.own, measured.above};
    StatedSeconds stated;
    for (size_t i = place; i < files.size() && stated.empty(); ++i)
      stated = stated_at(i, files, *measured.origin, rate);
    for (size_t i = place; i > 0 && stated.empty(); --i)
      stated = stated_at(i - 1, files, *measured.origin, rate);
    // A computed time, and a default, is of the line.
    const SearchedIn& first = rate.times.front();
    if (!is_computed(rate) && !first.second->default_value) return stated;
    for (const Cells* line : {line_of_step, measured.line}) {
      const Value* value = line == nullptr ? nullptr : line->find(first.second->name.value);
      if (stated.empty() && value != nullptr) add_seconds(first, *value, stated);
    }
    return stated;
  }

  void add_computed(ShortValues& found) const {
    for (size_t before = 0; before != found.size();) {
      before = found.size();
      for (const Pattern* derived : patterns_.derived()) {
        if (!derived->measured_over.value.empty()) continue;
        for (const std::string& name : dollar_names(derived->value.value)) {
          const auto base = found.find(pattern_of(benchmark_, name));
          if (base != found.end()) found.try_emplace(derived->name.value, base->second);
        }
      }
    }
  }

  static void add_short_values(ShortValues found, Record& row) {
    if (found.empty()) return;
    for (const auto& [name, seconds] : found) {
      const auto [known, is_new] = row.short_values.edit().try_emplace(name, seconds);
      if (!is_new) known->second = std::min(known->second, seconds);
    }
  }

  // The wanted ones of a line's values and of the workpackage's own and its parents' parameters.
  Cells all_values(const WorkpackageView& shown, Cells&& line, Records& records) {
    Cells values(columns_);
    std::vector<Value> found = std::move(line).take();
    for (size_t i = 0; i < found.size(); ++i) {
      const std::string& name = line_columns_->name(i);
      if (i == in_rows_.size())
        in_rows_.push_back(used_names_.has(name) ? columns_->add(name) : -1);
      if (in_rows_[i] >= 0) values.set(in_rows_[i], std::move(found[i]));
    }
    parameters_.add(shown, true, values, records);
    for (const WorkpackageView* workpackage : groups_.ancestors(shown))
      parameters_.add(*workpackage, false, values, records);
    if (shows_analyser_ && !values.has(kAnalyserColumn))
      values.set(kAnalyserColumn, Value{analyser_.name.value});
    return values;
  }

  void add_record(const RowOrigin& origin, Cells&& values, Records& records) {
    const Group& group = *origin.group;
    const WorkpackageView& shown = *group.members.front();
    Record& record = records.rows.emplace_back();
    record.values = all_values(shown, std::move(values), records);
    const bool some_count = groups_.any_counts(group);
    for (const auto& [name, statistics] : group.all.found) {
      const Statistics* matches = matches_of(origin, name);
      if (matches == nullptr || matches->count() == 0) record.unmatched.push_back(name);
    }
    record.id = shown.id;
    record.point = {groups_.points(), shown.id, origin.row == nullptr ? RowKey() : origin.row->key};
    record.run = shown.run;
    record.analyser = analyser_name_;
    record.step.take(shown.step, step_before_);
    if (!analyser_.reduce) record.iteration = shown.iteration;
    const PlannedRepeats planned = groups_.planned_repeats(shown);
    record.all_repeats = std::max(planned.count, static_cast<int>(group.members.size()));
    record.state = shown.state;
    record.reused = is_reused(group);
    record.no_job_use = shown.no_job_use;
    for (const WorkpackageView* member : group.members) {
      const bool left_out = some_count && !groups_.counts(*member);
      for (const std::string& note : member->notes)
        record.notes.push_back(left_out ? note + "; it is left out of the row" : note);
      if (!left_out) record.state = nearest_to_done(record.state, member->state);
      if (!left_out) record.add_disturbance(member->disturbance);
    }
    if (planned.open != State::done) record.state = planned.open;
    if (benchmark_.rules.rows_are_marked) sources_.take_marks_of_ancestors(group, record);
  }

  const Benchmark& benchmark_;
  const Analyser& analyser_;
  const UsedNames& used_names_;
  const AnalysedPatterns& patterns_;
  const Groups& groups_;
  Evaluator& evaluator_;
  ParameterValues parameters_;
  const Common<std::string> analyser_name_;
  Common<std::string> step_before_;  // of the row before
  const ValueSources sources_;
  const bool shows_analyser_;
  std::vector<Rate> rates_;
  std::vector<RowOrigin> origins_;  // of the rows
  // The columns of lines, of rows and of repeats, and those of the latter two by those before.
  const std::shared_ptr<RowColumns> line_columns_ = std::make_shared<RowColumns>();
  std::shared_ptr<RowColumns> columns_;
  const std::shared_ptr<RowColumns> repeat_columns_ = std::make_shared<RowColumns>();
  std::map<std::string, std::vector<StatisticColumn>> statistics_;  // by pattern
  std::vector<int> in_rows_, in_repeats_;
};

}  // namespace

Records make_rows(const RowSources& from, Evaluator& evaluator, Diagnostics& diagnostics) {
  return RowMaker(from, evaluator).make(diagnostics);
}

}  // namespace tally
