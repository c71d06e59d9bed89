#include "engine/results/read/file_view.h"

#include "engine/base/text.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include "engine/results/read/mapped_faults.h"

using tally::FileView;

namespace {

std::string temporary(const std::string& bytes) {
  std::string path = "/tmp/tally-view-" + std::to_string(::getpid());
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

long mapped_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("RssFile:", 0) == 0) return std::stol(line.substr(8));
  }
  return 0;
}

long anonymous_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("RssAnon:", 0) == 0) return std::stol(line.substr(8));
  }
  return 0;
}

}  // namespace

TEST_CASE("a file without carriage returns is shown as it is") {
  const std::string text("a\nb\0c", 5);
  std::string path = temporary(text);
  FileView view;
  REQUIRE(FileView::open(path, &view));
  CHECK(view.text() == text);
  CHECK(view.ascii());
  std::remove(path.c_str());
}

TEST_CASE("carriage returns are newlines, as in Python's text mode") {  // spec row 13
  std::string path = temporary("10%\r20%\rtime=1\r\ntime=2\n\r\n");
  FileView view;
  REQUIRE(FileView::open(path, &view));
  CHECK(view.text() == "10%\n20%\ntime=1\ntime=2\n\n");
  FileView moved = std::move(view);
  CHECK(moved.text() == "10%\n20%\ntime=1\ntime=2\n\n");
  std::remove(path.c_str());
}

TEST_CASE("a small file is read at once, and what happens to it later does not matter") {
  for (const size_t size : {size_t{9}, size_t{64} << 10, (size_t{64} << 10) + 1}) {
    CAPTURE(size);
    const std::string path = temporary(std::string(size, 'x'));
    FileView view;
    REQUIRE(FileView::open(path, &view));
    FileView moved = std::move(view);  // short texts lie within the object
    CHECK(moved.text() == std::string(size, 'x'));
    const bool mapped = size > size_t{64} << 10;
    REQUIRE(truncate(path.c_str(), 1) == 0);
    CHECK(static_cast<bool>(moved.unchanged(path)) == !mapped);
    if (!mapped) CHECK(moved.text() == std::string(size, 'x'));
    std::remove(path.c_str());
  }
}

TEST_CASE("a large file with carriage returns takes no memory of its size") {
  std::string line = "progress 10%\rprogress 20%\r\n";
  std::string bytes;
  while (bytes.size() < (size_t{40} << 20)) bytes += line;
  std::string path = temporary(bytes);
  size_t lines = bytes.size() / line.size();
  bytes.clear();
  bytes.shrink_to_fit();
  [[maybe_unused]] const long before = anonymous_kilobytes();
  FileView view;
  REQUIRE(FileView::open(path, &view));
  CHECK(view.text().size() == lines * 26);
  CHECK(view.text().find('\r') == std::string::npos);
  CHECK(view.text().substr(view.text().size() - 13) == "progress 20%\n");
#ifndef __SANITIZE_THREAD__  // its shadow of the text is memory, too
  CHECK(anonymous_kilobytes() - before < 8 << 10);
#endif
  std::remove(path.c_str());
}

TEST_CASE("empty, missing and odd files") {
  std::string path = temporary("");
  FileView view;
  REQUIRE(FileView::open(path, &view));
  CHECK(view.text().empty());
  std::remove(path.c_str());
  tally::Status missing = FileView::open(path, &view);
  CHECK(!missing);
  CHECK(missing.message().find("No such file") != std::string::npos);
  CHECK(!FileView::open("/tmp", &view));
}

TEST_CASE("a byte above 127 is noticed wherever it stands") {
  for (size_t at : {size_t{0}, size_t{77}, size_t{300000}}) {
    std::string bytes(300001, 'x');
    bytes[at] = '\xff';
    std::string path = temporary(bytes);
    FileView view;
    REQUIRE(FileView::open(path, &view));
    CHECK(!view.ascii());
    std::remove(path.c_str());
  }
}

TEST_CASE("bytes that are not UTF-8 are characters, wherever they stand") {
  constexpr size_t block = size_t{256} << 10;                     // what is looked at in one go
  for (const size_t size : {size_t{300001}, size_t{20} << 20}) {  // in memory, in a file
    for (const size_t at : {size_t{0}, block - 3, block - 2, block - 1, block, size - 1}) {
      CAPTURE(size);
      CAPTURE(at);
      // Characters of two bytes, so that one lies over the end of a block.
      std::string bytes;
      while (bytes.size() + 2 <= at) bytes += "\xc3\xa9";
      bytes += std::string(at - bytes.size(), 'x') + '\xb5';
      bytes += std::string(size - bytes.size(), '\r');
      const std::string path = temporary(bytes);
      FileView view;
      REQUIRE(FileView::open(path, &view));
      CHECK(view.holds_bytes());
      std::replace(bytes.begin(), bytes.end(), '\r', '\n');
      CHECK((tally::bytes_of_text(view.text()) == bytes));
      std::remove(path.c_str());
    }
  }
  for (const char* text : {"plain", "K\xc3\xb6ln \xf0\x9f\x98\x80 \xef\xbf\xbd"}) {
    const std::string path = temporary(text);
    FileView view;
    REQUIRE(FileView::open(path, &view));
    CHECK(!view.holds_bytes());
    CHECK(view.text() == text);
    std::remove(path.c_str());
  }
}

TEST_CASE("a large file does not fill the memory while it is read") {
  const std::string path = temporary(std::string(size_t{300} << 20, 'x'));
  [[maybe_unused]] const long before = mapped_kilobytes();
  FileView view;
  REQUIRE(FileView::open(path, &view));
  CHECK(mapped_kilobytes() - before < 40 << 10);
  long most = 0;
  size_t read = 0;
  for (int pass = 0; pass < 2; ++pass) {  // as two patterns do
    for (const char& c : view.text()) {
      read += c == 'x' ? 1 : 0;
      if (read % (1 << 20) != 0) continue;
      view.passed(&c);
      most = std::max(most, mapped_kilobytes() - before);
    }
  }
  CHECK(read == size_t{600} << 20);
  CHECK(most < 60 << 10);
  std::remove(path.c_str());
}

TEST_CASE("a file that becomes shorter while it is read is an error") {
  const std::string path = temporary(std::string(1 << 20, 'x'));
  FileView view;
  REQUIRE(FileView::open(path, &view));
  CHECK(view.unchanged(path));
  REQUIRE(truncate(path.c_str(), 2 << 20) == 0);
  CHECK(view.unchanged(path));  // a job writes on
  REQUIRE(truncate(path.c_str(), 100) == 0);
  CHECK(view.unchanged(path).message() ==
        "'" + path + "' became shorter while it was read; try again when nothing changes it");
  // Reading what is gone ends the process with the same sentence.
  const std::string said = path + ".said";
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    dup2(open(said.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), 2);
    tally::report_faults_of_mapped_files();
    volatile char last = view.text().back();
    _exit(last == 'x' ? 77 : 78);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  std::string line;
  std::getline(std::ifstream(said), line);
  CHECK(line == "tally: error: '" + path +
                    "' became shorter while it was read, or its disk failed; try again when "
                    "nothing changes it");
  std::remove(path.c_str());
  std::remove(said.c_str());
}
