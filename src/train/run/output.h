// The program's lines on standard output and standard error. A line that cannot be written (the
// disk is full, the reader has closed the pipe) throws nothing and ends nothing: a lost line of
// standard output is remembered, and a run takes it as a request to stop. Messages on standard
// error are in the record, too: a run goes on without them. Safe for several threads.
#pragma once

#include <string>

namespace tally::train {

// Turns writes to a closed pipe, and to a file at the limit of its size, into errors of the write
// instead of signals that end the process. Called at the start of the program. (early_help.cc opens
// closed streams.)
void prepare_output();

// Prints the text to standard output, as it is or as a line.
void print_text(const std::string& text);
void print_line(const std::string& line);
// Print to standard error: "tally-train: note: ..." and so on. Every error ends in one line of
// print_error(), and every run that was asked to stop in one of print_stopped().
void print_note(const std::string& text);
void print_warning(const std::string& text);
void print_error(const std::string& text);
void print_stopped(const std::string& why);

// The reason why the first lost line of standard output could not be written: "standard output
// cannot be written: No space left on device"; empty where none was lost.
std::string output_failure();

}  // namespace tally::train
