// The stored bytes of a part of an HDF5 dataset, to numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tally::train {

struct Hdf5Filter {
  bool deflate = true;  // else shuffle
};

// The storage of integers.
struct Hdf5Integers {
  size_t bytes = 4;  // 1, 2, 4 or 8
  bool is_signed = true, little_endian = true;
};

// Undoes the filters (listed in the order in which they were applied; bit i of `skipped` is set
// where filter i was not) of a part that has `size` bytes in the end. Returns why it is not
// possible, empty where it was.
std::string unpack_hdf5_chunk(const std::vector<Hdf5Filter>& filters, uint32_t skipped,
                              size_t number_bytes, size_t size, std::vector<unsigned char>* data);

// One stored number as i32; a number beyond i32 becomes its least or greatest.
int32_t hdf5_integer(const unsigned char* from, const Hdf5Integers& type);

}  // namespace tally::train
