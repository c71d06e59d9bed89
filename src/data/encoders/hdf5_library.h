// The parts of HDF5's C library that both sides of hdf5_file.h need.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>

namespace tally::train {

// A lock that is held while the library is called.
class Hdf5Library {
 public:
  Hdf5Library();

 private:
  std::lock_guard<std::mutex> lock_;
};

// A handle of the library, closed with its scope.
class Hdf5Handle {
 public:
  Hdf5Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;
  operator hid_t() const { return id_; }  // NOLINT(google-explicit-constructor)

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// The innermost error of the library's stack.
std::string hdf5_error();

}  // namespace tally::train
