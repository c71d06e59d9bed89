// tally comment, tally remove: changes to existing runs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <set>
#include <utility>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/input.h"
#include "engine/cli/runs.h"

namespace tally {
namespace {

enum class Answer { yes, no, none };

Answer ask(const std::string& what) {
  fmt::print("Really remove \"{}\" (y/n):", what);
  std::fflush(stdout);
  std::string answer;
  const bool answered = static_cast<bool>(std::getline(std::cin, answer));
  if (answer == "y" || answer == "yes") return Answer::yes;
  fmt::print("{}nothing was removed; --force does not ask\n", answered ? "" : "\n");
  return answered ? Answer::no : Answer::none;
}

Status remove_tree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (!error) return Status::ok();
  return Status::error(fmt::format("cannot remove '{}': {}", path, error.message()));
}

// Whether the name is of an entry that tally makes in the folder of a run.
bool is_run_entry(const std::string& name) {
  for (const char* known : {"configuration.xml", "workpackages.xml", "analyse.xml", "timestamps",
                            "result", "job_functions.sh"}) {
    if (name == known) return true;
  }
  const bool log = name.size() > 4 && name.compare(name.size() - 4, 4, ".log") == 0;
  const size_t digits = name.find_first_not_of("0123456789");
  return log || starts_with(name, "journal.") || (digits == 6 && name[digits] == '_');
}

// A run without a journal: it was killed before it had one, or while an earlier tally removed it.
// Nothing but a run's own entries may be in it.
Status check_remains(const std::string& path) {
  if (const auto holder = run_holder(path)) return Status::error(*holder);
  std::vector<std::string> names;
  if (Status s = names_in(path, &names); !s) return s;
  for (const std::string& name : names) {
    if (is_run_entry(name)) continue;
    return Status::error(
        fmt::format("{}: no run of tally here (journal.sqlite is missing, and there is '{}'); "
                    "remove it by hand "
                    "if it is not needed",
                    path, name));
  }
  return Status::ok();
}

// The journal goes last, so that a removal that was cut off can be done again.
Status remove_run(const std::string& path, std::unique_ptr<Journal> journal) {
  std::vector<std::string> names;
  if (Status s = names_in(path, &names); !s) return s;
  for (const std::string& name : names) {
    if (starts_with(name, "journal.")) continue;
    if (Status s = remove_tree(path + "/" + name); !s) return s;
  }
  journal.reset();
  return remove_tree(path);
}

// Another run may have links to the work of set-ups that this run did. Its programs may have their
// path built in, so that the work cannot be moved. `with`: runs that are removed, too. `part`: what
// is removed of the run.
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

// Resets the workpackage, so that `continue` starts it again. Its descendants are removed.
Status remove_workpackage(Journal& journal, const std::string& run_dir, int id) {
  std::vector<Journal::Stored> workpackages;
  if (Status s = journal.workpackages(&workpackages); !s) return s;
  std::set<int> below;
  std::string own;
  for (const Journal::Stored& stored : workpackages) {  // parents come before their children
    for (int parent : stored.workpackage.parents) {
      if (parent == id || below.count(parent) != 0) below.insert(stored.workpackage.id);
    }
    if (stored.workpackage.id == id) own = stored.directory;
  }
  if (own.empty()) return Status::error(fmt::format("the run has no workpackage {}", id));
  if (Status s = check_not_needed(run_dir, run_dir + "/" + own, {}); !s) return s;
  if (Status s = journal.begin(); !s) return s;
  for (int child : below) {
    if (Status s = journal.remove(child); !s) return s;
  }
  if (Status s = journal.reset(id); !s) return s;
  if (Status s = journal.commit(); !s) return s;
  for (const Journal::Stored& stored : workpackages) {
    if (stored.workpackage.id != id && below.count(stored.workpackage.id) == 0) continue;
    if (Status s = remove_tree(run_dir + "/" + stored.directory); !s) return s;
  }
  return Status::ok();
}

}  // namespace

int comment_command(const Settings& settings, const CommentArgs& args) {
  std::vector<RunDirectory> runs = find_runs(settings, args.runs);
  if (runs.empty()) return kBadInput;
  for (const RunDirectory& directory : runs) {
    const std::unique_ptr<Run> run = open_run(settings, directory, Run::Access::write);
    if (!run) return kFailed;
    const std::string before = args.append ? run->journal().run().comment : std::string();
    if (Status s = run->set_comment(one_line(before + args.comment)); !s) {
      print_error(settings, s);
      return kFailed;
    }
  }
  return kFine;
}

int remove_command(const Settings& settings, const RemoveArgs& args) {
  std::vector<RunDirectory> runs = find_runs(settings, args.runs);
  if (runs.empty()) return kBadInput;
  for (const RunDirectory& directory : runs) {
    std::unique_ptr<Journal> journal;
    const bool whole = has_journal(directory.path) || !args.workpackages.empty();
    // This fails if another engine holds the run.
    const Status usable =
        whole ? Journal::open(directory.path, &journal) : check_remains(directory.path);
    if (!usable) {
      print_error(settings, usable.message());
      return kFailed;
    }
    if (args.workpackages.empty()) {
      if (Status s = check_not_needed(directory.path, directory.path, runs); !s) {
        print_error(settings, s.message());
        return kFailed;
      }
      const Answer answer = args.force ? Answer::yes : ask(directory.path);
      if (answer == Answer::none) return kFailed;
      if (answer == Answer::no) continue;
      if (Status s = remove_run(directory.path, std::move(journal)); !s) {
        print_error(settings, s.message());
        return kFailed;
      }
      continue;
    }
    for (const std::string& word : args.workpackages) {
      int id = 0;
      if (!parse_id(word, &id)) {
        print_error(settings,
                    fmt::format("'{}' is not a valid workpackage id: use a number", word));
        return kBadInput;
      }
      const Answer answer =
          args.force ? Answer::yes : ask(fmt::format("workpackage {} of {}", id, directory.path));
      if (answer == Answer::none) return kFailed;
      if (answer == Answer::no) continue;
      if (Status s = remove_workpackage(*journal, directory.path, id); !s) {
        print_error(settings, s.message());
        return kFailed;
      }
    }
  }
  return kFine;
}

}  // namespace tally
