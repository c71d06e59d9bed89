#include "engine/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/report/columns.h"
#include "engine/report/grid.h"
#include "engine/report/outputs.h"
#include "engine/report/python_format.h"

namespace tally {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Renderer {
 public:
  Renderer(const Benchmark& benchmark, const Records& records, const RenderOptions& options,
           const std::string& result_dir, Evaluator& evaluator, Diagnostics& diagnostics)
      : benchmark_(benchmark),
        records_(records),
        options_(options),
        result_dir_(result_dir),
        evaluator_(evaluator),
        diagnostics_(diagnostics) {}

  bool wanted(const std::string& name) const {
    return options_.only.empty() || has(options_.only, name);
  }

  RenderedResult table(const Table& table) {
    RenderedResult out;
    out.name = table.name.value;
    std::vector<Column> columns = chosen(table.columns);
    std::vector<Record> rows = records_.rows;
    add_derived_columns(benchmark_, table.columns, records_, rows, evaluator_, diagnostics_);
    apply_filter(table.filter, rows, evaluator_, diagnostics_);
    if (options_.with_id) {
      sort_each_run(table.sort, rows);
    } else {
      sort_rows(table.sort, rows);
    }
    drop_empty(columns, rows);
    Grid grid = fill(columns, rows);
    TableStyle style = table.style;
    if (options_.style == "csv") style = TableStyle::csv;
    if (options_.style == "pretty") style = TableStyle::pretty;
    if (options_.style == "aligned") style = TableStyle::aligned;
    const std::string& separator =
        options_.separator.empty() ? table.separator : options_.separator;
    out.text = layout(grid, style, separator, table.transpose, out.name);
    out.file_text = out.text;
    check_references(table, rows, evaluator_, diagnostics_, out);
    add_notes(rows, out);
    return out;
  }

  RenderedResult database(const Database& database) {
    RenderedResult out;
    out.name = database.name.value;
    std::vector<Record> rows = records_.rows;
    apply_filter(database.filter, rows, evaluator_, diagnostics_);
    drop_empty(database.keys, rows);
    bool own_file = database.file.value.empty();
    std::string path = own_file ? result_dir_ + "/" + out.name + ".dat" : database.file.value;
    if (options_.write) {
      if (Status s = write_database(database, rows, path); !s) {
        diagnostics_.error(database.name.mark, s.message(),
                           "nothing was changed in it; check that the file can be written");
      }
    }
    out.text = fmt::format("Database location of id {}: {}\n", options_.run_id, path);
    out.has_file = !own_file;
    out.of_one_run = true;
    out.file_text = path;
    return out;
  }

  RenderedResult syslog(const Syslog& syslog) {
    RenderedResult out;
    out.name = syslog.name.value;
    std::vector<Record> rows = records_.rows;
    apply_filter(syslog.filter, rows, evaluator_, diagnostics_);
    sort_rows(syslog.sort, rows);
    drop_empty(syslog.keys, rows);
    std::vector<std::string> lines = syslog_lines(syslog, rows);
    out.has_file = false;
    if (options_.write) {
      if (Status s = send_syslog(syslog, lines); !s)
        diagnostics_.warning(syslog.name.mark, s.message());
    }
    return out;
  }

 private:
  std::vector<Column> chosen(const std::vector<Column>& all) const {
    std::vector<Column> columns;
    if (options_.with_id) {
      Column id;
      id.name.value = "id";
      columns.push_back(id);
    }
    for (const Column& column : all) {
      const std::string& name = column.name.value;
      bool selected = options_.select.empty() || has(options_.select, name) ||
                      has(options_.select, column.title);
      bool excluded = has(options_.exclude, name) ||
                      (!column.title.empty() && has(options_.exclude, column.title));
      if (selected && !excluded) columns.push_back(column);
    }
    return columns;
  }

  // A row in which no column has a value is none.
  void drop_empty(const std::vector<Column>& columns, std::vector<Record>& rows) const {
    auto empty = [&](const Record& row) {
      return std::all_of(columns.begin(), columns.end(), [&](const Column& column) {
        if (options_.with_id && column.name.value == "id") return true;
        auto found = row.values.find(column_key(column));
        return found == row.values.end() || found->second.none();
      });
    };
    rows.erase(std::remove_if(rows.begin(), rows.end(), empty), rows.end());
  }

  std::string heading(const Column& column) const {
    if (!column.title.empty()) return column.title;  // a title says its unit itself
    std::string text = column.name.value;
    auto unit = records_.units.find(column.name.value);
    bool ratio = !column.relative_to.empty();
    if (!ratio && unit != records_.units.end() && !unit->second.empty()) {
      text += "[" + unit->second + "]";
    }
    return text;
  }

  std::string cell(const Column& column, const Record& row) {
    auto found = row.values.find(column_key(column));
    if (found == row.values.end() || found->second.none()) {
      return column.null_value_set ? column.null_value : std::string();
    }
    std::string text = found->second.str();
    if (column.format.empty()) return text;
    std::string error;
    std::string formatted;
    if (format_cell(found->second, column.format, &formatted, &error)) return formatted;
    if (complained_.insert(column.name.value).second) {
      diagnostics_.warning(column.name.mark,
                           fmt::format("column '{}': '{}' cannot be formatted as \"{}\": {}",
                                       column.name.value, text, column.format, error),
                           "it is shown as it is");
    }
    return text;
  }

  Grid fill(const std::vector<Column>& columns, const std::vector<Record>& rows) {
    Grid grid;
    for (const Column& column : columns) {
      grid.header.push_back(heading(column));
      std::optional<double> width = python_float(column.colw);
      grid.widths.push_back(width && *width > 0 ? static_cast<size_t>(*width) : 0);
    }
    for (const Record& row : rows) {
      std::vector<std::string> cells;
      for (const Column& column : columns) cells.push_back(cell(column, row));
      grid.rows.push_back(std::move(cells));
    }
    return grid;
  }

  // Rows of several runs, each run's together: JUBE sorts every run's own.
  static void sort_each_run(const std::vector<std::string>& keys, std::vector<Record>& rows) {
    std::vector<Record> sorted;
    for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
      const std::string id = rows[begin].values["id"].str();
      while (end < rows.size() && rows[end].values["id"].str() == id) ++end;
      std::vector<Record> own(std::make_move_iterator(rows.begin() + static_cast<long>(begin)),
                              std::make_move_iterator(rows.begin() + static_cast<long>(end)));
      sort_rows(keys, own);
      std::move(own.begin(), own.end(), std::back_inserter(sorted));
    }
    rows = std::move(sorted);
  }

  static void add_notes(const std::vector<Record>& rows, RenderedResult& out) {
    for (size_t i = 0; i < rows.size(); ++i) {
      for (const std::string& note : rows[i].notes) {
        out.notes.push_back(fmt::format("row {}: {}", i + 1, note));
      }
    }
  }

  const Benchmark& benchmark_;
  const Records& records_;
  const RenderOptions& options_;
  std::string result_dir_;
  Evaluator& evaluator_;
  Diagnostics& diagnostics_;
  std::set<std::string> complained_;
};

}  // namespace

std::vector<RenderedResult> render(const Benchmark& benchmark, const Result& result,
                                   const Records& records, const RenderOptions& options,
                                   const std::string& result_dir, Evaluator& evaluator,
                                   Diagnostics& diagnostics) {
  Renderer renderer(benchmark, records, options, result_dir, evaluator, diagnostics);
  std::vector<RenderedResult> rendered;
  for (const auto& output : result.outputs) {
    if (const auto* table = std::get_if<Table>(&output)) {
      if (renderer.wanted(table->name.value)) rendered.push_back(renderer.table(*table));
    } else if (const auto* database = std::get_if<Database>(&output)) {
      if (renderer.wanted(database->name.value)) rendered.push_back(renderer.database(*database));
    } else if (const auto* syslog = std::get_if<Syslog>(&output)) {
      if (renderer.wanted(syslog->name.value)) rendered.push_back(renderer.syslog(*syslog));
    }
  }
  return rendered;
}

}  // namespace tally
