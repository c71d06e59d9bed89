#include "engine/journal/journal_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace tally {
namespace {

std::string file_of(const std::string& run_dir, const char* name) {
  return run_dir + "/" + name;
}

}  // namespace

std::string main_file(const std::string& run_dir) {
  return file_of(run_dir, "journal.sqlite");
}
std::string snapshot_file(const std::string& run_dir) {
  return file_of(run_dir, "journal.snapshot");
}
std::string lease_file(const std::string& run_dir) {
  return file_of(run_dir, "journal.lease");
}

std::string pack(const std::vector<std::string>& list) {
  std::string bytes;
  for (const std::string& entry : list) bytes.append(entry).push_back('\0');
  return bytes;
}

std::string_view next_packed(std::string_view* list) {
  const std::string_view text = list->substr(0, list->find('\0'));
  list->remove_prefix(std::min(text.size() + 1, list->size()));
  return text;
}

std::vector<std::string> unpack(std::string_view bytes) {
  std::vector<std::string> list;
  if (bytes.empty()) return list;
  list.reserve(static_cast<size_t>(std::ranges::count(bytes, '\0')) + 1);
  while (!bytes.empty()) list.emplace_back(next_packed(&bytes));
  return list;
}

std::string join_ids(const std::vector<int>& ids) {
  std::string text;
  for (const int id : ids) {
    if (!text.empty()) text += ',';
    text += std::to_string(id);
  }
  return text;
}

std::vector<int> split_ids(const std::string& text) {
  std::vector<int> ids;
  for (const char* at = text.c_str(); *at != '\0';) {
    char* end = nullptr;
    ids.push_back(static_cast<int>(strtol(at, &end, 10)));
    if (end == at) break;
    at = *end == ',' ? end + 1 : end;
  }
  return ids;
}

double now_seconds() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string percent_encoded(const std::string& path) {
  std::string uri;
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      static constexpr char digits[] = "0123456789ABCDEF";
      uri += '%';
      uri += digits[(static_cast<unsigned char>(c) >> 4) & 15];
      uri += digits[static_cast<unsigned char>(c) & 15];
    } else {
      uri += c;
    }
  }
  return uri;
}

std::string run_name(const std::string& run_dir) {
  std::string path = run_dir;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return "run " + path.substr(path.rfind('/') + 1);
}

Status replace_file(const std::string& to, int mode,
                    const std::function<Status(std::string* piece)>& next) {
  const std::string aside = to + ".new";
  unlink(aside.c_str());
  const int out =
      ::open(aside.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, static_cast<mode_t>(mode));
  if (out < 0) return Status::error(aside + ": " + strerror(errno));
  const auto written = [&](const std::string& piece) {
    for (size_t at = 0; at < piece.size();) {
      const ssize_t put = write(out, piece.data() + at, piece.size() - at);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return Status::error(to + ": cannot write: " + strerror(errno));
      at += static_cast<size_t>(put);
    }
    return Status::ok();
  };
  Status status;
  std::string piece;
  while (status) {
    status = next(&piece);
    if (piece.empty()) break;
    if (status) status = written(piece);
  }
  if (close(out) != 0 && status) status = Status::error(to + ": cannot write: " + strerror(errno));
  if (status && rename(aside.c_str(), to.c_str()) != 0) {
    status = Status::error(to + ": cannot write: " + strerror(errno));
  }
  if (!status) unlink(aside.c_str());
  return status;
}

Status copy_file(const std::string& from, const std::string& to) {
  const int in = ::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (in < 0) return Status::error(from + ": " + strerror(errno));
  Status status = replace_file(to, 0644, [&](std::string* piece) {
    piece->resize(1 << 18);
    ssize_t got = -1;
    do {
      got = read(in, piece->data(), piece->size());
    } while (got < 0 && errno == EINTR);
    piece->resize(got > 0 ? static_cast<size_t>(got) : 0);
    return got >= 0 ? Status::ok() : Status::error(from + ": cannot read: " + strerror(errno));
  });
  close(in);
  return status;
}

}  // namespace tally
