// tally comment, tally remove: changes to existing runs.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <set>

#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/input.h"
#include "engine/cli/runs.h"

namespace tally {
namespace {

enum class CommandResult { yes, no, none };

CommandResult ask(const std::string& what) {
  fmt::print("Really remove \"{}\" (y/n):", what);
  std::fflush(stdout);
  std::string answer;
  const bool answered = static_cast<bool>(std::getline(std::cin, answer));
  if (answer == "y" || answer == "yes") return CommandResult::yes;
  fmt::print("{}nothing was removed; --force does not ask\n", answered ? "" : "\n");
  return answered ? CommandResult::no : CommandResult::none;
}

Status remove_tree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (!error) return Status::ok();
  return Status::error(fmt::format("cannot remove '{}': {}", path, error.message()));
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

int comment_command(const Invocation& invocation, const CommentArgs& args) {
  std::vector<RunDirectory> runs = find_runs(invocation, args.runs);
  if (runs.empty()) return kBadInput;
  for (const RunDirectory& directory : runs) {
    std::unique_ptr<Journal> journal;
    Status status = Journal::open(directory.path, &journal);
    if (status) {
      RunRecord run = journal->run();
      run.comment = one_line(args.append ? run.comment + args.comment : args.comment);
      status = journal->set_run(run);
    }
    if (!status) {
      print_error(invocation, status.message());
      return kFailed;
    }
  }
  return kFine;
}

int remove_command(const Invocation& invocation, const RemoveArgs& args) {
  std::vector<RunDirectory> runs = find_runs(invocation, args.runs);
  if (runs.empty()) return kBadInput;
  for (const RunDirectory& directory : runs) {
    std::unique_ptr<Journal> journal;
    // This fails if another engine holds the run.
    if (Status s = Journal::open(directory.path, &journal); !s) {
      print_error(invocation, s.message());
      return kFailed;
    }
    if (args.workpackages.empty()) {
      const CommandResult answer = args.force ? CommandResult::yes : ask(directory.path);
      if (answer == CommandResult::none) return kFailed;
      if (answer == CommandResult::no) continue;
      journal.reset();
      if (Status s = remove_tree(directory.path); !s) {
        print_error(invocation, s.message());
        return kFailed;
      }
      continue;
    }
    for (const std::string& word : args.workpackages) {
      int id = 0;
      if (!parse_id(word, &id)) {
        print_error(invocation,
                    fmt::format("'{}' is not a valid workpackage id: use a number", word));
        return kBadInput;
      }
      const CommandResult answer =
          args.force ? CommandResult::yes
                     : ask(fmt::format("workpackage {} of {}", id, directory.path));
      if (answer == CommandResult::none) return kFailed;
      if (answer == CommandResult::no) continue;
      if (Status s = remove_workpackage(*journal, directory.path, id); !s) {
        print_error(invocation, s.message());
        return kFailed;
      }
    }
  }
  return kFine;
}

}  // namespace tally
