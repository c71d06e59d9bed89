// Expressions in messages. Private to results/.
#pragma once

#include <string>
#include <string_view>

namespace tally {

// The expression as messages show it: of a long one, the beginning.
std::string shown_expression(std::string_view expression);

}  // namespace tally
