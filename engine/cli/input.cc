#include "engine/cli/input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "engine/base/files.h"
#include "engine/base/path_text.h"
#include "engine/base/terminal.h"
#include "engine/base/text.h"
#ifdef TALLY_STATIC
#include "engine/cli/embedded_templates.h"
#endif
#include "engine/execute/files/run_directory.h"
#include "engine/read/files.h"

#ifndef TALLY_TEMPLATES_DIR
#define TALLY_TEMPLATES_DIR ""
#endif

namespace tally {
namespace {

bool split_settings(const Settings& settings, const std::vector<std::string>& given,
                    std::vector<std::pair<std::string, std::string>>* out) {
  for (const std::string& setting : given) {
    size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      print_error(settings, fmt::format("--set {}: not of the form name=value", setting));
      return false;
    }
    out->emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  return true;
}

// Which of the files beside a path that names none was probably meant, as a hint: the one with
// another extension, else the one with the nearest name; a bare name may be one of `workflows/`.
std::string meant_file(const std::string& path) {
  const std::filesystem::path wanted(path), folder = wanted.parent_path();
  std::vector<std::filesystem::path> names;
  std::vector<std::string> stems;
  std::error_code error;
  for (std::filesystem::directory_iterator file(folder.empty() ? "." : folder, error), end;
       !error && file != end; file.increment(error)) {
    const std::string extension = file->path().extension();
    if (extension == ".yaml" || extension == ".yml" || extension == ".xml")
      names.push_back(file->path().filename());
  }
  std::sort(names.begin(), names.end());
  for (const std::filesystem::path& name : names) stems.push_back(name.stem());
  const std::string stem = wanted.stem();
  for (const std::string& meant : {stem, nearest(stem, stems)}) {
    const auto found = std::find(stems.begin(), stems.end(), meant);
    if (found != stems.end())
      return fmt::format("did you mean '{}'?", (folder / names[found - stems.begin()]).string());
  }
  if (folder.empty() && std::filesystem::is_directory("workflows", error))
    return meant_file("workflows/" + path);
  return {};
}

}  // namespace

std::string program_directory() {
  char path[PATH_MAX];
  ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) return {};
  std::string program(path, static_cast<size_t>(length));
  return program.substr(0, program.rfind('/'));
}

const Benchmark* Input::find(const std::string& benchmark) const {
  if (!workflow) return nullptr;
  for (const Benchmark& candidate : workflow->benchmarks) {
    if (candidate.name.value == benchmark) return &candidate;
  }
  return nullptr;
}

std::set<std::string> Input::tags() const {
  if (!workflow) return {};
  return {workflow->tags.begin(), workflow->tags.end()};
}

std::vector<std::string> template_directories() {
  std::vector<std::string> directories;
  if (const char* own = std::getenv("TALLY_TEMPLATES")) directories = split_strip(own, ":");
  std::string program = program_directory();
  if (!program.empty()) directories.push_back(program + "/../share/tally/templates");
  std::string built = TALLY_TEMPLATES_DIR;
  if (!built.empty()) directories.push_back(built);
  auto missing = [](const std::string& path) { return ::access(path.c_str(), R_OK) != 0; };
  directories.erase(std::remove_if(directories.begin(), directories.end(), missing),
                    directories.end());
#ifdef TALLY_STATIC
  std::string unpacked;
  if (directories.empty()) {
    if (const Status done = unpack_templates(&unpacked); done) {
      directories.push_back(unpacked);
    } else {
      fmt::print(stderr, "tally: warning: {}\n", done.message());
    }
  }
#endif
  return directories;
}

bool in_color(const Settings& settings, int fd) {
  if (settings.color != Settings::Color::automatic)
    return settings.color == Settings::Color::always;
  const char* off = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  return (off == nullptr || *off == '\0') && kind != nullptr && std::string_view(kind) != "dumb" &&
         ::isatty(fd) != 0;
}

void print_error(const Settings& settings, const std::string& message, const std::string& hint) {
  if (settings.problems != nullptr) {
    settings.problems->push_back({{}, 0, 0, Severity::error, message, hint});
    return;
  }
  const bool color = in_color(settings, STDERR_FILENO);
  print_styled(stderr,
               fmt::format("{}: {}error:{} {}\n", literal(settings.program),
                           color ? "\033[1;31m" : "", color ? "\033[0m" : "", literal(message)));
  if (!hint.empty()) fmt::print(stderr, "hint: {}\n", hint);
}

size_t print_diagnostics(const Settings& settings, const Diagnostics& diagnostics,
                         const Sources& sources) {
  if (diagnostics.all().empty()) return 0;
  if (settings.problems != nullptr) {
    add_problems(diagnostics, sources, settings.problems);
    return diagnostics.all().size();
  }
  if (in_color(settings, STDERR_FILENO)) {
    print_styled(stderr, diagnostics.format(sources, true));
  } else {
    const std::string text = diagnostics.format(sources);
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  return diagnostics.all().size();
}

std::vector<std::string> split_tags(const std::vector<std::string>& given) {
  std::vector<std::string> split;
  for (const std::string& tags : given) {
    for (std::string& tag : split_strip(tags, ",")) {
      if (!tag.empty()) split.push_back(std::move(tag));
    }
  }
  return split;
}

namespace {

bool is_there(const Settings& settings, const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0) return true;
  print_error(settings, fmt::format("Benchmark configuration file not found: \"{}\"", path),
              meant_file(path));
  return false;
}

std::unique_ptr<Input> load(const Settings& settings, const std::string& path,
                            const std::string* text, const InputArgs& args, bool strict,
                            bool (*unchecked)(const Element& root)) {
  auto input = std::make_unique<Input>();
  if (!split_settings(settings, args.set, &input->set)) return input;
  CheckOptions options;
  options.tags = split_tags(args.tags);
  options.read.tags = options.tags;  // an <include> that tags exclude is not read at all
  options.only = args.only;
  options.exclude = args.exclude;
  options.set = input->set;
  options.strict = strict;
  options.as_jube = settings.as_jube;
  options.kinds = settings.kinds;
  if (strict) input->diagnostics.make_warnings_errors();
  options.read.include_path = args.include_path;
  options.read.builtin_path = template_directories();
  if (text != nullptr) options.read.stored[path] = *text;
  input->document = read_document(path, options.read, input->sources, input->diagnostics);
  const bool whole = !input->diagnostics.has_errors();
  if (whole && unchecked != nullptr && unchecked(input->document.root)) return input;
  if (whole) {
    input->workflow = check_document(input->document, options, input->sources, input->diagnostics);
  }
  print_diagnostics(settings, input->diagnostics, input->sources);
  if (input->diagnostics.has_errors()) input->workflow.reset();
  return input;
}

}  // namespace

std::unique_ptr<Input> load_input(const Settings& settings, const std::string& path,
                                  const InputArgs& args, bool strict,
                                  bool (*unchecked)(const Element& root)) {
  if (!is_there(settings, path)) return std::make_unique<Input>();
  return load(settings, path, nullptr, args, strict, unchecked);
}

std::unique_ptr<Input> load_input_text(const Settings& settings, const std::string& name,
                                       const std::string& text, const InputArgs& args,
                                       bool strict) {
  return load(settings, name, &text, args, strict, nullptr);
}

namespace {

// The directory in which the run was started. Relative paths of its input are resolved there. If a
// suite was moved with its runs, it is the new location.
std::string start_directory(const Journal& journal, const std::string& run_dir) {
  const RunRecord& run = journal.run();
  if (run.directory.empty()) return {};
  const std::string moved = absolute_path(run.directory_from_run, absolute_path(run_dir));
  const std::string input = absolute_path(run.input_file, moved);
  return ::access(input.c_str(), F_OK) == 0 ? moved : run.directory;
}

}  // namespace

void note_directory(const std::string& run_dir, RunRecord* run) {
  run->directory = absolute_path(".");
  run->directory_from_run = relative_path(run->directory, absolute_path(run_dir));
}

void note_include_path(const std::vector<std::string>& given, RunRecord* run) {
  std::vector<std::string> all = given;
  for (std::string& directory : environment_include_path()) all.push_back(std::move(directory));
  for (std::string& directory : run->include_path) all.push_back(std::move(directory));
  run->include_path = std::move(all);
}

namespace {

// The options for a run's input, from files or from texts that the run keeps. Relative paths of such
// texts keep the meaning they had when the run was started.
CheckOptions run_options(const Settings& settings, const RunRecord& run,
                         const std::vector<std::string>& tags) {
  CheckOptions options;
  options.only = {run.benchmark};
  options.of_run = true;
  options.as_jube = settings.as_jube;
  options.kinds = settings.kinds;
  options.tags = tags;
  options.stored = true;
  options.plain_text = run.plain_as_written ? PlainText::as_written : PlainText::as_core_value;
  options.read.tags = tags;
  options.read.include_path = run.include_path;
  options.read.builtin_path = template_directories();
  return options;
}

void use_texts(const Journal& journal, const Journal::Texts& texts, const std::string& run_dir,
               CheckOptions* options) {
  options->read.directory = start_directory(journal, run_dir);
  for (const auto& [path, text] : texts) options->read.stored[path] = text;
}

// Reads and checks `file`. Its workflow takes the place of the input's.
void load_run_file(const std::string& file, const CheckOptions& options, Input* input) {
  Diagnostics& diagnostics = input->diagnostics;
  input->document = read_document(file, options.read, input->sources, diagnostics);
  std::optional<Workflow> workflow;
  if (!diagnostics.has_errors())
    workflow = check_document(input->document, options, input->sources, diagnostics);
  if (diagnostics.has_errors()) workflow.reset();
  input->workflow = std::move(workflow);
}

// Adds the update to the run's own input. `quiet`: its warnings were printed when it was given.
std::unique_ptr<Input> load_update(const Settings& settings, const Journal& journal,
                                   const std::string& file, CheckOptions options,
                                   const std::string& run_dir, bool quiet) {
  std::unique_ptr<Input> input = load_stored(settings, journal, run_dir);
  options.run = input->find(journal.run().benchmark);
  if (options.run == nullptr) return input;  // this was reported
  input->diagnostics = {};
  input->update_file = static_cast<uint32_t>(input->sources.size());
  input->update_tags = options.tags;
  load_run_file(file, options, input.get());
  if (!quiet || input->diagnostics.has_errors())
    print_diagnostics(settings, input->diagnostics, input->sources);
  return input;
}

}  // namespace

std::unique_ptr<Input> load_stored(const Settings& settings, const Journal& journal,
                                   const std::string& run_dir) {
  const RunRecord& run = journal.run();
  auto input = std::make_unique<Input>();
  Journal::Texts texts;
  if (Status s = journal.sources(&texts); !s) {
    print_error(settings, s.message());
    return input;
  }
  CheckOptions options = run_options(settings, run, run.tags);
  options.set = run.set;
  use_texts(journal, texts, run_dir, &options);
  input->set = run.set;
  load_run_file(run.input_file, options, input.get());
  if (input->diagnostics.has_errors())  // warnings were printed when the run was started
    print_diagnostics(settings, input->diagnostics, input->sources);
  if (input->workflow && input->find(run.benchmark) == nullptr) {
    print_error(settings, fmt::format("the input stored in '{}' has no benchmark '{}'", run_dir,
                                      run.benchmark));
    input->workflow.reset();
  }
  return input;
}

std::unique_ptr<Input> load_update(const Settings& settings, const Journal& journal,
                                   const std::string& file, const InputArgs& args,
                                   const std::string& run_dir) {
  if (!is_there(settings, file)) return std::make_unique<Input>();
  const RunRecord& run = journal.run();
  Journal::Update before;
  if (Status s = journal.update(&before); !s) {
    print_error(settings, s.message());
    return std::make_unique<Input>();
  }
  // As in JUBE, tags are added to those of the run and of earlier updates.
  std::vector<std::string> tags = before.file.empty() ? run.tags : before.tags;
  for (std::string& tag : split_tags(args.tags)) {
    if (std::find(tags.begin(), tags.end(), tag) == tags.end()) tags.push_back(std::move(tag));
  }
  CheckOptions options = run_options(settings, run, tags);
  options.stored = args.tags.empty();
  options.read.include_path = args.include_path;
  return load_update(settings, journal, file, std::move(options), run_dir, false);
}

std::unique_ptr<Input> load_kept(const Settings& settings, const Journal& journal,
                                 const std::string& run_dir) {
  Journal::Update update;
  if (Status s = journal.update(&update); !s) {
    print_error(settings, s.message());
    return std::make_unique<Input>();
  }
  if (update.file.empty()) return load_stored(settings, journal, run_dir);
  CheckOptions options = run_options(settings, journal.run(), update.tags);
  use_texts(journal, update.texts, run_dir, &options);
  return load_update(settings, journal, update.file, std::move(options), run_dir, true);
}

namespace {

// Whether the workflow is in a folder made by `cmake --install`, which does not belong to the user.
bool is_installed(const std::string& folder) {
  namespace fs = std::filesystem;
  const std::string program = program_directory();
  std::error_code ignored;
  return !program.empty() &&
         fs::weakly_canonical(folder, ignored) ==
             fs::weakly_canonical(program + "/../share/tally/workflows", ignored);
}

// Whether the folder is writable, or, if it does not exist, can be created.
bool can_write(std::string folder) {
  while (::access(folder.c_str(), F_OK) != 0) {
    const size_t slash = folder.find_last_not_of('/', folder.rfind('/'));
    if (folder.rfind('/') == std::string::npos) {
      folder = ".";
    } else {
      folder = slash == std::string::npos ? "/" : folder.substr(0, slash + 1);
    }
  }
  return ::access(folder.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

std::string outpath_of(const Benchmark& benchmark, const std::string& given, bool to_read,
                       const std::string& otherwise) {
  if (!given.empty()) return past_links(given);
  std::string own = benchmark.outpath.value;
  if (own.empty()) {
    const char* environment = std::getenv("JUBE_BENCHMARK_OUTPATH");
    if (environment != nullptr && *environment != '\0') return past_links(environment);
    own = otherwise;
    if (own.empty()) return {};
  }
  own =
      normal_path(expand_path(own));  // `..` removes also a folder that does not exist, as in JUBE
  // The path is relative to the file as the user wrote its path, so that messages stay short.
  size_t slash = benchmark.input_file.rfind('/');
  if (own.front() == '/' || slash == std::string::npos) return own;
  const std::string folder = benchmark.input_file.substr(0, slash + 1);
  const std::string beside = normal_path(folder + own);
  const bool there = ::access(beside.c_str(), F_OK) == 0;
  if (to_read && there && ::access(own.c_str(), F_OK) != 0) return beside;
  return is_installed(folder) || !can_write(beside) ? own : beside;
}

}  // namespace tally
