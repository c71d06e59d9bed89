#include "src/checkpoint/model_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "src/checkpoint/hugging_face_parameters.h"
#include "src/checkpoint/optimizer_files.h"
#include "src/checkpoint/stored_files.h"
#include "src/device/convert.h"

namespace tally::train {
namespace {

// The host's copy of a parameter as a stored tensor, of which this process has all.
void fetch(const ParameterState& state, const Parameter& parameter, const StoredPart& part,
           Stream& stream, size_t bytes, char* out) {
  const Tensor range = parameter_range(state.weights, parameter);
  if (!parameter.transposed) {
    // The padding rows, which come last, are left out.
    const auto first = static_cast<size_t>(part.runs.front().local) * size_of(range.dtype);
    stream.copy(out, static_cast<const char*>(range.data) + first, bytes);
    stream.synchronize();
    return;
  }
  std::vector<char> host(range.bytes());
  stream.copy(host.data(), range.data, host.size());
  stream.synchronize();
  transpose(host.data(), range.dim(0), range.dim(1), size_of(range.dtype), out);
}

using TensorMap = std::map<std::string, const StoredTensor*>;

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Matches each parameter to stored tensors, with all checks made.
class Matches {
 public:
  Matches(const WeightFiles& files, const ModelConfig& config, const ParameterState& state)
      : files_(files), config_(config) {
    for (const Parameter& parameter : *state.parameters) {
      found_.emplace_back();
      for (const StoredPart& part : stored_parts(parameter)) find(parameter, part);
      for (const StoredTensor* part : found_.back())
        if (part && part->dtype != found_.back().front()->dtype)
          throw bad(fmt::format("the parts of '{}' have different types", parameter.name));
    }
    check_rest(state);
  }
  // The parts in the order of stored_parts(); null: the files do not have a new head.
  const std::vector<const StoredTensor*>& of(size_t parameter) const { return found_[parameter]; }
  bool lacks(size_t parameter) const {
    const std::vector<const StoredTensor*>& stored = found_[parameter];
    return std::find(stored.begin(), stored.end(), nullptr) != stored.end();
  }

 private:
  std::runtime_error bad(const std::string& why) const {
    return std::runtime_error(
        fmt::format("the weights in '{}' do not fit this model: {}", files_.path(), why));
  }

  void find(const Parameter& parameter, const StoredPart& part) {
    const std::string& bare = part.tensor.bare;
    const auto it = find_tensor(part.tensor);
    if (it == files_.tensors().end()) {
      // A new head is made for what the model was not trained for.
      if (!is_ignored(bare, config_)) throw bad(fmt::format("'{}' is missing", bare));
      return found_.back().push_back(nullptr);
    }
    const StoredTensor& stored = *it->second;
    const std::vector<int64_t>& shape = part.shape;
    if (stored.shape != shape) {
      throw bad(fmt::format("'{}' has the shape {}, and {} is needed ({})", it->first,
                            shape_text(stored.shape), shape_text(shape),
                            why_another(stored, parameter, part)));
    }
    if (stored.dtype != "F32" && stored.dtype != "F64" && stored.dtype != "BF16" &&
        stored.dtype != "F16") {
      throw bad(fmt::format("'{}' has the type {}, and F64, F32, BF16 or F16 is needed", it->first,
                            stored.dtype));
    }
    found_.back().push_back(&stored);
  }

  // The tensor of the files with this name or another one of the same weight. All that the files
  // have must be equal.
  TensorMap::const_iterator find_tensor(const FileTensor& tensor) {
    auto first = files_.tensors().end();
    for (const std::string& name : all_names(tensor, config_)) {
      const auto it = files_.tensors().find(name);
      if (it == files_.tensors().end()) continue;
      used_.push_back(name);
      if (first == files_.tensors().end()) {
        first = it;
        continue;
      }
      const StoredTensor &a = *first->second, &b = *it->second;
      if (a.dtype != b.dtype || a.bytes != b.bytes || std::memcmp(a.data, b.data, a.bytes) != 0)
        throw bad(fmt::format("'{}' differs from '{}', and they are one weight of this model: {}",
                              name, first->first,
                              name == "lm_head.weight"
                                  ? "set tie_word_embeddings to false in its config.json, or leave "
                                    "the tensor out"
                                  : "leave one of them out"));
    }
    return first;
  }

  static std::string why_another(const StoredTensor& stored, const Parameter& parameter,
                                 const StoredPart& part) {
    if (parameter.transposed && std::equal(stored.shape.begin(), stored.shape.end(),
                                           part.shape.rbegin(), part.shape.rend()))
      return "it is stored [out, in], as the nn.Linear of other GPT-2s, and transformers' GPT-2 "
             "stores [in, out]";
    return "vocabulary, hidden size, positions and layers must be those of its config.json";
  }

  void check_rest(const ParameterState& state) {
    std::sort(used_.begin(), used_.end());
    const std::vector<std::string> others = names_of_model(state);
    for (const auto& [name, tensor] : files_.tensors()) {
      // Another process may have it.
      if (!std::binary_search(used_.begin(), used_.end(), name) &&
          !std::binary_search(others.begin(), others.end(), name) &&
          !is_ignored(bare_name(name, config_), config_))
        throw bad(fmt::format("'{}' does not belong to it", name));
    }
  }

  // The names of all tensors of the model where this process has a part of it, sorted.
  std::vector<std::string> names_of_model(const ParameterState& state) const {
    std::vector<std::string> names;
    if (!state.model) return names;
    for (const Parameter& p : *state.model)
      for (const FileTensor& tensor : p.files)
        for (std::string& name : all_names(tensor, config_)) names.push_back(std::move(name));
    std::sort(names.begin(), names.end());
    return names;
  }

  const WeightFiles& files_;
  const ModelConfig& config_;
  std::vector<std::vector<const StoredTensor*>> found_;
  std::vector<std::string> used_;
};

// This process's part of stored tensors in our layout and the stored type; padding rows are 0.
std::vector<char> part_of(const std::vector<const StoredTensor*>& stored,
                          const Parameter& parameter, size_t element) {
  std::vector<char> part(static_cast<size_t>(parameter.local_elements()) * element, 0);
  const std::vector<StoredPart> parts = stored_parts(parameter);
  for (size_t i = 0; i < parts.size(); ++i)
    for (const ElementRun& run : parts[i].runs)
      std::memcpy(part.data() + static_cast<size_t>(run.local) * element,
                  stored[i]->data + static_cast<size_t>(run.global) * element,
                  static_cast<size_t>(run.count) * element);
  if (!parameter.transposed) return part;
  std::vector<char> turned(part.size());
  const std::vector<int64_t> shape = parameter.local_shape();
  transpose(part.data(), shape[1], shape[0], element, turned.data());
  return turned;
}

// Throws where this process's part of stored tensors has a number that no training can start from.
void check_finite(const std::string& path, const std::vector<const StoredTensor*>& stored,
                  const std::vector<StoredPart>& parts, DType type) {
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const ElementRun& run : parts[i].runs) {
      const char* data = stored[i]->data + static_cast<size_t>(run.global) * size_of(type);
      if (const auto at = first_not_finite(data, type, run.count))
        throw std::runtime_error(
            fmt::format("the weights in '{}' are not all numbers: element {} of '{}' is NaN or "
                        "infinite: take weights from before the training diverged",
                        path, run.global + *at, parts[i].tensor.name));
    }
  }
}

// Elements [first, last) of a part in another type.
std::vector<char> rounded(const std::vector<char>& part, DType type, int64_t first, int64_t last,
                          DType to) {
  const size_t offset = static_cast<size_t>(first) * size_of(type);
  const int64_t count = last - first;
  std::vector<char> converted(static_cast<size_t>(count) * size_of(to));
  convert_elements(Tensor(const_cast<char*>(part.data()) + offset, type, {count}),
                   Tensor(converted.data(), to, {count}));
  return converted;
}

// The ranges in the file of `weights` that this process reads.
std::vector<ByteRange> ranges_of(const SafetensorsFile& weights, const Matches& matches,
                                 const std::vector<Parameter>& parameters) {
  std::vector<ByteRange> ranges{{0, weights.header_bytes()}};
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::vector<StoredPart> parts = stored_parts(parameters[i]);
    for (size_t k = 0; k < parts.size(); ++k) {
      const StoredTensor* tensor = matches.of(i)[k];
      if (tensor == nullptr || parts[k].runs.empty()) continue;
      const size_t element = size_of(*dtype_of_safetensors(tensor->dtype));
      const uint64_t at = weights.offset(*tensor);
      const ElementRun &first = parts[k].runs.front(), &last = parts[k].runs.back();
      ranges.push_back({at + static_cast<uint64_t>(first.global) * element,
                        at + static_cast<uint64_t>(last.global + last.count) * element});
    }
  }
  return ranges;
}

// Checks what this process reads where the weights are those of a checkpoint.
void check_checksums(const WeightFiles& files, const Matches& matches,
                     const std::vector<Parameter>& parameters) {
  const SafetensorsFile& file = *files.files().front();
  const std::filesystem::path path(file.path());
  const std::vector<StoredFile> stored = stored_files(path.parent_path().string());
  if (stored.empty()) return;
  const StoredFile* known = find_file(stored, path.filename().string());
  if (known == nullptr)  // its weights are one file
    throw std::runtime_error(
        fmt::format("'{}' is not the checkpoint's {}, which {} lists: restore that file from a "
                    "copy, or load another checkpoint",
                    file.path(), model_file, manifest_file));
  check_blocks(file.mapped(), known->sum, ranges_of(file, matches, parameters));
}

}  // namespace

FileChecksum save_model_weights(const std::string& path, const ParameterState& state,
                                Stream& stream) {
  std::vector<TensorSource> sources;
  for (const Parameter& parameter : *state.parameters) {
    for (const StoredPart& part : stored_parts(parameter)) {
      TensorSource source{part.tensor.name, state.weights.dtype, part.shape, nullptr};
      const size_t bytes = source.bytes();
      source.fill = [&state, &parameter, part, &stream, bytes](char* out) {
        fetch(state, parameter, part, stream, bytes, out);
      };
      sources.push_back(std::move(source));
    }
  }
  return write_safetensors(path, std::move(sources));
}

std::map<std::string, std::string> tensor_names(const std::vector<Parameter>& parameters) {
  std::map<std::string, std::string> names;
  for (const Parameter& parameter : parameters)
    for (const FileTensor& tensor : parameter.files)
      for (const std::string& name : {tensor.name, tensor.bare}) names[name] = tensor.bare;
  return names;
}

std::vector<std::string> check_model_weights(const std::string& path, const ModelConfig& config,
                                             const std::vector<Parameter>& parameters) {
  ParameterState state;
  state.parameters = &parameters;
  const WeightFiles files(path);
  const Matches matches(files, config, state);
  std::vector<std::string> missing;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (matches.lacks(i)) missing.push_back(parameters[i].name);
  return missing;
}

namespace {

// The precisions in which a number beyond the range of `type` may have a place.
const char* wider_than(DType type) {
  return type == DType::f16 ? "bf16, fp32 or fp64" : type == DType::bf16 ? "fp32 or fp64" : "fp64";
}

}  // namespace

std::vector<std::string> load_model_weights(const std::string& path, const ModelConfig& config,
                                            const ParameterState& state, Stream& stream) {
  const WeightFiles files(path);
  const Matches matches(files, config, state);
  check_checksums(files, matches, *state.parameters);
  const bool master =
      state.optimizer.master.defined() && state.optimizer.master.data != state.weights.data;
  const std::vector<HeldPiece> held = held_pieces(*state.parameters, state.optimizer.ranges);
  auto piece = held.begin();
  std::vector<std::string> missing;
  for (size_t i = 0; i < state.parameters->size(); ++i) {
    const Parameter& p = (*state.parameters)[i];
    const std::vector<const StoredTensor*>& stored = matches.of(i);
    if (matches.lacks(i)) {
      missing.push_back(p.name);
      while (piece != held.end() && piece->parameter == &p) ++piece;
      continue;
    }
    const DType type = *dtype_of_safetensors(stored.front()->dtype);
    check_finite(path, stored, stored_parts(p), type);
    const std::vector<char> part = part_of(stored, p, size_of(type));
    const auto put = [&](int64_t first, int64_t last, const Tensor& to, int64_t at) {
      const std::vector<char> numbers = rounded(part, type, first, last, to.dtype);
      if (first_not_finite(numbers.data(), to.dtype, last - first))
        throw std::runtime_error(fmt::format(
            "the weights in '{}' do not fit the precision: '{}' has a number beyond the "
            "range of {}: take --precision {}",
            path, p.name, safetensors_name(to.dtype), wider_than(to.dtype)));
      stream.copy(static_cast<char*>(to.data) + static_cast<size_t>(at) * size_of(to.dtype),
                  numbers.data(), numbers.size());
      stream.synchronize();
    };
    put(0, p.local_elements(), state.weights, p.offset);
    for (; master && piece != held.end() && piece->parameter == &p; ++piece)
      put(piece->first, piece->last, state.optimizer.master, piece->at);
  }
  return missing;
}

}  // namespace tally::train
