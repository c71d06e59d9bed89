// The communicator that needs no library: a TCP connection between every two processes, with ring
// algorithms. For the CPU.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "src/parallel/collectives/module.h"
#include "src/parallel/control/door.h"
#include "src/parallel/control/tcp.h"

namespace tally::train {
namespace {

constexpr auto patience = std::chrono::minutes(10);
constexpr size_t broadcast_piece = size_t{1} << 20;

// The connection to another rank. Messages that are not waited for are sent by a thread, in their
// order and before any later message.
class Peer {
 public:
  Peer() = default;
  explicit Peer(Socket socket) : socket_(std::move(socket)) {}
  ~Peer() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const Socket& socket() const { return socket_; }
  void start_send(std::vector<char> message) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      waiting_.push_back(std::move(message));
    }
    if (!thread_.joinable()) thread_ = std::thread([this] { send_waiting(); });
    changed_.notify_all();
  }
  // Returns when everything has been handed to the system; false when the peer is gone.
  bool flush() {
    if (!thread_.joinable()) return true;
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return waiting_.empty() || lost_; });
    return !lost_;
  }

 private:
  void send_waiting() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !waiting_.empty() || ends_; });
      if (waiting_.empty() || lost_) return;
      const std::vector<char>& message = waiting_.front();  // stays in place: one thread removes
      lock.unlock();
      bool sent = true;
      try {
        send_all(socket_, message.data(), message.size());
      } catch (const CommunicationError&) {
        sent = false;
      }
      lock.lock();
      lost_ = !sent;
      waiting_.pop_front();
      changed_.notify_all();
    }
  }

  Socket socket_;
  std::thread thread_;  // started by the first message
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<char>> waiting_;
  bool ends_ = false, lost_ = false;
};

// One connection to every other rank of the run, null at its own index; shared by all groups.
using Mesh = std::vector<std::unique_ptr<Peer>>;

std::string purpose_of(int listener) {
  return fmt::format("mesh {}", listener);
}

// Every rank listens for those after it, and connects to those before it.
std::shared_ptr<Mesh> connect_mesh(const ModuleContext& context) {
  Rendezvous& meeting = *context.meeting;
  const std::string address =
      context.interface.empty() ? meeting.address() : interface_address(context.interface);
  std::vector<Socket> listeners;
  listeners.push_back(listen_on(address, 0));
  const auto addresses =
      meeting.exchange(fmt::format("{} {}", address, port_of(listeners.front())));
  const Deadline deadline = std::chrono::steady_clock::now() + patience;
  auto mesh = std::make_shared<Mesh>(addresses.size());
  const int rank = meeting.rank();
  const auto after = static_cast<size_t>(meeting.size() - 1 - rank);
  Door door(std::move(listeners), meeting.credential(purpose_of(rank)), after);
  for (int r = 0; r < rank; ++r) {
    const std::string& other = addresses[static_cast<size_t>(r)];
    const size_t space = other.find(' ');
    Credential credential = meeting.credential(purpose_of(r));
    (*mesh)[static_cast<size_t>(r)] = std::make_unique<Peer>(
        enter({other.substr(0, space), std::stoi(other.substr(space)), fmt::format("rank {}", r)},
              &credential, std::to_string(rank), deadline, nullptr));
  }
  for (size_t left = after; left > 0;) {
    auto visitor = door.next(deadline);
    if (!visitor) throw CommunicationError("not all ranks connected to each other");
    const int from = std::atoi(visitor->words.c_str());
    if (from <= rank || from >= meeting.size() || (*mesh)[static_cast<size_t>(from)]) continue;
    Door::admit(*visitor);
    (*mesh)[static_cast<size_t>(from)] = std::make_unique<Peer>(std::move(visitor->socket));
    --left;
  }
  meeting.count_strangers(door.strangers());
  return mesh;
}

struct Bytes {
  char* data = nullptr;
  size_t count = 0;
};

// Moves what can be moved now; false when the peer has closed.
bool send_some(const Socket& socket, Bytes* out) {
  const ssize_t n = send(socket.fd(), out->data, out->count, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  *out = {out->data + n, out->count - static_cast<size_t>(n)};
  return true;
}
bool receive_some(const Socket& socket, Bytes* in) {
  const ssize_t n = recv(socket.fd(), in->data, in->count, MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n == 0) return false;
  *in = {in->data + n, in->count - static_cast<size_t>(n)};
  return true;
}

class Sockets final : public Communicator {
 public:
  // members[i]: the index of rank i in the mesh.
  Sockets(std::shared_ptr<Mesh> mesh, std::vector<int> members, int rank)
      : Communicator(rank, static_cast<int>(members.size())),
        mesh_(std::move(mesh)),
        members_(std::move(members)) {}
  CommunicatorInfo info() const override { return {"sockets", "", {}}; }

 private:
  Peer& peer(int rank) const {
    return *(*mesh_)[static_cast<size_t>(members_[static_cast<size_t>(rank)])];
  }
  const Socket& socket(int rank) const { return peer(rank).socket(); }
  int right() const { return (rank() + 1) % size(); }
  int left() const { return (rank() + size() - 1) % size(); }

  // Sends and receives at the same time, so that no two ranks wait for each other to read.
  void move(Bytes out, int to, Bytes in, int from) const {
    if (out.count > 0 && !peer(to).flush()) lost(to);
    while (out.count > 0 || in.count > 0) {
      pollfd fds[2] = {{out.count > 0 ? socket(to).fd() : -1, POLLOUT, 0},
                       {in.count > 0 ? socket(from).fd() : -1, POLLIN, 0}};
      if (poll(fds, 2, -1) < 0) continue;
      if (fds[0].revents != 0 && !send_some(socket(to), &out)) lost(to);
      if (fds[1].revents != 0 && !receive_some(socket(from), &in)) lost(from);
    }
  }
  [[noreturn]] void lost(int rank) const {
    throw CommunicationError(
        fmt::format("the connection to rank {} was lost", members_[static_cast<size_t>(rank)]));
  }

  // The part of rank i when `count` elements are divided.
  Bytes share(const Tensor& t, int i) const {
    const int64_t n = t.numel(), first = n * i / size(), last = n * (i + 1) / size();
    const size_t width = size_of(t.dtype);
    return {static_cast<char*>(t.data) + static_cast<size_t>(first) * width,
            static_cast<size_t>(last - first) * width};
  }
  int wrapped(int i) const { return (i % size() + size()) % size(); }

  // Afterwards rank i holds the reduced part wrapped(i + offset) of t; the rest of t is scratch.
  void ring_reduce(const Tensor& t, Reduce op, int offset) {
    scratch_.resize(share(t, size() - 1).count + size_of(t.dtype));
    for (int step = 0; step < size() - 1; ++step) {
      const Bytes out = share(t, wrapped(rank() + offset - 1 - step));
      const Bytes mine = share(t, wrapped(rank() + offset - 2 - step));
      const Bytes in{scratch_.data(), mine.count};
      move(out, right(), in, left());
      reduce_elements(t.dtype, op, in.data, mine.data,
                      static_cast<int64_t>(mine.count / size_of(t.dtype)));
    }
  }
  // Distributes rank i's part wrapped(i + offset), so that all ranks have all parts.
  void ring_gather(const Tensor& t, int offset) {
    for (int step = 0; step < size() - 1; ++step)
      move(share(t, wrapped(rank() + offset - step)), right(),
           share(t, wrapped(rank() + offset - 1 - step)), left());
  }

  void do_all_reduce(Stream&, const Tensor& t, Reduce op) override {
    ring_reduce(t, op, 0);
    ring_gather(t, 0);
  }
  void do_broadcast(Stream&, const Tensor& t, int root) override {
    const bool first = rank() == root, last = right() == root;
    for (size_t at = 0; at < t.bytes(); at += broadcast_piece) {
      const Bytes piece{static_cast<char*>(t.data) + at, std::min(broadcast_piece, t.bytes() - at)};
      if (!first) move({}, 0, piece, left());
      if (!last) move(piece, right(), {}, 0);
    }
  }
  void do_all_gather(Stream&, const Tensor& part, const Tensor& whole) override {
    const Bytes mine = share(whole, rank());
    if (mine.data != part.data) std::memcpy(mine.data, part.data, mine.count);
    ring_gather(whole, 0);
  }
  void do_reduce_scatter(Stream&, const Tensor& whole, const Tensor& part, Reduce op) override {
    // The ring overwrites its memory, but `whole` must keep all but this rank's part.
    copy_.assign(static_cast<const char*>(whole.data),
                 static_cast<const char*>(whole.data) + whole.bytes());
    const Tensor copy(copy_.data(), whole.dtype, {whole.numel()});
    ring_reduce(copy, op, 0);
    const Bytes mine = share(copy, rank());
    std::memcpy(part.data, mine.data, mine.count);
  }
  void do_send_receive(Stream&, const Tensor& out, int to, const Tensor& in, int from) override {
    const auto bytes = [](const Tensor& t) {
      return t.defined() ? Bytes{static_cast<char*>(t.data), t.bytes()} : Bytes{};
    };
    move(bytes(out), to, bytes(in), from);
  }

  void do_start_send(Stream&, const Tensor& t, int to) override {
    const auto* data = static_cast<const char*>(t.data);
    peer(to).start_send({data, data + t.bytes()});
  }

  std::unique_ptr<Communicator> do_split(int color, int key) override {
    std::vector<int32_t> all(static_cast<size_t>(size()) * 2);
    const Tensor whole(all.data(), DType::i32, {static_cast<int64_t>(all.size())});
    all[static_cast<size_t>(rank()) * 2] = color;
    all[static_cast<size_t>(rank()) * 2 + 1] = key;
    ring_gather(whole, 0);
    if (color < 0) return nullptr;
    std::vector<std::pair<int, int>> group;  // key, rank here
    for (int r = 0; r < size(); ++r)
      if (all[static_cast<size_t>(r) * 2] == color)
        group.emplace_back(all[static_cast<size_t>(r) * 2 + 1], r);
    std::sort(group.begin(), group.end());
    std::vector<int> members;
    int mine = 0;
    for (const auto& [k, r] : group) {
      if (r == rank()) mine = static_cast<int>(members.size());
      members.push_back(members_[static_cast<size_t>(r)]);
    }
    if (members.size() == 1) return make_single_communicator();
    return std::make_unique<Sockets>(mesh_, std::move(members), mine);
  }

  std::shared_ptr<Mesh> mesh_;
  std::vector<int> members_;
  std::vector<char> scratch_, copy_;
};

}  // namespace

std::unique_ptr<Communicator> make_sockets_communicator(const ModuleContext& context) {
  if (context.device.is_cuda())
    throw CommunicationError("sockets carry the memory of CPUs, not of GPUs");
  std::vector<int> members(static_cast<size_t>(context.meeting->size()));
  for (size_t i = 0; i < members.size(); ++i) members[i] = static_cast<int>(i);
  return std::make_unique<Sockets>(connect_mesh(context), std::move(members),
                                   context.meeting->rank());
}

}  // namespace tally::train
