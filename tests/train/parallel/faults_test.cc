// Several ranks of which one is given something else, hangs, or is lost.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "tests/train/parallel/ranks.h"

TEST_CASE("ranks with different flags do not train; one sentence names flag, values and ranks") {
  const std::string run = flags + "--train-iters 6 ";
  const auto refused = [&](const std::string& other, const std::string& message) {
    CAPTURE(other);
    int code_of_one = 0;
    const Ended ended = two_ranks(run, run + other, &code_of_one);
    INFO(ended.err);
    CHECK(ended.code == 2);
    CHECK(code_of_one == 2);
    CHECK(count(ended.err, "tally-train: error:") == 1);
    CHECK(contains(ended.err, message));
    CHECK(contains(ended.err, ": give every rank the same flags"));
    CHECK(!contains(ended.out, "consumed samples"));
  };
  refused("--lr 2e-3", ": --lr is 0.002 on rank 1 (");
  refused("--lr 2e-3", ") and 0.001 on rank 0 (");
  refused("--train-iters 8",
          ": the number of steps (--train-iters, --train-samples or --epochs) "
          "is 8 on rank 1 (");
  refused("--seed 7", ": --seed is 7 on rank 1 (");
  refused("--ddp-bucket-size 10", ": --ddp-bucket-size is 10 on rank 1 (");
}

TEST_CASE("one GPU for two ranks is refused, with what to give instead") {
  const Ended ended = tally_train(flags + "--train-iters 2 --nproc-per-node 2 --device cuda:0");
  CHECK(ended.code == 2);
  CHECK(contains(ended.err,
                 "--device cuda:0: 2 processes of this host cannot share one GPU: "
                 "--device cuda gives each its own"));
}

TEST_CASE("ranks that read different datasets do not train") {
  const Folder folder("datasets");
  const auto prepare = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / (name + ".txt")) << text;
    REQUIRE(tally_train("prepare --tokenizer-type bytes --input " + folder / (name + ".txt") +
                        " --output " + folder / name)
                .code == 0);
  };
  const std::string text(1000, 'x');
  prepare("one", text);
  prepare("same", text);
  prepare("short", text.substr(10));
  prepare("other", std::string(1000, 'y'));
  const std::string run = tiny + "--train-iters 2 --split 1 --data-path ";
  int code_of_one = -1;
  CHECK(two_ranks(run + folder / "one", run + folder / "same", &code_of_one).code == 0);
  CHECK(code_of_one == 0);
  for (const std::string name : {"short", "other"}) {
    CAPTURE(name);
    const Ended ended = two_ranks(run + folder / "one", run + folder / name, &code_of_one);
    INFO(ended.err);
    CHECK(ended.code == 2);
    CHECK(code_of_one == 2);
    CHECK(count(ended.err, "tally-train: error:") == 1);
    CHECK(contains(ended.err, ": the dataset is 1 documents, "));
    CHECK(contains(ended.err, "let --data-path name the same dataset on every host"));
  }
}

TEST_CASE("ranks that start from different weights or steps do not train") {
  const Folder folder("weights");
  const auto train = [&](const std::string& name, const std::string& seed) {
    REQUIRE(tally_train(mock + "--train-iters 1 --seed " + seed + " --save-hf " +
                        folder / (name + ".hf") + " --save " + folder / name)
                .code == 0);
  };
  train("one", "1");
  train("two", "2");
  const std::string run =
      "--mock-data --device cpu --seq-length 32 --global-batch-size 4 --train-iters 2 ";
  int code_of_one = 0;
  Ended ended = two_ranks(run + "--load-hf " + folder / "one.hf",
                          run + "--load-hf " + folder / "two.hf", &code_of_one);
  INFO(ended.err);
  CHECK(ended.code == 5);
  CHECK(count(ended.err, "tally-train: error:") == 1);
  CHECK(contains(ended.err,
                 "at the start: the weights of rank 1 differ from those of the first replica"));
  CHECK(!contains(ended.out, "consumed samples"));

  fs::create_directories(folder / "empty");
  ended = two_ranks(mock + "--train-iters 2 --load " + folder / "one",
                    mock + "--train-iters 2 --load " + folder / "empty", &code_of_one);
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK(count(ended.err, "tally-train: error:") == 1);
  CHECK(contains(ended.err, "the number of steps done before (--load) is 0 on rank 1"));
}

namespace {

using Clock = std::chrono::steady_clock;
const std::string endless = flags + "--train-iters 100000000 --nproc-per-node 2 ";

// Runs two ranks, and `act` once after the first steps, with the supervisor's process.
Ended run_and(const std::string& arguments, const std::function<void(int)>& act,
              const std::string& prefix = "") {
  bool acted = false;
  return tally_train(endless + arguments, prefix, [&](const std::string& out, int pid) {
    if (acted || !contains(out, "iteration")) return;
    acted = true;
    act(pid);
  });
}

void signal_rank(int supervisor, const std::string& rank, int signal) {
  const pid_t pid = pid_of_rank(supervisor, rank);
  REQUIRE(pid > 0);
  REQUIRE(kill(pid, signal) == 0);
}

}  // namespace

TEST_CASE("a rank that is stopped ends the run, with its number, within the limit") {
  const Folder folder("silent");
  for (const std::string rank : {"1", "0"}) {
    CAPTURE(rank);
    Clock::time_point stopped;
    const Ended ended =
        run_and("--distributed-timeout-minutes 0.05 --record " + folder / "r.json", [&](int pid) {
          signal_rank(pid, rank, SIGSTOP);
          stopped = Clock::now();
        });
    INFO(ended.err);
    CHECK(ended.code == 1);
    CHECK(contains(ended.err, fmt::format("tally-train: error: rank {} on ", rank)));
    CHECK(contains(ended.err, "it has sent no sign of life for 3 s: it was stopped (SIGSTOP"));
    // The stopped process is killed, and nothing is said about it.
    CHECK(count(ended.err, "tally-train: error:") == 1);
    // A limit against hanging for ever, far from what it takes.
    CHECK(Clock::now() - stopped < std::chrono::seconds(60));
    if (rank != "1") continue;
    const json record = read_json(folder / "r.json");
    CHECK(record["outcome"] == "error");
    CHECK(contains(record["message"], "rank 1 on "));
  }
}

TEST_CASE("a run whose ranks were all suspended for longer than the limit continues") {
  constexpr auto limit = std::chrono::seconds(3);
  std::optional<Clock::time_point> resumed;
  bool ended_it = false;
  const Ended ended = tally_train(
      endless + "--distributed-timeout-minutes 0.05", "", [&](const std::string& out, int pid) {
        if (!resumed && contains(out, "iteration")) {
          for (const char* rank : {"0", "1"}) signal_rank(pid, rank, SIGSTOP);
          std::this_thread::sleep_for(2 * limit);
          for (const char* rank : {"0", "1"}) signal_rank(pid, rank, SIGCONT);
          resumed = Clock::now();
        } else if (resumed && !ended_it && Clock::now() - *resumed > limit + limit / 2) {
          ended_it = kill(pid, SIGTERM) == 0;
        }
      });
  INFO(ended.err);
  CHECK(ended_it);
  CHECK(ended.code == 4);
}

TEST_CASE("a suspended rank that is asked to stop does so, with a checkpoint") {
  const Folder folder("resumed");
  const Ended ended = run_and("--save " + folder / "s", [](int pid) {
    signal_rank(pid, "1", SIGSTOP);
    kill(pid, SIGTERM);
  });
  INFO(ended.err);
  CHECK(ended.code == 4);
  CHECK(contains(ended.out, "saved checkpoint at iteration"));
}

TEST_CASE("ranks that do not end when they are asked to stop are named and killed") {
  const Folder folder("deaf");
  // Rank 0 hangs in the record: the pipe is full, and who has it open does not read.
  const std::string pipe = folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int held = open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(held >= 0);
  const std::string filling(4096, ' ');
  while (write(held, filling.data(), filling.size()) > 0) {
  }
  const Ended ended = run_and("--distributed-timeout-minutes 0.05 --record " + pipe,
                              [](int pid) { kill(pid, SIGTERM); });
  close(held);
  INFO(ended.err);
  CHECK(ended.code == 1);
  CHECK(contains(ended.err,
                 "tally-train: error: ranks 0, 1 did not end within 3 s of the request to stop "
                 "(signal 15, Terminated) and were killed"));
}

TEST_CASE("rank 0 that cannot look up its own address says so at once") {
  const auto start = Clock::now();
  const Ended ended = tally_train(flags + "--train-iters 2",
                                  "export WORLD_SIZE=2 RANK=0 LOCAL_RANK=0 "
                                  "MASTER_ADDR=no..such.host MASTER_PORT=29511;");
  CHECK(ended.code == 1);
  CHECK(count(ended.err, "tally-train: error:") == 1);
  CHECK(contains(ended.err, "the host name 'no..such.host' of rank 0 is unknown here ("));
  CHECK(contains(ended.err, "correct MASTER_ADDR or --master-addr"));
  CHECK(Clock::now() - start < std::chrono::seconds(45));
  for (const std::string address : {"224.0.0.1", "255.255.255.255", "127.255.255.255"}) {
    const Ended of_many =
        tally_train(flags + "--train-iters 2",
                    "export TALLY_RENDEZVOUS_TOKEN=0123456789abcdef0123456789abcdef WORLD_SIZE=2 "
                    "RANK=0 LOCAL_RANK=0 MASTER_ADDR=" +
                        address + " MASTER_PORT=29511;");
    CHECK(count(of_many.err, "tally-train: error:") == 1);
    CHECK(contains(of_many.err, "is not an address of this host, on which rank 0 runs"));
  }
  for (const std::string address : {"::1", "[::1]", "fd00::2"}) {
    const Ended of_six = tally_train(
        flags + "--train-iters 2",
        "export WORLD_SIZE=2 RANK=0 LOCAL_RANK=0 MASTER_ADDR=" + address + " MASTER_PORT=29511;");
    CHECK(count(of_six.err, "tally-train: error:") == 1);
    CHECK(contains(of_six.err, "'" + address + "' of rank 0 has no IPv4 address ("));
  }
}
