// Writing safetensors.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/checkpoint/safetensors.h"
#include "src/data/output_file.h"

namespace tally::train {
namespace {

// The reference implementation's order of types, narrow to wide.
int order_of(DType dtype) {
  constexpr DType kOrder[] = {DType::u8,  DType::u16, DType::f16, DType::bf16,
                              DType::i32, DType::f32, DType::f64, DType::i64};
  return static_cast<int>(std::find(std::begin(kOrder), std::end(kOrder), dtype) -
                          std::begin(kOrder));
}

}  // namespace

size_t TensorSource::bytes() const {
  size_t bytes = size_of(dtype);
  for (int64_t n : shape) bytes *= static_cast<size_t>(n);
  return bytes;
}

void write_safetensors(const std::string& path, std::vector<TensorSource> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorSource& a, const TensorSource& b) {
    return order_of(a.dtype) != order_of(b.dtype) ? order_of(a.dtype) > order_of(b.dtype)
                                                  : a.name < b.name;
  });
  nlohmann::ordered_json header;
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t offset = 0;
  size_t largest = 0;
  for (const TensorSource& tensor : tensors) {
    if (header.contains(tensor.name)) {
      throw std::logic_error(fmt::format("write_safetensors: '{}' appears twice", tensor.name));
    }
    nlohmann::ordered_json& entry = header[tensor.name];
    entry["dtype"] = safetensors_name(tensor.dtype);
    entry["shape"] = tensor.shape;
    entry["data_offsets"] = {offset, offset + tensor.bytes()};
    offset += tensor.bytes();
    largest = std::max(largest, tensor.bytes());
  }
  std::string text = tensors.empty() && metadata.empty() ? "{}" : header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  OutputFile file(path);
  file.append_value(static_cast<uint64_t>(text.size()));
  file.append(text.data(), text.size());
  std::vector<char> buffer(largest);
  for (const TensorSource& tensor : tensors) {
    tensor.fill(buffer.data());
    file.append(buffer.data(), tensor.bytes());
  }
  file.sync_and_keep();
}

}  // namespace tally::train
