// tally report
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/chart/from_table.h"
#include "engine/chart/svg.h"
#include "engine/cli/application.h"
#include "engine/cli/explained.h"
#include "engine/cli/report_text.h"
#include "engine/cli/runs.h"
#include "engine/cli/show_results.h"
#include "engine/cli/summary.h"
#include "engine/cli/version.h"
#include "engine/report/html_report.h"
#include "engine/report/report.h"
#include "engine/report/result_files.h"
#include "engine/report/runs_beside.h"
#include "engine/results/rows/point_key.h"
#include "engine/results/table/columns.h"
#include "engine/results/table/marks.h"
#include "engine/results/table/repeats.h"

namespace tally {
namespace {

// The last lines of a file, at most `most` bytes of them. Empty if it cannot be read.
std::string last_bytes(const std::string& path, size_t most) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const auto size = static_cast<size_t>(std::max<std::streamoff>(0, file.tellg()));
  const size_t count = std::min(size, most);
  std::string text(count, '\0');
  file.seekg(static_cast<std::streamoff>(size - count));
  file.read(text.data(), static_cast<std::streamsize>(count));
  if (!file) return {};
  if (size > count) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
  return std::string(strip(text));
}

// The widths for which the charts of a page are laid out: that of a screen, and that of a phone.
constexpr double kPageChart = 960;
constexpr double kNarrowChart = 460;

class ReportMaker {
 public:
  ReportMaker(const Settings& settings, const ReportArgs& args) : settings_(settings), args_(args) {
    const std::string out = absolute_path(args.out.empty() ? "report" : args.out);
    folder_ = out.substr(0, std::max<size_t>(1, out.rfind('/')));
  }

  int make() {
    const std::string format = report_format(args_.format, args_.out);
    if (format == "html" && args_.out.empty()) {
      print_error(settings_, "an HTML report needs a file",
                  "name it with -o report.html; --format md, json, junit and csv print to standard "
                  "output without -o");
      return kBadInput;
    }
    if (!open_runs(settings_, args_.runs, args_.ids, &runs_)) return kBadInput;
    std::vector<RenderedResult> tables;
    if (!tables_of_runs(settings_, runs_, &tables)) return kFailed;
    report_.title =
        args_.title.empty() ? "Report of " + runs_.back().definitions().name.value : args_.title;
    report_.made = fmt::format("made at {} by tally {}", time_stamp(), kVersion);
    for (const Run& run : runs_) {
      if (print_if_error(settings_, add_run(run))) return kFailed;
    }
    if (format != "html" && format != "md") {
      std::string text;
      if (print_if_error(settings_, report_text(format, runs_, tables, &text))) return kBadInput;
      if (format == "csv") print_notes(tables);  // it has no place for them
      return write(text);
    }
    for (const RenderedResult& table : tables) add_table(table);
    if (format == "md") return write(markdown_report(report_));
    std::set<const Result*> drawn;
    for (const RenderedResult& table : tables) {
      if (!drawn.insert(table.result).second) continue;
      for (const Chart& chart : table.result->charts) add_chart(*table.result, chart, tables);
    }
    for (const Run& run : runs_) {
      add_fleet_map(run);
      if (print_if_error(settings_, add_waterfalls(run))) return kFailed;
    }
    return write(html_report(report_));
  }

 private:
  int write(const std::string& text) const {
    if (args_.out.empty()) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      return code_;
    }
    if (print_if_error(settings_, write_named_file(args_.out, text))) return kFailed;
    if (!settings_.quiet) fmt::print("{}\n", args_.out);
    return code_;
  }

  std::string link_to(const std::string& path) const {
    return relative_path(absolute_path(path), folder_);
  }

  Status add_run(const Run& run) {
    const RunRecord record = run.journal().run();
    std::vector<Journal::Stored> workpackages;
    TRY(run.journal().workpackages(&workpackages));
    ReportRun out;
    out.title = fmt::format("{}, run {}", record.benchmark, record.id);
    out.link = link_to(run.directory().path);
    const auto fact = [&](const char* name, const std::string& value) {
      if (!value.empty()) out.facts.emplace_back(name, value);
    };
    std::vector<std::string> set;
    for (const auto& [name, value] : record.set) set.push_back(name + "=" + value);
    fact("Comment", record.comment);
    fact("Input file", record.input_file);
    fact("Tags", join(record.tags, ", "));
    fact("--set", join(set, " "));
    fact("Started in", record.directory);
    fact("Started", record.start);
    fact("Last change", last_change(record, workpackages));
    fact("Version", record.version.empty() ? "" : "tally " + record.version);
    fact("Workpackages", counts(workpackages));
    Journal::Facts facts;
    TRY(run_facts(run.journal(), &facts));
    for (const auto& [name, value] : facts) out.facts.emplace_back(name, value);
    out.workpackages = workpackages.size();
    for (const Journal::Stored& stored : workpackages) {
      const State state = stored.workpackage.outcome.state;
      out.unfinished += has_failed(state) || finished_well(state) ? 0 : 1;
    }
    for (const EqualFailures& failure : equal_failures(workpackages))
      out.failures.push_back(shown_failure(run, failure, workpackages));
    report_.runs.push_back(std::move(out));
    return Status::ok();
  }

  // "12 done, 1 failed"
  static std::string counts(const std::vector<Journal::Stored>& workpackages) {
    std::map<State, int> by_state;
    for (const Journal::Stored& stored : workpackages) ++by_state[stored.workpackage.outcome.state];
    std::vector<std::string> parts;
    for (const auto& [state, count] : by_state)
      parts.push_back(fmt::format("{} {}", count, state_name(state)));
    return parts.empty() ? "none" : join(parts, ", ");
  }

  // "gpus=4 precision=fp16"
  static std::string values_of(const std::vector<std::pair<std::string, std::string>>& parameters) {
    constexpr size_t kMost = 40;
    std::vector<std::string> values;
    for (const auto& [name, value] : parameters)
      if (values.size() < kMost) values.push_back(fmt::format("{}={}", name, one_line(value)));
    return join(values, " ");
  }

  ReportFailure shown_failure(const Run& run, const EqualFailures& failure,
                              const std::vector<Journal::Stored>& workpackages) const {
    const Journal::Stored& first = *failure.all.front();
    const std::string of_run =
        runs_.size() > 1 ? fmt::format("run {}, ", run.directory().id) : std::string();
    const bool lost = first.workpackage.outcome.state == State::lost;
    ReportFailure out;
    out.count = failure.all.size();
    out.link = link_to(run.directory().path + "/" + first.directory);
    if (out.count == 1) {
      out.name = fmt::format("{}workpackage {} ({}) {}", of_run, first.workpackage.id, first.step,
                             lost ? "was lost" : "failed");
      out.values = values_of(first.parameters);
    } else {
      out.name = fmt::format("{}{} workpackages ({}) {}", of_run, out.count, first.step,
                             lost ? "were lost" : "failed");
      out.values = values_of(shared_parameters(failure, workpackages));
      for (const Journal::Stored* stored : failure.all)
        out.members.emplace_back(fmt::format("workpackage {}: {}", stored->workpackage.id,
                                             values_of(stored->parameters)),
                                 link_to(run.directory().path + "/" + stored->directory));
    }
    out.cause = strip(message_in_short(first.workpackage.outcome));
    out.message = strip(message(first.workpackage.outcome));
    const std::string printed = last_bytes(output_of(run.directory(), first, "stdout"), 1000);
    if (!printed.empty())
      out.message += fmt::format("\n\nThe end of {}stdout:\n{}",
                                 out.count > 1 ? "the first one's " : "", printed);
    return out;
  }

  void add_table(const RenderedResult& rendered) {
    ReportTable out;
    out.name = rendered.name;
    out.grid = rendered.grid;
    for (const TableColumn& column : rendered.table.columns)
      out.numeric.push_back(column.info.numeric());
    for (const Record& row : rendered.table.rows) out.failed.push_back(row.failed());
    for (const Record& row : rendered.table.rows) add_doubts(row, rendered.table.columns, &out);
    for (const TableColumn& column : rendered.table.columns)
      out.marks.push_back(column.info.kind == ColumnKind::own ||
                          column.name.value == kStatusColumn);
    out.notes = repeats_legend(rendered.table);
    for (std::string& note : grouped_notes(rendered.table.notes))
      out.notes.push_back(std::move(note));
    out.references_passed = rendered.table.references_passed;
    for (const MissedReference& missed : rendered.table.missed) {
      out.missed.push_back(missed.text);
      add_miss(rendered.table, missed, false, &out);
    }
    for (const MissedReference& missed : rendered.table.warned) {
      out.warned.push_back(missed.text);
      add_miss(rendered.table, missed, true, &out);
    }
    if (runs_.size() > 1) {
      const RunsBeside beside = runs_beside(rendered, parameters());
      out.beside = beside.grid;
      out.beside_numeric = beside.numeric;
    }
    if (runs_.size() == 1) {
      const std::string folder = result_directory(runs_.front(), *rendered.result);
      const std::string file = folder + "/" + rendered.name + ".dat";
      if (other_owner(runs_.front(), folder).empty() && std::ifstream(file))
        out.link = link_to(file);
    }
    report_.tables.push_back(std::move(out));
  }

  // The parameters of all runs, which may be of several benchmarks.
  std::vector<std::string> parameters() const {
    std::vector<std::string> names;
    for (const Run& run : runs_)
      for (const std::string& name : parameter_order(run.definitions())) names.push_back(name);
    return names;
  }

  // The warning that a reader needs before the row's numbers count. Rows that failed or have not
  // ended are counted as workpackages.
  static void add_doubts(const Record& row, const std::vector<TableColumn>& columns,
                         ReportTable* out) {
    if (row.state == State::changed) ++out->doubtful[state_mark(row)];
    if (!row.measured()) return;
    if (row.reused) ++out->doubtful[state_mark(row)];
    for (const std::string& mark : split_strip(marks_of(row, columns), " "))
      if (!mark.empty()) ++out->doubtful[mark];
    for (const TableColumn& column : columns) {
      const bool own = column.info.kind == ColumnKind::own;
      if (!own && !row.values.has(column.info.name)) ++out->empty_cells;
    }
  }

  static void add_miss(const ResultTable& table, const MissedReference& missed, bool warned,
                       ReportTable* out) {
    if (missed.row < 0) return;
    const auto shows = [&](const TableColumn& column) { return column.info.name == missed.key; };
    const auto found = std::ranges::find_if(table.columns, shows);
    out->misses.push_back({static_cast<size_t>(missed.row),
                           static_cast<size_t>(found - table.columns.begin()), missed.text,
                           warned});
  }

  static void print_notes(const std::vector<RenderedResult>& tables) {
    for (const RenderedResult& one : tables) {
      for (const Note& note : one.table.notes) {
        if (!note.of_run) fmt::print(stderr, "note: {}: {}\n", one.name, note.str());
      }
    }
  }

  // The bars of a step, for each point whose records have them.
  Status add_waterfalls(const Run& run) {
    constexpr size_t kMost = 12;
    std::vector<ExplainedPoint> points;
    TRY(explained_points(run, &points));
    for (size_t i = 0; i < points.size() && i < kMost; ++i) {
      const std::string title = fmt::format(
          "Where the time goes: {}{}", label_of(points[i]),
          runs_.size() > 1 ? fmt::format(", run {}", run.directory().id) : std::string());
      ReportChart out;
      out.name = title;
      SvgOptions options;
      options.id = fmt::format("c{}", report_.charts.size());
      options.width = kPageChart;
      out.svg = draw(points[i].waterfall, title, options);
      options.id += "n";
      options.width = kNarrowChart;
      out.narrow = draw(points[i].waterfall, title, options);
      if (points.size() > kMost && i + 1 == kMost)
        out.notes.push_back(
            fmt::format("{} more points explain their time", points.size() - kMost));
      report_.charts.push_back(std::move(out));
    }
    return Status::ok();
  }

  // The map of a fleet, as its run has left it.
  void add_fleet_map(const Run& run) {
    ReportChart map;
    if (!run.benchmark().fleet.is_tested() ||
        !read_file(run.directory().path + "/result/fleet.svg", &map.svg))
      return;
    map.name = "fleet";
    report_.charts.push_back(std::move(map));
  }

  // With several runs, each has its own panel or series.
  void add_chart(const Result& result, Chart chart, const std::vector<RenderedResult>& tables) {
    const Table* drawn = drawn_table(result, chart);
    for (size_t i = 0; i < tables.size(); ++i) {
      const RenderedResult& table = tables[i];
      if (table.definition != drawn) continue;
      if (runs_.size() > 1) {
        const std::string& run = table.table.columns.front().name.value;
        if (chart.facet.value.empty()) {
          chart.facet.value = run;
        } else if (chart.series.value.empty()) {
          chart.series.value = run;
        }
      }
      ReportChart out;
      out.name = chart.name.value;
      out.table = i;
      Figure figure;
      if (Status made = figure_of(chart, table.table, &figure); !made) {
        out.problem = made.message();
        print_error(settings_, fmt::format("chart '{}': {}", out.name, out.problem));
        code_ = kFailed;
      } else {
        out.notes = std::exchange(figure.notes, {});  // said below all charts
        SvgOptions options;
        options.id = fmt::format("c{}", report_.charts.size());
        options.standalone = false;
        options.width = kPageChart;
        out.svg = svg(figure, options);
        options.id += "n";
        options.width = kNarrowChart;
        out.narrow = svg(figure, options);
      }
      report_.charts.push_back(std::move(out));
    }
  }

  const Settings& settings_;
  const ReportArgs& args_;
  std::string folder_;  // of the report
  std::vector<Run> runs_;
  Report report_;
  int code_ = kFine;
};

}  // namespace

int report_command(const Settings& settings, const ReportArgs& args) {
  return ReportMaker(settings, args).make();
}

void Application::add_report() {
  CLI::App* sub =
      command("report", "write runs' results into one file, for people or programs", [this] {
        if (report_.runs.empty()) {
          const auto takes = [](const std::string& word) { return exists(word) && !is_id(word); };
          give_back({&report_.ids}, takes, &report_.runs);
        }
        if (report_.runs.empty()) report_.runs.push_back(".");
        return report_command(settings_, report_);
      });
  sub->add_option("runs", report_.runs,
                  "folders of runs, runs' folders, input files; default: here")
      ->option_text("RUN ...");
  list(sub, "-i,--id", report_.ids, "runs: numbers, -1 for the last one, last, all", "ID");
  sub->add_option("-o,--out", report_.out,
                  "the file to write; default: standard output, but not for html")
      ->option_text("FILE");
  sub->add_option("--format", report_.format,
                  "html, md, json, junit or csv; default: what the file's ending says")
      ->check(CLI::IsMember({"html", "md", "json", "junit", "csv"}))
      ->option_text("FORMAT");
  sub->add_option("--title", report_.title, "the report's title");
}

}  // namespace tally
