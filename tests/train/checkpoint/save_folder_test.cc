// One run at a time writes to a folder of checkpoints.
#include "src/checkpoint/save_folder.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "src/checkpoint/checkpoint.h"
#include "tests/train/data/temp_dir.h"

using namespace tally::train;
namespace fs = std::filesystem;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int no_locks(int /*fd*/) {
  return ENOLCK;
}

// The id of a process that no longer exists.
pid_t dead_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

std::string host() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

std::string leftover(const TempDir& dir, const std::string& host, pid_t pid) {
  const std::string path = dir / (".iter_0000001." + host + "." + std::to_string(pid) + ".tmp");
  fs::create_directories(path);
  return path;
}

}  // namespace

TEST_CASE("a second run is refused while the first lives, with the lock's holder") {
  const TempDir dir;
  {
    const SaveFolder first(dir / "a/b");
    CHECK(first.notice().empty());
    const std::string error = error_of([&] { const SaveFolder second(dir / "a/b"); });
    CHECK(contains(error, "another run writes its checkpoints to '" + dir / "a/b'"));
    CHECK(contains(error, "process " + std::to_string(getpid()) + " on " + host() + " since 20"));
    CHECK(contains(error, "give another folder"));
    const SaveFolder elsewhere(dir / "a/c");
  }
  CHECK(dir.names().empty());  // what was made and stayed empty is gone
  fs::create_directories(dir / "kept");
  { const SaveFolder again(dir / "kept"); }
  CHECK(dir.names() == "kept ");
}

TEST_CASE("the lock of a killed run blocks nobody") {
  const TempDir dir;
  dir.write(".tally-train.lock",
            "process 1 on another since 2026-01-01T00:00:00Z, a longer line\n");
  const SaveFolder folder(dir / "");
  CHECK(dir.read(".tally-train.lock").rfind("process " + std::to_string(getpid()), 0) == 0);
  CHECK_FALSE(contains(dir.read(".tally-train.lock"), "longer"));
}

TEST_CASE("a lock file that its last holder removed meanwhile does not count") {
  const TempDir dir;
  int calls = 0;
  const SaveFolder folder(dir / "s", [&](int fd) {
    if (++calls == 1) fs::remove(dir / "s/.tally-train.lock");
    return take_flock(fd);
  });
  CHECK(calls == 2);
  CHECK(contains(error_of([&] { const SaveFolder second(dir / "s"); }), "another run"));
}

TEST_CASE("a file system without locks stops no run") {
  const TempDir dir;
  const SaveFolder folder(dir / "s", no_locks);
  CHECK(contains(folder.notice(), "'" + dir / "s' cannot be locked"));
  const SaveFolder second(dir / "s", no_locks);
}

TEST_CASE("leftovers of killed saves are removed, and no living run's files") {
  const TempDir dir;
  const std::string dead = leftover(dir, host(), dead_process());
  const std::string living = leftover(dir, host(), getppid());
  const std::string unknown = leftover(dir, "another.site", 12345);
  const std::string old = dir / ".iter_0000002.tmp";  // named as before hosts were in the names
  fs::create_directories(old);
  remove_leftovers(dir / "", false);
  CHECK_FALSE(fs::exists(dead));
  CHECK(fs::exists(living));
  CHECK(fs::exists(unknown));
  CHECK(fs::exists(old));
  fs::create_directories(dir / "iter_0000001");
  const SaveFolder folder(dir / "");  // whoever has the lock is alone
  CHECK(dir.names() == ".tally-train.lock iter_0000001 ");
}

TEST_CASE("checkpoints are replaced only by a run that resumes from them") {
  const TempDir dir;
  fs::create_directories(dir / "s");
  check_goes_on(dir / "s", std::nullopt);
  fs::create_directories(dir / "s/iter_0000007");
  fs::create_directories(dir / "s/iter_0000012");
  fs::create_directories(dir / "other/iter_0000009");
  const auto fault = [&](const std::optional<std::string>& resumed) {
    return error_of([&] { check_goes_on(dir / "s", resumed); });
  };
  const std::string refused = "'" + dir / "s' holds checkpoints (the newest of iteration 12)";
  CHECK(contains(fault(std::nullopt), refused));
  CHECK(contains(fault(std::nullopt), "give --load " + dir / "s to resume, or another folder"));
  CHECK(contains(fault(dir / "other/iter_0000009"), refused));
  CHECK(fault(dir / "s/iter_0000007").empty());
  CHECK(fault(dir / "s/iter_0000007/").empty());
  CHECK(fault(dir / "other/../s/iter_0000007").empty());
}

TEST_CASE("a folder without checkpoints is refused with what to give instead") {
  const TempDir dir;
  const auto fault = [](const std::string& root) {
    return error_of([&] { latest_checkpoint(root); });
  };
  CHECK_FALSE(latest_checkpoint(dir / "none").has_value());
  CHECK_FALSE(latest_checkpoint(dir / "").has_value());
  CHECK(contains(fault(dir.write("file", "")), "' is a file: give the folder that --save named"));
  fs::create_directories(dir / "hf");
  dir.write("hf/config.json", "{}");
  CHECK(contains(fault(dir / "hf"), "give it as --load-hf"));
  fs::create_directories(dir / "c/iter_0000003");
  fs::create_directories(dir / "c/iter_0000010");
  CHECK(contains(fault(dir / "c"), "no 'latest_checkpointed_iteration.txt'"));
  CHECK(contains(fault(dir / "c"), "(10 is the newest)"));
  dir.write("c/iter_0000003/state.json", "{}");
  CHECK(latest_checkpoint(dir / "c/iter_0000003") == dir / "c/iter_0000003");
}

TEST_CASE("a folder in which nothing can be written is found at once") {
  const TempDir dir;
  dir.write("file", "");
  CHECK(contains(error_of([&] { const SaveFolder folder(dir / "file"); }),
                 "checkpoints cannot be written under '" + dir / "file': "));
  // Where even root cannot write.
  CHECK(contains(error_of([&] { const SaveFolder folder("/proc/none/c"); }),
                 "checkpoints cannot be written under '/proc/none/c': '/proc/none': "));
}
