#include "engine/journal/page_sums.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tally {
namespace {

constexpr int sum_size = 8;
constexpr int header_size = 100;
constexpr const char* vfs_name = "tally-page-sums";
// A request to a file of this file system. SQLite leaves numbers above 100 to others.
constexpr int ask_last_error = 0x7a11;
constexpr std::string_view magic("SQLite format 3\0", 16);

// A file of the underlying file system. Its own memory follows this struct.
struct SumFile {
  sqlite3_file base;
  int page_size = 0;  // of a file with sums; 0: it has none, or its header has not been seen
  int level = SQLITE_LOCK_NONE;
  bool sums = false;   // a database; SQLite's log has sums of its own
  int last_error = 0;  // errno of the last call that failed

  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

SumFile* of(sqlite3_file* file) {
  return reinterpret_cast<SumFile*>(file);
}

// Fletcher's sum over 32-bit words. It begins with the page's place, so that a page written to
// another place is found too.
std::array<unsigned char, sum_size> sum_of(const unsigned char* page, int size, sqlite3_int64 at) {
  auto first = static_cast<uint32_t>(at / size);
  uint32_t second = 0x74616c79;
  for (int i = 0; i + sum_size < size; i += 8) {
    std::array<uint32_t, 2> words{};
    std::memcpy(words.data(), page + i, sizeof words);
    first += words[0] + second;
    second += words[1] + first;
  }
  std::array<unsigned char, sum_size> sum{};
  std::memcpy(sum.data(), &first, sizeof first);
  std::memcpy(sum.data() + sizeof first, &second, sizeof second);
  return sum;
}

// Bytes 16 and 17 of the first page are the page size (1: 65536). Byte 20 says how many bytes each
// page leaves free.
void look_at_header(SumFile& file, const void* start, int count, sqlite3_int64 at) {
  if (!file.sums || at != 0 || count < header_size ||
      std::memcmp(start, magic.data(), magic.size()) != 0)
    return;
  const auto* bytes = static_cast<const unsigned char*>(start);
  const int size = bytes[16] << 8 | bytes[17];
  file.page_size = bytes[20] != sum_size ? 0 : size == 1 ? 65536 : size;
}

bool has_sum(const SumFile& file, int count, sqlite3_int64 at) {
  return file.page_size != 0 && count == file.page_size && at % count == 0;
}

// Notes why a call failed. Takes an EIO for what it is: SQLite takes it for damage.
int noted(sqlite3_file* file, int code) {
  if (code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ) return code;
  of(file)->last_error = code == SQLITE_FULL ? ENOSPC : errno;
  return code == SQLITE_IOERR_CORRUPTFS ? SQLITE_IOERR_READ : code;
}

int sum_close(sqlite3_file* file) {
  return of(file)->real()->pMethods->xClose(of(file)->real());
}

int sum_read(sqlite3_file* file, void* bytes, int count, sqlite3_int64 at) {
  sqlite3_file* real = of(file)->real();
  const int code = real->pMethods->xRead(real, bytes, count, at);
  if (code != SQLITE_OK) return noted(file, code);
  look_at_header(*of(file), bytes, count, at);
  if (!has_sum(*of(file), count, at)) return SQLITE_OK;
  const auto* page = static_cast<const unsigned char*>(bytes);
  const auto sum = sum_of(page, count, at);
  return std::memcmp(sum.data(), page + count - sum_size, sum_size) == 0 ? SQLITE_OK
                                                                         : SQLITE_IOERR_DATA;
}

int sum_write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 at) {
  sqlite3_file* real = of(file)->real();
  look_at_header(*of(file), bytes, count, at);
  if (!has_sum(*of(file), count, at)) {
    return noted(file, real->pMethods->xWrite(real, bytes, count, at));
  }
  std::string page(static_cast<const char*>(bytes), static_cast<size_t>(count));
  const auto sum = sum_of(static_cast<const unsigned char*>(bytes), count, at);
  std::memcpy(page.data() + count - sum_size, sum.data(), sum_size);
  return noted(file, real->pMethods->xWrite(real, page.data(), count, at));
}

int sum_truncate(sqlite3_file* file, sqlite3_int64 size) {
  return noted(file, of(file)->real()->pMethods->xTruncate(of(file)->real(), size));
}
int sum_sync(sqlite3_file* file, int flags) {
  return noted(file, of(file)->real()->pMethods->xSync(of(file)->real(), flags));
}
int sum_file_size(sqlite3_file* file, sqlite3_int64* size) {
  return noted(file, of(file)->real()->pMethods->xFileSize(of(file)->real(), size));
}
int sum_lock(sqlite3_file* file, int level) {
  const int code = of(file)->real()->pMethods->xLock(of(file)->real(), level);
  if (code == SQLITE_OK) of(file)->level = std::max(of(file)->level, level);
  return code;
}
int sum_unlock(sqlite3_file* file, int level) {
  of(file)->level = std::min(of(file)->level, level);
  return of(file)->real()->pMethods->xUnlock(of(file)->real(), level);
}
// SQLite asks whether a rollback journal belongs to another writer. SqliteDatabase::lock() has
// locked the file without SQLite's knowledge; there is then no other writer.
int sum_check_lock(sqlite3_file* file, int* reserved) {
  *reserved = 0;
  if (of(file)->level > SQLITE_LOCK_SHARED) return SQLITE_OK;
  return of(file)->real()->pMethods->xCheckReservedLock(of(file)->real(), reserved);
}
int sum_control(sqlite3_file* file, int operation, void* argument) {
  if (operation == ask_last_error) {
    *static_cast<int*>(argument) = of(file)->last_error;
    return SQLITE_OK;
  }
  return of(file)->real()->pMethods->xFileControl(of(file)->real(), operation, argument);
}
int sum_sector_size(sqlite3_file* file) {
  return of(file)->real()->pMethods->xSectorSize(of(file)->real());
}
int sum_characteristics(sqlite3_file* file) {
  return of(file)->real()->pMethods->xDeviceCharacteristics(of(file)->real());
}

// Version 1 has neither shared memory, which the journal does not use, nor maps, which would show
// pages without a check.
const sqlite3_io_methods sum_methods{1,
                                     sum_close,
                                     sum_read,
                                     sum_write,
                                     sum_truncate,
                                     sum_sync,
                                     sum_file_size,
                                     sum_lock,
                                     sum_unlock,
                                     sum_check_lock,
                                     sum_control,
                                     sum_sector_size,
                                     sum_characteristics,
                                     nullptr,
                                     nullptr,
                                     nullptr,
                                     nullptr,
                                     nullptr,
                                     nullptr};

int sum_open(sqlite3_vfs* vfs, sqlite3_filename name, sqlite3_file* file, int flags,
             int* flags_out) {
  auto* base = static_cast<sqlite3_vfs*>(vfs->pAppData);
  SumFile* wrapped = of(file);
  wrapped->base.pMethods = nullptr;
  wrapped->page_size = 0;
  wrapped->level = SQLITE_LOCK_NONE;
  wrapped->sums = (flags & SQLITE_OPEN_MAIN_DB) != 0;
  wrapped->last_error = 0;
  const int code = base->xOpen(base, name, wrapped->real(), flags, flags_out);
  // The file may still ask to be closed when opening it failed.
  if (wrapped->real()->pMethods != nullptr) wrapped->base.pMethods = &sum_methods;
  return code;
}

// SQLite resolves links in names, and takes no name of more than 512 bytes. Names that begin with
// descriptor_folder stay as they are.
int full_name(sqlite3_vfs* vfs, const char* name, int size, char* out) {
  auto* base = static_cast<sqlite3_vfs*>(vfs->pAppData);
  const std::string_view given(name);
  if (given.rfind(descriptor_folder, 0) != 0) return base->xFullPathname(base, name, size, out);
  if (given.size() >= static_cast<size_t>(size)) return SQLITE_CANTOPEN;
  std::memcpy(out, name, given.size() + 1);
  return SQLITE_OK;
}

struct SumVfs {
  sqlite3_vfs vfs{};
  bool registered = false;

  SumVfs() {
    sqlite3_vfs* base = sqlite3_vfs_find(nullptr);
    if (base == nullptr) return;
    vfs = *base;
    vfs.zName = vfs_name;
    vfs.pNext = nullptr;
    vfs.pAppData = base;
    vfs.szOsFile = base->szOsFile + static_cast<int>(sizeof(SumFile));
    vfs.xOpen = sum_open;
    vfs.xFullPathname = full_name;
    registered = sqlite3_vfs_register(&vfs, 0) == SQLITE_OK;
  }
};

}  // namespace

const char* page_sum_vfs() {
  static SumVfs vfs;  // SQLite keeps its address
  return vfs.registered ? vfs_name : nullptr;
}

int last_system_error(sqlite3* database) {
  if (const int error = sqlite3_system_errno(database); error != 0) return error;
  int error = 0;
  sqlite3_file* log = nullptr;
  if (sqlite3_file_control(database, "main", ask_last_error, &error) == SQLITE_OK && error != 0) {
    return error;
  }
  if (sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER,
                           static_cast<void*>(&log)) == SQLITE_OK &&
      log != nullptr && log->pMethods == &sum_methods) {
    log->pMethods->xFileControl(log, ask_last_error, &error);
  }
  return error;
}

int reserve_page_sums(sqlite3* database) {
  int size = sum_size;
  return sqlite3_file_control(database, "main", SQLITE_FCNTL_RESERVE_BYTES, &size);
}

}  // namespace tally
