#include "src/convert/tensor_bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "src/convert/byte_reader.h"
#include "src/convert/sorted_table.h"

namespace tally::train {
namespace {

constexpr uint64_t kMostShards = 99999;  // the files' names have five digits

// A field of a protocol buffer's message.
struct Field {
  uint64_t number = 0, integer = 0;
  std::string_view bytes;
};

Field take_field(ByteReader* in) {
  const uint64_t tag = in->take_varint();
  Field field;
  field.number = tag >> 3;
  switch (tag & 7) {
    case 0:
      field.integer = in->take_varint();
      break;
    case 1:
      field.integer = in->take<uint64_t>();
      break;
    case 2:
      field.bytes = in->take(in->take_varint());
      break;
    case 5:
      field.integer = in->take<uint32_t>();
      break;
    default:
      throw DamagedData("an entry of it is not a protocol buffer");
  }
  return field;
}

struct Header {
  uint64_t shards = 0, endianness = 0;
};

Header parse_header(std::string_view bytes) {
  Header header;
  for (ByteReader in(bytes); !in.done();) {
    const Field field = take_field(&in);
    if (field.number == 1) header.shards = field.integer;
    if (field.number == 2) header.endianness = field.integer;
  }
  return header;
}

struct BundleEntry {
  uint64_t type = 0, shard = 0, offset = 0, bytes = 0;
  uint32_t crc = 0;
  bool in_parts = false;
  std::vector<int64_t> shape;
};

int64_t parse_dimension(std::string_view bytes) {
  int64_t size = 0;
  for (ByteReader in(bytes); !in.done();) {
    const Field field = take_field(&in);
    if (field.number == 1) size = static_cast<int64_t>(field.integer);
  }
  return size;
}

BundleEntry parse_entry(std::string_view bytes) {
  BundleEntry entry;
  for (ByteReader in(bytes); !in.done();) {
    const Field field = take_field(&in);
    if (field.number == 1) entry.type = field.integer;
    if (field.number == 2) {
      for (ByteReader shape(field.bytes); !shape.done();) {
        const Field dimension = take_field(&shape);
        if (dimension.number == 2) entry.shape.push_back(parse_dimension(dimension.bytes));
      }
    }
    if (field.number == 3) entry.shard = field.integer;
    if (field.number == 4) entry.offset = field.integer;
    if (field.number == 5) entry.bytes = field.integer;
    if (field.number == 6) entry.crc = static_cast<uint32_t>(field.integer);
    if (field.number == 7) entry.in_parts = true;
  }
  return entry;
}

// DataType of types.proto.
DType dtype_of(uint64_t type) {
  constexpr std::pair<uint64_t, DType> kTypes[] = {
      {1, DType::f32}, {2, DType::f64}, {14, DType::bf16}, {19, DType::f16}};
  for (const auto& [number, dtype] : kTypes)
    if (number == type) return dtype;
  throw DamagedData(fmt::format("its DataType is {}, which is not a floating-point type", type));
}

class Bundle {
 public:
  Bundle(std::string prefix, SourceWeights* out) : prefix_(std::move(prefix)), out_(*out) {}

  void read(const std::function<bool(const std::string&)>& wanted) {
    const MappedFile& index = out_.map(prefix_ + ".index");
    bool first = true;
    read_sorted_table({index.data(), index.size()},
                      [&](const std::string& name, std::string_view value) {
                        if (first != name.empty())
                          throw DamagedData("its first entry is not the header of a checkpoint");
                        if (first)
                          check_header(parse_header(value));
                        else if (!wanted(name))
                          out_.left_out.push_back(name);
                        else
                          add(name, parse_entry(value));
                        first = false;
                      });
    if (first) throw DamagedData("its table is empty");
  }

 private:
  void check_header(const Header& header) {
    if (header.endianness != 0)
      throw DamagedData("its numbers are big-endian: save it on another machine");
    if (header.shards == 0 || header.shards > kMostShards)
      throw DamagedData(fmt::format("it declares {} data files", header.shards));
    shards_ = header.shards;
  }

  std::string_view shard(uint64_t number) {
    const auto known = data_.find(number);
    if (known != data_.end()) return known->second;
    const MappedFile& file =
        out_.map(fmt::format("{}.data-{:05d}-of-{:05d}", prefix_, number, shards_));
    return data_[number] = std::string_view(file.data(), file.size());
  }

  void add(const std::string& name, const BundleEntry& entry) {
    try {
      out_.tensors.push_back(tensor_of(name, entry));
    } catch (const DamagedData& error) {
      throw DamagedData(fmt::format("variable '{}': {}", name, error.what()));
    }
  }

  SourceTensor tensor_of(const std::string& name, const BundleEntry& entry) {
    if (entry.in_parts)
      throw DamagedData("it is stored in parts, which are not read: save it without a partitioner");
    SourceTensor tensor{name, dtype_of(entry.type), entry.shape, {}, nullptr};
    uint64_t bytes = size_of(tensor.dtype);
    tensor.strides.resize(tensor.shape.size());
    int64_t stride = 1;
    for (size_t d = tensor.shape.size(); d-- > 0;) {
      tensor.strides[d] = stride;
      if (tensor.shape[d] < 1 ||
          __builtin_mul_overflow(bytes, static_cast<uint64_t>(tensor.shape[d]), &bytes) ||
          __builtin_mul_overflow(stride, tensor.shape[d], &stride))
        throw DamagedData("its shape is not possible");
    }
    if (bytes != entry.bytes)
      throw DamagedData(
          fmt::format("it has {} bytes, and its shape and type need {}", entry.bytes, bytes));
    if (entry.shard >= shards_)
      throw DamagedData(fmt::format("it is in data file {} of {}", entry.shard, shards_));
    const std::string_view data = shard(entry.shard);
    if (entry.offset > data.size() || bytes > data.size() - entry.offset)
      throw DamagedData("its data file is cut short");
    const std::string_view own = data.substr(entry.offset, bytes);
    // A block that has been read is not read again: no file makes this long for its size.
    checked_ += bytes;
    if (checked_ > 2 * total_size())
      throw DamagedData("it and those before it are larger than the data files");
    if (masked_crc32c(own) != entry.crc) throw DamagedData("its bytes do not have its CRC-32C");
    tensor.data = own.data();
    return tensor;
  }

  uint64_t total_size() const {
    uint64_t bytes = 0;
    for (const auto& [number, data] : data_) bytes += data.size();
    return bytes;
  }

  std::string prefix_;
  SourceWeights& out_;
  uint64_t shards_ = 0, checked_ = 0;
  std::map<uint64_t, std::string_view> data_;
};

}  // namespace

void read_tensor_bundle(const std::string& prefix,
                        const std::function<bool(const std::string& name)>& wanted,
                        SourceWeights* out) {
  try {
    Bundle(prefix, out).read(wanted);
  } catch (const DamagedData& error) {
    throw std::runtime_error(
        fmt::format("'{}.index' cannot be read as a TensorFlow checkpoint: {}: copy it again, with "
                    "its data files",
                    prefix, error.what()));
  }
}

}  // namespace tally::train
