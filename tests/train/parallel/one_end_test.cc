// One fault on one rank of eight: one message of the first cause, all ranks gone within ten
// seconds, and the checkpoint from before is whole.
#include <doctest/doctest.h>

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>
#include <regex>
#include <thread>
#include <vector>

#include "tests/train/parallel/ranks.h"

namespace {

using Clock = std::chrono::steady_clock;

// Two shards x two stages x two replicas.
const std::string eight =
    "--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 32 --vocab-size 96 "
    "--micro-batch-size 1 --global-batch-size 4 --mock-data --log-interval 1 --lr 1e-3 "
    "--device cpu --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 "
    "--nproc-per-node 8 ";

struct Fault {
  std::string rank = "3";
  std::function<void(pid_t rank)> act;  // empty: the preloaded library acts when the file appears
  std::string library;                  // "hang", "nan"; empty: none
  std::string flags;
  std::string prefix;
};

struct EndOfEight {
  Ended ended;
  std::vector<pid_t> ranks;
  double seconds = 0;  // from the fault to the end of the last process
};

// Ends the run that does not end by itself, so that the test fails and does not hang.
class Bound {
 public:
  void start(pid_t supervisor) {
    thread_ = std::thread([this, supervisor] {
      std::unique_lock<std::mutex> lock(mutex_);
      if (!changed_.wait_for(lock, std::chrono::seconds(40), [this] { return over_; }))
        kill(supervisor, SIGKILL);  // its ranks end with it
    });
  }
  ~Bound() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  Bound() = default;
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

// Begins the fault when the first checkpoint is on disk.
EndOfEight run_with(const Fault& fault, const Folder& folder) {
  EndOfEight end;
  const std::string file = folder / "now";
  std::string prefix = fault.prefix;
  if (!fault.library.empty())
    prefix += fmt::format("export LD_PRELOAD=" TALLY_FAULT_LIBRARY
                          " FAULT={} FAULT_RANK={} FAULT_FILE={};",
                          fault.library, fault.rank, file);
  std::optional<Clock::time_point> begun;
  Bound bound;
  // The program's output ends when the last process that has it ends.
  end.ended = tally_train(eight + "--train-iters 100000000 --save-interval 4 --save " +
                              folder / "s" + " " + fault.flags,
                          prefix, [&](const std::string& out, int supervisor) {
                            if (begun || !contains(out, "saved checkpoint at iteration")) return;
                            for (int r = 0; r < 8; ++r)
                              end.ranks.push_back(pid_of_rank(supervisor, std::to_string(r)));
                            begun = Clock::now();
                            bound.start(supervisor);
                            std::ofstream(file) << "now";
                            if (fault.act)
                              fault.act(end.ranks[static_cast<size_t>(std::stoi(fault.rank))]);
                          });
  REQUIRE(begun);
  end.seconds = std::chrono::duration<double>(Clock::now() - *begun).count();
  return end;
}

void check_end(const EndOfEight& end, int code, const std::string& message) {
  INFO(end.ended.err);
  CHECK(end.ended.code == code);
  CHECK(count(end.ended.err, "tally-train:") == 1);
  CHECK(contains(end.ended.err, "tally-train: error: " + message));
  // Against hanging for ever; what it takes is 7 s, or more where this machine is busy.
  CHECK(end.seconds < 35);
  REQUIRE(end.ranks.size() == 8);
  for (const pid_t pid : end.ranks) {
    REQUIRE(pid > 0);
    CHECK(!fs::exists(fmt::format("/proc/{}", pid)));
  }
}

// The newest checkpoint can be resumed, by as many ranks.
void check_checkpoint(const Folder& folder) {
  const int saved = std::stoi(read_text(folder.path / "s" / "latest_checkpointed_iteration.txt"));
  CHECK(saved >= 4);
  const Ended resumed =
      tally_train(eight + fmt::format("--train-iters {} --load ", saved + 2) + folder / "s");
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(contains(resumed.out, fmt::format("resumed    after {} steps", saved)));
}

}  // namespace

TEST_CASE("one of eight ranks is killed") {
  for (const std::string rank : {"3", "0"}) {
    CAPTURE(rank);
    const Folder folder("killed");
    Fault fault;
    fault.rank = rank;
    fault.act = [](pid_t pid) { kill(pid, SIGKILL); };
    const EndOfEight end = run_with(fault, folder);
    check_end(end, 1, fmt::format("rank {} on ", rank));
    CHECK(contains(end.ended.err, "was killed by signal 9 (Killed)"));
    check_checkpoint(folder);
  }
}

TEST_CASE("one of eight ranks is stopped") {
  for (const std::string rank : {"3", "0"}) {
    CAPTURE(rank);
    const Folder folder("stopped");
    Fault fault;
    fault.rank = rank;
    fault.act = [](pid_t pid) { kill(pid, SIGSTOP); };
    const EndOfEight end = run_with(fault, folder);
    check_end(end, 1, fmt::format("rank {} on ", rank));
    // 6 s, or more where this machine is busy.
    const std::regex silent("it has sent no sign of life for [0-9]+ s: it was stopped \\(SIGSTOP");
    CHECK_MESSAGE(std::regex_search(end.ended.err, silent), end.ended.err);
    check_checkpoint(folder);
  }
}

TEST_CASE("one of eight ranks gets no memory any more") {
  const Folder folder("memory");
  Fault fault;
  fault.act = [](pid_t pid) {
    const rlimit none{1, 1};
    CHECK(prlimit(pid, RLIMIT_AS, &none, nullptr) == 0);
  };
  // Tensors are not made of memory that was freed before.
  fault.prefix = "export GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4096;";
  check_end(run_with(fault, folder), 3, "rank 3 on ");
  check_checkpoint(folder);
}

TEST_CASE("one of eight ranks sends something that is no number") {
  const Folder folder("nan");
  Fault fault;
  fault.library = "nan";
  const EndOfEight end = run_with(fault, folder);
  check_end(end, 5, "rank ");
  CHECK(contains(end.ended.err, " is not finite (loss "));
  check_checkpoint(folder);
}

TEST_CASE("one of eight ranks does not come to an operation") {
  const Folder folder("hangs");
  Fault fault;
  fault.library = "hang";
  fault.flags = "--distributed-timeout-minutes 0.2";
  const EndOfEight end = run_with(fault, folder);
  check_end(end, 1, "rank ");
  // Some rank waits for rank 3 directly, and the sentence names both, the group and the operation.
  CHECK(contains(end.ended.err, ": it has waited for "));
  CHECK(contains(end.ended.err, " group (ranks "));
  CHECK(contains(end.ended.err, "; rank 3 did not come: it is in iteration "));
  CHECK(contains(end.ended.err,
                 " and waits for no other rank; --distributed-timeout-minutes sets the limit"));
  check_checkpoint(folder);
}
