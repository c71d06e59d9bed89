#include "src/train/commands/text_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/command_spec.h"
#include "src/checkpoint/stored_models.h"
#include "src/config/args.h"
#include "src/convert/convert.h"
#include "src/data/commands/prepare.h"
#include "src/data/commands/tokenize.h"
#include "src/data/text/exit_codes.h"
#include "src/measure/build_info.h"
#include "src/plan/plan.h"
#include "src/train/run/output.h"

namespace tally::train {
namespace {

int bad_command(const std::string& what) {
  print_error(what);
  return exit_bad_input;
}

int print_and_end(const std::string& text) {
  print_text(text);
  if (output_failure().empty()) return exit_completed;
  print_error(output_failure());
  return exit_error;
}

// One of the processes that a launcher starts prints.
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

ProgramSpec program_spec() {
  ProgramSpec spec;
  spec.name = "tally-train";
  spec.version = build_info().version;
  spec.brief = "train language models and say how fast";
  spec.summary =
      "Trains GPT, Llama, BERT and DistilBERT models and says how fast. Flags are Megatron-LM's; "
      "numbers may carry underscores (300_000_000). @FILE reads flags from a file.";
  OptionSpec help, version;
  help.names = {"-h", "--help"};
  help.help = "Show the flags and exit";
  version.names = {"--version"};
  version.help = "Show the version and the libraries, and exit";
  help.group = version.group = "Options";
  spec.common = {help, version};
  const KnownValues values = flag_values();
  spec.commands = {flags_spec(), links_spec(), prepare_spec(values), tokenize_spec(values),
                   convert_spec()};
  for (CommandSpec& command : spec.commands) {
    std::erase_if(command.options,
                  [](const OptionSpec& option) { return option.names.back() == "--help"; });
  }
  CommandSpec complete;
  complete.names = {"complete"};
  complete.summary = "completion for a shell: eval \"$(tally-train complete bash)\"";
  complete.positionals = {{"SHELL", "bash, zsh or fish", {"bash", "zsh", "fish"}}};
  CommandSpec reference;
  reference.names = {"reference"};
  reference.summary = "every flag, as Markdown";
  spec.commands.insert(spec.commands.end(), {complete, reference});
  spec.sections = {
      {"exit status",
       "  0  completed, or ended by --exit-interval\n"
       "  1  anything that is not listed here\n"
       "  2  bad input: flags, dataset, checkpoint, text\n"
       "  3  out of memory; with --plan, the layout does not fit\n"
       "  4  stopped before the last step: time limit, signal, output that cannot be written\n"
       "  5  a check failed: a loss that is not finite, a sum of links that is wrong\n"}};
  spec.see_also = {"tally(1)"};
  return spec;
}

int print_completion(int argc, char** argv) {
  const std::string shell = argc == 3 ? argv[2] : argc == 2 ? "bash" : "";
  if (shell == "bash") return print_and_end(bash_completion(program_spec()));
  if (shell == "zsh") return print_and_end(zsh_completion(program_spec()));
  if (shell == "fish") return print_and_end(fish_completion(program_spec()));
  return bad_command("complete takes one word: bash, zsh or fish");
}

}  // namespace

std::optional<int> run_text_command(int argc, char** argv, const ModelFacts& facts) {
  if (argc < 2) return bad_command("no flags were given: 'tally-train --help' lists them");
  const char* first = argv[1];
  using DataCommand = std::pair<const char*, std::function<int(int, char**)>>;
  for (const auto& [name, run] :
       {DataCommand{"prepare", prepare_main}, DataCommand{"tokenize", tokenize_main},
        DataCommand{"convert",
                    [&](int n, char**words) { return convert_main(n, words, facts); }}}) {
    if (std::strcmp(first, name) != 0) continue;
    std::vector<char*> rest(argv, argv + argc);
    rest.erase(rest.begin() + 1);
    return run(static_cast<int>(rest.size()), rest.data());
  }
  if (std::strcmp(first, "reference") == 0) {
    return print_and_end(flags_reference());
  }
  if (std::strcmp(first, "complete") == 0) return print_completion(argc, argv);
  if (std::strcmp(first, "manual") == 0) return print_and_end(manual_page(program_spec()));
  if (std::strcmp(first, "--version") == 0) {
    return print_and_end(version_text());
  }
  const bool links = std::strcmp(first, "links") == 0;
  const bool command =
      links || std::strcmp(first, "evaluate") == 0 || std::strcmp(first, "train") == 0;
  if (!command && first[0] != '-' && first[0] != '@')
    return bad_command(
        fmt::format("'{}' is not a command: train, evaluate, links, prepare, tokenize, convert, "
                    "complete, reference",
                    first));
  if (links && !asks_for_help(argc, argv)) return std::nullopt;
  if (links) return is_primary() ? print_and_end(links_help_text()) : 0;
  if (!asks_for_help(argc, argv))
    return asks_for_plan(argc, argv) ? std::optional(print_plan(argc, argv)) : std::nullopt;
  return is_primary() ? print_and_end(help_text()) : 0;
}

}  // namespace tally::train
