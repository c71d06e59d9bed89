// Requests to stop, and outputs, records and checkpoints that cannot be written: the run ends in
// order, or goes on.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/train/train/tiny_run.h"

namespace {

const std::string endless = mock + "--train-iters 1000000 --log-interval 1 ";

// The run stopped in order: checkpoint and record hold the same steps.
void check_stopped(const Ended& ended, const Folder& folder, const std::string& why) {
  INFO(ended.err);
  CHECK(ended.code == 4);
  const json record = read_json(folder / "r.json");
  CHECK(record["outcome"] == "signalled");
  CHECK(record["exit_code"] == 4);
  CHECK_MESSAGE(contains(record["message"], why), record["message"]);
  CHECK(read_text(folder / "s/latest_checkpointed_iteration.txt") ==
        std::to_string(record["results"]["iterations"].get<int64_t>()) + "\n");
}

std::string files(const Folder& folder) {
  return "--save " + folder / "s" + " --record " + folder / "r.json";
}

// The two change places atomically.
void exchange(const std::string& a, const std::string& b) {
  REQUIRE(renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0);
}

// Sends a signal again and again, to this very process and no other with its number.
class Storm {
 public:
  Storm(int pid, int signal)
      : fd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))), thread_([this, signal] {
          while (!ends_ && syscall(SYS_pidfd_send_signal, fd_, signal, nullptr, 0) == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }) {
    REQUIRE(fd_ >= 0);
  }
  ~Storm() {
    ends_ = true;
    thread_.join();
    close(fd_);
  }
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

 private:
  const int fd_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace

TEST_CASE("a full standard output is a request to stop") {
  const Folder folder("full");
  const Ended ended = tally_train(endless + files(folder) + " > /dev/full");
  INFO(ended.err);
  CHECK(ended.code == 4);
  const json record = read_json(folder / "r.json");
  CHECK(record["outcome"] == "signalled");
  CHECK(record["message"] == "standard output cannot be written: No space left on device");
}

TEST_CASE("messages that standard error cannot take end nothing") {
  // --use-flash-attn prints a note at once.
  const std::string steps = mock + "--use-flash-attn --train-iters 5 --record ";
  for (const std::string ranks :
       {"", "--nproc-per-node 2 ", "--nproc-per-node 2 --prefix-output "}) {
    CAPTURE(ranks);
    const Folder folder("full_error");
    const Ended ended = tally_train(steps + folder / "r.json " + ranks + " 2> /dev/full");
    CHECK(ended.code == 0);
    CHECK(contains(ended.out, "completed: 5 steps"));
    const json record = read_json(folder / "r.json");
    CHECK(record["outcome"] == "completed");
    CHECK(contains(record["notices"][0], "--use-flash-attn"));
  }
  const Folder folder("pipe_error");
  const std::string reader = fmt::format("mkfifo {0}; : < {0} &", folder / "pipe");
  CHECK(tally_train(steps + folder / "r.json 2> " + folder / "pipe", reader).code == 0);
}

TEST_CASE("exit codes and files are the same whichever standard streams are closed or full") {
  const Folder folder("streams");
  std::ofstream(folder / "text.txt") << "a text that is long enough\xff\n";
  const std::vector<std::pair<std::string, int>> commands{
      {mock + "--use-flash-attn --train-iters 2 --record " + folder / "r.json", 0},
      {mock + "--train-iters 2 --nproc-per-node 2 --use-flash-attn", 0},
      {mock + "--no-such-flag", 2},
      {"prepare --tokenizer-type bytes --input " + folder / "text.txt --output " + folder / "d", 0},
      {"prepare --tokenizer-type bytes --input " + folder / "none --output " + folder / "e", 2},
      {"prepare --no-such-flag", 2},
      {"convert --input " + folder / "none --output " + folder / "f", 2},
      {"tokenize --no-such-flag", 2},
      {"--version", 0},
      {"--plan --model 124M", 0},
      {"no-such-command", 2}};
  std::string dataset;
  for (const std::string streams : {"", "<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-",
                                    "<&- >&- 2>&-", "2> /dev/full", ">&- 2> /dev/full"}) {
    for (const auto& [words, code] : commands) {
      CAPTURE(words);
      CAPTURE(streams);
      CHECK(tally_train(words + " " + streams).code == code);
    }
    if (dataset.empty()) dataset = read_text(folder / "d.bin") + read_text(folder / "d.idx");
    CHECK(dataset == read_text(folder / "d.bin") + read_text(folder / "d.idx"));
    CHECK(read_json(folder / "r.json")["outcome"] == "completed");
  }
}

// Rank 0 writes the record at every checkpoint, and when a rank is lost: never both at once.
TEST_CASE("the record of a run whose rank was killed is that of the failure") {
  for (int trial = 0; trial < 12; ++trial) {
    const Folder folder("killed_rank");
    bool killed = false;
    const auto kill_rank = [&](const std::string& out, int pid) {
      if (killed || !contains(out, fmt::format("saved checkpoint at iteration {} ", 3 + trial)))
        return;
      std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", pid));
      pid_t rank = 0, last = 0;
      while (children >> rank) last = rank;
      killed = last > 0 && kill(last, SIGKILL) == 0;
    };
    const Ended ended = tally_train(endless +
                                        "--global-batch-size 6 --nproc-per-node 3 "
                                        "--save-interval 1 " +
                                        files(folder),
                                    "", kill_rank);
    CHECK(killed);
    CHECK(ended.code == 1);
    CHECK_FALSE(contains(ended.err, "cannot be written"));
    CHECK(ended.err.find("tally-train: error: ") == ended.err.rfind("tally-train: error: "));
    const json record = read_json(folder / "r.json");
    CHECK(record["outcome"] == "error");
    CHECK(contains(record["message"], "rank 2"));
    CHECK(contains(record["message"], "was killed by signal 9"));
  }
}

TEST_CASE("the record of a run that a lost rank ended has what was measured until then") {
  for (const int signal : {SIGKILL, SIGSEGV, SIGABRT}) {
    for (const int64_t before : {0, 4}) {
      CAPTURE(signal);
      CAPTURE(before);
      const Folder folder("lost_rank");
      const std::string ranks = "--global-batch-size 6 --nproc-per-node 3 --log-interval 2 ";
      std::string from;
      if (before > 0) {
        from = "--load " + folder / "from ";
        REQUIRE(tally_train(mock + ranks + "--train-iters 4 --save " + folder / "from").code == 0);
      }
      bool killed = false;
      const auto kill_rank = [&](const std::string& out, int pid) {
        if (killed || !contains(out, fmt::format(" iteration {:8d}/", before + 8))) return;
        std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", pid));
        pid_t rank = 0, last = 0;
        while (children >> rank) last = rank;
        killed = last > 0 && kill(last, signal) == 0;
      };
      const Ended ended = tally_train(mock + "--train-iters 1000000 " + ranks + from +
                                          "--eval-interval 2 --eval-iters 1 --split 50,50,0 " +
                                          "--record " + folder / "r.json",
                                      "", kill_rank);
      CHECK(killed);
      const json record = read_json(folder / "r.json");
      CHECK(record["outcome"] == "error");
      CHECK(record["exit_code"] == ended.code);
      const json& results = record["results"];
      CHECK(results["first_iteration"] == before);
      // Every step of a line that was printed, and the lines themselves but for the one in whose
      // printing the run ended.
      const std::string& out = ended.out;
      const int64_t printed = std::stoll(out.substr(out.rfind("/ 1000000 |") - 8, 8));
      CHECK(printed >= before + 8);
      REQUIRE(results["iterations"] >= printed);
      CHECK(record["steps"]["loss"].size() == results["iterations"].get<size_t>() - before);
      CHECK(record["steps"]["iteration"][0] == before + 1);
      CHECK(record["intervals"].size() + 1 >= static_cast<size_t>(printed - before) / 2);
      CHECK(results["evaluations"].size() >= 3);
      CHECK(results["final_loss"].is_number());
      CHECK(results["tokens_per_second"].is_number());
    }
  }
}

TEST_CASE("a pipe that nobody reads any more is a request to stop") {
  const Folder folder("pipe");
  // What "tally-train ... | head -n 20" does, with this program's exit code.
  const std::string reader =
      fmt::format("mkfifo {0}; head -n 20 < {0} > /dev/null 2>&1 &", folder / "pipe");
  const Ended ended = tally_train(endless + files(folder) + " > " + folder / "pipe", reader);
  check_stopped(ended, folder, "standard output cannot be written: Broken pipe");
  CHECK(contains(ended.err, "tally-train: stopped: standard output cannot be written"));
}

TEST_CASE("ranks stop when the output of rank 0 cannot be written, with and without a prefix") {
  for (const std::string prefix : {"", "--prefix-output "}) {
    CAPTURE(prefix);
    const Folder folder("pipes");
    const std::string reader =
        fmt::format("mkfifo {0}; head -n 20 < {0} > /dev/null 2>&1 &", folder / "pipe");
    const Ended ended = tally_train(
        endless + "--nproc-per-node 2 " + prefix + files(folder) + " > " + folder / "pipe", reader);
    check_stopped(ended, folder, "standard output cannot be written: Broken pipe");
  }
}

TEST_CASE("a hang-up is a request to stop, unless it is ignored") {
  const Folder folder("hangup");
  bool sent = false;
  const Ended ended =
      tally_train(endless + files(folder), "", [&](const std::string& out, int pid) {
        if (sent || !contains(out, " iteration        1/")) return;
        sent = kill(pid, SIGHUP) == 0;
      });
  check_stopped(ended, folder, "SIGHUP was received");

  sent = false;
  const Ended deaf = tally_train(mock + "--train-iters 300 --log-interval 1", "trap '' HUP;",
                                 [&](const std::string& out, int pid) {
                                   if (sent || !contains(out, " iteration        1/")) return;
                                   sent = kill(pid, SIGHUP) == 0;
                                 });
  CHECK(deaf.code == 0);
}

TEST_CASE("further SIGTERMs do not cut an orderly end short") {
  for (const std::string ranks : {"", "--nproc-per-node 2 "}) {
    CAPTURE(ranks);
    const Folder folder("storm");
    std::unique_ptr<Storm> storm;
    const Ended ended =
        tally_train(endless + ranks + files(folder), "", [&](const std::string& out, int pid) {
          if (!storm && contains(out, " iteration        1/"))
            storm = std::make_unique<Storm>(pid, SIGTERM);
        });
    check_stopped(ended, folder, "SIGTERM was received");
  }
}

TEST_CASE("a second ctrl-C ends the program at once") {
  std::unique_ptr<Storm> storm;
  const Ended ended = tally_train(endless, "", [&](const std::string& out, int pid) {
    if (!storm && contains(out, " iteration        1/"))
      storm = std::make_unique<Storm>(pid, SIGINT);
  });
  CHECK(ended.code == 128 + SIGINT);
}

TEST_CASE("lines that are lost after the last step end in exit code 1") {
  const Folder folder("late");
  const std::string run = mock + "--train-iters 2 ";
  const size_t header = tally_train(run).out.find("completed:");
  REQUIRE(header != std::string::npos);
  // A file that may grow by the header and little more.
  std::ofstream(folder / "out").close();
  constexpr size_t limit = 40960;
  fs::resize_file(folder / "out", limit * 512 - header - 10);
  const Ended ended = tally_train(run + files(folder) + " >> " + folder / "out",
                                  fmt::format("ulimit -f {};", limit));
  INFO(ended.err);
  CHECK(ended.code == 1);
  const std::string why =
      "all steps are done, but standard output cannot be written: File too large";
  CHECK(contains(ended.err, "tally-train: error: " + why));
  const json record = read_json(folder / "r.json");
  CHECK(record["exit_code"] == 1);
  CHECK(record["message"] == why);
  CHECK(record["results"]["iterations"] == 2);
}

TEST_CASE("help and reference that cannot be written are an error") {
  for (const std::string words : {"--help", "reference", "--version"}) {
    CAPTURE(words);
    const Ended ended = tally_train(words + " > /dev/full");
    CHECK(ended.code == 1);
    CHECK(ended.err ==
          "tally-train: error: standard output cannot be written: No space left on device\n");
  }
}

TEST_CASE("an evaluation whose result cannot be written is an error") {
  const Folder folder("evaluation");
  std::ofstream(folder / "text.txt") << "a text that is long enough";
  REQUIRE(tally_train(mock + "--train-iters 1 --save " + folder / "s").code == 0);
  const Ended ended =
      tally_train("evaluate --device cpu --tokenizer-type bytes --load " + folder / "s --text " +
                  folder / "text.txt --record " + folder / "r.json > /dev/full");
  CHECK(ended.code == 1);
  CHECK(contains(ended.err, "standard output cannot be written: No space left on device"));
  const json record = read_json(folder / "r.json");
  CHECK(record["outcome"] == "error");
  CHECK(record["results"]["scored_tokens"] == 25);
}

// Works that have no steps: they end at their next micro batch.
TEST_CASE("a signal ends an evaluation in order, and its record says so") {
  const Folder folder("signalled");
  {
    std::ofstream text(folder / "text.txt");
    for (int line = 0; line < 500000; ++line) text << "a text that takes minutes to read\n";
  }
  const std::string encoder =
      "--num-layers 1 --hidden-size 16 --num-attention-heads 2 --vocab-size 60 --seq-length 16 "
      "--micro-batch-size 2 --device cpu --task classify --num-classes 2 --mock-data ";
  REQUIRE(tally_train(mock + "--train-iters 1 --save " + folder / "s").code == 0);
  REQUIRE(tally_train("--model bert-base --global-batch-size 2 --train-iters 1 --lr 1e-3 " +
                      encoder + "--save " + folder / "e")
              .code == 0);
  const std::vector<std::string> works{
      "evaluate --device cpu --tokenizer-type bytes --load " + folder / "s --text " +
          folder / "text.txt ",
      "evaluate --device cpu --mock-data --mock-samples 1000000 --micro-batch-size 2 --load " +
          folder / "e ",
      mock + "--skip-train --eval-iters 100000000 --split 50,50,0 --load " + folder / "s "};
  // Sends the signal once the record says "running": to the program, or to the rank started last.
  const auto sent = [&](const std::string& signal, bool to_rank) {
    const std::string children = "$(cat /proc/$$/task/$$/children)";
    return fmt::format(
        "(until [ -s {} ] || ! kill -0 $$; do sleep 0.01; done; {} kill -{} $to) > /dev/null 2>&1 "
        "&",
        folder / "r.json", to_rank ? "for to in " + children + "; do :; done;" : "to=$$;", signal);
  };
  for (const std::string& work : works) {
    for (const auto& [signal, ranks, to_rank] :
         {std::tuple{"TERM", "", false}, std::tuple{"INT", "", false}, std::tuple{"HUP", "", false},
          std::tuple{"USR1", "--nproc-per-node 2 ", false},
          std::tuple{"TERM", "--nproc-per-node 2 ", true}}) {
      CAPTURE(work);
      CAPTURE(signal);
      CAPTURE(ranks);
      fs::remove(folder / "r.json");
      const Ended ended =
          tally_train(work + ranks + "--record " + folder / "r.json", sent(signal, to_rank));
      INFO(ended.err);
      const std::string why = fmt::format("SIG{} was received", signal);
      CHECK(ended.code == 4);
      CHECK(contains(ended.err, "tally-train: stopped: "));
      CHECK(contains(ended.err, why));
      CHECK_FALSE(contains(ended.err, "error"));
      const json record = read_json(folder / "r.json");
      CHECK(record["outcome"] == "signalled");
      CHECK(record["ended"].is_string());
      CHECK_MESSAGE(contains(record["message"], why), record["message"]);
      if (to_rank) CHECK(contains(record["message"], "rank 1"));
    }
  }
}

TEST_CASE("a closed standard output takes no line into the files that the run writes") {
  const Folder folder("closed");
  const Ended ended = tally_train(mock + "--train-iters 2 " + files(folder) + " >&- 2>&- <&-");
  CHECK(ended.code == 0);
  CHECK(read_json(folder / "r.json")["outcome"] == "completed");
  CHECK(tally_train(mock + "--train-iters 3 --load " + folder / "s").code == 0);
}

// A folder that becomes a file, where even root cannot write, and is mended later.
TEST_CASE("a record or a checkpoint that cannot be written while training is a warning") {
  for (const std::string lost : {"s", "records"}) {
    for (const bool mended : {false, true}) {
      CAPTURE(lost);
      CAPTURE(mended);
      const Folder folder("lost");
      bool broken = false, sent = false;
      size_t repaired = 0;  // how much had been printed by then
      const std::string noticed = lost == "s" ? "tally-train: warning: the checkpoint of iteration "
                                              : "r.json: the record cannot be written: ";
      const auto act = [&](const std::string& out, int pid) {
        if (!broken && contains(out, "saved checkpoint at iteration 5 ")) {
          std::ofstream(folder / "other").put('x');
          exchange(folder / lost, folder / "other");
          broken = true;
        }
        if (sent || !contains(out, noticed)) return;
        if (mended && repaired == 0) {
          exchange(folder / lost, folder / "other");
          repaired = out.size();
        }
        if (mended && out.find("saved checkpoint", repaired) == std::string::npos) return;
        sent = kill(pid, SIGTERM) == 0;
      };
      const Ended ended = tally_train(endless + "--save-interval 5 --save " +
                                          folder / "s --record " + folder / "records/r.json 2>&1",
                                      "", act);
      INFO(ended.out);
      CHECK(broken);
      CHECK(ended.code == (mended ? 4 : 1));
      CHECK(contains(ended.out, noticed));
      if (lost == "s" || mended) {
        const json record = read_json(folder / "records/r.json");
        CHECK(record["exit_code"] == ended.code);
        CHECK(!record["notices"].empty());
      }
    }
  }
}
