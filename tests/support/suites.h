// The suites of tests that say nothing where a program is static or runs under an emulator. Those
// who run it leave them out, and doctest counts what it left out.
#pragma once

namespace tally::testing {

// Their tally opens a library at run time, which a static one cannot.
inline constexpr const char* kOpensALibrary = "opens a library at run time";
// They see how a process could not be started, or which program it is. Under qemu-user a child that
// cannot be started ends with 127, because vfork is fork there, and every program is qemu.
inline constexpr const char* kSeesProcesses = "sees how processes start and who they are";

}  // namespace tally::testing
