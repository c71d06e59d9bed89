// Fuzz targets for the binary files of others that tally-train reads. The first byte of the input
// chooses the reader, the rest is its file or a part of it:
//   z  a PyTorch checkpoint          k  the pickle of one, in an archive with the right checksum
//   t  the index of a TensorFlow one e  a block of such an index, in a table with the right checksum
//   h  an HDF5 file
// Checksums would hide what follows them from mutations, so that k and e have them made. A file may be
// refused by std::runtime_error alone. What is read is read to its last number.
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "src/convert/sorted_table.h"
#include "src/convert/tensor_bundle.h"
#include "src/convert/torch_file.h"
#include "src/data/encoders/hdf5_file.h"

namespace {

using namespace tally::train;

// A folder for the file of an input, gone at the end.
class Folder {
 public:
  Folder() {
    // In memory where there is such a file system: thousands of files a second are written.
    const std::filesystem::path memory = "/dev/shm";
    const auto base =
        access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
    std::string name = (base / "files_fuzz_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) abort();
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string write(const char* name, std::string_view bytes) const {
    const std::string path = (path_ / name).string();
    std::ofstream(path, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  std::string prefix() const { return (path_ / "model").string(); }

 private:
  std::filesystem::path path_;
};

const Folder& folder() {
  static const Folder made;
  return made;
}

template <typename T>
std::string little(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// An archive as torch.save() writes it, with a pickle and two storages of 64 bytes.
std::string archive_of(std::string_view pickle) {
  const std::string numbers(64, '\x3f');
  std::string file, directory;
  for (const auto& [name, bytes] : {std::pair<std::string, std::string_view>("a/data.pkl", pickle),
                                    {"a/data/0", numbers},
                                    {"a/data/1", numbers}}) {
    const auto size = static_cast<uint32_t>(bytes.size());
    const auto crc = static_cast<uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
    const std::string shared = little<uint16_t>(0) + little<uint16_t>(0) + little<uint32_t>(0) +
                               little(crc) + little(size) + little(size) +
                               little(static_cast<uint16_t>(name.size())) + little<uint16_t>(0);
    directory += little<uint32_t>(0x02014b50) + little<uint32_t>(0) + shared +
                 std::string(10, '\0') + little(static_cast<uint32_t>(file.size())) + name;
    file += little<uint32_t>(0x04034b50) + little<uint16_t>(0) + shared + name;
    file += bytes;
  }
  const auto place = static_cast<uint32_t>(file.size());
  return file + directory + little<uint32_t>(0x06054b50) + little<uint32_t>(0) +
         little<uint16_t>(3) + little<uint16_t>(3) +
         little(static_cast<uint32_t>(directory.size())) + little(place) + little<uint16_t>(0);
}

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out + static_cast<char>(value);
}

// A table with one block, and its index.
std::string table_of(const std::string& block) {
  std::string file;
  const auto add = [&](const std::string& bytes) {
    const std::string handle = varint(file.size()) + varint(bytes.size());
    const std::string stored = bytes + '\0';
    file += stored + little(masked_crc32c(stored));
    return handle;
  };
  const std::string handle = add(block);
  const std::string entry = varint(0) + varint(1) + varint(handle.size()) + "k" + handle;
  const std::string index = add(entry + little<uint32_t>(0) + little<uint32_t>(1));
  std::string footer = varint(0) + varint(0) + index;
  footer.resize(40, '\0');
  return file + footer + little<uint64_t>(0xdb4775248b80fb57);
}

// Whether a tensor's first and last number lie in one of the files. (Sanitizers do not see the end of
// a mapping.)
bool lies_in(const SourceTensor& tensor, const SourceWeights& weights) {
  if (tensor.elements() == 0) return true;
  __extension__ using Wide = __int128;
  Wide last = 1;
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    last += static_cast<Wide>(tensor.shape[d] - 1) * tensor.strides[d];
  last *= static_cast<Wide>(size_of(tensor.dtype));
  for (const auto& file : weights.files) {
    const char* end = file->data() + file->size();
    if (tensor.data >= file->data() && tensor.data <= end && last <= end - tensor.data) return true;
  }
  return false;
}

// Every number.
void read_all(const SourceWeights& weights) {
  std::string numbers;
  for (const SourceTensor& tensor : weights.tensors) {
    if (!lies_in(tensor, weights)) abort();
    numbers.resize(static_cast<size_t>(tensor.elements()) * size_of(tensor.dtype));
    tensor.copy_to(numbers.data());
  }
}

void read_torch(std::string_view bytes) {
  SourceWeights weights;
  read_torch_file(folder().write("model.pt", bytes), &weights);
  read_all(weights);
}

void read_bundle(std::string_view index) {
  folder().write("model.index", index);
  folder().write("model.data-00000-of-00001", std::string(64, '\0'));
  SourceWeights weights;
  read_tensor_bundle(
      folder().prefix(), [](const std::string& name) { return name.size() % 7 != 1; }, &weights);
  read_all(weights);
}

void read_hdf5(std::string_view bytes) {
  const Hdf5Reader reader(folder().write("shard.hdf5", bytes));
  for (const char* name : {"input_ids", "segment_ids", "next_sentence_labels"}) {
    const Hdf5Reader::Table table = reader.table(name);
    if (reader.read(name).size() != static_cast<size_t>(table.rows * table.columns)) abort();
  }
}

}  // namespace

// No input is large, so that a request for this much memory believes what a file says. Our requests
// (operator new) then end the program. HDF5's get a null pointer, as from a machine that has not so
// much: its library asks for what a damaged file declares, and reports that it got nothing.
// The names are the sanitizers'. NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=256:allocator_may_return_null=1";
}
// HDF5's library forgets to free some of what it read of a damaged file.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libhdf5";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0]) {
      case 'z':
        read_torch(rest);
        break;
      case 'k':
        read_torch(archive_of(rest));
        break;
      case 't':
        read_bundle(rest);
        break;
      case 'e':
        read_bundle(table_of(std::string(rest)));
        break;
      case 'h':
        read_hdf5(rest);
        break;
      default:
        break;
    }
  } catch (const std::runtime_error&) {
    return 0;  // refused
  }
  return 0;
}
