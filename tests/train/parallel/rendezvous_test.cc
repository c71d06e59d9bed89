// Ranks that are threads of this process, over real connections.
#include "src/parallel/control/rendezvous.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "src/parallel/control/door.h"
#include "src/parallel/control/heartbeat.h"
#include "src/parallel/control/rendezvous_wire.h"
#include "src/parallel/control/tcp.h"

using namespace tally::train;

namespace {

struct Meeting {
  explicit Meeting(int size)
      : listener(listen_on("127.0.0.1", 0)), ranks(static_cast<size_t>(size)) {
    options.size = size;
    options.address = "127.0.0.1";
    options.port = port_of(listener);
    options.host = "here";
    options.run = "test";
    options.token.text = std::string(64, '7');
    options.timeout_seconds = 30;
  }
  RendezvousOptions of(int rank) const {
    RendezvousOptions o = options;
    o.rank = rank;
    if (rank == 0) o.listening_fd = dup(listener.fd());
    return o;
  }
  // All ranks meet; failures that others tell of end up in told.
  void start() {
    std::vector<std::thread> threads;
    for (int r = 0; r < options.size; ++r)
      threads.emplace_back([this, r] {
        ranks[static_cast<size_t>(r)] = Rendezvous::meet(of(r), [this, r](const Failure& f) {
          std::unique_lock<std::mutex> lock(mutex);
          told[r] = f;
          changed.notify_all();
          if (when_told) when_told(lock, r);
        });
      });
    for (std::thread& t : threads) t.join();
  }
  Failure wait_for(int rank) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return told.count(rank) > 0; });
    return told[rank];
  }

  Socket listener;
  RendezvousOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<int, Failure> told;
  std::function<void(std::unique_lock<std::mutex>&, int)> when_told;  // holds the mutex
  std::vector<std::unique_ptr<Rendezvous>> ranks;
};

}  // namespace

TEST_CASE("exchange: every rank gets every rank's text, repeatedly") {
  Meeting m(4);
  m.start();
  std::vector<std::future<bool>> good;
  for (int r = 0; r < 4; ++r)
    good.push_back(std::async(std::launch::async, [&m, r] {
      Rendezvous& me = *m.ranks[static_cast<size_t>(r)];
      bool ok = true;
      for (int round = 0; round < 50; ++round) {
        const std::string mark = std::to_string(round) + ":";
        ok = ok && me.exchange(mark + std::string(static_cast<size_t>(r * 1000), 'x')) ==
                       std::vector<std::string>{mark, mark + std::string(1000, 'x'),
                                                mark + std::string(2000, 'x'),
                                                mark + std::string(3000, 'x')};
      }
      me.done();
      return ok;
    }));
  for (auto& g : good) CHECK(g.get());
  CHECK(m.told.empty());
}

TEST_CASE("exchanges of a background thread lie between any of the main thread's") {
  Meeting m(3);
  m.start();
  const auto repeat = [&m](size_t rank, ExchangeKind kind, const std::string& mark, int rounds) {
    bool ok = true;
    for (int round = 0; round < rounds; ++round) {
      const std::string text = mark + std::to_string(round) + ":";
      ok = ok && m.ranks[rank]->exchange(text + std::to_string(rank), kind) ==
                     std::vector<std::string>{text + "0", text + "1", text + "2"};
    }
    return ok;
  };
  std::vector<std::future<bool>> good;
  for (size_t r = 0; r < 3; ++r) {
    good.push_back(std::async(std::launch::async, repeat, r, ExchangeKind::main, "main", 200));
    good.push_back(
        std::async(std::launch::async, repeat, r, ExchangeKind::background, "back", 200));
  }
  for (auto& g : good) CHECK(g.get());
  // One kind does not wait for the other.
  std::future<bool> late =
      std::async(std::launch::async, repeat, 0, ExchangeKind::background, "b", 1);
  std::vector<std::future<bool>> others;
  for (size_t r = 0; r < 3; ++r)
    others.push_back(std::async(std::launch::async, repeat, r, ExchangeKind::main, "m", 3));
  for (auto& g : others) CHECK(g.get());
  for (size_t r = 1; r < 3; ++r)
    others[r] = std::async(std::launch::async, repeat, r, ExchangeKind::background, "b", 1);
  CHECK(late.get());
  for (size_t r = 1; r < 3; ++r) CHECK(others[r].get());
  CHECK(m.told.empty());
}

TEST_CASE("all ranks get the first failure, and no second one") {
  Meeting m(3);
  m.start();
  const Failure mine = m.ranks[2]->fail(2, "the data are missing");
  CHECK(mine.rank == 2);
  CHECK(mine.known_to_zero);
  for (const int r : {0, 1}) {
    const Failure f = m.wait_for(r);
    CHECK(f.rank == 2);
    CHECK(f.code == 2);
    CHECK(f.host == "here");
    CHECK(f.message == "the data are missing");
  }
  CHECK(m.ranks[2]->fail(1, "a consequence").message == "the data are missing");
}

// A launcher may end all ranks as soon as one has ended, so rank 0 must report before that.
TEST_CASE("after a failure the others end after rank 0") {
  Meeting m(3);
  bool zero_ended = false, others_waited = true;
  m.when_told = [&](std::unique_lock<std::mutex>& lock, int rank) {
    if (rank == 0) {  // it writes its record
      m.changed.wait_for(lock, std::chrono::milliseconds(200), [&] { return m.told.count(1) > 0; });
      zero_ended = true;
    } else {
      others_waited = others_waited && zero_ended;
    }
  };
  m.start();
  auto failing =
      std::async(std::launch::async, [&] { return m.ranks[2]->fail(2, "the data are missing"); });
  m.wait_for(0);
  m.ranks[0].reset();
  CHECK(failing.get().known_to_zero);
  m.wait_for(1);
  CHECK(others_waited);
}

TEST_CASE("after a good run too, however long rank 0 writes a checkpoint") {
  Meeting m(2);
  m.start();
  auto one = std::async(std::launch::async, [&] { m.ranks[1]->done(); });
  CHECK(one.wait_for(std::chrono::milliseconds(200)) == std::future_status::timeout);
  m.ranks[0]->done();
  one.get();
  CHECK(m.told.empty());
}

TEST_CASE("all others notice that a rank vanished") {
  Meeting m(3);
  m.start();
  m.ranks[1].reset();
  CHECK(m.wait_for(0).rank == 1);
  CHECK(m.wait_for(2).rank == 1);
  CHECK(m.wait_for(0).message.find("its connection closed unexpectedly") == 0);
}

TEST_CASE("all ranks notice that rank 0 vanished, without a report from it") {
  Meeting m(2);
  m.start();
  m.ranks[0].reset();
  CHECK(m.wait_for(1).rank == 0);
  CHECK(!m.wait_for(1).known_to_zero);
}

TEST_CASE("missing ranks are named; strangers are rejected") {
  Meeting m(3);
  m.options.timeout_seconds = 3;
  RendezvousOptions stranger = m.of(1);
  stranger.run = "another";
  auto turned = std::async(std::launch::async, [&]() -> std::string {
    try {
      Rendezvous::meet(stranger, {});
    } catch (const CommunicationError& e) {
      return e.what();
    }
    return "";
  });
  try {
    Rendezvous::meet(m.of(0), {});
    FAIL("two ranks were not there");
  } catch (const CommunicationError& e) {
    CHECK(std::string(e.what()).find("2 of 3 ranks did not connect to 127.0.0.1:") == 0);
    CHECK(std::string(e.what()).find("missing ranks 1, 2") != std::string::npos);
  }
  CHECK(turned.get().find("another run listens there, or a rank with another token") !=
        std::string::npos);
}

TEST_CASE("ranks that have come leave it to rank 0 to report that others have not") {
  Meeting m(3);
  m.options.timeout_seconds = 5;
  auto one = std::async(std::launch::async,
                        [&] { CHECK_THROWS_AS(Rendezvous::meet(m.of(1), {}), StartFailed); });
  CHECK_THROWS_WITH_AS(Rendezvous::meet(m.of(0), {}), doctest::Contains("missing rank 2"),
                       CommunicationError);
  one.get();
}

namespace {

// How a start ended for one rank.
struct Start {
  int code = 0;                   // 0: the ranks have met
  std::string message;            // what was thrown
  std::vector<Failure> reported;  // here
};

Start start_of(RendezvousOptions options) {
  Start start;
  options.report = [&](const Failure& f) { start.reported.push_back(f); };
  try {
    Rendezvous::meet(options, {})->done();
  } catch (const StartFailed& e) {
    start.code = e.code;
    start.message = e.what();
  } catch (const CommunicationError& e) {
    start.code = -1;
    start.message = e.what();
  }
  return start;
}

RendezvousOptions with_fault(RendezvousOptions options) {
  options.fault.emplace().message = "--lr: 'abc' is not a number";
  return options;
}

std::future<Start> begin(const RendezvousOptions& options) {
  return std::async(std::launch::async, [options] { return start_of(options); });
}

void check_told(const Start& start, int reports) {
  CHECK(start.code == 2);
  CHECK(start.message == "--lr: 'abc' is not a number");
  REQUIRE(start.reported.size() == static_cast<size_t>(reports));
  for (const Failure& f : start.reported) {
    CHECK(f.code == 2);
    CHECK(f.host == "here");
    CHECK(f.message == "--lr: 'abc' is not a number");
  }
}

}  // namespace

TEST_CASE("a rank that cannot take part ends the start of all, whoever has come, with one report") {
  for (const int wrong : {0, 1, 2}) {
    CAPTURE(wrong);
    Meeting m(3);
    const auto mine = [&](int r) { return r == wrong ? with_fault(m.of(r)) : m.of(r); };
    auto zero = begin(mine(0)), one = begin(mine(1)), two = begin(mine(2));
    const Start at_zero = zero.get();
    check_told(at_zero, 1);
    CHECK(at_zero.reported.front().rank == wrong);
    check_told(one.get(), 0);
    check_told(two.get(), 0);
  }
}

TEST_CASE("those that never come do not let the others wait, and those that come late are told") {
  for (const int wrong : {0, 1}) {
    CAPTURE(wrong);
    Meeting m(4);
    m.options.timeout_seconds = 600;
    std::promise<void> known;
    RendezvousOptions first = wrong == 0 ? with_fault(m.of(0)) : m.of(0);
    auto zero = std::async(std::launch::async, [&] {
      Start start;
      first.report = [&](const Failure& f) {
        start.reported.push_back(f);
        known.set_value();
      };
      try {
        Rendezvous::meet(first, {});
      } catch (const StartFailed& e) {
        start.code = e.code;
        start.message = e.what();
      }
      return start;
    });
    RendezvousOptions by_hand = m.of(2);
    by_hand.own_output = true;
    auto one = begin(wrong == 1 ? with_fault(m.of(1)) : m.of(1));
    known.get_future().wait();
    auto two = begin(by_hand);  // rank 3 does not come
    check_told(zero.get(), 1);
    check_told(one.get(), 0);
    check_told(two.get(), 1);  // nobody looks at rank 0's output there
  }
}

TEST_CASE("a rank speaks for those after it that nobody has started") {
  using Clock = std::chrono::steady_clock;
  for (const int wrong : {0, 2}) {  // of two hosts with two ranks each
    CAPTURE(wrong);
    Meeting m(4);
    m.options.timeout_seconds = 600;
    RendezvousOptions host = with_fault(m.of(wrong));
    host.fault->ranks = 2;
    const auto before = Clock::now();
    auto faulty = begin(host), first = begin(m.of(2 - wrong)), second = begin(m.of(3 - wrong));
    for (auto* start : {&faulty, &first, &second}) CHECK(start->get().code == 2);
    // Ranks that may still come are waited for ten seconds.
    CHECK(Clock::now() - before < std::chrono::seconds(9));
  }
}

TEST_CASE(
    "a rank that cannot take part and reaches nobody says so itself, and does not wait long") {
  Meeting m(2);
  m.listener = Socket();  // rank 0 has not been started
  m.options.timeout_seconds = 600;
  auto shared = begin(with_fault(m.of(1)));
  RendezvousOptions by_hand = with_fault(m.of(1));
  by_hand.own_output = true;
  check_told(start_of(by_hand), 1);
  check_told(shared.get(), 1);
  // Rank 0 cannot listen where it should.
  RendezvousOptions zero = with_fault(m.options);
  zero.address = "203.0.113.1";
  check_told(start_of(zero), 1);
}

TEST_CASE("a rank that was let in and is gone again ends the start") {
  Meeting m(4);  // rank 3 does not come
  m.options.timeout_seconds = 600;
  auto zero = begin(m.of(0)), two = begin(m.of(2));
  {
    Credential credential{m.options.token.text, m.options.run, "rendezvous"};
    enter({"127.0.0.1", m.options.port, "rank 0"}, &credential,
          encode(Hello{1, 4, "there", "process"}), in_seconds(30), nullptr);
  }
  const Start at_zero = zero.get();
  CHECK(at_zero.code == 1);
  REQUIRE(at_zero.reported.size() == 1);
  CHECK(at_zero.reported.front().rank == 1);
  CHECK(at_zero.reported.front().host == "there");
  CHECK(at_zero.message.find("its connection closed before all ranks had met") == 0);
  CHECK(two.get().message == at_zero.message);
}

TEST_CASE("ranks that wait say after some seconds for whom and where") {
  Meeting m(3);
  std::promise<std::string> of_zero, of_one, of_two;
  const auto saying = [&](int rank, std::promise<std::string>* said) {
    RendezvousOptions o = m.of(rank);
    o.own_output = true;
    o.say = [said](const std::string& text) { said->set_value(text); };
    return o;
  };
  RendezvousOptions lonely = saying(2, &of_two);
  {
    const Socket nobody = listen_on("127.0.0.1", 0);
    lonely.port = port_of(nobody);
  }
  lonely.timeout_seconds = 8;
  auto two = begin(lonely);
  auto zero = begin(saying(0, &of_zero)), one = begin(saying(1, &of_one));
  const std::string place = "127.0.0.1:" + std::to_string(m.options.port);
  CHECK(of_zero.get_future().get() ==
        "after 5 s rank 0 on here waits at " + place +
            " for rank 2 of 3; --distributed-timeout-minutes (0.5) is the limit");
  CHECK(of_one.get_future().get() ==
        "after 5 s rank 1 on here waits for rank 0 at " + place + ", which waits for other ranks");
  CHECK(of_two.get_future().get() ==
        "after 5 s rank 2 on here waits for rank 0 at 127.0.0.1:" + std::to_string(lonely.port) +
            ", and no process listens there: rank 0 has not been started, has ended, or was given "
            "another address");
  CHECK(two.get().code == -1);
  // A process that is refused is said to be so, and does not end what others have begun.
  RendezvousOptions wrong = m.of(2);
  wrong.size = 4;
  CHECK(start_of(wrong).message.find("rank 0 counts 3 ranks and rank 2 counts 4") !=
        std::string::npos);
  CHECK(start_of(m.of(2)).code == 0);
  CHECK(zero.get().code == 0);
  CHECK(one.get().code == 0);
}

TEST_CASE("a rank of another version is rejected with a message") {
  Meeting m(2);
  m.options.timeout_seconds = 0.3;
  // It waits in the listener's queue before rank 0 begins.
  const Socket visitor = connect_until("127.0.0.1", m.options.port, in_seconds(30));
  std::string hello;
  for (const char* word : {"tallyrv0", "test", "1", "2", "here"}) put(&hello, std::string(word));
  send_message(visitor, Message::hello, hello);
  auto zero = std::async(std::launch::async, [&] {
    CHECK_THROWS_AS(Rendezvous::meet(m.of(0), {}), CommunicationError);
  });
  Message type{};
  std::string body;
  CHECK(receive_message(visitor, in_seconds(30), &type, &body));
  CHECK(type == Message::refused);
  CHECK(body.find("it is another version of tally-train: start the same build") == 0);
  zero.get();
}

// A process that is stopped keeps its connection open.
TEST_CASE("rank 0 notices that a rank is silent") {
  Meeting m(2);
  m.options.silence_seconds = 0.5;
  auto zero = std::async(std::launch::async, [&] {
    return Rendezvous::meet(m.of(0), [&](const Failure& f) {
      const std::lock_guard<std::mutex> lock(m.mutex);
      m.told[0] = f;
      m.changed.notify_all();
    });
  });
  Credential credential{m.options.token.text, m.options.run, "rendezvous"};
  const Socket rank = enter({"127.0.0.1", m.options.port, "rank 0"}, &credential,
                            encode(Hello{1, 2, "elsewhere", ""}), in_seconds(30), nullptr);
  m.ranks[0] = zero.get();
  const Failure f = m.wait_for(0);
  CHECK(f.rank == 1);
  CHECK(f.host == "elsewhere");
  CHECK(f.message.find("it has sent no sign of life for ") == 0);
  // It learns it when it goes on.
  Message type{};
  std::string body;
  while (receive_message(rank, in_seconds(30), &type, &body) && type != Message::failure) {
  }
  CHECK(type == Message::failure);
  CHECK(decode_failure(body).rank == 1);
}

TEST_CASE("ranks that are busy for longer than the limit are not silent") {
  Meeting m(3);
  m.options.silence_seconds = 1;
  m.start();
  std::unique_lock<std::mutex> lock(m.mutex);
  CHECK(!m.changed.wait_for(lock, std::chrono::seconds(3), [&] { return !m.told.empty(); }));
}

TEST_CASE("silence is counted from the last message, and not while this process was stopped") {
  using std::chrono::seconds;
  const SilenceWatch::Clock::time_point start{};
  SilenceWatch watch(2, 12, 36, start);
  CHECK(watch.interval() == seconds(3));
  CHECK(SilenceWatch(1, 600, 600, start).interval() == seconds(5));
  const auto round = [&](int second) {
    watch.round(start + seconds(second));
    return std::make_pair(watch.process_silent(0, start + seconds(second)),
                          watch.process_silent(1, start + seconds(second)));
  };
  for (int second = 3; second <= 12; second += 3) {
    watch.heard(0, start + seconds(second));
    CHECK(round(second) == std::make_pair(false, false));
  }
  CHECK(round(15) == std::make_pair(false, true));
  // Nobody called for an hour.
  CHECK(round(3600) == std::make_pair(false, false));
  for (int second = 3603; second <= 3612; second += 3) round(second);
  CHECK(round(3613) == std::make_pair(true, true));
}

TEST_CASE("a host that does not answer has more time than a process whose host does") {
  using std::chrono::seconds;
  const SilenceWatch::Clock::time_point start{};
  SilenceWatch watch(2, 6, 60, start);
  const auto silent = [&](int second, bool answers) {
    const auto now = start + seconds(second);
    watch.round(now);
    watch.host_answers(0, answers, now);
    watch.host_answers(1, true, now);
    return watch.process_silent(0, now);
  };
  // The network fails for half a minute. Then messages that were lost are sent again.
  for (int second = 1; second <= 30; ++second) CHECK(!silent(second, false));
  CHECK(watch.process_silent(1, start + seconds(30)));
  for (int second = 31; second <= 36; ++second) CHECK(!silent(second, true));
  CHECK(silent(37, true));
  CHECK(!watch.host_silent(0, start + seconds(60)));
  CHECK(watch.host_silent(0, start + seconds(61)));
}

TEST_CASE("a host name that nobody knows") {
  try {
    look_up("no..such.host", in_seconds(30));
    FAIL("it is known");
  } catch (const CommunicationError& e) {
    CHECK(std::string(e.what()).find("the host name 'no..such.host' of rank 0 is unknown") == 0);
  }
  CHECK(look_up("127.0.0.1", in_seconds(30)) == std::vector<std::string>{"127.0.0.1"});
}

TEST_CASE("a port in use and an unknown host") {
  const Socket first = listen_on("127.0.0.1", 0);
  CHECK_THROWS_AS(listen_on("127.0.0.1", port_of(first)), CommunicationError);
  CHECK_THROWS_AS(interface_address("none0"), LaunchError);
  CHECK(interface_address("lo") == "127.0.0.1");
  CHECK(!listen_on("203.0.113.1", 0).open());  // RFC 5737: nobody's
}
