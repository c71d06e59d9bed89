#include "engine/report/result_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/base/files.h"
#include "engine/base/own_files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/chart/from_table.h"
#include "engine/chart/svg.h"
#include "engine/jube/jube_files.h"
#include "engine/read/input_files.h"

namespace tally {
namespace {

// In a folder of results outside of the run: the path of the run.
constexpr const char* kOwner = "/.tally-run";

void say(Severity severity, const std::string& message, const std::string& hint, MadeResult* made) {
  made->said.push_back({{}, 0, 0, severity, message, hint});
}

Status make_result_directory(const std::string& root, const std::string& folder) {
  TRY(make_own_directories(root, folder));
  if (::access(folder.c_str(), W_OK) == 0) return Status::ok();
  return Status::error(fmt::format("cannot write to '{}': {}", folder, std::strerror(errno)));
}

}  // namespace

std::string result_directory(const Run& run, const Result& result) {
  const std::string own = expand_path(result.result_dir.value);
  if (own.empty()) return run.directory().path + "/result";
  return join_path(run.definitions().file_path, own) + "/" + padded_id(run.directory().id);
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

MadeResult ResultFiles::make(const Benchmark& definitions, const Result& result,
                             const ResultTables& tables, Diagnostics& diagnostics) {
  MadeResult made;
  made.result = &result;
  RenderOptions options = options_;
  options.write = false;
  if (run_ != nullptr) {
    options.run_id = run_->directory().id;
    options.run_key = run_key(result);
    options.result_dir = result_directory(*run_, result);
    options.write = write_ && ready(definitions, options.result_dir, &made);
  }
  made.outputs = render(definitions, result, tables, options, diagnostics);
  if (!options.write) return made;
  write_tables(options.result_dir, &made);
  if (definitions.rules.charts_are_drawn)
    write_charts(tables, options.result_dir, &made, diagnostics);
  const size_t count = made.outputs.size();
  note_command(run_->directory().path, "result",
               fmt::format("{} result{} written", count, count == 1 ? "" : "s"));
  return made;
}

std::string ResultFiles::run_key(const Result& result) const {
  std::string key = fmt::format("{} {} {}", run_->definitions().name.value,
                                padded_id(run_->directory().id), run_->journal().run().start);
  for (const Text& analyser : result.use) key += " " + analyser.value;
  return key;
}

void ResultFiles::write_tables(const std::string& folder, MadeResult* made) {
  for (const RenderedResult& one : made->outputs) {
    if (!one.has_file) continue;
    const std::string path = folder + "/" + one.name + ".dat";
    if (Status s = write_own_file(run_->directory().path, path, one.file_text); !s)
      say(Severity::error, s.message(), {}, made);
  }
}

// Draws the charts of a result into result/NAME.svg, with all columns of their tables.
void ResultFiles::write_charts(const ResultTables& tables, const std::string& folder,
                               MadeResult* made, Diagnostics& diagnostics) const {
  const bool all_columns = options_.select.empty() && options_.exclude.empty();
  std::vector<std::string> written;
  for (const Chart& chart : made->result->charts) {
    const auto& only = options_.only;
    const Table* table = drawn_table(*made->result, chart);
    const bool wanted = only.empty() || std::ranges::any_of(only, [&](const auto& name) {
                          return name == chart.name.value || name == table->name.value;
                        });
    if (!wanted) continue;
    const auto& outputs = made->outputs;
    const auto shown = std::ranges::find_if(outputs, [&](const auto& one) {
      return all_columns && one.definition != nullptr && one.name == table->name.value;
    });
    Figure figure;
    const Status drawn = shown != outputs.end()
                             ? figure_of(chart, shown->table, &figure)
                             : figure_of(chart, tables.table(*table, {}), &figure);
    if (!drawn) {
      diagnostics.error(chart.name.mark,
                        fmt::format("chart '{}': {}", chart.name.value, drawn.message()));
      continue;
    }
    const std::string path = folder + "/" + chart.name.value + ".svg";
    if (Status s = write_own_file(run_->directory().path, path, svg(figure)); !s) {
      say(Severity::error, s.message(), s.hint(), made);
    } else {
      written.push_back(chart.name.value);
    }
  }
  if (written.size() == 1)
    say(Severity::note,
        fmt::format("chart '{}' is drawn in {}/{}.svg", written[0], folder, written[0]), {}, made);
  if (written.size() > 1)
    say(Severity::note,
        fmt::format("{} charts are drawn in {}: {}.svg", written.size(), folder,
                    join(written, ".svg, ")),
        {}, made);
}

bool ResultFiles::ready(const Benchmark& definitions, const std::string& folder, MadeResult* made) {
  const bool guarded = definitions.rules.outside_files_are_guarded;
  return (!guarded || may_write(folder, made)) && make_folder(folder, made) &&
         (!guarded || claim(folder, made));
}

// Two outpaths with one result_dir have runs of the same id.
bool ResultFiles::may_write(const std::string& folder, MadeResult* made) {
  const std::string owner = other_owner(*run_, folder);
  if (owner.empty()) return true;
  if (unwritable_.insert(folder).second)
    say(Severity::error,
        fmt::format("'{}' has the results of run '{}'; they are not overwritten", folder, owner),
        "results are shown, but not kept: give each outpath a result_dir of its own", made);
  return false;
}

// Writes down whose results are in a folder outside of the run.
bool ResultFiles::claim(const std::string& folder, MadeResult* made) const {
  const std::string own = absolute_path(run_->directory().path);
  if (starts_with(absolute_path(folder), own + "/")) return true;
  const Status written = write_file(folder + kOwner, own + "\n");
  if (!written) say(Severity::error, written.message(), "results are shown, but not kept", made);
  return static_cast<bool>(written);
}

// The folder may belong to another person. The table can be shown nevertheless.
bool ResultFiles::make_folder(const std::string& folder, MadeResult* made) {
  const Status there = make_result_directory(run_->directory().path, folder);
  if (!there && unwritable_.insert(folder).second)
    say(Severity::error, there.message(), "results are shown, but not kept", made);
  return static_cast<bool>(there);
}

}  // namespace tally
