#include "engine/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "engine/base/duration.h"
#include "engine/base/host.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"

namespace tally {
namespace {

namespace fs = std::filesystem;

Status write_to(int file, const std::string& bytes, const std::string& path) {
  return write_all(file, bytes) ? Status::ok() : file_error(path, "cannot write", errno);
}

// A relative path that stayed relative would be recorded in a run and mean something else later.
std::filesystem::path current_directory() {
  std::error_code error;
  std::filesystem::path path = std::filesystem::current_path(error);
  if (error) {
    throw std::system_error(error,
                            "the current directory cannot be found (change to another one, or "
                            "try again)");
  }
  return path;
}

}  // namespace

std::string advice(int reason, const char* then) {
  switch (reason) {
    case EACCES:
    case EROFS:
    case EPERM:
      return "; choose a folder that you may write to with --outpath";
    case ENOSPC:
    case EDQUOT:
      return std::string("; free some space and ") + then;
    case EFBIG:
      return std::string("; raise the limit of file sizes (ulimit -f) and ") + then;
    default:
      return {};
  }
}

Status file_error(const std::string& path, const char* what, int reason) {
  return Status::error(path + ": " + what + ": " + strerror(reason) + advice(reason, "try again"),
                       reason, path);
}

bool may_pass(int reason) {
  for (const int passing :
       {ENOSPC, EDQUOT, EFBIG, EIO, EMFILE, ENFILE, EAGAIN, ENOMEM, EINTR, ESTALE, ETIMEDOUT,
        ENOLCK, EHOSTDOWN, EHOSTUNREACH, ENETUNREACH, ENETDOWN, ESHUTDOWN, ENOTCONN, EREMOTEIO}) {
    if (reason == passing) return true;
  }
  return false;
}

bool may_pass(const Status& error, const std::string& folder) {
  if (may_pass(error.reason())) return true;
  const bool below = error.path().compare(0, folder.size() + 1, folder + "/") == 0;
  for (const int away : {EACCES, EPERM, ENOENT, ENOTDIR, EROFS, ENXIO, ENODEV}) {
    if (below && error.reason() == away) return true;
  }
  return false;
}

std::string time_stamp() {
  return local_time(std::time(nullptr));
}

Status make_directories(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0) return Status::ok();
  const int reason = errno;
  struct stat there {};
  if (stat(path.c_str(), &there) == 0) {
    if (S_ISDIR(there.st_mode)) return Status::ok();
    return Status::error(path + ": exists but is not a directory");
  }
  if (reason == EEXIST && errno != ENOENT) return file_error(path, "cannot look at it", errno);
  const size_t slash = path.find_last_of('/');
  if (reason == ENOENT && slash != std::string::npos && slash > 0) {
    TRY(make_directories(path.substr(0, slash)));
    if (mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return Status::ok();
    return file_error(path, "cannot make the folder", errno);
  }
  return file_error(path, "cannot make the folder", reason);
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

namespace {

Status put_and_close(int file, const PutBytes& put, const std::string& path) {
  Status status = put(file);
  if (close(file) != 0 && status) status = file_error(path, "cannot write", errno);
  return status;
}

PutBytes put_all(const std::string& bytes, const std::string& path) {
  return [&bytes, &path](int file) { return write_to(file, bytes, path); };
}

// Replaces a file atomically.
Status replace_file(const std::string& path, const PutBytes& put, int mode) {
  // The temporary name is unique to this process. Others, possibly on other hosts, may write the
  // same file at the same moment.
  const std::string aside = name_beside(path);
  const int flags = O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC;
  const auto permissions = static_cast<mode_t>(mode);  // less those of the umask
  int fd = open(aside.c_str(), flags, permissions);
  if (fd < 0 && errno == EEXIST) {  // of a dead process with the same id, or a planted link
    unlink(aside.c_str());
    fd = open(aside.c_str(), flags, permissions);
  }
  if (fd < 0) return file_error(path, "cannot write", errno);
  Status status = put_and_close(fd, put, path);
  if (status && rename(aside.c_str(), path.c_str()) != 0) {
    status = file_error(path, "cannot write", errno);
  }
  if (!status) unlink(aside.c_str());
  return status;
}

}  // namespace

Status write_and_close(int file, const std::string& bytes, const std::string& path) {
  return put_and_close(file, put_all(bytes, path), path);
}

Status write_file(const std::string& path, const std::string& bytes, int mode) {
  return replace_file(path, put_all(bytes, path), mode);
}

namespace {

// The folder of the path, without links.
std::string real_folder(const std::string& path) {
  std::error_code none;
  const std::filesystem::path folder = std::filesystem::absolute(path, none).parent_path();
  return std::filesystem::canonical(folder, none).string();
}

// Whether the path names what a process has open, such as /dev/stdout.
bool is_open_stream(const std::string& path) {
  return real_folder(path).rfind("/proc/", 0) == 0;
}

// The descriptor of this process that the path names; -1: none.
int descriptor_of(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  int fd = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), fd);
  const bool number = error == std::errc() && end == name.data() + name.size();
  return number && real_folder(path) == real_folder("/proc/self/fd/0") ? fd : -1;
}

// The end of a chain of links, whether there is a file or not.
std::string target_of(std::string path) {
  constexpr int kMost = 40;  // as the kernel
  for (int i = 0; i < kMost && !is_open_stream(path); ++i) {
    std::error_code none;
    const std::string next = std::filesystem::read_symlink(path, none).string();
    if (none) break;
    path = next.front() == '/' ? next : path.substr(0, path.rfind('/') + 1) + next;
  }
  return path;
}

Status write_into(const std::string& path, const PutBytes& put) {
  // Through its own descriptor the process goes on where it has got to: what it prints before and
  // afterwards is not written over.
  if (const int own = descriptor_of(path); own >= 0) {
    std::fflush(nullptr);
    return put(own);
  }
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return file_error(path, "cannot write", errno);
  return put_and_close(fd, put, path);
}

}  // namespace

Status write_named_file(const std::string& path, const PutBytes& put) {
  constexpr int kMode = 0644;
  const std::string target = target_of(path);
  std::optional<struct stat> there;
  TRY(look_at(target, &there));
  if (!there) return replace_file(target, put, kMode);
  if (!S_ISREG(there->st_mode) || is_open_stream(target)) return write_into(target, put);
  return replace_file(target, put, static_cast<int>(there->st_mode & 0777U));
}

Status write_named_file(const std::string& path, const std::string& bytes) {
  return write_named_file(path, put_all(bytes, path));
}

Status append_file(const std::string& path, const std::string& bytes) {
  const int fd = open(path.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0644);
  if (fd < 0) return file_error(path, "cannot write", errno);
  return write_and_close(fd, bytes, path);
}

Status read_file(const std::string& path,
                 const std::function<void(const char* bytes, size_t count)>& take) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return file_error(path, "cannot read", errno);
  std::array<char, 65536> buffer{};
  Status status;
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = file_error(path, "cannot read", errno);
    if (got <= 0) break;
    take(buffer.data(), static_cast<size_t>(got));
  }
  close(fd);
  return status;
}

Status read_file(const std::string& path, std::string* bytes) {
  bytes->clear();
  return read_file(path, [bytes](const char* piece, size_t count) { bytes->append(piece, count); });
}

Status print_file(const std::string& path) {
  char last = '\n';
  const Status read = read_file(path, [&last](const char* bytes, size_t count) {
    std::fwrite(bytes, 1, count, stdout);
    last = bytes[count - 1];
  });
  if (last != '\n') std::fputc('\n', stdout);
  return read;
}

namespace {

// An absolute path without empty names, "." and "..". Nearly every path of a run is one.
bool is_normal(std::string_view path) {
  if (path.empty() || path.front() != '/') return false;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view name = path.substr(0, path.find('/'));
    if (name.empty() || name == "." || name == "..") return false;
    path.remove_prefix(name.size());
  }
  return true;
}

}  // namespace

std::string absolute_path(const std::string& path, const std::string& base) {
  if (is_normal(path)) return path;
  if (!path.empty() && path.front() == '/') return normal_path(path);
  std::string full = base;
  if (full.empty() || full.front() != '/') {
    const std::string here = current_directory().string();
    full = full.empty() ? here : here + "/" + full;
  }
  return normal_path(path.empty() ? full : full + "/" + path);
}

std::string normal_path(const std::string& path) {
  if (is_normal(path)) return path;
  std::string text = std::filesystem::path(path).lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text.empty() ? "." : text;
}

namespace {

// The names above a link stay as they are: a run may lie behind one, and be moved.
fs::path past_links(const fs::path& path, int most, bool* any) {
  fs::path walked;
  std::error_code error;
  for (const fs::path& part : path) {
    if (part == ".") continue;
    const bool up = part == ".." && walked.has_filename() && walked.filename() != "..";
    if (!up) {
      walked /= part;
    } else if (fs::is_symlink(walked, error) && most > 0) {
      const fs::path target = fs::read_symlink(walked, error);
      *any = true;
      walked = past_links(walked.parent_path() / target / "..", most - 1, any);
    } else {
      walked = walked.parent_path();
    }
  }
  return walked;
}

}  // namespace

std::string past_links(const std::string& path) {
  if (path.find("/..") == std::string::npos) return path;
  constexpr int kMost = 40;  // as the kernel
  bool any = false;
  const fs::path walked = past_links(fs::path(path), kMost, &any);
  if (!any) return path;
  return walked.empty() ? "." : walked.string();
}

std::string opened_path(const std::string& path, const std::string& base) {
  if (path.find("..") == std::string::npos) return absolute_path(path, base);
  const bool whole = path.front() == '/' || base.empty();
  return absolute_path(past_links(whole ? path : base + "/" + path));
}

std::string relative_path(const std::string& to, const std::string& from) {
  const std::string path = std::filesystem::path(to).lexically_relative(from).string();
  return path.empty() ? to : path;
}

std::string find_program(const std::vector<std::string>& names,
                         std::vector<std::string> directories) {
  const char* path = std::getenv("PATH");
  for (std::string& directory : split_strip(path != nullptr ? path : "", ":"))
    if (!directory.empty() && directory.front() == '/') directories.push_back(std::move(directory));
  for (const std::string& directory : directories) {
    for (const std::string& name : names) {
      std::string program = directory + "/" + name;
      if (access(program.c_str(), X_OK) == 0) return program;
    }
  }
  return {};
}

std::string program_directory() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return {};
  const std::string program(path.data(), static_cast<size_t>(length));
  return program.substr(0, program.rfind('/'));
}

bool read_number(const std::string& path, double* value) {
  std::ifstream in(path);
  return static_cast<bool>(in >> *value);
}

std::vector<std::string> paths_matching(const std::string& pattern) {
  std::vector<std::string> paths;
  [[maybe_unused]] const Status found = matching_paths(pattern, &paths);
  return paths;
}

}  // namespace tally
