// tally: the workflow engine's command line.
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string>

#include "engine/cli/app.h"

namespace {

// A workflow's commands find the programs that lie beside tally (tally-train) without a PATH set up
// for them. Last in PATH, so that what a site or a module provides comes first.
void append_own_directory_to_path() {
  char program[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", program, sizeof program);
  if (length <= 0) return;
  std::string directory(program, static_cast<size_t>(length));
  directory.erase(directory.rfind('/'));
  const char* path = std::getenv("PATH");
  ::setenv("PATH", (std::string(path ? path : "/usr/bin:/bin") + ":" + directory).c_str(), 1);
}

}  // namespace

int main(int argc, char** argv) {
  append_own_directory_to_path();
  return tally::run_application(argc, argv);
}
