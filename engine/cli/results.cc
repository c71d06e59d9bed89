#include "engine/cli/results.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>

#include "engine/base/own_files.h"
#include "engine/base/path_text.h"
#include "engine/chart/from_table.h"
#include "engine/chart/svg.h"
#include "engine/cli/prepare.h"
#include "engine/cli/runs.h"
#include "engine/cli/version.h"
#include "engine/expand/evaluator.h"
#include "engine/journal/samples.h"
#include "engine/jube/jube_files.h"
#include "engine/read/files.h"
#include "engine/report/history.h"
#include "engine/results/views.h"

namespace tally {
namespace {

void print_text(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int write_files(const Invocation& invocation, const std::string& root, const std::string& folder,
                const std::vector<RenderedResult>& rendered) {
  int code = kFine;
  for (const RenderedResult& one : rendered) {
    if (!one.has_file) continue;
    std::string path = folder + "/" + one.name + ".dat";
    if (Status s = write_own_file(root, path, one.file_text); !s) {
      print_error(invocation, s.message());
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

// Draws the charts of a result into result/NAME.svg, with all columns of their tables.
int write_charts(const Invocation& invocation, const Result& result, const ResultTables& tables,
                 const RenderOptions& options, const std::vector<RenderedResult>& rendered,
                 const std::string& root, const std::string& folder, Diagnostics& diagnostics) {
  int code = kFine;
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
    const std::string path = folder + "/" + chart.name.value + ".svg";
    if (Status s = write_own_file(root, path, svg(figure)); !s) {
      print_error(invocation, s.message());
      code = kFailed;
    } else if (!invocation.quiet) {
      fmt::print(stderr, "note: chart '{}' is drawn in {}\n", chart.name.value, path);
    }
  }
  return code;
}

// Keeps the samples of a run beside the runs, for `tally history`. Nothing in JUBE's files.
int write_history(const Invocation& invocation, const OpenRun& run, const ReportedRun& reported,
                  const std::vector<RenderedResult>& tables) {
  if (invocation.as_jube || run.benchmark->as_jube) return kFine;
  const std::string text =
      history_file(*run.benchmark, reported, run.journal->run().start, tables, kVersion);
  if (text.empty()) return kFine;
  const std::string folder = reported.directory.substr(0, reported.directory.rfind('/'));
  const std::string path = history_path(folder, run.directory.id);
  Status written = make_directories(folder + "/history.d");
  if (written) written = write_file(path, text);
  if (!written) print_error(invocation, written.message(), "results are shown, but not kept");
  return written ? kFine : kFailed;
}

// If a table above has reported a failure or a busy machine, only the row is marked.
void print_notes(const RenderedResult& one, std::set<std::string>* told) {
  constexpr size_t kMost = 20;
  std::set<std::string> here;
  size_t count = 0;
  for (const Note& note : one.table.notes) {
    if (note.of_workpackage && told->count(note.text) != 0) continue;
    if (note.of_workpackage) here.insert(note.text);
    if (++count <= kMost)
      fmt::print(stderr, "note: {}: {}\n", one.name, for_stream(STDERR_FILENO, note.str()));
  }
  if (count > kMost) fmt::print(stderr, "note: {}: {} more notes\n", one.name, count - kMost);
  told->merge(here);
}

void print_missed(const std::string& table, const std::vector<MissedReference>& missed,
                  const char* severity, const Sources& sources) {
  constexpr size_t kMost = 100;
  for (size_t i = 0; i < missed.size() && i < kMost; ++i) {
    fmt::print(stderr, "{}: {}reference missed: {}: {}\n", place(sources, missed[i].mark), severity,
               table, for_stream(STDERR_FILENO, missed[i].text));
  }
  if (missed.size() > kMost)
    fmt::print(stderr, "{}: {}{} more references missed\n", table, severity, missed.size() - kMost);
}

}  // namespace

std::string result_directory(const OpenRun& run, const Result& result) {
  const std::string own = expand_path(result.result_dir.value);
  if (own.empty()) return run.directory.path + "/result";
  return join_path(run.benchmark->file_path, own) + "/" + padded_id(run.directory.id);
}

int print_results(const Invocation& invocation, const std::vector<RenderedResult>& rendered,
                  const Sources& sources) {
  int code = kFine;
  std::set<std::string> told;  // notes of workpackages below the tables above
  for (const RenderedResult& one : rendered) {
    if (one.text.empty() && one.table.notes.empty() && one.table.missed.empty() &&
        one.table.warned.empty())
      continue;
    print_text(for_stream(STDOUT_FILENO, one.text) +
               (one.has_file && !one.text.empty() ? "\n" : ""));
    std::fflush(stdout);
    print_notes(one, &told);
    print_missed(one.name, one.table.warned, "warning: ", sources);
    print_missed(one.name, one.table.missed, "", sources);
    if (!one.table.missed.empty() && !invocation.as_jube) code = kReferenceMissed;
  }
  return code;
}

void print_json(const std::string& style, const std::vector<ReportedRun>& runs,
                const std::vector<RenderedResult>& tables, const Sources& sources) {
  if (style == "json") print_text(json_document(runs, tables, sources, kVersion));
  if (style == "jsonl") print_text(json_lines(tables));
}

namespace {

// Keeps the update of -u for later commands, as JUBE does, because `analyse -u` followed by
// `result` is common. If the run is in use or belongs to another person, the update applies only
// this time.
void keep_update(const std::string& file, const std::vector<std::string>& include_path,
                 OpenRun* run) {
  run->journal.reset();
  std::unique_ptr<Journal> writable;
  Status kept = Journal::open(run->directory.path, &writable);
  if (kept) {
    RunRecord record = writable->run();
    note_include_path(include_path, &record);
    kept = writable->set_run(record);
  }
  if (kept) kept = writable->set_update(file, run->input->sources);
  if (!kept) {
    fmt::print(stderr, "note: -u {} is not kept for the next time: {}\n", file, kept.message());
  }
}

std::unique_ptr<Input> load_kept(const Invocation& invocation, const Journal& journal,
                                 const std::string& run_dir) {
  std::string file;
  Journal::Texts texts;
  if (Status s = journal.update(&file, &texts); !s) {
    print_error(invocation, s.message());
    return std::make_unique<Input>();
  }
  if (file.empty()) return load_stored(invocation, journal, run_dir);
  return load_texts(invocation, journal, file, texts, run_dir);
}

}  // namespace

bool open_run(const Invocation& invocation, const RunDirectory& directory,
              const std::string& update, const InputArgs& update_input, OpenRun* run) {
  run->directory = directory;
  if (Status s = Journal::open_read_only(directory.path, &run->journal); !s) {
    print_error(invocation, s.message());
    return false;
  }
  const RunRecord record = run->journal->run();
  if (update.empty()) {
    run->input = load_kept(invocation, *run->journal, directory.path);
  } else {
    InputArgs input = update_input;
    if (input.tags.empty()) input.tags = record.tags;
    run->input = load_input(invocation, update, input, false);
  }
  if (!run->input->workflow) return false;
  run->benchmark = run->input->find(record.benchmark);
  if (run->benchmark == nullptr) {
    print_error(invocation, fmt::format("'{}' has no benchmark '{}', which run {} is of", update,
                                        record.benchmark, record.id));
    return false;
  }
  if (update.empty()) return true;
  keep_update(update, update_input.include_path, run);
  if (Status s = Journal::open_read_only(directory.path, &run->journal); !s) {
    print_error(invocation, s.message());
    return false;
  }
  return true;
}

namespace {

// Analyses with all analysers of the input and stores the results as analyse.xml. Returns the
// number of result lines.
size_t analyse_all(const OpenRun& run, const std::vector<WorkpackageView>& views,
                   Evaluator& evaluator, Diagnostics& diagnostics, bool tell_unmatched) {
  size_t rows = 0;
  std::vector<AnalyserResult> results;
  for (const Analyser& analyser : run.benchmark->analysers) {
    AnalyserResult& result = results.emplace_back();
    result.name = analyser.name.value;
    const Records records =
        analyse(*run.benchmark, analyser, views, evaluator, diagnostics, &result.workpackages);
    rows += records.rows.size();
    if (tell_unmatched) warn_of_unmatched(records, diagnostics);
  }
  if (Status kept = write_analyse_xml(results, run.directory.path); !kept)
    diagnostics.error({}, kept.message());
  return rows;
}

}  // namespace

bool analyse_run(const Invocation& invocation, const OpenRun& run, size_t* rows) {
  Diagnostics diagnostics;
  std::unique_ptr<Evaluator> evaluator = make_result_evaluator(invocation);
  note_command(run.directory.path, "analyse", "analysed");
  std::vector<WorkpackageView> views;
  if (Status s = workpackage_views(*run.benchmark, *run.journal, run.directory.path, &views); !s) {
    diagnostics.error({}, s.message());
  } else {
    *rows = analyse_all(run, views, *evaluator, diagnostics, !invocation.as_jube);
  }
  print_diagnostics(invocation, diagnostics, run.input->sources);
  return !diagnostics.has_errors();
}

void keep_samples(const std::string& run_dir, const std::vector<Sample>& samples) {
  if (samples.empty()) return;
  std::unique_ptr<Journal> journal;
  Status kept = Journal::open(run_dir, &journal);
  if (kept) kept = samples_of(*journal).set_samples(samples);
  (void)static_cast<bool>(kept);
}

int show_results(const Invocation& invocation, const std::vector<OpenRun>& runs,
                 const ShowOptions& options) {
  if (runs.empty()) return kBadInput;
  const OpenRun& newest = runs.back();
  std::unique_ptr<Evaluator> evaluator = make_result_evaluator(invocation);
  Diagnostics diagnostics;
  std::vector<std::vector<WorkpackageView>> views;
  for (const OpenRun& run : runs) {
    Status read =
        workpackage_views(*run.benchmark, *run.journal, run.directory.path, &views.emplace_back());
    if (!read) {
      print_error(invocation, read.message());
      return kFailed;
    }
    // As in JUBE, `result` also writes the analysis. Its problems are the same as those reported
    // below.
    Diagnostics said_below;
    if (invocation.as_jube && options.write)
      analyse_all(run, views.back(), *evaluator, said_below, false);
  }
  int code = kFine;
  size_t tables = 0;
  std::vector<RenderedResult> reported;
  std::set<std::string> unwritable;
  for (const Result& result : newest.benchmark->results) {
    Records merged;
    for (size_t i = 0; i < runs.size(); ++i) {
      const OpenRun& run = runs[i];
      Records own = result_records(*run.benchmark, result, views[i], *evaluator, diagnostics, {},
                                   runs.size() == 1 ? options.samples : nullptr);
      if (!invocation.as_jube) warn_of_unmatched(own, diagnostics);
      RenderOptions render_options = options.render;
      render_options.run_id = run.directory.id;
      render_options.write = false;
      const std::string& root = run.directory.path;
      const std::string folder = result_directory(run, result);
      if (options.write) {
        // The folder may belong to another person. The table can be shown nevertheless.
        const Status made = make_result_directory(root, folder);
        render_options.write = static_cast<bool>(made);
        if (!made) code = std::max(code, kFailed);
        if (!made && unwritable.insert(folder).second)
          print_error(invocation, made.message(), "results are shown, but not kept");
      }
      const ResultTables shown(*newest.benchmark, own, *evaluator, diagnostics);
      std::vector<RenderedResult> rendered =
          render(*newest.benchmark, result, shown, render_options, folder, diagnostics);
      if (render_options.write) {
        code = std::max(code, write_files(invocation, root, folder, rendered));
        if (!invocation.as_jube && !newest.benchmark->as_jube) {
          code = std::max(code, write_charts(invocation, result, shown, options.render, rendered,
                                             root, folder, diagnostics));
        }
        note_command(
            run.directory.path, "result",
            fmt::format("{} result{} written", rendered.size(), rendered.size() == 1 ? "" : "s"));
      }
      tables += rendered.size();
      if (options.print && runs.size() > 1) {
        rendered.erase(std::remove_if(rendered.begin(), rendered.end(),
                                      [](const RenderedResult& one) { return !one.of_one_run; }),
                       rendered.end());
      }
      if (options.print)
        code = std::max(code, print_results(invocation, rendered, newest.input->sources));
      if (runs.size() == 1)
        std::move(rendered.begin(), rendered.end(), std::back_inserter(reported));
      for (Record& row : own.rows) row.values["id"] = {static_cast<long long>(run.directory.id)};
      append(merged, std::move(own));
    }
    if (runs.size() == 1 || !options.print) continue;
    RenderOptions render_options = options.render;
    render_options.with_id = true;
    render_options.write = false;
    const ResultTables shown(*newest.benchmark, merged, *evaluator, diagnostics);
    std::vector<RenderedResult> of_all =
        render(*newest.benchmark, result, shown, render_options, "", diagnostics);
    of_all.erase(std::remove_if(of_all.begin(), of_all.end(),
                                [](const RenderedResult& one) { return one.of_one_run; }),
                 of_all.end());
    code = std::max(code, print_results(invocation, of_all, newest.input->sources));
    std::move(of_all.begin(), of_all.end(), std::back_inserter(reported));
  }
  std::vector<ReportedRun> reported_runs;
  for (const OpenRun& run : runs) {
    Journal::Facts facts;
    if (Status s = run_facts(*run.journal, &facts); !s) diagnostics.error({}, s.message());
    reported_runs.push_back({run.directory.id, absolute_path(run.directory.path),
                             run.benchmark->name.value, std::move(facts)});
  }
  if (options.print && (tables != 0 || options.render.only.empty()))
    print_json(options.render.style, reported_runs, reported, newest.input->sources);
  if (options.write && runs.size() == 1 && options.render.only.empty())
    code = std::max(code, write_history(invocation, runs.front(), reported_runs.front(), reported));
  if (options.shown != nullptr) *options.shown = std::move(reported);
  print_diagnostics(invocation, diagnostics, newest.input->sources);
  if (tables == 0 && options.print) {
    if (!options.render.only.empty()) {
      print_error(invocation, "the input has no result of that name");
      return kBadInput;
    }
    if (newest.benchmark->results.empty()) {
      fmt::print(stderr, "{}: the input defines no result\n", invocation.program);
    }
  }
  return diagnostics.has_errors() ? std::max(code, kFailed) : code;
}

}  // namespace tally
