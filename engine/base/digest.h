// Digests of texts and files, and whether a file is still what it was.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace tally {

// Digests (XXH3, 128 bits): equal digests mean equal bytes. Not for secrets.

// Collects texts and numbers. Each text is added with its length, so that different lists of texts
// cannot give the same input.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  Digest& add(std::string_view text);
  Digest& add(uint64_t number);
  Digest& add_bytes(const void* bytes, size_t size);  // without their length
  // The digest as 32 hex digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string digest_of(std::string_view text);
// The digest of a regular file's bytes. An error names the path and the reason.
Status digest_file(const std::string& path, std::string* hex);

// Changes when somebody writes to the file or puts another one in its place.
struct FileStamp {
  uint64_t inode = 0;
  long long size = -1;       // bytes; -1: there is no regular file
  long long written_ns = 0;  // the time of the last write, in nanoseconds since 1970
  bool there() const { return size >= 0; }
  bool operator==(const FileStamp&) const = default;
};

// Not there: there is no regular file. An error: the host cannot tell.
Status file_stamp(const std::string& path, FileStamp* stamp);
FileStamp stamp_of(const struct stat& info);

// A time between two changes, as files get it: whatever was changed before the call has an earlier
// st_ctim, whatever is changed later this or a later one. `file` is open for writing and on the same
// file system; its times are changed. The clock of the host cannot tell this: some kernels give
// files a coarser time than clock_gettime(), some a finer one than CLOCK_REALTIME_COARSE. Where the
// file system's times have not moved after 20 ms, what was changed before may have this time, too.
Status file_time_now(int file, long long* ns);
// When the file, or what a link leads to, was made or changed, whatever time it was given. 0: it
// cannot be looked at.
long long file_changed_ns(const std::string& path);
// The same without changes of its mode and owner and further links to it, as far as can be told: a
// file that is neither younger nor newly written, in a folder where nothing came, went or got another
// name, is what it was.
long long file_made_ns(const std::string& path);

// The digest of the bytes [from, to) of a file. Only the first and the last 32 MiB of more than 64
// MiB count. An error if the file has fewer bytes.
Status digest_part(const std::string& path, long long from, long long to, std::string* hex);
// The stamp of a regular file, and the digest of all its bytes. Without one there is no digest.
// Bytes that are written meanwhile make another stamp.
Status stamp_and_digest(const std::string& path, FileStamp* stamp, std::string* hex);

}  // namespace tally
