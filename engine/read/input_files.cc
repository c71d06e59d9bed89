#include "engine/read/input_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "engine/base/files.h"
#include "engine/base/text.h"

namespace tally {
namespace {

constexpr size_t kLargestFile = size_t{64} << 20;

Status too_large(const std::string& path) {
  return Status::error(fmt::format("'{}' is larger than 64 MiB, which no benchmark file is", path));
}

// Names of streams that the shell has opened.
bool is_stream(const std::string& path) {
  return path == "/dev/stdin" || starts_with(path, "/dev/fd/") ||
         starts_with(path, "/proc/self/fd/");
}

Status read_from_disk(const std::string& path, NamedBy by, std::string* text) {
  auto failed = [&] {
    return Status::error(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  };
  const bool waits = by == NamedBy::person && is_stream(path);
  // Opening a FIFO would wait for somebody who writes.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | (waits ? 0 : O_NONBLOCK));
  if (fd < 0) return failed();
  Status status;
  struct stat info = {};
  if (::fstat(fd, &info) != 0) {
    status = failed();
  } else if (S_ISDIR(info.st_mode)) {
    status = Status::error(fmt::format("'{}' is a directory, not a benchmark file", path));
  } else if (!waits && !S_ISREG(info.st_mode)) {
    status = Status::error(fmt::format("'{}' is no regular file", path));
  } else {
    char buffer[65536];
    ssize_t n = 0;
    while ((n = ::read(fd, buffer, sizeof buffer)) > 0 && text->size() <= kLargestFile) {
      text->append(buffer, static_cast<size_t>(n));
    }
    if (n < 0) status = failed();
    if (text->size() > kLargestFile) status = too_large(path);
  }
  ::close(fd);
  return status;
}

std::string from_utf16(std::string_view bytes, bool big_endian) {
  auto unit = [&](size_t i) {
    auto high = static_cast<unsigned char>(bytes[i + (big_endian ? 0 : 1)]);
    auto low = static_cast<unsigned char>(bytes[i + (big_endian ? 1 : 0)]);
    return static_cast<uint32_t>(high << 8 | low);
  };
  std::string text;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    uint32_t code = unit(i);
    if (code >= 0xD800 && code < 0xDC00 && i + 3 < bytes.size()) {
      uint32_t low = unit(i + 2);
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        i += 2;
      }
    }
    append_utf8(code, text);
  }
  return text;
}

// Whether an XML declaration at the start names Latin-1.
bool declares_latin1(std::string_view text) {
  if (!starts_with(text, "<?xml")) return false;
  std::string declaration = to_lower(text.substr(0, text.find("?>")));
  for (const char* name : {"iso-8859-1", "latin1", "latin-1", "windows-1252"}) {
    if (declaration.find(name) != std::string::npos) return true;
  }
  return false;
}

std::string to_utf8(std::string bytes) {
  std::string_view view = bytes;
  if (starts_with(view, "\xEF\xBB\xBF")) return bytes.substr(3);
  if (starts_with(view, "\xFE\xFF")) return from_utf16(view.substr(2), true);
  if (starts_with(view, "\xFF\xFE")) return from_utf16(view.substr(2), false);
  if (!declares_latin1(view)) return bytes;
  std::string text;
  for (unsigned char c : bytes) append_utf8(c, text);
  return text;
}

}  // namespace

Status load_text(const std::string& path, const ReadOptions& options, NamedBy by,
                 std::string* text) {
  text->clear();
  auto stored = options.stored.find(path);
  if (stored != options.stored.end()) {
    *text = to_utf8(stored->second);
    return Status::ok();
  }
  Status status = read_from_disk(path, by, text);
  if (status) *text = to_utf8(std::move(*text));
  return status;
}

std::string find_file(const std::string& name, const std::vector<std::string>& directories,
                      const ReadOptions& options) {
  auto exists = [&](const std::string& path) {
    // Folders that may not be entered are passed over, as a shell does with PATH. Opening tells
    // what is wrong with a file that the host cannot look at now: another one would be a different
    // input.
    return options.stored.count(path) > 0 || ::access(path.c_str(), F_OK) == 0 || may_pass(errno);
  };
  if (name.empty()) return {};
  if (name[0] == '/') return exists(name) ? name : std::string();
  const auto first_in = [&](const std::vector<std::string>& folders, const auto& is_there) {
    for (const std::string& directory : folders) {
      std::string path = join_path(directory, name);
      if (is_there(path)) return path;
    }
    return std::string();
  };
  const auto is_stored = [&](const std::string& path) { return options.stored.count(path) > 0; };
  std::string found = first_in(directories, exists);
  // A run has its own templates, which lay elsewhere where it was begun on another machine. This
  // machine's are others.
  if (found.empty()) found = first_in(options.builtin_path, is_stored);
  for (auto one = options.stored.begin(); found.empty() && one != options.stored.end(); ++one)
    if (one->first.ends_with("/" + name)) found = one->first;
  return found.empty() ? first_in(options.builtin_path, exists) : found;
}

std::vector<std::string> environment_include_path() {
  const char* value = std::getenv("JUBE_INCLUDE_PATH");
  std::vector<std::string> directories;
  if (!value) return directories;
  for (std::string& directory : split_strip(value, ":")) {
    if (!directory.empty()) directories.push_back(std::move(directory));
  }
  return directories;
}

std::string directory_of(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string join_path(const std::string& directory, const std::string& name) {
  if (directory.empty() || directory == "." || (!name.empty() && name[0] == '/')) return name;
  return directory.back() == '/' ? directory + name : directory + "/" + name;
}

LineIndex::LineIndex(uint32_t file, std::string_view text) : file_(file), text_(text) {
  starts_.push_back(0);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') starts_.push_back(i + 1);
  }
}

Mark LineIndex::at_offset(size_t offset) const {
  auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
  auto line = static_cast<size_t>(after - starts_.begin()) - 1;
  return at(line, offset - starts_[line]);
}

size_t LineIndex::offset(size_t line, size_t byte_column) const {
  return std::min(starts_[std::min(line, starts_.size() - 1)] + byte_column, text_.size());
}

Mark LineIndex::at(size_t line, size_t byte_column) const {
  line = std::min(line, starts_.size() - 1);
  std::string_view rest = text_.substr(starts_[line], byte_column);
  uint32_t column = 1;
  for (size_t i = 0; i < rest.size(); ++column) {
    i += std::max<size_t>(1, utf8_length(rest.substr(i)));
  }
  return {file_, static_cast<uint32_t>(line + 1), column};
}

}  // namespace tally
