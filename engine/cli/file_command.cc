// tally validate, tag, script: what an input file says, without running it.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/analyse/analyse.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/expression_check.h"
#include "engine/cli/generated_files.h"
#include "engine/cli/input.h"
#include "engine/cli/runs.h"
#include "engine/cli/source_check.h"
#include "engine/expand/evaluator.h"
#include "engine/plan/estimate.h"
#include "engine/plan/plan.h"
#include "engine/tags/tags.h"

namespace tally {
namespace {

void collect_tags(const Element& element, std::map<std::string, size_t>& tags) {
  if (const Attribute* tag = element.find("tag")) {
    for (const std::string& name : tag_names(tag->value.value)) ++tags[name];
  }
  for (const Element& child : element.children) collect_tags(child, tags);
}

int write_scripts(const Invocation& invocation, const ScriptArgs& args, Input& input,
                  const Benchmark& benchmark, size_t* written) {
  std::string out = absolute_path(args.out);
  RunInfo info = run_info(benchmark, 0, out, "");
  std::unique_ptr<Evaluator> evaluator = make_evaluator(".");
  TextPool pool;
  Expander expander(benchmark, info, *evaluator, pool, input.tags());
  Diagnostics diagnostics;
  Plan plan = make_plan(benchmark, expander, diagnostics);
  print_diagnostics(diagnostics, input.sources);
  if (diagnostics.has_errors()) return kBadInput;
  for (const WorkPackage& package : plan.packages) {
    std::string folder;
    std::vector<FileBytes> files;
    Status made = generated_files(benchmark, info, plan.packages, package, expander, pool,
                                  *evaluator, &folder, &files);
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
      print_error(invocation, made.message());
      return kFailed;
    }
  }
  for (const std::vector<int>& members : estimate_jobs(plan, expander).packs) {
    std::string folder;
    FileBytes file;
    Status made = generated_pack(benchmark, info, plan.packages, members, expander, pool,
                                 *evaluator, &folder, &file);
    const std::string path = args.out + "/" + folder + "/" + file.path;
    if (made) made = make_directories(args.out + "/" + folder);
    if (made) made = write_file(path, file.bytes, file.mode);
    if (!made) {
      print_error(invocation, made.message());
      return kFailed;
    }
    fmt::print("{}\n", path);
  }
  return kFine;
}

}  // namespace

int validate_command(const Invocation& invocation, const ValidateArgs& args) {
  int code = kFine;
  for (const std::string& file : args.files) {
    std::unique_ptr<Input> input = load_input(invocation, file, args.input, true);
    if (!input->workflow) {
      code = kBadInput;
      continue;
    }
    Diagnostics patterns, expressions;
    expressions.make_warnings_errors();
    std::unique_ptr<Evaluator> evaluator = make_evaluator(".");
    std::vector<std::string> parts;
    for (const Benchmark& benchmark : input->workflow->benchmarks) {
      check_patterns(benchmark, patterns);
      check_sources(benchmark, patterns);
      check_expressions(benchmark, true, *evaluator, expressions);
      const size_t steps = benchmark.steps.size();
      parts.push_back(
          steps == 0
              ? fmt::format("{} (no step: nothing would run)", benchmark.name.value)
              : fmt::format("{} ({} step{})", benchmark.name.value, steps, steps == 1 ? "" : "s"));
    }
    patterns.append(expressions);
    print_diagnostics(patterns, input->sources);
    if (patterns.has_errors()) {
      code = kBadInput;
      continue;
    }
    size_t warnings = input->diagnostics.warning_count();
    fmt::print("{}: {}: {}\n", file,
               warnings == 0 ? "fine" : fmt::format("{} warning(s)", warnings), join(parts, ", "));
    if (warnings != 0 && invocation.strict) code = kBadInput;
  }
  return code;
}

int tag_command(const Invocation& invocation, const ValidateArgs& args) {
  for (const std::string& file : args.files) {
    Sources sources;
    Diagnostics diagnostics;
    ReadOptions options;
    options.include_path = args.input.include_path;
    options.builtin_path = template_directories();
    Document document = read_document(file, options, sources, diagnostics);
    print_diagnostics(diagnostics, sources);
    if (diagnostics.has_errors()) return kBadInput;
    std::map<std::string, size_t> tags;
    collect_tags(document.root, tags);
    std::map<std::string, std::string> descriptions;
    for (const Element& child : document.root.children) {
      if (child.name != "tags") continue;
      for (const Element& tag : child.children) {
        if (tag.name == "tag") descriptions[tag.get("name")] = tag.text.value;
      }
    }
    fmt::print("{}: {} tag{}\n", file, tags.size(), tags.size() == 1 ? "" : "s");
    for (const auto& [name, uses] : tags) {
      const std::string& description = descriptions[name];
      fmt::print("  {}{}\n", name, description.empty() ? "" : "  " + description);
    }
  }
  (void)invocation;
  return kFine;
}

int script_command(const Invocation& invocation, const ScriptArgs& args) {
  size_t written = 0;
  for (const std::string& file : args.files) {
    std::unique_ptr<Input> input = load_input(invocation, file, args.input, invocation.strict);
    if (!input->workflow) return kBadInput;
    for (const Benchmark& benchmark : input->workflow->benchmarks) {
      int code = write_scripts(invocation, args, *input, benchmark, &written);
      if (code != kFine) return code;
    }
  }
  if (written == 0) {
    print_error(invocation, "no step makes a file from a template with these tags",
                "job scripts come from a substituteset, or from a platform: try --tag slurm");
    return kFailed;
  }
  return kFine;
}

}  // namespace tally
