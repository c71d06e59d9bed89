// Standard output and standard error. Names, values, outputs and messages of other programs may
// hold characters that command a terminal. Everything that is printed passes one filter, which
// makes them visible where the stream is a terminal. Files and pipes get the bytes as they are.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace tally {

// Called once, at the start of the program.
// - Descriptors 0 to 2 that are closed become /dev/null, so that no file gets their numbers.
//   Writing to a standard output that was closed is still an error.
// - stdout, stderr and std::cout pass the filter. Errors of writing to stderr are ignored: they
//   must not end a run.
// - Writing to a pipe that nobody reads, or beyond the limit of file sizes, is an error and no
//   signal. Programs that are started have both signals as they were by default.
void prepare_standard_streams();
// Prints what the filter still holds.
void finish_standard_streams();

// The text as the filter shows it: ESC becomes "\\x1b", U+202E becomes "\\u202e". Newlines and tabs
// stay, and so does a carriage return before a newline. Shown are control characters (C0, DEL, C1),
// bytes that are not UTF-8, characters that turn the direction of writing, and those that cannot be
// seen at all. Joiners (U+200C, U+200D) stay, which some scripts need.
std::string without_controls(std::string_view text);

// The program's own sequences, such as colours. `styled` has them as they are; all else in it must
// come from literal(), which doubles ESC.
std::string literal(std::string_view text);
void print_styled(FILE* stream, std::string_view styled);

}  // namespace tally
