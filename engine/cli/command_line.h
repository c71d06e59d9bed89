// What CLI11 leaves to do to a command line: abbreviations, messages.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "engine/cli/input.h"
#include "engine/jube/command_line.h"

namespace tally {

bool is_file(const std::string& path);
bool exists(const std::string& path);
// A run's id as -i takes it: a number, "last", "all".
bool is_id(const std::string& word);

// A whole number not below `least`.
CLI::Validator at_least(long least);

// The command of that name; null when there is none.
const CLI::App* find_command(const CLI::App& app, const std::string& name);

// A long option may be cut short as far as it stays the only one, as in Python's argparse.
std::string unabbreviated(const CLI::App& app, int argc, char** argv, const std::string& word);

// Says what is wrong with the command line in our words: the option that nobody knows, with the
// nearest that exists.
void complain(const Invocation& invocation, const CLI::App& app, int argc, char** argv,
              const CLI::ParseError& error);

// Bash's completion of all commands and their options, for the program's name.
void print_completion(const CLI::App& app, const std::string& name);

}  // namespace tally
