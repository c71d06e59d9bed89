#include "engine/cli/removal.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

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
           std::ranges::any_of(with, [&](const RunDirectory& one) {
             return fs::equivalent(one.path, run, ignored);
           });
  };
  const fs::path outpath = own_run.parent_path();
  std::vector<std::string> runs;
  TRY(names_in(outpath, &runs));
  for (const std::string& run : runs) {
    if (!has_journal(outpath / run) || is_removed(outpath / run)) continue;
    std::vector<std::string> names;
    TRY(names_in(outpath / run, &names));
    for (const std::string& name : names) {
      const fs::path work = outpath / run / name / "work";
      std::optional<struct stat> found;
      TRY(look_at(work, &found, Links::keep));
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
  TRY(journal->workpackages(&workpackages));
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
    TRY(check_not_needed(run_dir, folders.back(), {}));
  }
  if (!left.empty())
    return Status::error(fmt::format("the run has no workpackage {}", *left.begin()));
  TRY(journal->begin());
  for (const int id : below) TRY(journal->remove(id));
  for (const int id : ids) {
    if (below.count(id) != 0) continue;
    TRY(journal->reset(id));
  }
  TRY(journal->commit());
  for (const std::string& folder : folders) TRY(remove_tree(folder));
  return Status::ok();
}

}  // namespace tally
