#include "src/data/text/utf8.h"

#include <cstring>

namespace tally::train {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Step {
  int length = 1;  // bytes of the character, or of the maximal invalid subpart
  bool valid = false;
  bool unfinished = false;  // invalid only because the text ends here
};

bool in_range(unsigned char c, unsigned low, unsigned high) {
  return c >= low && c <= high;
}

// Looks at the character that starts at text[at] (Unicode 15, table 3-7).
Step step_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return {1, true, false};
  int length = 0;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (in_range(lead, 0xC2, 0xDF)) {
    length = 2;
  } else if (in_range(lead, 0xE0, 0xEF)) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (in_range(lead, 0xF0, 0xF4)) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {1, false, false};
  }
  for (int i = 1; i < length; ++i) {
    const size_t next = at + static_cast<size_t>(i);
    if (next >= text.size()) return {i, false, true};
    if (!in_range(byte(next), low, high)) return {i, false, false};
    low = 0x80;
    high = 0xBF;
  }
  return {length, true, false};
}

}  // namespace

size_t valid_utf8_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;
    while (at + 8 <= text.size()) {
      std::memcpy(&eight, text.data() + at, 8);
      if ((eight & 0x8080808080808080ULL) != 0) break;
      at += 8;
    }
    if (at >= text.size()) break;
    const Step step = step_at(text, at);
    if (!step.valid) return at;
    at += static_cast<size_t>(step.length);
  }
  return at;
}

void Utf8Cleaner::append(std::string_view bytes, std::string* out) {
  std::string joined;
  if (!pending_.empty()) {
    joined = pending_;
    joined.append(bytes);
    pending_.clear();
    bytes = joined;
  }
  while (!bytes.empty()) {
    const size_t good = valid_utf8_prefix(bytes);
    out->append(bytes.substr(0, good));
    bytes.remove_prefix(good);
    if (bytes.empty()) return;
    const Step step = step_at(bytes, 0);
    if (step.unfinished) {
      pending_ = bytes;
      return;
    }
    out->append(kReplacement);
    ++replacements_;
    bytes.remove_prefix(static_cast<size_t>(step.length));
  }
}

void Utf8Cleaner::finish(std::string* out) {
  if (pending_.empty()) return;
  pending_.clear();
  out->append(kReplacement);
  ++replacements_;
}

std::string clean_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  Utf8Cleaner cleaner;
  cleaner.append(text, &out);
  cleaner.finish(&out);
  return out;
}

}  // namespace tally::train
