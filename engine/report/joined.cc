#include "engine/report/joined.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "engine/base/text.h"
#include "engine/results/judge/definition_changes.h"
#include "engine/results/table/columns.h"
#include "engine/results/table/marks.h"

namespace tally {
namespace {

class Joiner {
 public:
  Joiner(std::vector<RunPart>& parts, const JoinOptions& how) : parts_(parts), how_(how) {}

  Status make(RenderedResult* out) {
    out->name = parts_.back().rendered.name;
    out->is_table = true;
    choose_columns();
    for (const Place& place : places_) {
      Status same = check_unit(place);
      if (!same && how_.rules.units_must_agree) return same;
      if (!same) out->table.notes.push_back({"", same.message()});
    }
    add_header(*out);
    if (how_.rules.tables_join_one_benchmark) note_changes(out->table);
    std::vector<RunPart*> order;
    for (RunPart& part : parts_) order.push_back(&part);
    std::stable_sort(order.begin(), order.end(),
                     [](const RunPart* a, const RunPart* b) { return a->nth < b->nth; });
    for (RunPart* part : order) add_rows(*part, *out);
    return Status::ok();
  }

 private:
  // A column of the joined table: its place in each part, -1 if the part lacks it.
  struct Place {
    const Column* column = nullptr;
    std::vector<long> in_part;
  };

  // Columns are the same if their values have the same key. A table may have one twice.
  void choose_columns() {
    std::map<std::pair<std::string, size_t>, size_t> known;
    for (size_t p = parts_.size(); p-- > 0;) {
      const std::vector<Column>& columns = parts_[p].rendered.table.columns;
      std::map<std::string, size_t> times;
      for (size_t c = 0; c < columns.size(); ++c) {
        const std::string key = column_key(columns[c]);
        const auto [entry, is_new] = known.try_emplace({key, times[key]++}, places_.size());
        if (is_new) places_.push_back({&columns[c], std::vector<long>(parts_.size(), -1)});
        places_[entry->second].in_part[p] = static_cast<long>(c);
      }
    }
    // The marks of rows stand behind the workflow's own columns.
    std::stable_partition(places_.begin(), places_.end(),
                          [](const Place& place) { return !is_own_column(*place.column); });
  }

  static std::string unit_of(const RunPart& part, const Column& column) {
    const auto found = part.rendered.table.units.find(column.name.value);
    return found == part.rendered.table.units.end() ? "" : found->second;
  }

  Status check_unit(const Place& place) const {
    const Column& column = *place.column;
    if (!column.relative_to.empty() || !column.expression.value.empty()) return Status::ok();
    const RunPart* first = nullptr;
    std::string unit;
    for (size_t p = 0; p < parts_.size(); ++p) {
      const std::string own = place.in_part[p] < 0 ? "" : unit_of(parts_[p], column);
      if (own.empty() || own == unit) continue;
      if (first != nullptr)
        return Status::error(fmt::format(
            "table '{}': column '{}' has the unit {} in run {} and {} in run {}, so that their "
            "rows do not make one table; show these runs one by one, or leave the column out",
            parts_.back().rendered.name, column.column_title(), unit, first->run.str(), own,
            parts_[p].run.str()));
      first = &parts_[p];
      unit = own;
    }
    return Status::ok();
  }

  // The column that tells the runs apart has a key that no other column of the table has.
  Column run_column() const {
    Column column;
    column.name.value = "id";
    const bool taken = std::any_of(places_.begin(), places_.end(), [](const Place& place) {
      return place.column->name.value == "id" || column_key(*place.column) == "id" ||
             place.column->title == "id";
    });
    if (!taken) return column;
    column.name.value = "tally run";
    column.title = "run id";
    return column;
  }

  bool has_run_column() const { return parts_.size() > 1 || how_.run_of_one; }

  void add_header(RenderedResult& out) {
    const Column run = run_column();
    run_key_ = run.name.value;
    if (has_run_column()) {
      out.table.columns.push_back(run);
      out.grid.header.push_back(run.column_title());
      out.grid.widths.push_back(0);
    }
    for (const Place& place : places_) {
      out.table.columns.push_back(*place.column);
      for (size_t p = parts_.size(); p-- > 0;) {
        if (place.in_part[p] < 0) continue;
        const auto at = static_cast<size_t>(place.in_part[p]);
        out.grid.header.push_back(parts_[p].rendered.grid.header[at]);
        out.grid.widths.push_back(parts_[p].rendered.grid.widths[at]);
        break;
      }
    }
    for (size_t p = parts_.size(); p-- > 0;) {
      const auto& units = parts_[p].rendered.table.units;
      out.table.units.insert(units.begin(), units.end());
    }
  }

  // The text of a row's cell. Where only other runs have marked rows, the row ended well.
  static std::string cell(const Place& place, size_t part, const std::vector<std::string>& cells,
                          const Record& row) {
    if (place.in_part[part] >= 0) return cells[static_cast<size_t>(place.in_part[part])];
    const bool status = is_own_column(*place.column) && place.column->title == kStatusColumn;
    if (!status) return {};
    return state_word(row);
  }

  void add_rows(RunPart& part, RenderedResult& out) {
    const auto number = static_cast<size_t>(&part - parts_.data());
    ResultTable& own = part.rendered.table;
    for (size_t i = 0; i < own.rows.size(); ++i) {
      std::vector<std::string> cells;
      if (has_run_column()) cells.push_back(part.run.str());
      for (const Place& place : places_)
        cells.push_back(cell(place, number, part.rendered.grid.rows[i], own.rows[i]));
      out.grid.rows.push_back(std::move(cells));
      own.rows[i].values.set(run_key_, part.run);
    }
    std::move(own.rows.begin(), own.rows.end(), std::back_inserter(out.table.rows));
    const std::string run = "run " + part.run.str();
    for (Note& note : own.notes) {
      note.row = note.row.empty() ? run : run + ", " + note.row;
      out.table.notes.push_back(std::move(note));
    }
    for (const std::string& note : own.missing_rows)
      out.table.missing_rows.push_back(run + ": " + note);
    out.table.references_passed += own.references_passed;
    add_missed(part, run, own.missed, out.table.missed);
    add_missed(part, run, own.warned, out.table.warned);
  }

  static void add_missed(const RunPart& part, const std::string& run,
                         std::vector<MissedReference>& from, std::vector<MissedReference>& to) {
    for (MissedReference& one : from) {
      one.text = run + ": " + one.text;
      one.place = place(*part.sources, one.mark);
      to.push_back(std::move(one));
    }
  }

  // Tells which runs were computed by other definitions than the last one.
  void note_changes(ResultTable& out) const {
    const RunPart& last = parts_.back();
    std::map<std::string, std::vector<std::string>> runs;  // by what is different
    for (const RunPart& part : parts_) {
      const std::vector<std::string> changes =
          table_changes(*part.benchmark, *part.table, *last.benchmark, *last.table);
      if (!changes.empty()) runs[join(changes, ", ")].push_back(part.run.str());
    }
    for (const auto& [changes, ids] : runs) {
      out.notes.push_back(
          {"", fmt::format("run{} {} {} computed by other definitions than run {}: {}; `tally "
                           "result -u FILE` computes all runs by one file",
                           ids.size() == 1 ? "" : "s", join(ids, ", "),
                           ids.size() == 1 ? "is" : "are", last.run.str(), changes)});
    }
  }

  std::vector<RunPart>& parts_;
  const JoinOptions& how_;
  std::vector<Place> places_;
  std::string run_key_;
};

}  // namespace

Status join_parts(std::vector<RunPart> parts, const RenderOptions& options, const JoinOptions& how,
                  RenderedResult* joined) {
  if (Status made = Joiner(parts, how).make(joined); !made) return made;
  lay_out(*parts.back().table, options, how.rules.csv_is_quoted ? Quoting::rfc4180 : Quoting::raw,
          joined);
  return Status::ok();
}

}  // namespace tally
