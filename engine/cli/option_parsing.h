// Additions to CLI11's command line parsing: abbreviations and messages.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "engine/cli/prepare.h"
#include "engine/jube/argument_forms.h"

namespace tally {

bool is_file(const std::string& path);
bool exists(const std::string& path);
// Whether the word is a run id that -i accepts: a number, "last" or "all".
bool is_id(const std::string& word);

// Reads "2%" as 0.02. Accepts 0% and more, below 100%.
bool parse_percent(const std::string& text, double* fraction);

// Accepts a whole number that is not below `least`.
CLI::Validator at_least(long least);
// A finite number of at least 0.
CLI::Validator amount();

// Ends words that CLI11 does not leave as they are with a mark: it takes `[a,b]` apart where
// several values are allowed, and drops `++`. without_mark() gives back the word; a mark is no part
// of it.
std::string with_mark(std::string word);
std::string without_mark(std::string word);

// The command of that name. Null when there is none.
const CLI::App* find_command(const CLI::App& app, const std::string& name);

// Completes an abbreviated long option. As in Python's argparse, the abbreviation must be unique.
std::string unabbreviated(const CLI::App& app, int argc, char** argv, const std::string& word);

// Prints an error about the command line. An unknown option is named together with the nearest
// existing one.
void complain(const Settings& settings, const CLI::App& app, int argc, char** argv,
              const CLI::ParseError& error);

}  // namespace tally
