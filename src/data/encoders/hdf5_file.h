// Tables of integers in HDF5 files. HDF5's C library finds them; their numbers are read and
// unpacked here, because the library (1.10) trusts the sizes that a file declares and may crash on
// a damaged one. Only what a table needs is accepted, so that no other file is opened and no
// plug-in is loaded on behalf of one. Calls may come from several threads; the library's go on one
// at a time, as it demands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tally::train {

// A file that is read. Every error throws std::runtime_error with one sentence that names the file.
class Hdf5Reader {
 public:
  struct Table {
    int64_t rows = 0, columns = 1;
  };

  explicit Hdf5Reader(const std::string& path);
  ~Hdf5Reader();
  Hdf5Reader(const Hdf5Reader&) = delete;
  Hdf5Reader& operator=(const Hdf5Reader&) = delete;

  const std::string& path() const { return path_; }
  // The shape of a dataset of one or two dimensions. Throws where it is missing, is not of
  // integers, or declares more numbers than the file can hold.
  Table table(const char* name) const;
  // All numbers of a dataset, row major, as i32. Numbers beyond i32 become its least or greatest.
  std::vector<int32_t> read(const char* name) const;

 private:
  struct Dataset;

  std::string path_;
  int64_t file_ = -1;
  int fd_ = -1;
};

// A file that is written. Every error throws std::runtime_error with one sentence.
class Hdf5Writer {
 public:
  // Creates or replaces PATH.
  explicit Hdf5Writer(const std::string& path);
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;
  // A dataset values[rows, columns], compressed with gzip; columns 0: values[rows], of one
  // dimension. T: int32_t or int8_t.
  template <typename T>
  void write(const char* name, const std::vector<T>& values, int64_t rows, int64_t columns);
  // Everything is in the file and on the disk.
  void finish();

 private:
  std::string path_;
  int64_t file_ = -1;
};

}  // namespace tally::train
