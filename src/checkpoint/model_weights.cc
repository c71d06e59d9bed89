#include "src/checkpoint/model_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "src/device/convert.h"

namespace tally::train {
namespace {

constexpr const char* kPrefix = "transformer.";

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool has_vocabulary_rows(const std::string& name) {
  return name == "wte.weight" || name == "lm_head.weight";
}

std::string saved_name(const std::string& name) {
  return name == "lm_head.weight" ? name : kPrefix + name;
}

// to[columns, rows] = from[rows, columns], elements of any type.
template <typename T>
void transpose(const char* from, int64_t rows, int64_t columns, char* to) {
  constexpr int64_t kBlock = 64;
  const T* in = reinterpret_cast<const T*>(from);
  T* out = reinterpret_cast<T*>(to);
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    for (int64_t c0 = 0; c0 < columns; c0 += kBlock) {
      for (int64_t r = r0; r < std::min(r0 + kBlock, rows); ++r) {
        for (int64_t c = c0; c < std::min(c0 + kBlock, columns); ++c) {
          out[c * rows + r] = in[r * columns + c];
        }
      }
    }
  }
}

void transpose(const char* from, int64_t rows, int64_t columns, size_t element, char* to) {
  if (element == 2) return transpose<uint16_t>(from, rows, columns, to);
  if (element == 4) return transpose<uint32_t>(from, rows, columns, to);
  transpose<uint64_t>(from, rows, columns, to);
}

// The host's copy of a parameter in Hugging Face's layout.
void fetch(const ParameterState& state, const Parameter& parameter, Stream& stream, size_t bytes,
           char* out) {
  const Tensor range = parameter_range(state.weights, parameter);
  if (!is_conv1d(parameter.name)) {
    stream.copy(out, range.data, bytes);  // without the padding rows, which come last
    stream.synchronize();
    return;
  }
  std::vector<char> host(range.bytes());
  stream.copy(host.data(), range.data, host.size());
  stream.synchronize();
  transpose(host.data(), range.dim(0), range.dim(1), size_of(range.dtype), out);
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Matches each parameter to a stored tensor, with all checks made.
class Matches {
 public:
  Matches(const WeightFiles& files, const ModelConfig& config, const ParameterState& state)
      : files_(files), config_(config) {
    for (const Parameter& parameter : *state.parameters) found_.push_back(find(parameter));
    check_rest();
  }
  const StoredTensor& of(size_t parameter) const { return *found_[parameter]; }

 private:
  std::runtime_error bad(const std::string& why) const {
    return std::runtime_error(
        fmt::format("the weights in '{}' do not fit this model: {}", files_.path(), why));
  }

  const StoredTensor* find(const Parameter& parameter) {
    auto it = files_.tensors().find(parameter.name);
    if (it == files_.tensors().end()) it = files_.tensors().find(kPrefix + parameter.name);
    if (it == files_.tensors().end()) throw bad(fmt::format("'{}' is missing", parameter.name));
    used_.push_back(it->first);
    const StoredTensor& stored = *it->second;
    const std::vector<int64_t> shape = hugging_face_shape(parameter, config_);
    if (stored.shape != shape) {
      throw bad(
          fmt::format("'{}' has the shape {}, and {} is needed (vocabulary, hidden size, positions "
                      "and layers must be those of its config.json)",
                      it->first, shape_text(stored.shape), shape_text(shape)));
    }
    if (stored.dtype != "F32" && stored.dtype != "F64" && stored.dtype != "BF16" &&
        stored.dtype != "F16") {
      throw bad(fmt::format("'{}' has the type {}, and F64, F32, BF16 or F16 is needed", it->first,
                            stored.dtype));
    }
    return &stored;
  }

  void check_rest() {
    std::sort(used_.begin(), used_.end());
    for (const auto& [name, tensor] : files_.tensors()) {
      if (std::binary_search(used_.begin(), used_.end(), name)) continue;
      const bool mask = ends_with(name, ".attn.bias") || ends_with(name, ".attn.masked_bias");
      if (mask) continue;
      if (name != "lm_head.weight" || !config_.tied_embeddings)
        throw bad(fmt::format("'{}' has no place in it", name));
      check_tied(*tensor);
    }
  }

  void check_tied(const StoredTensor& head) {
    auto it = files_.tensors().find("wte.weight");
    if (it == files_.tensors().end())
      it = files_.tensors().find(kPrefix + std::string("wte.weight"));
    const StoredTensor& embedding = *it->second;
    if (head.dtype != embedding.dtype || head.bytes != embedding.bytes ||
        std::memcmp(head.data, embedding.data, head.bytes) != 0)
      throw bad(
          "'lm_head.weight' differs from 'wte.weight', and its config.json says that they are one: "
          "set tie_word_embeddings to false there, or leave the tensor out");
  }

  const WeightFiles& files_;
  const ModelConfig& config_;
  std::vector<const StoredTensor*> found_;
  std::vector<std::string> used_;
};

// Copies stored bytes to `to`, in our layout and its type; padding rows are 0.
void place(const StoredTensor& stored, const Parameter& parameter, const Tensor& to,
           Stream& stream) {
  const DType type = *dtype_of_safetensors(stored.dtype);
  const auto count = static_cast<int64_t>(stored.bytes / size_of(type));
  const Tensor range = parameter_range(to, parameter);
  std::vector<char> ordered(stored.bytes);
  if (is_conv1d(parameter.name)) {
    transpose(stored.data, stored.shape[0], stored.shape[1], size_of(type), ordered.data());
  } else {
    std::memcpy(ordered.data(), stored.data, stored.bytes);
  }
  std::vector<char> converted(range.bytes(), 0);
  convert_elements(Tensor(ordered.data(), type, {count}),
                   Tensor(converted.data(), range.dtype, {count}));
  stream.copy(range.data, converted.data(), converted.size());
  stream.synchronize();
}

}  // namespace

bool is_conv1d(const std::string& name) {
  for (const char* layer :
       {".attn.c_attn.weight", ".attn.c_proj.weight", ".mlp.c_fc.weight", ".mlp.c_proj.weight"}) {
    if (ends_with(name, layer)) return true;
  }
  return false;
}

std::vector<int64_t> hugging_face_shape(const Parameter& parameter, const ModelConfig& config) {
  std::vector<int64_t> shape = parameter.shape;
  if (is_conv1d(parameter.name)) std::swap(shape[0], shape[1]);
  if (has_vocabulary_rows(parameter.name)) shape[0] = config.vocabulary;
  return shape;
}

void save_model_weights(const std::string& path, const ModelConfig& config,
                        const ParameterState& state, Stream& stream) {
  std::vector<TensorSource> sources;
  for (const Parameter& parameter : *state.parameters) {
    TensorSource source;
    source.name = saved_name(parameter.name);
    source.dtype = state.weights.dtype;
    source.shape = hugging_face_shape(parameter, config);
    const size_t bytes = source.bytes();
    source.fill = [&state, &parameter, &stream, bytes](char* out) {
      fetch(state, parameter, stream, bytes, out);
    };
    sources.push_back(std::move(source));
  }
  write_safetensors(path, std::move(sources));
}

void check_model_weights(const std::string& path, const ModelConfig& config,
                         const std::vector<Parameter>& parameters) {
  ParameterState state;
  state.parameters = &parameters;
  const WeightFiles files(path);
  const Matches matches(files, config, state);
}

void load_model_weights(const std::string& path, const ModelConfig& config,
                        const ParameterState& state, Stream& stream) {
  const WeightFiles files(path);
  const Matches matches(files, config, state);
  for (size_t i = 0; i < state.parameters->size(); ++i) {
    const Parameter& parameter = (*state.parameters)[i];
    place(matches.of(i), parameter, state.weights, stream);
    if (state.optimizer.master.defined() && state.optimizer.master.data != state.weights.data) {
      place(matches.of(i), parameter, state.optimizer.master, stream);
    }
  }
}

}  // namespace tally::train
