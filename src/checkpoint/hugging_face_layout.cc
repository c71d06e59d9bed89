#include "src/checkpoint/hugging_face_layout.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "src/checkpoint/model_weights.h"

namespace tally::train {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

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

}  // namespace

std::string saved_name(const std::string& name) {
  return name == "lm_head.weight" ? name : saved_prefix + name;
}

bool has_vocabulary_rows(const std::string& name) {
  return name == "wte.weight" || name == "lm_head.weight";
}

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

std::vector<ElementRun> stored_runs(const Parameter& parameter, const ModelConfig& config) {
  std::vector<int64_t> shape = parameter.shape;
  Shard shard = parameter.shard;
  if (is_conv1d(parameter.name)) {
    std::swap(shape[0], shape[1]);
    shard.dimension = 1 - shard.dimension;
  }
  const std::vector<int64_t> stored = hugging_face_shape(parameter, config);
  const int64_t end =
      std::accumulate(stored.begin(), stored.end(), int64_t{1}, std::multiplies<>());
  std::vector<ElementRun> runs;
  for (ElementRun run : runs_of(shape, shard)) {
    run.count = std::min(run.count, end - run.global);
    if (run.count > 0) runs.push_back(run);
  }
  return runs;
}

void transpose(const char* from, int64_t rows, int64_t columns, size_t element, char* to) {
  if (element == 2) return transpose<uint16_t>(from, rows, columns, to);
  if (element == 4) return transpose<uint32_t>(from, rows, columns, to);
  transpose<uint64_t>(from, rows, columns, to);
}

}  // namespace tally::train
