#include "engine/execute/outside_files.h"

#include <algorithm>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/journal/outside_files.h"
#include "engine/workpackage/analysed_files.h"

namespace tally {
namespace {

// What the workpackage has written: all of a file that it made, replaced or wrote anew, and what
// follows the earlier bytes of one that it appended to.
Status complete(OutsideFile& file) {
  file.ended = true;
  file.after = file_stamp(file.path);
  file.from = 0;
  file.digest.clear();
  if (file.untouched() || !file.after.there()) return Status::ok();
  const bool may_be_longer = file.before.there() && file.after.inode == file.before.inode &&
                             file.after.size >= file.before.size;
  if (may_be_longer) {
    std::string now;
    if (Status s = digest_part(file.path, 0, file.before.size, &now); !s) return s;
    if (now == file.before_digest) file.from = file.before.size;
    // The same bytes, written anew.
    if (file.from == file.after.size) file.from = 0;
  }
  return digest_part(file.path, file.from, file.after.size, &file.digest);
}

}  // namespace

// The files that the step's analysers name, as they are now.
std::vector<std::string> OutsideFileRecorder::paths(int id) const {
  std::vector<std::string> found;
  if (context_.benchmark.as_jube) return found;  // JUBE takes what is there
  const WorkpackageNode& workpackage = context_.graph[id];
  const std::string& step = context_.graph.step_of(workpackage).name.value;
  const std::string work_dir = absolute_path(context_.graph.work_dir(workpackage));
  const bool inside = starts_with(work_dir, context_.run_dir + "/");
  std::optional<WorkpackageValues> values;
  for (const Analyser& analyser : context_.benchmark.analysers) {
    for (const Analyse& analyse : analyser.analyse) {
      if (analyse.step.value != step) continue;
      for (const AnalyseFile& file : analyse.files) {
        if (inside && file.path.value.find_first_of("/$~") == std::string::npos) continue;
        if (!values) values.emplace(context_.graph.values(workpackage));
        for (const std::string& name : names_of(values->apply(file.path))) {
          std::vector<std::string> matching;
          if (is_glob(name) && !matching_files(work_dir, name, {}, &matching)) continue;
          if (!is_glob(name)) matching = {absolute_path(name, work_dir)};
          for (const std::string& path : matching) {
            if (!starts_with(path, context_.run_dir + "/")) found.push_back(path);
          }
        }
      }
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Status OutsideFileRecorder::began(int id) const {
  OutsideFiles files;
  for (const std::string& path : paths(id)) {
    OutsideFile file;
    file.path = path;
    file.before = file_stamp(path);
    if (file.before.there()) {
      if (Status s = digest_part(path, 0, file.before.size, &file.before_digest); !s)
        file.before_digest.clear();  // nobody can read it, or somebody writes to it now
    }
    files.push_back(std::move(file));
  }
  if (files.empty()) return Status::ok();
  return outside_files_of(context_.journal).set_outside(id, files);
}

Status OutsideFileRecorder::ended(int id) const {
  const std::vector<std::string> now = paths(id);
  if (now.empty()) return Status::ok();
  OutsideFiles files;
  if (Status s = outside_files_of(context_.journal).outside_of(id, &files); !s) return s;
  for (const std::string& path : now) {
    const auto same = [&](const OutsideFile& file) { return file.path == path; };
    if (std::none_of(files.begin(), files.end(), same)) files.emplace_back().path = path;
  }
  for (OutsideFile& file : files) {
    if (Status s = complete(file); !s) context_.log.write(s.message());
  }
  return outside_files_of(context_.journal).set_outside(id, files);
}

}  // namespace tally
