// The optimizer's state in files: a whole one, or a part for each process. Private to checkpoint/.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/checkpoint/checksum.h"
#include "src/checkpoint/manifest.h"
#include "src/checkpoint/model_weights.h"
#include "src/device/stream.h"

namespace tally::train {

// Elements [first, last) of this process's part of a parameter, and where they begin in the
// optimizer's buffers.
struct HeldPiece {
  const Parameter* parameter = nullptr;
  int64_t first = 0, last = 0, at = 0;
};
// The pieces that the optimizer's buffers hold. `parameters` outlives the result.
std::vector<HeldPiece> held_pieces(const std::vector<Parameter>& parameters,
                                   const std::vector<FlatRange>& ranges);

// Writes all of the state, which this process has, to PATH. Returns the file's checksum.
FileChecksum save_whole_optimizer(const std::string& path, const ParameterState& state,
                                  Stream& stream);
// Writes what this process holds, without copies, to PATH. Returns the file's checksum.
FileChecksum save_optimizer_part(const std::string& path, const ParameterState& state,
                                 Stream& stream);

// The state of an opened checkpoint, for any process of any layout.
class StoredOptimizer {
 public:
  // Throws std::runtime_error with one sentence, as read_manifest() and check_manifest().
  StoredOptimizer(const std::string& directory, OptimizerKind kind)
      : kind_(kind), manifest_(read_manifest(directory)) {}
  const Manifest& manifest() const { return manifest_; }
  // Opens the files that elements of the state may be read from, and checks their headers.
  void open(const ParameterState& state);
  // Compares those elements with their checksums. It may run beside load_optimizer(): reading
  // damaged elements gives wrong numbers and nothing worse. Throws std::runtime_error with one
  // sentence.
  void check() const;
  // Elements [first, last) of this process's part of `parameter` in one of the buffers: inside a
  // file, or put together in `staging`. Rows of the padding that are not stored are 0.
  const char* elements(const std::string& prefix, const Parameter& parameter, int64_t first,
                       int64_t last, std::vector<char>* staging) const;

 private:
  using NeededTensors = std::map<int, std::vector<std::string>>;  // names, by file
  // Adds the tensors that are read for `parameter`, of which the process holds `held`.
  void need(const Parameter& parameter, const std::vector<HeldPiece>& held,
            NeededTensors* needed) const;
  const char* data_of(const std::string& prefix, const std::string& name,
                      const StoredPiece& piece) const;

  OptimizerKind kind_;
  Manifest manifest_;
  std::map<int, std::unique_ptr<SafetensorsFile>> files_;
  std::map<int, std::vector<ByteRange>> ranges_;  // ranges of the files, only those that are read
};

// Fills what the optimizer's buffers hold, and the weights rounded from the master weights.
// `stored` has the state's parameters opened.
void load_optimizer(const StoredOptimizer& stored, const ParameterState& state, Stream& stream);

}  // namespace tally::train
