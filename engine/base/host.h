// This machine among those that share a file system, and its processes.
#pragma once

#include <string>

namespace tally {

// $TALLY_HOST, or else the host's name. The variable is for machines whose names are not unique,
// such as containers that are all called localhost.
std::string host_identity();

// A name in the same folder as `path` that no other process on any host uses. It is for a file that
// is written first and then renamed to `path`.
std::string name_beside(const std::string& path);

// Tells a process from a later one with the same id, as the kernel uses ids again.
enum class Life { alive, dead, unknown };

// The kernel's random id of this boot. Empty where /proc does not say it.
std::string boot_id();
// Such as "pid:[4026531836]". Process ids mean something only within their namespace.
std::string own_pid_namespace();
// When the process started, in clock ticks since the boot. A zombie is dead. `unknown`: /proc does
// not show the process; it may be hidden, or not exist.
Life read_start(int pid, std::string* ticks);

}  // namespace tally
