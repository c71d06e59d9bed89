#include "src/data/encoders/hdf5_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "src/data/encoders/hdf5_chunk.h"
#include "src/data/encoders/hdf5_library.h"

namespace tally::train {
namespace {

// Deflate makes at most 1032 bytes of one.
constexpr uint64_t kMostInflation = 1032;
constexpr uint64_t kSmallChunk = uint64_t{1} << 20;
constexpr hsize_t kMostRows = hsize_t{1} << 31;

std::runtime_error unreadable(const std::string& path, const std::string& why) {
  return std::runtime_error(fmt::format(
      "'{}' cannot be read as HDF5: {}: copy the file again, or make it again", path, why));
}

uint64_t file_bytes(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

}  // namespace

// The offset and the format of the numbers of a dataset.
struct Hdf5Reader::Dataset {
  Dataset(const Hdf5Reader& owner, const char* dataset_name)
      : reader(owner), name(dataset_name), total(file_bytes(owner.fd_)) {}

  void open();
  std::vector<int32_t> read() const;

  std::runtime_error refused(const std::string& why) const {
    return std::runtime_error(fmt::format("'{}': dataset {} {}", reader.path_, name, why));
  }

  const Hdf5Reader& reader;
  const char* name;
  uint64_t total;  // bytes of the file
  Table shape;
  Hdf5Integers type;
  std::vector<Hdf5Filter> filters;
  int64_t chunk_rows = 0, chunk_columns = 0;

  struct Part {  // a chunk, or the whole of a dataset that has none
    int64_t row = 0, column = 0;
    uint64_t offset = 0, stored = 0;
    uint32_t skipped = 0;  // filters
  };
  std::vector<Part> parts;

 private:
  void check_type(hid_t dataset);
  void check_shape(hid_t dataset);
  void check_storage(hid_t dataset, hid_t properties);
  void find_parts(hid_t dataset, H5D_layout_t layout);
  void check_size() const;
  void add_part(Part part);
  void copy(const Part& part, const unsigned char* data, std::vector<int32_t>* out) const;
};

void Hdf5Reader::Dataset::open() {
  const Hdf5Library library;
  H5L_info_t link;
  if (H5Lexists(reader.file_, name, H5P_DEFAULT) <= 0)
    throw std::runtime_error(
        fmt::format("'{}' has no dataset {}: is this a shard of BERT's pre-training data?",
                    reader.path_, name));
  if (H5Lget_info(reader.file_, name, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD)
    throw refused("is a link to somewhere else, which is not followed");
  const Hdf5Handle dataset(H5Dopen2(reader.file_, name, H5P_DEFAULT), H5Dclose);
  const Hdf5Handle properties(dataset < 0 ? -1 : H5Dget_create_plist(dataset), H5Pclose);
  if (dataset < 0 || properties < 0) throw unreadable(reader.path_, hdf5_error());
  check_type(dataset);
  check_shape(dataset);
  check_storage(dataset, properties);
  check_size();
  find_parts(dataset, H5Pget_layout(properties));
}

void Hdf5Reader::Dataset::check_type(hid_t dataset) {
  const Hdf5Handle stored(H5Dget_type(dataset), H5Tclose);
  type.bytes = H5Tget_size(stored);
  if (H5Tget_class(stored) != H5T_INTEGER ||
      (type.bytes != 1 && type.bytes != 2 && type.bytes != 4 && type.bytes != 8) ||
      H5Tget_precision(stored) != 8 * type.bytes)
    throw refused("does not hold integers of 1, 2, 4 or 8 bytes");
  type.is_signed = H5Tget_sign(stored) != H5T_SGN_NONE;
  type.little_endian = H5Tget_order(stored) != H5T_ORDER_BE;
}

void Hdf5Reader::Dataset::check_shape(hid_t dataset) {
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  std::array<hsize_t, 2> sizes{0, 1};
  const int rank = H5Sget_simple_extent_ndims(space);
  if (H5Sget_simple_extent_type(space) != H5S_SIMPLE || rank < 1 || rank > 2)
    throw refused("is not a table: it should have one or two dimensions");
  if (H5Sget_simple_extent_dims(space, sizes.data(), nullptr) < 0)
    throw unreadable(reader.path_, hdf5_error());
  if (sizes[0] >= kMostRows || sizes[1] >= kMostRows || sizes[0] * sizes[1] >= kMostRows * 64)
    throw refused(fmt::format("declares {} x {} numbers, which is too many", sizes[0], sizes[1]));
  shape = {static_cast<int64_t>(sizes[0]), static_cast<int64_t>(sizes[1])};
}

void Hdf5Reader::Dataset::check_storage(hid_t dataset, hid_t properties) {
  const H5D_layout_t layout = H5Pget_layout(properties);
  if (layout == H5D_VIRTUAL || H5Pget_external_count(properties) != 0)
    throw refused("lies in other files, which are not read: copy it into this one");
  if (layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED)
    throw refused("has a layout that is not read: write it contiguous or in chunks");
  chunk_rows = shape.rows;
  chunk_columns = shape.columns;
  if (layout == H5D_CONTIGUOUS) return;
  std::array<hsize_t, 2> chunk{1, 1};
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  if (H5Pget_chunk(properties, 2, chunk.data()) != H5Sget_simple_extent_ndims(space) ||
      chunk[0] < 1 || chunk[1] < 1 || chunk[0] >= kMostRows || chunk[1] >= kMostRows)
    throw unreadable(reader.path_, "the sizes of chunks are not possible");
  chunk_rows = static_cast<int64_t>(chunk[0]);
  chunk_columns = static_cast<int64_t>(chunk[1]);
  const int count = H5Pget_nfilters(properties);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    size_t values = 0;
    const H5Z_filter_t filter = H5Pget_filter2(properties, static_cast<unsigned>(i), &flags,
                                               &values, nullptr, 0, nullptr, &config);
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE)
      throw refused(fmt::format(
          "is stored with filter {}, and only gzip and shuffle are read: write it again with "
          "compression='gzip'",
          static_cast<int>(filter)));
    filters.push_back({filter == H5Z_FILTER_DEFLATE});
  }
}

// The declared sizes must be possible in a file of this size. This is checked before anything is
// allocated.
void Hdf5Reader::Dataset::check_size() const {
  const bool deflated = std::any_of(filters.begin(), filters.end(),
                                    [](const Hdf5Filter& filter) { return filter.deflate; });
  const uint64_t most = total * (deflated ? kMostInflation : 1);
  const uint64_t declared = static_cast<uint64_t>(shape.rows * shape.columns) * type.bytes;
  const uint64_t chunk = static_cast<uint64_t>(chunk_rows) * static_cast<uint64_t>(chunk_columns);
  const auto up = [](int64_t count, int64_t part) { return (count + part - 1) / part; };
  // The index of chunks takes more than 8 bytes for each.
  const auto chunks = static_cast<uint64_t>(up(shape.rows, std::max<int64_t>(1, chunk_rows)) *
                                            up(shape.columns, std::max<int64_t>(1, chunk_columns)));
  if (declared > most || chunk > std::max(most, kSmallChunk) / type.bytes || chunks > 1 + total / 8)
    throw refused(fmt::format(
        "declares {} x {} numbers of {} bytes in parts of {} x {}, and the file has only {} bytes: "
        "copy the file again, or make it again",
        shape.rows, shape.columns, type.bytes, chunk_rows, chunk_columns, total));
}

void Hdf5Reader::Dataset::add_part(Part part) {
  if (part.offset > total || part.stored > total - part.offset)
    throw unreadable(reader.path_, fmt::format("dataset {} ends beyond the file's end", name));
  parts.push_back(part);
}

void Hdf5Reader::Dataset::find_parts(hid_t dataset, H5D_layout_t layout) {
  if (shape.rows == 0 || shape.columns == 0) return;
  if (layout == H5D_CONTIGUOUS) {
    const haddr_t offset = H5Dget_offset(dataset);
    if (offset == HADDR_UNDEF) throw unreadable(reader.path_, fmt::format("{} is empty", name));
    return add_part(
        {0, 0, offset, static_cast<uint64_t>(shape.rows * shape.columns) * type.bytes, 0});
  }
  for (int64_t row = 0; row < shape.rows; row += chunk_rows) {
    for (int64_t column = 0; column < shape.columns; column += chunk_columns) {
      const std::array<hsize_t, 2> at{static_cast<hsize_t>(row), static_cast<hsize_t>(column)};
      unsigned skipped = 0;
      haddr_t offset = HADDR_UNDEF;
      hsize_t stored = 0;
      if (H5Dget_chunk_info_by_coord(dataset, at.data(), &skipped, &offset, &stored) < 0)
        throw unreadable(reader.path_, hdf5_error());
      if (offset == HADDR_UNDEF || stored == 0)
        throw refused(fmt::format(
            "has no numbers from row {} on, though it declares {} rows: make the file again", row,
            shape.rows));
      add_part({row, column, offset, stored, skipped});
    }
  }
}

// A part's numbers; those of a chunk that lie outside the table are padding.
void Hdf5Reader::Dataset::copy(const Part& part, const unsigned char* data,
                               std::vector<int32_t>* out) const {
  const int64_t rows = std::min(chunk_rows, shape.rows - part.row);
  const int64_t columns = std::min(chunk_columns, shape.columns - part.column);
  for (int64_t r = 0; r < rows; ++r) {
    const unsigned char* from = data + static_cast<size_t>(r * chunk_columns) * type.bytes;
    int32_t* to = out->data() + (part.row + r) * shape.columns + part.column;
    for (int64_t c = 0; c < columns; ++c)
      to[c] = hdf5_integer(from + static_cast<size_t>(c) * type.bytes, type);
  }
}

std::vector<int32_t> Hdf5Reader::Dataset::read() const {
  std::vector<int32_t> out(static_cast<size_t>(shape.rows * shape.columns));
  const size_t bytes = static_cast<size_t>(chunk_rows * chunk_columns) * type.bytes;
  std::vector<unsigned char> data;
  for (const Part& part : parts) {
    data.resize(part.stored);
    for (size_t done = 0; done < data.size();) {
      const ssize_t got = pread(reader.fd_, data.data() + done, data.size() - done,
                                static_cast<off_t>(part.offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw unreadable(reader.path_, std::strerror(errno));
      if (got == 0) throw unreadable(reader.path_, "it was cut short while it was read");
      done += static_cast<size_t>(got);
    }
    const std::string why = unpack_hdf5_chunk(filters, part.skipped, type.bytes, bytes, &data);
    if (!why.empty())
      throw unreadable(reader.path_, fmt::format("dataset {}, row {}: {}", name, part.row, why));
    copy(part, data.data(), &out);
  }
  return out;
}

Hdf5Reader::Hdf5Reader(const std::string& path) : path_(path) {
  open_hdf5_library();
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat about {};
  if (fd_ < 0 || fstat(fd_, &about) != 0)
    throw std::runtime_error(fmt::format("'{}' cannot be read: {}", path, std::strerror(errno)));
  // The library opens it again, and would wait for a FIFO's other end.
  if (!S_ISREG(about.st_mode))
    throw std::runtime_error(fmt::format("'{}' cannot be read: it is not a regular file", path));
  const Hdf5Library library;
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access, false, true);  // not every file system has locks
  file_ = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access);
  std::string why = file_ < 0 ? hdf5_error() : "";
  if (file_ >= 0) {
    const Hdf5Handle properties(H5Fget_create_plist(file_), H5Pclose);
    hsize_t before = 0;  // bytes of other data, which would move all offsets
    if (H5Pget_userblock(properties, &before) < 0 || before != 0) why = "it has a user block";
  }
  if (why.empty()) return;
  if (file_ >= 0) H5Fclose(file_);
  close(fd_);
  throw unreadable(path, why);
}

Hdf5Reader::~Hdf5Reader() {
  const Hdf5Library library;
  H5Fclose(file_);
  close(fd_);
}

Hdf5Reader::Table Hdf5Reader::table(const char* name) const {
  Dataset dataset(*this, name);
  dataset.open();
  return dataset.shape;
}

std::vector<int32_t> Hdf5Reader::read(const char* name) const {
  Dataset dataset(*this, name);
  dataset.open();
  return dataset.read();
}

}  // namespace tally::train
