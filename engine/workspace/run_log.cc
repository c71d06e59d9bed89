#include "engine/workspace/run_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/files.h"
#include "engine/base/secrets.h"

namespace tally {

RunLog::RunLog(const std::string& path, bool secrets)
    : fd_(open(path.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC | O_NOFOLLOW,
               secrets ? private_mode : 0644)) {
  if (fd_ >= 0 && secrets && fchmod(fd_, private_mode) != 0) {
    close(fd_);
    fd_ = -1;
  }
}

RunLog::~RunLog() {
  if (fd_ >= 0) close(fd_);
}

void RunLog::write(const std::string& text) {
  if (fd_ < 0) return;
  std::string line = fmt::format("[{}] ", time_stamp());
  for (const char c : text) {
    line += c;
    if (c == '\n') line += "    ";
  }
  line += '\n';
  // A log that cannot be written, for example on a full disk, must not end a run.
  [[maybe_unused]] const ssize_t put = ::write(fd_, line.data(), line.size());
}

}  // namespace tally
