// Streams of bytes to be tokenized: files, gzip'd files, standard input.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

struct gzFile_s;

namespace tally::train {

// An input that is missing, damaged or not text: exit code 2. what() is one sentence.
struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Reads a file, "-" for standard input; gzip'd data is recognised and unpacked. Every error throws
// BadInput with a sentence that names the file.
class TextInput {
 public:
  explicit TextInput(const std::string& path);
  ~TextInput();
  TextInput(const TextInput&) = delete;
  TextInput& operator=(const TextInput&) = delete;
  // Replaces *block by the next bytes (at most `bytes`); false at the end.
  bool read(size_t bytes, std::string* block);
  // Bytes of the file consumed (compressed ones when it is compressed).
  int64_t position() const;
  // The name for messages: the path, or "standard input".
  const std::string& name() const { return name_; }

 private:
  void check_beginning(const std::string& block) const;

  std::string path_, name_;
  gzFile_s* file_ = nullptr;
  bool started_ = false;
};

// The reason why a path cannot be read as a file: "it is not a regular file", "it is a directory".
// Empty: it can, or it does not exist. A FIFO with a name would be waited for until somebody writes
// to it, perhaps for ever; a shell's <(...) has a writer.
std::string why_no_file(const std::string& path);

// Size of a file, 0 when it is not known (standard input, pipes).
int64_t input_size(const std::string& path);

// Whether a name says JSON lines: .jsonl, .ndjson or .json, with or without .gz.
bool is_json_name(const std::string& path);

}  // namespace tally::train
