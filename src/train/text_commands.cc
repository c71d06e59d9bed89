#include "src/train/text_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "src/config/args.h"
#include "src/data/prepare.h"
#include "src/measure/build_info.h"

namespace tally::train {
namespace {

int bad_command(const std::string& what) {
  fmt::print(stderr, "tally-train: error: {}\n", what);
  return 2;
}

// Of the processes that a launcher starts, one prints.
bool is_primary() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* rank = std::getenv(name)) return std::strcmp(rank, "0") == 0;
  return true;
}

bool asks_for_help(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc, [](const char* word) {
    return std::strcmp(word, "--help") == 0 || std::strcmp(word, "-h") == 0;
  });
}

}  // namespace

std::optional<int> run_text_command(int argc, char** argv) {
  if (argc < 2) return bad_command("no flags were given: 'tally-train --help' lists them");
  const char* first = argv[1];
  if (std::strcmp(first, "prepare") == 0) {
    std::vector<char*> rest(argv, argv + argc);
    rest.erase(rest.begin() + 1);
    return prepare_main(static_cast<int>(rest.size()), rest.data());
  }
  if (std::strcmp(first, "reference") == 0) {
    fmt::print("{}", flags_reference());
    return 0;
  }
  if (std::strcmp(first, "--version") == 0) {
    fmt::print("{}", version_text());
    return 0;
  }
  const bool command = std::strcmp(first, "evaluate") == 0 || std::strcmp(first, "train") == 0;
  if (!command && first[0] != '-' && first[0] != '@')
    return bad_command(
        fmt::format("'{}' is not a command: train, evaluate, prepare, reference", first));
  if (!asks_for_help(argc, argv)) return std::nullopt;
  if (is_primary()) fmt::print("{}", help_text());
  return 0;
}

}  // namespace tally::train
