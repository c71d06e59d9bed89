// `tally-train prepare`: text to an indexed dataset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/command_spec.h"
#include "src/data/text/document_splitter.h"
#include "src/data/tokenizers/tokenizer.h"
#include "src/device/tensor.h"

namespace tally::train {

struct PrepareOptions {
  std::vector<std::string> inputs;           // "-": standard input
  std::vector<std::string> keys = {"text"};  // keys in JSON lines: one dataset each
  std::vector<std::string> prefixes;         // the output's, one per key
  std::string format = "auto";               // auto (by name), text, jsonl
  bool split_on_blank_lines = false;
  bool append_eod = false;
  int workers = 1;
  DType dtype = DType::u16;
};

struct PrepareSummary {
  int64_t documents = 0, tokens = 0;
  int64_t input_bytes = 0;  // size of the text, unpacked
  int64_t output_bytes = 0;
  int64_t replaced = 0;  // invalid UTF-8 sequences
  double seconds = 0;
};

// Reads all inputs in order, tokenizes on `workers` threads and writes the datasets. The result
// does not depend on the number of workers. Files get their final names only if everything
// succeeded. Throws std::runtime_error with one sentence.
PrepareSummary prepare(const Tokenizer& tokenizer, const PrepareOptions& options);

// The command line (argv[0] is the program's name). Prints the summary as one line on standard
// output. 0: done; 1: a file could not be written; 2: bad usage or
// bad input.
int prepare_main(int argc, char** argv);
// The command's flags as data.
CommandSpec prepare_spec(const KnownValues& known);

}  // namespace tally::train
