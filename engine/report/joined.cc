#include "engine/report/joined.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "engine/base/text.h"
#include "engine/results/judge/definition_changes.h"
#include "engine/results/table/columns.h"
#include "engine/results/table/marks.h"

namespace tally {
namespace {

// A table of one run.
struct RunPart {
  Value name;  // stands in the column that tells the runs apart
  const Run* run = nullptr;
  RenderedResult rendered;
  size_t nth = 0;  // its rows' position among those of the parts
};

// Joins tables of one name, of several runs.
class Joiner {
 public:
  Joiner(std::vector<RunPart>& parts, const Rules& rules, bool run_of_one)
      : parts_(parts), rules_(rules), run_of_one_(run_of_one) {}

  Status make(RenderedResult* out) {
    const RenderedResult& newest = parts_.back().rendered;
    out->name = newest.name;
    out->definition = newest.definition;
    out->result = newest.result;
    choose_columns();
    for (const JoinedColumn& joined : columns_) {
      Status same = check_unit(joined);
      if (!same && rules_.units_must_agree) return same;
      if (!same) out->table.notes.push_back({"", same.message()});
    }
    add_header(*out);
    if (rules_.tables_join_one_benchmark) note_changes(out->table);
    std::vector<RunPart*> order;
    for (RunPart& part : parts_) order.push_back(&part);
    std::ranges::stable_sort(order,
                             [](const RunPart* a, const RunPart* b) { return a->nth < b->nth; });
    for (RunPart* part : order) add_rows(*part, *out);
    find_types(out->table.rows, out->table.columns);
    return Status::ok();
  }

 private:
  // A column of the joined table, and its number in each part: -1 if the part lacks it.
  struct JoinedColumn {
    const TableColumn* column = nullptr;
    std::vector<long> in_part;
  };

  // Columns are the same if their values have the same key. A table may have one twice.
  void choose_columns() {
    std::map<std::pair<std::string, size_t>, size_t> known;
    for (size_t p = parts_.size(); p-- > 0;) {
      const std::vector<TableColumn>& columns = parts_[p].rendered.table.columns;
      std::map<std::string, size_t> times;
      for (size_t c = 0; c < columns.size(); ++c) {
        const std::string& key = columns[c].info.name;
        const auto [entry, is_new] = known.try_emplace({key, times[key]++}, columns_.size());
        if (is_new) columns_.push_back({&columns[c], std::vector<long>(parts_.size(), -1)});
        columns_[entry->second].in_part[p] = static_cast<long>(c);
      }
    }
    // The marks of rows stand behind the workflow's own columns.
    std::stable_partition(columns_.begin(), columns_.end(), [](const JoinedColumn& joined) {
      return joined.column->info.kind != ColumnKind::own;
    });
  }

  Status check_unit(const JoinedColumn& joined) const {
    const TableColumn& column = *joined.column;
    if (!column.expression.value.empty()) return Status::ok();
    const RunPart* first = nullptr;
    std::string unit;
    for (size_t p = 0; p < parts_.size(); ++p) {
      const TableColumn* in_part = column_in(joined, p);
      const std::string own = in_part == nullptr ? "" : in_part->info.unit;
      if (own.empty() || own == unit) continue;
      if (first != nullptr)
        return Status::error(fmt::format(
            "table '{}': column '{}' has the unit {} in run {} and {} in run {}, so that their "
            "rows do not make one table; show these runs one by one, or leave the column out",
            parts_.back().rendered.name, column.info.title, unit, first->name.str(), own,
            parts_[p].name.str()));
      first = &parts_[p];
      unit = own;
    }
    return Status::ok();
  }

  // Null: the part lacks it.
  const TableColumn* column_in(const JoinedColumn& joined, size_t part) const {
    const long at = joined.in_part[part];
    return at < 0 ? nullptr : &parts_[part].rendered.table.columns[static_cast<size_t>(at)];
  }

  // The column that tells the runs apart has a name that no other column of the table has.
  TableColumn run_column() const {
    Column column;
    column.name.value = "id";
    const bool taken = std::ranges::any_of(columns_, [](const JoinedColumn& joined) {
      return joined.column->name.value == "id" || joined.column->info.name == "id" ||
             joined.column->title == "id";
    });
    return taken ? own_column("run", "run id") : TableColumn(column);
  }

  bool has_run_column() const { return parts_.size() > 1 || run_of_one_; }

  void add_header(RenderedResult& out) {
    const TableColumn run = run_column();
    run_key_ = run.info.name;
    if (has_run_column()) {
      out.table.columns.push_back(run);
      out.grid.header.push_back(run.info.title);
      out.grid.widths.push_back(0);
    }
    for (const JoinedColumn& joined : columns_) {
      ColumnInfo& info = out.table.columns.emplace_back(*joined.column).info;
      for (size_t p = parts_.size(); p-- > 0;) {
        const TableColumn* in_part = column_in(joined, p);
        if (in_part == nullptr) continue;
        if (info.unit.empty()) info.unit = in_part->info.unit;
      }
      for (size_t p = parts_.size(); p-- > 0;) {
        if (joined.in_part[p] < 0) continue;
        const auto at = static_cast<size_t>(joined.in_part[p]);
        out.grid.header.push_back(parts_[p].rendered.grid.header[at]);
        out.grid.widths.push_back(parts_[p].rendered.grid.widths[at]);
        break;
      }
    }
  }

  // The text of a row's cell. Where only other runs have marked rows, the row ended well.
  static std::string cell(const JoinedColumn& joined, size_t part,
                          const std::vector<std::string>& cells, const Record& row) {
    if (joined.in_part[part] >= 0) return cells[static_cast<size_t>(joined.in_part[part])];
    const bool status =
        joined.column->info.kind == ColumnKind::own && joined.column->info.title == kStatusColumn;
    if (!status) return {};
    return state_word(row);
  }

  void add_rows(RunPart& part, RenderedResult& out) {
    const auto number = static_cast<size_t>(&part - parts_.data());
    const int before = static_cast<int>(out.table.rows.size());
    ResultTable& own = part.rendered.table;
    for (size_t i = 0; i < own.rows.size(); ++i) {
      std::vector<std::string> cells;
      if (has_run_column()) cells.push_back(part.name.str());
      for (const JoinedColumn& joined : columns_)
        cells.push_back(cell(joined, number, part.rendered.grid.rows[i], own.rows[i]));
      out.grid.rows.push_back(std::move(cells));
      own.rows[i].values.set(run_key_, part.name);
    }
    std::move(own.rows.begin(), own.rows.end(), std::back_inserter(out.table.rows));
    const std::string run = "run " + part.name.str();
    for (Note& note : own.notes) {
      note.row = note.row.empty() ? run : run + ", " + note.row;
      out.table.notes.push_back(std::move(note));
    }
    for (const std::string& note : own.missing_rows)
      out.table.missing_rows.push_back(run + ": " + note);
    out.table.references_passed += own.references_passed;
    for (auto* missed : {&own.missed, &own.warned})
      for (MissedReference& one : *missed)
        if (one.row >= 0) one.row += before;
    add_missed(part, run, own.missed, out.table.missed);
    add_missed(part, run, own.warned, out.table.warned);
  }

  static void add_missed(const RunPart& part, const std::string& run,
                         std::vector<MissedReference>& from, std::vector<MissedReference>& to) {
    for (MissedReference& one : from) {
      one.text = run + ": " + one.text;
      one.place = position_text(part.run->sources(), one.mark);
      to.push_back(std::move(one));
    }
  }

  // Tells which runs were computed by other definitions than the last one.
  void note_changes(ResultTable& out) const {
    const RunPart& last = parts_.back();
    std::map<std::string, std::vector<std::string>> runs;  // by what is different
    for (const RunPart& part : parts_) {
      const std::vector<std::string> changes =
          table_changes(part.run->definitions(), *part.rendered.definition, last.run->definitions(),
                        *last.rendered.definition);
      if (!changes.empty()) runs[join(changes, ", ")].push_back(part.name.str());
    }
    for (const auto& [changes, ids] : runs) {
      out.notes.push_back(
          {"", fmt::format("run{} {} {} computed by other definitions than run {}: {}; `tally "
                           "result -u FILE` computes all runs by one file",
                           ids.size() == 1 ? "" : "s", join(ids, ", "),
                           ids.size() == 1 ? "is" : "are", last.name.str(), changes)});
    }
  }

  std::vector<RunPart>& parts_;
  const Rules& rules_;
  const bool run_of_one_;  // the run's column is there, too, if only one run has the table
  std::vector<JoinedColumn> columns_;
  std::string run_key_;
};

// The values of the column "id": the number, or the folder if two runs have the same number.
std::vector<Value> names_of_runs(const std::vector<RunResults>& runs) {
  std::set<int> ids;
  for (const RunResults& one : runs) ids.insert(one.run->directory().id);
  std::vector<Value> names;
  for (const RunResults& one : runs) {
    if (ids.size() == runs.size()) {
      names.emplace_back().data = static_cast<long long>(one.run->directory().id);
    } else {
      names.emplace_back().data = one.run->directory().path;
    }
  }
  return names;
}

// Tables of several runs that make one. The newest run's is the first one.
struct Group {
  std::string benchmark, table;
  size_t nth = 0;  // a result may have several tables of one name
  std::vector<std::pair<size_t, RenderedResult*>> members;  // run and table
};

// The runs with the one whose definitions come first at the front: the last one, or where tables
// are of any benchmark the one with the highest id, in whatever order they are shown.
std::vector<size_t> newest_first(const std::vector<RunResults>& runs, bool one_benchmark) {
  std::vector<size_t> order;
  for (size_t run = runs.size(); run-- > 0;) order.push_back(run);
  if (!one_benchmark)
    std::ranges::stable_sort(order, [&](size_t a, size_t b) {
      return runs[a].run->directory().id > runs[b].run->directory().id;
    });
  return order;
}

std::vector<Group> groups_of(std::vector<RunResults>& runs, bool one_benchmark) {
  std::vector<Group> groups;
  for (const size_t run : newest_first(runs, one_benchmark)) {
    const std::string& benchmark = runs[run].definitions->name.value;
    std::map<std::string, size_t> times;
    for (MadeResult& made : runs[run].results) {
      for (RenderedResult& table : made.outputs) {
        if (table.definition == nullptr) continue;
        const size_t nth = times[table.name]++;
        const auto found = std::ranges::find_if(groups, [&](const Group& one) {
          return (!one_benchmark || one.benchmark == benchmark) && one.table == table.name &&
                 one.nth == nth;
        });
        Group& group = found == groups.end()
                           ? groups.emplace_back(Group{benchmark, table.name, nth, {}})
                           : *found;
        group.members.emplace_back(run, &table);
      }
    }
  }
  return groups;
}

// Names the benchmark of a table where the runs are of several.
void note_benchmark(const Group& group, const std::vector<Value>& names, ResultTable& joined) {
  std::vector<std::string> ids;
  for (const auto& [run, table] : group.members) ids.insert(ids.begin(), names[run].str());
  joined.notes.insert(joined.notes.begin(),
                      {"", fmt::format("this table is of benchmark '{}', run{} {}", group.benchmark,
                                       ids.size() == 1 ? "" : "s", join(ids, ", "))});
}

}  // namespace

JoinedTables join_tables(std::vector<RunResults>& runs, const RenderOptions& options,
                         bool run_of_one) {
  JoinedTables out;
  const std::vector<Value> names = names_of_runs(runs);
  const Benchmark& last = *runs.back().definitions;
  const bool one_benchmark = last.rules.tables_join_one_benchmark;
  const bool several = one_benchmark && std::ranges::any_of(runs, [&](const RunResults& one) {
                         return one.definitions->name.value != last.name.value;
                       });
  for (const Group& group : groups_of(runs, one_benchmark)) {
    std::vector<RunPart> parts;
    for (auto member = group.members.rbegin(); member != group.members.rend(); ++member)
      parts.push_back({names[member->first], runs[member->first].run, std::move(*member->second),
                       member->first});
    RenderedResult joined;
    if (Status made = Joiner(parts, last.rules, run_of_one).make(&joined); !made) {
      out.problems.push_back(made.message());
      continue;
    }
    lay_out(*joined.definition, options, last.rules.csv_is_quoted ? Quoting::rfc4180 : Quoting::raw,
            &joined);
    if (several) note_benchmark(group, names, joined.table);
    out.tables.push_back(std::move(joined));
  }
  return out;
}

}  // namespace tally
