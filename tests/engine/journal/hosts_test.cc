// One directory, several hosts: processes that carry different host identities (TALLY_HOST), as
// engines on the login nodes of one cluster do.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/host.h"
#include "engine/journal/journal.h"
#include "engine/journal/lease.h"
#include "engine/run/run_directory.h"
#include "tests/support/suites.h"

using namespace tally;

namespace {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/tally-hosts-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_; }
  size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
};

// A process that calls itself `host`.
pid_t start_on(const std::string& host, const std::function<int()>& body) {
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    setenv("TALLY_HOST", host.c_str(), 1);
    _exit(body());
  }
  return pid;
}

int code_of(pid_t pid) {
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int on(const std::string& host, const std::function<int()>& body) {
  return code_of(start_on(host, body));
}

// Lets all processes go at one moment: each waits until the writing end is closed.
struct Gate {
  int ends[2] = {};
  Gate() { REQUIRE(pipe(ends) == 0); }
  void pass() {
    char byte = 0;
    close(ends[1]);
    [[maybe_unused]] const ssize_t got = read(ends[0], &byte, 1);
  }
  void open_now() {
    close(ends[1]);
    close(ends[0]);
  }
};

void make_old(const std::string& path) {
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), old, 0) == 0);
}

RunRecord record() {
  RunRecord run;
  run.id = 3;
  run.benchmark = "b";
  return run;
}

// How many of `count` processes, each on a host of its own, get the lease when all try at once.
int winners(const std::string& lease, int count) {
  Gate gate;
  // The winners keep theirs until all have tried.
  Gate end;
  int told[2] = {};
  REQUIRE(pipe(told) == 0);
  std::vector<pid_t> pids;
  for (int i = 0; i < count; ++i) {
    pids.push_back(start_on("host" + std::to_string(i), [&] {
      gate.pass();
      Lease mine;
      const bool got = static_cast<bool>(mine.take(lease, "run"));
      if (write(told[1], "x", 1) != 1) return 2;
      end.pass();
      return got && mine.renew() ? 0 : 1;
    }));
  }
  gate.open_now();
  for (int i = 0; i < count; ++i) {
    char byte = 0;
    REQUIRE(read(told[0], &byte, 1) == 1);
  }
  end.open_now();
  close(told[0]);
  close(told[1]);
  int won = 0;
  for (const pid_t pid : pids) won += code_of(pid) == 0 ? 1 : 0;
  return won;
}

}  // namespace

TEST_CASE("of engines on many hosts that want a run at once, one gets it") {
  for (int round = 0; round < 40; ++round) {
    const Folder folder;
    CHECK(winners(folder.path() + "/journal.lease", 8) == 1);
    CHECK(folder.files() == 0);
  }
}

TEST_CASE("of those that find the lease of a dead engine, one takes it over") {
  for (int round = 0; round < 40; ++round) {
    const Folder folder;
    const std::string lease = folder.path() + "/journal.lease";
    std::ofstream(lease) << "gone\n12\nboot/1\n2026-11-21 01:00:00\n";
    make_old(lease);
    CHECK(winners(lease, 8) == 1);
  }
}

TEST_CASE("while one takes a dead engine's lease away, others keep out") {
  const Folder folder;
  const std::string lease = folder.path() + "/journal.lease";
  const auto dead = [&] {
    std::ofstream(lease) << "gone\n12\nboot/1\n2026-11-21 01:00:00\n";
    make_old(lease);
  };
  dead();
  std::ofstream(lease + ".take") << "somebody is at it\n";
  Lease mine;
  CHECK_FALSE(mine.take(lease, "run"));
  CHECK(Lease::read(lease)->host == "gone");
  // One that died while it was at it does not keep others out for ever.
  make_old(lease + ".take");
  CHECK(mine.take(lease, "run"));
  CHECK(Lease::read(lease)->host == host_identity());
  CHECK(folder.files() == 1);
}

TEST_CASE("a run that one host writes is refused to another, and readable there") {
  const Folder folder;
  const int code = on("login1", [&] {
    std::unique_ptr<Journal> journal;
    if (!Journal::create(folder.path(), record(), Sources(), &journal)) return 1;
    if (!journal->set_setup({7, "k", "v"})) return 2;
    return on("login2", [&] {
      std::unique_ptr<Journal> other;
      const Status refused = Journal::open(folder.path(), &other);
      if (refused ||
          refused.message().find("by tally on host login1, process ") == std::string::npos) {
        return 3;
      }
      return Journal::open_read_only(folder.path(), &other) && other->run().benchmark == "b" ? 0
                                                                                             : 4;
    });
  });
  CHECK(code == 0);
  // login1 has ended in order: login2 may go on.
  CHECK(on("login2", [&] {
          std::unique_ptr<Journal> journal;
          std::vector<Journal::Setup> setups;
          return Journal::open(folder.path(), &journal) && journal->setups(&setups) &&
                         setups.size() == 1
                     ? 0
                     : 1;
        }) == 0);
}

TEST_CASE("an engine that stood still while another host took its run over writes no more") {
  const Folder folder;
  const std::string lease = folder.path() + "/journal.lease";
  CHECK(on("login1", [&] {
          std::unique_ptr<Journal> journal;
          if (!Journal::create(folder.path(), record(), Sources(), &journal)) return 1;
          make_old(lease);
          // Where nothing locks, the other gets in: only the lease is asked here.
          const int taken = on("login2", [&] {
            auto theirs = std::make_unique<Lease>();
            const bool got = static_cast<bool>(theirs->take(lease, "run"));
            [[maybe_unused]] Lease* kept = theirs.release();  // as if it ran on
            return got ? 0 : 1;
          });
          if (taken != 0) return 2;
          journal->renew_lease();
          const Status late = journal->set_setup({8, "k", "late"});
          if (late || late.message().find("taken this run over") == std::string::npos) return 3;
          journal.reset();
          // The new holder's lease is not taken away with it.
          return Lease::read(lease) && Lease::read(lease)->host == "login2" ? 0 : 4;
        }) == 0);
}

namespace {

// An engine on login1 that has made a run, stands still (SIGSTOP), and then goes on.
class Suspended {
 public:
  explicit Suspended(const std::string& run, bool locks = true) : lease_(run + "/journal.lease") {
    pid_ = start_on("login1", [&] {
      std::unique_ptr<Journal> journal;
      if (!Journal::create(run, record(), Sources(), &journal)) return 1;
      // Closing any descriptor of a file gives up the process's locks of it.
      std::string bytes;
      if (!locks && !read_file(run + "/journal.sqlite", &bytes)) return 1;
      raise(SIGSTOP);
      journal->renew_lease();
      return journal->set_setup({7, "k", "late"}) ? 0 : 2;
    });
    int status = 0;
    REQUIRE(waitpid(pid_, &status, WUNTRACED) == pid_);
    REQUIRE(WIFSTOPPED(status));
    make_old(lease_);
  }
  pid_t pid() const { return pid_; }
  int go_on() const {
    kill(pid_, SIGCONT);
    return code_of(pid_);
  }

 private:
  std::string lease_;
  pid_t pid_ = 0;
};

std::string open_error(const std::string& run) {
  std::unique_ptr<Journal> journal;
  return Journal::open(run, &journal).message();
}

size_t setups_in(const std::string& run) {
  std::unique_ptr<Journal> journal;
  std::vector<Journal::Setup> setups;
  if (const Status s = Journal::open(run, &journal); !s) FAIL_CHECK(s.message());
  if (journal) CHECK(journal->setups(&setups));
  return setups.size();
}

}  // namespace

TEST_CASE("an engine that is suspended keeps its run, whoever tries to take it" *
          doctest::test_suite(tally::testing::kSeesProcesses)) {
  for (const std::string host : {"login1", "login2"}) {
    for (int tries = 1; tries <= 3; ++tries) {
      const Folder folder;
      const Suspended engine(folder.path());
      std::string before, after;
      REQUIRE(read_file(folder.path() + "/journal.lease", &before));
      for (int i = 0; i < tries; ++i) {
        CHECK(on(host, [&] {
                const std::string error = open_error(folder.path());
                const std::string holder =
                    "by tally on host login1, process " + std::to_string(engine.pid());
                return error.find(holder) != std::string::npos ? 0 : 1;
              }) == 0);
      }
      REQUIRE(read_file(folder.path() + "/journal.lease", &after));
      CHECK(before == after);
      CHECK(engine.go_on() == 0);
      CHECK(setups_in(folder.path()) == 1);
    }
  }
}

TEST_CASE("the refusal says that the engine may be suspended") {
  const Folder folder;
  const Suspended engine(folder.path());
  CHECK(on("login2", [&] {
          return open_error(folder.path()).find("so it may be suspended") != std::string::npos ? 0
                                                                                               : 1;
        }) == 0);
  CHECK(engine.go_on() == 0);
}

// Where nothing locks, or the lock of a suspended machine was given up.
TEST_CASE("a take-over that fails before it writes gives the lease back") {
  const Folder folder;
  const std::string file = folder.path() + "/journal.sqlite";
  const std::string lease = folder.path() + "/journal.lease";
  const Suspended engine(folder.path(), false);
  std::string good, before, after;
  REQUIRE(read_file(file, &good));
  REQUIRE(read_file(lease, &before));
  std::string expected;
  SUBCASE("the journal is damaged") {
    expected = "is damaged";
    std::string bad = good;
    bad[bad.size() - 4000] ^= 1;
    REQUIRE(write_file(file + ".bad", bad));
  }
  SUBCASE("the journal is not complete") {
    expected = "is not a complete journal";
    REQUIRE(write_file(file + ".bad", ""));
  }
  REQUIRE(rename(file.c_str(), (file + ".good").c_str()) == 0);
  REQUIRE(rename((file + ".bad").c_str(), file.c_str()) == 0);
  CHECK(on("login2", [&] {
          return open_error(folder.path()).find(expected) != std::string::npos ? 0 : 1;
        }) == 0);
  REQUIRE(rename((file + ".good").c_str(), file.c_str()) == 0);
  REQUIRE(read_file(lease, &after));
  CHECK(before == after);
  CHECK(engine.go_on() == 0);
  CHECK(setups_in(folder.path()) == 1);
}

TEST_CASE("of engines on many hosts that continue a dead engine's run at once, one gets it") {
  for (int round = 0; round < 20; ++round) {
    const Folder folder;
    CHECK(on("gone", [&] {
            std::unique_ptr<Journal> journal;
            const bool made{Journal::create(folder.path(), record(), Sources(), &journal)};
            _exit(made ? 0 : 1);
            return 1;
          }) == 0);
    make_old(folder.path() + "/journal.lease");
    Gate gate, end;
    int told[2] = {};
    REQUIRE(pipe(told) == 0);
    std::vector<pid_t> pids;
    for (int i = 0; i < 6; ++i) {
      pids.push_back(start_on("host" + std::to_string(i), [&] {
        gate.pass();
        std::unique_ptr<Journal> journal;
        const bool got{Journal::open(folder.path(), &journal)};
        if (write(told[1], "x", 1) != 1) return 2;
        end.pass();
        return got ? 0 : 1;
      }));
    }
    gate.open_now();
    for (int i = 0; i < 6; ++i) {
      char byte = 0;
      REQUIRE(read(told[0], &byte, 1) == 1);
    }
    end.open_now();
    close(told[0]);
    close(told[1]);
    int won = 0;
    for (const pid_t pid : pids) won += code_of(pid) == 0 ? 1 : 0;
    CHECK(won == 1);
  }
}

TEST_CASE("a file that several hosts write at once is one of theirs, whole") {
  const Folder folder;
  const std::string path = folder.path() + "/entry";
  const auto text = [](int host) { return std::string(200000, static_cast<char>('a' + host)); };
  REQUIRE(write_file(path, text(0)));
  Gate gate;
  std::vector<pid_t> pids;
  for (int host = 0; host < 4; ++host) {
    pids.push_back(start_on("host" + std::to_string(host), [&, host] {
      gate.pass();
      for (int i = 0; i < 200; ++i) {
        std::string seen;
        if (!write_file(path, text(host)) || !read_file(path, &seen)) return 1;
        if (seen.size() != 200000 || seen != std::string(200000, seen[0])) return 2;
      }
      return 0;
    }));
  }
  gate.open_now();
  for (const pid_t pid : pids) CHECK(code_of(pid) == 0);
  CHECK(folder.files() == 1);
}

TEST_CASE("runs started on several hosts at once get an id each") {
  const Folder folder;
  Gate gate;
  std::vector<pid_t> pids;
  for (int host = 0; host < 6; ++host) {
    pids.push_back(start_on("host" + std::to_string(host), [&] {
      gate.pass();
      for (int i = 0; i < 20; ++i) {
        RunDirectory run;
        if (!create_run_directory(folder.path(), &run)) return 1;
      }
      return 0;
    }));
  }
  gate.open_now();
  for (const pid_t pid : pids) CHECK(code_of(pid) == 0);
  std::vector<RunDirectory> runs;
  CHECK(list_runs(folder.path(), &runs));
  CHECK(runs.size() == 120);
}
