// Runs of several ranks on this host, from outside.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "src/parallel/control/tcp.h"
#include "tests/train/train/tiny_run.h"

// Dropout is on: ranks must draw what one process would have drawn.
inline const std::string flags =
    "--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 97 "
    "--micro-batch-size 2 --global-batch-size 8 --mock-data --precision fp64 --log-interval 2 "
    "--lr 1e-3 --clip-grad 0.5 --device cpu ";

inline int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

// The environment that a process was started with.
inline std::string environment_of(int pid) {
  std::ifstream in(fmt::format("/proc/{}/environ", pid));
  std::stringstream environment;
  environment << in.rdbuf();
  return environment.str();
}

// The processes that the program started: their ranks are in their environment.
inline pid_t pid_of_rank(int supervisor, const std::string& rank) {
  const std::string task = fmt::format("/proc/{0}/task/{0}/children", supervisor);
  std::ifstream children(task);
  for (int pid = 0; children >> pid;) {
    if (contains(environment_of(pid), std::string("LOCAL_RANK=") + rank + '\0')) return pid;
  }
  return 0;
}

// A port that nobody listened on just now: below those that the kernel hands out to tests beside this
// one.
inline int free_port() {
  for (int port = 5000 + getpid() % 6000;; ++port) {
    try {
      tally::train::listen_on("127.0.0.1", port);
      return port;
    } catch (const std::exception&) {  // taken
    }
  }
}

// Rank 0 and rank 1 of one run with flags of their own, as a script starts them. `code_of_one`:
// where rank 1's exit code goes.
inline Ended two_ranks(const std::string& zero, const std::string& one, int* code_of_one) {
  const Folder folder("two_ranks");
  const std::string prefix = fmt::format(
      "export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={};"
      "(RANK=1 LOCAL_RANK=1 " TALLY_BINARY_DIR
      "/bin/tally-train {}; echo $? > {}) &"
      "export RANK=0 LOCAL_RANK=0;",
      free_port(), one, folder / "code");
  const Ended ended = tally_train(zero, prefix);
  *code_of_one = std::stoi(read_text(folder / "code"));
  return ended;
}
