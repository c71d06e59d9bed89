#include "src/data/encoders/hdf5_library.h"

namespace tally::train {
namespace {

std::mutex& library_mutex() {
  static std::mutex one;
  return one;
}

}  // namespace

Hdf5Library::Hdf5Library() : lock_(library_mutex()) {
  static const bool started = H5open() >= 0 && H5PLset_loading_state(0) >= 0;  // no plug-ins
  static_cast<void>(started);
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
