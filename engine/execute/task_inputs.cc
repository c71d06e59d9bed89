// What a setup or build step's result depends on.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "engine/execute/run_directory.h"
#include "engine/execute/task.h"

namespace tally {
namespace {

// A file, or all files of a folder in order of their names: small ones by content, large ones by
// size and time.
Status add_input(const std::string& source, const std::string& target, StepInputs* inputs) {
  struct stat info {};
  std::string bytes;
  if (stat(source.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    std::error_code error;
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(source, error)) {
      names.push_back(entry.path().filename().string());
    }
    if (error) return Status::error("cannot read '" + source + "': " + error.message());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      if (Status s = add_input(source + "/" + name, target + "/" + name, inputs); !s) return s;
    }
    return Status::ok();
  }
  if (S_ISREG(info.st_mode) && info.st_size < (1 << 20)) {
    if (Status s = read_file(source, &bytes); !s) return s;
  } else {
    bytes = source + " " + std::to_string(info.st_size) + " " +
            std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec);
  }
  inputs->files.emplace_back(target, bytes);
  return Status::ok();
}

}  // namespace

Status Task::inputs(StepInputs* inputs) {
  inputs->step = step_.name.value;
  const Lookup lookup = values_->lookup();
  for (const Operation& operation : operations_) {
    bool active = true;
    if (Status s = evaluate_active(values_->apply(operation.active), context_.evaluator, &active);
        !s) {
      return s;
    }
    if (active) inputs->commands.push_back(values_->apply(operation.command));
  }
  for (const Text& module : step_.modules)
    inputs->commands.push_back("module " + values_->apply(module));
  for (const auto& [name, value] : environment_) {
    inputs->environment.emplace_back(name, value.value_or(""));
  }
  std::vector<PlannedFile> files;
  for (const std::string& name : sets_) {
    if (const auto set = context_.benchmark.file_sets.find(name);
        set != context_.benchmark.file_sets.end()) {
      for (const auto& entry : set->second.entries) {
        if (const auto* prepare = std::get_if<Prepare>(&entry)) {
          inputs->commands.push_back(values_->apply(prepare->command));
        } else if (Status s = list_files(std::get<FileCopy>(entry), lookup, work_dir_, &files);
                   !s) {
          return s;
        }
      }
    }
    if (const auto set = context_.benchmark.substitute_sets.find(name);
        set != context_.benchmark.substitute_sets.end()) {
      for (const Substitution& sub : set->second.substitutions) {
        inputs->commands.push_back(values_->apply(sub.source) + " -> " + values_->apply(sub.dest));
      }
    }
  }
  for (const PlannedFile& file : files) {
    if (Status s = add_input(file.source, file.target, inputs); !s) return s;
  }
  return Status::ok();
}

}  // namespace tally
