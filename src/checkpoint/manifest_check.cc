// Whether a checkpoint holds what a run needs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "src/checkpoint/manifest.h"
#include "src/checkpoint/model_weights.h"

namespace tally::train {
namespace {

std::runtime_error bad(const Manifest& manifest, const std::string& why) {
  return std::runtime_error(fmt::format("'{}' does not fit this run: {}", manifest.path, why));
}

std::string stored_shape_text(const std::string& dtype, const std::vector<int64_t>& shape) {
  return fmt::format("{} [{}]", dtype, fmt::join(shape, ", "));
}

// Whether a run whose vocabulary has so many rows finds all of them.
bool fits(const StoredParameter& stored, const Parameter& parameter, int64_t vocabulary) {
  if (!parameter.vocabulary) return stored.shape == parameter.shape;
  return stored.shape.size() == parameter.shape.size() && stored.shape[0] >= vocabulary &&
         std::equal(stored.shape.begin() + 1, stored.shape.end(), parameter.shape.begin() + 1);
}

// Each shard's pieces must follow each other from its first to its last element.
void check_coverage(const Manifest& manifest, const std::string& name,
                    const StoredParameter& stored) {
  std::vector<StoredPiece> pieces = stored.pieces;
  std::sort(pieces.begin(), pieces.end(), [](const StoredPiece& a, const StoredPiece& b) {
    return a.shard != b.shard ? a.shard < b.shard : a.first < b.first;
  });
  auto piece = pieces.begin();
  for (int shard = 0; shard < stored.shards; ++shard) {
    int64_t at = 0;
    for (; piece != pieces.end() && piece->shard == shard && piece->first == at; ++piece)
      at = piece->last;
    const bool twice = piece != pieces.end() && piece->shard == shard && piece->first < at;
    if (twice || at != stored.shard_elements())
      throw bad(
          manifest,
          fmt::format("{} of '{}' is {} from element {} on: the checkpoint is not complete",
                      stored.shards == 1 ? "the state"
                                         : fmt::format("shard {} of {}", shard + 1, stored.shards),
                      name, twice ? "stored twice" : "missing", twice ? piece->first : at));
  }
}

}  // namespace

void check_manifest(const Manifest& manifest, const std::vector<Parameter>& parameters,
                    int64_t vocabulary, DType type) {
  for (const Parameter& parameter : parameters) {
    const auto found = manifest.parameters.find(parameter.name);
    if (found == manifest.parameters.end())
      throw bad(manifest, fmt::format("'{}{}' is missing", master_prefix, parameter.name));
    const StoredParameter& stored = found->second;
    if (!fits(stored, parameter, vocabulary) || manifest.dtype != safetensors_name(type))
      throw bad(manifest,
                fmt::format("'{}{}' is {}, and {} is needed: resume with the model and precision "
                            "that it was saved with",
                            master_prefix, parameter.name,
                            stored_shape_text(manifest.dtype, stored.shape),
                            stored_shape_text(safetensors_name(type), parameter.shape)));
    check_coverage(manifest, parameter.name, stored);
  }
  if (manifest.parameters.size() != parameters.size())
    throw bad(manifest, fmt::format("it holds {} parameters, and {} are needed",
                                    manifest.parameters.size(), parameters.size()));
}

void check_files(const Manifest& manifest) {
  for (size_t i = 0; i < manifest.files.size(); ++i) {
    const std::string path = manifest.file(static_cast<int>(i));
    std::error_code error;
    const uint64_t bytes = std::filesystem::file_size(path, error);
    if (error)
      throw std::runtime_error(fmt::format("'{}' cannot be read: {}: '{}' needs it", path,
                                           error.message(), manifest.path));
    if (bytes != manifest.files[i].sum.bytes)
      throw std::runtime_error(
          fmt::format("'{}' has {} bytes, and {} were saved: the file is cut short or damaged",
                      path, bytes, manifest.files[i].sum.bytes));
  }
}

void check_pieces(const Manifest& manifest, int index, OptimizerKind kind,
                  const SafetensorsFile& file) {
  const std::vector<std::string> prefixes = buffer_prefixes(kind);
  const auto wrong = [&](const std::string& why) {
    return std::runtime_error(fmt::format("'{}' does not fit this run: {}", file.path(), why));
  };
  size_t needed = 0;
  for (const auto& [name, parameter] : manifest.parameters) {
    for (const StoredPiece& piece : parameter.pieces) {
      if (piece.file != index) continue;
      for (const std::string& prefix : prefixes) {
        const std::string tensor =
            tensor_name(prefix, name, piece.first, piece.last, parameter.shard_elements());
        const auto found = file.tensors().find(tensor);
        if (found == file.tensors().end()) throw wrong(fmt::format("'{}' is missing", tensor));
        const StoredTensor& stored = found->second;
        int64_t elements = 1;
        for (const int64_t n : stored.shape) elements *= n;
        if (stored.dtype != manifest.dtype || elements != piece.last - piece.first)
          throw wrong(fmt::format("'{}' is {}, and {} elements of {} are needed", tensor,
                                  stored_shape_text(stored.dtype, stored.shape),
                                  piece.last - piece.first, manifest.dtype));
        ++needed;
      }
    }
  }
  if (file.tensors().size() != needed)
    throw wrong(
        fmt::format("it holds {} tensors, and {} are needed", file.tensors().size(), needed));
}

}  // namespace tally::train
