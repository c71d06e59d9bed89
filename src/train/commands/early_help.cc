// Opens closed standard streams, and answers --help, --version, --plan and reference before
// LibTorch's libraries run their constructors, which takes a quarter of a second and longer with
// CUDA.
//
// The loader calls the program's .preinit_array before the constructors of any library, the C
// library's among them. So nothing here may need one: no environment except what is passed, no
// memory, no C++ library. It starts tally-train-help, which is next to this program or in
// ../lib/tally, like the modules in src/parallel. Without it, main() does the same more slowly.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstddef>

namespace {

// Sanitizers are not ready at this point either.
#define TALLY_BARE __attribute__((no_sanitize("address", "thread", "undefined")))

TALLY_BARE bool equal(const char* a, const char* b) {
  for (; *a == *b; ++a, ++b)
    if (*a == '\0') return true;
  return false;
}

TALLY_BARE bool wants_text(int argc, char** argv) {
  if (argc < 2) return false;
  if (equal(argv[1], "--version") || equal(argv[1], "reference") || equal(argv[1], "complete") ||
      equal(argv[1], "manual"))
    return true;
  for (int i = 1; i < argc; ++i)
    if (equal(argv[i], "--help") || equal(argv[i], "-h") || equal(argv[i], "--plan")) return true;
  return false;
}

// Replaces what follows `length` bytes of `path` and starts that program. Returns where it does not
// exist.
TALLY_BARE void start(char* path, size_t length, const char* name, char** argv, char** envp) {
  size_t i = 0;
  for (; name[i] != '\0' && length + i + 1 < PATH_MAX; ++i) path[length + i] = name[i];
  path[length + i] = '\0';
  execve(path, argv, envp);
}

// A closed standard stream becomes /dev/null. Otherwise the next file that is opened, by a library
// or by us, would take its number and receive its lines.
TALLY_BARE void open_standard_streams() {
  long opened = 0;
  do {
    opened = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);  // takes the lowest free number
  } while (opened >= 0 && opened <= STDERR_FILENO);
  if (opened > STDERR_FILENO) syscall(SYS_close, opened);
}

TALLY_BARE void answer_early(int argc, char** argv, char** envp) {
  open_standard_streams();
  if (!wants_text(argc, argv)) return;
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0 || length >= static_cast<ssize_t>(sizeof(path))) return;
  auto folder = static_cast<size_t>(length);
  while (folder > 0 && path[folder - 1] != '/') --folder;
  start(path, folder, "tally-train-help", argv, envp);
  start(path, folder, "../lib/tally/tally-train-help", argv, envp);
}

__attribute__((section(".preinit_array"), used)) void (*const at_start)(int, char**,
                                                                        char**) = answer_early;

}  // namespace
