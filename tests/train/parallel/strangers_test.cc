// The ports of a run from outside: where they are, who comes in, and what it takes.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <set>

#include "src/parallel/control/rendezvous_wire.h"
#include "tests/train/parallel/ranks.h"

using namespace tally::train;

namespace {

const std::string run = flags + "--train-iters 2 ";
const std::string token(64, '7');

struct Place {
  std::string address = "127.0.0.1";
  int port = free_port();
  std::string with = "TALLY_RENDEZVOUS_TOKEN=" + token;
};

// A rank that a person starts by hand.
std::future<Ended> start(const Place& place, int rank, int size, const std::string& more = "") {
  const std::string environment = fmt::format(
      "export RANK={0} LOCAL_RANK={0} WORLD_SIZE={1} LOCAL_WORLD_SIZE={1} MASTER_ADDR={2} "
      "MASTER_PORT={3} {4};",
      rank, size, place.address, place.port, place.with);
  return std::async(std::launch::async, [=] { return tally_train(run + more, environment); });
}

// The addresses on which somebody of this host listens at `port`, in the kernel's form.
std::set<std::string> listeners(int port) {
  std::set<std::string> found;
  std::ifstream table("/proc/net/tcp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream in(line);
    std::string number, local, remote, state;
    in >> number >> local >> remote >> state;
    if (state == "0A" && local.substr(local.find(':') + 1) == fmt::format("{:04X}", port))
      found.insert(local.substr(0, local.find(':')));
  }
  return found;
}

std::string in_kernels_form(const std::string& address) {
  std::array<int, 4> part{};
  char dot = 0;
  std::istringstream in(address);
  in >> part[0] >> dot >> part[1] >> dot >> part[2] >> dot >> part[3];
  return fmt::format("{:02X}{:02X}{:02X}{:02X}", part[3], part[2], part[1], part[0]);
}

void send_bytes(const Socket& to, const std::string& bytes) {
  [[maybe_unused]] const ssize_t n = send(to.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// Everything that comes until the other side hangs up.
std::string all_bytes(const Socket& from) {
  std::string bytes;
  for (char byte = 0; receive_all(from, &byte, 1, in_seconds(60));) bytes += byte;
  return bytes;
}

}  // namespace

TEST_CASE("rank 0 listens at the address that was named, and at no other") {
  std::vector<std::string> addresses{"127.0.0.1", "localhost", "127.0.0.5"};
  for (const std::string& outer : outer_addresses()) addresses.push_back(outer);
  for (const std::string& address : addresses) {
    CAPTURE(address);
    Place place;
    place.address = address;
    auto zero = start(place, 0, 2);
    { const Socket waits_there = connect_until(address, place.port, in_seconds(60)); }
    const std::string number = address == "localhost" ? "127.0.0.1" : address;
    CHECK(listeners(place.port) == std::set<std::string>{in_kernels_form(number)});
    const Ended one = start(place, 1, 2).get(), ended = zero.get();
    INFO(ended.err);
    CHECK(ended.code == 0);
    CHECK(one.code == 0);
    CHECK(listeners(place.port).empty());
  }
}

TEST_CASE("silent connections do not delay the start, and one sentence counts them") {
  const Place place;
  auto zero = start(place, 0, 2);
  std::vector<Socket> silent;
  for (int i = 0; i < 20; ++i)
    silent.push_back(connect_until(place.address, place.port, in_seconds(60)));
  auto one = start(place, 1, 2);
  // Somebody who waits for each of them for ten seconds would take 200.
  const bool soon = one.wait_for(std::chrono::seconds(90)) == std::future_status::ready;
  CHECK(soon);
  silent.resize(soon ? 20 : 0);
  const Ended ended = zero.get();
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(one.get().code == 0);
  CHECK(count(ended.err,
              "tally-train: note: at the start 20 connections were refused: they did not prove "
              "that they belong to this run") == 1);
  for (const Socket& s : silent) CHECK(all_bytes(s).empty());
}

TEST_CASE("impostors of each rank and garbage are not let in") {
  const Place place;
  auto zero = start(place, 0, 4);
  std::vector<Socket> strangers;
  for (const int rank : {1, 2, 3}) {
    std::string old;  // as a version without tokens begins
    put(&old, std::string("tallyrv3"));
    put(&old, std::string());
    put(&old, rank);
    put(&old, 4);
    for (const char* word : {"evil", "x"}) put(&old, std::string(word));
    std::string hello;
    put(&hello, own_protocol());
    put(&hello, std::string(32, 'n'));
    std::string proof;
    put(&proof, encode(Hello{rank, 4, "evil", "x"}));
    put(&proof, std::string(32, 'x'));
    for (const std::string& bytes :
         {whole_message(Message::hello, old),
          whole_message(Message::hello, hello) + whole_message(Message::proof, proof),
          std::string("GET / HTTP/1.0\r\n\r\n"), std::string("H\0\0\0\xff\xff\xff\x0f", 8)})
      send_bytes(strangers.emplace_back(connect_until(place.address, place.port, in_seconds(60))),
                 bytes);
  }
  std::vector<std::future<Ended>> ranks;
  ranks.push_back(std::move(zero));
  for (const int rank : {1, 2, 3}) ranks.push_back(start(place, rank, 4));
  for (auto& rank : ranks) {
    const Ended ended = rank.get();
    INFO(ended.err);
    CHECK(ended.code == 0);
  }
  for (const Socket& s : strangers) {
    const std::string heard = all_bytes(s);
    CHECK(heard.find(token) == std::string::npos);
    // Nothing, a challenge, or that its version is another one; no word of the run.
    CHECK((heard.empty() || heard[0] == 'C' || heard[0] == 'R'));
    CHECK(heard.size() < 200);
  }
}

TEST_CASE("ranks started by hand: a token by variable or file, or loopback alone") {
  const Folder folder("tokens");
  const std::string file = folder / "token";
  write_text(file, token + "\n");
  const auto both = [&](const Place& place, const std::string& more) {
    auto zero = start(place, 0, 2, more), one = start(place, 1, 2, more);
    return std::array<Ended, 2>{zero.get(), one.get()};
  };
  const auto outer = outer_addresses();
  for (const std::string& address : outer.empty() ? std::vector<std::string>{"127.0.0.1"} : outer) {
    CAPTURE(address);
    Place place;
    place.address = address;
    const std::string quick = "--distributed-timeout-minutes 0.5 ";
    fs::permissions(file, fs::perms::owner_read | fs::perms::others_read);
    place.with = "A=1";
    for (const Ended& ended : both(place, quick + "--rendezvous-token-file " + file)) {
      CHECK(ended.code == 2);
      CHECK(count(ended.err, "is not secret: its mode is 404") == 1);
    }
    fs::permissions(file, fs::perms::owner_read);
    for (const Ended& ended : both(place, "--rendezvous-token-file " + file)) {
      INFO(ended.err);
      CHECK(ended.code == 0);
      CHECK(!contains(ended.err, token));
    }
    place.with = "TALLY_RENDEZVOUS_TOKEN=short";
    for (const Ended& ended : both(place, quick)) CHECK(ended.code == 2);
    if (outer.empty()) break;
    place.with = "A=1";
    for (const Ended& ended : both(place, quick)) {
      INFO(ended.err);
      CHECK(ended.code == 2);
      CHECK(count(ended.err, "tally-train: error:") == 1);
      CHECK(contains(ended.err,
                     "this run has no token by which its ranks know each other: set "
                     "TALLY_RENDEZVOUS_TOKEN to the same random text on every rank"));
    }
  }
}

TEST_CASE("a rank with a wrong flag tells the others, also where flags say where they meet") {
  const Folder folder("wrong_flag");
  Place place;
  place.with = "TALLY_RENDEZVOUS_TOKEN=" + token + "; unset MASTER_PORT";
  const std::string at = fmt::format("--master-port {} ", place.port);
  for (const int wrong : {0, 1}) {
    CAPTURE(wrong);
    std::vector<std::future<Ended>> ranks;  // of four: two do not come
    for (const int rank : {0, 1})
      ranks.push_back(start(place, rank, 4, at + (rank == wrong ? "--lr abc " : "")));
    for (auto& rank : ranks) {
      const Ended ended = rank.get();
      INFO(ended.err);
      CHECK(ended.code == 2);
      CHECK(count(ended.err, "tally-train: error: ") == 1);
      CHECK(contains(ended.err, fmt::format("tally-train: error: rank {} on ", wrong)));
      CHECK(contains(ended.err, ": --lr: 'abc' is not a number\n"));
    }
  }
  // Nobody else is started.
  for (const int rank : {0, 1}) {
    const Ended alone = start(place, rank, 4, at + "--seq-length 0 ").get();
    CHECK(alone.code == 2);
    CHECK(count(alone.err, "--seq-length") == 1);
    CHECK(count(alone.err, "tally-train: ") == 1);
  }
}

TEST_CASE("a host whose ranks cannot be started tells those of the others") {
  const int port = free_port();
  const auto on_host = [&](int node, const std::string& more) {
    const std::string environment = fmt::format(
        "export SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID={0} SLURM_NODEID={0} SLURM_LOCALID=0 "
        "SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2 SLURM_STEP_TASKS_PER_NODE='1(x2)' "
        "MASTER_ADDR=127.0.0.1 MASTER_PORT={1} TALLY_RENDEZVOUS_TOKEN={2};",
        node, port, token);
    return std::async(std::launch::async,
                      [=] { return tally_train(run + "--nproc-per-node 2 " + more, environment); });
  };
  for (const int wrong : {0, 1}) {
    CAPTURE(wrong);
    auto zero = on_host(0, wrong == 0 ? "--lr abc" : ""),
         one = on_host(1, wrong == 1 ? "--lr abc" : "");
    const Ended at_zero = zero.get(), at_one = one.get();
    INFO(at_zero.err << at_one.err);
    CHECK(at_zero.code == 2);
    CHECK(at_one.code == 2);
    const std::string all = at_zero.err + at_one.err;
    CHECK(count(all, "tally-train: error: ") == 1);
    CHECK(contains(all, fmt::format("tally-train: error: rank {} on ", wrong * 2)));
    CHECK(contains(all, "--lr: 'abc' is not a number"));
  }
}

TEST_CASE(
    "a running job listens nowhere, and its ranks know a token that their command does not show") {
  std::set<std::string> addresses;
  std::set<std::string> tokens;
  bool looked = false;
  const auto look = [&](const std::string& out, int pid) {
    if (looked || !contains(out, "iteration")) return;
    looked = true;
    std::set<std::string> sockets;
    for (const char* rank : {"0", "1"}) {
      const pid_t of_rank = pid_of_rank(pid, rank);
      CHECK(of_rank > 0);
      if (of_rank <= 0) continue;
      const std::string environment = environment_of(of_rank);
      const size_t at = environment.find("TALLY_RENDEZVOUS_TOKEN=");
      if (at != std::string::npos) tokens.insert(environment.substr(at + 23, 64));
      for (const std::string& one : tokens)
        CHECK(!contains(read_text(fmt::format("/proc/{}/cmdline", of_rank)), one));
      for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", of_rank))) {
        std::error_code gone;
        const std::string target = fs::read_symlink(entry.path(), gone).string();
        if (target.rfind("socket:[", 0) == 0) sockets.insert(target.substr(8, target.size() - 9));
      }
    }
    std::ifstream table("/proc/net/tcp");
    for (std::string line; std::getline(table, line);) {
      std::istringstream in(line);
      std::array<std::string, 10> field;
      for (std::string& f : field) in >> f;
      if (sockets.count(field[9]) > 0) addresses.insert(field[1].substr(0, 8) + " " + field[3]);
    }
    kill(pid, SIGTERM);
  };
  const Ended ended = tally_train(flags + "--train-iters 100000000 --nproc-per-node 2", "", look);
  INFO(ended.err);
  CHECK(ended.code == 4);
  REQUIRE(tokens.size() == 1);
  CHECK(tokens.begin()->find_first_not_of("0123456789abcdef") == std::string::npos);
  // Connections that are open, of 127.0.0.1; nothing listens (0A).
  CHECK(addresses == std::set<std::string>{"0100007F 01"});
}
