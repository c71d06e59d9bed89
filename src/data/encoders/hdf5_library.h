// The parts of HDF5's C library that both sides of hdf5_file.h need. The library is opened at run time: the program starts
// without it, and takes the version that a machine has (1.10.7 or newer). So its header, which differs between versions, is
// not read; these are its own names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace tally::train {

using hid_t = int64_t;
using herr_t = int;
using htri_t = int;
using hbool_t = bool;
using hsize_t = unsigned long long;
using haddr_t = unsigned long;
using H5Z_filter_t = int;
enum H5D_layout_t : int { H5D_CONTIGUOUS = 1, H5D_CHUNKED = 2, H5D_VIRTUAL = 3 };
struct H5L_info_t {
  int type;
  hbool_t corder_valid;
  int64_t corder;
  int cset;
  uint64_t address_or_size;
};
struct H5E_error2_t {
  hid_t cls_id, maj_num, min_num;
  unsigned line;
  const char *func_name, *file_name, *desc;
};
using H5E_walk2_t = herr_t (*)(unsigned, const H5E_error2_t*, void*);

inline constexpr hid_t H5P_DEFAULT = 0, H5S_ALL = 0, H5E_DEFAULT = 0;
inline constexpr unsigned H5F_ACC_RDONLY = 0, H5F_ACC_TRUNC = 2;
inline constexpr haddr_t HADDR_UNDEF = ~haddr_t{0};
inline constexpr int H5E_WALK_DOWNWARD = 1, H5L_TYPE_HARD = 0, H5S_SIMPLE = 1;
inline constexpr int H5T_INTEGER = 0, H5T_SGN_NONE = 0, H5T_ORDER_BE = 1;
inline constexpr H5Z_filter_t H5Z_FILTER_DEFLATE = 1, H5Z_FILTER_SHUFFLE = 2;

// Functions that are called: result, name, arguments. Enumerations are passed as int.
// clang-format off
#define TALLY_HDF5_FUNCTIONS(F)                                                                    \
  F(herr_t, H5open, ())                                                                            \
  F(herr_t, H5PLset_loading_state, (unsigned))                                                     \
  F(herr_t, H5Eset_auto2, (hid_t, void*, void*))                                                   \
  F(herr_t, H5Ewalk2, (hid_t, int, H5E_walk2_t, void*))                                            \
  F(hid_t, H5Fcreate, (const char*, unsigned, hid_t, hid_t))                                       \
  F(hid_t, H5Fopen, (const char*, unsigned, hid_t))                                                \
  F(herr_t, H5Fclose, (hid_t))                                                                     \
  F(hid_t, H5Fget_create_plist, (hid_t))                                                           \
  F(htri_t, H5Lexists, (hid_t, const char*, hid_t))                                                \
  F(herr_t, H5Lget_info, (hid_t, const char*, H5L_info_t*, hid_t))                                 \
  F(hid_t, H5Dcreate2, (hid_t, const char*, hid_t, hid_t, hid_t, hid_t, hid_t))                    \
  F(hid_t, H5Dopen2, (hid_t, const char*, hid_t))                                                  \
  F(herr_t, H5Dclose, (hid_t))                                                                     \
  F(hid_t, H5Dget_create_plist, (hid_t))                                                           \
  F(hid_t, H5Dget_space, (hid_t))                                                                  \
  F(hid_t, H5Dget_type, (hid_t))                                                                   \
  F(haddr_t, H5Dget_offset, (hid_t))                                                               \
  F(herr_t, H5Dget_chunk_info_by_coord, (hid_t, const hsize_t*, unsigned*, haddr_t*, hsize_t*))    \
  F(herr_t, H5Dwrite, (hid_t, hid_t, hid_t, hid_t, hid_t, const void*))                            \
  F(hid_t, H5Pcreate, (hid_t))                                                                     \
  F(herr_t, H5Pclose, (hid_t))                                                                     \
  F(int, H5Pget_chunk, (hid_t, int, hsize_t*))                                                     \
  F(int, H5Pget_external_count, (hid_t))                                                           \
  F(H5Z_filter_t, H5Pget_filter2,                                                                  \
    (hid_t, unsigned, unsigned*, size_t*, unsigned*, size_t, char*, unsigned*))                    \
  F(H5D_layout_t, H5Pget_layout, (hid_t))                                                          \
  F(int, H5Pget_nfilters, (hid_t))                                                                 \
  F(herr_t, H5Pget_userblock, (hid_t, hsize_t*))                                                   \
  F(herr_t, H5Pset_chunk, (hid_t, int, const hsize_t*))                                            \
  F(herr_t, H5Pset_deflate, (hid_t, unsigned))                                                     \
  F(herr_t, H5Pset_file_locking, (hid_t, hbool_t, hbool_t))                                        \
  F(herr_t, H5Pset_obj_track_times, (hid_t, hbool_t))                                              \
  F(hid_t, H5Screate_simple, (int, const hsize_t*, const hsize_t*))                                \
  F(herr_t, H5Sclose, (hid_t))                                                                     \
  F(int, H5Sget_simple_extent_dims, (hid_t, hsize_t*, hsize_t*))                                   \
  F(int, H5Sget_simple_extent_ndims, (hid_t))                                                      \
  F(int, H5Sget_simple_extent_type, (hid_t))                                                       \
  F(herr_t, H5Tclose, (hid_t))                                                                     \
  F(int, H5Tget_class, (hid_t))                                                                    \
  F(int, H5Tget_order, (hid_t))                                                                    \
  F(size_t, H5Tget_precision, (hid_t))                                                             \
  F(int, H5Tget_sign, (hid_t))                                                                     \
  F(size_t, H5Tget_size, (hid_t))
// Handles of the library's own, by the variables that have them: our name, its name.
#define TALLY_HDF5_HANDLES(F)                                                                      \
  F(H5P_FILE_ACCESS, H5P_CLS_FILE_ACCESS_ID_g)                                                     \
  F(H5P_DATASET_CREATE, H5P_CLS_DATASET_CREATE_ID_g)                                               \
  F(H5T_STD_I8LE, H5T_STD_I8LE_g)                                                                  \
  F(H5T_STD_I32LE, H5T_STD_I32LE_g)                                                                \
  F(H5T_NATIVE_INT8, H5T_NATIVE_INT8_g)                                                            \
  F(H5T_NATIVE_INT32, H5T_NATIVE_INT32_g)
// clang-format on
#define TALLY_HDF5_DECLARE(result, name, arguments) extern result(*name) arguments;
TALLY_HDF5_FUNCTIONS(TALLY_HDF5_DECLARE)
#undef TALLY_HDF5_DECLARE
#define TALLY_HDF5_DECLARE(name, variable) extern hid_t name;
TALLY_HDF5_HANDLES(TALLY_HDF5_DECLARE)
#undef TALLY_HDF5_DECLARE

// Opens the library, once. Throws where the machine has none: before that no function may be called.
void open_hdf5_library();

// A lock that is held while the library is called. Opens it.
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
