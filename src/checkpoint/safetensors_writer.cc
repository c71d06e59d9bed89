// Writing safetensors.
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "src/checkpoint/safetensors.h"
#include "src/data/text/output_file.h"

namespace tally::train {
namespace {

// The reference implementation's order of types, narrow to wide.
int order_of(DType dtype) {
  constexpr DType kOrder[] = {DType::u8,  DType::u16, DType::f16, DType::bf16,
                              DType::i32, DType::f32, DType::f64, DType::i64};
  return static_cast<int>(std::find(std::begin(kOrder), std::end(kOrder), dtype) -
                          std::begin(kOrder));
}

// Appends to the file while another thread adds the same bytes to the checksum.
void append(const char* data, size_t bytes, OutputFile* file, ChecksumStream* sum) {
  constexpr size_t kWorthAThread = size_t{1} << 20;
  std::future<void> added;
  if (bytes >= kWorthAThread) {
    try {
      added = std::async(std::launch::async, [=] { sum->update(data, bytes); });
    } catch (const std::system_error&) {
      // No thread to be had.
    }
  }
  file->append(data, bytes);
  if (added.valid()) {
    added.get();
  } else {
    sum->update(data, bytes);
  }
}

}  // namespace

size_t TensorSource::bytes() const {
  size_t bytes = size_of(dtype);
  for (int64_t n : shape) bytes *= static_cast<size_t>(n);
  return bytes;
}

SafetensorsOutline safetensors_outline(std::vector<TensorSource>* tensors,
                                       const std::map<std::string, std::string>& metadata) {
  std::sort(tensors->begin(), tensors->end(), [](const TensorSource& a, const TensorSource& b) {
    return order_of(a.dtype) != order_of(b.dtype) ? order_of(a.dtype) > order_of(b.dtype)
                                                  : a.name < b.name;
  });
  nlohmann::ordered_json header;
  if (!metadata.empty()) header["__metadata__"] = metadata;
  SafetensorsOutline outline;
  size_t offset = 0;
  for (const TensorSource& tensor : *tensors) {
    if (!outline.offsets.emplace(tensor.name, offset).second)
      throw std::logic_error(fmt::format("write_safetensors: '{}' appears twice", tensor.name));
    nlohmann::ordered_json& entry = header[tensor.name];
    entry["dtype"] = safetensors_name(tensor.dtype);
    entry["shape"] = tensor.shape;
    entry["data_offsets"] = {offset, offset + tensor.bytes()};
    offset += tensor.bytes();
  }
  std::string text = tensors->empty() && metadata.empty() ? "{}" : header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  outline.header.assign(reinterpret_cast<const char*>(&length), sizeof length);
  outline.header += text;
  for (auto& [name, at] : outline.offsets) at += outline.header.size();
  outline.bytes = outline.header.size() + offset;
  return outline;
}

FileChecksum write_safetensors(const std::string& path, std::vector<TensorSource> tensors,
                               const std::map<std::string, std::string>& metadata) {
  const SafetensorsOutline outline = safetensors_outline(&tensors, metadata);
  OutputFile file(path);
  ChecksumStream sum;
  append(outline.header.data(), outline.header.size(), &file, &sum);
  std::vector<char> buffer;
  for (const TensorSource& tensor : tensors) {
    if (buffer.size() < tensor.bytes()) buffer.resize(tensor.bytes());
    tensor.fill(buffer.data());
    append(buffer.data(), tensor.bytes(), &file, &sum);
  }
  file.sync_and_keep();
  return sum.finish();
}

}  // namespace tally::train
