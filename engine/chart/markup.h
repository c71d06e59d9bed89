// Text for XML and HTML, and the widths of printed texts.
#pragma once

#include <string>
#include <string_view>

namespace tally {

// The text with its special characters escaped, for an element's content or an attribute in double
// quotes. Characters that XML does not allow (control characters, invalid UTF-8) become U+FFFD. A
// newline and a tab stay.
std::string escaped(std::string_view text);

// The width of a text in a sans-serif font, in units of the font's size. The widths are those of
// DejaVu Sans, which is wider than the other common fonts: a text takes at most this much.
double text_width(std::string_view text);

// The text, shortened with "…" to at most `width` units of the font's size.
std::string shortened(std::string_view text, double width);

}  // namespace tally
