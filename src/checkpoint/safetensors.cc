// Reading safetensors.
#include "src/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "src/data/text/json_fault.h"

namespace tally::train {
namespace {

using Json = nlohmann::json;
constexpr uint64_t kLongestHeader = 100'000'000;

struct StoredType {
  const char* name;
  size_t bytes;
};
constexpr StoredType kTypes[] = {
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1},
    {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},     {"U32", 4},
    {"F32", 4},  {"C64", 8}, {"F64", 8}, {"I64", 8},     {"U64", 8}};

std::runtime_error bad_file(const std::string& path, const std::string& why) {
  return std::runtime_error(fmt::format(
      "'{}' is not a valid safetensors file: {}: copy or download it again", path, why));
}

// JSON with every key of an object only once.
Json parse_unique(const std::string& path, const char* begin, const char* end) {
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key &&
        !keys.back().insert(parsed.get<std::string>()).second) {
      throw bad_file(path, fmt::format("\"{}\" appears twice", parsed.get<std::string>()));
    }
    return true;
  };
  try {
    return Json::parse(begin, end, check);
  } catch (const Json::exception& error) {
    throw bad_file(path, fmt::format("its header is not valid JSON ({})", json_fault(error)));
  }
}

uint64_t unsigned_of(const Json& value) {
  if (!value.is_number_unsigned()) throw std::invalid_argument("not a whole number");
  return value.get<uint64_t>();
}

// Bytes of a tensor; throws on overflow.
size_t bytes_of(const StoredTensor& tensor) {
  for (const StoredType& type : kTypes) {
    if (tensor.dtype != type.name) continue;
    size_t bytes = type.bytes;
    for (int64_t n : tensor.shape) {
      if (__builtin_mul_overflow(bytes, static_cast<size_t>(n), &bytes)) {
        throw std::invalid_argument("its shape is larger than any memory");
      }
    }
    return bytes;
  }
  throw std::invalid_argument(fmt::format("its type {} is not known", tensor.dtype));
}

StoredTensor parse_tensor(const Json& entry, const char* buffer, size_t buffer_bytes) {
  StoredTensor tensor;
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") ||
      !entry.contains("shape") || !entry.contains("data_offsets") || !entry["dtype"].is_string() ||
      !entry["shape"].is_array() || !entry["data_offsets"].is_array() ||
      entry["data_offsets"].size() != 2) {
    throw std::invalid_argument("its entry needs dtype, shape and two data_offsets");
  }
  tensor.dtype = entry["dtype"].get<std::string>();
  for (const Json& n : entry["shape"]) {
    const uint64_t extent = unsigned_of(n);
    if (extent > (uint64_t{1} << 62))
      throw std::invalid_argument("its shape is larger than any memory");
    tensor.shape.push_back(static_cast<int64_t>(extent));
  }
  const uint64_t begin = unsigned_of(entry["data_offsets"][0]);
  const uint64_t end = unsigned_of(entry["data_offsets"][1]);
  if (begin > end || end > buffer_bytes) {
    throw std::invalid_argument(
        fmt::format("it lies at bytes {} to {} of {}: the file is cut short or damaged", begin, end,
                    buffer_bytes));
  }
  tensor.data = buffer + begin;
  tensor.bytes = static_cast<size_t>(end - begin);
  if (bytes_of(tensor) != tensor.bytes) {
    throw std::invalid_argument(fmt::format("it has {} bytes, and its shape and type need {}",
                                            tensor.bytes, bytes_of(tensor)));
  }
  return tensor;
}

}  // namespace

const char* safetensors_name(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "F64";
    case DType::f32:
      return "F32";
    case DType::bf16:
      return "BF16";
    case DType::f16:
      return "F16";
    case DType::i64:
      return "I64";
    case DType::i32:
      return "I32";
    case DType::u16:
      return "U16";
    case DType::u8:
      return "U8";
    case DType::e4m3:
      return "F8_E4M3";
    case DType::e5m2:
      return "F8_E5M2";
  }
  return "";
}

std::optional<DType> dtype_of_safetensors(const std::string& name) {
  for (DType t : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32,
                  DType::u16, DType::u8}) {
    if (name == safetensors_name(t)) return t;
  }
  return std::nullopt;
}

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) {
  uint64_t length = 0;
  if (file_.size() < sizeof length)
    throw bad_file(path, fmt::format("it has {} bytes", file_.size()));
  std::memcpy(&length, file_.data(), sizeof length);
  if (length > kLongestHeader) {
    throw bad_file(path, fmt::format("its header would have {} bytes, and {} are allowed", length,
                                     kLongestHeader));
  }
  if (length > file_.size() - sizeof length) {
    throw bad_file(path, fmt::format("it is cut short: {} bytes, and the header alone has {}",
                                     file_.size(), length));
  }
  header_bytes_ = sizeof length + static_cast<size_t>(length);
  parse_header(file_.data() + sizeof length, static_cast<size_t>(length),
               file_.size() - header_bytes_);
}

void SafetensorsFile::parse_header(const char* text, size_t length, size_t buffer_bytes) {
  if (length == 0 || text[0] != '{') throw bad_file(path(), "its header does not begin with {");
  const Json header = parse_unique(path(), text, text + length);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) throw bad_file(path(), "its __metadata__ holds more than texts");
        metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    try {
      tensors_[name] = parse_tensor(entry, text + length, buffer_bytes);
    } catch (const std::invalid_argument& error) {
      throw bad_file(path(), fmt::format("tensor '{}': {}", name, error.what()));
    }
  }
  std::vector<const StoredTensor*> order;
  order.reserve(tensors_.size());
  for (const auto& [name, tensor] : tensors_) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    return a->data != b->data ? a->data < b->data : a->bytes < b->bytes;
  });
  const char* at = text + length;
  for (const StoredTensor* tensor : order) {
    if (tensor->data != at) throw bad_file(path(), "its tensors overlap or leave gaps");
    at += tensor->bytes;
  }
  if (at != text + length + buffer_bytes) {
    throw bad_file(path(), "it has bytes at its end that belong to no tensor");
  }
}

WeightFiles::WeightFiles(const std::string& path) : path_(path) {
  namespace fs = std::filesystem;
  const std::string index = "model.safetensors.index.json";
  if (!fs::exists(path))
    throw std::runtime_error(
        fmt::format("'{}' does not exist, and weights are to be loaded from it", path));
  if (!fs::is_directory(path)) {
    if (path.size() > 5 && path.compare(path.size() - 5, 5, ".json") == 0) {
      open_shards(path);
      return;
    }
    files_.push_back(std::make_unique<SafetensorsFile>(path));
  } else if (fs::exists(fs::path(path) / "model.safetensors")) {
    files_.push_back(
        std::make_unique<SafetensorsFile>((fs::path(path) / "model.safetensors").string()));
  } else if (fs::exists(fs::path(path) / index)) {
    open_shards((fs::path(path) / index).string());
    return;
  } else {
    const bool pickled = fs::exists(fs::path(path) / "pytorch_model.bin");
    throw std::runtime_error(fmt::format(
        "'{}' has neither model.safetensors nor {}{}", path, index,
        pickled ? ", only pytorch_model.bin: make a folder of it with 'tally-train convert'" : ""));
  }
  for (const auto& [name, tensor] : files_[0]->tensors()) tensors_[name] = &tensor;
}

void WeightFiles::open_shards(const std::string& index) {
  const MappedFile file(index);
  Json map;
  try {
    map = Json::parse(file.data(), file.data() + file.size()).at("weight_map");
  } catch (const Json::exception& error) {
    throw std::runtime_error(
        fmt::format("'{}' is not an index of safetensors shards (JSON with a weight_map): {}",
                    index, json_fault(error)));
  }
  std::map<std::string, const SafetensorsFile*> opened;
  for (const auto& [name, shard] : map.items()) {
    const std::string leaf = shard.is_string() ? shard.get<std::string>() : "";
    if (leaf.empty() || leaf.find('/') != std::string::npos) {
      throw std::runtime_error(
          fmt::format("'{}' names the shard {} for '{}': a file in the same folder is expected",
                      index, shard.dump(), name));
    }
    const SafetensorsFile*& at = opened[leaf];
    if (at == nullptr) {
      files_.push_back(std::make_unique<SafetensorsFile>(
          (std::filesystem::path(index).parent_path() / leaf).string()));
      at = files_.back().get();
    }
    const auto found = at->tensors().find(name);
    if (found == at->tensors().end()) {
      throw std::runtime_error(
          fmt::format("'{}' says that '{}' holds '{}', and it does not", index, at->path(), name));
    }
    tensors_[name] = &found->second;
  }
}

}  // namespace tally::train
