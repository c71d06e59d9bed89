#include "engine/cli/results.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "engine/base/path_text.h"
#include "engine/cli/jube_files.h"
#include "engine/cli/views.h"
#include "engine/expand/evaluator.h"
#include "engine/read/files.h"

namespace tally {
namespace {

const Analyser* find_analyser(const Benchmark& benchmark, const std::string& name) {
  for (const Analyser& analyser : benchmark.analysers) {
    if (analyser.name.value == name) return &analyser;
  }
  return nullptr;
}

void print_text(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int write_files(const Invocation& invocation, const std::string& folder,
                const std::vector<RenderedResult>& rendered) {
  int code = kFine;
  for (const RenderedResult& one : rendered) {
    if (!one.has_file) continue;
    std::string path = folder + "/" + one.name + ".dat";
    if (Status s = write_file(path, one.file_text); !s) {
      print_error(invocation, s.message());
      code = kFailed;
    }
  }
  return code;
}

// In the run's folder, or in one a run below the result's result_dir.
std::string result_directory(const OpenRun& run, const Result& result) {
  const std::string own = expand_path(result.result_dir.value);
  if (own.empty()) return run.directory.path + "/result";
  return join_path(run.benchmark->file_path, own) + "/" + padded_id(run.directory.id);
}

// A folder that cannot be written (another person's run) is no reason not to show the table.
bool make_result_directory(const std::string& folder) {
  const Status made = make_directories(folder);
  return static_cast<bool>(made) && ::access(folder.c_str(), W_OK) == 0;
}

}  // namespace

Records result_records(const Benchmark& benchmark, const Result& result,
                       const std::vector<PackageView>& views, Evaluator& evaluator,
                       Diagnostics& diagnostics) {
  Records records;
  for (const Text& use : result.use) {
    if (const Analyser* analyser = find_analyser(benchmark, use.value)) {
      append(records, analyse(benchmark, *analyser, views, evaluator, diagnostics));
    }
  }
  return records;
}

void print_results(const std::vector<RenderedResult>& rendered) {
  for (const RenderedResult& one : rendered) {
    if (one.text.empty() && one.notes.empty()) continue;
    print_text(one.text + (one.has_file && !one.text.empty() ? "\n" : ""));
    std::fflush(stdout);
    constexpr size_t kMost = 20;
    for (size_t i = 0; i < one.notes.size() && i < kMost; ++i) {
      fmt::print(stderr, "note: {}: {}\n", one.name, one.notes[i]);
    }
    if (one.notes.size() > kMost) {
      fmt::print(stderr, "note: {}: {} more notes\n", one.name, one.notes.size() - kMost);
    }
  }
}

namespace {

// -u stays in force, as JUBE's does: `analyse -u` and then `result` is the usual way to use it. The
// texts are kept with the run, each as its length, a newline and itself.
constexpr const char* kUpdate = "cli:update";

std::string pack(const std::string& file, const Sources& sources) {
  std::string out;
  const auto add = [&out](const std::string& text) {
    out += std::to_string(text.size()) + "\n" + text;
  };
  add(file);
  for (uint32_t i = 0; i < sources.size(); ++i) {
    add(sources.name(i));
    add(sources.text(i));
  }
  return out;
}

std::vector<std::string> unpack(const std::string& packed) {
  std::vector<std::string> out;
  for (size_t at = 0; at < packed.size();) {
    const size_t line = packed.find('\n', at);
    if (line == std::string::npos) break;
    const size_t size = std::strtoul(packed.c_str() + at, nullptr, 10);
    out.push_back(packed.substr(line + 1, size));
    at = line + 1 + size;
  }
  return out;
}

// A run that is in use, or another person's, shows the update this time only.
void keep_update(const std::string& file, const std::vector<std::string>& include_path,
                 OpenRun* run) {
  run->journal.reset();
  std::unique_ptr<Journal> writable;
  Status kept = Journal::open(run->directory.path, &writable);
  if (kept) kept = keep_include_path(include_path, *writable);
  if (kept) kept = writable->set_shared(kUpdate, pack(file, run->input->sources));
  if (!kept) {
    fmt::print(stderr, "note: -u {} is not kept for the next time: {}\n", file, kept.message());
  }
}

std::unique_ptr<Input> load_kept(const Invocation& invocation, const Journal& journal,
                                 const std::string& run_dir) {
  const std::optional<std::string> packed = journal.shared(kUpdate);
  if (!packed) return load_stored(invocation, journal, run_dir);
  const std::vector<std::string> texts = unpack(*packed);
  if (texts.empty()) return load_stored(invocation, journal, run_dir);
  std::vector<std::pair<std::string, std::string>> sources;
  for (size_t i = 1; i + 1 < texts.size(); i += 2) sources.emplace_back(texts[i], texts[i + 1]);
  return load_texts(invocation, journal, texts[0], sources, run_dir);
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

// Analyses with all the input's analysers and keeps what they find as analyse.xml. Returns the
// number of result lines. A folder that cannot be written is another person's run.
size_t analyse_all(const OpenRun& run, const std::vector<PackageView>& views, Evaluator& evaluator,
                   Diagnostics& diagnostics) {
  size_t rows = 0;
  std::vector<AnalyserResult> results;
  for (const Analyser& analyser : run.benchmark->analysers) {
    AnalyserResult& result = results.emplace_back();
    result.name = analyser.name.value;
    rows += analyse(*run.benchmark, analyser, views, evaluator, diagnostics, &result.packages)
                .rows.size();
  }
  if (::access(run.directory.path.c_str(), W_OK) != 0) return rows;
  if (Status kept = write_analyse_xml(results, run.directory.path); !kept) {
    diagnostics.warning({}, kept.message());
  }
  return rows;
}

}  // namespace

bool analyse_run(const OpenRun& run, size_t* rows) {
  Diagnostics diagnostics;
  std::unique_ptr<Evaluator> evaluator = make_evaluator(".");
  note_command(run.directory.path, "analyse", "analysed");
  *rows = analyse_all(run, package_views(*run.benchmark, *run.journal, run.directory.path),
                      *evaluator, diagnostics);
  print_diagnostics(diagnostics, run.input->sources);
  return !diagnostics.has_errors();
}

int show_results(const Invocation& invocation, const std::vector<OpenRun>& runs,
                 const ShowOptions& options) {
  if (runs.empty()) return kBadInput;
  const OpenRun& newest = runs.back();
  std::unique_ptr<Evaluator> evaluator = make_evaluator(".");
  Diagnostics diagnostics;
  std::vector<std::vector<PackageView>> views;
  for (const OpenRun& run : runs) {
    views.push_back(package_views(*run.benchmark, *run.journal, run.directory.path));
    // JUBE's result leaves the analysis, too; its problems are those that show below.
    Diagnostics said_below;
    if (invocation.as_jube && options.write) analyse_all(run, views.back(), *evaluator, said_below);
  }
  int code = kFine;
  size_t tables = 0;
  for (const Result& result : newest.benchmark->results) {
    Records merged;
    for (size_t i = 0; i < runs.size(); ++i) {
      const OpenRun& run = runs[i];
      Records own = result_records(*run.benchmark, result, views[i], *evaluator, diagnostics);
      RenderOptions render_options = options.render;
      render_options.run_id = run.directory.id;
      const std::string folder = result_directory(run, result);
      render_options.write = options.write && make_result_directory(folder);
      std::vector<RenderedResult> rendered =
          render(*newest.benchmark, result, own, render_options, folder, *evaluator, diagnostics);
      if (render_options.write) {
        code = std::max(code, write_files(invocation, folder, rendered));
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
      if (options.print) print_results(rendered);
      for (Record& row : own.rows) row.values["id"] = {static_cast<long long>(run.directory.id)};
      append(merged, std::move(own));
    }
    if (runs.size() == 1 || !options.print) continue;
    RenderOptions render_options = options.render;
    render_options.with_id = true;
    render_options.write = false;
    std::vector<RenderedResult> of_all =
        render(*newest.benchmark, result, merged, render_options, "", *evaluator, diagnostics);
    of_all.erase(std::remove_if(of_all.begin(), of_all.end(),
                                [](const RenderedResult& one) { return one.of_one_run; }),
                 of_all.end());
    print_results(of_all);
  }
  print_diagnostics(diagnostics, newest.input->sources);
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
