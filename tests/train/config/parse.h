// A command line as a person writes it, and what becomes of it.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "src/checkpoint/stored_models.h"
#include "src/config/args.h"

inline std::vector<std::string> split_words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

inline tally::train::Config parse(const std::string& flags, int world_size = 1,
                                  tally::train::Command command = tally::train::Command::train) {
  std::vector<std::string> words = split_words(flags);
  words.insert(words.begin(), "tally-train");
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  return tally::train::parse_args(static_cast<int>(argv.size()), argv.data(),
                                  tally::train::stored_models(), world_size, command);
}

inline std::string error_of(const std::string& flags, int world_size = 1,
                            tally::train::Command command = tally::train::Command::train) {
  try {
    parse(flags, world_size, command);
  } catch (const tally::train::UsageError& e) {
    return e.what();
  }
  return "(no error)";
}

inline const std::string base = "--mock-data --train-iters 10 ";

inline tally::train::LaunchOptions launch_options(const std::string& flags) {
  std::vector<std::string> words = split_words(flags);
  words.insert(words.begin(), "tally-train");
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  return tally::train::parse_launch_options(static_cast<int>(argv.size()), argv.data());
}
