// A lease records who writes to a run. It is a small file beside the database that names host and
// process. The database's lock alone cannot name its holder, and some file systems do not lock at
// all.
#pragma once

#include <optional>
#include <string>

#include "engine/base/status.h"

namespace tally {

struct LeaseHolder {
  std::string host;
  int pid = 0;
  std::string process_start;  // boot id and start time of the process, because pids are reused
  std::string since;
};

class Lease {
 public:
  // Takes the lease of `path` unless a live holder has it. A live holder is a live process of this
  // host, or a process of another host that renewed the lease within the last two minutes. When
  // several processes on any hosts try at the same moment, exactly one succeeds. This needs no file
  // locks; the file system must only guarantee that link() creates a name once.
  Status take(const std::string& path, const std::string& what);
  // Renews the lease. Returns false when another process has taken it, because this process stood
  // still for too long (for example on a suspended machine). This process must then write nothing
  // more.
  bool renew();
  // Releases the lease. The destructor does so too.
  void release();
  Lease() = default;
  ~Lease() { release(); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  // The holder, if it is alive.
  static std::optional<LeaseHolder> live_holder(const std::string& path);
  static std::optional<LeaseHolder> read(const std::string& path);

 private:
  bool ours() const;
  std::string path_;
  std::string text_;  // content of the file while this process holds the lease
};

// Returns "run 000003 is in use by tally on host X, process 123, since ..., ".
std::string in_use_message(const std::string& what, const std::optional<LeaseHolder>& holder);

}  // namespace tally
