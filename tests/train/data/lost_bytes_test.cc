// Datasets that change while they are read: an error, not the end of the process.
#include <doctest/doctest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "src/data/text/bus_errors.h"
#include "src/data/text/mapped_file.h"
#include "src/data/tokens/dataset.h"
#include "src/data/tokens/indexed_writer.h"
#include "tests/train/data/temp_dir.h"

using namespace tally::train;

namespace {

// Some pages of tokens: document i is a thousand times i.
constexpr int64_t documents = 40, length = 1000;

void write_dataset(const std::string& prefix) {
  IndexedDatasetWriter writer(prefix, DType::i32);
  for (int32_t i = 0; i < documents; ++i) {
    const std::vector<int32_t> tokens(length, i);
    writer.append(tokens.data(), length);
    writer.end_document();
  }
  writer.finish();
}

std::string error_of_document(const IndexedDataset& dataset, int64_t document) {
  std::vector<int32_t> out(length);
  const std::string error = error_of([&] { dataset.read(document, 0, length, out.data()); });
  if (error.empty()) CHECK(out.front() == static_cast<int32_t>(document));
  return error;
}

}  // namespace

TEST_CASE("a dataset that is cut short while it is read") {
  const TempDir dir;
  write_dataset(dir / "a");
  const IndexedDataset dataset(dir / "a");
  CHECK(error_of_document(dataset, documents - 1).empty());
  std::filesystem::resize_file(dir / "a.bin", 4096);
  CHECK(error_of_document(dataset, documents - 1) ==
        "'" + dir /
                  "a.bin' was cut short while it was read, from 160000 bytes to 4096: make it "
                  "again, and leave it alone while runs read it");
  // It stays lost.
  std::filesystem::resize_file(dir / "a.bin", 160000);
  CHECK(error_of_document(dataset, documents - 1).find("' has lost bytes while it was read") !=
        std::string::npos);
  // Another dataset is not touched by it.
  write_dataset(dir / "b");
  CHECK(error_of_document(IndexedDataset(dir / "b"), 0).empty());
}

TEST_CASE("a cut within the last page, which raises no signal, and an index that is cut") {
  const TempDir dir;
  write_dataset(dir / "a");
  {
    const IndexedDataset dataset(dir / "a");
    std::filesystem::resize_file(dir / "a.bin", 159999);
    CHECK(error_of_document(dataset, documents - 1).find("from 160000 bytes to 159999") !=
          std::string::npos);
  }
  write_dataset(dir / "b");
  const IndexedDataset dataset(dir / "b");
  std::filesystem::resize_file(dir / "b.idx", 0);
  CHECK(error_of_document(dataset, 3).find("b.idx' was cut short while it was read") !=
        std::string::npos);
}

TEST_CASE("an index that is overwritten points nowhere outside the data") {
  const TempDir dir;
  write_dataset(dir / "a");
  const IndexedDataset dataset(dir / "a");
  std::fstream idx(dir / "a.idx", std::ios::in | std::ios::out | std::ios::binary);
  idx.seekp(34 + documents * 4);
  for (int64_t i = 0; i < documents; ++i) {
    const int64_t far = int64_t{1} << 40;
    idx.write(reinterpret_cast<const char*>(&far), sizeof far);
  }
  idx.close();
  CHECK(error_of_document(dataset, 3).find("a.idx' was changed while it was read") !=
        std::string::npos);
}

namespace {

volatile char last_read = 0;

// The exit status of the child of a fork.
int status_of(void (*child)(const std::string&), const std::string& file) {
  const pid_t pid = fork();
  if (pid == 0) {
    child(file);
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Reads a mapping that is not watched, beyond the end of its file.
void read_unwatched(const std::string& file) {
  std::signal(SIGBUS, SIG_DFL);
  watch_bus_errors();
  const MappedFile mapped(file);
  std::filesystem::resize_file(file, 0);
  last_read = *mapped.data();
}

// The same where a library installed its own handler after ours.
void read_with_a_handler_of_a_library(const std::string& file) {
  watch_bus_errors();
  std::signal(SIGBUS, [](int) { _exit(7); });
  watch_bus_errors();
  MappedFile watched(file);
  watched.watch();
  const MappedFile mapped(file);
  std::filesystem::resize_file(file, 0);
  last_read = *watched.data();
  if (error_of([&] { watched.check(); }).empty()) _exit(8);
  last_read = *mapped.data();
}

// Nothing is read again after a signal that another process sent.
void gets_one_sent(const std::string& /*file*/) {
  std::signal(SIGBUS, SIG_DFL);
  watch_bus_errors();
  raise(SIGBUS);
}

}  // namespace

TEST_CASE("bus errors elsewhere end the process as before, or go to the handler before ours") {
  const TempDir dir;
  dir.write("one", std::string(5000, 'x'));
  CHECK(status_of(read_unwatched, dir / "one") == 128 + SIGBUS);
  dir.write("two", std::string(5000, 'x'));
  CHECK(status_of(read_with_a_handler_of_a_library, dir / "two") == 7);
  CHECK(status_of(gets_one_sent, dir / "two") == 128 + SIGBUS);
}
