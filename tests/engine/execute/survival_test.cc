// Never losing a result: the engine is killed at every write of the journal, interrupted, run
// twice, given a full disk and hanging children.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <sstream>

#include "tests/engine/execute/run_fixture.h"
#include "tests/support/suites.h"

using namespace tally;
using namespace tally::testing;

namespace {

template <typename Body>
int in_child(Body body) {
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

// The run's folder, which a child process made.
void find_run(RunFixture& run) {
  std::vector<RunDirectory> runs;
  REQUIRE(list_runs(run.folder.path() + "/out", &runs));
  REQUIRE(runs.size() == 1);
  run.directory = runs.front();
}

std::map<std::string, int> count_lines(const std::string& text) {
  std::map<std::string, int> counts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) ++counts[line];
  return counts;
}

// Two steps, two operations each, an environment carried on, files copied: every kind of journal
// write.
void add_small_run(RunFixture& run) {
  run.folder.write("in.txt", "input\n");
  FileSet files;
  files.name.value = "fs";
  FileCopy copy;
  copy.source.value = "in.txt";
  copy.file_path = run.folder.path();
  files.entries.emplace_back(copy);
  run.benchmark.file_sets["fs"] = files;
  run.add(set_of("ps", {parameter("p", "1,2")}));
  const std::string log = run.folder.path() + "/log";
  run.add(step_of("a",
                  {"echo one $p; cat in.txt; export Q=q$p; echo a$p >> " + log, "echo two $p $Q"},
                  {"ps", "fs"}));
  run.add(step_of("b", {"echo b $p; echo b$p >> " + log}, {}, {"a"}));
}

const char* const small_run_output = "one 1\ninput\ntwo 1 q1\none 2\ninput\ntwo 2 q2\nb 1\nb 2\n";

// Ended: at most a zombie is left of it.
bool gone(int pid) {
  if (kill(pid, 0) != 0 && errno == ESRCH) return true;
  std::string stat;
  if (!read_file("/proc/" + std::to_string(pid) + "/stat", &stat)) return true;
  const size_t end = stat.rfind(") ");
  return end != std::string::npos && stat[end + 2] == 'Z';
}

// Until it holds, a minute at most: an end of processes that is on its way.
template <typename Condition>
bool eventually(Condition condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    usleep(2000);
  }
  return true;
}

}  // namespace

TEST_CASE(
    "killed at every journal write: continued, nothing is lost and nothing finished runs twice") {
  bool killed = true;
  int writes = 0;
  for (; killed; ++writes) {
    for (const bool after : {false, true}) {
      RunFixture run;
      add_small_run(run);
      const int status = in_child([&] {
        run.commit_hook = [&](int number, bool done) {
          if (number == writes && done == after) raise(SIGKILL);
        };
        RunSummary summary;
        if (!run.start(&summary) || summary.exit_code() != 0) _exit(2);
      });
      killed = WIFSIGNALED(status);
      REQUIRE((killed || status == 0));
      find_run(run);
      std::vector<std::string> finished;
      for (const auto& workpackage : run.stored()) {
        if (workpackage.workpackage.outcome.state == State::done)
          finished.push_back(workpackage.directory);
      }
      const std::string log = run.folder.path() + "/log";
      std::string before;
      if (access(log.c_str(), F_OK) == 0) REQUIRE(read_file(log, &before));
      CAPTURE(writes);
      CAPTURE(after);
      const RunSummary summary = run.continue_run();
      CHECK(summary.exit_code() == 0);
      CHECK(summary.done == 4);
      CHECK(run.all_stdout() == small_run_output);
      for (const auto& workpackage : run.stored()) CHECK(run.has(workpackage.directory + "/done"));
      std::string all;
      REQUIRE(read_file(log, &all));
      for (const auto& [line, times] : count_lines(all)) {
        // At most the operation that was under way is repeated.
        CHECK(times <= 2);
      }
      for (const std::string& directory : finished) {
        const std::string line = std::string(directory[7] == 'a' ? "a" : "b") +
                                 (directory[5] == '0' || directory[5] == '2' ? "1" : "2");
        CHECK(count_lines(all)[line] == count_lines(before)[line]);
      }
    }
  }
  CHECK(writes > 10);
}

TEST_CASE("killed at every journal write of a retry: the outputs are those of one whole attempt") {
  bool own_work_dir = false;
  SUBCASE("in its own folder") {}
  SUBCASE("in a work_dir") {
    own_work_dir = true;
  }
  bool killed = true;
  for (int writes = 0; killed; ++writes) {
    for (const bool after : {false, true}) {
      RunFixture run;
      Step step = step_of("s", {"echo first",
                                "test -e $jube_benchmark_home/tried || { touch "
                                "$jube_benchmark_home/tried; exit 1; }; echo second"});
      step.retry.value = "2";
      if (own_work_dir) step.work_dir = {"$jube_benchmark_home/here", {}};
      run.add(step);
      const int status = in_child([&] {
        run.commit_hook = [&](int number, bool done) {
          if (number == writes && done == after) raise(SIGKILL);
        };
        RunSummary summary;
        if (!run.start(&summary) || summary.exit_code() != 0) _exit(2);
      });
      killed = WIFSIGNALED(status);
      REQUIRE((killed || status == 0));
      find_run(run);
      CAPTURE(writes);
      CAPTURE(after);
      CHECK(run.continue_run().done == 1);
      std::string output;
      REQUIRE(read_file(own_work_dir ? run.folder.path() + "/here/stdout"
                                     : run.directory.path + "/000000_s/work/stdout",
                        &output));
      CHECK(output == "first\nsecond\n");
    }
  }
}

TEST_CASE("killed at every journal write of a wait: the output of the operation is there once") {
  bool killed = true;
  for (int writes = 0; killed; ++writes) {
    for (const bool after : {false, true}) {
      RunFixture run;
      Step step = step_of("s", {"echo first", "echo second", "echo third"});
      step.operations[1].done_file.value = "there";
      run.add(step);
      const int status = in_child([&] {
        run.commit_hook = [&](int number, bool done) {
          if (number == writes && done == after) raise(SIGKILL);
        };
        RunSummary summary;
        if (!run.start(&summary)) _exit(2);
      });
      killed = WIFSIGNALED(status);
      REQUIRE((killed || status == 0));
      find_run(run);
      CAPTURE(writes);
      CAPTURE(after);
      const std::string work = run.directory.path + "/000000_s/work/";
      CHECK(run.continue_run().waiting == 1);
      REQUIRE(append_file(work + "there", ""));
      CHECK(run.continue_run().done == 1);
      std::string output;
      REQUIRE(read_file(work + "stdout", &output));
      CHECK(output == "first\nsecond\nthird\n");
    }
  }
}

TEST_CASE("what a killed engine left running is ended before its operation is done again") {
  RunFixture run;
  run.add(step_of("s", {"echo start; if [ ! -e $jube_benchmark_home/pid ]; then echo $$ > "
                        "$jube_benchmark_home/pid; sleep 1000; fi; echo end"}));
  const pid_t engine = fork();
  if (engine == 0) {
    RunSummary summary;
    const Status ignored = run.start(&summary);
    _exit(ignored ? 0 : 1);
  }
  const std::string pid_file = run.folder.path() + "/pid";
  std::string pid;
  REQUIRE(
      eventually([&] { return read_file(pid_file, &pid) && !pid.empty() && pid.back() == '\n'; }));
  kill(engine, SIGKILL);
  waitpid(engine, nullptr, 0);
  const int shell = atoi(pid.c_str());
  CHECK_FALSE(gone(shell));
  find_run(run);
  CHECK(run.continue_run().done == 1);
  CHECK(eventually([&] { return gone(shell); }));
  CHECK(run.file("000000_s/work/stdout") == "start\nend\n");
}

TEST_CASE(
    "continue ends what the run's operations left, and nobody else who writes into its folder") {
  RunFixture run;
  // It has ended: what it started on purpose goes on.
  run.add(step_of("server", {"sleep 1002 > log 2>&1 & echo $! > $jube_benchmark_home/server"}));
  std::string first;
  SUBCASE("in another session, without a parent") {
    first = "setsid sleep 1000 > /dev/null 2>&1 &";
  }
  SUBCASE("with an environment that was emptied") {
    first = "env -i sleep 1000 &";
  }
  SUBCASE("with an environment that was emptied, in another session") {
    first = "env -i setsid -w sleep 1000 > /dev/null 2>&1 &";
  }
  bool leader_dead = false;
  SUBCASE("with an environment that was emptied, after the end of its session's leader") {
    leader_dead = true;
    first = "env -i sleep 1000 &";
  }
  run.add(step_of("s", {"echo start; if [ ! -e $jube_benchmark_home/pid ]; then " + first +
                        " echo $! > $jube_benchmark_home/new; echo $$ > "
                        "$jube_benchmark_home/leader; mv $jube_benchmark_home/new "
                        "$jube_benchmark_home/pid; sleep 1001; fi; "
                        "echo end"}));
  const pid_t engine = fork();
  if (engine == 0) {
    RunSummary summary;
    const Status ignored = run.start(&summary);
    _exit(ignored ? 0 : 1);
  }
  const auto pid_in = [&](const char* name) {
    std::string text;
    REQUIRE(eventually([&] { return read_file(run.folder.path() + "/" + name, &text); }));
    return atoi(text.c_str());
  };
  const int left = pid_in("pid");
  const int server = pid_in("server");
  find_run(run);
  REQUIRE(eventually([&] { return run.has("000000_server/done"); }));
  // Of a process that emptied its environment, the journal alone says whose it is.
  REQUIRE(eventually([&] {
    std::unique_ptr<Journal> journal;
    std::vector<Journal::Process> started;
    return Journal::open_read_only(run.directory.path, &journal) && journal->processes(&started) &&
           std::any_of(started.begin(), started.end(),
                       [](const Journal::Process& one) { return one.workpackage == 1; });
  }));
  kill(engine, SIGKILL);
  waitpid(engine, nullptr, 0);
  if (leader_dead) {
    const int leader = pid_in("leader");
    kill(leader, SIGKILL);
    REQUIRE(eventually([&] { return gone(leader); }));
  }
  // A script that calls `tally continue`, its output in the run's folder; a person who looks; and a
  // program of somebody else that writes to the very output of the unfinished operation.
  const auto writer = [&](const std::string& name) {
    const pid_t pid = fork();
    if (pid == 0) {
      setsid();
      const int file =
          open((run.directory.path + "/" + name).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
      dup2(file, 1);
      execl("/bin/sh", "sh", "-c",
            "touch \"$0.up.$$\"; while [ ! -e \"$0\" ]; do sleep 0.01; done; echo foreign; touch "
            "\"$0.$$\"; exec sleep 1003",
            (run.folder.path() + "/go").c_str(), nullptr);
      _exit(1);
    }
    return pid;
  };
  const std::vector<pid_t> others{writer("continue.log"), writer("000001_s/work/mine"),
                                  writer("000001_s/work/stdout")};
  const auto all_say = [&](const std::string& word) {
    return std::all_of(others.begin(), others.end(), [&](pid_t pid) {
      const std::string file = run.folder.path() + "/go." + word + std::to_string(pid);
      return access(file.c_str(), F_OK) == 0;
    });
  };
  REQUIRE(eventually([&] { return all_say("up."); }));
  CHECK_FALSE(gone(left));
  CHECK(run.continue_run().done == 2);
  CHECK(eventually([&] { return gone(left); }));
  CHECK_FALSE(gone(server));
  run.folder.write("go", "");
  CHECK(eventually([&] { return all_say(""); }));
  CHECK(run.file("000001_s/work/stdout") == "start\nend\n");
  CHECK(run.file("run.log").find("process " + std::to_string(others.back()) + " (sh) writes to") !=
        std::string::npos);
  for (const pid_t pid : others) {
    CHECK_FALSE(gone(pid));
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  kill(server, SIGKILL);
}

TEST_CASE("an output file outside the workpackage is only appended to") {
  RunFixture run;
  const std::string mine = run.folder.write("mine.log", "mine\n");
  Step step = step_of("s", {"echo start; test -e $jube_benchmark_home/second || { touch "
                            "$jube_benchmark_home/second; sleep 1000; }"});
  std::string name;
  SUBCASE("by its path") {
    name = "$jube_benchmark_home/mine.log";
  }
  SUBCASE("by a link") {
    name = "link.log";
    step.operations.insert(step.operations.begin(),
                           op("ln -sf $jube_benchmark_home/mine.log link.log"));
  }
  step.operations.back().stdout_file = {name, {}};
  run.add(step);
  const pid_t engine = fork();
  if (engine == 0) {
    RunSummary summary;
    const Status ignored = run.start(&summary);
    _exit(ignored ? 0 : 1);
  }
  REQUIRE(eventually([&] { return access((run.folder.path() + "/second").c_str(), F_OK) == 0; }));
  kill(engine, SIGKILL);
  waitpid(engine, nullptr, 0);
  find_run(run);
  CHECK(run.continue_run().done == 1);
  std::string text;
  REQUIRE(read_file(mine, &text));
  CHECK(text == "mine\nstart\nstart\n");
}

TEST_CASE(
    "SIGINT and SIGTERM end the children, whatever they forked, and leave a run to continue") {
  for (const int number : {SIGINT, SIGTERM}) {
    RunFixture run;
    // A child in the background, and one that left its session.
    run.add(step_of("s", {"if [ -e $jube_benchmark_home/pids ]; then echo again; exit 0; fi; "
                          "sleep 1000 & echo $! >> $jube_benchmark_home/new; "
                          "setsid sleep 1001 & echo $! >> $jube_benchmark_home/new; "
                          "echo $$ >> $jube_benchmark_home/new; "
                          "mv $jube_benchmark_home/new $jube_benchmark_home/pids; wait"}));
    run.add(step_of("t", {"echo t"}, {}, {"s"}));
    const pid_t engine = fork();
    if (engine == 0) {
      RunSummary summary;
      if (!run.start(&summary)) _exit(9);
      _exit(summary.interrupted && summary.open == 1 && summary.exit_code() == 1 ? 0 : 8);
    }
    const std::string pid_file = run.folder.path() + "/pids";
    REQUIRE(eventually([&] { return access(pid_file.c_str(), F_OK) == 0; }));
    std::string pids;
    REQUIRE(read_file(pid_file, &pids));
    kill(engine, number);
    int status = 0;
    waitpid(engine, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    std::istringstream list(pids);
    int count = 0;
    for (int pid = 0; list >> pid; ++count) CHECK(eventually([&] { return gone(pid); }));
    CHECK(count == 3);
    find_run(run);
    const RunSummary summary = run.continue_run();
    CHECK(summary.done == 2);
    CHECK(run.file("000000_s/work/stdout") == "again\n");
  }
}

TEST_CASE("two engines on one run: the second is told so" *
          doctest::test_suite(tally::testing::kSeesProcesses)) {
  RunFixture run;
  run.add(
      step_of("s", {"touch $jube_benchmark_home/here; while [ ! -e $jube_benchmark_home/go ]; do "
                    "sleep 0.01; done"}));
  const pid_t engine = fork();
  if (engine == 0) {
    RunSummary summary;
    _exit(run.start(&summary) && summary.done == 1 ? 0 : 1);
  }
  REQUIRE(eventually([&] { return access((run.folder.path() + "/here").c_str(), F_OK) == 0; }));
  find_run(run);
  RunSummary summary;
  const Status second = run.advance(&summary);
  CHECK_FALSE(second);
  CHECK(second.message().find("run 000000 is in use by tally on host") == 0);
  run.folder.write("go", "");
  int status = 0;
  waitpid(engine, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("concurrent starts in one outpath each get a run of their own") {
  TemporaryFolder folder;
  constexpr int engines = 8;
  std::vector<pid_t> pids;
  for (int i = 0; i < engines; ++i) {
    pids.push_back(fork());
    if (pids.back() == 0) {
      RunDirectory directory;
      for (int k = 0; k < 5; ++k) {
        if (!create_run_directory(folder.path() + "/deep/out", &directory)) _exit(1);
      }
      _exit(0);
    }
  }
  for (const pid_t pid : pids) {
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
  }
  std::vector<RunDirectory> runs;
  REQUIRE(list_runs(folder.path() + "/deep/out", &runs));
  REQUIRE(runs.size() == 40);
  CHECK(runs.back().id == 39);
}

TEST_CASE("a disk that fills up: one sentence, and the run can be continued") {
  RunFixture run;
  std::string values = "0";
  for (int i = 1; i < 300; ++i) values.append(",").append(std::to_string(i));
  run.add(set_of("ps", {parameter("p", values), parameter("long", std::string(3000, 'x') + "$p")}));
  Step step = step_of("s", {"V=$long; export V; echo $p"}, {"ps"});
  step.exported = true;  // its ends are as large as its parameters: more than fits, however slowly
  run.add(step);
  const int status = in_child([&] {
    // A file-size limit stands for a full disk; the journal is the only large file.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1400000, 1400000};
    setrlimit(RLIMIT_FSIZE, &limit);
    RunSummary summary;
    const Status s = run.start(&summary);
    if (s) _exit(3);
    if (s.message().find("journal.sqlite: ") == std::string::npos) _exit(4);
    _exit(7);
  });
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
  find_run(run);
  const RunSummary summary = run.continue_run();
  CHECK(summary.done == 300);
  CHECK(summary.exit_code() == 0);
}

TEST_CASE("a file in the way, a vanished work directory" *
          doctest::test_suite(tally::testing::kSeesProcesses)) {
  RunFixture run;
  run.folder.write("out", "a file");
  RunSummary summary;
  const Status s = run.start(&summary);
  CHECK(s.message() == run.folder.path() + "/out: exists but is not a directory");
  RunFixture other;
  other.add(step_of("s", {"rm -r ../work", "echo next"}));
  CHECK(other.run().failed == 1);
  CHECK(other.file("000000_s/error").find("/000000_s/work") != std::string::npos);
  CHECK(other.file("000000_s/error").find("not there") != std::string::npos);
}

TEST_CASE("timeout ends the whole tree; as an expected outcome it is a result") {
  RunFixture run;
  Step hang = step_of(
      "hang", {"echo begun; (trap '' TERM; setsid sleep 1000) & echo $! > pid; wait; sleep 1000"});
  hang.timeout.value = "0.5";
  Step expected = step_of("expected", {"sleep 1000"});
  expected.timeout.value = "100ms";
  expected.expect.push_back({"timeout", {}});
  expected.timeout.value = "0.3s";
  Step bad = step_of("bad", {"true"});
  bad.timeout.value = "soon";
  run.add(hang);
  run.add(expected);
  run.add(bad);
  run.add(step_of("after", {"echo after"}, {}, {"expected"}));
  run.settings.jobs = 4;
  const RunSummary summary = run.run();
  CHECK(summary.failed == 2);
  CHECK(summary.done == 2);
  CHECK(run.file("000000_hang/error").find("time limit of 0.5 reached while running") == 0);
  const int sleeper = atoi(run.file("000000_hang/work/pid").c_str());
  CHECK(eventually([&] { return gone(sleeper); }));
  CHECK(run.file("000002_bad/error") ==
        "timeout \"soon\" is not a duration; write it as 90s, 10m or 01:30:00");
  const auto stored = run.stored();
  CHECK(stored[1].workpackage.outcome.state == State::expected);
  CHECK(message(stored[1].workpackage.outcome) == "time limit");
}

TEST_CASE("retry starts over and keeps the failed try's files; expect names outcomes") {
  RunFixture run;
  Step again = step_of("again", {"echo try; test -e $jube_benchmark_home/two || { touch "
                                 "$jube_benchmark_home/two; exit 1; }"});
  again.retry.value = "2";
  Step never = step_of("never", {"echo try >> $jube_benchmark_home/tries; exit 1"});
  never.retry.value = "2";
  Step oom = step_of("oom", {"exit 3", "echo not reached"});
  oom.expect.push_back({"oom, timeout", {}});
  run.add(again);
  run.add(never);
  run.add(oom);
  const RunSummary summary = run.run();
  CHECK(summary.done == 2);
  CHECK(summary.failed == 1);
  CHECK(run.file("000000_again/work/stdout") == "try\n");
  CHECK(run.has("000000_again/work.failed.1/stdout"));
  std::string tries;
  REQUIRE(read_file(run.folder.path() + "/tries", &tries));
  CHECK(tries == "try\ntry\ntry\n");
  CHECK(message(run.stored()[2].workpackage.outcome) == "out of memory");
  CHECK(run.file("000002_oom/work/stdout").empty());
}

TEST_CASE("GPU slots: never one GPU twice, and too many are refused") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1,2,3,4")}));
  Step step =
      step_of("s",
              {"mkdir $jube_benchmark_home/gpu_$CUDA_VISIBLE_DEVICES && echo "
               "$CUDA_VISIBLE_DEVICES && rmdir $jube_benchmark_home/gpu_$CUDA_VISIBLE_DEVICES"},
              {"ps"});
  step.gpu_slots.value = "1";
  Step many = step_of("many", {"true"});
  many.gpu_slots.value = "3";
  run.add(step);
  run.add(many);
  run.settings.jobs = 4;
  run.parts.gpus = {"0", "1"};
  const RunSummary summary = run.run();
  CHECK(summary.done == 4);
  CHECK(summary.failed == 1);
  CHECK(run.file("000004_many/error") == "needs 3 GPU slots, this machine has 2");
}
