// The output files of a workpackage: where they are, and what of them an attempt that was not
// completed leaves.
#include <unistd.h>

#include <algorithm>

#include "engine/base/files.h"
#include "engine/base/own_files.h"
#include "engine/base/text.h"
#include "engine/execute/analysed_files_recorder.h"
#include "engine/execute/task.h"

namespace tally {
namespace {

bool below(const std::string& path, const std::string& folder) {
  return starts_with(path, folder + "/");
}

}  // namespace

// Names are relative to the work directory, or to the shared folder in a shared operation. Output
// without a name goes to output_dir_.
std::string Task::output_path(const std::string& name, const char* otherwise, bool shared) const {
  if (shared) return opened_path(name.empty() ? otherwise : name, shared_folder());
  return name.empty() ? output_dir_ + "/" + otherwise : opened_path(name, work_dir_);
}

// The files to which its operations write, those of shared operations aside.
std::vector<std::string> Task::own_outputs() const {
  std::vector<std::string> written = outputs_;
  for (const char* name : {"stdout", "stderr"}) written.push_back(output_dir_ + "/" + name);
  for (const Operation& operation : operations_) {
    for (const Text* name : {&operation.stdout_file, &operation.stderr_file}) {
      if (!name->value.empty()) written.push_back(opened_path(values_->path(*name), work_dir_));
    }
  }
  std::ranges::sort(written);
  written.erase(std::unique(written.begin(), written.end()), written.end());
  return written;
}

// Files in a work_dir that the step names may be there before its first operation. Their sizes are
// recorded then, so that an unfinished attempt can be told from what was there.
Status Task::note_outputs_before() {
  if (!before_.empty() || below(work_dir_, folder_) || operation_ > 0 || cycle() > 0) {
    return Status::ok();
  }
  for (const std::string& path : own_outputs()) {
    if (!below(path, work_dir_)) continue;
    OutputSizes now;
    if (Status s = output_sizes({path}, &now); !s) {
      fail(Reason::files, s);
      return Status::ok();
    }
    before_.emplace_back(path, now.empty() ? 0 : now.front().second);
  }
  if (before_.empty()) return Status::ok();
  workpackage().outputs = before_;
  return context_.run.journal().outputs_before(id_, before_);
}

// An attempt that begins anew is told from what an earlier one left. A job that runs already, and a
// command that has ended and waits for its done_file, have begun.
Status Task::note_outside_files() {
  if (outside_noted_) return Status::ok();
  outside_noted_ = true;
  const bool begins = operation_ == 0 && cycle() == 0 && !check_waiting_;
  if (!begins || !workpackage().job_name.empty()) return Status::ok();
  const AnalysedFilesRecorder recorder(context_);
  OutsideFiles files;
  if (Status s = recorder.look_before(id_, &files); !s) {
    fail(Reason::files, s);
    return Status::ok();
  }
  return recorder.record(id_, std::move(files));
}

// Whether other workpackages, besides those that it depends on, have written to its work_dir.
bool Task::shares_work_dir() const {
  const std::vector<int> before = ancestors();
  const auto& all = context_.graph.all();
  return std::ranges::any_of(all, [&](const WorkpackageNode& other) {
    const int id = other.wp.id;
    return id != id_ && other.wp.outcome.state != State::pending && !contains(before, id) &&
           context_.graph.work_dir(other) == work_dir_;
  });
}

// An unfinished operation of a killed engine runs again. Its earlier output is removed from files
// that belong to this run, and from those in its work_dir, if it has that for itself.
Status Task::cut_back_outputs() {
  std::vector<std::string> own{folder_};
  if (!step_.shared.empty()) own.push_back(shared_folder());
  if (Status s = cut_back(own_outputs(), workpackage().outputs, own); !s || before_.empty())
    return s;
  std::vector<std::string> outside;
  bool more = false;
  for (const auto& [path, size] : before_) {
    if (!below(path, work_dir_)) continue;
    outside.push_back(path);
    OutputSizes now;
    TRY(output_sizes({path}, &now));
    more = more || (!now.empty() && now.front().second > size);
  }
  if (!more) return Status::ok();
  if (!shares_work_dir()) {
    // Somebody else may have written there meanwhile, so what is cut off is kept.
    keep_tails(workpackage().outputs, folder_ + "/work.unfinished");
    return cut_back(outside, workpackage().outputs, {work_dir_});
  }
  context_.log.write(workpackage().directory + ": other workpackages write to \"" + work_dir_ +
                     "\" too, so that the output of its earlier attempt stays there");
  return Status::ok();
}

// Cuts off the output that an unfinished attempt of a shared operation left. All workpackages of
// the step know the sizes from after the last one that was completed.
Status Task::cut_back_shared(const std::vector<std::string>& written) const {
  if (!workpackage().restored && workpackage().attempts == 0) return Status::ok();
  OutputSizes completed;
  for (const int id : context_.graph.of_step(workpackage().wp.step)) {
    for (const auto& [path, size] : context_.graph[id].outputs) {
      if (!contains(written, path)) continue;
      const auto known = std::ranges::find_if(
          completed, [&, wanted = path](const auto& entry) { return entry.first == wanted; });
      if (known == completed.end()) {
        completed.emplace_back(path, size);
      } else {
        known->second = std::max(known->second, size);
      }
    }
  }
  return cut_back(written, completed, {shared_folder()});
}

void Task::keep_outputs(const std::string& folder) const {
  if (!shares_work_dir()) keep_tails(before_, folder);
}

// Copies what files in its work_dir have beyond these sizes to `folder`.
void Task::keep_tails(const OutputSizes& sizes, const std::string& folder) const {
  for (const auto& [path, before] : before_) {
    long long size = before;
    for (const auto& [known, bytes] : sizes) {
      if (known == path) size = bytes;
    }
    if (below(path, work_dir_)) keep_tail(path, size, folder);
  }
}

// Copies what a file has beyond this size to `folder`.
void Task::keep_tail(const std::string& path, long long size, const std::string& folder) const {
  const std::string kept = folder + "/" + path.substr(path.rfind('/') + 1);
  auto skip = static_cast<size_t>(size);
  bool made = false;
  Status status;
  [[maybe_unused]] const Status read = read_file(path, [&](const char* bytes, size_t count) {
    const size_t known = std::min(skip, count);
    skip -= known;
    if (known == count || !status) return;
    if (!made) status = make_own_directories(context_.run_dir, folder);
    made = true;
    if (status)
      status = append_own_file(context_.run_dir, kept, std::string(bytes + known, count - known));
  });
  if (!status) context_.log.write(status.message());
}

}  // namespace tally
