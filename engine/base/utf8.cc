#include "engine/base/utf8.h"

#include "engine/base/text.h"

namespace tally {
namespace {

constexpr uint32_t kBytes = 0x10FE00;  // and the byte
constexpr size_t kCharacterOfByte = 4;

bool stands_for_byte(uint32_t code) {
  return code >= kBytes + 0x80 && code <= kBytes + 0xFF;
}

}  // namespace

void append_utf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

size_t text_length(std::string_view bytes) {
  if (static_cast<unsigned char>(bytes.front()) < 0x80) return 1;
  uint32_t code = 0;
  const size_t length = utf8_length(bytes, &code);
  return stands_for_byte(code) ? 0 : length;
}

void append_byte_as_text(char byte, std::string& out) {
  append_utf8(kBytes + static_cast<unsigned char>(byte), out);
}

std::string text_of_bytes(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t length = text_length(bytes);
    if (length == 0) {
      append_byte_as_text(bytes.front(), text);
    } else {
      text += bytes.substr(0, length);
    }
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
}

std::string bytes_of_text(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); ++at) {
    uint32_t code = 0;
    const bool candidate = text[at] == '\xF4';
    if (candidate && utf8_length(text.substr(at), &code) == kCharacterOfByte &&
        stands_for_byte(code)) {
      bytes += static_cast<char>(code - kBytes);
      at += kCharacterOfByte - 1;
    } else {
      bytes += text[at];
    }
  }
  return bytes;
}

}  // namespace tally
