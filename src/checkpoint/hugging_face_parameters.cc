#include "src/checkpoint/hugging_face_parameters.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace tally::train {
namespace {

template <typename T>
void transpose_elements(const char* from, int64_t rows, int64_t columns, char* to) {
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

}  // namespace

namespace {

int64_t elements_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// A parameter that is one tensor.
void find_whole(const Parameter& parameter, StoredPart* part) {
  std::vector<int64_t> shape = parameter.shape;
  Shard shard = parameter.shard;
  if (parameter.transposed) {
    std::swap(shape[0], shape[1]);
    shard.dimension = 1 - shard.dimension;
  }
  part->shape = shape;
  if (parameter.vocabulary) part->shape[0] -= parameter.padding_rows;
  const int64_t end = elements_of(part->shape);
  for (ElementRun run : runs_of(shape, shard)) {
    run.count = std::min(run.count, end - run.global);
    if (run.count > 0) part->runs.push_back(run);
  }
}

}  // namespace

std::vector<StoredPart> stored_parts(const Parameter& parameter) {
  std::vector<StoredPart> parts;
  const std::vector<int64_t> fused = parameter.fused();
  int64_t local = 0;
  for (const FileTensor& tensor : parameter.files) {
    StoredPart part{tensor, {}, {}};
    if (fused.empty()) {
      find_whole(parameter, &part);
    } else {
      // Each process has an equal share of each of the tensors' rows.
      part.shape = parameter.shape;
      part.shape[0] = fused[parts.size()];
      const int64_t share = elements_of(part.shape) / parameter.shard.count;
      part.runs = {{parameter.shard.index * share, local, share}};
      local += share;
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

std::vector<std::string> all_names(const FileTensor& tensor, const ModelConfig& config) {
  std::vector<std::string> bare = tensor.also, names;
  bare.insert(bare.begin(), tensor.bare);
  for (const std::string& name : bare)
    names.insert(names.end(), {name, file_prefix(config) + name});
  return names;
}

std::string bare_name(const std::string& name, const ModelConfig& config) {
  const std::string prefix = file_prefix(config);
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

namespace {

std::string layer_of(const std::string& name) {
  return name.substr(0, name.rfind('.'));
}

// Whether it is a parameter of one of the heads that an encoder may have.
bool is_of_head(const std::string& name, const ModelConfig& config) {
  const std::string parameter = name.substr(name.rfind('.') + 1);
  const bool known =
      parameter == "weight" || parameter == "bias" || parameter == "gamma" || parameter == "beta";
  if (!known) return false;
  for (const WeightSpec& weight : heads_of(config))
    for (const FileTensor& tensor : weight.files) {
      if (layer_of(tensor.bare) == layer_of(name)) return true;
      for (const std::string& other : tensor.also)
        if (layer_of(other) == layer_of(name)) return true;
    }
  return false;
}

}  // namespace

bool is_ignored(const std::string& name, const ModelConfig& config) {
  if (config.language_model())
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
           name.ends_with(".rotary_emb.inv_freq");
  return is_of_head(name, config) || name == "embeddings.position_ids";
}

void transpose(const char* from, int64_t rows, int64_t columns, size_t element, char* to) {
  if (element == 2) return transpose_elements<uint16_t>(from, rows, columns, to);
  if (element == 4) return transpose_elements<uint32_t>(from, rows, columns, to);
  transpose_elements<uint64_t>(from, rows, columns, to);
}

}  // namespace tally::train
