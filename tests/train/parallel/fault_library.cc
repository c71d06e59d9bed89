// Preloaded into the ranks of a run, it makes one of them do what a broken machine would, from the
// moment at which a file appears:
//   FAULT=hang  the main thread of rank FAULT_RANK never comes back from its next look at the clock
//   FAULT=nan   the next numbers that rank FAULT_RANK sends to another one are no numbers
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <vector>

namespace {

bool is(const char* variable, const char* value) {
  const char* text = std::getenv(variable);
  return text != nullptr && value != nullptr && std::string_view(text) == value;
}

// Whether this is the rank and the time has come.
bool begins(const char* fault) {
  static const bool mine = is("FAULT_RANK", std::getenv("RANK"));
  const char* file = std::getenv("FAULT_FILE");
  return mine && file != nullptr && is("FAULT", fault) && access(file, F_OK) == 0;
}

template <typename F>
F original(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const auto real = original<int (*)(clockid_t, timespec*)>("clock_gettime");
  if (gettid() == getpid() && begins("hang"))
    for (;;) pause();
  return real(clock, time);
}

extern "C" ssize_t send(int fd, const void* data, size_t bytes, int flags) {
  static const auto real = original<ssize_t (*)(int, const void*, size_t, int)>("send");
  static std::atomic<bool> done{false};
  // Numbers, not heartbeats.
  if (bytes < 64 || (flags & MSG_DONTWAIT) == 0 || done || !begins("nan"))
    return real(fd, data, bytes, flags);
  done = true;
  const std::vector<char> all_ones(bytes, '\xff');
  return real(fd, all_ones.data(), bytes, flags);
}
