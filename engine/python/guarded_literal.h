// Texts that a condition may take for something else by mistake.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/python/value.h"

namespace tally {

// The number that the text of a value without a type is beside numbers: also 0x10, 0o17 and 0b11,
// which a parameter of type int takes. Words, among them nan and inf, are none.
std::optional<Value> number_in(std::string_view text);

// Whether the text says true or false: `yes`, `Off`.
bool says_flag(std::string_view text);

// A Python literal for the text of the name `name`, in an expression that the helper evaluates
// (engine/expand/python_helper.h). A text such as `false` that stands there for true or false is an
// error that says so, because Python takes every text for true but the empty one. With `numbers`, the
// text of a number is one beside numbers, and beside texts a text. It is an error where it could be
// either: 12.10 beside the number 12.1.
std::string guarded_literal(std::string_view name, std::string_view text, bool numbers);

// The expression in which each number that Python would print in another form (1e-4, 0x10) knows
// how it is written: a value of exactly that text is meant, and could not be either.
std::string with_written_numbers(std::string_view expression);

}  // namespace tally
