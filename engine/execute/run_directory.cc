#include "engine/execute/run_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "engine/base/host.h"

namespace tally {
namespace {

Status failed(const std::string& path, const char* what, int reason) {
  std::string hint;
  if (reason == EACCES || reason == EROFS || reason == EPERM) {
    hint = "; choose a folder that you may write to with --outpath";
  } else if (reason == ENOSPC || reason == EDQUOT) {
    hint = "; free some space and continue the run";
  }
  return Status::error(path + ": " + what + ": " + strerror(reason) + hint);
}

// The number a run's folder is named by, or -1 for another folder.
int run_number(const char* name) {
  const size_t size = strlen(name);
  if (size < 6 || size > 9) return -1;
  int number = 0;
  for (const char* at = name; *at != '\0'; ++at) {
    if (isdigit(static_cast<unsigned char>(*at)) == 0) return -1;
    number = number * 10 + (*at - '0');
  }
  return number;
}

Status write_all(int fd, const std::string& bytes, const std::string& path) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t put = write(fd, bytes.data() + at, bytes.size() - at);
    if (put < 0) {
      if (errno == EINTR) continue;
      return failed(path, "cannot write", errno);
    }
    at += static_cast<size_t>(put);
  }
  return Status::ok();
}

}  // namespace

std::string padded_id(int id) {
  std::array<char, 16> text{};
  snprintf(text.data(), text.size(), "%06d", id);
  return text.data();
}

std::string package_directory_name(int id, const std::string& step, const std::string& suffix) {
  std::string name = padded_id(id) + "_" + step;
  if (!suffix.empty()) name += "_" + suffix;
  // A slash would make folders, and a name has an end: values of parameters may hold anything.
  std::replace(name.begin(), name.end(), '/', '_');
  if (name.size() > 200) name.resize(200);
  return name;
}

std::string time_stamp() {
  const time_t now = time(nullptr);
  tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 32> text{};
  strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

Status make_directories(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0) return Status::ok();
  const int reason = errno;
  struct stat there {};
  if (stat(path.c_str(), &there) == 0) {
    if (S_ISDIR(there.st_mode)) return Status::ok();
    return Status::error(path + ": is in the way: it is not a folder");
  }
  const size_t slash = path.find_last_of('/');
  if (reason == ENOENT && slash != std::string::npos && slash > 0) {
    if (Status s = make_directories(path.substr(0, slash)); !s) return s;
    if (mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return Status::ok();
    return failed(path, "cannot make the folder", errno);
  }
  return failed(path, "cannot make the folder", reason);
}

std::vector<RunDirectory> list_runs(const std::string& outpath) {
  std::vector<RunDirectory> runs;
  DIR* folder = opendir(outpath.c_str());
  if (folder == nullptr) return runs;
  while (const dirent* entry = readdir(folder)) {
    const int id = run_number(entry->d_name);
    if (id >= 0) runs.push_back({id, outpath + "/" + entry->d_name});
  }
  closedir(folder);
  std::sort(runs.begin(), runs.end(),
            [](const RunDirectory& a, const RunDirectory& b) { return a.id < b.id; });
  return runs;
}

Status create_run_directory(const std::string& outpath, RunDirectory* out) {
  if (Status s = make_directories(outpath); !s) return s;
  const std::vector<RunDirectory> runs = list_runs(outpath);
  for (int id = runs.empty() ? 0 : runs.back().id + 1;; ++id) {
    const std::string path = outpath + "/" + padded_id(id);
    if (mkdir(path.c_str(), 0777) == 0) {
      *out = {id, path};
      return Status::ok();
    }
    if (errno != EEXIST) return failed(path, "cannot make the run's folder", errno);
  }
}

Status write_file(const std::string& path, const std::string& bytes, int mode) {
  // Of this process alone: others, on other hosts, may write the same file at the same moment.
  const std::string aside = name_beside(path);
  const int fd = open(aside.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return failed(path, "cannot write", errno);
  Status status = write_all(fd, bytes, path);
  if (status && fchmod(fd, static_cast<mode_t>(mode)) != 0) {
    status = failed(path, "cannot set its permissions", errno);
  }
  if (close(fd) != 0 && status) status = failed(path, "cannot write", errno);
  if (status && rename(aside.c_str(), path.c_str()) != 0) {
    status = failed(path, "cannot write", errno);
  }
  if (!status) unlink(aside.c_str());
  return status;
}

Status append_file(const std::string& path, const std::string& bytes) {
  const int fd = open(path.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0644);
  if (fd < 0) return failed(path, "cannot write", errno);
  Status status = write_all(fd, bytes, path);
  if (close(fd) != 0 && status) status = failed(path, "cannot write", errno);
  return status;
}

Status read_file(const std::string& path, std::string* bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failed(path, "cannot read", errno);
  bytes->clear();
  std::array<char, 65536> buffer{};
  Status status;
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = failed(path, "cannot read", errno);
    if (got <= 0) break;
    bytes->append(buffer.data(), static_cast<size_t>(got));
  }
  close(fd);
  return status;
}

Status write_run_files(const std::string& run_dir, const std::string& configuration) {
  if (Status s = write_file(run_dir + "/configuration.xml", configuration); !s) return s;
  const std::string now = time_stamp();
  return write_file(run_dir + "/timestamps", "start: " + now + "\nchange: " + now + "\n");
}

Status touch_timestamps(const std::string& run_dir) {
  std::string text;
  const std::string now = time_stamp();
  std::string start = "start: " + now;
  if (read_file(run_dir + "/timestamps", &text) && text.rfind("start: ", 0) == 0) {
    start = text.substr(0, text.find('\n'));
  }
  return write_file(run_dir + "/timestamps", start + "\nchange: " + now + "\n");
}

std::string absolute_path(const std::string& path, const std::string& base) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path full(path);
  if (!full.is_absolute()) {
    fs::path start(base);
    if (!start.is_absolute()) start = fs::current_path(ignored) / start;
    full = start / full;
  }
  std::string text = full.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

std::string relative_path(const std::string& to, const std::string& from) {
  const std::string path = std::filesystem::path(to).lexically_relative(from).string();
  return path.empty() ? to : path;
}

}  // namespace tally
