#include "engine/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string_view>

#include "engine/base/terminal.h"
#include "engine/base/text.h"
#include "engine/python/python_format.h"
#include "engine/report/grid.h"
#include "engine/results/table/columns.h"
#include "engine/results/table/marks.h"
#include "engine/results/table/repeats.h"

namespace tally {
namespace {

bool is_json(const RenderOptions& options) {
  return options.style == "json" || options.style == "jsonl";
}

class Renderer {
 public:
  Renderer(const Benchmark& benchmark, const ResultTables& tables, const RenderOptions& options,
           Diagnostics& diagnostics)
      : benchmark_(benchmark),
        rules_(benchmark.rules),
        tables_(tables),
        options_(options),
        diagnostics_(diagnostics) {}

  bool wanted(const std::string& name) const {
    const auto& only = options_.only;
    return only.empty() || contains(only, name);
  }

  RenderedResult table(const Table& table) {
    RenderedResult out;
    out.name = table.name.value;
    out.table = tables_.table(table, {options_.select, options_.exclude, options_.with_id});
    out.definition = &table;
    for_people_ = options_.style.empty() ? table.style != TableStyle::csv : options_.style != "csv";
    out.grid = fill(out.table);
    lay_out(table, options_, rules_.csv_is_quoted ? Quoting::rfc4180 : Quoting::raw, &out);
    return out;
  }

  RenderedResult database(const Database& database) {
    RenderedResult out;
    out.name = database.name.value;
    out.table = tables_.database(database);
    bool own_file = database.file.value.empty();
    std::string path =
        own_file ? options_.result_dir + "/" + out.name + ".dat" : database.file.value;
    std::error_code unknown;
    if (options_.write && own_file && std::filesystem::is_symlink(path, unknown)) {
      diagnostics_.error(database.name.mark,
                         path + ": is a link, which the run did not make; remove it");
    } else if (options_.write) {
      if (Status s = write_database(database, out.table, path,
                                    rules_.database_knows_runs ? &options_.run_key : nullptr);
          !s) {
        diagnostics_.error(database.name.mark, s.message(),
                           "nothing was changed in it; check that the file can be written");
      }
    }
    if (!is_json(options_) && (options_.write || !rules_.database_knows_runs)) {
      out.text = fmt::format("Database location of id {}: {}\n", options_.run_id, path);
    } else if (!is_json(options_)) {
      out.text = fmt::format("Database '{}': nothing was written to it\n", out.name);
    }
    out.has_file = !own_file;
    out.of_one_run = true;
    out.file_text = path;
    return out;
  }

  RenderedResult syslog(const Syslog& syslog) {
    RenderedResult out;
    out.name = syslog.name.value;
    out.table = tables_.syslog(syslog);
    const std::vector<Record>& rows = out.table.rows;
    std::vector<std::string> lines = syslog_lines(syslog, rows, rules_.fractions_are_kept);
    const bool marks = rules_.rows_are_marked && !shows_status(benchmark_, out.table.columns);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (marks && (!rows[i].measured())) lines[i] += " status=" + state_mark(rows[i]);
      const std::string machine = marks_of(rows[i], out.table.columns);
      if (rules_.rows_are_marked && !machine.empty()) lines[i] += " machine=\"" + machine + "\"";
    }
    out.has_file = false;
    if (options_.write) {
      if (Status s = send_syslog(syslog, lines); !s)
        diagnostics_.error(syslog.name.mark, s.message());
    }
    return out;
  }

 private:
  std::string heading(const TableColumn& column) const {
    if (!column.title.empty() && rules_.titles_as_written) return column.title;
    const std::string text = column.empty_title ? "" : column.info.title;
    return column.info.unit.empty() ? text : text + "[" + column.info.unit + "]";
  }

  // A computed value has the digits of a double. In a table for people, few of them say something.
  bool rounds(const TableColumn& column) const {
    return for_people_ && column.info.kind == ColumnKind::computed;
  }

  static std::string rounded(const Value& value, const std::string& text) {
    constexpr size_t kDigits = 6;
    constexpr double kAllBeforeThePoint = 1e6, kMost = 1e15;
    if (!value.number() || !std::isfinite(value.as_double())) return text;
    if (text.find_first_of(".e") == std::string::npos) return text;
    const size_t first = text.find_first_not_of("-0.");
    const std::string_view digits =
        std::string_view(text).substr(std::min(first, text.size()), text.find('e') - first);
    const auto written = std::ranges::count_if(digits, is_digit);
    if (static_cast<size_t>(written) <= kDigits) return text;
    const double size = std::fabs(value.as_double());
    if (size >= kAllBeforeThePoint && size < kMost) return fmt::format("{:.0f}", value.as_double());
    return fmt::format("{:.{}g}", value.as_double(), kDigits);
  }

  std::string cell(const TableColumn& column, const Value* found) {
    if (found == nullptr) {
      return column.null_value_set ? column.null_value : std::string();
    }
    // A value that could not be computed is none, either.
    if (rules_.missing_values_are_reported && column.null_value_set && found->number() &&
        std::isnan(found->as_double())) {
      return column.null_value;
    }
    std::string text = for_people_ && rules_.digits_as_printed ? found->printed() : found->str();
    if (column.format.empty()) return rounds(column) ? rounded(*found, text) : text;
    std::string formatted;
    const Status fits = format_cell(*found, column.format, rules_.fractions_are_kept, &formatted);
    if (fits) return formatted;
    if (complained_.insert(column.name.value).second) {
      diagnostics_.warning(column.name.mark,
                           fmt::format("column '{}': '{}' cannot be formatted as \"{}\": {}",
                                       column.name.value, text, column.format, fits.message()),
                           "it is shown as it is");
    }
    return text;
  }

  Grid fill(const ResultTable& table) {
    Grid grid;
    std::vector<ValuesOf> values;
    for (const TableColumn& column : table.columns) {
      values.emplace_back(column.info.name);
      grid.header.push_back(heading(column));
      std::optional<double> width = python_float(column.colw);
      grid.widths.push_back(width && *width > 0 ? static_cast<size_t>(*width) : 0);
    }
    for (const Record& row : table.rows) {
      std::vector<std::string> cells;
      for (size_t i = 0; i < values.size(); ++i)
        cells.push_back(cell(table.columns[i], values[i].in(row)));
      grid.rows.push_back(std::move(cells));
    }
    return grid;
  }

  const Benchmark& benchmark_;
  const Rules& rules_;
  const ResultTables& tables_;
  const RenderOptions& options_;
  Diagnostics& diagnostics_;
  bool for_people_ = false;  // the table that is filled
  std::set<std::string> complained_;
};

}  // namespace

void lay_out(const Table& table, const RenderOptions& options, Quoting quoting,
             RenderedResult* rendered) {
  GridLayout how{table.style, options.separator.empty() ? table.separator : options.separator,
                 table.transpose, quoting};
  if (options.style == "csv") how.style = TableStyle::csv;
  if (options.style == "pretty") how.style = TableStyle::pretty;
  if (options.style == "aligned") how.style = TableStyle::aligned;
  rendered->file_text = layout(rendered->grid, rendered->name, how);
  if (options.style == "markdown") {
    rendered->text = markdown(rendered->grid, table.transpose, rendered->name);
  } else if (!is_json(options)) {
    rendered->text = rendered->file_text;
  }
  const bool aligned = how.style != TableStyle::csv && rendered->text == rendered->file_text;
  if (aligned && without_controls(rendered->text) != rendered->text) {
    rendered->text = layout(for_stdout(rendered->grid), rendered->name, how);
  }
  const bool for_people = options.style == "markdown" || how.style != TableStyle::csv;
  if (!for_people || is_json(options)) return;
  for (const std::string& line : repeats_legend(rendered->table))
    rendered->text += (options.style == "markdown" ? "\n" : "") + line + "\n";
}

std::vector<RenderedResult> render(const Benchmark& benchmark, const Result& result,
                                   const ResultTables& tables, const RenderOptions& options,
                                   Diagnostics& diagnostics) {
  Renderer renderer(benchmark, tables, options, diagnostics);
  std::vector<RenderedResult> rendered;
  for (const auto& output : result.outputs) {
    if (const auto* table = std::get_if<Table>(&output)) {
      if (!renderer.wanted(table->name.value)) continue;
      rendered.push_back(renderer.table(*table));
      rendered.back().result = &result;
    } else if (const auto* database = std::get_if<Database>(&output)) {
      if (renderer.wanted(database->name.value)) rendered.push_back(renderer.database(*database));
    } else if (const auto* syslog = std::get_if<Syslog>(&output)) {
      if (renderer.wanted(syslog->name.value)) rendered.push_back(renderer.syslog(*syslog));
    }
  }
  return rendered;
}

std::string numbers_in_words(const std::vector<int>& numbers) {
  constexpr size_t kMostParts = 6;
  std::string text;
  size_t parts = 0;
  for (size_t i = 0; i < numbers.size();) {
    if (parts++ == kMostParts) return text + fmt::format(" and {} more", numbers.size() - i);
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (last > i) text += fmt::format("{}{}", last == i + 1 ? ", " : " to ", numbers[last]);
    i = last + 1;
  }
  return text;
}

namespace {

// Notes about rows and workpackages that are equal but for their numbers: said once.
struct NoteGroup {
  std::string mark, rest;        // "FAILED", "(s) failed: exit code 3"
  std::vector<int> rows, works;  // empty: `rest` is the whole note
  std::string text() const {
    if (works.empty()) return rest;
    const char* rows_word = rows.size() == 1 ? "row" : "rows";
    const std::string where =
        rows.empty() ? "" : fmt::format("{} {}{}: ", rows_word, numbers_in_words(rows), mark);
    return fmt::format("{}workpackage{} {} {}", where, works.size() == 1 ? "" : "s",
                       numbers_in_words(works), rest);
  }
};

void add_note(const Note& note, std::vector<NoteGroup>* groups) {
  int row = 0, work = 0, row_end = 0, work_end = 0;
  const bool of_row = std::sscanf(note.row.c_str(), "row %d%n", &row, &row_end) == 1;
  const bool of_work = note.of_workpackage &&
                       std::sscanf(note.text.c_str(), "workpackage %d (%n", &work, &work_end) == 1;
  if (!of_work || work_end == 0 || (!of_row && !note.row.empty()))
    return groups->push_back({"", note.str(), {}, {}});
  NoteGroup one{of_row ? note.row.substr(static_cast<size_t>(row_end)) : "",
                note.text.substr(static_cast<size_t>(work_end) - 1),
                {},
                {}};
  auto same = std::ranges::find_if(*groups, [&](const NoteGroup& other) {
    return !other.works.empty() && other.mark == one.mark && other.rest == one.rest &&
           other.rows.empty() == !of_row;
  });
  if (same == groups->end()) same = groups->insert(same, std::move(one));
  // A row has a note for each of its repeats.
  if (of_row && (same->rows.empty() || same->rows.back() != row)) same->rows.push_back(row);
  if (same->works.empty() || same->works.back() != work) same->works.push_back(work);
}

}  // namespace

std::vector<std::string> grouped_notes(std::span<const Note> notes) {
  std::vector<NoteGroup> groups;
  for (const Note& note : notes) add_note(note, &groups);
  std::vector<std::string> texts;
  for (const NoteGroup& group : groups) texts.push_back(group.text());
  return texts;
}

}  // namespace tally
