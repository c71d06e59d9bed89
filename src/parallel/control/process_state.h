// Whether another process of this host was stopped (SIGSTOP, a debugger). Silence alone does not
// tell a stopped process from one that gets no processor or waits for a file system.
#pragma once

#include <cstdint>
#include <string>

namespace tally::train {

// Names this process among those of all hosts: the host's boot, the namespace of process ids, and
// the id.
std::string process_name();
// The id of the process with this name; 0 where it is not one of this host and namespace.
int local_process(const std::string& name);
// A signal or a debugger has stopped process `pid` of this host. False where that cannot be read.
bool is_stopped(int pid);
// The number of processes that the kernel has killed for want of memory: in this process's control
// group where that is counted, else on the host. 0 where it cannot be read.
int64_t oom_kills();

}  // namespace tally::train
