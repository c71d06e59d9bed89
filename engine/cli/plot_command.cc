// tally plot
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/chart/from_table.h"
#include "engine/chart/svg.h"
#include "engine/cli/application.h"
#include "engine/cli/prepare.h"
#include "engine/cli/runs.h"
#include "engine/cli/show_results.h"
#include "engine/expand/evaluator.h"
#include "engine/read/schema.h"
#include "engine/results/rows/point_key.h"
#include "engine/results/table/columns.h"
#include "engine/results/table/row_choice.h"
#include "engine/workflow/chart_words.h"

namespace tally {
namespace {

// An input file stands for its runs; any other file holds a table.
bool is_table_file(const std::string& path) {
  const std::string name = to_lower(path);
  return is_file(path) && !name.ends_with(".yaml") && !name.ends_with(".yml") &&
         !name.ends_with(".xml");
}

Chart chart_of(const PlotArgs& args) {
  Chart chart;
  chart.name.value = args.title.empty() ? args.y + " by " + args.x : args.title;
  chart.title = args.title;
  chart.x.value = args.x;
  chart.y.value = args.y;
  chart.series.value = args.series;
  chart.facet.value = args.facet;
  set_chart_kind(args.kind, &chart);
  set_chart_error(args.error, &chart);
  set_chart_ideal(args.ideal, &chart);
  set_chart_log(args.log, &chart);
  return chart;
}

// Whether the chart draws the column.
bool draws(const PlotArgs& args, const Column& column) {
  const std::vector<std::string> names = split_strip(args.y, ",");
  const auto is = [&](const std::string& name) {
    return !name.empty() && (name == column.name.value || name == column.title);
  };
  return is(args.y) || is(args.x) || is(args.series) || is(args.facet) ||
         std::ranges::any_of(names, is);
}

// Adds the columns of a file. An error if a drawn column has another unit in it.
Status add_columns(const PlotArgs& args, const std::string& path, const ResultTable& own,
                   std::map<std::string, std::string>* files, ResultTable* table) {
  for (const TableColumn& column : own.columns) {
    const std::string& name = column.info.name;
    const std::string& unit = column.info.unit;
    auto known = std::ranges::find_if(
        table->columns, [&](const TableColumn& other) { return other.info.name == name; });
    if (known == table->columns.end()) known = table->columns.insert(known, column);
    if (unit.empty()) continue;
    std::string& first = known->info.unit;
    if (first.empty()) first = unit;
    files->try_emplace(name, path);
    if (first == unit || !draws(args, column)) continue;
    return Status::error(fmt::format("column '{}' has the unit {} in '{}' and {} in '{}'", name,
                                     first, files->at(name), unit, path));
  }
  return Status::ok();
}

// Several files become one table with the column "file".
bool read_tables(const Settings& settings, const PlotArgs& args, ResultTable* table) {
  const std::vector<std::string>& paths = args.sources;
  std::map<std::string, std::string> first_file;  // with the unit of a column
  for (const std::string& path : paths) {
    std::string text;
    ResultTable own;
    Status read = read_file(path, &text);
    if (read) {
      read = read_csv(text, &own);
      if (!read) read = Status::error(path + ": " + read.message());
    }
    if (!read) {
      print_error(settings, read.message(), "a table has its columns' names in the first line");
      return false;
    }
    if (paths.size() > 1) {
      Column file;
      file.name.value = "file";
      own.columns.insert(own.columns.begin(), TableColumn(file));
      for (Record& row : own.rows) row.values.set("file", Value{path});
    }
    if (Status same = add_columns(args, path, own, &first_file, table); !same) {
      print_error(settings, same.message(),
                  "convert the values of one file, or draw the files in charts of their own");
      return false;
    }
    std::move(own.rows.begin(), own.rows.end(), std::back_inserter(table->rows));
  }
  find_types(table->rows, table->columns);
  return true;
}

bool has_column(const ResultTable& table, const std::string& name) {
  return std::ranges::any_of(table.columns, [&](const Column& column) {
    return column.name.value == name || column.title == name;
  });
}

bool has_columns(const ResultTable& table, const PlotArgs& args) {
  const auto known = [&](const std::string& name) { return has_column(table, name); };
  const std::vector<Text> drawn = drawn_columns({args.y, {}}, known);
  return std::ranges::all_of(drawn, [&](const Text& name) { return known(name.value); }) &&
         (args.x.empty() || known(args.x)) && (args.series.empty() || known(args.series)) &&
         (args.facet.empty() || known(args.facet));
}

// A chart has the rows of one benchmark.
bool of_one_benchmark(const Settings& settings, std::span<const Run> runs) {
  std::vector<std::pair<std::string, std::vector<std::string>>> benchmarks;  // and their runs
  for (const Run& run : runs) {
    const std::string& name = run.definitions().name.value;
    auto found =
        std::ranges::find_if(benchmarks, [&](const auto& one) { return one.first == name; });
    if (found == benchmarks.end()) found = benchmarks.insert(found, {name, {}});
    found->second.push_back(std::to_string(run.directory().id));
  }
  if (benchmarks.size() < 2 || !runs.back().definitions().rules.tables_join_one_benchmark)
    return true;
  std::vector<std::string> names;
  for (const auto& [name, ids] : benchmarks)
    names.push_back(
        fmt::format("'{}' (run{} {})", name, ids.size() == 1 ? "" : "s", join(ids, ", ")));
  print_error(settings, "the runs are of different benchmarks: " + join(names, " and "),
              "choose runs of one with -i, or plot the tables' files, RUN/result/NAME.dat");
  return false;
}

// Whether several rows stand at one place of the axis.
bool has_several_at(const ResultTable& table, const TableColumn& x) {
  std::set<std::string> seen;
  return std::ranges::any_of(table.rows, [&](const Record& row) {
    return !seen.insert(row.values.at(x.info.name).str()).second;
  });
}

bool differs(const ResultTable& table, const TableColumn& column) {
  const std::string& name = column.info.name;
  return std::ranges::any_of(table.rows, [&](const Record& row) {
    return row.values.at(name).str() != table.rows.front().values.at(name).str();
  });
}

// Runs, or values of the first parameter, lie along the axis, and each has several rows: a line for
// each point of the parameters, "n=4, precision=fp16". With one parameter that differs, for each of
// its values.
void add_lines_for_points(const std::vector<std::string>& parameters, PlotArgs* args,
                          ResultTable* table) {
  if (!args->x.empty() || !args->series.empty() || !args->facet.empty()) return;
  if (table->columns.empty() || draws(*args, table->columns.front()) ||
      !has_several_at(*table, table->columns.front()))
    return;
  std::vector<TableColumn> varied;
  const ShownPoint shown(table->columns, parameters, 1);
  for (const size_t i : shown.columns()) {
    const TableColumn& column = table->columns[i];
    if (!draws(*args, column) && differs(*table, column)) varied.push_back(column);
  }
  if (varied.empty()) return;
  args->x = table->columns.front().info.title;
  if (varied.size() == 1) {
    args->series = varied.front().info.title;
    return;
  }
  std::vector<std::string> titles;
  for (const TableColumn& column : varied) titles.push_back(column.info.title);
  TableColumn point = own_column("point", join(titles, ", "));
  point.info.type = ColumnType::text;
  for (Record& row : table->rows) {
    std::vector<std::string> values;
    for (const TableColumn& column : varied)
      values.push_back(row.values.at(column.info.name).str());
    row.values.set(point.info.name, Value{join(values, ", ")});
  }
  table->columns.push_back(point);
  args->series = point.title;
}

// The table that was asked for, or the first one with the columns.
// `parameters`: so that a line can be drawn for each point.
bool read_table(const Settings& settings, const PlotArgs& args, ResultTable* table,
                std::vector<std::string>* parameters) {
  std::vector<Run> runs;
  std::vector<RenderedResult> tables;
  if (!open_runs(settings, args.sources, args.ids, &runs) || !of_one_benchmark(settings, runs) ||
      !tables_of_runs(settings, runs, &tables)) {
    return false;
  }
  std::vector<std::string> names;
  for (const RenderedResult& one : tables) names.push_back(one.name);
  auto found = std::ranges::find_if(tables, [&](const RenderedResult& one) {
    return args.table.empty() ? has_columns(one.table, args) : one.name == args.table;
  });
  if (found == tables.end() && args.table.empty() && !tables.empty()) found = tables.begin();
  if (found == tables.end()) {
    print_error(settings,
                tables.empty() ? "the input of the run defines no table"
                               : fmt::format("there is no table '{}'", args.table),
                tables.empty() ? "" : "there are: " + join(names, ", "));
    return false;
  }
  *table = std::move(found->table);
  *parameters = parameter_order(runs.back().definitions());
  for (const std::string& note : table->missing_rows)
    fmt::print(stderr, "note: {}: {}\n", found->name, note);
  return true;
}

// The first column that is not the metric: the run, if there are several.
std::string first_column(const ResultTable& table, const std::string& y) {
  for (const TableColumn& column : table.columns) {
    if (column.name.value != y && column.title != y) return column.info.title;
  }
  return y;
}

// Keeps the rows for which `where` is true.
bool keep_rows(const Settings& settings, const std::string& where, ResultTable* table) {
  if (where.empty()) return true;
  const std::unique_ptr<Evaluator> evaluator = make_result_evaluator(settings);
  Diagnostics diagnostics;
  std::vector<Record> kept;
  const Text condition{where, {}};
  const RowCondition choice{condition, WithoutValue::leaves_out, "--where"};
  for (const size_t i : matching_rows(choice, table->rows, *evaluator, diagnostics).rows)
    kept.push_back(std::move(table->rows[i]));
  table->rows = std::move(kept);
  find_types(table->rows, table->columns);
  if (!diagnostics.has_errors() && !table->rows.empty()) return true;
  std::vector<std::string> names;
  for (const Column& column : table->columns) names.push_back(column.name.value);
  print_error(settings,
              diagnostics.has_errors() ? diagnostics.all().front().message
                                       : fmt::format("no row meets --where \"{}\"", where),
              "it is Python over the columns: " + join(names, ", "));
  return false;
}

Status write_chart(const Figure& figure, const std::string& path) {
  SvgOptions options;
  if (!to_lower(path).ends_with(".png")) return write_named_file(path, svg(figure, options));
  options.scale = 2;
  std::string png;
  TRY(png_of_svg(svg(figure, options), &png));
  return write_named_file(path, png);
}

}  // namespace

int plot_command(const Settings& settings, const PlotArgs& given) {
  PlotArgs args = given;
  const std::string ending = to_lower(args.out);
  if (!ending.ends_with(".svg") && !ending.ends_with(".png")) {
    print_error(settings, fmt::format("-o {}: a chart is written as .svg or .png", args.out));
    return kBadInput;
  }
  const auto files = std::ranges::count_if(args.sources, is_table_file);
  if (files > 0 && static_cast<size_t>(files) < args.sources.size()) {
    print_error(settings, "tables in files and runs do not make one chart",
                "plot either files or runs");
    return kBadInput;
  }
  ResultTable table;
  std::vector<std::string> parameters;
  const bool read = files > 0 ? read_tables(settings, args, &table)
                              : read_table(settings, args, &table, &parameters);
  if (!read || !keep_rows(settings, args.where, &table)) return kBadInput;
  if (!parameters.empty()) add_lines_for_points(parameters, &args, &table);
  if (args.x.empty()) args.x = first_column(table, args.y);
  Figure figure;
  if (print_if_error(settings, figure_of(chart_of(args), table, &figure))) return kBadInput;
  if (print_if_error(settings, write_chart(figure, args.out))) return kFailed;
  if (!settings.quiet) fmt::print("{}\n", args.out);
  return kFine;
}

void Application::add_plot() {
  CLI::App* sub = command("plot", "draw a chart of a CSV file, or of runs' tables", [this] {
    if (plot_.sources.empty()) {
      const auto takes = [](const std::string& word) { return exists(word) && !is_id(word); };
      give_back({&plot_.ids}, takes, &plot_.sources);
    }
    if (plot_.sources.empty()) plot_.sources.push_back(".");
    return plot_command(settings_, plot_);
  });
  const auto choice = [sub](const char* name, std::string& into, const char* what,
                            const char* key) {
    const KeyRule& rule = *find_key("chart", key);
    sub->add_option(name, into, what)
        ->check(CLI::IsMember(choices_of(rule)))
        ->option_text(rule.choices);
  };
  sub->add_option("sources", plot_.sources,
                  "CSV files; or folders of runs, runs' folders, input files; default: here")
      ->option_text("FILE|RUN ...");
  list(sub, "-i,--id", plot_.ids, "runs: numbers, -1 for the last one, last, all", "ID");
  sub->add_option("-o,--out", plot_.out, "the picture: .svg, or .png through librsvg")
      ->required()
      ->option_text("FILE");
  sub->add_option("-x,--x", plot_.x, "column along the axis; default: the first, or the run");
  sub->add_option("-y,--y,--metric", plot_.y,
                  "column whose values are drawn; several, by comma, are several lines or bars")
      ->required();
  sub->add_option(
      "--series", plot_.series,
      "column that has a line or a bar for each of its values; default: the parameters, "
      "where several rows have the same x");
  sub->add_option("--facet", plot_.facet, "column that has a panel for each of its values");
  sub->add_option("--where", plot_.where,
                  "rows that are drawn: Python over the columns, as \"precision == 'fp32'\"");
  sub->add_option("--table", plot_.table, "table of the runs; default: the first with the columns");
  choice("--kind", plot_.kind, "default: line", "kind");
  choice(
      "--error", plot_.error,
      "the interval of each value: of its `uncertainty`, or from columns Y_ci_low and Y_ci_high, "
      "Y_min and Y_max, Y_mad",
      "error");
  choice("--ideal", plot_.ideal, "a line to compare with, from the best first point", "ideal");
  choice("--log", plot_.log, "logarithmic axes", "log");
  sub->add_option("--title", plot_.title, "a title above the chart");
}

}  // namespace tally
