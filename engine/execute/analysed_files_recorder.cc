#include "engine/execute/analysed_files_recorder.h"

#include <time.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/workpackage/matching_files.h"

namespace tally {
namespace {

// Completes the file with the part that the workpackage has written: all of a file that it made,
// replaced or wrote anew, and what follows the earlier bytes of one that it appended to.
Status complete(OutsideFile& file, long long own_until_ns) {
  file.ended = true;
  file.from = 0;
  file.digest.clear();
  TRY(file_stamp(file.path, &file.after));
  if (!file.after.there()) file.after.written_ns = own_until_ns;
  if (file.untouched() || !file.after.there()) return Status::ok();
  const bool may_be_longer = file.before.there() && file.after.inode == file.before.inode &&
                             file.after.size >= file.before.size;
  if (may_be_longer) {
    std::string now;
    TRY(digest_part(file.path, 0, file.before.size, &now));
    if (now == file.before_digest) file.from = file.before.size;
    // The same bytes, written anew.
    if (file.from == file.after.size) file.from = 0;
  }
  return digest_part(file.path, file.from, file.after.size, &file.digest);
}

long long now_ns() {
  constexpr long long kNano = 1000000000;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * kNano + now.tv_nsec;
}

}  // namespace

// The files that the step's analysers name, as they are now. Outside files that
// nobody guards are like the workpackage's own.
Status AnalysedFilesRecorder::find(int id, Which which, Found* out) const {
  Found& found = *out;
  const bool outside = which == Which::outside;
  if (outside && !context_.run.benchmark().rules.outside_files_are_guarded) return Status::ok();
  const WorkpackageNode& workpackage = context_.graph[id];
  const std::string& step = context_.graph.step_of(workpackage).name.value;
  const std::string folder = context_.run_dir + "/" + workpackage.directory + "/work";
  const std::string work_dir =
      workpackage.wp.work_dir.empty() ? folder : context_.graph.work_dir(workpackage);
  // Results look for an output in the workpackage's own folder first.
  const std::string own_dir = outside || folder == work_dir ? "" : folder;
  const bool inside = is_own(id, work_dir + "/");
  std::optional<WorkpackageValues> values;
  for (const Analyser& analyser : context_.run.benchmark().analysers) {
    for (const Analyse& analyse : analyser.analyse) {
      if (analyse.step.value != step) continue;
      for (const AnalyseFile& file : analyse.files) {
        const bool plain = file.path.value.find_first_of("/$~\\") == std::string::npos;
        if (outside && inside && plain) continue;
        if (!plain && !values) values.emplace(context_.graph.values(workpackage));
        for (const std::string& name :
             names_of(plain ? file.path.value : values->apply(file.path))) {
          TRY(add_name(id, name, {work_dir, own_dir}, found));
        }
      }
    }
  }
  std::ranges::sort(found.paths);
  found.paths.erase(std::unique(found.paths.begin(), found.paths.end()), found.paths.end());
  return Status::ok();
}

Status AnalysedFilesRecorder::add_name(int id, const std::string& name, const Folders& folders,
                                       Found& found) const {
  const auto& [work_dir, own_dir] = folders;
  const bool glob = is_glob(name);
  std::vector<std::string> matching;
  if (glob || !own_dir.empty()) {
    TRY(matching_files(work_dir, name, own_dir, &matching));
  }
  if (glob || matching.empty()) found.open_names.push_back(name);
  if (glob) {
    if (!is_own(id, folder_of_pattern(work_dir, name) + "/"))
      found.globs.push_back(opened_pattern(work_dir, name));
  } else if (matching.empty()) {
    matching = {name};
  }
  bool led = false;
  for (const std::string& path : matching) {
    const bool simple = path.find('/') == std::string::npos && path.front() != '.';
    found.paths.push_back(simple ? work_dir + "/" + path : opened_path(path, work_dir));
    led = led || (!simple && found.paths.back() != absolute_path(path, work_dir));
  }
  // A link may lead to the `..` of another folder later.
  if (led && !glob) found.open_names.push_back(name);
  return Status::ok();
}

// Whether it is in the workpackage's folder, or counts as if it were.
bool AnalysedFilesRecorder::is_own(int id, const std::string& path) const {
  return !context_.run.benchmark().rules.outside_files_are_guarded ||
         starts_with(path, context_.run_dir + "/" + context_.graph[id].directory + "/");
}

Status AnalysedFilesRecorder::look_before(int id, OutsideFiles* files) const {
  Found found;
  TRY(find(id, Which::outside, &found));
  for (const std::string& path : found.paths) {
    if (is_own(id, path)) continue;
    OutsideFile file;
    file.path = path;
    TRY(stamp_and_digest(path, &file.before, &file.before_digest));
    files->push_back(std::move(file));
  }
  return Status::ok();
}

Status AnalysedFilesRecorder::look_after(int id, bool well, End* end) const {
  end->own = begin_end(id);
  Found found;
  TRY(find(id, well ? Which::all : Which::outside, &found));
  const long long own_until_ns = end->own.own_until_ns();
  TRY(look_outside(id, found, own_until_ns, &end->outside));
  return well ? look_own(id, found, &end->own) : Status::ok();
}

Status AnalysedFilesRecorder::record(int id, OutsideFiles files) const {
  if (files.empty()) return Status::ok();
  const std::string run = context_.run_dir + "/";
  for (OutsideFile& file : files) {
    if (starts_with(file.path, run)) file.path.erase(0, run.size());
  }
  return context_.run.journal().set_outside(id, files);
}

Status AnalysedFilesRecorder::record(int id, End end) const {
  TRY(record(id, std::move(end.outside)));
  if (end.own.files.empty()) return Status::ok();
  return context_.run.journal().set_ended(id, end.own);
}

// An end without files.
EndedFiles AnalysedFilesRecorder::begin_end(int id) const {
  const WorkpackageNode& workpackage = context_.graph[id];
  EndedFiles ended;
  ended.noted_ns = now_ns();
  if (!workpackage.job_name.empty()) ended.writer = EndedFiles::Writer::job;
  for (const Operation& operation : context_.graph.step_of(workpackage).operations) {
    if (!operation.done_file.value.empty()) ended.writer = EndedFiles::Writer::unknown;
  }
  return ended;
}

Status AnalysedFilesRecorder::look_outside(int id, const Found& found, long long own_until_ns,
                                           OutsideFiles* files) const {
  std::vector<std::string> now = found.globs;
  for (const std::string& path : found.paths) {
    if (!is_own(id, path)) now.push_back(path);
  }
  if (now.empty()) return Status::ok();
  TRY(context_.run.journal().outside_of(id, files));
  for (OutsideFile& file : *files) file.path = absolute_path(file.path, context_.run_dir);
  for (const std::string& path : now) {
    const auto same = [&](const OutsideFile& file) { return file.path == path; };
    if (std::ranges::none_of(*files, same)) files->emplace_back().path = path;
  }
  Status looked;
  for (OutsideFile& file : *files) {
    if (Status s = complete(file, own_until_ns); !s && looked) looked = s;
  }
  return looked;
}

// A workpackage's folder that is not there says nothing about its files: somebody has moved the run,
// or its file system is not mounted now.
Status AnalysedFilesRecorder::check_folder(int id) const {
  if (!context_.run.benchmark().rules.outside_files_are_guarded) return Status::ok();
  const std::string folder = context_.graph.folder(context_.graph[id]) + "/work";
  bool there = false;
  TRY(folder_exists(folder, &there));
  return there ? Status::ok() : look_error(folder, ENOENT);
}

Status AnalysedFilesRecorder::look_own(int id, const Found& found, EndedFiles* ended) const {
  const std::string run = context_.run_dir + "/";
  const std::string work_dir = context_.graph.work_dir(context_.graph[id]);
  const auto in_run = [&](const std::string& path) {
    return starts_with(path, run) ? path.substr(run.size()) : path;
  };
  const auto real = [&](const std::string& path) {
    std::string target = path_behind_links(context_.run_dir, path);
    return target == in_run(path) ? "" : target;
  };
  ended->links_known = true;
  for (const std::string& path : found.paths) {
    if (!is_own(id, path)) continue;
    EndedFile file;
    TRY(stamp_and_digest(path, &file.stamp, &file.digest));
    if (!file.stamp.there()) {
      TRY(check_folder(id));
      TRY(stamp_and_digest(path, &file.stamp, &file.digest));  // the folder was away a moment
    }
    if (!file.stamp.there()) continue;
    file.path = in_run(path);
    file.real = real(path);
    ended->files.push_back(std::move(file));
  }
  if (!found.open_names.empty()) {
    TRY(check_folder(id));
  }
  for (const std::string& name : found.open_names) {
    EndedFile& file = ended->files.emplace_back();
    file.path = name;
    if (!is_glob(name)) file.real = real(opened_path(name, work_dir));
  }
  return Status::ok();
}

}  // namespace tally
