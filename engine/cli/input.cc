#include "engine/cli/input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include "engine/base/path_text.h"
#include "engine/base/text.h"
#include "engine/execute/run_directory.h"
#include "engine/read/files.h"

#ifndef TALLY_TEMPLATES_DIR
#define TALLY_TEMPLATES_DIR ""
#endif

namespace tally {
namespace {

std::string program_directory() {
  char path[PATH_MAX];
  ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) return {};
  std::string program(path, static_cast<size_t>(length));
  return program.substr(0, program.rfind('/'));
}

bool split_settings(const Invocation& invocation, const std::vector<std::string>& settings,
                    std::vector<std::pair<std::string, std::string>>* out) {
  for (const std::string& setting : settings) {
    size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      print_error(invocation, fmt::format("--set {}: not of the form name=value", setting));
      return false;
    }
    out->emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  return true;
}

}  // namespace

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
  return directories;
}

void print_error(const Invocation& invocation, const std::string& message,
                 const std::string& hint) {
  fmt::print(stderr, "{}: error: {}\n", invocation.program, message);
  if (!hint.empty()) fmt::print(stderr, "hint: {}\n", hint);
}

size_t print_diagnostics(const Diagnostics& diagnostics, const Sources& sources) {
  if (diagnostics.all().empty()) return 0;
  std::string text = diagnostics.format(sources, ::isatty(STDERR_FILENO) != 0);
  std::fwrite(text.data(), 1, text.size(), stderr);
  return diagnostics.all().size();
}

std::unique_ptr<Input> load_input(const Invocation& invocation, const std::string& path,
                                  const InputArgs& args, bool strict) {
  auto input = std::make_unique<Input>();
  if (!split_settings(invocation, args.set, &input->set)) return input;
  if (::access(path.c_str(), F_OK) != 0) {
    print_error(invocation, fmt::format("Benchmark configuration file not found: \"{}\"", path));
    return input;
  }
  CheckOptions options;
  for (const std::string& tags : args.tags) {  // "a,b" is one word's old spelling of two tags
    for (std::string& tag : split_strip(tags, ",")) {
      if (!tag.empty()) options.tags.push_back(std::move(tag));
    }
  }
  options.read.tags = options.tags;  // an <include> that tags leave out is not read at all
  options.only = args.only;
  options.exclude = args.exclude;
  options.set = input->set;
  options.strict = strict;
  options.read.include_path = args.include_path;
  options.read.builtin_path = template_directories();
  input->document = read_document(path, options.read, input->sources, input->diagnostics);
  if (!input->diagnostics.has_errors()) {
    input->workflow = check_document(input->document, options, input->sources, input->diagnostics);
  }
  print_diagnostics(input->diagnostics, input->sources);
  if (input->diagnostics.has_errors()) input->workflow.reset();
  return input;
}

std::unique_ptr<Input> load_stored(const Invocation& invocation, const Journal& journal,
                                   const std::string& run_dir) {
  return load_texts(invocation, journal, journal.run().input_file, journal.sources(), run_dir);
}

namespace {

constexpr const char* kIncludePath = "cli:include-path";
constexpr const char* kDirectory = "cli:directory";

// Where the run was started, which relative paths of its input are to be read from. A suite that
// was moved with its runs is where it is now.
std::string start_directory(const Journal& journal, const std::string& run_dir) {
  const std::optional<std::string> kept = journal.shared(kDirectory);
  if (!kept) return {};
  const size_t line = kept->find('\n');
  const std::string moved = absolute_path(kept->substr(line + 1), absolute_path(run_dir));
  const std::string input = absolute_path(journal.run().input_file, moved);
  return ::access(input.c_str(), F_OK) == 0 ? moved : kept->substr(0, line);
}

}  // namespace

Status keep_directory(const std::string& run_dir, Journal& journal) {
  const std::string here = absolute_path(".");
  return journal.set_shared(kDirectory, here + "\n" + relative_path(here, absolute_path(run_dir)));
}

Status keep_include_path(const std::vector<std::string>& given, Journal& journal) {
  std::vector<std::string> all = given;
  for (std::string& directory : environment_include_path()) all.push_back(std::move(directory));
  for (std::string& directory : kept_include_path(journal)) all.push_back(std::move(directory));
  return all.empty() ? Status::ok() : journal.set_shared(kIncludePath, join(all, "\n"));
}

std::vector<std::string> kept_include_path(const Journal& journal) {
  const std::optional<std::string> kept = journal.shared(kIncludePath);
  return kept ? split_strip(*kept, "\n") : std::vector<std::string>();
}

std::unique_ptr<Input> load_texts(const Invocation& invocation, const Journal& journal,
                                  const std::string& file,
                                  const std::vector<std::pair<std::string, std::string>>& texts,
                                  const std::string& run_dir) {
  const RunRecord& run = journal.run();
  auto input = std::make_unique<Input>();
  CheckOptions options;
  options.only = {run.benchmark};  // the file's selection may be of another one
  options.tags = run.tags;
  options.set = run.set;
  options.read.tags = run.tags;
  options.read.directory = start_directory(journal, run_dir);
  options.read.include_path = kept_include_path(journal);
  options.read.builtin_path = template_directories();
  for (const auto& [path, text] : texts) options.read.stored[path] = text;
  input->set = run.set;
  input->document = read_document(file, options.read, input->sources, input->diagnostics);
  if (!input->diagnostics.has_errors()) {
    input->workflow = check_document(input->document, options, input->sources, input->diagnostics);
  }
  if (input->diagnostics.has_errors()) {  // its warnings were printed when it was started
    print_diagnostics(input->diagnostics, input->sources);
    input->workflow.reset();
  }
  if (input->workflow && input->find(run.benchmark) == nullptr) {
    print_error(invocation, fmt::format("the input stored in '{}' has no benchmark '{}'", run_dir,
                                        run.benchmark));
    input->workflow.reset();
  }
  return input;
}

std::string outpath_of(const Benchmark& benchmark, const std::string& given) {
  if (!given.empty()) return given;
  std::string own = benchmark.outpath.value;
  if (own.empty()) {
    const char* environment = std::getenv("JUBE_BENCHMARK_OUTPATH");
    if (environment != nullptr && *environment != '\0') return environment;
    own = "benchmark_runs";
  }
  own = expand_path(own);
  // Beside the file as the user spelt its path, so that what is printed stays short.
  size_t slash = benchmark.input_file.rfind('/');
  if (own.front() == '/' || slash == std::string::npos) return own;
  return benchmark.input_file.substr(0, slash + 1) + own;
}

RunInfo run_info(const Benchmark& benchmark, int id, const std::string& run_dir,
                 const std::string& start) {
  RunInfo info;
  info.id = id;
  info.name = benchmark.name.value;
  info.home = absolute_path(benchmark.file_path.empty() ? "." : benchmark.file_path);
  info.rundir = run_dir;
  info.start = start;
  return info;
}

}  // namespace tally
