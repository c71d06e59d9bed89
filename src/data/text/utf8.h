// UTF-8 that is certain to be valid: what the byte-pair tokenizer and the JSON reader need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tally::train {

// Length of the longest valid UTF-8 prefix.
size_t valid_utf8_prefix(std::string_view text);

// Makes a stream of bytes valid: every maximal invalid subpart (Unicode 15, section 3.9, "best
// practice"; also what Python's errors="replace" does) becomes one U+FFFD. A character may be split
// between two calls.
class Utf8Cleaner {
 public:
  // Appends the cleaned bytes to *out; up to three bytes of an unfinished character are kept back.
  void append(std::string_view bytes, std::string* out);
  // The stream is at its end: an unfinished character is invalid.
  void finish(std::string* out);
  int64_t replacements() const { return replacements_; }

 private:
  std::string pending_;
  int64_t replacements_ = 0;
};

// The whole of a text cleaned at once.
std::string clean_utf8(std::string_view text);

}  // namespace tally::train
