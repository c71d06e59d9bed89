#include "engine/cli/reference_update.h"

#include <algorithm>
#include <cstring>

namespace tally {
namespace {

constexpr size_t kNowhere = std::string::npos;

// The byte offset of a mark, whose columns count code points.
size_t offset_of(const std::string& text, const Mark& mark) {
  size_t at = 0;
  for (uint32_t line = 1; line < mark.line; ++line) {
    at = text.find('\n', at);
    if (at == kNowhere) return kNowhere;
    ++at;
  }
  for (uint32_t column = 1; column < mark.column && at < text.size(); ++at) {
    const bool next_is_start =
        at + 1 >= text.size() || (static_cast<unsigned char>(text[at + 1]) & 0xC0U) != 0x80U;
    if (next_is_start) ++column;
  }
  return at;
}

// A scalar in double quotes.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// Finds where the scalar `value` at `mark` begins and ends, with its quotes. False if it is not
// written there as it is.
bool find_scalar(const std::string& text, const Text& value, size_t* begin, size_t* end) {
  *begin = offset_of(text, value.mark);
  if (*begin == kNowhere || *begin >= text.size() || value.value.empty()) return false;
  const char first = text[*begin];
  const bool in_quotes = first == '"' || first == '\'';
  const size_t from = *begin + (in_quotes ? 1 : 0);
  if (text.compare(from, value.value.size(), value.value) != 0) return false;
  *end = from + value.value.size();
  if (!in_quotes) return true;
  if (*end >= text.size() || text[*end] != first) return false;
  ++*end;
  return true;
}

size_t skip_blanks_back(const std::string& text, size_t at) {
  while (at > 0 && std::strchr(" \t\r\n", text[at - 1]) != nullptr) --at;
  return at;
}

// The place for the note of a reference without one, and the note's text.
TextEdit new_note(const std::string& text, size_t condition, size_t condition_end,
                  const std::string& note) {
  const size_t key = skip_blanks_back(text, condition) - 2;  // of "_:"
  const size_t before = skip_blanks_back(text, key);
  const bool flow = before > 0 && (text[before - 1] == '{' || text[before - 1] == ',');
  if (flow) return {condition_end, condition_end, ", note: " + quoted(note)};
  const size_t newline = key == 0 ? kNowhere : text.rfind('\n', key - 1);
  const size_t indentation = key - (newline == kNowhere ? 0 : newline + 1);
  const size_t line_end = std::min(text.find('\n', condition_end), text.size());
  return {line_end, line_end, "\n" + std::string(indentation, ' ') + "note: " + quoted(note)};
}

}  // namespace

Status edit_reference(const std::string& text, const Reference& reference,
                      const std::string& condition, const std::string& note,
                      std::vector<TextEdit>* edits) {
  size_t begin = 0;
  size_t end = 0;
  if (!find_scalar(text, reference.condition, &begin, &end))
    return Status::error("it is not written in one line without escapes; change it by hand");
  const size_t before = skip_blanks_back(text, begin);
  const bool is_mapping = before >= 2 && text.compare(before - 2, 2, "_:") == 0;
  if (!is_mapping) {
    edits->push_back({begin, end, "{_: " + quoted(condition) + ", note: " + quoted(note) + "}"});
    return Status::ok();
  }
  TextEdit of_note = new_note(text, begin, end, note);
  if (!reference.note.value.empty()) {
    if (!find_scalar(text, reference.note, &of_note.begin, &of_note.end))
      return Status::error("its note is not written in one line; change it by hand");
    of_note.text = quoted(note);
  }
  edits->push_back({begin, end, quoted(condition)});
  edits->push_back(std::move(of_note));
  return Status::ok();
}

std::string edited(const std::string& text, std::vector<TextEdit> edits) {
  std::stable_sort(edits.begin(), edits.end(),
                   [](const TextEdit& a, const TextEdit& b) { return a.begin < b.begin; });
  std::string out;
  size_t at = 0;
  for (const TextEdit& edit : edits) {
    out += text.substr(at, edit.begin - at) + edit.text;
    at = edit.end;
  }
  return out + text.substr(at);
}

}  // namespace tally
