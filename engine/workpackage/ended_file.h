// An analysed file as it was when its workpackage ended: of the workpackage's own folder, and in
// JUBE's files also outside the run. Whoever writes to it later changes the result.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/file_stamp.h"

namespace tally {

struct EndedFile {
  std::string path;  // relative to the run's folder if it is below, so that a run may be moved
  FileStamp stamp;
  std::string digest;  // of all bytes (digest_part()); empty: nobody could read it
};

// The analysed files of one workpackage.
struct EndedFiles {
  // Who may go on writing after the engine has taken note of the end.
  enum class Writer {
    command,  // nobody: the command has ended
    job,      // what a job wrote before it ended may arrive later, on a network file system
    unknown,  // a job of which the engine knows the done_file alone
  };
  Writer writer = Writer::command;
  long long noted_ns = 0;  // when this was noted, in nanoseconds since 1970
  std::vector<EndedFile> files;

  // As bytes, for the journal; and back.
  std::string packed() const;
  static EndedFiles unpacked(std::string_view packed);
};

// Reads EndedFiles::packed() in place: a run may have 100,000, of which nothing but size and time is
// asked.
class PackedEndedFiles {
 public:
  explicit PackedEndedFiles(std::string_view packed);
  EndedFiles::Writer writer() const { return writer_; }
  long long noted_ns() const { return noted_ns_; }
  // The next file. False: there is none. `path` and `digest` end with a NUL.
  struct File {
    std::string_view path, digest;
    FileStamp stamp;
  };
  bool next(File* file);

 private:
  bool take(void* into, size_t size);
  std::string_view take_text();

  std::string_view left_;
  EndedFiles::Writer writer_ = EndedFiles::Writer::command;
  long long noted_ns_ = 0;
};

}  // namespace tally
