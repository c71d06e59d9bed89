// The program's lines on standard output and standard error. A line that cannot be written (the
// disk is full, nobody reads the pipe any more) throws nothing and ends nothing: the failure is
// remembered, and a run takes it as a request to stop. Safe for several threads.
#pragma once

#include <string>

namespace tally::train {

// For the start of the program: a pipe that nobody reads any more, and a file that has reached the
// limit of its size, are errors of the write, not signals that end the process. A standard stream that is closed becomes /dev/null: otherwise the
// next file that is opened, such as a checkpoint, would take its number and receive its lines.
void prepare_output();

// To standard output: the text as it is, or as a line.
void print_text(const std::string& text);
void print_line(const std::string& line);
// To standard error: "tally-train: note: ..." and so on. Every error ends in one line of
// print_error(), every run that was asked to stop in one of print_stopped().
void print_note(const std::string& text);
void print_warning(const std::string& text);
void print_error(const std::string& text);
void print_stopped(const std::string& why);

// "standard output cannot be written: No space left on device", of the first line that was lost;
// empty where none was.
std::string output_failure();

}  // namespace tally::train
