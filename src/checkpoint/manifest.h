// The ranges of the optimizer's state of every parameter in the files of a checkpoint:
// manifest.json next to the parts that processes wrote, or the names of a single
// optimizer.safetensors, which holds every parameter as one piece. Private to checkpoint/.
//
//   manifest.json   {"format": 2, "dtype": "F32", "files": [...] (stored_files.h),
//                    "parameters": {"h.0.attn.c_attn.weight":
//                      {"shape": [768, 256], "dimension": 0, "sections": [256, 256, 256],
//                       "shards": 2, "pieces": [[FILE, SHARD, FIRST, LAST], ...]}, ...}}
//
// A shard is an equal share of every section along the dimension (nn/parameters.h, Shard). A piece
// is the elements FIRST ... LAST - 1 of a shard, row major; FILE counts the files from 0. Its
// tensors in the file are named by tensor_name().
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/checkpoint/safetensors.h"
#include "src/checkpoint/stored_files.h"
#include "src/config/config.h"
#include "src/nn/parameters.h"

namespace tally::train {

struct StoredPiece {
  int file = 0, shard = 0;
  int64_t first = 0, last = 0;  // elements of the shard
};

struct StoredParameter {
  std::vector<int64_t> shape;  // the whole parameter's
  int dimension = 0;
  std::vector<int64_t> sections;
  int shards = 1;
  std::vector<StoredPiece> pieces;

  int64_t elements() const;
  int64_t shard_elements() const { return elements() / shards; }
  Shard shard(int index) const { return {dimension, sections, index, shards}; }
};

struct Manifest {
  std::string path;  // the file that the parameters were read from, for messages
  std::string dtype;
  std::vector<StoredFile> files;
  std::map<std::string, StoredParameter> parameters;

  std::string directory() const;
  std::string file(int index) const;  // its path
};

// Prefixes of the names of an optimizer's tensors: the master weights' prefix, and those of all
// buffers in the order of OptimizerBuffers.
inline constexpr const char* master_prefix = "master.";
// The optimizer's state of a single process.
inline constexpr const char* whole_optimizer_file = "optimizer.safetensors";
std::vector<std::string> buffer_prefixes(OptimizerKind kind);
// "exp_avg.h.0.ln_1.bias"; with ":FIRST-LAST" where the piece is not a whole shard.
std::string tensor_name(const std::string& prefix, const std::string& parameter, int64_t first,
                        int64_t last, int64_t shard_elements);
// "optimizer-00003-of-00008.safetensors" of part 2.
std::string part_name(int part, int parts);

// The manifest of the checkpoint in `directory`. Throws std::runtime_error with one sentence that
// names the file.
Manifest read_manifest(const std::string& directory);
// The text of manifest.json; `others`: the checkpoint's files that are not in `manifest.files`. The
// parameters are left out where one file has every parameter as one piece.
std::string manifest_text(const Manifest& manifest, const std::vector<StoredFile>& others);

// The description of a part's pieces for the header of its file, and the manifest of all parts,
// read from their headers. `manifest.files` has the part alone. The second throws where a part is
// missing or damaged.
std::map<std::string, std::string> part_metadata(const Manifest& part);
Manifest manifest_of_parts(const std::string& directory, int parts, OptimizerKind kind);

// Whether the manifest has every element of the model's parameters (undivided), in the type `type`.
// The padding of the vocabulary may be another one: only the rows of `vocabulary` must be there.
// Throws std::runtime_error with one sentence.
void check_manifest(const Manifest& manifest, const std::vector<Parameter>& parameters,
                    int64_t vocabulary, DType type);
// Whether the manifest's files are there with their sizes. Throws like check_manifest().
void check_files(const Manifest& manifest);
// Whether the file holds the tensors that the manifest says of an optimizer of this kind. Throws
// like check_manifest().
void check_pieces(const Manifest& manifest, int index, OptimizerKind kind,
                  const SafetensorsFile& file);

}  // namespace tally::train
