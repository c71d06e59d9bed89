// Tells a process from a later one with the same id, as the kernel uses ids again.
#pragma once

#include <string>

namespace tally {

enum class Life { alive, dead, unknown };

// The kernel's random id of this boot. Empty where /proc does not say it.
std::string boot_id();
// Such as "pid:[4026531836]". Process ids mean something only within their namespace.
std::string own_pid_namespace();
// When the process started, in clock ticks since the boot. A zombie is dead. `unknown`: /proc does
// not show the process; it may be hidden, or not exist.
Life read_start(int pid, std::string* ticks);

}  // namespace tally
