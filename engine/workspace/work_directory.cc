#include "engine/workspace/work_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "engine/base/files.h"
#include "engine/base/host.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"

namespace tally {
namespace {

namespace fs = std::filesystem;

Status failed(const std::string& path, const char* what, int reason) {
  return Status::error(path + ": " + what + ": " + strerror(reason), reason, path);
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

// Copies one entry as `cp -a` does, because make and similar tools compare times.
Status copy_entry(const std::string& from, const std::string& to, bool follow) {
  struct stat info {};
  if ((follow ? stat(from.c_str(), &info) : lstat(from.c_str(), &info)) != 0) {
    return failed(from, "cannot read", errno);
  }
  if (S_ISLNK(info.st_mode)) {
    std::error_code error;
    fs::copy_symlink(from, to, error);
    if (error) return failed(to, "cannot make the link", error.value());
    return Status::ok();
  }
  if (S_ISDIR(info.st_mode)) {
    if (mkdir(to.c_str(), 0777) != 0 && errno != EEXIST) {
      return failed(to, "cannot make the folder", errno);
    }
    std::vector<std::string> names;
    TRY(names_in(from, &names));
    for (const std::string& name : names) {
      TRY(copy_entry(from + "/" + name, to + "/" + name, false));
    }
    chmod(to.c_str(), info.st_mode & 07777);
  } else {
    std::error_code error;
    fs::copy_file(from, to, error);
    if (error) {
      const bool readable = access(from.c_str(), R_OK) == 0;
      return Status::error(to + ": cannot copy " + from + ": " + error.message(), error.value(),
                           readable ? to : from);
    }
  }
  const std::array<timespec, 2> times{info.st_atim, info.st_mtim};
  utimensat(AT_FDCWD, to.c_str(), times.data(), 0);
  return Status::ok();
}

bool same_bytes(const std::string& a, const std::string& b, Status* status) {
  std::string text_a, text_b;
  *status = read_file(a, &text_a);
  if (*status) *status = read_file(b, &text_b);
  return text_a == text_b;
}

// Whether copy_entry() would change nothing at `to`. `differs` becomes the path that it would
// change.
Status compare_entry(const std::string& from, const std::string& to, bool follow,
                     std::string* differs) {
  std::optional<struct stat> a, b;
  TRY(look_at(from, &a, follow ? Links::follow : Links::keep));
  if (!a) return failed(from, "cannot read", ENOENT);
  TRY(look_at(to, &b, follow ? Links::follow : Links::keep));
  const bool other_kind = !b || (a->st_mode & S_IFMT) != (b->st_mode & S_IFMT);
  if (other_kind || (S_ISREG(a->st_mode) && a->st_size != b->st_size)) {
    *differs = to;
  } else if (S_ISLNK(a->st_mode)) {
    std::error_code error;
    if (fs::read_symlink(from, error) != fs::read_symlink(to, error) || error) *differs = to;
  } else if (S_ISDIR(a->st_mode)) {
    std::vector<std::string> names;
    TRY(names_in(from, &names));
    for (size_t i = 0; i < names.size() && differs->empty(); ++i) {
      const std::string name = "/" + names[i];
      TRY(compare_entry(from + name, to + name, false, differs));
    }
  } else if (a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec) {
    Status status;
    if (!same_bytes(from, to, &status)) *differs = to;
    return status;
  }
  return Status::ok();
}

// Compares a file that is there already with what would be put there.
Status check_same(const PlannedFile& file, const std::string& target) {
  std::string differs;
  if (file.link) {
    std::optional<struct stat> a, b;
    TRY(look_at(file.source, &a));
    TRY(look_at(target, &b));
    if (!a || !b || a->st_dev != b->st_dev || a->st_ino != b->st_ino) differs = target;
  } else
    TRY(compare_entry(file.source, target, true, &differs));
  if (differs.empty()) return Status::ok();
  return Status::error("'" + differs +
                       "' was there before this workpackage, and differs from what '" +
                       file.source + "' has: remove it, or give the step another work_dir");
}

// The path without links. Empty: it is not there.
Status real_path(const std::string& path, std::string* real) {
  std::error_code error;
  *real = fs::canonical(path, error).string();
  if (!error) return Status::ok();
  real->clear();
  return means_not_there(error.value()) ? Status::ok() : look_error(path, error.value());
}

Status lies_in(const std::string& path, const std::vector<std::string>& folders, bool* lies) {
  *lies = false;
  std::string real;
  if (Status s = real_path(path, &real); !s || real.empty()) return s;
  for (const std::string& folder : folders) {
    std::string own;
    TRY(real_path(folder, &own));
    if (!own.empty() && starts_with(real, own + "/")) *lies = true;
  }
  return Status::ok();
}

}  // namespace

Status make_link(const std::string& target, const std::string& path) {
  const std::string relative = relative_path(target, parent_of(path));
  if (symlink(relative.c_str(), path.c_str()) == 0 || errno == EEXIST) return Status::ok();
  return failed(path, "cannot make the link", errno);
}

Status place_file(const PlannedFile& file, const std::string& work_dir, Existing existing) {
  const std::string target = absolute_path(file.target, work_dir);
  std::optional<struct stat> known;
  TRY(look_at(target, &known, Links::keep));
  if (known) {
    const Status same = existing == Existing::keep ? Status::ok() : check_same(file, target);
    if (same || existing != Existing::own || S_ISDIR(known->st_mode)) return same;
    if (unlink(target.c_str()) != 0) return failed(target, "cannot be replaced", errno);
  }
  TRY(make_directories(parent_of(target)));
  if (file.link && file.absolute) {
    if (symlink(file.source.c_str(), target.c_str()) == 0 || errno == EEXIST) return Status::ok();
    return failed(target, "cannot make the link", errno);
  }
  if (file.link) return make_link(file.source, target);
  if (starts_with(target, file.source + "/"))
    return Status::error(file.source + ": cannot be copied to '" + target +
                         "', which is in it; name what is to be copied");
  // The file is written under another name and then renamed. An engine killed here leaves no
  // partial file that the next attempt would take for complete.
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
    const std::string path = place_of_substituted(file.path, work_dir);
    TRY(make_directories(parent_of(path)));
    TRY(write_file(path, file.bytes, file.mode));
  }
  return Status::ok();
}

Status detach_file(const std::string& path) {
  const std::string aside = name_beside(path);
  std::error_code error;
  fs::copy_file(path, aside, error);
  if (!error) fs::rename(aside, path, error);
  if (!error) return Status::ok();
  std::error_code ignored;
  fs::remove(aside, ignored);
  return file_error(path, "cannot be copied", error.value());
}

std::string last_lines(const std::string& path, size_t count) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  struct stat info {};
  std::string text;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
    // Only the end is read, because the file may be huge.
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

Status output_sizes(const std::vector<std::string>& paths, OutputSizes* sizes) {
  for (const std::string& path : paths) {
    std::optional<struct stat> found;
    TRY(look_at(path, &found));
    if (found) sizes->emplace_back(path, found->st_size);
  }
  return Status::ok();
}

Status cut_back(const std::vector<std::string>& paths, const OutputSizes& sizes,
                const std::vector<std::string>& folders) {
  for (const std::string& path : paths) {
    off_t size = 0;
    for (const auto& [known, bytes] : sizes) {
      if (known == path) size = bytes;
    }
    std::optional<struct stat> found;
    TRY(look_at(path, &found));
    if (!found || !S_ISREG(found->st_mode) || found->st_size <= size) continue;
    bool own = false;
    TRY(lies_in(path, folders, &own));
    if (own && truncate(path.c_str(), size) != 0) return failed(path, "cannot write", errno);
  }
  return Status::ok();
}

}  // namespace tally
