#include "src/checkpoint/save_folder.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>

#include "src/checkpoint/latest_checkpoint.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;

std::string this_host() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

// Whether a name made by temporary_name() belongs to a process of this host that no longer exists.
bool is_of_the_dead(const std::string& name) {
  const std::string stem = name.substr(0, name.size() - std::strlen(".tmp"));
  const size_t dot = stem.rfind('.');
  const pid_t pid = std::atoi(stem.c_str() + dot + 1);
  if (pid <= 0 || !stem.substr(0, dot).ends_with("." + this_host())) return false;
  return kill(pid, 0) != 0 && errno == ESRCH;
}

// Whether the open file still has that name: its last holder may have removed it while we waited to
// open it.
bool is_still(int fd, const std::string& path) {
  struct stat ours {};
  struct stat named {};
  return fstat(fd, &ours) == 0 && stat(path.c_str(), &named) == 0 && ours.st_dev == named.st_dev &&
         ours.st_ino == named.st_ino;
}

std::string text_of(int fd) {
  std::array<char, 512> text{};
  const ssize_t bytes = pread(fd, text.data(), text.size(), 0);
  std::string line(text.data(), bytes > 0 ? static_cast<size_t>(bytes) : 0);
  return line.substr(0, line.find('\n'));
}

}  // namespace

MadeFolders::MadeFolders(const fs::path& path) {
  std::vector<fs::path> missing;
  fs::path at = normal_path(path);
  for (; !fs::exists(at) && at.has_relative_path(); at = at.parent_path()) missing.push_back(at);
  try {
    for (auto folder = missing.rbegin(); folder != missing.rend(); ++folder)
      if (fs::create_directory(*folder)) made_.push_back(*folder);
  } catch (const fs::filesystem_error&) {
    remove_empty();
    throw;
  }
}

MadeFolders::~MadeFolders() {
  remove_empty();
}

void MadeFolders::remove_empty() {
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) rmdir(folder->c_str());
}

int take_flock(int fd) {
  return flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
}

namespace {

// The error for a folder that checkpoints cannot be written to.
std::runtime_error unwritable_checkpoint(const std::string& root, const std::string& at,
                                         int fault) {
  return std::runtime_error(fmt::format("checkpoints cannot be written under '{}': '{}': {}", root,
                                        at, std::strerror(fault)));
}

MadeFolders make_folders(const std::string& root) {
  try {
    return MadeFolders(root);
  } catch (const fs::filesystem_error& e) {
    throw unwritable_checkpoint(root, e.path1().string(), e.code().value());
  }
}

}  // namespace

SaveFolder::SaveFolder(const std::string& root, const TakeLock& take)
    : file_((fs::path(root) / ".tally-train.lock").string()), made_(make_folders(root)) {
  int fault = 0;
  for (bool ours = false; !ours;) {
    fd_ = open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) throw unwritable_checkpoint(root, root, errno);
    fault = take(fd_);
    ours = fault != 0 || is_still(fd_, file_);
    if (!ours) close(fd_);
  }
  if (fault == EWOULDBLOCK) {
    const std::string holder = text_of(fd_);
    close(fd_);
    throw std::runtime_error(
        fmt::format("another run writes its checkpoints to '{}' ({}): wait for its end, or give "
                    "another folder; if that run no longer exists, remove '{}'",
                    root, holder.empty() ? "it has just begun" : holder, file_));
  }
  if (fault != 0)
    notice_ =
        fmt::format("--save: '{}' cannot be locked ({}): see to it that no other run writes there",
                    root, std::strerror(fault));
  say_who();
  remove_leftovers(root, fault == 0);
}

SaveFolder::~SaveFolder() {
  unlink(file_.c_str());  // while it is still ours
  close(fd_);
}

void SaveFolder::say_who() const {
  const std::string text = fmt::format("process {} on {} since {:%Y-%m-%dT%H:%M:%SZ}\n", getpid(),
                                       this_host(), fmt::gmtime(std::time(nullptr)));
  // The text is for people. If it cannot be written, the lock still holds.
  if (ftruncate(fd_, 0) != 0 || pwrite(fd_, text.data(), text.size(), 0) < 0) return;
}

Unfinished::Unfinished(fs::path folder) : path(std::move(folder)) {
  fs::remove_all(path);
  fs::create_directory(path);
}

Unfinished::~Unfinished() {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

std::string temporary_name(const std::string& stem) {
  return fmt::format(".{}.{}.{}.tmp", stem, this_host(), getpid());
}

void remove_leftovers(const fs::path& root, bool alone) {
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    const bool ours =
        name.rfind(".iter_", 0) == 0 || name.rfind(fmt::format(".{}.", latest_file), 0) == 0;
    if (ours && name.ends_with(".tmp") && (alone || is_of_the_dead(name)))
      fs::remove_all(entry.path());
  }
}

}  // namespace tally::train
