// The directory of a ZIP file whose entries are stored without compression, as torch.save() writes
// it (PKWARE's APPNOTE 6.3.10, with ZIP64). Entries are views of the mapped file, so that a tensor
// of gigabytes is neither copied nor allocated. Libraries for ZIP files hand out copies.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tally::train {

class ZipArchive {
 public:
  // `file`: all bytes; they must outlive the archive. Throws DamagedData.
  explicit ZipArchive(std::string_view file);

  // Whether the bytes begin as a ZIP file's.
  static bool is_zip(std::string_view file);

  // The folder of the entry FOLDER/NAME, where exactly one folder has it; otherwise empty.
  std::string folder_of(const std::string& name) const;
  bool has(const std::string& name) const { return entries_.count(name) != 0; }
  // An entry's bytes, after a comparison with their CRC-32. Throws DamagedData where there is no
  // such entry, or where it is compressed, encrypted or damaged.
  std::string_view read(const std::string& name) const;

 private:
  struct Entry {
    uint64_t header = 0;  // offset of its local header
    uint64_t size = 0, stored = 0;
    uint32_t crc = 0;
    uint16_t flags = 0, method = 0;
  };
  void read_directory(std::string_view directory, uint64_t count);

  std::string_view file_;
  std::map<std::string, Entry> entries_;
  bool has_crcs_ = false;  // torch.save() may leave all of them out: they are 0
};

}  // namespace tally::train
