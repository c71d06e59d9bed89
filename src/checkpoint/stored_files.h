// The files of a checkpoint with their checksums, as its manifest.json lists them. Private to
// checkpoint/.
//
//   {"format": 2, ...,
//    "files": [{"name": "state.json", "bytes": 1234, "xxh3": ["0123456789abcdef"]}, ...],
//    ...,
//    "checksum": "0123456789abcdef"}
//
// "xxh3" has one checksum for each block (checksum.h). "checksum" is that of the manifest's own
// text, with zeros in place of these sixteen digits.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/checkpoint/checksum.h"

namespace tally::train {

inline constexpr const char* manifest_file = "manifest.json";
inline constexpr const char* model_file = "model.safetensors";

struct StoredFile {
  std::string name;
  FileChecksum sum;  // not known of checkpoints that earlier versions saved
};

// The manifest.json of `directory`, with its own checksum checked; empty where there is none.
// Throws std::runtime_error with one sentence where it is damaged or of another version.
std::optional<nlohmann::ordered_json> read_manifest_json(const std::string& directory);
// The text of a manifest: `json` with the files' list and its checksum added.
std::string sealed_manifest(nlohmann::ordered_json json, const std::vector<StoredFile>& files);

// The files that a manifest lists. Throws nlohmann::json::exception or std::invalid_argument.
std::vector<StoredFile> files_of(const nlohmann::ordered_json& manifest);

// The files of the checkpoint in `directory`. Empty: an earlier version saved it without checksums,
// or the folder is not one. Throws like read_manifest_json().
std::vector<StoredFile> stored_files(const std::string& directory);
const StoredFile* find_file(const std::vector<StoredFile>& files, const std::string& name);

// Checks all files of a checkpoint in `directory` but those of tensors: they are there as they were
// saved. Other folders are not checked. Throws std::runtime_error with one sentence that names the
// file.
void check_small_files(const std::string& directory);

}  // namespace tally::train
