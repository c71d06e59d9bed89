// Who writes to a run: a small file beside the database that names host and process, because a
// locked database alone cannot say whose it is, and some file systems do not lock at all.
#pragma once

#include <optional>
#include <string>

#include "engine/base/status.h"

namespace tally {

struct LeaseHolder {
  std::string host;
  int pid = 0;
  std::string process_start;  // boot and start time of the process: a pid alone is used again
  std::string since;
};

class Lease {
 public:
  // Takes the lease of `path` unless a live holder has it: a live process of this host, or a
  // process of another host that renewed it within the last two minutes. Of several that try at the
  // same moment, from whatever hosts, one gets it, also where the file system locks nothing: all
  // that is asked of it is that link() makes a name once.
  Status take(const std::string& path, const std::string& what);
  // Marks the lease as fresh. False: it is another's by now, because this process stood still for
  // too long (a suspended machine); what it still writes nobody must believe.
  bool renew();
  // Gives it back; also done at the end.
  void release();
  Lease() = default;
  ~Lease() { release(); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  // The holder when there is a live one.
  static std::optional<LeaseHolder> live_holder(const std::string& path);
  static std::optional<LeaseHolder> read(const std::string& path);

 private:
  bool ours() const;
  std::string path_;
  std::string text_;  // what the file says while it is ours
};

// "run 000003 is in use by tally on host X, process 123, since ..., ".
std::string in_use_message(const std::string& what, const std::optional<LeaseHolder>& holder);

}  // namespace tally
