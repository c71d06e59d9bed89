// The set-up in which the ranks of a rendezvous find each other, before the watching thread begins.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <memory>

#include "src/parallel/control/door.h"
#include "src/parallel/control/process_state.h"
#include "src/parallel/control/star.h"

namespace tally::train {
namespace {

constexpr const char* purpose = "rendezvous";
// The time until a file that rank 0 has made is seen on another host; never so long that rank 0
// gives up.
constexpr auto patience_with_file_servers = std::chrono::seconds(60);
// Ranks of one start come within this, so that one that cannot take part has told them all.
constexpr auto patience_of_failed = std::chrono::seconds(10);
// More ranks than this are counted, and not listed.
constexpr size_t most_listed = 8;

// 127.0.0.1 itself, and not the name of a host that /etc/hosts gives that address.
bool names_loopback(const std::string& host) {
  return is_loopback(host) || host.rfind("localhost", 0) == 0;
}

// The name at which the ranks of a run without a token meet: they are processes of one user on one
// host.
std::string loopback_address(const RendezvousOptions& options, Deadline deadline) {
  const auto addresses = look_up(options.address, deadline);
  if (std::all_of(addresses.begin(), addresses.end(), is_loopback))
    return fmt::format("{}:{}", addresses.front(), options.port);
  throw LaunchError(fmt::format(
      "rank 0 is at {} ({}), where other hosts and users can connect, and this run has no token by "
      "which its ranks know each other: set {} to the same random text on every rank (openssl rand "
      "-hex 32 makes one), or write it to a file of mode 600 and give --rendezvous-token-file; "
      "ranks of one host need none with MASTER_ADDR=127.0.0.1",
      options.address, fmt::join(addresses, ", "), token_variable));
}

// One that is gone does not need to know.
void tell(const Socket& rank, const Failure& failure) {
  if (!rank.open()) return;
  try {
    send_message(rank, Message::failure, encode(failure));
  } catch (const CommunicationError&) {
  }
}

std::string wait_for_token(const std::string& file, Deadline deadline) {
  const auto now = Deadline::clock::now();
  deadline = std::min(now + (deadline - now) / 2, now + patience_with_file_servers);
  for (int pause = 5;; pause = std::min(pause * 2, 500)) {
    if (auto token = read_token(file)) return *token;
    if (milliseconds_until(deadline) == 0)
      throw LaunchError(fmt::format(
          "rank 0 listens, and its token '{}' is not in this rank's folder: start all ranks in one "
          "folder that their hosts share, or set {} to the same random text on every rank",
          file, token_variable));
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
}

}  // namespace

Credential Star::credential(const std::string& purpose) const {
  return {token_, options_.run, purpose};
}

Failure Star::own_fault() const {
  return {options_.rank, options_.host, options_.fault->code, options_.fault->message};
}

void Star::meet_others(Deadline deadline) {
  came_.resize(static_cast<size_t>(options_.size));
  came_[0] = 1;
  if (options_.fault) expect_no_more(options_.rank, options_.fault->ranks);
  if (options_.fault && (options_.rank == 0 || options_.own_output)) fail_start(own_fault());
  try {
    find_token();
    if (options_.rank == 0) {
      receive_all_ranks(deadline);
    } else {
      visit_zero(deadline);
    }
  } catch (const StartFailed&) {
    throw;
  } catch (const std::runtime_error&) {
    if (!options_.fault) throw;
    fail_start(own_fault());  // nobody could be told
    throw StartFailed(first_->message, first_->code);
  }
}

// The first failure is known before all ranks have met: it is reported, and told to those that have
// come and will come soon. Reported first, because a launcher may end all when one of them ends.
void Star::fail_start(const Failure& first) {
  if (first_) return;
  first_ = first;
  told_until_ = Deadline::clock::now() + patience_of_failed;
  if (options_.report) options_.report(first);
  if (options_.rank != 0) return;
  for (const Socket& rank : peers_) tell(rank, first);
}

// The token where it is known before rank 0 is.
void Star::find_token() {
  const TokenSource& source = options_.token;
  token_ = source.text;
  if (source.file.empty() || source.zero_makes) return;
  const auto token = read_token(source.file);
  if (!token) throw LaunchError(fmt::format("the token '{}' does not exist", source.file));
  token_ = *token;
}

// Rank 0 listens at the addresses of the host that was named, and at no others, with one exception:
// some systems give a host's own name to the loopback interface (127.0.1.1), where no other host
// can connect.
std::vector<Socket> Star::listen(Deadline deadline) {
  if (options_.listening_fd >= 0) {
    std::vector<Socket> one;
    one.emplace_back(options_.listening_fd);
    return one;
  }
  std::vector<std::string> addresses = look_up(options_.address, deadline);
  const bool outside = !std::all_of(addresses.begin(), addresses.end(), is_loopback);
  const bool these_alone = options_.token.none() || names_loopback(options_.address);
  if (!options_.interface.empty() && !these_alone) {
    try {
      addresses.push_back(interface_address(options_.interface));
    } catch (const LaunchError& e) {
      fail_start({0, options_.host, 2, e.what()});
    }
  } else if (!outside && !options_.one_host && !these_alone) {
    const auto more = outer_addresses();
    addresses.insert(addresses.end(), more.begin(), more.end());
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  std::vector<Socket> listeners;
  for (const std::string& address : addresses)
    if (Socket s = listen_on(address, options_.port); s.open()) listeners.push_back(std::move(s));
  if (listeners.empty())
    throw CommunicationError(fmt::format(
        "{} ({}) is not an address of this host, on which rank 0 runs: correct MASTER_ADDR or "
        "--master-addr, or name the interface on which rank 0 is reached by --network-interface",
        options_.address, fmt::join(addresses, ", ")));
  return listeners;
}

void Star::receive_all_ranks(Deadline deadline) {
  peers_.resize(static_cast<size_t>(options_.size));
  local_.resize(peers_.size());
  hosts_[0] = options_.host;
  std::unique_ptr<TokenFile> made;
  if (options_.token.zero_makes) {  // before anybody can connect, and look for it
    made = std::make_unique<TokenFile>(options_.token.file);
    token_ = made->token();
  }
  Socket gives_token;
  if (options_.token.none()) {
    gives_token = listen_for_user(loopback_address(options_, deadline));
    token_ = new_token();
  }
  Door door(listen(deadline), credential(purpose), peers_.size(), std::move(gives_token));
  gather(&door, deadline);
  if (first_) throw StartFailed(first_->message, first_->code);
  count_strangers(door.strangers());
  address_ = local_address(peers_[1]);
  std::string welcome;
  put(&welcome, options_.host);
  put(&welcome, process_name());
  for (size_t r = 1; r < peers_.size(); ++r) send_message(peers_[r], Message::welcome, welcome);
}

std::vector<int> Star::missing_ranks() const {
  std::vector<int> ranks;
  for (int r = 1; r < options_.size; ++r)
    if (came_[static_cast<size_t>(r)] == 0) ranks.push_back(r);
  return ranks;
}

std::string Star::waits_for(const std::vector<int>& missing) const {
  const std::vector<int> listed(missing.begin(),
                                missing.begin() + std::min(missing.size(), most_listed));
  std::string text =
      fmt::format("rank 0 on {} waits at {}:{} for rank{} {}", options_.host, options_.address,
                  options_.port, missing.size() == 1 ? "" : "s", fmt::join(listed, ", "));
  if (missing.size() > listed.size())
    text += fmt::format(" and {} more", missing.size() - listed.size());
  text += fmt::format(" of {}; --distributed-timeout-minutes ({:g}) is the limit", options_.size,
                      options_.timeout_seconds / 60);
  return refused_.empty() ? text : text + "; a process was not let in: " + refused_;
}

// Lets all ranks in, or as many as come before the first failure has been told.
void Star::gather(Door* door, Deadline deadline) {
  WaitingNotes notes(first_ ? nullptr : options_.say);
  for (auto missing = missing_ranks(); !missing.empty(); missing = missing_ranks()) {
    notes.set(first_ ? "" : waits_for(missing));
    if (first_) deadline = std::min(deadline, told_until_);
    if (auto visitor = door->next(deadline, peers_)) {
      admit(std::move(*visitor));
    } else if (milliseconds_until(deadline) > 0) {
      lose_waiting_ranks();
    } else if (first_) {
      return;
    } else {
      give_up(missing, door->strangers());
    }
  }
}

// A rank that waits for the others says nothing: what comes is the end of its connection.
void Star::lose_waiting_ranks() {
  for (size_t r = 1; r < peers_.size(); ++r) {
    pollfd arrived{peers_[r].fd(), POLLIN, 0};
    if (!peers_[r].open() || poll(&arrived, 1, 0) <= 0) continue;
    peers_[r] = Socket();
    if (first_) continue;
    pollfd news{supervisor_, POLLIN, 0};
    const int wait = static_cast<int>(std::chrono::milliseconds(patience_for_news).count());
    std::optional<Failure> known;
    if (supervisor_ >= 0 && poll(&news, 1, wait) > 0) known = read_news();
    fail_start(known.value_or(Failure{
        static_cast<int>(r), hosts_[r], 1,
        "its connection closed before all ranks had met: it was killed, or its node failed"}));
  }
}

// One message for all: those that have come learn that this rank reports it.
void Star::give_up(const std::vector<int>& missing, int strangers) {
  std::string why = fmt::format(
      "{} of {} ranks did not connect to {}:{} within {:.0f} s: missing {}{}", missing.size(),
      options_.size, options_.address, options_.port, options_.timeout_seconds,
      missing.size() == 1 ? "rank " : "ranks ", fmt::join(missing, ", "));
  if (!refused_.empty()) why += "; a process was not let in: " + refused_;
  if (strangers > 0) why += "; " + describe_strangers(strangers);
  for (const Socket& rank : peers_) tell(rank, Failure{0, options_.host, 1, why});
  throw CommunicationError(why);
}

void Star::admit(Visitor visitor) {
  const Hello hello = decode_hello(visitor.words);
  const int rank = hello.rank;
  std::string why;
  if (hello.size != options_.size) {
    why = fmt::format("rank 0 counts {} ranks and rank {} counts {}", options_.size, rank,
                      hello.size);
  } else if (rank < 1 || rank >= hello.size || came_[static_cast<size_t>(rank)] != 0) {
    why = fmt::format("two processes say that they are rank {}", rank);
  }
  if (!why.empty()) {
    refused_ = why;
    return Door::refuse(visitor, why);
  }
  Door::admit(visitor);
  came_[static_cast<size_t>(rank)] = 1;
  hosts_[static_cast<size_t>(rank)] = hello.host;
  local_[static_cast<size_t>(rank)] = local_process(hello.process);
  Socket& peer = peers_[static_cast<size_t>(rank)];
  peer = std::move(visitor.socket);
  if (hello.fault) expect_no_more(rank, hello.fault->ranks);
  if (first_) {
    tell(peer, *first_);
  } else if (hello.fault) {
    fail_start({rank, hello.host, hello.fault->code, hello.fault->message});
  }
}

void Star::expect_no_more(int rank, int ranks) {
  for (int r = rank; r < options_.size && r - rank < ranks; ++r) came_[static_cast<size_t>(r)] = 1;
}

void Star::visit_zero(Deadline deadline) {
  if (options_.fault) deadline = std::min(deadline, Deadline::clock::now() + patience_of_failed);
  WaitingNotes notes(options_.fault ? nullptr : options_.say);
  const std::string waits = fmt::format("rank {} on {} waits for rank 0 at {}:{}", options_.rank,
                                        options_.host, options_.address, options_.port);
  notes.set(waits +
            ", and no process listens there: rank 0 has not been started, has ended, or was given "
            "another address");
  const TokenSource& source = options_.token;
  const std::string loopback = source.none() ? loopback_address(options_, deadline) : "";
  Credential known = credential(purpose);
  const std::string words =
      encode(Hello{options_.rank, options_.size, options_.host, process_name(), options_.fault});
  peers_.push_back(enter({options_.address, options_.port, "rank 0"}, &known, words, deadline, [&] {
    notes.set(waits + ", where somebody listens and has not let this rank in");
    if (source.zero_makes) token_ = wait_for_token(source.file, deadline);
    if (source.none()) token_ = ask_for_token(loopback, deadline);
    known.token = token_;
  }));
  notes.set(options_.own_output ? waits + ", which waits for other ranks" : "");
  address_ = local_address(peers_[0]);
  hear_zero(deadline, &notes);
}

void Star::hear_zero(Deadline deadline, WaitingNotes* notes) {
  Message type{};
  std::string body;
  // Rank 0 gives up first, and its closed connection shows that.
  if (!receive_message(peers_[0], deadline + std::chrono::seconds(10), &type, &body))
    throw CommunicationError(
        fmt::format("rank 0 at {}:{} gave up before all {} ranks had connected", options_.address,
                    options_.port, options_.size));
  if (type == Message::failure) {
    const Failure first = decode_failure(body);
    notes->set("");
    if (options_.own_output) fail_start(first);
    wait_for_end_of_zero(patience_of_failed + patience_with_zero);
    throw StartFailed(first.message, first.code);
  }
  Reader in(body);
  hosts_[0] = in.text();
  local_.push_back(local_process(in.text()));
}

std::string describe_strangers(int count) {
  return count == 1
             ? "one connection was refused: it did not prove that it belongs to this run"
             : fmt::format(
                   "{} connections were refused: they did not prove that they belong to this run",
                   count);
}

}  // namespace tally::train
