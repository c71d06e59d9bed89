#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "src/data/encoders/hdf5_file.h"
#include "src/data/encoders/hdf5_library.h"

namespace tally::train {

Hdf5Writer::Hdf5Writer(const std::string& path) : path_(path) {
  const Hdf5Library library;
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access, false, true);
  errno = 0;
  file_ = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  if (file_ < 0)
    throw std::runtime_error(
        fmt::format("'{}' cannot be written: {}", path,
                    errno != 0 ? std::string(std::strerror(errno)) : hdf5_error()));
}

Hdf5Writer::~Hdf5Writer() {
  const Hdf5Library library;
  if (file_ >= 0) H5Fclose(file_);
}

template <typename T>
void Hdf5Writer::write(const char* name, const std::vector<T>& values, int64_t rows,
                       int64_t columns) {
  const Hdf5Library library;
  const int rank = columns > 0 ? 2 : 1;
  const std::array<hsize_t, 2> sizes{static_cast<hsize_t>(rows), static_cast<hsize_t>(columns)};
  const std::array<hsize_t, 2> chunk{std::min<hsize_t>(sizes[0], 1024), sizes[1]};
  const Hdf5Handle space(H5Screate_simple(rank, sizes.data(), nullptr), H5Sclose);
  const Hdf5Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_chunk(properties, rank, chunk.data());
  H5Pset_deflate(properties, 4);
  H5Pset_obj_track_times(properties, false);  // the same data makes the same bytes
  constexpr bool small = std::is_same_v<T, int8_t>;
  const Hdf5Handle dataset(H5Dcreate2(file_, name, small ? H5T_STD_I8LE : H5T_STD_I32LE, space,
                                      H5P_DEFAULT, properties, H5P_DEFAULT),
                           H5Dclose);
  if (dataset < 0 || H5Dwrite(dataset, small ? H5T_NATIVE_INT8 : H5T_NATIVE_INT32, H5S_ALL, H5S_ALL,
                              H5P_DEFAULT, values.data()) < 0)
    throw std::runtime_error(fmt::format("'{}' cannot be written: {}", path_, hdf5_error()));
}
template void Hdf5Writer::write(const char*, const std::vector<int32_t>&, int64_t, int64_t);
template void Hdf5Writer::write(const char*, const std::vector<int8_t>&, int64_t, int64_t);

void Hdf5Writer::finish() {
  const auto fail = [&](const std::string& why) {
    throw std::runtime_error(fmt::format("'{}' cannot be written: {}", path_, why));
  };
  {
    const Hdf5Library library;
    const herr_t closed = H5Fclose(file_);
    file_ = -1;
    if (closed < 0) fail(hdf5_error());
  }
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(std::strerror(errno));
  const bool synced = fsync(fd) == 0;
  close(fd);
  if (!synced) fail("it cannot be flushed to disk");
}

}  // namespace tally::train
