// Turns streams of text into chunks of about a megabyte that can be tokenized independently.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tally::train {

// A part of a document, or all of it.
struct Piece {
  size_t begin = 0, end = 0;  // in Chunk::text
  bool ends_document = false;
};

struct Chunk {
  std::string text;
  std::vector<Piece> pieces;
  // JSON lines: each piece is one line, numbered from first_line on.
  bool json = false;
  std::string source;      // the input's name, for messages
  int64_t first_line = 1;  // the first piece's
};

enum class DocumentRule {
  whole_file,   // a file is a document
  blank_lines,  // documents are separated by blank lines; their last line end is left out
  json_lines,   // every line is a JSON object
};

// Push bytes of one input after the other, then finish() each. Memory: about one chunk, or the
// longest word or JSON line.
class DocumentSplitter {
 public:
  using Sink = std::function<void(Chunk&&)>;
  // The last position > 0 where a text may be cut, 0 for none, as Tokenizer::safe_cut().
  using Cut = std::function<size_t(std::string_view)>;
  // A document is cut only where `cut` allows it.
  DocumentSplitter(Cut cut, Sink sink, size_t chunk_bytes = size_t{1} << 20);
  void start(const std::string& source, DocumentRule rule);
  void append(std::string_view text);
  void finish();

 private:
  void append_lines(std::string_view text);
  void append_json(std::string_view text);
  void add(std::string_view text);
  void end_document();
  void emit(size_t end);
  void cut_open_document();

  Cut cut_;
  Sink sink_;
  size_t chunk_bytes_;
  DocumentRule rule_ = DocumentRule::whole_file;
  Chunk chunk_;
  size_t open_ = 0;        // the open document's position in the chunk
  size_t next_cut_ = 0;    // size of the open part at which to look for a cut
  bool any_text_ = false;  // the open document has had text
  // blank_lines: the state of the line that is being read
  std::string held_;  // line ends and white space that may or may not belong to the document
  bool line_blank_ = true;
  int64_t line_ = 1;
};

}  // namespace tally::train
