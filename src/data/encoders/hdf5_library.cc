#include "src/data/encoders/hdf5_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>

namespace tally::train {

#define TALLY_HDF5_DEFINE(result, name, arguments) result(*name) arguments = nullptr;
TALLY_HDF5_FUNCTIONS(TALLY_HDF5_DEFINE)
#undef TALLY_HDF5_DEFINE
#define TALLY_HDF5_DEFINE(name, variable) hid_t name = 0;
TALLY_HDF5_HANDLES(TALLY_HDF5_DEFINE)
#undef TALLY_HDF5_DEFINE

namespace {

// Debian's names and those of HDF5 itself, 1.10, 1.12, 1.14 and 2; at last what a module or a
// development package has.
constexpr const char* kNames[] = {
    "libhdf5_serial.so.103", "libhdf5.so.103", "libhdf5.so.200", "libhdf5_serial.so.310",
    "libhdf5.so.310",        "libhdf5.so.320", "libhdf5.so",     "libhdf5_serial.so"};

std::mutex& library_mutex() {
  static std::mutex one;
  return one;
}

void* open_file() {
  if (const char* chosen = std::getenv("TALLY_HDF5"); chosen != nullptr) {
    void* library = dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return library;
    throw std::runtime_error(fmt::format(
        "TALLY_HDF5 is '{}', which cannot be loaded as HDF5's library: {}", chosen, dlerror()));
  }
  for (const char* name : kNames)
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
  throw std::runtime_error(
      "HDF5 files need HDF5's library, and this machine's loader finds no libhdf5.so: install it "
      "(Debian: libhdf5-103-1) or load its module, or name the file in TALLY_HDF5");
}

void* symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  // The versions after 1.10 number the form that 1.10 has.
  if (found == nullptr) found = dlsym(library, (std::string(name) + "1").c_str());
  if (found == nullptr)
    throw std::runtime_error(
        fmt::format("HDF5's library on this machine has no {}: 1.10.7 or newer is needed", name));
  return found;
}

bool open_library() {
  void* library = open_file();
#define TALLY_HDF5_FIND(result, name, arguments) \
  name = reinterpret_cast<result(*) arguments>(symbol(library, #name));
  TALLY_HDF5_FUNCTIONS(TALLY_HDF5_FIND)
#undef TALLY_HDF5_FIND
  if (H5open() < 0 || H5PLset_loading_state(0) < 0)  // no plug-ins
    throw std::runtime_error("HDF5's library on this machine does not start");
#define TALLY_HDF5_FIND(name, variable) \
  name = *static_cast<const hid_t*>(symbol(library, #variable));
  TALLY_HDF5_HANDLES(TALLY_HDF5_FIND)
#undef TALLY_HDF5_FIND
  return true;
}

}  // namespace

void open_hdf5_library() {
  static const bool opened = open_library();
  static_cast<void>(opened);
}

Hdf5Library::Hdf5Library() : lock_((open_hdf5_library(), library_mutex())) {
  // The library prints its errors otherwise; where it was built for threads, each thread has to say
  // so.
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

std::string hdf5_error() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_DOWNWARD,
      [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
        if (error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
        return 0;
      },
      &text);
  return text.empty() ? "unknown reason" : text;
}

}  // namespace tally::train
