// Writes Megatron's indexed dataset: PREFIX.bin (the tokens) and PREFIX.idx (where each sequence
// lies).
//   .idx, little endian: "MMIDIDX\0\0", u64 version 1, u8 type of the tokens (4 i32, 8 u16), u64
//   sequences, u64 entries of the document index, i32 lengths[sequences], i64 byte
//   offsets[sequences], i64 document index[documents + 1] (numbers of sequences; starts with 0)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/data/text/output_file.h"
#include "src/device/tensor.h"

namespace tally::train {

// u16 for vocabularies below 65,500, as Megatron chooses, else i32.
DType token_type(int64_t vocabulary);

// Memory use does not grow with the dataset. Both files get their names in finish(); what was begun
// and not finished is removed, and a killed process leaves only PREFIX.*.tmp files, which the next
// one reuses.
class IndexedDatasetWriter {
 public:
  // The suffixes of PREFIX in the names of all files that are written, those removed at the
  // end included.
  static std::vector<std::string> suffixes();
  IndexedDatasetWriter(const std::string& prefix, DType dtype);
  // Appends to the open sequence. Throws when a token does not fit the type.
  void append(const int32_t* tokens, int64_t count);
  // Ends the open sequence of a document that has several, as sentences. An empty one is left out.
  void end_sentence();
  // Ends the open document. An empty one is left out. A document beyond 2^31 - 1 tokens becomes
  // several sequences.
  void end_document();
  void finish();
  int64_t documents() const { return documents_; }
  int64_t tokens() const { return tokens_; }
  int64_t bytes() const { return bytes_; }  // size of both files, after finish()

 private:
  void end_sequence();
  void write_index();

  std::string bin_target_, idx_target_;
  DType dtype_;
  OutputFile bin_, idx_, lengths_, document_ends_;
  int64_t open_tokens_ = 0;     // tokens of the open sequence
  int64_t open_sequences_ = 0;  // ended ones of the open document
  int64_t sequences_ = 0, documents_ = 0, tokens_ = 0, bytes_ = 0;
};

}  // namespace tally::train
