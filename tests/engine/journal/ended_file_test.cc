// The files of a workpackage's end, as bytes of the journal.
#include "engine/workpackage/ended_file.h"

#include <doctest/doctest.h>

#include <climits>

namespace tally {
namespace {

EndedFiles some_files() {
  EndedFiles ended;
  ended.writer = EndedFiles::Writer::unknown;
  ended.noted_ns = 1795816464457578000;
  ended.files = {
      {"000005_run/work/stdout",
       {978715, 8, ended.noted_ns - 91234},
       "6a1edea2643300e823b4949b483b6c19"},
      {"/elsewhere/out with spaces",
       {ULLONG_MAX, LLONG_MAX - 1, 0},
       "00ff0000000000000000000000000080"},
      {"written later", {1, 0, ended.noted_ns + 3000000000}, ""},
      {"", {0, 127, LLONG_MIN / 2}, ""},
      {"*.log", {}, ""},
      {std::string(300, 'x'), {128, 16384, ended.noted_ns}, ""},
  };
  return ended;
}

void check_same(const EndedFile& a, const EndedFile& b) {
  CHECK(a.path == b.path);
  CHECK(a.stamp == b.stamp);
  CHECK(a.digest == b.digest);
}

TEST_CASE("the files of an end come back as they were") {
  const EndedFiles ended = some_files();
  const EndedFiles back = EndedFiles::unpacked(ended.packed());
  CHECK(back.writer == ended.writer);
  CHECK(back.noted_ns == ended.noted_ns);
  REQUIRE(back.files.size() == ended.files.size());
  for (size_t i = 0; i < back.files.size(); ++i) check_same(back.files[i], ended.files[i]);
  FilesPrint print;
  for (const EndedFile& file : ended.files) {
    if (file.stamp.there()) print.add(file.stamp);
  }
  CHECK(files_print(ended.packed()) == print.value());
  CHECK(files_print("") == 0);
}

TEST_CASE("cut bytes give the files before the cut") {
  const EndedFiles ended = some_files();
  const std::string packed = ended.packed();
  for (size_t length = 0; length < packed.size(); ++length) {
    CAPTURE(length);
    const EndedFiles back = EndedFiles::unpacked(packed.substr(0, length));
    REQUIRE(back.files.size() < ended.files.size());
    for (size_t i = 0; i < back.files.size(); ++i) check_same(back.files[i], ended.files[i]);
  }
}

TEST_CASE("where links led comes back, and whether anybody looked") {
  EndedFiles ended = some_files();
  CHECK_FALSE(EndedFiles::unpacked(ended.packed()).links_known);
  ended.links_known = true;
  const size_t without = ended.packed().size();
  ended.files[0].real = "s_shared/log";
  ended.files[4].real = std::string(200, 'y');
  const std::string packed = ended.packed();
  const EndedFiles back = EndedFiles::unpacked(packed);
  CHECK(back.links_known);
  REQUIRE(back.files.size() == ended.files.size());
  for (size_t i = 0; i < back.files.size(); ++i) {
    check_same(back.files[i], ended.files[i]);
    CHECK(back.files[i].real == ended.files[i].real);
  }
  for (size_t length = without; length < packed.size(); ++length)
    CHECK(EndedFiles::unpacked(packed.substr(0, length)).files.size() == ended.files.size());
}

TEST_CASE("a usual end takes little room") {
  EndedFiles ended = some_files();
  ended.files.resize(1);
  ended.links_known = true;
  CHECK(ended.packed().size() < 70);
}

}  // namespace
}  // namespace tally
