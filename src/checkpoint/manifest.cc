// Reading and writing manifests.
#include "src/checkpoint/manifest.h"

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "src/data/text/json_fault.h"
#include "src/data/text/mapped_file.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kMetadata = "tally_pieces";

std::runtime_error damaged(const std::string& path, const std::string& why) {
  return std::runtime_error(fmt::format("'{}' is damaged: {}", path, why));
}

Json parameters_json(const std::map<std::string, StoredParameter>& parameters) {
  Json all = Json::object();
  for (const auto& [name, p] : parameters) {
    Json& one = all[name];
    one["shape"] = p.shape;
    if (p.shards > 1) {
      one["dimension"] = p.dimension;
      if (!p.sections.empty()) one["sections"] = p.sections;
      one["shards"] = p.shards;
    }
    one["pieces"] = Json::array();
    for (const StoredPiece& piece : p.pieces)
      one["pieces"].push_back({piece.file, piece.shard, piece.first, piece.last});
  }
  return all;
}

// Throws std::invalid_argument where the numbers are not a parameter's.
void check_parameter(const StoredParameter& p, size_t files) {
  const auto need = [](bool good, const char* what) {
    if (!good) throw std::invalid_argument(what);
  };
  int64_t elements = 1;
  for (const int64_t n : p.shape)
    need(n > 0 && !__builtin_mul_overflow(elements, n, &elements), "its shape is impossible");
  need(!p.shape.empty() && p.dimension >= 0 && p.dimension < static_cast<int>(p.shape.size()),
       "its dimension is not one of its shape's");
  const int64_t length = p.shape[static_cast<size_t>(p.dimension)];
  need(p.shards >= 1 && length % p.shards == 0, "its shards cannot share it evenly");
  if (!p.sections.empty()) {
    int64_t sum = 0;
    for (const int64_t n : p.sections) {
      need(n > 0 && n <= length && n % p.shards == 0, "its shards cannot share a section evenly");
      sum += n;
    }
    need(sum == length, "its sections do not add up to its length");
  }
  for (const StoredPiece& piece : p.pieces)
    need(piece.file >= 0 && static_cast<size_t>(piece.file) < files && piece.shard >= 0 &&
             piece.shard < p.shards && piece.first >= 0 && piece.first < piece.last &&
             piece.last <= p.shard_elements(),
         "one of its pieces lies outside of it");
}

StoredParameter parse_parameter(const Json& json, size_t files) {
  StoredParameter p;
  p.shape = json.at("shape").get<std::vector<int64_t>>();
  p.dimension = json.value("dimension", 0);
  p.sections = json.value("sections", std::vector<int64_t>());
  p.shards = json.value("shards", 1);
  for (const Json& piece : json.at("pieces"))
    p.pieces.push_back({piece.at(0).get<int>(), piece.at(1).get<int>(), piece.at(2).get<int64_t>(),
                        piece.at(3).get<int64_t>()});
  check_parameter(p, files);
  return p;
}

// Fills dtype and parameters; `manifest` has path and files.
void parse(const Json& json, Manifest* manifest) {
  std::string at;
  try {
    manifest->dtype = json.at("dtype").get<std::string>();
    for (const auto& [name, parameter] : json.at("parameters").items()) {
      at = name;
      manifest->parameters[name] = parse_parameter(parameter, manifest->files.size());
    }
  } catch (const Json::exception& error) {
    throw damaged(manifest->path, json_fault(error));
  } catch (const std::invalid_argument& error) {
    throw damaged(manifest->path, fmt::format("parameter '{}': {}", at, error.what()));
  }
}

// Calls `work` with the parsed text; what is wrong with the JSON is an error that names the file.
void with_json(const std::string& path, const char* begin, const char* end,
               const std::function<void(const Json&)>& work) {
  try {
    work(Json::parse(begin, end));
  } catch (const Json::exception& error) {
    throw damaged(path, json_fault(error));
  }
}

// The parameters of a checkpoint of one process: every one is one piece of the one file.
void add_whole(const std::string& path, Manifest* manifest) {
  const SafetensorsFile file(path);
  const std::string prefix = master_prefix;
  for (const auto& [name, tensor] : file.tensors()) {
    if (name.rfind(prefix, 0) != 0) continue;
    StoredParameter& p = manifest->parameters[name.substr(prefix.size())];
    p.shape = tensor.shape;
    p.pieces = {{0, 0, 0, p.elements()}};
    if (manifest->dtype.empty()) manifest->dtype = tensor.dtype;
  }
}

// Adds the pieces of one part to those of the others.
void merge(const Manifest& part, int file, Manifest* all) {
  if (all->dtype.empty()) all->dtype = part.dtype;
  if (all->dtype != part.dtype)
    throw damaged(part.path, fmt::format("it holds {}, and the parts before it hold {}", part.dtype,
                                         all->dtype));
  for (const auto& [name, parameter] : part.parameters) {
    const auto [found, is_new] = all->parameters.try_emplace(name, parameter);
    StoredParameter& whole = found->second;
    if (is_new) whole.pieces.clear();
    if (whole.shape != parameter.shape || whole.shards != parameter.shards ||
        whole.dimension != parameter.dimension || whole.sections != parameter.sections)
      throw damaged(part.path, fmt::format("it divides '{}' as no part before it does", name));
    for (StoredPiece piece : parameter.pieces) {
      piece.file = file;
      whole.pieces.push_back(piece);
    }
  }
}

}  // namespace

int64_t StoredParameter::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string Manifest::directory() const {
  return fs::path(path).parent_path().string();
}

std::string Manifest::file(int index) const {
  return (fs::path(path).parent_path() / files[static_cast<size_t>(index)].name).string();
}

std::vector<std::string> buffer_prefixes(OptimizerKind kind) {
  if (kind == OptimizerKind::sgd) return {master_prefix, "momentum_buffer."};
  return {master_prefix, "exp_avg.", "exp_avg_sq."};
}

std::string tensor_name(const std::string& prefix, const std::string& parameter, int64_t first,
                        int64_t last, int64_t shard_elements) {
  const bool whole = first == 0 && last == shard_elements;
  return whole ? prefix + parameter : fmt::format("{}{}:{}-{}", prefix, parameter, first, last);
}

std::string part_name(int part, int parts) {
  return fmt::format("optimizer-{:05d}-of-{:05d}.safetensors", part + 1, parts);
}

Manifest read_manifest(const std::string& directory) {
  const std::string whole = (fs::path(directory) / whole_optimizer_file).string();
  Manifest manifest;
  const std::optional<Json> json = read_manifest_json(directory);
  if (!json) {
    add_whole(whole, &manifest);
    manifest.path = whole;
    manifest.files = {{whole_optimizer_file, {fs::file_size(whole), {}}}};
    return manifest;
  }
  manifest.path = (fs::path(directory) / manifest_file).string();
  try {
    manifest.files = files_of(*json);
  } catch (const Json::exception& error) {
    throw damaged(manifest.path, json_fault(error));
  } catch (const std::invalid_argument& error) {
    throw damaged(manifest.path, error.what());
  }
  if (json->contains("parameters")) {
    parse(*json, &manifest);
  } else {
    if (manifest.files.empty() || manifest.files.front().name != whole_optimizer_file)
      throw damaged(manifest.path, fmt::format("it does not name '{}'", whole_optimizer_file));
    add_whole(whole, &manifest);
    manifest.path = whole;
  }
  return manifest;
}

std::string manifest_text(const Manifest& manifest, const std::vector<StoredFile>& others) {
  Json json;
  if (!manifest.dtype.empty()) {
    json["dtype"] = manifest.dtype;
    json["parameters"] = parameters_json(manifest.parameters);
  }
  std::vector<StoredFile> files = manifest.files;
  files.insert(files.end(), others.begin(), others.end());
  return sealed_manifest(std::move(json), files);
}

std::map<std::string, std::string> part_metadata(const Manifest& part) {
  Json json;
  json["dtype"] = part.dtype;
  json["parameters"] = parameters_json(part.parameters);
  return {{"format", "pt"}, {kMetadata, json.dump()}};
}

Manifest manifest_of_parts(const std::string& directory, int parts, OptimizerKind kind) {
  Manifest all;
  all.path = (fs::path(directory) / manifest_file).string();
  for (int i = 0; i < parts; ++i) {
    Manifest part;
    part.path = (fs::path(directory) / part_name(i, parts)).string();
    if (!fs::exists(part.path))
      throw std::runtime_error(
          fmt::format("'{}' is missing: give --save a folder that all hosts share", part.path));
    const SafetensorsFile file(part.path);
    part.files = {{part_name(i, parts), {fs::file_size(part.path), {}}}};
    const auto found = file.metadata().find(kMetadata);
    if (found == file.metadata().end()) throw damaged(part.path, "its header names no pieces");
    const std::string& text = found->second;
    with_json(part.path, text.data(), text.data() + text.size(),
              [&](const Json& json) { parse(json, &part); });
    check_pieces(part, 0, kind, file);
    all.files.push_back(part.files[0]);
    merge(part, i, &all);
  }
  return all;
}

}  // namespace tally::train
