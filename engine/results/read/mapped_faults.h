// Faults of mapped files: the kernel sends SIGBUS when a file becomes shorter, or its disk fails,
// while it is read.
#pragma once

namespace tally {

// From now on such a signal ends the process with exit code 1 and one sentence that names the file.
// Call it once, at the start of the program.
void report_faults_of_mapped_files();

}  // namespace tally
