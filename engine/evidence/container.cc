#include "engine/evidence/container.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "engine/base/files.h"

namespace tally {
namespace {

struct Member {
  std::string name;
  uint64_t size = 0, at = 0;  // at: of its header in the file
  uint32_t crc = 0;
};

constexpr uint32_t kHeader = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint32_t kMost32 = 0xffffffff;
constexpr size_t kHeaderBytes = 30, kEndBytes = 22;

uint32_t crc_of(const char* bytes, size_t count, uint32_t crc) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < made.size(); ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ 0xedb88320 : value >> 1;
      made[i] = value;
    }
    return made;
  }();
  crc = ~crc;
  for (size_t i = 0; i < count; ++i)
    crc = table[(crc ^ static_cast<unsigned char>(bytes[i])) & 255] ^ crc >> 8;
  return ~crc;
}

// Numbers with their lowest byte first.
class Bytes {
 public:
  Bytes& add(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  Bytes& add(const std::string& text) {
    text_ += text;
    return *this;
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

uint64_t number_at(const std::string& bytes, size_t at, int count) {
  uint64_t value = 0;
  for (int i = count - 1; i >= 0; --i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + static_cast<size_t>(i)]);
  return value;
}

uint64_t in_32(uint64_t value) {
  return std::min<uint64_t>(value, kMost32);
}

// Version, UTF-8 names, stored, the first of January 1980.
Bytes& add_kind(Bytes& out, bool large) {
  return out.add(large ? 45 : 20, 2).add(0x0800, 2).add(0, 2).add(0, 2).add(0x0021, 2);
}

std::string header_of(const Member& one) {
  const bool large = one.size >= kMost32;
  Bytes out;
  out.add(kHeader, 4);
  add_kind(out, large).add(one.crc, 4).add(in_32(one.size), 4).add(in_32(one.size), 4);
  out.add(one.name.size(), 2).add(large ? 20 : 0, 2).add(one.name);
  if (large) out.add(1, 2).add(16, 2).add(one.size, 8).add(one.size, 8);
  return out.take();
}

std::string entry_of(const Member& one) {
  Bytes extra;
  if (one.size >= kMost32) extra.add(one.size, 8).add(one.size, 8);
  if (one.at >= kMost32) extra.add(one.at, 8);
  const std::string more = extra.take();
  Bytes out;
  out.add(kEntry, 4).add(3 << 8 | 45, 2);  // made on Unix
  add_kind(out, !more.empty()).add(one.crc, 4).add(in_32(one.size), 4).add(in_32(one.size), 4);
  out.add(one.name.size(), 2).add(more.empty() ? 0 : more.size() + 4, 2).add(0, 2).add(0, 2);
  out.add(0, 2).add(uint64_t{0100644} << 16, 4).add(in_32(one.at), 4).add(one.name);
  if (!more.empty()) out.add(1, 2).add(more.size(), 2).add(more);
  return out.take();
}

// The bytes that follow the entries of a directory of `size` bytes at `at`.
std::string end_of(size_t count, uint64_t at, uint64_t size) {
  constexpr size_t kMost16 = 0xffff;
  Bytes out;
  if (count >= kMost16 || at >= kMost32 || size >= kMost32) {
    out.add(kEnd64, 4).add(44, 8).add(3 << 8 | 45, 2).add(45, 2).add(0, 4).add(0, 4);
    out.add(count, 8).add(count, 8).add(size, 8).add(at, 8);
    out.add(kLocator64, 4).add(0, 4).add(at + size, 8).add(1, 4);
  }
  const size_t shown = std::min(count, kMost16);
  out.add(kEnd, 4).add(0, 2).add(0, 2).add(shown, 2).add(shown, 2);
  return out.add(in_32(size), 4).add(in_32(at), 4).add(0, 2).take();
}

class File {
 public:
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  Status open(const std::string& path) {
    path_ = path;
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (fd_ < 0 || ::fstat(fd_, &info) != 0) return file_error(path, "cannot read", errno);
    if (!S_ISREG(info.st_mode)) return Status::error(path + ": is no file", EINVAL);
    size_ = static_cast<uint64_t>(info.st_size);
    return Status::ok();
  }
  uint64_t size() const { return size_; }
  // Fewer bytes at the end of the file.
  Status read(uint64_t at, uint64_t count, std::string* bytes) const {
    bytes->resize(std::min(count, size_ - std::min(at, size_)));
    for (size_t done = 0; done < bytes->size();) {
      const ssize_t got =
          ::pread(fd_, bytes->data() + done, bytes->size() - done, static_cast<off_t>(at + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return file_error(path_, "cannot read", got < 0 ? errno : EIO);
      done += static_cast<size_t>(got);
    }
    return Status::ok();
  }

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// Reads one archive, and holds each of its bytes against what it has to be.
class Reader {
 public:
  Reader(const std::string& folder, std::vector<std::string>* names, std::vector<Fault>* faults)
      : folder_(folder), names_(names), faults_(faults) {}

  Status read(const std::string& path) {
    TRY(file_.open(path));
    TRY(find_members());
    if (members_.empty()) return Status::error(path + ": is no archive of tally", EINVAL);
    for (size_t i = 0; i < members_.size(); ++i) TRY(take(i));
    return compare_directory();
  }

 private:
  // The headers name the members one after the other, and so does the directory: where one list
  // is broken, the other one tells.
  Status find_members() {
    bool whole = false;
    TRY(by_headers(&whole));
    if (whole) return Status::ok();
    const std::vector<Member> by_headers = std::exchange(members_, {});
    const uint64_t directory = std::exchange(directory_, 0);
    TRY(by_directory(&whole));
    if (whole) return Status::ok();
    members_ = by_headers;
    directory_ = directory;
    return Status::ok();
  }

  Status by_headers(bool* whole) {
    std::string head;
    for (uint64_t at = 0;;) {
      TRY(file_.read(at, kHeaderBytes, &head));
      if (head.size() >= 4 && number_at(head, 0, 4) == kEntry) *whole = !members_.empty();
      if (head.size() < kHeaderBytes || number_at(head, 0, 4) != kHeader) {
        directory_ = at;
        return Status::ok();
      }
      Member one;
      one.at = at;
      one.crc = static_cast<uint32_t>(number_at(head, 14, 4));
      one.size = number_at(head, 18, 4);
      TRY(file_.read(at + kHeaderBytes, number_at(head, 26, 2) + 20, &one.name));
      const size_t name = number_at(head, 26, 2);
      if (one.size == kMost32 && one.name.size() == name + 20)
        one.size = number_at(one.name, name + 4, 8);
      one.name.resize(std::min(one.name.size(), name));
      at += header_of(one).size() + one.size;
      if (at > file_.size()) {
        directory_ = one.at;
        return Status::ok();
      }
      members_.push_back(std::move(one));
    }
  }

  Status by_directory(bool* whole) {
    std::string end;
    const uint64_t at_end = file_.size() - std::min<uint64_t>(file_.size(), kEndBytes);
    TRY(file_.read(at_end, kEndBytes, &end));
    if (end.size() < kEndBytes || number_at(end, 0, 4) != kEnd) return Status::ok();
    uint64_t at = number_at(end, 16, 4);
    directory_ = at;
    std::string entry;
    for (uint64_t next = 0;;) {
      TRY(file_.read(at, 46, &entry));
      if (entry.size() < 46 || number_at(entry, 0, 4) != kEntry) {
        *whole = next == directory_ && !members_.empty();
        return Status::ok();
      }
      Member one;
      one.crc = static_cast<uint32_t>(number_at(entry, 16, 4));
      one.size = number_at(entry, 20, 4);
      one.at = next;
      TRY(file_.read(at + 46, number_at(entry, 28, 2), &one.name));
      at += entry_of(one).size();
      next += header_of(one).size() + one.size;
      if (next > directory_) return Status::ok();
      members_.push_back(std::move(one));
    }
  }

  Status take(size_t which) {
    Member& one = members_[which];
    const uint64_t head = header_of(one).size();
    if (!is_member_name(one.name) || (which > 0 && one.name <= members_[which - 1].name)) {
      faults_->push_back({shown(one.name), "no member can have this name here"});
    } else {
      names_->push_back(one.name);
      one.crc = 0;
      TRY(copy(one, head, &one.crc));
    }
    std::string there;
    TRY(file_.read(one.at, head, &there));
    header_changed_.push_back(there != header_of(one));
    return Status::ok();
  }

  Status copy(const Member& one, uint64_t head, uint32_t* crc) const {
    constexpr uint64_t kPiece = 1 << 20;
    const std::string path = folder_ + "/" + one.name;
    TRY(make_directories(path.substr(0, path.rfind('/'))));
    const int out = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out < 0) return file_error(path, "cannot write", errno);
    Status status;
    std::string piece;
    for (uint64_t done = 0; status && done < one.size; done += piece.size()) {
      status = file_.read(one.at + head + done, std::min(kPiece, one.size - done), &piece);
      if (status && piece.empty()) status = Status::error(path + ": ends early");
      if (status && !write_all(out, piece)) status = file_error(path, "cannot write", errno);
      *crc = crc_of(piece.data(), piece.size(), *crc);
    }
    ::close(out);
    return status;
  }

  // A member's content is vouched for twice: in its header and in the directory. Where both differ
  // from it, it has changed; where one does, that one has.
  Status compare_directory() {
    uint64_t at = directory_;
    for (size_t i = 0; i < members_.size(); ++i) {
      const Member& one = members_[i];
      const std::string expected = entry_of(one);
      std::string there;
      TRY(file_.read(at, expected.size(), &there));
      const bool entry_changed = there != expected;
      if (header_changed_[i] && entry_changed) {
        faults_->push_back({shown(one.name), "its content has changed"});
      } else if (header_changed_[i]) {
        faults_->push_back(
            {shown(one.name), "its header has changed, " + range(one.at, header_of(one).size())});
      } else if (entry_changed) {
        faults_->push_back({shown(one.name), "its entry in the directory has changed, " +
                                                 range(at, expected.size())});
      }
      at += expected.size();
    }
    std::string there;
    TRY(file_.read(at, file_.size() - std::min(at, file_.size()), &there));
    if (there != end_of(members_.size(), directory_, at - directory_))
      faults_->push_back({"", fmt::format("the end of the file has changed, from byte {} on", at)});
    return Status::ok();
  }

  static std::string range(uint64_t from, uint64_t count) {
    return fmt::format("at byte {} to {}", from, from + count - 1);
  }

  static std::string shown(const std::string& name) {
    std::string text;
    for (const char c : name) text += c >= ' ' && c <= '~' ? c : '?';
    return text;
  }

  const std::string& folder_;
  std::vector<std::string>* names_;
  std::vector<Fault>* faults_;
  File file_;
  std::vector<Member> members_;
  std::vector<bool> header_changed_;
  uint64_t directory_ = 0;
};

// Reads a file twice: its checksum stands before it.
Status measure(const std::string& path, Member* one) {
  return read_file(path, [one](const char* bytes, size_t count) {
    one->crc = crc_of(bytes, count, one->crc);
    one->size += count;
  });
}

Status write_members(const std::string& folder, const std::vector<std::string>& names, int out,
                     const std::string& path) {
  const auto put = [&](const std::string& bytes) {
    return write_all(out, bytes) ? Status::ok() : file_error(path, "cannot write", errno);
  };
  std::string directory;
  uint64_t at = 0;
  for (const std::string& name : names) {
    Member one{name, 0, at, 0};
    const std::string from = folder + "/" + name;
    TRY(measure(from, &one));
    const std::string head = header_of(one);
    TRY(put(head));
    Status written;
    TRY(read_file(from, [&](const char* bytes, size_t count) {
      if (written && !write_all(out, {bytes, count}))
        written = file_error(path, "cannot write", errno);
    }));
    TRY(std::move(written));
    directory += entry_of(one);
    at += head.size() + one.size;
  }
  TRY(put(directory));
  return put(end_of(names.size(), at, directory.size()));
}

}  // namespace

bool is_member_name(const std::string& name) {
  constexpr size_t kMost = 4096;
  if (name.empty() || name.size() > kMost || name.front() == '/' || name.back() == '/')
    return false;
  for (const char c : name)
    if (static_cast<unsigned char>(c) < ' ' || c == '\\' || c == 127) return false;
  const std::string inside = "/" + name + "/";
  return inside.find("/../") == std::string::npos && inside.find("/./") == std::string::npos &&
         inside.find("//") == std::string::npos;
}

Status files_below(const std::string& folder, std::vector<std::string>* names) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_regular_file(error) && !entry->is_symlink())
      names->push_back(entry->path().string().substr(folder.size() + 1));
  }
  std::ranges::sort(*names);
  return error ? Status::error(folder + ": " + error.message(), error.value()) : Status::ok();
}

Status write_container(const std::string& folder, const std::string& file) {
  std::vector<std::string> names;
  TRY(files_below(folder, &names));
  return write_named_file(file, [&](int out) { return write_members(folder, names, out, file); });
}

Status unpack(const std::string& file, const std::string& folder, std::vector<std::string>* names,
              std::vector<Fault>* faults) {
  return Reader(folder, names, faults).read(file);
}

}  // namespace tally
