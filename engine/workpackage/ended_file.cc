#include "engine/workpackage/ended_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "engine/base/text.h"

namespace tally {
namespace {

template <typename Number>
void put(Number number, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Seven bits a byte, the lowest first; the eighth says that more follow.
void put_short(uint64_t number, std::string& bytes) {
  for (; number > 0x7f; number >>= 7U) bytes.push_back(static_cast<char>(number | 0x80U));
  bytes.push_back(static_cast<char>(number));
}

// No text has this length: earlier programs take it for the end.
constexpr uint64_t kLinks = (uint64_t{1} << 28U) - 1;

// A difference of either sign; small ones stay small. It may wrap around.
uint64_t folded(uint64_t difference) {
  return difference << 1U ^ (difference >> 63U != 0 ? ~uint64_t{0} : 0);
}
uint64_t unfolded(uint64_t number) {
  return number >> 1U ^ ((number & 1U) != 0 ? ~uint64_t{0} : 0);
}

void put_text(std::string_view text, std::string& bytes) {
  put_short(text.size(), bytes);
  bytes.append(text);
}

// Two digits a byte.
std::string bytes_of(const std::string& hex) {
  std::string bytes(hex.size() / 2, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    unsigned char byte = 0;
    std::from_chars(&hex[2 * i], &hex[2 * i] + 2, byte, 16);
    bytes[i] = static_cast<char>(byte);
  }
  return bytes;
}
std::string hex_of(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes)
    fmt::format_to(std::back_inserter(hex), "{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

// Takes packed files apart. A text that has been cut ends with the last whole file.
class Reader {
 public:
  explicit Reader(std::string_view packed) : left_(packed) {
    char writer = 0;
    if (take(&print_) && take(&writer) && take(&noted_ns_))
      writer_ = static_cast<EndedFiles::Writer>(writer);
  }
  // FilesPrint of the files; 0: nothing is packed.
  uint64_t print() const { return print_; }
  EndedFiles::Writer writer() const { return writer_; }
  long long noted_ns() const { return noted_ns_; }

  // Adds the paths that links led to, which are packed behind the files. False: an earlier program
  // packed these.
  bool add_links(std::vector<EndedFile>& files) {
    uint64_t mark = 0, number = 0;
    std::string_view real;
    if (!take_short(&mark) || mark != kLinks) return false;
    while (take_short(&number) && number < files.size() && take_text(&real))
      files[number].real = real;
    return true;
  }

  // The next file. False: there is none.
  bool next(EndedFile* file) {
    *file = {};
    uint64_t length = 0, since = 0;
    std::string_view path, digest;
    const std::string_view all = left_;
    if (take_short(&length) && length == kLinks) {
      left_ = all;
      return false;
    }
    left_ = all;
    if (!take_text(&path) || !take_short(&length)) return false;
    file->path = path;
    if (length == 0) return true;  // not there
    if (!take_short(&file->stamp.inode) || !take_short(&since) || !take_text(&digest)) return false;
    file->stamp.size = static_cast<long long>(length - 1);
    file->stamp.written_ns =
        static_cast<long long>(static_cast<uint64_t>(noted_ns_) - unfolded(since));
    file->digest = hex_of(digest);
    return true;
  }

 private:
  template <typename Number>
  bool take(Number* into) {
    if (left_.size() < sizeof *into) return false;
    std::memcpy(into, left_.data(), sizeof *into);
    left_.remove_prefix(sizeof *into);
    return true;
  }
  bool take_short(uint64_t* into) {
    *into = 0;
    char byte = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (!take(&byte)) return false;
      *into |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  }
  bool take_text(std::string_view* into) {
    uint64_t length = 0;
    if (!take_short(&length) || length > left_.size()) return false;
    *into = left_.substr(0, length);
    left_.remove_prefix(length);
    return true;
  }

  std::string_view left_;
  uint64_t print_ = 0;
  EndedFiles::Writer writer_ = EndedFiles::Writer::command;
  long long noted_ns_ = 0;
};

// Whether the path is below the folder and no part of it from there on is a link. It asks the
// system once for each of these parts: every workpackage does this, and canonical() would ask for
// those of the folder, too.
bool is_plainly_below(const std::string& folder, const std::string& path) {
  if (!starts_with(path, folder + "/")) return false;
  const std::string_view below = std::string_view(path).substr(folder.size());
  if (below.find("/.") != below.npos || below.find("//") != below.npos) return false;
  char target = 0;
  for (size_t end = folder.size(); end != path.npos;) {
    end = path.find('/', end + 1);
    if (readlink(path.substr(0, end).c_str(), &target, 1) >= 0) return false;
    if (errno != EINVAL) return errno == ENOENT;
  }
  return true;
}

}  // namespace

std::string path_behind_links(const std::string& run_dir, const std::string& path) {
  if (is_plainly_below(run_dir, path)) return path.substr(run_dir.size() + 1);
  std::error_code error;
  const std::string real = std::filesystem::weakly_canonical(path, error).string();
  if (error) return path;
  const std::string run = std::filesystem::weakly_canonical(run_dir, error).string() + "/";
  return !error && starts_with(real, run) ? real.substr(run.size()) : real;
}

std::string EndedFiles::packed() const {
  std::string bytes;
  FilesPrint print;
  for (const EndedFile& file : files) {
    if (file.stamp.there()) print.add(file.stamp);
  }
  put(print.value(), bytes);
  put(static_cast<char>(writer), bytes);
  put(noted_ns, bytes);
  for (const EndedFile& file : files) {
    put_text(file.path, bytes);
    put_short(static_cast<uint64_t>(file.stamp.size) + 1, bytes);  // -1, not there, becomes 0
    if (!file.stamp.there()) continue;
    put_short(file.stamp.inode, bytes);
    put_short(
        folded(static_cast<uint64_t>(noted_ns) - static_cast<uint64_t>(file.stamp.written_ns)),
        bytes);
    put_text(bytes_of(file.digest), bytes);
  }
  if (!links_known) return bytes;
  put_short(kLinks, bytes);
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].real.empty()) continue;
    put_short(i, bytes);
    put_text(files[i].real, bytes);
  }
  return bytes;
}

EndedFiles EndedFiles::unpacked(std::string_view packed) {
  Reader reader(packed);
  EndedFiles ended{reader.writer(), reader.noted_ns(), false, {}};
  for (EndedFile file; reader.next(&file);) ended.files.push_back(file);
  ended.links_known = reader.add_links(ended.files);
  return ended;
}

// The finalizer of splitmix64: sums of its values tell sets apart.
void FilesPrint::add(const FileStamp& stamp) {
  uint64_t x = static_cast<uint64_t>(stamp.written_ns) * 0x9e3779b97f4a7c15 +
               static_cast<uint64_t>(stamp.size);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  value_ += (x ^ (x >> 31)) | 1;
}

uint64_t files_print(std::string_view packed) {
  return Reader(packed).print();
}

long long files_noted_ns(std::string_view packed) {
  return Reader(packed).noted_ns();
}

}  // namespace tally
