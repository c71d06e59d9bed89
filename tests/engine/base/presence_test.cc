// Which files a pattern finds, beside the C library's glob(3); and the three answers.
#include "engine/base/presence.h"

#include <doctest/doctest.h>
#include <glob.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/files.h"

namespace tally {
namespace {

class Folder {
 public:
  Folder() { REQUIRE(mkdtemp(name_.data()) != nullptr); }
  ~Folder() { std::filesystem::remove_all(name_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return name_; }

 private:
  std::string name_ = "/tmp/tally-presence-XXXXXX";
};

std::vector<std::string> by_the_c_library(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

TEST_CASE("a pattern finds what the C library's glob() finds") {
  const Folder folder;
  const std::string root = folder.path() + "/";
  for (const char* path :
       {"a/x.txt", "a/y.txt", "b/x.txt", "b/.hidden", ".dot/x.txt", "c[1]/x.txt", "c1/x.txt",
        "out.1", "out.10", "out.2", "a*b", "back\\slash", "new\nline", "b/deep/er/x.txt"}) {
    REQUIRE(make_directories(std::string(root + path).substr(0, (root + path).rfind('/'))));
    REQUIRE(write_file(root + path, "1"));
  }
  std::filesystem::create_symlink("nowhere", root + "dangling");
  std::filesystem::create_symlink("a", root + "link");
  for (const char* pattern : {"*",           "*/x.txt",  "*/*",      "out.*",      "out.[12]",
                              "out.[!1]*",   "out.??",   "a/x.txt",  "a/none",     "none/*",
                              "out.1/*",     "*/",       "a*/",      "a/",         "c\\[1\\]/x.txt",
                              "c[1]/x.txt",  "c\\[1]/*", "a\\*b",    "a[*]b",      "back\\\\slash",
                              "*\\\\*",      "dangling", "dang*",    "link/*",     "li*/x.txt",
                              "b/*/*/x.txt", "a//x.*",   "*//x.txt", "./*.txt",    "a/../b/*",
                              "[",           "[a",       "out.[",    "",           "x[/]y",
                              "*/.hid*",     "a/.",      "*/.",      "dangling/*", "link"}) {
    CAPTURE(pattern);
    const std::string whole = escaped_for_matching(root) + pattern;
    std::vector<std::string> found;
    REQUIRE(matching_paths(whole, &found));
    CHECK(found == by_the_c_library(whole));
  }
}

TEST_CASE("names that begin with a dot are not those of the folder and of the one around it") {
  const Folder folder;
  REQUIRE(write_file(folder.path() + "/.hidden", "1"));
  std::vector<std::string> found;
  REQUIRE(matching_paths(folder.path() + "/.*", &found));
  CHECK(found == std::vector<std::string>{folder.path() + "/.hidden"});
}

TEST_CASE("a file that is not there is told from one that cannot be looked at") {
  const Folder folder;
  const std::string file = folder.path() + "/file";
  REQUIRE(write_file(file, "1"));
  std::filesystem::create_symlink("loop", folder.path() + "/loop");
  bool there = true;
  for (const std::string& path : {folder.path() + "/none", file + "/below", folder.path() + "/loop",
                                  folder.path() + "/" + std::string(300, 'n')}) {
    CAPTURE(path);
    CHECK(path_exists(path, &there));
    CHECK_FALSE(there);
    CHECK_FALSE(may_be_there(path));
    std::vector<std::string> names;
    CHECK(names_in(path, &names));
    CHECK(names.empty());
  }
  CHECK(path_exists(file, &there));
  CHECK(there);
  for (const int reason : {EIO, ESTALE, EACCES, EMFILE, EINTR, ENOMEM, ETIMEDOUT, EPERM})
    CHECK_FALSE(means_not_there(reason));
  if (geteuid() == 0) return;  // root may enter every folder
  const std::string locked = folder.path() + "/locked";
  REQUIRE(make_directories(locked));
  std::filesystem::permissions(locked, std::filesystem::perms::none);
  std::vector<std::string> found;
  CHECK_FALSE(path_exists(locked + "/file", &there));
  CHECK(may_be_there(locked + "/file"));
  CHECK_FALSE(names_in(locked, &found));
  CHECK_FALSE(matching_paths(folder.path() + "/*/file", &found));
  CHECK_FALSE(matching_paths(locked + "/*", &found));
  std::filesystem::permissions(locked, std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace tally
