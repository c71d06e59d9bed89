#include "src/checkpoint/stored_files.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "src/checkpoint/state_file.h"
#include "src/data/text/json_fault.h"
#include "src/data/text/mapped_file.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kManifestFormat = 2;
constexpr int kWithoutChecksums = 1;
// The end of a manifest's text: this, the digits and the rest.
constexpr const char* kSeal = "\"checksum\": \"";
constexpr size_t kDigits = 16;
constexpr const char* kBehindSeal = "\"\n}\n";

std::runtime_error damaged(const std::string& path, const std::string& why) {
  return std::runtime_error(fmt::format("'{}' is damaged: {}", path, why));
}

// Whether the text has a checksum of its own, and it is right. Throws where it is wrong.
bool check_seal(const std::string& path, std::string text) {
  const size_t at = text.rfind(kSeal);
  if (at == std::string::npos) return false;
  const size_t digits = at + std::strlen(kSeal);
  uint64_t expected = 0;
  if (text.substr(std::min(digits + kDigits, text.size())) != kBehindSeal ||
      !parse_checksum(text.substr(digits, kDigits), &expected))
    throw damaged(path, "its checksum is not complete");
  text.replace(digits, kDigits, kDigits, '0');
  if (checksum_of(text.data(), text.size()) != expected)
    throw damaged(
        path,
        "it is not the text that was saved (its checksum differs): load another checkpoint, "
        "or restore the file from a copy");
  return true;
}

bool has_tensors(const std::string& name) {
  return fs::path(name).extension() == ".safetensors";
}

}  // namespace

std::optional<Json> read_manifest_json(const std::string& directory) {
  const std::string path = (fs::path(directory) / manifest_file).string();
  if (!fs::exists(path)) return std::nullopt;
  const MappedFile file(path);
  const std::string text(file.data() == nullptr ? "" : file.data(), file.size());
  const bool sealed = check_seal(path, text);
  try {
    Json json = Json::parse(text);
    const int format = json.at("format").get<int>();
    if (format != kManifestFormat && format != kWithoutChecksums)
      throw std::runtime_error(
          fmt::format("'{}' has format {} of another version of this program, and {} is read", path,
                      format, kManifestFormat));
    if (format == kManifestFormat && !sealed) throw damaged(path, "its checksum is missing");
    return json;
  } catch (const Json::exception& error) {
    throw damaged(path, json_fault(error));
  }
}

std::string sealed_manifest(Json json, const std::vector<StoredFile>& files) {
  json["files"] = Json::array();
  for (const StoredFile& file : files) {
    Json sums = Json::array();
    for (const uint64_t block : file.sum.blocks) sums.push_back(checksum_text(block));
    json["files"].push_back({{"name", file.name}, {"bytes", file.sum.bytes}, {"xxh3", sums}});
  }
  json.erase("format");
  Json all;
  all["format"] = kManifestFormat;
  all.update(json);
  all["checksum"] = std::string(kDigits, '0');
  std::string text = all.dump(1) + "\n";
  const std::string seal = checksum_text(checksum_of(text.data(), text.size()));
  text.replace(text.size() - std::strlen(kBehindSeal) - kDigits, kDigits, seal);
  return text;
}

std::vector<StoredFile> files_of(const Json& manifest) {
  std::vector<StoredFile> files;
  for (const Json& one : manifest.at("files")) {
    StoredFile file;
    file.name = one.at("name").get<std::string>();
    file.sum.bytes = one.at("bytes").get<uint64_t>();
    if (file.name.empty() || file.name.find('/') != std::string::npos)
      throw std::invalid_argument(fmt::format("it names the file '{}'", file.name));
    for (const Json& sum : one.value("xxh3", Json::array())) {
      uint64_t block = 0;
      if (!parse_checksum(sum.get<std::string>(), &block))
        throw std::invalid_argument(fmt::format("'{}' has no checksum", file.name));
      file.sum.blocks.push_back(block);
    }
    if (!file.sum.blocks.empty() && file.sum.blocks.size() != file.sum.block_count())
      throw std::invalid_argument(fmt::format("'{}' has {} checksums, and {} are needed", file.name,
                                              file.sum.blocks.size(), file.sum.block_count()));
    files.push_back(std::move(file));
  }
  return files;
}

std::vector<StoredFile> stored_files(const std::string& directory) {
  const fs::path folder(directory);
  // Another program's folder may have a manifest.json, too.
  if (!fs::exists(folder / state_file)) return {};
  const std::optional<Json> json = read_manifest_json(directory);
  const std::string path = (folder / manifest_file).string();
  try {
    if (json && json->at("format").get<int>() == kManifestFormat) return files_of(*json);
    if (!was_saved_with_checksums((folder / state_file).string())) return {};
    throw std::runtime_error(
        fmt::format("'{}', which has the checkpoint's checksums, is {}: load another checkpoint, "
                    "or restore the file from a copy",
                    path, json ? "that of an earlier version" : "missing"));
  } catch (const Json::exception& error) {
    throw damaged(path, json_fault(error));
  } catch (const std::invalid_argument& error) {
    throw damaged(path, error.what());
  }
}

const StoredFile* find_file(const std::vector<StoredFile>& files, const std::string& name) {
  for (const StoredFile& file : files)
    if (file.name == name) return &file;
  return nullptr;
}

void check_small_files(const std::string& directory) {
  for (const StoredFile& file : stored_files(directory)) {
    if (has_tensors(file.name)) continue;
    const std::string path = (fs::path(directory) / file.name).string();
    const MappedFile mapped(path);
    check_blocks({path, mapped.data(), mapped.size()}, file.sum, {{0, file.sum.bytes}});
  }
}

}  // namespace tally::train
