#include "src/train/text_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "src/checkpoint/stored_models.h"
#include "src/config/args.h"
#include "src/convert/convert.h"
#include "src/data/prepare.h"
#include "src/data/tokenize.h"
#include "src/measure/build_info.h"
#include "src/plan/plan.h"
#include "src/train/output.h"

namespace tally::train {
namespace {

int bad_command(const std::string& what) {
  print_error(what);
  return 2;
}

int print_and_end(const std::string& text) {
  print_text(text);
  if (output_failure().empty()) return 0;
  print_error(output_failure());
  return 1;
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

int print_plan(int argc, char** argv) {
  try {
    const Command command =
        std::strcmp(argv[1], "evaluate") == 0 ? Command::evaluate : Command::train;
    const Plan plan = make_plan(parse_args(argc, argv, stored_models(), 1, command));
    if (is_primary()) {
      for (const std::string& text : plan.config.notices) print_note(text);
      if (const int code = print_and_end(plan.config.plan.json ? plan_json(plan) : plan_text(plan));
          code != 0)
        return code;
    }
    return plan.fits() ? 0 : 3;
  } catch (const UsageError& e) {
    return is_primary() ? bad_command(e.what()) : 2;
  }
}

}  // namespace

std::optional<int> run_text_command(int argc, char** argv, const WeightsCheck& check) {
  if (argc < 2) return bad_command("no flags were given: 'tally-train --help' lists them");
  const char* first = argv[1];
  using DataCommand = std::pair<const char*, std::function<int(int, char**)>>;
  for (const auto& [name, run] :
       {DataCommand{"prepare", prepare_main}, DataCommand{"tokenize", tokenize_main},
        DataCommand{"convert",
                    [&](int n, char**words) { return convert_main(n, words, check); }}}) {
    if (std::strcmp(first, name) != 0) continue;
    std::vector<char*> rest(argv, argv + argc);
    rest.erase(rest.begin() + 1);
    return run(static_cast<int>(rest.size()), rest.data());
  }
  if (std::strcmp(first, "reference") == 0) {
    return print_and_end(flags_reference());
  }
  if (std::strcmp(first, "--version") == 0) {
    return print_and_end(version_text());
  }
  const bool command = std::strcmp(first, "evaluate") == 0 || std::strcmp(first, "train") == 0;
  if (!command && first[0] != '-' && first[0] != '@')
    return bad_command(fmt::format(
        "'{}' is not a command: train, evaluate, prepare, tokenize, convert, reference", first));
  if (!asks_for_help(argc, argv))
    return asks_for_plan(argc, argv) ? std::optional(print_plan(argc, argv)) : std::nullopt;
  return is_primary() ? print_and_end(help_text()) : 0;
}

}  // namespace tally::train
