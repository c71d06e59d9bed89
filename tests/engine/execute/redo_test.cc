// What is done again after an engine was killed, or after the host could not do it: the same as if
// nothing had happened, wherever the output lies.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "tests/engine/execute/run_fixture.h"
#include "tests/support/suites.h"

using namespace tally;
using namespace tally::testing;

namespace {

// A run in a process of its own, which `interfere` may kill or hinder; how it ended.
template <typename Interfere>
int in_child(RunFixture& run, Interfere interfere) {
  const pid_t pid = fork();
  if (pid == 0) {
    interfere();
    RunSummary summary;
    _exit(run.start(&summary) ? summary.exit_code() : 9);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  std::vector<RunDirectory> runs;
  REQUIRE(list_runs(run.folder.path() + "/out", &runs));
  run.directory = runs.front();
  return status;
}

// Kills the engine at its `number`-th commit. False when it ended before that.
bool killed_at(RunFixture& run, int number) {
  const int status = in_child(run, [&] {
    run.commit_hook = [&](int commit, bool done) {
      if (done && commit == number) raise(SIGKILL);
    };
  });
  run.commit_hook = nullptr;
  return WIFSIGNALED(status);
}

// The host has no file descriptor left for the first process.
class FailsOnce final : public ProcessRunner {
 public:
  Status start(const ProcessSpec& spec, int* pid) override {
    if (failed_) return real_->start(spec, pid);
    failed_ = true;
    return Status::error("/bin/sh: cannot start: Too many open files", EMFILE);
  }
  bool wait_any(std::chrono::milliseconds timeout, ProcessResult* result) override {
    return real_->wait_any(timeout, result);
  }
  void kill_tree(int pid, int signal) override { real_->kill_tree(pid, signal); }

 private:
  std::unique_ptr<ProcessRunner> real_ = make_process_runner();
  bool failed_ = false;
};

std::string text_of(const std::string& path) {
  std::string text;
  if (!read_file(path, &text)) return "<none>";
  return text;
}

Step shared_step(const std::string& folder) {
  Step step = step_of("s",
                      {"echo own $p", "echo shared; echo shared >> " + folder + "/count",
                       "echo two $p", "echo again; echo again >> " + folder + "/count"},
                      {"ps"});
  step.shared = "all";
  step.operations[1].shared = true;
  step.operations[3].shared = true;
  return step;
}

}  // namespace

TEST_CASE(
    "a shared operation: killed at any record, it is done once and its output is there once") {
  bool killed = true;
  int commits = 0;
  for (; killed; ++commits) {
    CAPTURE(commits);
    RunFixture run;
    run.add(set_of("ps", {parameter("p", "1,2,3")}));
    run.add(shared_step(run.folder.path()));
    killed = killed_at(run, commits);
    const std::string before = text_of(run.folder.path() + "/count");
    const std::string recorded = run.stored().empty() ? "" : before;
    const RunSummary summary = run.continue_run();
    CHECK(summary.done == 3);
    CHECK(run.file("s_all/stdout") == "shared\nagain\n");
    CHECK(run.all_stdout() == "own 1\ntwo 1\nown 2\ntwo 2\nown 3\ntwo 3\n");
    // At most the one that was under way is done again.
    const std::string count = text_of(run.folder.path() + "/count");
    CHECK(count.size() <= std::string("shared\nagain\nshared\n").size());
  }
  CHECK(commits > 10);
}

TEST_CASE("a shared operation that fails fails for all at once, whenever the engine is killed") {
  bool killed = true;
  for (int commits = 0; killed; ++commits) {
    CAPTURE(commits);
    RunFixture run;
    run.add(set_of("ps", {parameter("p", "1,2,3")}));
    Step step = shared_step(run.folder.path());
    step.operations[1].command.value += "; false";
    run.add(step);
    killed = killed_at(run, commits);
    const auto failed = [&] {
      int count = 0;
      for (const auto& workpackage : run.stored()) {
        count += workpackage.workpackage.outcome.state == State::failed ? 1 : 0;
      }
      return count;
    };
    CHECK((failed() == 0 || failed() == 3));
    const RunSummary summary = run.continue_run();
    CHECK(summary.failed == 3);
  }
}

TEST_CASE(
    "output in a work_dir: what an unfinished attempt left is cut off, what was there stays") {
  RunFixture run;
  const std::string work = run.folder.path() + "/work";
  run.folder.write("work/stdout", "mine\n");
  const std::string pid = run.folder.path() + "/pid";
  Step step = step_of("s", {"echo one", "echo two; test -e " + pid + " || { echo $$ > " + pid +
                                            "; kill -9 $PPID; sleep 1000; }"});
  step.work_dir = {work, {}};
  run.add(step);
  CHECK(WIFSIGNALED(in_child(run, [] {})));
  CHECK(run.continue_run().done == 1);
  CHECK(text_of(work + "/stdout") == "mine\none\ntwo\n");
  CHECK(run.file("000000_s/work.unfinished/stdout") == "two\n");
  // The orphan was ended.
  const int orphan = atoi(text_of(pid).c_str());
  std::string stat;
  const bool zombie = read_file("/proc/" + std::to_string(orphan) + "/stat", &stat) &&
                      stat.find(") Z ") != std::string::npos;
  CHECK((kill(orphan, 0) != 0 || zombie));
}

TEST_CASE("output in a work_dir: a retry has its own alone, the failed try's is kept") {
  RunFixture run;
  const std::string work = run.folder.path() + "/work";
  run.folder.write("work/stdout", "mine\n");
  Step step =
      step_of("s", {"echo v=$(($(cat n 2>/dev/null || echo 2) + 1)) ; test -e n || { echo 1 "
                    "> n; exit 1; }"});
  step.work_dir = {work, {}};
  step.retry = {"1", {}};
  run.add(step);
  CHECK(run.run().done == 1);
  CHECK(text_of(work + "/stdout") == "mine\nv=2\n");
  CHECK(run.file("000000_s/work.failed.1/stdout") == "v=3\n");
}

TEST_CASE("output in a work_dir that workpackages share is never cut off") {
  RunFixture run;
  const std::string work = run.folder.path() + "/work";
  run.add(set_of("ps", {parameter("p", "1,2")}));
  Step step = step_of("s",
                      {"echo $p; test $p = 1 || test -e second || { touch second; "
                       "kill -9 $PPID; sleep 1000; }"},
                      {"ps"});
  step.work_dir = {work, {}};
  run.add(step);
  CHECK(WIFSIGNALED(in_child(run, [] {})));
  CHECK(run.continue_run().done == 2);
  CHECK(text_of(work + "/stdout") == "1\n2\n2\n");
  CHECK(run.file("run.log").find("000001_s: other workpackages write to \"" + work + "\" too") !=
        std::string::npos);
}

TEST_CASE("a state of the host that passes puts a workpackage off; continue does it") {
  RunFixture run;
  run.add(step_of("s", {"export Q=5", "echo [$Q]"}));
  SUBCASE("no process can be started: too many open files") {
    FailsOnce processes;
    run.parts.processes = &processes;
    CHECK(run.run().open == 1);
    run.parts.processes = nullptr;
    const Outcome outcome = run.stored()[0].workpackage.outcome;
    CHECK(outcome.state == State::pending);
    CHECK(message(outcome) == "/bin/sh: cannot start: Too many open files");
  }
  SUBCASE("the environment of a command cannot be written") {
    // A file may not grow beyond a limit that the environment's export exceeds.
    run.benchmark.steps[0].operations[0].command.value =
        "if [ ! -e $jube_benchmark_home/second ]; then touch $jube_benchmark_home/second; "
        "export Q=$(head -c 3000 /dev/zero | tr '\\0' x); trap '' XFSZ; ulimit -f 2; else export "
        "Q=5; fi";
    const int status = in_child(run, [] {});
    CHECK(WEXITSTATUS(status) == 1);
    const auto stored = run.stored();
    CHECK(stored[0].workpackage.outcome.state == State::pending);
    CHECK(message(stored[0].workpackage.outcome).find(".environment: the ") != std::string::npos);
  }
  const RunSummary summary = run.continue_run();
  CHECK(summary.done == 1);
  CHECK(summary.exit_code() == 0);
  CHECK(run.file("000000_s/work/stdout") == "[5]\n");
}

namespace {

// The first process cannot be started, for a reason about a file.
class FailsWith final : public ProcessRunner {
 public:
  explicit FailsWith(std::function<Status(const ProcessSpec&)> error) : error_(std::move(error)) {}
  Status start(const ProcessSpec& spec, int*) override { return error_(spec); }
  bool wait_any(std::chrono::milliseconds, ProcessResult*) override { return false; }
  void kill_tree(int, int) override {}

 private:
  std::function<Status(const ProcessSpec&)> error_;
};

}  // namespace

TEST_CASE("the run's own folder is away: put off; the same about the user's files: failed") {
  for (const int reason : {EACCES, EPERM, ENOENT, ENOTDIR, EROFS, ESTALE, ETIMEDOUT, EHOSTDOWN, EIO,
                           EDQUOT, EFBIG, ENOTCONN, ESHUTDOWN}) {
    CAPTURE(strerror(reason));
    const bool anywhere = may_pass(reason);
    CHECK(anywhere == (reason != EACCES && reason != EPERM && reason != ENOENT &&
                       reason != ENOTDIR && reason != EROFS));
    for (const bool own : {true, false}) {
      CAPTURE(own);
      RunFixture run;
      run.add(step_of("s", {"echo 5"}));
      FailsWith processes([&](const ProcessSpec& spec) {
        return file_error(own ? spec.stdout_path : "/home/me/input.txt", "cannot write", reason);
      });
      run.parts.processes = &processes;
      const RunSummary summary = run.run();
      run.parts.processes = nullptr;
      const Outcome outcome = run.stored()[0].workpackage.outcome;
      CHECK(outcome.state == (own || anywhere ? State::pending : State::failed));
      CHECK(message(outcome).find(strerror(reason)) != std::string::npos);
      CHECK(summary.exit_code() == 1);
      CHECK(run.continue_run().done == (own || anywhere ? 1 : 0));
    }
  }
}

TEST_CASE("the environment of a command that another one follows cannot be written: put off") {
  for (const char* shell : {"/bin/sh", "/bin/bash"}) {
    CAPTURE(std::string(shell));
    // The folder is away when the command ends, as on a file system that is, or no file can be
    // opened. Also beside a trap of the command's own, and where the command fails with it.
    for (const char* away :
         {"mv $(dirname $PWD) $H/away", "mv $(dirname $PWD) $H/away; exit 3",
          "trap 'echo bye' EXIT; mv $(dirname $PWD) $H/away", "set -e; mv $(dirname $PWD) $H/away",
          "ulimit -n 3", "trap 'echo bye' EXIT; ulimit -n 3"}) {
      CAPTURE(std::string(away));
      RunFixture run;
      run.settings.shell = shell;
      run.add(step_of("s", {std::string("H=$jube_benchmark_home; test -e $H/second || { touch "
                                        "$H/second; ") +
                                away + "; }; export Q=5",
                            "echo $Q"}));
      CHECK(run.run().exit_code() == 1);
      CHECK(run.stored()[0].workpackage.outcome.state == State::pending);
      const std::string moved = run.folder.path() + "/away";
      if (access(moved.c_str(), F_OK) == 0)
        CHECK(rename(moved.c_str(), (run.directory.path + "/000000_s").c_str()) == 0);
      CHECK(run.continue_run().done == 1);
      CHECK(run.file("000000_s/work/stdout").find("5\n") != std::string::npos);
    }
    // A command's own exit status of that number is a failure, and `set -C` is none.
    for (const char* own : {"exit 125", "trap 'exit 125' EXIT", "exec sh -c 'exit 125'"}) {
      CAPTURE(std::string(own));
      RunFixture run;
      run.settings.shell = shell;
      run.add(step_of("s", {own, "true"}));
      CHECK(run.run().failed == 1);
      CHECK(run.stored()[0].workpackage.outcome.exit_code == 125);
    }
    RunFixture run;
    run.settings.shell = shell;
    run.add(step_of("s", {"set -C; export Q=5", "echo $Q"}));
    CHECK(run.run().done == 1);
    CHECK(run.file("000000_s/work/stdout") == "5\n");
  }
}

// What the user named wrongly stays wrong.
TEST_CASE("files that the user named and that are not there fail for good") {
  RunFixture run;
  SUBCASE("a folder of an output file") {
    Step step = step_of("s", {"echo 5"});
    step.operations[0].stdout_file.value = "no/such/folder/out";
    run.add(step);
  }
  SUBCASE("an input file of a substitution") {
    run.benchmark.substitute_sets["sub"].files.push_back({});
    auto& file = run.benchmark.substitute_sets["sub"].files.back();
    file.in.value = "missing.txt";
    file.out.value = "made.txt";
    run.add(step_of("s", {"echo 5"}, {"sub"}));
  }
  CHECK(run.run().failed == 1);
  CHECK(run.stored()[0].workpackage.outcome.state == State::failed);
}

TEST_CASE("the environment that a command leaves is for its user's eyes, and gone afterwards") {
  RunFixture run;
  run.add(step_of("s", {"stat -c %a ../.environment; export SECRET=x; umask 0", "echo $SECRET"}));
  CHECK(run.run().done == 1);
  CHECK(run.file("000000_s/work/stdout") == "600\nx\n");
  CHECK_FALSE(run.has("000000_s/.environment"));
}

TEST_CASE("a killed engine's environment file is removed; a link in its place is not followed") {
  RunFixture run;
  const std::string outside = run.folder.write("outside", "precious\n");
  run.add(step_of("s", {"ln -sf " + outside + " ../.environment; kill -9 $PPID", "echo two"}));
  run.benchmark.steps[0].operations[0].command.value =
      "test -e $jube_benchmark_home/second || { touch $jube_benchmark_home/second; ln -sf " +
      outside + " ../.environment; kill -9 $PPID; sleep 1000; }";
  CHECK(WIFSIGNALED(in_child(run, [] {})));
  CHECK(run.continue_run().done == 1);
  CHECK(text_of(outside) == "precious\n");
  CHECK_FALSE(run.has("000000_s/.environment"));
}

TEST_CASE("standard output is not written through a link that somebody planted" *
          doctest::test_suite(tally::testing::kSeesProcesses)) {
  RunFixture run;
  const std::string outside = run.folder.write("outside", "precious\n");
  run.add(step_of(
      "a", {"mkdir -p ../../000001_b/work; ln -s " + outside + " ../../000001_b/work/stdout"}));
  run.add(step_of("b", {"echo through"}, {}, {"a"}));
  const RunSummary summary = run.run();
  CHECK(summary.failed == 1);
  CHECK(text_of(outside) == "precious\n");
  CHECK(message(run.stored()[1].workpackage.outcome)
            .find("000001_b/work/stdout: is a link, which the output would follow; remove it") !=
        std::string::npos);
}

TEST_CASE(
    "a request to stop that nobody has seen ends the program; one that was answered does not" *
    doctest::test_suite(tally::testing::kSeesProcesses)) {
  for (const bool seen : {false, true}) {
    CAPTURE(seen);
    const pid_t child = fork();
    if (child == 0) {
      {
        const auto processes = make_process_runner();
        raise(SIGTERM);
        if (seen && processes->interrupted() != 1) _exit(2);
      }
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) == !seen);
    if (!seen) CHECK(WTERMSIG(status) == SIGTERM);
    if (seen) CHECK(status == 0);
  }
}
