// Who comes in at the ports of a run: those who know its token, and nobody else. Strangers talk to
// real connections of this process.
#include "src/parallel/control/door.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <thread>

#include "src/parallel/collectives/communicator.h"
#include "src/parallel/control/rendezvous.h"
#include "src/parallel/control/secret.h"

using namespace tally::train;

namespace {

const std::string token(64, '7');
constexpr const char* here = "127.0.0.1";

void say(const Socket& to, const std::string& bytes) {
  // The other side may have hung up in the middle.
  [[maybe_unused]] const ssize_t n = send(to.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

std::string hello(const std::string& nonce, const std::string& protocol = own_protocol()) {
  std::string body;
  put(&body, protocol);
  put(&body, nonce);
  return whole_message(Message::hello, body);
}

// The bodies of the messages that came until the other side hung up.
std::vector<std::pair<Message, std::string>> all_answers(const Socket& from) {
  std::vector<std::pair<Message, std::string>> answers;
  Message type{};
  std::string body;
  while (receive_message(from, in_seconds(30), &type, &body)) answers.emplace_back(type, body);
  return answers;
}

using Attack = std::function<void(const Socket&)>;

// Kinds of strangers that are to be thrown out as soon as they have spoken.
std::map<std::string, Attack> loud_strangers(int rank) {
  const auto bytes = [](const std::string& text) -> Attack {
    return [text](const Socket& s) { say(s, text); };
  };
  std::string old;  // the hello of a version without proofs
  for (const std::string& word : {std::string("tallyrv3"), std::string("run")}) put(&old, word);
  for (const int number : {rank, 3}) put(&old, number);
  for (const std::string& word : {std::string("evil"), std::string("x")}) put(&old, word);
  const auto proof = [rank](const std::string& mac) {
    std::string body;
    put(&body, encode(Hello{rank, 3, "evil", "x"}));
    put(&body, mac);
    return whole_message(Message::proof, body);
  };
  const std::string nonce(32, 'n');
  return {
      {"HTTP", bytes("GET / HTTP/1.0\r\n\r\n")},
      {"zeros", bytes(std::string(100, '\0'))},
      {"heartbeats", bytes(std::string(1000, 'B'))},
      {"the header of 256 MiB", bytes(std::string("H\0\0\0\xff\xff\xff\x0f", 8))},
      {"a greeting that is too long", bytes(whole_message(Message::hello, std::string(5000, 'x')))},
      {"an empty hello", bytes(whole_message(Message::hello, ""))},
      {"lengths beyond the end", bytes(whole_message(Message::hello, std::string(50, '\xff')))},
      {"a short nonce", bytes(hello("1"))},
      {"an old hello", bytes(whole_message(Message::hello, old))},
      {"a failure", bytes(whole_message(Message::failure, encode(Failure{rank, "evil", 1, "x"})))},
      {"an exchange", bytes(whole_message(Message::exchange, "x"))},
      {"a proof without a hello", bytes(proof(std::string(32, 'x')))},
      {"no proof", bytes(hello(nonce) + proof(""))},
      {"a proof of nothing", bytes(hello(nonce) + proof(std::string(32, 'x')))},
      {"two hellos", bytes(hello(nonce) + hello(nonce))},
      {"another token",
       [rank](const Socket& s) {
         say(s, hello(std::string(32, 'n')));
         Message type{};
         std::string body;
         if (!receive_message(s, in_seconds(30), &type, &body)) return;
         // As a rank would, with its own token; and the listener's proof sent back.
         const std::string theirs = Reader(body).text();
         for (const std::string& mac :
              {proof_of("wrong", theirs), body.substr(body.size() - 32), std::string(32, '\0')}) {
           std::string answer;
           put(&answer, encode(Hello{rank, 3, "evil", "x"}));
           put(&answer, mac);
           say(s, whole_message(Message::proof, answer));
         }
       }},
  };
}

// No stranger hears more than a challenge, or that its version is another one.
void check_thrown_out(const Socket& stranger) {
  for (const auto& [type, body] : all_answers(stranger)) {
    CHECK((type == Message::challenge || type == Message::refused));
    CHECK(body.find(token) == std::string::npos);
  }
}

struct Ranks {
  explicit Ranks(int size) : listener(listen_on(here, 0)) {
    options.size = size;
    options.address = here;
    options.port = port_of(listener);
    options.host = "here";
    options.run = "test";
    options.token.text = token;
    options.timeout_seconds = 60;
  }
  std::future<std::unique_ptr<Rendezvous>> start(int rank, int port = 0) {
    RendezvousOptions o = options;
    o.rank = rank;
    if (rank == 0 && listener.open()) o.listening_fd = dup(listener.fd());
    if (port != 0) o.port = port;
    return std::async(std::launch::async,
                      [o] { return Rendezvous::meet(o, [](const Failure&) {}); });
  }
  // Nobody gives the ranks a token: rank 0 listens itself.
  void without_token() {
    options.token.text.clear();
    listener = Socket();
  }
  Socket stranger() const { return connect_until(here, options.port, in_seconds(30)); }
  Socket listener;
  RendezvousOptions options;
};

// Passes everything on between a rank and rank 0, and keeps what the rank said.
struct Recorder {
  explicit Recorder(int to) : listener(listen_on(here, 0)), port(port_of(listener)) {
    thread = std::thread([this, to] {
      const Socket rank(accept(listener.fd(), nullptr, nullptr));
      const Socket zero = connect_until(here, to, in_seconds(30));
      std::thread back([&] {
        char byte = 0;
        while (receive_all(zero, &byte, 1, in_seconds(60))) say(rank, {byte});
        shutdown(rank.fd(), SHUT_RDWR);
      });
      char byte = 0;
      while (receive_all(rank, &byte, 1, in_seconds(60))) {
        said += byte;
        say(zero, {byte});
      }
      shutdown(zero.fd(), SHUT_RDWR);
      back.join();
    });
  }
  Socket listener;
  int port;
  std::string said;
  std::thread thread;
};

}  // namespace

// RFC 4231, test case 2.
TEST_CASE("proofs are HMAC-SHA256") {
  std::string hex;
  for (const char c : proof_of("Jefe", "what do ya want for nothing?"))
    hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  CHECK(hex == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(same_bytes("ab", "ab"));
  CHECK(!same_bytes("ab", "aB"));
  CHECK(!same_bytes("ab", "abc"));
  CHECK(random_bytes(32) != random_bytes(32));
  CHECK(new_token().size() == 64);
  CHECK(new_token() != new_token());
}

TEST_CASE(
    "strangers of all kinds, for each rank, at once: nobody comes in, and no rank waits for them") {
  Ranks ranks(3);
  auto zero = ranks.start(0);
  std::vector<Socket> silent, half, loud;
  for (int i = 0; i < 20; ++i) silent.push_back(ranks.stranger());
  for (int i = 0; i < 5; ++i)
    say(half.emplace_back(ranks.stranger()), hello(std::string(32, 'n')).substr(0, 7));
  for (const int rank : {0, 1, 2})
    for (const auto& [name, attack] : loud_strangers(rank)) {
      CAPTURE(name);
      attack(loud.emplace_back(ranks.stranger()));
      check_thrown_out(loud.back());
    }
  auto one = ranks.start(1), two = ranks.start(2);
  // The silent ones are still there: the ranks have met, although none of them has spoken.
  std::vector<std::unique_ptr<Rendezvous>> met;
  for (auto* rank : {&zero, &one, &two}) met.push_back(rank->get());
  CHECK(met[0]->strangers() == static_cast<int>(silent.size() + half.size() + loud.size()));
  for (const Socket& s : silent) CHECK(all_answers(s).empty());
  for (const Socket& s : half) CHECK(all_answers(s).empty());
  std::vector<std::future<std::vector<std::string>>> texts;
  for (auto& rank : met)
    texts.push_back(std::async(std::launch::async, [&rank] {
      auto all = rank->exchange(std::to_string(rank->rank()));
      rank->done();
      return all;
    }));
  for (auto& text : texts) CHECK(text.get() == std::vector<std::string>{"0", "1", "2"});
}

TEST_CASE("more strangers than rank 0 listens to: the oldest go, and the ranks meet") {
  Ranks ranks(2);
  auto zero = ranks.start(0);
  std::vector<Socket> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(ranks.stranger());
  auto one = ranks.start(1);
  CHECK(zero.get()->strangers() == 200);
  one.get();
}

TEST_CASE("what a rank said is of no use to somebody who has recorded it") {
  std::string said;
  {
    Ranks ranks(2);
    Recorder recorder(ranks.options.port);
    auto zero = ranks.start(0), one = ranks.start(1, recorder.port);
    one.get();
    zero.get();
    recorder.thread.join();
    said = recorder.said;
  }
  CHECK(said.find(token) == std::string::npos);
  Ranks ranks(2);
  auto zero = ranks.start(0);
  const Socket at_once = ranks.stranger(), in_turn = ranks.stranger();
  say(at_once, said);
  check_thrown_out(at_once);
  const size_t first = hello(std::string(32, 'n')).size();
  say(in_turn, said.substr(0, first));
  Message type{};
  std::string body;
  CHECK(receive_message(in_turn, in_seconds(30), &type, &body));
  CHECK(type == Message::challenge);
  say(in_turn, said.substr(first));
  check_thrown_out(in_turn);
  auto one = ranks.start(1);
  CHECK(zero.get()->strangers() == 2);
  one.get();
}

TEST_CASE("a rank does not come in with another token, run or purpose, and says so at once") {
  const Credential right{token, "run", "mesh 0"};
  for (const Credential& wrong :
       {Credential{std::string(64, '8'), "run", "mesh 0"}, Credential{"", "run", "mesh 0"},
        Credential{token, "other run", "mesh 0"}, Credential{token, "run", "mesh 1"}}) {
    std::vector<Socket> listeners;
    listeners.push_back(listen_on(here, 0));
    const int port = port_of(listeners.front());
    Door door(std::move(listeners), right, 1);
    auto visitor = std::async(std::launch::async, [&]() -> std::string {
      Credential mine = wrong;
      try {
        enter({here, port, "rank 0"}, &mine, "1", in_seconds(30), nullptr);
      } catch (const CommunicationError& e) {
        return e.what();
      }
      return "";
    });
    auto good = std::async(std::launch::async, [&] {
      visitor.wait();
      Credential mine = right;
      return enter({here, port, "rank 0"}, &mine, "2", in_seconds(30), nullptr);
    });
    const auto admitted = door.next(in_seconds(30));
    REQUIRE(admitted);
    CHECK(admitted->words == "2");
    Door::admit(*admitted);
    CHECK(good.get().open());
    CHECK(visitor.get().find(
              fmt::format("rank 0 at {}:{}: another run listens there", here, port)) == 0);
    CHECK(door.strangers() == 1);
  }
}

TEST_CASE("somebody who listens in rank 0's place learns nothing and is not believed") {
  for (const std::string& answer :
       {std::string("HTTP/1.0 400 Bad Request\r\n\r\n"), whole_message(Message::welcome, "x"),
        whole_message(Message::admitted, ""), whole_message(Message::challenge, ""),
        whole_message(Message::challenge, std::string(72, 'x'))}) {
    const Socket listener = listen_on(here, 0);
    auto rank = std::async(std::launch::async, [&] {
      Credential mine{token, "run", "rendezvous"};
      CHECK_THROWS_AS(
          enter({here, port_of(listener), "rank 0"}, &mine, "1", in_seconds(2), nullptr),
          CommunicationError);
    });
    const Socket visitor(accept(listener.fd(), nullptr, nullptr));
    say(visitor, answer);
    shutdown(visitor.fd(), SHUT_WR);
    std::string heard;
    for (char byte = 0; receive_all(visitor, &byte, 1, in_seconds(30));) heard += byte;
    CHECK(heard.find(token) == std::string::npos);
    CHECK(heard.size() == hello(std::string(32, 'n')).size());
    rank.get();
  }
}

// Runs `act` in a thread of another user, whom the kernel sees at the sockets that it makes. Needs
// root: false where this process may not be somebody else.
bool as_another_user(const std::function<void()>& act) {
  bool could = false;
  std::thread([&] {
    could = syscall(SYS_setresuid, -1, 65534, -1) == 0;  // glibc's would be for all threads
    if (could) act();
  }).join();
  return could;
}

// Connected to 127.0.0.1 by an IPv4 socket, or by an IPv6 one.
Socket connect_by(int family, int port) {
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, here, &four.sin_addr);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = four.sin_port;
  inet_pton(AF_INET6, "::ffff:127.0.0.1", &six.sin6_addr);
  Socket made(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int failed = family == AF_INET
                         ? connect(made.fd(), reinterpret_cast<const sockaddr*>(&four), sizeof four)
                         : connect(made.fd(), reinterpret_cast<const sockaddr*>(&six), sizeof six);
  return failed != 0 ? Socket() : std::move(made);
}

// What a rank that knows no token would say, as door.h describes it. Returns the last answer.
Message try_to_join(const Socket& door, const std::string& key) {
  const std::string nonce(32, 'n'), words = encode(Hello{1, 2, "evil", "x"});
  say(door, hello(nonce));
  Message type{};
  std::string body;
  if (!receive_message(door, in_seconds(30), &type, &body)) return type;
  std::string text, proof;
  for (const std::string& part : {own_protocol(), std::string("visitor"), std::string("test"),
                                  std::string("rendezvous"), nonce + Reader(body).text(), words})
    put(&text, part);
  put(&proof, words);
  put(&proof, proof_of(key, text));
  say(door, whole_message(Message::proof, proof));
  while (type != Message::admitted && receive_message(door, in_seconds(30), &type, &body)) {
  }
  return type;
}

TEST_CASE("a run that was given no token: processes of another user do not come in") {
  Ranks ranks(2);
  ranks.without_token();
  auto zero = ranks.start(0);
  ranks.stranger();  // it listens
  int tried = 0;
  const bool could = as_another_user([&] {
    for (const int family : {AF_INET, AF_INET6}) {
      CAPTURE(family);
      const Socket door = connect_by(family, ranks.options.port);
      if (!door.open()) continue;  // a host without IPv6
      ++tried;
      CHECK(try_to_join(door, "") != Message::admitted);
    }
    const std::string place = fmt::format("{}:{}", here, ranks.options.port);
    CHECK_THROWS_AS(ask_for_token(place, in_seconds(30)), CommunicationError);
    ++tried;
  });
  auto one = ranks.start(1);
  const auto met = zero.get();
  CHECK(met->strangers() == tried + 1);
  // The ports between the ranks have a token, too.
  CHECK(met->credential("mesh 0").token.size() == 64);
  CHECK(one.get()->credential("mesh 0").token == met->credential("mesh 0").token);
  if (!could) MESSAGE("not root: nobody of another user tried");
}

TEST_CASE("a run that was given no token: another user in rank 0's place is not believed") {
  for (const bool has_place : {false, true}) {
    CAPTURE(has_place);
    Ranks ranks(2);
    ranks.options.token.text.clear();
    Socket place;
    const bool could = as_another_user([&] {
      if (has_place) place = listen_for_user(fmt::format("{}:{}", here, ranks.options.port));
    });
    std::vector<Socket> taken;
    taken.push_back(std::move(ranks.listener));
    // Whoever knows that there is no token.
    Door door(std::move(taken), Credential{"", "test", "rendezvous"}, 2);
    auto one = ranks.start(1);
    auto visitor = std::async(std::launch::async, [&] { return door.next(in_seconds(5)); });
    CHECK_THROWS_WITH_AS(one.get(), doctest::Contains("is not a rank of this user"),
                         CommunicationError);
    CHECK(!visitor.get());
    if (!could) MESSAGE("not root: nobody of another user listened");
  }
}

TEST_CASE("a run that was given no token: whoever connects and is gone again delays nothing") {
  Ranks ranks(3);
  ranks.without_token();
  auto zero = ranks.start(0);
  std::atomic<bool> met = false;
  std::atomic<int> gone = 0;
  std::vector<std::future<void>> floods;
  for (int i = 0; i < 2; ++i)
    floods.push_back(std::async(std::launch::async, [&] {
      for (; !met; ++gone) connect_by(AF_INET, ranks.options.port);
    }));
  while (gone < 4000) std::this_thread::yield();
  auto one = ranks.start(1), two = ranks.start(2);
  CHECK_NOTHROW(zero.get());
  met = true;
  CHECK_NOTHROW(one.get());
  CHECK_NOTHROW(two.get());
}

// The test does rank 2's part, so that the ports of ranks 0 and 1 stay open as long as it likes.
TEST_CASE("the ports between the ranks let nobody else in either") {
  Ranks ranks(3);
  std::vector<std::future<std::unique_ptr<Rendezvous>>> starting;
  for (const int rank : {0, 1, 2}) starting.push_back(ranks.start(rank));
  std::vector<std::unique_ptr<Rendezvous>> met;
  for (auto& rank : starting) met.push_back(rank.get());
  std::vector<std::future<std::unique_ptr<Communicator>>> made;
  for (const size_t rank : {0, 1})
    made.push_back(std::async(std::launch::async, [&met, rank] {
      return make_communicator("sockets", *met[rank], Device{}, "");
    }));
  const auto places = met[2]->exchange(fmt::format("{} 1", here));
  std::vector<Socket> strangers;
  for (const int rank : {0, 1}) {
    CAPTURE(rank);
    const std::string& place = places[static_cast<size_t>(rank)];
    CHECK(place.substr(0, place.find(' ')) == here);
    const int port = std::stoi(place.substr(place.find(' ')));
    const auto stranger = [&]() -> const Socket& {
      return strangers.emplace_back(connect_until(here, port, in_seconds(30)));
    };
    for (int i = 0; i < 20; ++i) stranger();
    const int two = 2;  // once enough
    say(stranger(), std::string(reinterpret_cast<const char*>(&two), sizeof two));
    for (const auto& [name, attack] : loud_strangers(2)) {
      CAPTURE(name);
      const Socket& s = stranger();
      attack(s);
      check_thrown_out(s);
    }
  }
  for (const int rank : {0, 1}) {
    const std::string& place = places[static_cast<size_t>(rank)];
    Credential mine = met[2]->credential(fmt::format("mesh {}", rank));
    enter({here, std::stoi(place.substr(place.find(' '))), "rank"}, &mine, "2", in_seconds(30),
          nullptr);
  }
  for (auto& communicator : made) CHECK(communicator.get()->size() == 3);
  const int each = static_cast<int>(strangers.size()) / 2;
  for (const size_t rank : {0, 1}) CHECK(met[rank]->strangers() == each);
}

TEST_CASE("files with a token") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / fmt::format("tally_token_{}", getpid());
  fs::create_directories(folder);
  const std::string path = folder / "token";
  const auto refusal = [&]() -> std::string {
    try {
      read_token(path);
    } catch (const LaunchError& e) {
      return e.what();
    }
    return "";
  };
  CHECK(!read_token(path));
  for (const std::string& text : {token, "  " + token + "\r\n\n"}) {
    std::ofstream(path) << text;
    for (const mode_t open : {0644, 0640, 0604, 0620, 0602, 0601}) {
      chmod(path.c_str(), open);
      CHECK(refusal().find(fmt::format("is not secret: its mode is {:03o}", open)) !=
            std::string::npos);
    }
    for (const mode_t secret : {0600, 0400}) {
      chmod(path.c_str(), secret);
      CHECK(read_token(path) == token);
    }
  }
  for (const size_t size : {0, 1, 31}) {
    fs::remove(path);
    std::ofstream(path) << std::string(size, 'x') << "\n";
    chmod(path.c_str(), 0600);
    CHECK(refusal().find(fmt::format("has {} characters", size)) != std::string::npos);
  }
  std::ofstream(path) << std::string(5000, 'x');
  CHECK(refusal().find("has more than 4096 bytes") != std::string::npos);
  fs::remove(path);
  fs::create_directory(path);
  chmod(path.c_str(), 0700);
  CHECK(refusal().find("is not a file") != std::string::npos);
  fs::remove(path);
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK(refusal().find("is not a file") != std::string::npos);

  // Rank 0's own, where a run that was killed and somebody's link were before.
  const std::string other = folder / "other";
  for (const bool link : {false, true}) {
    fs::remove(path);
    std::ofstream(other) << "untouched";
    if (link) fs::create_symlink(other, path);
    if (!link) std::ofstream(path) << "left behind";
    {
      const TokenFile made(path);
      CHECK(read_token(path) == made.token());
      CHECK(fs::is_regular_file(fs::symlink_status(path)));
    }
    CHECK(!fs::exists(fs::symlink_status(path)));
    std::string text;
    std::ifstream(other) >> text;
    CHECK(text == "untouched");
  }
  CHECK_THROWS_WITH_AS(TokenFile(folder / "no/such/folder"),
                       doctest::Contains("start them in a folder of yours that all their hosts"),
                       LaunchError);
  fs::remove_all(folder);
}
