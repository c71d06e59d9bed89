// How the ranks of a rendezvous find each other: before the watching thread begins.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "src/parallel/control/door.h"
#include "src/parallel/control/process_state.h"
#include "src/parallel/control/star.h"

namespace tally::train {
namespace {

constexpr const char* purpose = "rendezvous";
// Until a file that rank 0 has made is seen on another host; never so long that rank 0 gives up.
constexpr auto patience_with_file_servers = std::chrono::seconds(60);

// 127.0.0.1 itself, and not the name of a host that /etc/hosts gives that address.
bool names_loopback(const std::string& host) {
  return is_loopback(host) || host.rfind("localhost", 0) == 0;
}

// Where the ranks of a run that was given no token meet: they are processes of one user on one host.
std::string loopback_place(const RendezvousOptions& options, Deadline deadline) {
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

// The token where it is known before rank 0 is.
void Star::find_token() {
  const TokenSource& source = options_.token;
  token_ = source.text;
  if (source.file.empty() || source.zero_makes) return;
  const auto token = read_token(source.file);
  if (!token) throw LaunchError(fmt::format("the token '{}' does not exist", source.file));
  token_ = *token;
}

// At the addresses of the host that was named, and at no others, with one exception: some systems
// give a host's own name to the loopback interface (127.0.1.1), where no other host can connect.
std::vector<Socket> Star::listen(Deadline deadline) const {
  if (options_.listening_fd >= 0) {
    std::vector<Socket> one;
    one.emplace_back(options_.listening_fd);
    return one;
  }
  std::vector<std::string> addresses = look_up(options_.address, deadline);
  const bool outside = !std::all_of(addresses.begin(), addresses.end(), is_loopback);
  const bool these_alone = options_.token.none() || names_loopback(options_.address);
  if (!options_.interface.empty() && !these_alone) {
    addresses.push_back(interface_address(options_.interface));
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
        "{} ({}) is no address of this host, on which rank 0 runs: correct MASTER_ADDR or "
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
    gives_token = listen_for_user(loopback_place(options_, deadline));
    token_ = new_token();
  }
  Door door(listen(deadline), credential(purpose), peers_.size(), std::move(gives_token));
  const auto missing = [&] {
    std::vector<int> ranks;
    for (int r = 1; r < options_.size; ++r)
      if (!peers_[static_cast<size_t>(r)].open()) ranks.push_back(r);
    return ranks;
  };
  while (!missing().empty()) {
    auto visitor = door.next(deadline);
    if (!visitor) give_up(missing(), door.strangers());
    admit(std::move(*visitor));
  }
  count_strangers(door.strangers());
  address_ = local_address(peers_[1]);
  std::string welcome;
  put(&welcome, options_.host);
  put(&welcome, process_name());
  for (size_t r = 1; r < peers_.size(); ++r) send_message(peers_[r], Message::welcome, welcome);
}

// One message for all: those that have come learn that this rank reports it.
void Star::give_up(const std::vector<int>& missing, int strangers) {
  std::string why = fmt::format(
      "{} of {} ranks did not connect to {}:{} within {:.0f} s: missing {}{}", missing.size(),
      options_.size, options_.address, options_.port, options_.timeout_seconds,
      missing.size() == 1 ? "rank " : "ranks ", fmt::join(missing, ", "));
  if (strangers > 0) why += "; " + describe_strangers(strangers);
  sending_ = std::vector<std::timed_mutex>(peers_.size());
  send_to_all(Message::failure, encode(Failure{0, options_.host, 1, why}));
  throw CommunicationError(why);
}

void Star::admit(Visitor visitor) {
  const Hello hello = decode_hello(visitor.words);
  const int rank = hello.rank;
  std::string why;
  if (hello.size != options_.size) {
    why = fmt::format("rank 0 counts {} ranks and rank {} counts {}", options_.size, rank,
                      hello.size);
  } else if (rank < 1 || rank >= hello.size || peers_[static_cast<size_t>(rank)].open()) {
    why = fmt::format("two processes say that they are rank {}", rank);
  }
  if (!why.empty()) return Door::refuse(visitor, why);
  Door::admit(visitor);
  hosts_[static_cast<size_t>(rank)] = hello.host;
  local_[static_cast<size_t>(rank)] = local_process(hello.process);
  peers_[static_cast<size_t>(rank)] = std::move(visitor.socket);
}

void Star::visit_zero(Deadline deadline) {
  const TokenSource& source = options_.token;
  const std::string place = source.none() ? loopback_place(options_, deadline) : "";
  Credential known = credential(purpose);
  const std::string words =
      encode(Hello{options_.rank, options_.size, options_.host, process_name()});
  peers_.push_back(enter({options_.address, options_.port, "rank 0"}, &known, words, deadline, [&] {
    if (source.zero_makes) token_ = wait_for_token(source.file, deadline);
    if (source.none()) token_ = ask_for_token(place, deadline);
    known.token = token_;
  }));
  address_ = local_address(peers_[0]);
  Message type{};
  std::string body;
  // Rank 0 gives up first, and its closed connection shows that.
  if (!receive_message(peers_[0], deadline + std::chrono::seconds(10), &type, &body))
    throw CommunicationError(
        fmt::format("rank 0 at {}:{} gave up before all {} ranks had connected", options_.address,
                    options_.port, options_.size));
  if (type == Message::failure) {
    wait_for_end_of_zero();
    throw ReportedByZero(decode_failure(body).message);
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
