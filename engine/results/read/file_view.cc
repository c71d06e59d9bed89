#include "engine/results/read/file_view.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/text.h"

namespace tally {
namespace {

constexpr size_t kRead = size_t{64} << 10;  // mapped beyond
constexpr size_t kInMemory = size_t{16} << 20;
// Page by page beyond, which costs twice the time of a search: patterns read the file once each.
// The pages are the kernel's cache of the file, which it takes back when memory is short.
constexpr size_t kMapAtOnce = size_t{256} << 20;
constexpr size_t kGiveBack = size_t{16} << 20;
// A search reads a few gigabytes a second.
constexpr std::chrono::milliseconds kGiveBackEvery{10};
constexpr size_t kBlock = size_t{256} << 10;

struct Survey {
  bool ascii = true;
  bool as_text = true;  // no byte needs a character of its own
  bool carriage_return = false;
};

// The end of the characters from `at` on that begin before `end`. In front of it if a byte there is
// not one of a character.
size_t end_of_characters(std::string_view text, size_t at, size_t end) {
  while (at < end) {
    const size_t length =
        static_cast<unsigned char>(text[at]) < 128 ? 1 : text_length(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

// One pass over the bytes, a second one over blocks that are not ASCII. The inner loop is simple
// enough for the compiler to vectorise.
template <typename Passed>
Survey survey(std::string_view text, Passed passed) {
  Survey result;
  size_t characters = 0;  // their end
  for (size_t start = 0; start < text.size(); start += kBlock) {
    size_t end = std::min(start + kBlock, text.size());
    unsigned char high = 0;
    unsigned char returns = 0;
    for (size_t i = start; i < end; ++i) {
      auto c = static_cast<unsigned char>(text[i]);
      high |= c;
      returns |= static_cast<unsigned char>(c == '\r');
    }
    if (high >= 128) result.ascii = false;
    if (high >= 128 && result.as_text) {
      characters = end_of_characters(text, std::max(characters, start), end);
      result.as_text = characters >= end;
    }
    if (returns != 0) result.carriage_return = true;
    passed(text.data() + end);
  }
  return result;
}

// Maps the holes of a sparse file. A program that seeks past the end leaves holes, possibly
// gigabytes of them, that read as zeros. Mapped as anonymous memory that is never written, they all
// share the kernel's zero page and do not fill the page cache.
void map_holes(void* map, size_t size, int file) {
  constexpr off_t least = off_t{4} << 20;
  constexpr off_t page = off_t{2} << 20;
  const auto end = static_cast<off_t>(size);
  for (off_t at = 0; at < end;) {
    const off_t hole = ::lseek(file, at, SEEK_HOLE);
    if (hole < 0 || hole >= end) return;
    off_t data = ::lseek(file, hole, SEEK_DATA);
    if (data < 0 || data > end) data = end;
    const off_t from = (hole + page - 1) / page * page;
    const off_t to = data / page * page;
    if (to - from >= least) {
      char* start = static_cast<char*>(map) + from;
      const auto length = static_cast<size_t>(to - from);
      void* zeros = ::mmap(start, length, PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
      if (zeros != MAP_FAILED) ::madvise(zeros, length, MADV_HUGEPAGE);
    }
    at = data;
  }
}

// Appends the characters of `bytes` from `at` on that begin before `end`, with \r\n and \r
// converted to \n. Returns where they end.
size_t append_text(std::string_view bytes, size_t at, size_t end, std::string& out) {
  while (at < end) {
    const char c = bytes[at];
    size_t length = 1;
    if (c == '\r') {
      if (at + 1 < bytes.size() && bytes[at + 1] == '\n') length = 2;
      out += '\n';
    } else if (static_cast<unsigned char>(c) < 128) {
      out += c;
    } else if (const size_t valid = text_length(bytes.substr(at)); valid > 0) {
      out += bytes.substr(at, length = valid);
    } else {
      append_byte_as_text(c, out);
    }
    at += length;
  }
  return at;
}

Status file_error(const std::string& path) {
  const int reason = errno;
  return Status::error(fmt::format("cannot read '{}': {}", path, std::strerror(reason)), reason);
}

}  // namespace

FileView::~FileView() {
  release();
}

FileView::FileView(FileView&& other) noexcept {
  *this = std::move(other);
}

FileView& FileView::operator=(FileView&& other) noexcept {
  if (this == &other) return *this;
  release();
  map_ = std::exchange(other.map_, nullptr);
  map_size_ = std::exchange(other.map_size_, 0);
  passed_ = std::exchange(other.passed_, 0);
  on_disk_ = other.on_disk_;
  written_ns_ = other.written_ns_;
  changed_ns_ = other.changed_ns_;
  read_ = other.read_;
  shorter_ = other.shorter_;
  bool copied = map_ == nullptr && !other.copy_.empty();
  copy_ = std::move(other.copy_);
  text_ = copied ? std::string_view(copy_) : other.text_;
  other.text_ = {};
  ascii_ = other.ascii_;
  holds_bytes_ = other.holds_bytes_;
  return *this;
}

void FileView::passed(const char* at) {
  if (map_ == nullptr || map_size_ <= kMapAtOnce) return;
  const auto offset = static_cast<size_t>(at - static_cast<const char*>(map_));
  if (offset < passed_) passed_ = 0;  // the next pass over the text
  if (offset - passed_ < kGiveBack) return;
  const size_t until = offset / kGiveBack * kGiveBack;
  ::madvise(static_cast<char*>(map_) + passed_, until - passed_, MADV_DONTNEED);
  passed_ = until;
}

// The pages are read again when the search comes back to them.
FileView::Search::Search(const FileView& view) {
  if (view.map_ == nullptr || view.map_size_ <= kMapAtOnce) return;
  const auto give_back = [this, map = view.map_, size = view.map_size_] {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!end_.wait_for(lock, kGiveBackEvery, [this] { return ended_; })) {
      ::madvise(map, size, MADV_DONTNEED);
    }
  };
  try {
    thread_ = std::thread(give_back);
  } catch (const std::system_error&) {  // the host has no thread to give: it takes memory instead
  }
}

FileView::Search::~Search() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  end_.notify_one();
  thread_.join();
}

Status FileView::unchanged(const std::string& path) const {
  struct stat info {};
  if (!read_ && ::stat(path.c_str(), &info) != 0) return file_error(path);
  const bool shorter = read_ ? shorter_ : info.st_size < on_disk_;
  if (!shorter) return Status::ok();
  return Status::error(fmt::format(
      "'{}' became shorter while it was read; try again when nothing changes it", path));
}

void FileView::release() {
  if (map_ != nullptr) ::munmap(map_, map_size_);
  map_ = nullptr;
}

void FileView::keep(const FilePart& part) {
  const auto from = std::min(static_cast<size_t>(part.from), text_.size());
  const size_t to = part.to ? std::min(static_cast<size_t>(*part.to), text_.size()) : text_.size();
  text_ = text_.substr(from, to - std::min(from, to));
  if (map_ != nullptr) return;
  copy_ = std::string(text_);
  text_ = copy_;
}

Status FileView::open(const std::string& path, FileView* out, const FilePart& part) {
  constexpr int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  const int file = ::open(path.c_str(), flags);
  if (file < 0) return file_error(path);
  FileView view;
  Status loaded = view.load(file, path);
  ::close(file);
  if (!loaded) return loaded;
  if (part.from > 0 || part.to) view.keep(part);
  const Survey found = survey(view.text_, [&](const char* at) { view.passed(at); });
  view.passed_ = 0;
  view.ascii_ = found.ascii;
  view.holds_bytes_ = !found.as_text;
  if (found.carriage_return || view.holds_bytes_) {
    TRY(view.make_text(path));
  }
  *out = std::move(view);
  return Status::ok();
}

Status FileView::load(int file, const std::string& path) {
  struct stat info {};
  if (::fstat(file, &info) != 0) return file_error(path);
  if (!S_ISREG(info.st_mode))
    return Status::error(fmt::format("cannot read '{}': not a regular file", path));
  const FileStamp stamp = stamp_of(info);
  on_disk_ = stamp.size;
  written_ns_ = stamp.written_ns;
  changed_ns_ = info.st_ctim.tv_sec * 1000000000LL + info.st_ctim.tv_nsec;
  if (on_disk_ == 0) return Status::ok();
  return static_cast<size_t>(on_disk_) <= kRead ? read(file, path) : map(file, path);
}

Status FileView::read(int file, const std::string& path) {
  read_ = true;
  copy_.resize(static_cast<size_t>(on_disk_));
  size_t count = 0;
  while (count < copy_.size()) {
    const ssize_t got = ::read(file, copy_.data() + count, copy_.size() - count);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error(path);
    if (got == 0) break;
    count += static_cast<size_t>(got);
  }
  shorter_ = count < copy_.size();
  copy_.resize(count);
  text_ = copy_;
  return Status::ok();
}

Status FileView::map(int file, const std::string& path) {
  map_size_ = static_cast<size_t>(on_disk_);
  const int flags = MAP_PRIVATE | (map_size_ <= kMapAtOnce ? MAP_POPULATE : 0);
  void* map = ::mmap(nullptr, map_size_, PROT_READ, flags, file, 0);
  if (map == MAP_FAILED) return file_error(path);
  map_ = map;
  text_ = {static_cast<const char*>(map), map_size_};
  if (map_size_ > kMapAtOnce) {
    ::madvise(map, map_size_, MADV_SEQUENTIAL);
    map_holes(map, map_size_, file);
  }
  return Status::ok();
}

Status FileView::make_text(const std::string& path) {
  if (map_size_ <= kInMemory) {
    std::string copy;
    append_text(text_, 0, text_.size(), copy);
    release();
    copy_ = std::move(copy);
    text_ = copy_;
    return Status::ok();
  }
  const char* directory = std::getenv("TMPDIR");
  std::string name = fmt::format("{}/tally-XXXXXX",
                                 directory != nullptr && *directory != '\0' ? directory : "/tmp");
  int file = ::mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) return file_error(name);
  ::unlink(name.c_str());
  std::string block;
  size_t total = 0;
  for (size_t at = 0; at < text_.size();) {
    block.clear();
    at = append_text(text_, at, std::min(at + kBlock, text_.size()), block);
    total += block.size();
    passed(text_.data() + at);
    if (!write_all(file, block)) {
      Status failed = Status::error(
          fmt::format("cannot read '{}': it holds {} and its copy as plain text could not be "
                      "written to {}: {}; "
                      "set TMPDIR to a place with room",
                      path, holds_bytes_ ? "bytes that are not UTF-8" : "carriage returns",
                      directory != nullptr ? directory : "/tmp", std::strerror(errno)));
      ::close(file);
      return failed;
    }
  }
  release();
  void* map = ::mmap(nullptr, total, PROT_READ, MAP_PRIVATE, file, 0);
  Status mapped = map == MAP_FAILED ? file_error(path) : Status::ok();
  ::close(file);
  if (!mapped) return mapped;
  map_ = map;
  map_size_ = total;
  passed_ = 0;
  text_ = {static_cast<const char*>(map), total};
  return Status::ok();
}

}  // namespace tally
