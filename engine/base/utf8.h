// Converts code points to bytes, and any bytes to text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tally {

// Appends `code` in UTF-8.
void append_utf8(uint32_t code, std::string& out);

// Outputs may hold any bytes, and patterns search characters. In text made of bytes, a byte that is
// not UTF-8 is a character of its own, which is no letter, no digit and no space: U+10FE80 for 0x80
// up to U+10FEFF for 0xFF, which Unicode leaves to private use. Where the bytes hold such a
// character, each of its bytes becomes one, so that bytes_of_text() gives back any bytes.

// The number of bytes of the character at the start of `bytes`. It is 0 if the first byte is not
// one in text. `bytes` is not empty.
size_t text_length(std::string_view bytes);
// Appends a byte of which text_length() is 0.
void append_byte_as_text(char byte, std::string& out);
std::string text_of_bytes(std::string_view bytes);
std::string bytes_of_text(std::string_view text);

}  // namespace tally
