#include "src/convert/zip_archive.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "src/convert/byte_reader.h"

namespace tally::train {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr size_t kEndBytes = 22, kLocatorBytes = 20, kLongestComment = 0xffff;
constexpr uint32_t kSeeExtra = 0xffffffff;
constexpr uint16_t kEncrypted = 1;

uint32_t signature(std::string_view file, size_t at) {
  return ByteReader(file, at).take<uint32_t>();
}

// The offset of the end record, which a comment may follow.
size_t find_end(std::string_view file) {
  if (file.size() < kEndBytes) throw DamagedData("it is cut short");
  const size_t last = file.size() - kEndBytes;
  const size_t first = last - std::min(last, kLongestComment);
  for (size_t at = last + 1; at-- > first;) {
    if (signature(file, at) != kEnd) continue;
    ByteReader comment(file, at + kEndBytes - sizeof(uint16_t));
    if (comment.take<uint16_t>() == comment.left()) return at;
  }
  throw DamagedData("it has no ZIP directory at its end: it is cut short");
}

struct Directory {
  uint64_t count = 0, size = 0, offset = 0;
};

Directory find_directory(std::string_view file) {
  const size_t end = find_end(file);
  ByteReader in(file, end + 4);
  Directory directory;
  const auto disk = in.take<uint16_t>();
  const auto directory_disk = in.take<uint16_t>();
  if ((disk != 0 && disk != 0xffff) || (directory_disk != 0 && directory_disk != 0xffff))
    throw DamagedData("it is one of several parts of a ZIP file");
  in.take<uint16_t>();
  directory.count = in.take<uint16_t>();
  directory.size = in.take<uint32_t>();
  directory.offset = in.take<uint32_t>();
  if (end < kLocatorBytes || signature(file, end - kLocatorBytes) != kEnd64Locator)
    return directory;
  ByteReader locator(file, end - kLocatorBytes + 8);
  const auto offset = locator.take<uint64_t>();
  if (offset > file.size() || signature(file, offset) != kEnd64)
    throw DamagedData("its ZIP64 directory is not where its end says");
  ByteReader in64(file, offset + 32);
  directory.count = in64.take<uint64_t>();
  directory.size = in64.take<uint64_t>();
  directory.offset = in64.take<uint64_t>();
  return directory;
}

}  // namespace

bool ZipArchive::is_zip(std::string_view file) {
  return file.size() >= 4 && signature(file, 0) == kLocalHeader;
}

ZipArchive::ZipArchive(std::string_view file) : file_(file) {
  const Directory directory = find_directory(file);
  if (directory.offset > file.size()) throw DamagedData("its ZIP directory lies beyond its end");
  ByteReader in(file, directory.offset);
  read_directory(in.take(directory.size), directory.count);
}

void ZipArchive::read_directory(std::string_view directory, uint64_t count) {
  ByteReader in(directory);
  for (uint64_t i = 0; i < count; ++i) {
    if (in.take<uint32_t>() != kDirectoryEntry) throw DamagedData("its ZIP directory is damaged");
    Entry entry;
    in.take(4);  // versions
    entry.flags = in.take<uint16_t>();
    entry.method = in.take<uint16_t>();
    in.take(4);  // time
    entry.crc = in.take<uint32_t>();
    has_crcs_ = has_crcs_ || entry.crc != 0;
    entry.stored = in.take<uint32_t>();
    entry.size = in.take<uint32_t>();
    const auto name_bytes = in.take<uint16_t>();
    const auto extra_bytes = in.take<uint16_t>();
    const auto comment_bytes = in.take<uint16_t>();
    in.take(8);  // disk, attributes
    entry.header = in.take<uint32_t>();
    const std::string name(in.take(name_bytes));
    ByteReader extra(in.take(extra_bytes));
    in.take(comment_bytes);
    while (extra.left() >= 4) {
      const auto id = extra.take<uint16_t>();
      ByteReader field(extra.take(extra.take<uint16_t>()));
      if (id != 1) continue;
      for (uint64_t* value : {&entry.size, &entry.stored, &entry.header})
        if (*value == kSeeExtra) *value = field.take<uint64_t>();
    }
    if (!entries_.emplace(name, entry).second)
      throw DamagedData(fmt::format("two entries of its ZIP directory are called '{}'", name));
  }
}

std::string ZipArchive::folder_of(const std::string& name) const {
  std::string found;
  for (const auto& [path, entry] : entries_) {
    const size_t slash = path.find('/');
    if (slash == std::string::npos || slash == 0 || path.substr(slash + 1) != name) continue;
    if (!found.empty()) return {};
    found = path.substr(0, slash);
  }
  return found;
}

std::string_view ZipArchive::read(const std::string& name) const {
  const auto at = entries_.find(name);
  if (at == entries_.end()) throw DamagedData(fmt::format("it has no entry '{}'", name));
  const Entry& entry = at->second;
  if ((entry.flags & kEncrypted) != 0)
    throw DamagedData(fmt::format("its entry '{}' is encrypted", name));
  if (entry.method != 0 || entry.stored != entry.size)
    throw DamagedData(fmt::format(
        "its entry '{}' is compressed, and torch.save() does not compress: save it with torch",
        name));
  if (entry.header > file_.size()) throw DamagedData("an entry lies beyond its end");
  ByteReader in(file_, entry.header);
  if (in.take<uint32_t>() != kLocalHeader)
    throw DamagedData(fmt::format("its entry '{}' is not where its ZIP directory says", name));
  in.take(22);
  const auto name_bytes = in.take<uint16_t>();
  const auto extra_bytes = in.take<uint16_t>();
  if (in.take(name_bytes) != name)
    throw DamagedData(fmt::format("its entry '{}' has another name in its own header", name));
  in.take(extra_bytes);
  const std::string_view bytes = in.take(entry.size);
  if (!has_crcs_) return bytes;
  const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (crc != entry.crc)
    throw DamagedData(fmt::format("the bytes of its entry '{}' do not have its CRC-32", name));
  return bytes;
}

}  // namespace tally::train
