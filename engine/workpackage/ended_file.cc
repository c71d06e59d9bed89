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

}  // namespace

std::string EndedFiles::packed() const {
  std::string bytes;
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
  PackedEndedFiles reader(packed);
  EndedFiles ended{reader.writer(), reader.noted_ns(), {}};
  for (PackedEndedFiles::File file; reader.next(&file);)
    ended.files.push_back({std::string(file.path), file.stamp, std::string(file.digest)});
  return ended;
}

PackedEndedFiles::PackedEndedFiles(std::string_view packed) : left_(packed) {
  long long writer = 0;
  if (take(&writer, sizeof writer) && take(&noted_ns_, sizeof noted_ns_))
    writer_ = static_cast<EndedFiles::Writer>(writer);
}

bool PackedEndedFiles::next(File* file) {
  if (!take(&file->stamp.inode, sizeof file->stamp.inode) ||
      !take(&file->stamp.size, sizeof file->stamp.size) ||
      !take(&file->stamp.written_ns, sizeof file->stamp.written_ns)) {
    return false;
  }
  file->path = take_text();
  file->digest = take_text();
  return true;
}

bool PackedEndedFiles::take(void* into, size_t size) {
  if (left_.size() < size) return false;
  std::memcpy(into, left_.data(), size);
  left_.remove_prefix(size);
  return true;
}

std::string_view PackedEndedFiles::take_text() {
  const std::string_view text = left_.substr(0, left_.find('\0'));
  left_.remove_prefix(std::min(text.size() + 1, left_.size()));
  return text;
}

}  // namespace tally
