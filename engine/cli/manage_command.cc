// tally comment, tally remove: changes to existing runs.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <utility>
#include <vector>

#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/prepare.h"
#include "engine/cli/removal.h"
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
// It may hold a run's own entries alone.
Status check_remains(const std::string& path) {
  if (const auto holder = run_holder(path)) return Status::error(*holder);
  std::vector<std::string> names;
  TRY(names_in(path, &names));
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
  TRY(names_in(path, &names));
  for (const std::string& name : names) {
    if (starts_with(name, "journal.")) continue;
    TRY(remove_tree(path + "/" + name));
  }
  journal.reset();
  return remove_tree(path);
}

}  // namespace

int comment_command(const Settings& settings, const CommentArgs& args) {
  std::vector<RunDirectory> runs = find_runs(settings, args.runs);
  if (runs.empty()) return kBadInput;
  for (const RunDirectory& directory : runs) {
    const std::unique_ptr<Run> run = open_run(settings, directory, Run::Access::write);
    if (!run) return kFailed;
    const std::string before = args.append ? run->journal().run().comment : std::string();
    if (print_if_error(settings, run->set_comment(one_line(before + args.comment)))) return kFailed;
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
      if (print_if_error(settings, check_not_needed(directory.path, directory.path, runs)))
        return kFailed;
      const Answer answer = args.force ? Answer::yes : ask(directory.path);
      if (answer == Answer::none) return kFailed;
      if (answer == Answer::no) continue;
      if (print_if_error(settings, remove_run(directory.path, std::move(journal)))) return kFailed;
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
      if (print_if_error(settings, remove_workpackages(journal.get(), directory.path, {id})))
        return kFailed;
    }
  }
  return kFine;
}

}  // namespace tally
