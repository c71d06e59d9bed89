// The journal's file on a disk that changes bytes, beside people who plant links, under locks that
// must hold.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/base/files.h"
#include "engine/base/host.h"
#include "engine/journal/database.h"
#include "engine/journal/journal.h"
#include "engine/journal/lease.h"

using namespace tally;

namespace {

class Folder {
 public:
  Folder() {
    path_ = "/tmp/tally-damage-test-XXXXXX";
    REQUIRE(mkdtemp(path_.data()) != nullptr);
    std::filesystem::create_directory(run());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path() const { return path_; }
  std::string run() const { return path_ + "/000003"; }
  std::string journal() const { return run() + "/journal.sqlite"; }

 private:
  std::string path_;
};

Status add_workpackages(Journal& journal, int count) {
  TextPool pool;
  if (Status s = journal.begin(); !s) return s;
  for (int i = 0; i < count; ++i) {
    Workpackage wp;
    wp.id = i;
    wp.point.bindings.push_back({pool.intern("p"), pool.intern(std::to_string(i)), 0, 0});
    if (Status s = journal.add(wp, pool, {{"ps/p"}, "s", "00000" + std::to_string(i), ""}); !s)
      return s;
  }
  return journal.commit();
}

std::unique_ptr<Journal> create(const Folder& folder, int workpackages) {
  RunRecord run;
  run.id = 3;
  run.benchmark = "b";
  std::unique_ptr<Journal> journal;
  REQUIRE(Journal::create(folder.run(), run, Sources(), &journal));
  REQUIRE(add_workpackages(*journal, workpackages));
  return journal;
}

// What a reader learns: all values, or that the file is damaged.
std::string values_of(const Folder& folder) {
  std::unique_ptr<Journal> journal;
  std::vector<Journal::Stored> all;
  Status status = Journal::open_read_only(folder.run(), &journal);
  if (status) status = journal->workpackages(&all);
  if (!status) return status.message();
  std::string values = journal->run().benchmark;
  for (const Journal::Stored& stored : all) values += " " + stored.parameters.at(0).second;
  return values;
}

// Whether another process could lock the file for writing.
bool may_lock(const std::string& path) {
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    _exit(fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return status == 0;
}

// Commits until the engine has left another snapshot than the one with `before` bytes.
void wait_for_snapshot(Journal& journal, const std::string& path) {
  struct stat info {};
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (lstat(path.c_str(), &info) != 0 && std::chrono::steady_clock::now() < limit) {
    REQUIRE(journal.set_setup({1, "k", "v"}));
  }
  REQUIRE(S_ISREG(info.st_mode));
}

std::string lease_text(const std::string& pid_namespace) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return host_identity() + "\n1\n" + boot + "/1\n2026-11-21 01:00:00\n" + pid_namespace + "\n";
}

bool may_take(const std::string& lease) {
  Lease mine;
  return static_cast<bool>(mine.take(lease, "run"));
}

void make_old(const std::string& path) {
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), old, 0) == 0);
}

}  // namespace

TEST_CASE("a bit that flips anywhere in the journal is found, or changes nothing") {
  const Folder folder;
  create(folder, 300).reset();
  std::string whole;
  REQUIRE(read_file(folder.journal(), &whole));
  const std::string expected = values_of(folder);
  REQUIRE(expected.rfind("b 0 1 2 ", 0) == 0);
  int found = 0;
  int changed = 0;
  constexpr size_t header_bits = 100 * 8;  // each of them says how the rest is read
  for (size_t bit = 0; bit < whole.size() * 8; bit += bit < header_bits ? 1 : 37 * 8 + 1) {
    const size_t at = bit / 8;
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ (1 << (bit % 8)));
    std::ofstream(folder.journal(), std::ios::binary) << broken;
    const std::string values = values_of(folder);
    if (values == expected) continue;
    ++changed;
    found += values.rfind(folder.run(), 0) == 0 ? 1 : 0;
  }
  CHECK(found == changed);
  CHECK(found > 1000);
  // The engine reads every page before it changes anything.
  std::string broken = whole;
  const size_t last = whole.rfind("299");
  REQUIRE(last != std::string::npos);
  broken[last] = '1';
  std::ofstream(folder.journal(), std::ios::binary) << broken;
  std::unique_ptr<Journal> journal;
  const Status refused = Journal::open(folder.run(), &journal);
  CHECK(refused.message() == folder.journal() +
                                 ": is damaged (a page does not match its checksum); start the run "
                                 "again, or restore the file from a copy");
  CHECK_FALSE(std::filesystem::exists(folder.run() + "/journal.lease"));
}

TEST_CASE("SQLite's lock on the journal holds while the engine leaves snapshots") {
  const Folder folder;
  auto journal = create(folder, 3);
  CHECK_FALSE(may_lock(folder.journal()));
  wait_for_snapshot(*journal, folder.run() + "/journal.snapshot");
  CHECK_FALSE(may_lock(folder.journal()));
  journal.reset();
  CHECK(may_lock(folder.journal()));
}

TEST_CASE("links that somebody plants beside the journal are replaced, not followed") {
  const Folder folder;
  const std::string outside = folder.path() + "/outside";
  std::ofstream(outside) << "precious";
  auto journal = create(folder, 3);
  for (const char* name : {"journal.snapshot.new"}) {
    REQUIRE(symlink(outside.c_str(), (folder.run() + "/" + name).c_str()) == 0);
  }
  wait_for_snapshot(*journal, folder.run() + "/journal.snapshot");
  std::string text;
  REQUIRE(read_file(outside, &text));
  CHECK(text == "precious");
  CHECK(values_of(folder) == "b 0 1 2");
}

TEST_CASE("a workpackage's folder that leads out of the run is refused") {
  for (const char* name : {"../../x", "..", "a/b", "/tmp", ""}) {
    const Folder folder;
    create(folder, 1).reset();
    {
      SqliteDatabase database;
      REQUIRE(database.open(folder.journal(), SQLITE_OPEN_READWRITE, folder.journal()));
      REQUIRE(database.run("PRAGMA locking_mode=EXCLUSIVE"));
      REQUIRE(database.run(("UPDATE package SET directory='" + std::string(name) + "'").c_str()));
    }
    CHECK(values_of(folder) == folder.journal() + ": is damaged (\"" + name +
                                   "\" is not the name of a workpackage's folder); start the run "
                                   "again, or restore the file from a copy");
  }
}

TEST_CASE("a holder of the lease that this host's kernel does not know counts by its renewals") {
  const Folder folder;
  const std::string lease = folder.path() + "/journal.lease";
  std::string text;
  SUBCASE("a process of another container on this host") {
    text = lease_text("pid:[1]");
  }
  SUBCASE("a lease of a tally that did not write the namespace, or without /proc") {
    text = lease_text("");
  }
  SUBCASE("a lease that is not complete") {
    text = "host\n";
  }
  std::ofstream(lease) << text;
  CHECK_FALSE(may_take(lease));
  make_old(lease);
  CHECK(may_take(lease));
}

TEST_CASE("an engine that was killed while it took a lease over is in nobody's way") {
  const Folder folder;
  const std::string lease = folder.path() + "/journal.lease";
  const pid_t engine = fork();
  if (engine == 0) {
    Lease taken, door;
    const bool both = taken.take(lease, "run") && door.take(lease + ".take", "run");
    raise(both ? SIGKILL : SIGTERM);
  }
  int status = 0;
  REQUIRE(waitpid(engine, &status, 0) == engine);
  REQUIRE(WTERMSIG(status) == SIGKILL);
  CHECK(std::filesystem::exists(lease + ".take"));
  CHECK(may_take(lease));
}

TEST_CASE("a lease that cannot be read is somebody's") {
  const Folder folder;
  const std::string lease = folder.path() + "/journal.lease";
  std::filesystem::create_directory(lease);  // reading fails, for root too
  Lease mine;
  const Status refused = mine.take(lease, "run 000003");
  CHECK(refused.message() ==
        "run 000003 is in use by another process; wait for it to end, or end it, then continue");
  CHECK(std::filesystem::exists(lease));
}
