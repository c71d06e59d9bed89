// How workpackages ended: kept as data, made into sentences when printed. Journals of other versions.
#include <doctest/doctest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "engine/journal/journal.h"

using namespace tally;
namespace fs = std::filesystem;

namespace {

class Folder {
 public:
  Folder() {
    std::string path = "/tmp/tally-outcome-test-XXXXXX";
    REQUIRE(mkdtemp(path.data()) != nullptr);
    path_ = path;
    fs::create_directory(path_ / "000000");
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string run() const { return path_ / "000000"; }
  std::string journal() const { return run() + "/journal.sqlite"; }

  void sql(const char* statements) const {
    sqlite3* handle = nullptr;
    REQUIRE(sqlite3_open(journal().c_str(), &handle) == SQLITE_OK);
    REQUIRE(sqlite3_exec(handle, statements, nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(handle);
  }

 private:
  fs::path path_;
};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Outcome outcome(State state, Reason reason, const std::string& detail = {}) {
  Outcome made = in_state(state, reason);
  made.detail = detail;
  return made;
}

Outcome of_process(Reason reason, int code, int signal, const std::string& detail) {
  Outcome made = failure(reason, detail);
  made.exit_code = code;
  made.signal = signal;
  made.command = "echo \"a\"\nexit 3";
  made.directory = "/run/000001_s/work";
  made.file = "/run/000001_s/work/stderr";
  return made;
}

Outcome with_file(State state, Reason reason, const std::string& file, const std::string& command) {
  Outcome made = in_state(state, reason);
  made.file = file;
  made.command = command;
  return made;
}

Outcome of_other(State state, Reason reason, int workpackage) {
  Outcome made = in_state(state, reason);
  made.workpackage = workpackage;
  return made;
}

Outcome of_job(int code, const std::string& detail, const std::string& file = {}) {
  Outcome made = failure(Reason::job_exit, detail);
  made.file = file;
  made.exit_code = code;
  made.directory = "/run/000001_s/work";
  return made;
}

struct Case {
  Outcome outcome;
  std::string message;
};

const char* const kFailed =
    "Error (returncode <> 0) while running \"echo \"a\"\nexit 3\" in directory "
    "\"/run/000001_s/work\"\nMessage in \"/run/000001_s/work/stderr\":\n";

std::vector<Case> cases() {
  const std::string failed = kFailed;
  std::vector<Case> all = {
      {in_state(State::done), ""},
      {in_state(State::running), ""},
      {failure(Reason::value, "Cannot evaluate"), "Cannot evaluate"},
      {failure(Reason::files, "x: No such file"), "x: No such file"},
      {failure(Reason::directory, "cannot make x"), "cannot make x"},
      {failure(Reason::platform, "pack needs Slurm"), "pack needs Slurm"},
      {failure(Reason::gpus, "needs 4 GPU slots"), "needs 4 GPU slots"},
      {failure(Reason::host, "fork: try again"), "fork: try again"},
      {of_process(Reason::command, 3, 0, "no such\ndevice\n"),
       failed + "no such\ndevice\nIt ended with exit code 3"},
      {of_process(Reason::command, -1, 0, "no such\ndevice\n"), failed + "no such\ndevice\n"},
      {of_process(Reason::command, -1, 0, ""), failed},
      {of_process(Reason::signal, 0, 9, "last words\n"),
       failed + "last words\nIt was ended by signal 9 (Killed)"},
      {of_process(Reason::signal, 0, 11, ""),
       failed + "It was ended by signal 11 (Segmentation fault)"},
      {with_file(State::failed, Reason::error_file, "wrong", "touch \"wrong\""),
       "Error file \"wrong\" found after running the command \"touch \"wrong\"\"."},
      {of_other(State::failed, Reason::shared_failed, 12),
       "shared operation failed in workpackage 12"},
      {of_process(Reason::time_limit, 0, 15, "10s"),
       "time limit of 10s reached while running \"echo \"a\"\nexit 3\" in directory "
       "\"/run/000001_s/work\""},
      {of_job(7, ""),
       "the job's program ended with exit code 7; its output is in \"/run/000001_s/work\""},
      {of_job(7, "it: failed"),
       "the job's program ended with exit code 7: it: failed; its output is in "
       "\"/run/000001_s/work\""},
      {of_job(7, "it: failed\nlast\nwords\n", "/run/000001_s/work/stderr"),
       "the job's program ended with exit code 7: it: failed; its output is in "
       "\"/run/000001_s/work\"\nMessage in \"/run/000001_s/work/stderr\":\nlast\nwords\n"},
      {of_job(7, "\nlast\nwords\n", "/run/000001_s/work/stderr"),
       "the job's program ended with exit code 7; its output is in \"/run/000001_s/work\"\n"
       "Message in \"/run/000001_s/work/stderr\":\nlast\nwords\n"},
      {failure(Reason::job_rejected, "sbatch: no"), "sbatch: no"},
      {outcome(State::lost, Reason::job_lost, "nobody knows job 7"), "nobody knows job 7"},
      {in_state(State::expected, Reason::expected_memory), "out of memory"},
      {in_state(State::expected, Reason::expected_time_limit), "time limit"},
      {in_state(State::expected, Reason::expected_check), "check failed"},
      {with_file(State::waiting, Reason::done_file, "a \"b\"", ""), "waits for \"a \"b\"\""},
      {in_state(State::waiting, Reason::before_shared), "stands before a shared command"},
      {in_state(State::pending, Reason::interrupted), "interrupted"},
      {in_state(State::pending, Reason::job_withdrawn), "its job was cancelled"},
      {of_other(State::done, Reason::reused, 4),
       "reused: commands, environment and files are those of workpackage 4"},
      {outcome(State::done, Reason::reused, "the same as in /x"),
       "reused: commands, environment and files are the same as in /x"},
  };
  for (const Reason reason :
       {Reason::job_failed, Reason::job_cancelled, Reason::job_time_limit, Reason::job_memory,
        Reason::job_node, Reason::job_preempted, Reason::job_waited}) {
    all.push_back({failure(reason, "job 7 was ended"), "job 7 was ended"});
  }
  return all;
}

void check_same(const Outcome& a, const Outcome& b) {
  CHECK(a.state == b.state);
  CHECK(std::string(reason_name(a.reason)) == reason_name(b.reason));
  CHECK(a.exit_code == b.exit_code);
  CHECK(a.signal == b.signal);
  CHECK(a.workpackage == b.workpackage);
  CHECK(a.command == b.command);
  CHECK(a.directory == b.directory);
  CHECK(a.file == b.file);
  CHECK(a.detail == b.detail);
}

std::vector<Journal::Stored> workpackages(const Journal& journal) {
  std::vector<Journal::Stored> all;
  CHECK(journal.workpackages(&all));
  return all;
}

}  // namespace

TEST_CASE("every reason goes through the journal and makes its sentence") {
  const Folder folder;
  const std::vector<Case> all = cases();
  std::vector<Reason> seen;
  Sources sources;
  sources.add("bench.yaml", "");
  {
    std::unique_ptr<Journal> journal;
    REQUIRE(Journal::create(folder.run(), {}, sources, &journal));
    journal->name_places(&sources);
    TextPool pool;
    for (size_t i = 0; i < all.size(); ++i) {
      Workpackage workpackage;
      workpackage.id = static_cast<int>(i);
      // Those of even number come into being with it.
      if (i % 2 == 0) {
        workpackage.outcome = all[i].outcome;
        workpackage.outcome.place = {0, 12, 5};
      }
      REQUIRE(journal->add(workpackage, pool, {{}, "s", "d", ""}));
      if (i % 2 == 1) REQUIRE(journal->set_outcome(workpackage.id, all[i].outcome));
      seen.push_back(all[i].outcome.reason);
    }
  }
  for (int reason = 0; reason < static_cast<int>(Reason::other); ++reason) {
    CAPTURE(reason_name(static_cast<Reason>(reason)));
    CHECK(std::find(seen.begin(), seen.end(), static_cast<Reason>(reason)) != seen.end());
    CHECK(reason_of(reason_name(static_cast<Reason>(reason))) == static_cast<Reason>(reason));
  }
  std::unique_ptr<Journal> journal;
  REQUIRE(Journal::open(folder.run(), &journal));
  const std::vector<Journal::Stored> stored = workpackages(*journal);
  REQUIRE(stored.size() == all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].message);
    check_same(stored[i].workpackage.outcome, all[i].outcome);
    CHECK(message(stored[i].workpackage.outcome) == all[i].message);
    CHECK(stored[i].place == (i % 2 == 0 ? "bench.yaml:12:5" : ""));
  }
  // What is run again has no reason left.
  REQUIRE(journal->set_outcome(8, in_state(State::running)));
  CHECK(workpackages(*journal)[8].workpackage.outcome.reason == Reason::none);
  CHECK(workpackages(*journal)[8].place.empty());
  REQUIRE(journal->reset(10));
  CHECK(workpackages(*journal)[10].workpackage.outcome.reason == Reason::none);
}

TEST_CASE("only failures of commands let JUBE go on") {
  CHECK(is_failure_of_command(Reason::command));
  CHECK(is_failure_of_command(Reason::signal));
  CHECK(is_failure_of_command(Reason::error_file));
  CHECK(is_failure_of_command(Reason::shared_failed));
  for (const Reason reason : {Reason::none, Reason::value, Reason::files, Reason::directory,
                              Reason::host, Reason::time_limit, Reason::job_exit}) {
    CHECK_FALSE(is_failure_of_command(reason));
  }
}

TEST_CASE("a journal of another version names both, and stays as it is") {
  const Folder folder;
  // One without checksums, which other programs than tally may write.
  fs::copy_file(
      fs::path(TALLY_SOURCE_DIR) / "tests/golden/run_0.1.0_journal2/runs/000000/journal.sqlite",
      folder.journal());
  std::unique_ptr<Journal> journal;
  const std::pair<const char*, const char*> versions[] = {
      {"PRAGMA user_version=7",
       ": is a journal of version 7, and this tally knows versions up to 2; use the tally that "
       "wrote "
       "it, or a newer one"},
      {"PRAGMA user_version=1",
       ": is a journal of version 1, which tally 0.1.0 wrote; `tally continue` of tally 0.2.0 "
       "converts it"}};
  for (const auto& [statement, message] : versions) {
    folder.sql(statement);
    const std::string before = bytes_of(folder.journal());
    for (const auto& open : {Journal::open, Journal::open_read_only}) {
      CHECK(open(folder.run(), &journal).message() == folder.journal() + message);
    }
    CHECK(bytes_of(folder.journal()) == before);
  }
}
