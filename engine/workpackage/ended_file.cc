#include "engine/workpackage/ended_file.h"

#include <algorithm>
#include <cstring>

namespace tally {
namespace {

void put(long long number, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void put(const std::string& text, std::string& bytes) {
  bytes.append(text).push_back('\0');
}

// Takes packed files apart, in place.
class Reader {
 public:
  explicit Reader(std::string_view packed) : left_(packed) {
    long long writer = 0;
    if (take(&print_) && take(&writer) && take(&noted_ns_))
      writer_ = static_cast<EndedFiles::Writer>(writer);
  }
  // FilesPrint of the files; 0: nothing is packed.
  uint64_t print() const { return print_; }
  EndedFiles::Writer writer() const { return writer_; }
  long long noted_ns() const { return noted_ns_; }

  struct File {
    std::string_view path, digest;
    FileStamp stamp;
  };
  // The next file. False: there is none.
  bool next(File* file) {
    if (!take(&file->stamp.inode) || !take(&file->stamp.size) || !take(&file->stamp.written_ns))
      return false;
    file->path = text();
    file->digest = text();
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
  std::string_view text() {
    const std::string_view text = left_.substr(0, left_.find('\0'));
    left_.remove_prefix(std::min(text.size() + 1, left_.size()));
    return text;
  }

  std::string_view left_;
  uint64_t print_ = 0;
  EndedFiles::Writer writer_ = EndedFiles::Writer::command;
  long long noted_ns_ = 0;
};

}  // namespace

std::string EndedFiles::packed() const {
  std::string bytes;
  FilesPrint print;
  for (const EndedFile& file : files) {
    if (file.stamp.there()) print.add(file.stamp);
  }
  put(static_cast<long long>(print.value()), bytes);
  put(static_cast<long long>(writer), bytes);
  put(noted_ns, bytes);
  for (const EndedFile& file : files) {
    put(static_cast<long long>(file.stamp.inode), bytes);
    put(file.stamp.size, bytes);
    put(file.stamp.written_ns, bytes);
    put(file.path, bytes);
    put(file.digest, bytes);
  }
  return bytes;
}

EndedFiles EndedFiles::unpacked(std::string_view packed) {
  Reader reader(packed);
  EndedFiles ended{reader.writer(), reader.noted_ns(), {}};
  if (reader.print() == 0) return ended;  // nothing, or room
  for (Reader::File file; reader.next(&file);)
    ended.files.push_back({std::string(file.path), file.stamp, std::string(file.digest)});
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

}  // namespace tally
