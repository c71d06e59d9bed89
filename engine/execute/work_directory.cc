#include "engine/execute/work_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "engine/execute/run_directory.h"

namespace tally {
namespace {

namespace fs = std::filesystem;

Status failed(const std::string& path, const char* what, int reason) {
  return Status::error(path + ": " + what + ": " + strerror(reason));
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

// Like cp -a for one entry: make() and its like look at times.
Status copy_entry(const std::string& from, const std::string& to, bool follow) {
  struct stat info {};
  if ((follow ? stat(from.c_str(), &info) : lstat(from.c_str(), &info)) != 0) {
    return failed(from, "cannot read", errno);
  }
  if (S_ISLNK(info.st_mode)) {
    std::error_code error;
    fs::copy_symlink(from, to, error);
    if (error) return Status::error(to + ": cannot make the link: " + error.message());
    return Status::ok();
  }
  if (S_ISDIR(info.st_mode)) {
    if (mkdir(to.c_str(), 0777) != 0 && errno != EEXIST) {
      return failed(to, "cannot make the folder", errno);
    }
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(from, error)) {
      const std::string name = entry.path().filename().string();
      if (Status s = copy_entry(from + "/" + name, to + "/" + name, false); !s) return s;
    }
    if (error) return Status::error(from + ": cannot read: " + error.message());
    chmod(to.c_str(), info.st_mode & 07777);
  } else {
    std::error_code error;
    fs::copy_file(from, to, error);
    if (error) return Status::error(to + ": cannot copy " + from + ": " + error.message());
  }
  const std::array<timespec, 2> times{info.st_atim, info.st_mtim};
  utimensat(AT_FDCWD, to.c_str(), times.data(), 0);
  return Status::ok();
}

// Whether a process belongs to another job of a scheduler than we do: jobs may run on this host.
bool of_another_job(const std::string& pid) {
  const char* own = getenv("SLURM_JOB_ID");
  std::string text;
  if (!read_file("/proc/" + pid + "/environ", &text)) return false;
  text.insert(0, 1, '\0');
  const std::string name = std::string(1, '\0') + "SLURM_JOB_ID=";
  const size_t at = text.find(name);
  if (at == std::string::npos) return false;
  const size_t start = at + name.size();
  return text.substr(start, text.find('\0', start) - start) != (own != nullptr ? own : "");
}

// The processes whose standard output or error is a file below `folder`; jobs are not ours to end.
std::vector<int> writers_below(const std::string& folder) {
  std::vector<int> pids;
  DIR* list = opendir("/proc");
  if (list == nullptr) return pids;
  while (const dirent* entry = readdir(list)) {
    const int pid = static_cast<int>(strtol(entry->d_name, nullptr, 10));
    if (pid <= 1 || pid == getpid()) continue;
    for (const char* stream : {"1", "2"}) {
      std::array<char, 4096> target{};
      const std::string link = "/proc/" + std::string(entry->d_name) + "/fd/" + stream;
      const ssize_t size = readlink(link.c_str(), target.data(), target.size() - 1);
      if (size > 0 &&
          std::string(target.data(), static_cast<size_t>(size)).rfind(folder + "/", 0) == 0) {
        if (!of_another_job(entry->d_name)) pids.push_back(pid);
        break;
      }
    }
  }
  closedir(list);
  return pids;
}

}  // namespace

bool path_exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

Status make_link(const std::string& target, const std::string& path) {
  const std::string relative = relative_path(target, parent_of(path));
  if (symlink(relative.c_str(), path.c_str()) == 0 || errno == EEXIST) return Status::ok();
  return failed(path, "cannot make the link", errno);
}

Status place_file(const PlannedFile& file, const std::string& work_dir) {
  const std::string target = absolute_path(file.target, work_dir);
  struct stat info {};
  if (lstat(target.c_str(), &info) == 0) return Status::ok();
  if (Status s = make_directories(parent_of(target)); !s) return s;
  if (file.link) return make_link(file.source, target);
  // Aside and renamed: being killed leaves no half a file that the next try would take for whole.
  const std::string aside = target + ".tally-new";
  std::error_code error;
  fs::remove_all(aside, error);
  if (Status s = copy_entry(file.source, aside, true); !s) {
    fs::remove_all(aside, error);
    return s;
  }
  if (rename(aside.c_str(), target.c_str()) != 0) return failed(target, "cannot copy", errno);
  return Status::ok();
}

Status write_substituted(const std::vector<FileBytes>& files, const std::string& work_dir) {
  for (const FileBytes& file : files) {
    const std::string path = absolute_path(file.path, work_dir);
    if (Status s = make_directories(parent_of(path)); !s) return s;
    if (Status s = write_file(path, file.bytes, file.mode); !s) return s;
  }
  return Status::ok();
}

std::string last_lines(const std::string& path, size_t count) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  struct stat info {};
  std::string text;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
    // The end alone: the file may be huge.
    constexpr off_t most = 16384;
    const off_t start = std::max<off_t>(0, info.st_size - most);
    text.resize(static_cast<size_t>(info.st_size - start));
    const ssize_t got = pread(fd, text.data(), text.size(), start);
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  }
  close(fd);
  size_t at = text.size();
  if (at > 0 && text[at - 1] == '\n') --at;
  for (size_t lines = 0; at > 0; --at) {
    if (text[at - 1] == '\n' && ++lines == count) break;
  }
  return text.substr(at);
}

OutputSizes output_sizes(const std::vector<std::string>& paths) {
  OutputSizes sizes;
  for (const std::string& path : paths) {
    struct stat info {};
    if (stat(path.c_str(), &info) == 0) sizes.emplace_back(path, info.st_size);
  }
  return sizes;
}

void cut_back(const std::vector<std::string>& paths, const OutputSizes& sizes) {
  for (const std::string& path : paths) {
    off_t size = 0;
    for (const auto& [known, bytes] : sizes) {
      if (known == path) size = bytes;
    }
    struct stat info {};
    if (stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size > size) {
      [[maybe_unused]] const int done = truncate(path.c_str(), size);
    }
  }
}

void end_left_behind(const std::string& run_dir) {
  const std::string folder = absolute_path(run_dir);
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::vector<int> pids = writers_below(folder);
    if (pids.empty()) return;
    for (const int pid : pids) kill(pid, attempt < 20 ? SIGTERM : SIGKILL);
    usleep(50000);
  }
}

}  // namespace tally
