#include "engine/cli/removal.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"

namespace tally {

Status remove_tree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (!error) return Status::ok();
  return Status::error(fmt::format("cannot remove '{}': {}", path, error.message()));
}

Status check_not_needed(const std::string& run_dir, const std::string& part,
                        const std::vector<RunDirectory>& with) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path own = fs::canonical(part, error);
  const fs::path own_run = fs::canonical(run_dir, error);
  if (error) return means_not_there(error.value()) ? Status::ok() : look_error(part, error.value());
  const auto is_removed = [&](const fs::path& run) {
    std::error_code ignored;
    return fs::equivalent(own_run, run, ignored) ||
           std::any_of(with.begin(), with.end(), [&](const RunDirectory& one) {
             return fs::equivalent(one.path, run, ignored);
           });
  };
  const fs::path outpath = own_run.parent_path();
  std::vector<std::string> runs;
  if (Status s = names_in(outpath, &runs); !s) return s;
  for (const std::string& run : runs) {
    if (!has_journal(outpath / run) || is_removed(outpath / run)) continue;
    std::vector<std::string> names;
    if (Status s = names_in(outpath / run, &names); !s) return s;
    for (const std::string& name : names) {
      const fs::path work = outpath / run / name / "work";
      std::optional<struct stat> found;
      if (Status s = look_at(work, &found, Links::keep); !s) return s;
      if (!found || !S_ISLNK(found->st_mode)) continue;
      const std::string target = fs::weakly_canonical(work, error).string();
      if (error) return look_error(work, error.value());
      if (!starts_with(target, own.string() + "/")) continue;
      return Status::error(fmt::format(
          "'{}' is needed: '{}' is a link to the work of its set-up; remove that run as well (--id "
          "takes several)",
          part, work.string()));
    }
  }
  return Status::ok();
}

Status remove_workpackages(Journal* journal, const std::string& run_dir, const std::set<int>& ids) {
  std::vector<Journal::Stored> workpackages;
  if (Status s = journal->workpackages(&workpackages); !s) return s;
  std::set<int> below, left = ids;
  std::vector<std::string> folders;
  for (const Journal::Stored& stored : workpackages) {  // parents come before their children
    const int id = stored.workpackage.id;
    const bool chosen = left.erase(id) != 0;
    for (const int parent : stored.workpackage.parents)
      if (ids.count(parent) != 0 || below.count(parent) != 0) below.insert(id);
    if (!chosen && below.count(id) == 0) continue;
    folders.push_back(run_dir + "/" + stored.directory);
    if (!chosen) continue;
    if (Status s = check_not_needed(run_dir, folders.back(), {}); !s) return s;
  }
  if (!left.empty())
    return Status::error(fmt::format("the run has no workpackage {}", *left.begin()));
  if (Status s = journal->begin(); !s) return s;
  for (const int id : below)
    if (Status s = journal->remove(id); !s) return s;
  for (const int id : ids) {
    if (below.count(id) != 0) continue;
    if (Status s = journal->reset(id); !s) return s;
  }
  if (Status s = journal->commit(); !s) return s;
  for (const std::string& folder : folders)
    if (Status s = remove_tree(folder); !s) return s;
  return Status::ok();
}

}  // namespace tally
