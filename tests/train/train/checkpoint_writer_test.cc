// Checkpoints that are written while training continues.
#include "src/train/run/checkpoint_writer.h"

#include <doctest/doctest.h>

#include <condition_variable>
#include <mutex>

#include "tests/train/checkpoint/layouts.h"
#include "tests/train/data/temp_dir.h"

using namespace layouts;

namespace {

constexpr uint64_t first = 7, second = 8;

// A meeting that rank 0 enters when it is let in.
struct Gate {
  explicit Gate(int size) : meeting(size) {}
  std::vector<std::string> exchange(int rank, const std::string& mine) {
    std::unique_lock<std::mutex> lock(mutex);
    opened.wait(lock, [&] { return open || rank != 0; });
    lock.unlock();
    return meeting.exchange(rank, mine);
  }
  void let_in() {
    const std::lock_guard<std::mutex> lock(mutex);
    open = true;
    opened.notify_all();
  }
  Meeting meeting;
  std::mutex mutex;
  std::condition_variable opened;
  bool open = false;
};

// Ranks that write checkpoints to `root`.
struct Writers {
  Writers(
      const Layout& layout, const std::string& root, DType compute,
      const std::function<size_t()>& available = [] { return size_t{1} << 30; })
      : ranks(layout, compute, first), gate(layout.shape().size()) {
    for (size_t r = 0; r < ranks.parts.size(); ++r) {
      SaveGroup group = ranks.parts[r]->group();
      group.exchange = [this, r](const std::string& mine) {
        return gate.exchange(static_cast<int>(r), mine);
      };
      writers.push_back(std::make_unique<CheckpointWriter>(
          root, ranks.parts[r]->config, side, group, 1,
          [this](const std::string& note) {
            const std::lock_guard<std::mutex> lock(notes_mutex);
            notes.push_back(note);
          },
          available));
    }
  }
  void start(size_t r, int64_t iteration) {
    Part& part = *ranks.parts[r];
    writers[r]->start(state_of(iteration), part.state(), *part.stream);
  }
  void change(uint64_t training) {
    for (auto& part : ranks.parts) part->set(part->expected(training));
  }

  Ranks ranks;
  Gate gate;
  SideFiles side;
  std::mutex notes_mutex;
  std::vector<std::string> notes;
  std::vector<std::unique_ptr<CheckpointWriter>> writers;
};

bool holds(const std::string& root, uint64_t training, DType compute) {
  Part part({1, 1, 1, Zero::none, 11}, 0, compute);
  return load_checkpoint(root, part.config, part.state(), *part.stream).has_value() &&
         part.actual() == part.expected(training, 14);
}

}  // namespace

TEST_CASE("a checkpoint has the state of its start, whatever training does meanwhile") {
  const TempDir dir;
  for (const DType compute : {DType::bf16, DType::f32}) {
    for (const Layout& layout : {Layout{2, 2, 2, Zero::none, 14}, Layout{1, 1, 2, Zero::ranges, 14},
                                 Layout{2, 1, 2, Zero::buckets, 14}}) {
      CAPTURE(name_of(layout));
      Writers w(layout, dir / "c", compute);
      const size_t size = w.writers.size();
      for (size_t r = 0; r < size; ++r) w.start(r, 1);
      w.change(second);
      // Nothing is written before rank 0 takes part.
      for (auto& writer : w.writers) CHECK_FALSE(writer->finished().has_value());
      w.gate.let_in();
      for (auto& writer : w.writers) {
        const auto result = writer->wait();
        REQUIRE(result.has_value());
        CHECK(result->error == "");
        CHECK(result->iteration == 1);
        CHECK(result->folder == dir / "c/iter_0000001");
        CHECK_FALSE(writer->wait().has_value());
        CHECK_FALSE(writer->finished().has_value());
      }
      CHECK(holds(dir / "c", first, compute));
      // The next one, in the same memory.
      for (size_t r = 0; r < size; ++r) w.start(r, 2);
      for (auto& writer : w.writers) CHECK(writer->wait()->error == "");
      CHECK(holds(dir / "c", second, compute));
      CHECK(w.notes.empty());
      std::filesystem::remove_all(dir / "c");
    }
  }
}

TEST_CASE("where the copy does not fit, the files are written at once, and a note says so") {
  const TempDir dir;
  Writers w({1, 1, 1, Zero::none, 14}, dir / "c", DType::bf16, [] { return size_t{1000}; });
  for (const int64_t iteration : {1, 2}) {
    w.start(0, iteration);
    w.change(second);
    const auto result = w.writers[0]->finished();
    REQUIRE(result.has_value());
    CHECK(result->error == "");
    w.change(first);
  }
  CHECK(holds(dir / "c", first, DType::bf16));
  REQUIRE(w.notes.size() == 1);
  CHECK(w.notes[0] ==
        "checkpoints are written while training waits: a copy of the state needs 0.0 GB of host "
        "memory, and 0.0 GB are available");
}

TEST_CASE("some ranks copy and others wait: one checkpoint") {
  const TempDir dir;
  std::atomic<int> asked{0};
  Writers w({1, 1, 2, Zero::ranges, 14}, dir / "c", DType::f32,
            [&] { return asked++ == 0 ? size_t{1} << 30 : size_t{1000}; });
  w.start(0, 1);  // copies, and waits at the gate
  std::thread waiting([&] { w.start(1, 1); });
  w.gate.let_in();
  waiting.join();
  for (auto& writer : w.writers) CHECK(writer->wait()->error == "");
  CHECK(holds(dir / "c", first, DType::f32));
}

TEST_CASE("a failure is the same on all ranks, and the next save succeeds") {
  const TempDir dir;
  Writers w({2, 1, 1, Zero::none, 14}, dir / "c", DType::bf16);
  w.gate.let_in();
  dir.write("c", "a file");
  for (size_t r = 0; r < 2; ++r) w.start(r, 1);
  for (auto& writer : w.writers) {
    const auto result = writer->wait();
    REQUIRE(result.has_value());
    CHECK(result->error.find("rank 0: the checkpoint under '" + dir / "c' cannot be written") == 0);
  }
  std::filesystem::remove(dir / "c");
  for (size_t r = 0; r < 2; ++r) w.start(r, 2);
  for (auto& writer : w.writers) CHECK(writer->wait()->error == "");
  CHECK(holds(dir / "c", first, DType::bf16));
}

TEST_CASE("a writer that ends finishes its checkpoint") {
  const TempDir dir;
  {
    Writers w({1, 1, 1, Zero::none, 14}, dir / "c", DType::f32);
    w.start(0, 1);
  }
  CHECK(holds(dir / "c", first, DType::f32));
}
