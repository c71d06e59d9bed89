// A lease records who writes to a run. It is a small file beside the database that names host and
// process. The database's lock alone cannot name its holder, and some file systems do not lock at
// all.
#pragma once

#include <ctime>
#include <optional>
#include <string>

#include "engine/base/status.h"

namespace tally {

struct LeaseHolder {
  std::string host;
  int pid = 0;
  std::string process_start;  // boot id and start time of the process, because pids are reused
  std::string since;
  std::string pid_namespace;  // in which `pid` counts; empty: unknown
};

class Lease {
 public:
  // Takes the lease of `path` unless a live holder has it. The holder is dead when this host's
  // kernel knows no such process. Where the kernel cannot tell, the holder is dead when it has not
  // renewed the lease for two minutes: a process of another host or container, or one that /proc
  // hides. A lease that cannot be read has a live holder. When several processes on any hosts try
  // at the same moment, exactly one succeeds. This needs no file locks; the file system must only
  // guarantee that link() creates a name once.
  Status take(const std::string& path, const std::string& what);
  // Puts the lease that take() removed back, with its time, or else releases. For a take-over that
  // has failed before it wrote anything: the former holder may only stand still, and then goes on.
  void give_back();
  // Renews the lease. Returns false when another process has taken it, because this process stood
  // still for too long (for example on a suspended machine), or when it could not be renewed for so
  // long that another process may have taken it. This process must then write nothing more.
  bool renew();
  // Whether the last renewal is so long ago that renew() must be called before the next write.
  bool stale() const { return !path_.empty() && seconds_now() - renewed_ > 60; }
  // Whether the file is known to have this process's lease.
  bool is_own() const { return owner() == Owner::self; }
  // Releases the lease. The destructor does so too.
  void release();
  Lease() = default;
  ~Lease() { release(); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  // The holder, if it is alive or may be.
  static std::optional<LeaseHolder> live_holder(const std::string& path);
  // The holder of the lease, unless this host's kernel knows that it is dead. `silent`: seconds
  // since the last renewal. For a run whose lock is held.
  static std::optional<LeaseHolder> possible_holder(const std::string& path, double* silent);
  // Empty when there is no lease. Without a host when the file cannot be read or is not complete.
  static std::optional<LeaseHolder> read(const std::string& path);

 private:
  enum class Owner { self, other, unknown };
  Owner owner() const;
  Status take_over(const std::string& path, const std::string& text);
  // Time since the boot. It goes on while the machine is suspended.
  static double seconds_now();
  std::string path_;
  std::string text_;           // content of the file while this process holds the lease
  std::string former_;         // content that take() replaced
  timespec former_renewal_{};  // its time
  double renewed_ = 0;
};

// Returns "run 000003 is in use by tally on host X, process 123, since ..., ". `silent`: seconds
// since the holder's last renewal. If that is long ago, the message says that it may be suspended.
std::string in_use_message(const std::string& what, const std::optional<LeaseHolder>& holder,
                           double silent = 0);

}  // namespace tally
