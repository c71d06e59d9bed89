#include "src/data/text/bus_errors.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

namespace tally::train {

// One entry of the list that the handler walks. Nodes are never freed, because the handler may be
// at any of them; an unused one has no address.
struct Node {
  std::atomic<const char*> begin{nullptr};
  std::atomic<size_t> bytes{0};
  std::atomic<bool> lost{false};
  Node* next = nullptr;
};

namespace {

// A signal handler can reach only globals.
std::atomic<Node*> first_node{nullptr};
struct sigaction handler_before {};
std::mutex changes;

// Replaces everything from the page of `at` to the end of the mapping by zeros. mmap is a system
// call, which a handler may make.
bool replace_lost_pages(const char* at) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (Node* node = first_node; node != nullptr; node = node->next) {
    const char* begin = node->begin;
    if (begin == nullptr || at < begin || at >= begin + node->bytes) continue;
    const uintptr_t from = reinterpret_cast<uintptr_t>(at) / page * page;
    const uintptr_t end = reinterpret_cast<uintptr_t>(begin) + node->bytes;
    if (mmap(reinterpret_cast<void*>(from), end - from, PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
      return false;
    node->lost = true;
    return true;
  }
  return false;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  if (replace_lost_pages(static_cast<const char*>(info->si_addr))) {
    errno = saved;
    return;
  }
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) {
    handler_before.sa_sigaction(signal, info, context);
  } else if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
    handler_before.sa_handler(signal);
  } else {
    std::signal(SIGBUS, SIG_DFL);  // the read is repeated, and ends the process
    const bool sent = info->si_code <= 0;
    if (sent) raise(SIGBUS);  // a signal that somebody sent does not come again
  }
}

}  // namespace

void watch_bus_errors() {
  const std::lock_guard<std::mutex> lock(changes);
  struct sigaction current {};
  sigaction(SIGBUS, nullptr, &current);
  if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == on_bus_error) return;
  handler_before = current;
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

WatchedMapping::WatchedMapping(const char* data, size_t bytes) {
  watch_bus_errors();
  const std::lock_guard<std::mutex> lock(changes);
  node_ = first_node;
  while (node_ != nullptr && node_->begin != nullptr) node_ = node_->next;
  if (node_ == nullptr) {
    node_ = new Node;
    node_->next = first_node;
    first_node = node_;
  }
  node_->lost = false;
  node_->bytes = bytes;
  node_->begin = data;
}

WatchedMapping::~WatchedMapping() {
  const std::lock_guard<std::mutex> lock(changes);
  node_->begin = nullptr;
}

bool WatchedMapping::lost() const {
  return node_->lost.load(std::memory_order_relaxed);
}

}  // namespace tally::train
