// Files that a user names: links, FIFOs, permissions.
#include "engine/base/files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

namespace fs = std::filesystem;
using tally::read_file;
using tally::write_named_file;

namespace {

class Folder {
 public:
  Folder() { REQUIRE(mkdtemp(name_.data()) != nullptr); }
  ~Folder() { fs::remove_all(name_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& file) const { return name_ + "/" + file; }

 private:
  std::string name_ = "/tmp/tally-files-XXXXXX";
};

std::string bytes_of(const std::string& path) {
  std::string bytes;
  CHECK(read_file(path, &bytes));
  return bytes;
}

}  // namespace

TEST_CASE("a named file: a link stays, and its target is replaced") {
  const Folder folder;
  fs::create_directory(folder / "far");
  CHECK(write_named_file(folder / "far/real", "old"));
  fs::permissions(folder / "far/real", fs::perms(0600));
  fs::create_symlink("far/real", folder / "near");
  fs::create_symlink(folder / "near", folder / "link");
  CHECK(write_named_file(folder / "link", "new"));
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(fs::is_symlink(folder / "near"));
  CHECK(bytes_of(folder / "far/real") == "new");
  CHECK(fs::status(folder / "far/real").permissions() == fs::perms(0600));
}

TEST_CASE("a named file: the target of a link that is not there is made") {
  const Folder folder;
  fs::create_symlink("later", folder / "link");
  CHECK(write_named_file(folder / "link", "new"));
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(bytes_of(folder / "later") == "new");
}

TEST_CASE("a named file: a circle of links is an error") {
  const Folder folder;
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  CHECK_FALSE(write_named_file(folder / "a/x", "new"));
}

TEST_CASE("a named file: a FIFO gets the bytes and stays") {
  const Folder folder;
  const std::string fifo = folder / "fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  CHECK(write_named_file(fifo, "through"));
  std::array<char, 20> got{};
  CHECK(std::string(got.data(), static_cast<size_t>(read(reader, got.data(), got.size()))) ==
        "through");
  close(reader);
  CHECK(fs::is_fifo(fifo));
}

TEST_CASE("a named file: what a process has open is written to, not replaced") {
  const Folder folder;
  const int file = open((folder / "out").c_str(), O_CREAT | O_RDWR, 0600);
  REQUIRE(write(file, "before ", 7) == 7);
  CHECK(write_named_file("/dev/fd/" + std::to_string(file), "after"));
  CHECK(write_named_file("/proc/self/fd/" + std::to_string(file), "!"));
  // What is printed afterwards follows.
  REQUIRE(write(file, " end", 4) == 4);
  close(file);
  CHECK(bytes_of(folder / "out") == "before after! end");
}
