#include "engine/run/input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/check/check.h"
#include "engine/read/input_files.h"
#ifdef TALLY_STATIC
#include "engine/run/embedded_templates.h"
#endif

#ifndef TALLY_TEMPLATES_DIR
#define TALLY_TEMPLATES_DIR ""
#endif

namespace tally {
namespace {

Status split_settings(const std::vector<std::string>& given,
                      std::vector<std::pair<std::string, std::string>>* out) {
  for (const std::string& setting : given) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      return Status::error(fmt::format("--set {}: not of the form name=value", setting));
    out->emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  return Status::ok();
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
  std::ranges::sort(names);
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

std::vector<std::string> template_directories(Status* problem) {
  std::vector<std::string> directories;
  if (const char* own = std::getenv("TALLY_TEMPLATES")) directories = split_strip(own, ":");
  std::string program = program_directory();
  if (!program.empty()) directories.push_back(program + "/../share/tally/templates");
  std::string built = TALLY_TEMPLATES_DIR;
  if (!built.empty()) directories.push_back(built);
  auto missing = [](const std::string& path) { return ::access(path.c_str(), R_OK) != 0; };
  std::erase_if(directories, missing);
  *problem = Status::ok();
#ifdef TALLY_STATIC
  std::string unpacked;
  if (directories.empty()) *problem = unpack_templates(&unpacked);
  if (!unpacked.empty()) directories.push_back(unpacked);
#endif
  return directories;
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

Status is_there(const std::string& path) {
  bool there = false;
  if (Status s = path_exists(path, &there); !s || there) return s;
  return Status::error(fmt::format("Benchmark configuration file not found: \"{}\"", path))
      .with_hint(meant_file(path));
}

// Reads and checks `file`. Its workflow takes the place of the input's.
void read_and_check(const std::string& file, CheckOptions options, const InputArgs& args,
                    Input* input) {
  Diagnostics& diagnostics = input->diagnostics;
  Status no_templates;
  options.read.builtin_path = template_directories(&no_templates);
  if (!no_templates) diagnostics.warning({}, no_templates.message());
  input->document = read_document(file, options.read, input->sources, diagnostics);
  const bool whole = !diagnostics.has_errors();
  if (whole && args.unchecked != nullptr && args.unchecked(input->document.root)) return;
  std::optional<Workflow> workflow;
  if (whole) workflow = check_document(input->document, options, input->sources, diagnostics);
  if (diagnostics.has_errors()) workflow.reset();
  input->workflow = std::move(workflow);
}

Status read_named(const Settings& settings, const std::string& path, CheckOptions options,
                  const InputArgs& args, Input* input) {
  input->path = path;
  TRY(split_settings(args.set, &input->set));
  options.tags = split_tags(args.tags);
  options.read.tags = options.tags;  // an <include> that tags exclude is not read at all
  options.only = args.only;
  options.exclude = args.exclude;
  options.set = input->set;
  options.strict = settings.strict;
  options.all_platforms = args.all_platforms;
  options.called_as_jube = settings.called_as_jube;
  options.kinds = settings.kinds;
  if (settings.strict) input->diagnostics.make_warnings_errors();
  options.read.include_path = args.include_path;
  read_and_check(path, std::move(options), args, input);
  return Status::ok();
}

}  // namespace

Status read_input(const Settings& settings, const std::string& path, const InputArgs& args,
                  Input* input) {
  TRY(is_there(path));
  return read_named(settings, path, {}, args, input);
}

Status read_input_text(const Settings& settings, const std::string& name, const std::string& text,
                       const InputArgs& args, Input* input) {
  CheckOptions options;
  options.read.stored[name] = text;
  return read_named(settings, name, std::move(options), args, input);
}

namespace {

// The directory in which the run was started. Relative paths of its input are resolved there. If a
// suite was moved with its runs, it is the new location.
std::string start_directory(const RunRecord& run, const std::string& run_dir) {
  if (run.directory.empty()) return {};
  const std::string moved = absolute_path(run.directory_from_run, absolute_path(run_dir));
  const std::string input = absolute_path(run.input_file, moved);
  return may_be_there(input) ? moved : run.directory;
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

// The options for a run's input, from files or from texts that the run keeps. Relative paths of
// such texts keep the meaning they had when the run was started.
CheckOptions options_of_run(const Settings& settings, const RunRecord& run,
                            const std::vector<std::string>& tags) {
  CheckOptions options;
  options.only = {run.benchmark};
  options.of_run = true;
  options.called_as_jube = settings.called_as_jube;
  options.kinds = settings.kinds;
  options.tags = tags;
  options.stored = options.stored_tags = true;
  options.plain_text = run.plain_as_written ? PlainText::as_written : PlainText::as_core_value;
  options.read.tags = tags;
  options.read.include_path = run.include_path;
  return options;
}

void use_texts(const RunRecord& run, const Journal::Texts& texts, const std::string& run_dir,
               CheckOptions* options) {
  options->read.directory = start_directory(run, run_dir);
  for (const auto& [path, text] : texts) options->read.stored[path] = text;
}

// Takes over what the file has in place of the run's own.
void add_update(const std::string& file, CheckOptions options, const RunRecord& run, Input* input) {
  options.run = input->find(run.benchmark);
  input->diagnostics = {};
  if (options.strict) input->diagnostics.make_warnings_errors();
  input->path = file;
  input->update_file = static_cast<uint32_t>(input->sources.size());
  input->update_tags = options.tags;
  read_and_check(file, std::move(options), {}, input);
}

}  // namespace

Status read_stored_input(const Settings& settings, const Journal& journal,
                         const std::string& run_dir, Input* input) {
  const RunRecord& run = journal.run();
  Journal::Texts texts;
  TRY(journal.sources(&texts));
  CheckOptions options = options_of_run(settings, run, run.tags);
  options.set = run.set;
  use_texts(run, texts, run_dir, &options);
  input->path = run.input_file;
  input->set = run.set;
  read_and_check(run.input_file, std::move(options), {}, input);
  if (!input->diagnostics.has_errors()) input->diagnostics = {};
  if (!input->workflow || input->find(run.benchmark) != nullptr) return Status::ok();
  input->workflow.reset();
  return Status::error(
      fmt::format("the input stored in '{}' has no benchmark '{}'", run_dir, run.benchmark));
}

Status read_update(const Settings& settings, const Journal& journal, const std::string& file,
                   const InputArgs& args, Input* input) {
  TRY(is_there(file));
  const RunRecord& run = journal.run();
  Journal::Update before;
  TRY(journal.update(&before));
  // Tags are added to those of the run and of earlier updates, as in JUBE.
  std::vector<std::string> tags = before.file.empty() ? run.tags : before.tags;
  for (std::string& tag : split_tags(args.tags)) {
    if (!contains(tags, tag)) tags.push_back(std::move(tag));
  }
  CheckOptions options = options_of_run(settings, run, tags);
  options.stored = false;
  options.stored_tags = args.tags.empty();
  options.strict = settings.strict;
  options.read.include_path = args.include_path;
  add_update(file, std::move(options), run, input);
  return Status::ok();
}

void read_kept_update(const Settings& settings, const RunRecord& run, const Journal::Update& update,
                      const std::string& run_dir, Input* input) {
  CheckOptions options = options_of_run(settings, run, update.tags);
  use_texts(run, update.texts, run_dir, &options);
  add_update(update.file, std::move(options), run, input);
  Diagnostics& diagnostics = input->diagnostics;
  if (!diagnostics.has_errors()) diagnostics = {};  // its warnings were reported when it was given
}

std::string changed_source(const Input& input, const RunRecord& run, const std::string& run_dir) {
  const std::string directory = start_directory(run, run_dir);
  Status no_templates;
  const std::vector<std::string> shipped = template_directories(&no_templates);
  for (uint32_t i = input.update_file; i < input.sources.size(); ++i) {
    const std::string path = absolute_path(input.sources.name(i), directory);
    const bool is_shipped = std::ranges::any_of(shipped, [&](const auto& folder) {
      return starts_with(path, absolute_path(folder) + "/");
    });
    std::string today;
    if (is_shipped || !may_be_there(path) || !read_file(path, &today)) continue;
    if (today != input.sources.text(i)) return input.sources.name(i);
  }
  return {};
}

}  // namespace tally
