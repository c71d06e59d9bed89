#include "src/convert/torch_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>

#include "src/convert/byte_reader.h"
#include "src/convert/pickle.h"
#include "src/convert/zip_archive.h"
#include "src/data/text/json_fault.h"

namespace tally::train {
namespace {

using Kind = PickleValue::Kind;
constexpr size_t kMostDimensions = 64;  // PyTorch's limit
// A state dict may name a storage more than once (tied weights). All of its tensors together are at
// most so many times the file.
constexpr uint64_t kMostCopies = 8;

struct StorageType {
  const char* name;
  std::optional<DType> dtype;  // empty: left out
  size_t bytes;
};
constexpr StorageType kTypes[] = {
    {"torch.FloatStorage", DType::f32, 4},  {"torch.DoubleStorage", DType::f64, 8},
    {"torch.HalfStorage", DType::f16, 2},   {"torch.BFloat16Storage", DType::bf16, 2},
    {"torch.LongStorage", DType::i64, 8},   {"torch.IntStorage", DType::i32, 4},
    {"torch.ByteStorage", DType::u8, 1},    {"torch.ShortStorage", std::nullopt, 2},
    {"torch.CharStorage", std::nullopt, 1}, {"torch.BoolStorage", std::nullopt, 1}};

bool holds_tensors(const PickleValue& dict) {
  for (size_t i = 1; i < dict.items.size(); i += 2)
    if (dict.items[i]->kind == Kind::tensor) return true;
  return false;
}

// Whether trainers call an optimizer's state so: "optimizer", "optimizer_states", "optim_g". An
// "optimus_model" is none.
bool is_of_optimizer(std::string_view key) {
  constexpr std::string_view kEnds[] = {"", "iser", "izer", "isers", "izers"};
  for (size_t at = key.find("ptim"); at != std::string_view::npos; at = key.find("ptim", at + 1)) {
    if (at == 0 || (key[at - 1] != 'o' && key[at - 1] != 'O')) continue;
    const std::string_view rest = key.substr(at + 4);
    for (const std::string_view end : kEnds) {
      const bool ends = rest.substr(0, end.size()) == end;
      if (ends && (rest.size() == end.size() || rest[end.size()] < 'a' || rest[end.size()] > 'z'))
        return true;
    }
  }
  return false;
}

// A dictionary that has tensors, and its keys from the root on.
struct TensorDict {
  const PickleValue* dict;
  std::vector<std::string_view> keys;

  bool known() const {
    return std::all_of(keys.begin(), keys.end(), [](std::string_view key) {
      return key == "model" || key == "state_dict" || key == "model_state_dict" || key == "module";
    });
  }
  std::string path() const { return fmt::format("'{}'", fmt::join(keys, ".")); }
};

// The dictionaries of tensors in a pickle. An optimizer's tensors are not weights.
class TensorDicts {
 public:
  explicit TensorDicts(const PickleValue& root) { collect(root, {}); }

  // The state dict. Trainers keep other tensors beside it, as a loss: the root is taken only where
  // nothing in it has tensors.
  const PickleValue& state_dict() const {
    std::vector<TensorDict> inner, known;
    for (const TensorDict& found : found_) {
      if (!found.keys.empty()) inner.push_back(found);
      if (!found.keys.empty() && found.known()) known.push_back(found);
    }
    const std::vector<TensorDict>& best = !known.empty() ? known : !inner.empty() ? inner : found_;
    if (best.size() == 1) return *best.front().dict;
    if (best.empty())
      throw DamagedData("it holds no dictionary of tensors: save the model's state_dict() alone");
    throw DamagedData(fmt::format(
        "it holds several dictionaries of tensors, among them {} and {}: save the model's "
        "state_dict() alone",
        best[0].path(), best[1].path()));
  }

 private:
  void collect(const PickleValue& dict, const std::vector<std::string_view>& keys) {
    // A dictionary may be named twice, and may hold itself.
    if (dict.kind != Kind::dict || keys.size() > kDeepest || !seen_.insert(&dict).second) return;
    if (holds_tensors(dict)) found_.push_back({&dict, keys});
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const PickleValue& key = *dict.items[i];
      if (key.kind != Kind::text || is_of_optimizer(key.text)) continue;
      std::vector<std::string_view> inner = keys;
      inner.push_back(key.text);
      collect(*dict.items[i + 1], inner);
    }
  }

  static constexpr size_t kDeepest = 16;
  std::set<const PickleValue*> seen_;
  std::vector<TensorDict> found_;
};

// The sizes or strides of a tensor.
std::vector<int64_t> whole_numbers(const PickleValue& tuple) {
  std::vector<int64_t> numbers;
  if (tuple.items.size() > kMostDimensions) throw DamagedData("it has more than 64 dimensions");
  for (const PickleValue* item : tuple.items) {
    if (item->kind != Kind::integer || item->integer < 0)
      throw DamagedData("its sizes and strides are not whole numbers");
    numbers.push_back(item->integer);
  }
  return numbers;
}

// The elements of a storage that a tensor needs, from the first on. Throws on overflow.
int64_t elements_needed(const SourceTensor& tensor, int64_t first) {
  int64_t last = first;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    int64_t step = 0;
    if (__builtin_mul_overflow(tensor.shape[d] - 1, tensor.strides[d], &step) ||
        __builtin_add_overflow(last, step, &last))
      throw DamagedData("its sizes and strides are larger than any memory");
  }
  if (last == INT64_MAX) throw DamagedData("its sizes and strides are larger than any memory");
  return last + 1;
}

// A tensor may be a view of a part, but may not repeat elements: then it could be of any size.
void check_extent(const SourceTensor& tensor, int64_t available, int64_t first) {
  int64_t count = 1;
  for (const int64_t n : tensor.shape)
    if (__builtin_mul_overflow(count, n, &count))
      throw DamagedData("its shape is larger than any memory");
  if (count == 0) return;
  if (first < 0 || elements_needed(tensor, first) > available)
    throw DamagedData(fmt::format("it reaches beyond the {} elements of its storage", available));
  if (count > available)
    throw DamagedData("it repeats elements of its storage: save a contiguous copy");
}

class TorchFile {
 public:
  explicit TorchFile(std::string_view bytes)
      : bytes_(bytes), archive_(bytes), folder_(archive_.folder_of("data.pkl")) {
    if (folder_.empty())
      throw DamagedData("it is a ZIP file without one data.pkl, which torch.save() writes");
    const std::string order = folder_ + "/byteorder";
    if (archive_.has(order) && archive_.read(order) != "little")
      throw DamagedData("its numbers are big-endian: save it on another machine");
  }

  void read(SourceWeights* out) {
    const std::string_view text = archive_.read(folder_ + "/data.pkl");
    const Pickle pickle(text, static_cast<uint64_t>(text.data() - bytes_.data()));
    const TensorDicts dicts(pickle.root());
    const PickleValue& dict = dicts.state_dict();
    std::map<std::string, const PickleValue*> named;  // the last of a name counts, as in Python
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2)
      if (dict.items[i]->kind == Kind::text && dict.items[i + 1]->kind == Kind::tensor)
        named[std::string(dict.items[i]->text)] = dict.items[i + 1];
    for (const auto& [name, value] : named) {
      try {
        add(name, *value, out);
      } catch (const DamagedData& error) {
        throw DamagedData(fmt::format("tensor '{}': {}", name, error.what()));
      }
    }
  }

 private:
  void add(const std::string& name, const PickleValue& value, SourceWeights* out) {
    const PickleValue& storage = *value.items[0];
    const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& known) {
      return storage.items[0]->text == known.name;
    });
    if (type == std::end(kTypes)) throw DamagedData("its storage is of an unknown type");
    if (!type->dtype) {
      out->left_out.push_back(name);
      return;
    }
    SourceTensor tensor{name, *type->dtype, whole_numbers(*value.items[2]),
                        whole_numbers(*value.items[3]), nullptr};
    if (tensor.shape.size() != tensor.strides.size())
      throw DamagedData("it has another number of sizes than of strides");
    const std::string_view data = storage_bytes(std::string(storage.items[1]->text));
    const int64_t first = value.items[1]->integer;
    check_extent(tensor, static_cast<int64_t>(data.size() / type->bytes), first);
    tensor.data = data.data();
    const auto bytes = static_cast<uint64_t>(tensor.elements()) * type->bytes;
    if (bytes > 0) tensor.data += static_cast<size_t>(first) * type->bytes;
    total_ += bytes;
    if (total_ > kMostCopies * bytes_.size())
      throw DamagedData("it and those before it are many times larger than the file");
    out->tensors.push_back(std::move(tensor));
  }

  // Each storage's CRC is compared once.
  std::string_view storage_bytes(const std::string& key) {
    const auto known = storages_.find(key);
    if (known != storages_.end()) return known->second;
    return storages_[key] = archive_.read(folder_ + "/data/" + key);
  }

  std::string_view bytes_;
  ZipArchive archive_;
  std::string folder_;
  std::map<std::string, std::string_view> storages_;
  uint64_t total_ = 0;
};

}  // namespace

void read_torch_file(const std::string& path, SourceWeights* out) {
  const MappedFile& file = out->map(path);
  const std::string_view bytes(file.data(), file.size());
  try {
    if (!ZipArchive::is_zip(bytes))
      throw DamagedData(
          "it is not a ZIP file, as torch.save() writes since PyTorch 1.6: copy it again, or load "
          "and save an older one with torch");
    TorchFile(bytes).read(out);
  } catch (const DamagedData& error) {
    throw std::runtime_error(
        fmt::format("'{}' cannot be read as a PyTorch checkpoint: {}", path, error.what()));
  }
}

void read_torch_index(const std::string& path, SourceWeights* out) {
  const MappedFile file(path);
  nlohmann::json map;
  try {
    map = nlohmann::json::parse(file.data(), file.data() + file.size()).at("weight_map");
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(
        fmt::format("'{}' is not an index of PyTorch's shards (JSON with a weight_map): {}", path,
                    json_fault(error)));
  }
  std::set<std::string> shards;
  for (const auto& [name, shard] : map.items()) {
    const std::string leaf = shard.is_string() ? shard.get<std::string>() : "";
    if (leaf.empty() || leaf.find('/') != std::string::npos)
      throw std::runtime_error(
          fmt::format("'{}' names the shard {} for '{}': a file in the same folder is expected",
                      path, shard.dump(), name));
    shards.insert(leaf);
  }
  for (const std::string& shard : shards)
    read_torch_file((std::filesystem::path(path).parent_path() / shard).string(), out);
  std::set<std::string> found(out->left_out.begin(), out->left_out.end());
  for (const SourceTensor& tensor : out->tensors) found.insert(tensor.name);
  for (const auto& [name, shard] : map.items())
    if (found.count(name) == 0)
      throw std::runtime_error(
          fmt::format("'{}' says that {} holds '{}', and it does not", path, shard.dump(), name));
}

}  // namespace tally::train
