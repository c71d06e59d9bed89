#include "engine/results/read/mapped_faults.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace tally {
namespace {

// Reads lines of /proc/self/maps. A signal handler may call nothing that allocates.
class MapsReader {
 public:
  MapsReader() : fd_(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
  ~MapsReader() {
    if (fd_ >= 0) close(fd_);
  }
  MapsReader(const MapsReader&) = delete;
  MapsReader& operator=(const MapsReader&) = delete;

  // The next line without its newline, cut off where it is too long. False at the end.
  bool line(char* out, size_t size) {
    size_t length = 0;
    for (char c = next(); c != '\0'; c = next()) {
      if (c == '\n') {
        out[length] = '\0';
        return true;
      }
      if (length + 1 < size) out[length++] = c;
    }
    return false;
  }

 private:
  char next() {
    if (at_ == filled_) {
      const ssize_t got = fd_ < 0 ? 0 : read(fd_, block_.data(), block_.size());
      filled_ = got > 0 ? static_cast<size_t>(got) : 0;
      at_ = 0;
    }
    return at_ < filled_ ? block_[at_++] : '\0';
  }

  int fd_;
  std::array<char, 4096> block_{};
  size_t at_ = 0, filled_ = 0;
};

uintptr_t hexadecimal(const char** text) {
  uintptr_t value = 0;
  for (;; ++*text) {
    const char c = **text;
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return value;
    value = value * 16 + static_cast<uintptr_t>(digit);
  }
}

// The file that is mapped at the address. Null: none. `line` keeps its name.
const char* file_at(uintptr_t address, char* line, size_t size) {
  MapsReader maps;
  while (maps.line(line, size)) {
    const char* text = line;
    const uintptr_t start = hexadecimal(&text);
    if (*text++ != '-') continue;
    const uintptr_t end = hexadecimal(&text);
    if (address >= start && address < end) return strchr(text, '/');
  }
  return nullptr;
}

void say(const char* text) {
  [[maybe_unused]] const ssize_t put = write(STDERR_FILENO, text, strlen(text));
}

void on_bus_error(int number, siginfo_t* info, void*) {
  std::array<char, 4096> line{};
  const char* path = file_at(reinterpret_cast<uintptr_t>(info->si_addr), line.data(), line.size());
  if (path == nullptr) {  // a fault of the program itself
    signal(number, SIG_DFL);
    raise(number);
    return;
  }
  say("tally: error: '");
  say(path);
  say("' became shorter while it was read, or its disk failed; try again when nothing changes "
      "it\n");
  _exit(1);
}

}  // namespace

void report_faults_of_mapped_files() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace tally
