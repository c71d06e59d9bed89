// An analysed file as it was when its workpackage ended: of the workpackage's own folder, and in
// JUBE's files also outside the run. Whoever writes to it later changes the result.
#pragma once

#include <climits>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/digest.h"

namespace tally {

struct EndedFile {
  std::string path;    // relative to the run's folder if it is below, so that a run may be moved
  FileStamp stamp;     // not there: `path` is a name or glob that no other file had (as analysed)
  std::string digest;  // of all bytes (digest_part()); empty: nobody could read it
  // path_behind_links() at the end; empty: no link was in the way, or nobody looked
  // (EndedFiles::links_known is false).
  std::string real = {};
};

// The path to which links lead from another, relative to the run's folder if it is below.
std::string path_behind_links(const std::string& run_dir, const std::string& path);

// The analysed files of one workpackage.
struct EndedFiles {
  // The writer that may go on after the engine has taken note of the end.
  enum class Writer {
    command,  // nobody: the command has ended
    job,      // what a job wrote before it ended may arrive later, on a network file system
    unknown,  // a job of which the engine knows the done_file alone
  };
  // Files that were not there count as the workpackage's own if they were written until then, in
  // nanoseconds since 1970.
  long long own_until_ns() const {
    constexpr long long kClockSkew =
        2LL * 1000000000;  // of a job's nodes, their file server, this host
    return writer == Writer::unknown ? LLONG_MAX
           : writer == Writer::job   ? noted_ns + kClockSkew
                                     : 0;
  }
  Writer writer = Writer::command;
  long long noted_ns = 0;    // when this was noted, in nanoseconds since 1970
  bool links_known = false;  // earlier programs did not note where links led
  std::vector<EndedFile> files;

  // The files as bytes, for the journal; and back.
  std::string packed() const;
  static EndedFiles unpacked(std::string_view packed);
};

// A number that tells the sizes and times of files, in whatever order they are added: results
// compare it with that of the files that they open anyway, which costs nothing.
class FilesPrint {
 public:
  void add(const FileStamp& stamp);
  // Never 0 in practice, of no file either.
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 1;
};
// The FilesPrint of packed files. 0: there is nothing packed.
uint64_t files_print(std::string_view packed);
// EndedFiles::noted_ns, of the packed ones. A file that was changed after that, whatever time it was
// given, may have other bytes. 0: nothing is packed.
long long files_noted_ns(std::string_view packed);

}  // namespace tally
