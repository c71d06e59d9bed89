#include "engine/cli/result_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "engine/base/files.h"
#include "engine/base/own_files.h"
#include "engine/base/path_text.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/chart/from_table.h"
#include "engine/chart/svg.h"
#include "engine/expand/evaluator.h"
#include "engine/jube/jube_files.h"
#include "engine/read/files.h"

namespace tally {
namespace {

// In a folder of results outside of the run: the path of the run.
constexpr const char* kOwner = "/.tally-run";

int write_files(const Settings& settings, const std::string& root, const std::string& folder,
                const std::vector<RenderedResult>& rendered) {
  int code = kFine;
  for (const RenderedResult& one : rendered) {
    if (!one.has_file) continue;
    std::string path = folder + "/" + one.name + ".dat";
    if (Status s = write_own_file(root, path, one.file_text); !s) {
      print_error(settings, s.message());
      code = kFailed;
    }
  }
  return code;
}

Status make_result_directory(const std::string& root, const std::string& folder) {
  if (Status made = make_own_directories(root, folder); !made) return made;
  if (::access(folder.c_str(), W_OK) == 0) return Status::ok();
  return Status::error(fmt::format("cannot write to '{}': {}", folder, std::strerror(errno)));
}

}  // namespace

std::string result_directory(const Run& run, const Result& result) {
  const std::string own = expand_path(result.result_dir.value);
  if (own.empty()) return run.directory().path + "/result";
  return join_path(run.definitions().file_path, own) + "/" + padded_id(run.directory().id);
}

std::vector<RenderedResult> ResultWriter::render_and_write(const Run& run,
                                                           const Benchmark& definitions,
                                                           const Result& result,
                                                           const ResultTables& tables,
                                                           Diagnostics& diagnostics) {
  RenderOptions render_options = options_.render;
  render_options.run_id = run.directory().id;
  std::string use;
  for (const Text& analyser : result.use) use += " " + analyser.value;
  render_options.run_key =
      fmt::format("{} {} {}{}", run.definitions().name.value, padded_id(run.directory().id),
                  run.journal().run().start, use);
  const std::string& root = run.directory().path;
  const std::string folder = result_directory(run, result);
  const bool guarded = definitions.rules.outside_files_are_guarded;
  render_options.write = options_.write && (!guarded || may_write(run, folder)) &&
                         make_folder(root, folder) && (!guarded || claim(run, folder));
  std::vector<RenderedResult> rendered =
      render(definitions, result, tables, render_options, folder, diagnostics);
  if (!render_options.write) return rendered;
  code_ = std::max(code_, write_files(settings_, root, folder, rendered));
  if (definitions.rules.charts_are_drawn) {
    write_charts(result, tables, rendered, {root, folder}, diagnostics);
  }
  note_command(
      run.directory().path, "result",
      fmt::format("{} result{} written", rendered.size(), rendered.size() == 1 ? "" : "s"));
  return rendered;
}

// Draws the charts of a result into result/NAME.svg, with all columns of their tables.
void ResultWriter::write_charts(const Result& result, const ResultTables& tables,
                                const std::vector<RenderedResult>& rendered, const Folder& folder,
                                Diagnostics& diagnostics) {
  const RenderOptions& options = options_.render;
  const bool all_columns = options.select.empty() && options.exclude.empty();
  for (const Chart& chart : result.charts) {
    const auto& only = options.only;
    const Table* table = drawn_table(result, chart);
    const bool wanted =
        only.empty() || std::any_of(only.begin(), only.end(), [&](const auto& name) {
          return name == chart.name.value || name == table->name.value;
        });
    if (!wanted) continue;
    const auto shown = std::find_if(rendered.begin(), rendered.end(), [&](const auto& one) {
      return all_columns && one.is_table && one.name == table->name.value;
    });
    Figure figure;
    const Status made = shown != rendered.end()
                            ? figure_of(chart, shown->table, &figure)
                            : figure_of(chart, tables.table(*table, {}), &figure);
    if (!made) {
      diagnostics.error(chart.name.mark,
                        fmt::format("chart '{}': {}", chart.name.value, made.message()));
      continue;
    }
    const std::string path = folder.path + "/" + chart.name.value + ".svg";
    if (Status s = write_own_file(folder.root, path, svg(figure)); !s) {
      print_error(settings_, s);
      code_ = std::max<int>(code_, kFailed);
    } else if (!settings_.quiet) {
      fmt::print(stderr, "note: chart '{}' is drawn in {}\n", chart.name.value, path);
    }
  }
}

std::string other_owner(const Run& run, const std::string& folder) {
  std::string owner;
  if (Status s = read_file(folder + kOwner, &owner); !s)
    return means_not_there(s.reason()) ? "" : s.message();
  owner = strip(owner);
  bool exists = false;
  const bool known(folder_exists(owner, &exists));
  return (exists || !known) && owner != absolute_path(run.directory().path) ? owner : "";
}

// Two outpaths with one result_dir have runs of the same id.
bool ResultWriter::may_write(const Run& run, const std::string& folder) {
  const std::string owner = other_owner(run, folder);
  if (owner.empty()) return true;
  code_ = std::max(code_, kFailed);
  if (unwritable_.insert(folder).second)
    print_error(
        settings_,
        fmt::format("'{}' has the results of run '{}'; they are not overwritten", folder, owner),
        "results are shown, but not kept: give each outpath a result_dir of its own");
  return false;
}

// Writes down whose results are in a folder outside of the run.
bool ResultWriter::claim(const Run& run, const std::string& folder) {
  const std::string own = absolute_path(run.directory().path);
  if (starts_with(absolute_path(folder), own + "/")) return true;
  const Status written = write_file(folder + kOwner, own + "\n");
  if (!written) print_error(settings_, written.message(), "results are shown, but not kept");
  if (!written) code_ = std::max(code_, kFailed);
  return static_cast<bool>(written);
}

// The folder may belong to another person. The table can be shown nevertheless.
bool ResultWriter::make_folder(const std::string& root, const std::string& folder) {
  const Status made = make_result_directory(root, folder);
  if (made) return true;
  code_ = std::max(code_, kFailed);
  if (unwritable_.insert(folder).second)
    print_error(settings_, made.message(), "results are shown, but not kept");
  return false;
}

}  // namespace tally
