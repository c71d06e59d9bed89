// Hugging Face's safetensors format: u64 little-endian length of the header, the header (JSON: name
// to dtype, shape and byte range), the tensors' bytes, row major, little endian, without gaps.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/checkpoint/checksum.h"
#include "src/data/text/mapped_file.h"
#include "src/device/tensor.h"

namespace tally::train {

// A tensor inside a mapped file; valid as long as the SafetensorsFile lives.
struct StoredTensor {
  std::string dtype;  // the format's name: "F32", "BF16", ...
  std::vector<int64_t> shape;
  const char* data = nullptr;
  size_t bytes = 0;
};

// The format's name of one of our types, and back (nothing for types that we do not compute with).
const char* safetensors_name(DType dtype);
std::optional<DType> dtype_of_safetensors(const std::string& name);

// A file mapped into memory. It is checked against the whole format when it is opened; a violation
// is a std::runtime_error with one sentence that names the file.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& path() const { return file_.path(); }
  MappedBytes mapped() const { return {file_.path(), file_.data(), file_.size()}; }
  // The offset of a tensor in this file.
  uint64_t offset(const StoredTensor& tensor) const {
    return static_cast<uint64_t>(tensor.data - file_.data());
  }
  // The size of the header with its length; the tensors follow it.
  size_t header_bytes() const { return header_bytes_; }

 private:
  void parse_header(const char* text, size_t length, size_t buffer_bytes);

  MappedFile file_;
  size_t header_bytes_ = 0;
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

// A tensor to be written.
struct TensorSource {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  // Writes the tensor's bytes to `out`. Called once, in the order of the file.
  std::function<void(char* out)> fill;
  size_t bytes() const;
};

// The offsets of tensors in a file: wider types first, then by name.
struct SafetensorsOutline {
  std::string header;                     // begins with its length; the tensors follow it
  std::map<std::string, size_t> offsets;  // each tensor's, from the file's begin
  size_t bytes = 0;                       // the file's size
};
// Sorts `tensors`, whose `fill` is not used.
SafetensorsOutline safetensors_outline(std::vector<TensorSource>* tensors,
                                       const std::map<std::string, std::string>& metadata = {
                                           {"format", "pt"}});

// Writes PATH as the reference implementation does: wider types first, then by name, the header
// padded with spaces to a multiple of 8. One tensor is in memory at a time. The file is on the disk
// when this returns; on an error (std::runtime_error) none is left. Returns the file's checksum.
FileChecksum write_safetensors(const std::string& path, std::vector<TensorSource> tensors,
                               const std::map<std::string, std::string>& metadata = {
                                   {"format", "pt"}});

// All tensors of a model: one file, or shards under model.safetensors.index.json.
class WeightFiles {
 public:
  // A .safetensors file, a .index.json file, or a directory that has model.safetensors or
  // model.safetensors.index.json.
  explicit WeightFiles(const std::string& path);
  const std::map<std::string, const StoredTensor*>& tensors() const { return tensors_; }
  const std::vector<std::unique_ptr<SafetensorsFile>>& files() const { return files_; }
  const std::string& path() const { return path_; }

 private:
  void open_shards(const std::string& index);

  std::string path_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, const StoredTensor*> tensors_;
};

}  // namespace tally::train
