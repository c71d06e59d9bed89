// tally validate, show, tag, script: information from an input file, without running it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/option_parsing.h"
#include "engine/cli/prepare.h"
#include "engine/cli/runs.h"
#include "engine/cli/version.h"
#include "engine/expand/evaluator.h"
#include "engine/plan/generated_files.h"
#include "engine/plan/plan.h"
#include "engine/read/yaml_writer.h"
#include "engine/report/json.h"
#include "engine/tags/tags.h"
#include "engine/workpackage/values.h"
#include "engine/workspace/substitute_files.h"

namespace tally {
namespace {

void collect_tags(const Element& element, std::map<std::string, size_t>& tags) {
  if (const Attribute* tag = element.find("tag")) {
    for (const std::string& name : tag_names(tag->value.value)) ++tags[name];
  }
  for (const Element& child : element.children) collect_tags(child, tags);
}

// A clause for each thing that a script submitted by hand does not find, and a run would have made.
std::vector<std::string> lacks(const Benchmark& benchmark, const Plan& plan,
                               const Workpackage& workpackage, const Expander& expander) {
  const auto step_of = [&](const Workpackage& one) -> const Step& {
    return benchmark.steps[static_cast<size_t>(one.step)];
  };
  const Step& step = step_of(workpackage);
  std::vector<std::string> parts;
  std::set<std::string> parents;
  for (const int id : workpackage.parents)
    parents.insert(step_of(plan.workpackages[static_cast<size_t>(id)]).name.value);
  for (const std::string& parent : parents)
    parts.push_back(fmt::format("the work of step '{0}' (a link `{0}`)", parent));
  const WorkpackageValues values(benchmark, expander, workpackage);
  // Templates, whose substituted files are written, and the functions that scripts source.
  const std::vector<std::string> sets = used_sets(step, values.lookup());
  std::set<std::string> known;
  if (const std::string* functions = job_value(values.lookup(), "job_functions"))
    known.insert(*functions);
  for (const SubstituteSet* set : substitute_sets(benchmark, sets))
    for (const IoFile& file : set->files) known.insert(values.apply(file.in));
  for (const std::string& name : sets) {
    const auto set = benchmark.file_sets.find(name);
    if (set == benchmark.file_sets.end()) continue;
    const bool further = std::ranges::any_of(set->second.entries, [&](const auto& entry) {
      const auto* copy = std::get_if<FileCopy>(&entry);
      if (copy == nullptr) return true;
      const std::string source = values.apply(copy->source);
      return known.count(values.apply(copy->target)) == 0 &&
             known.count(source.substr(source.rfind('/') + 1)) == 0;
    });
    if (further) parts.push_back(fmt::format("the files of file set '{}'", name));
  }
  if (step.kind == StepKind::run && !step.launch.value.empty() && !step.operations.empty())
    parts.push_back("what its `do` does");
  return parts;
}

// Says which scripts lack what, once for each step.
void note_lacks(const Settings& settings, const PlannedRun& planned, Expander& expander,
                const std::vector<const Workpackage*>& with_scripts) {
  const Benchmark& benchmark = planned.run.benchmark();
  std::map<std::pair<int, std::string>, size_t> scripts;
  for (const Workpackage* workpackage : with_scripts) {
    const std::vector<std::string> parts = lacks(benchmark, planned.plan, *workpackage, expander);
    if (!parts.empty()) ++scripts[{workpackage->step, join(parts, ", ")}];
  }
  if (settings.quiet) return;
  for (const auto& [what, count] : scripts) {
    const std::string& step = benchmark.steps[static_cast<size_t>(what.first)].name.value;
    fmt::print(stderr, "note: submitted by hand, {} of step '{}' {}: {}; `{} run` makes it first\n",
               count == 1 ? "the script" : fmt::format("the {} scripts", count), step,
               count == 1 ? "lacks" : "lack", what.second, settings.command);
  }
}

int write_scripts(const Settings& settings, const ScriptArgs& args, PlannedRun& planned,
                  size_t* written) {
  const Benchmark& benchmark = planned.run.benchmark();
  const Plan& plan = planned.plan;
  Expander& expander = planned.run.expander();
  const std::string out = absolute_path(args.out);
  std::set<std::string> functions;  // written once for all scripts
  std::vector<const Workpackage*> with_scripts;
  for (const Workpackage& workpackage : plan.workpackages) {
    std::string folder;
    std::vector<FileBytes> files;
    Status made = generated_files(benchmark, workpackage, expander, &folder, &files);
    FileBytes sourced;
    if (made && !files.empty())
      made = generated_functions(benchmark, workpackage, expander, &sourced);
    if (made && !sourced.path.empty() && functions.insert(sourced.path).second) {
      made = make_directories(sourced.path.substr(0, sourced.path.rfind('/')));
      if (made) made = write_file(sourced.path, sourced.bytes, sourced.mode);
      if (made) fmt::print("{}{}\n", args.out, sourced.path.substr(out.size()));
    }
    if (!files.empty()) with_scripts.push_back(&workpackage);
    for (size_t i = 0; made && i < files.size(); ++i) {
      std::string path = files[i].path;
      if (path.front() == '/') path = path.substr(path.rfind('/') + 1);
      path = args.out + "/" + folder + "/work/" + path;
      made = make_directories(path.substr(0, path.rfind('/')));
      if (made) made = write_file(path, files[i].bytes, files[i].mode);
      if (made) fmt::print("{}\n", path);
      ++*written;
    }
    if (!made) {
      print_error(settings, made.message());
      return kFailed;
    }
  }
  for (const std::vector<int>& members : planned.estimate.packs) {
    GeneratedPack pack;
    Status made = generated_pack(benchmark, plan.workpackages, members, expander, &pack);
    const std::string folder = args.out + "/" + pack.folder;
    const std::string path = folder + "/" + pack.script.path;
    if (made) made = make_directories(folder);
    if (made) made = write_file(path, pack.script.bytes, pack.script.mode);
    if (!made) {
      print_error(settings, made.message());
      return kFailed;
    }
    fmt::print("{}\n", path);
  }
  note_lacks(settings, planned, expander, with_scripts);
  return kFine;
}

}  // namespace

namespace {

// Returns "bench (3 steps)".
std::string summary_of(const Benchmark& benchmark) {
  const size_t steps = benchmark.steps.size();
  if (steps == 0) return fmt::format("{} (no step: nothing would run)", benchmark.name.value);
  return fmt::format("{} ({} step{})", benchmark.name.value, steps, steps == 1 ? "" : "s");
}

}  // namespace

namespace {

// Returns "a, b, c and 4 more".
std::string first_of(const std::set<std::string>& all) {
  constexpr size_t kMost = 3;
  std::vector<std::string> some(all.begin(), all.end());
  if (some.size() > kMost + 1) some.resize(kMost);
  const size_t rest = all.size() - some.size();
  return join(some, ", ") + (rest > 0 ? fmt::format(" and {} more", rest) : "");
}

// Prints what `validate` found for another program.
void print_problems(const std::string& format, const std::vector<Problem>& problems) {
  std::string text;
  if (format == "gcc") text = problems_for_gcc(problems);
  if (format == "github") text = problems_for_github(problems);
  if (format == "json") text = problems_as_json(problems);
  if (format == "sarif") text = problems_as_sarif(problems, kVersion);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

int validate_command(const Settings& given, const ValidateArgs& args) {
  int code = kFine;
  Settings settings = given;
  std::vector<Problem> problems;
  if (args.format != "text") settings.problems = &problems;
  PrepareOptions options;
  options.input = args.input;
  options.validate = true;
  for (const std::string& path : args.files) {
    const std::unique_ptr<PreparedFile> file = prepare_file(settings, path, options);
    bool fine = file != nullptr;
    std::vector<std::string> parts;
    std::set<std::string> not_computed;
    for (size_t i = 0; fine && i < file->input->workflow->benchmarks.size(); ++i) {
      const Benchmark& benchmark = file->input->workflow->benchmarks[i];
      const RunInfo info =
          run_info(benchmark, 0, outpath_of(benchmark, "") + "/" + padded_id(0), "");
      const auto planned = plan_run(settings, *file, benchmark, info, options);
      fine = planned && !refuse(settings, *planned, std::nullopt, "a run would submit nothing");
      if (!fine) break;
      not_computed.insert(planned->plan.not_computed.begin(), planned->plan.not_computed.end());
      parts.push_back(file->platform.empty() ? summary_of(benchmark)
                                             : "platform " + file->platform);
    }
    if (!fine) {
      code = kBadInput;
      continue;
    }
    if (args.format != "text") continue;
    fmt::print("{}: {}: {}\n", path,
               file->warnings == 0 ? "fine" : fmt::format("{} warning(s)", file->warnings),
               join(parts, ", "));
    if (!not_computed.empty()) {
      fmt::print("  not computed, nor checked what depends on it: {}; `{} run -n {}` does\n",
                 first_of(not_computed), settings.command, shell_quote(path));
    }
  }
  print_problems(args.format, problems);
  return code;
}

int show_command(const Settings& settings, const ValidateArgs& args) {
  for (const std::string& file : args.files) {
    const std::shared_ptr<Input> input = load_input(settings, file, args.input);
    if (!input || !input->workflow) return kBadInput;
    const std::vector<Benchmark>& benchmarks = input->workflow->benchmarks;
    const bool own = !benchmarks.empty() && benchmarks.front().rules.plain_values_as_written;
    const std::string text = input->document.is_xml ? document_to_xml(input->document)
                                                    : document_to_yaml(input->document, own);
    fmt::print("{}", text);
  }
  return kFine;
}

namespace {

void list_tags(const std::string& title, const Document& document,
               const std::vector<std::string>& set) {
  std::map<std::string, size_t> tags;
  collect_tags(document.root, tags);
  std::map<std::string, std::string> descriptions;
  for (const Element& child : document.root.children) {
    if (child.name != "tags") continue;
    for (const Element& tag : child.children) {
      if (tag.name == "tag") descriptions[tag.get("name")] = tag.text.value;
    }
  }
  fmt::print("{}: {} tag{}\n", title, tags.size(), tags.size() == 1 ? "" : "s");
  for (const auto& [name, uses] : tags) {
    const std::string& description = descriptions[name];
    const bool chosen = contains(set, name);
    fmt::print("  {}{}{}\n", name, description.empty() ? "" : "  " + description,
               chosen ? "  (set)" : "");
  }
}

// Prints the tags that each run of a folder was started with.
int tags_of_runs(const Settings& settings, const RunsArgs& args) {
  const std::vector<RunDirectory> runs = find_runs(settings, args);
  if (runs.empty()) return kBadInput;
  for (const RunDirectory& directory : runs) {
    const std::unique_ptr<Run> run = open_run(settings, directory, Run::Access::read);
    if (!run) return kBadInput;
    const RunRecord& record = run->journal().run();
    list_tags(fmt::format("{} ({})", directory.path, record.input_file), run->input().document,
              record.tags);
  }
  return kFine;
}

}  // namespace

int tag_command(const Settings& settings, const ValidateArgs& args) {
  for (const std::string& file : args.files) {
    if (!is_file(file)) {
      if (const int code = tags_of_runs(settings, {file, args.ids}); code != kFine) return code;
      continue;
    }
    Sources sources;
    Diagnostics diagnostics;
    ReadOptions options;
    options.include_path = args.input.include_path;
    Status no_templates;
    options.builtin_path = template_directories(&no_templates);
    if (!no_templates) diagnostics.warning({}, no_templates.message());
    const Document document = read_document(file, options, sources, diagnostics);
    print_diagnostics(settings, diagnostics, sources);
    if (diagnostics.has_errors()) return kBadInput;
    list_tags(file, document, {});
  }
  return kFine;
}

int script_command(const Settings& settings, const ScriptArgs& args) {
  size_t written = 0;
  PrepareOptions options;
  options.input = args.input;
  options.needs_plan = true;
  std::vector<std::unique_ptr<PreparedFile>> files;
  for (const std::string& path : args.files) {
    files.push_back(prepare_file(settings, path, options));
    if (!files.back()) return kBadInput;
  }
  for (const auto& file : files) {
    for (const Benchmark& benchmark : file->input->workflow->benchmarks) {
      const RunInfo info = run_info(benchmark, 0, absolute_path(args.out), "");
      const auto planned = plan_run(settings, *file, benchmark, info, options);
      if (!planned || refuse(settings, *planned, std::nullopt, "nothing was written")) {
        return kBadInput;
      }
      const int code = write_scripts(settings, args, *planned, &written);
      if (code != kFine) return code;
    }
  }
  if (written == 0) {
    print_error(settings, "no step makes a file from a template with these tags",
                "job scripts come from a substituteset, or from a platform: try --tag slurm");
    return kFailed;
  }
  return kFine;
}

}  // namespace tally
