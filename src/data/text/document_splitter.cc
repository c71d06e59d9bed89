#include "src/data/text/document_splitter.h"

#include <fmt/format.h>

#include "src/data/text/text_input.h"

namespace tally::train {
namespace {

constexpr size_t kLongestLine = size_t{1} << 30;
constexpr std::string_view kBlanks = " \t\r\v\f";

}  // namespace

DocumentSplitter::DocumentSplitter(Cut cut, Sink sink, size_t chunk_bytes)
    : cut_(std::move(cut)),
      sink_(std::move(sink)),
      chunk_bytes_(chunk_bytes),
      next_cut_(chunk_bytes) {}

void DocumentSplitter::start(const std::string& source, DocumentRule rule) {
  if (!chunk_.pieces.empty()) emit(chunk_.text.size());
  rule_ = rule;
  chunk_.source = source;
  chunk_.json = rule == DocumentRule::json_lines;
  chunk_.first_line = 1;
  line_ = 1;
  line_blank_ = true;
  held_.clear();
}

void DocumentSplitter::append(std::string_view text) {
  switch (rule_) {
    case DocumentRule::whole_file:
      return add(text);
    case DocumentRule::blank_lines:
      return append_lines(text);
    case DocumentRule::json_lines:
      return append_json(text);
  }
}

void DocumentSplitter::finish() {
  if (rule_ == DocumentRule::json_lines) {
    if (open_ < chunk_.text.size()) end_document();
  } else if (any_text_) {
    end_document();
  }
  if (!chunk_.pieces.empty()) emit(chunk_.text.size());
}

// One call gets the text between two line ends. White space is held back until it is known whether
// its line is blank.
void DocumentSplitter::append_lines(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line_blank_ && line.find_first_not_of(kBlanks) != std::string_view::npos) {
      line_blank_ = false;
      // The held text begins with the line end before this line, if the document had one before.
      if (any_text_) add(held_);
      if (!any_text_ && !held_.empty()) add(held_.substr(held_.rfind('\n') + 1));
      held_.clear();
    }
    if (line_blank_) {
      held_ += line;
    } else {
      add(line);
    }
    if (end == std::string_view::npos) return;
    if (line_blank_) {
      if (any_text_) end_document();
      held_.clear();
    } else {
      held_.assign(1, '\n');
    }
    line_blank_ = true;
    text.remove_prefix(end + 1);
  }
}

void DocumentSplitter::append_json(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    chunk_.text.append(text.substr(0, end));
    if (chunk_.text.size() - open_ > kLongestLine) {
      throw BadInput(
          fmt::format("{}:{}: the line is longer than 1 GiB: is this JSON lines, one "
                      "object a line? --format text reads it as plain text",
                      chunk_.source, line_));
    }
    if (end == std::string_view::npos) return;
    end_document();
    ++line_;
    if (chunk_.text.size() >= chunk_bytes_) {
      emit(chunk_.text.size());
      chunk_.first_line = line_;
    }
    text.remove_prefix(end + 1);
  }
}

void DocumentSplitter::add(std::string_view text) {
  if (text.empty()) return;
  any_text_ = true;
  chunk_.text.append(text);
  if (chunk_.text.size() - open_ >= next_cut_) cut_open_document();
}

void DocumentSplitter::end_document() {
  chunk_.pieces.push_back({open_, chunk_.text.size(), true});
  open_ = chunk_.text.size();
  next_cut_ = chunk_bytes_;
  any_text_ = false;
  if (rule_ != DocumentRule::json_lines && chunk_.text.size() >= chunk_bytes_) emit(open_);
}

void DocumentSplitter::cut_open_document() {
  const size_t cut = cut_(std::string_view(chunk_.text).substr(open_));
  if (cut == 0) {  // one endless word: look again when it is twice as long, so that the search
                   // stays linear
    next_cut_ = 2 * (chunk_.text.size() - open_);
    if (next_cut_ > 2 * kLongestLine) {
      throw BadInput(
          fmt::format("{}: a word (characters of one class without a break) is longer than 1 GiB: "
                      "is this text?",
                      chunk_.source));
    }
    return;
  }
  chunk_.pieces.push_back({open_, open_ + cut, false});
  next_cut_ = chunk_bytes_;
  emit(open_ + cut);
}

// Passes on the text up to `end` and keeps the rest.
void DocumentSplitter::emit(size_t end) {
  Chunk next;
  next.source = chunk_.source;
  next.json = chunk_.json;
  next.text = chunk_.text.substr(end);
  chunk_.text.resize(end);
  open_ = 0;
  sink_(std::move(chunk_));
  chunk_ = std::move(next);
}

}  // namespace tally::train
