// tally-train: the training benchmark.
//   tally-train [train] FLAGS   trains (docs/flags.md)
//   tally-train evaluate FLAGS  gives a stored model's loss and perplexity on a text
//   tally-train --plan FLAGS    prints what a run would need (docs/planner.md)
//   tally-train prepare FLAGS   makes a dataset from text (docs/data.md)
//   tally-train convert FLAGS   makes a folder for --load-hf (docs/real-weights.md)
//   tally-train tokenize FLAGS  prints a text's tokens
//   tally-train reference       prints docs/flags.md
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "src/checkpoint/model_weights.h"
#include "src/checkpoint/stored_models.h"
#include "src/config/args.h"
#include "src/data/text/exit_codes.h"
#include "src/model/stage.h"
#include "src/parallel/control/errors.h"
#include "src/parallel/control/supervisor.h"
#include "src/train/commands/evaluate.h"
#include "src/train/commands/find_batch.h"
#include "src/train/commands/links.h"
#include "src/train/commands/rehearse.h"
#include "src/train/commands/run.h"
#include "src/train/commands/text_commands.h"
#include "src/train/run/failures.h"
#include "src/train/run/output.h"
#include "src/train/run/start_ranks.h"

namespace {

using namespace tally::train;

// Runs commands that only print. Returns the exit code.
int print_and_end(const std::string& text) {
  print_text(text);
  const std::string failure = output_failure();
  if (failure.empty()) return exit_completed;
  print_error(failure);
  return exit_error;
}

int rehearse_alone(const Config& config, World& world) {
  try {
    const int code = rehearse(config);
    if (const std::string lost = output_failure(); !lost.empty()) throw std::runtime_error(lost);
    return code;
  } catch (...) {
    const Ending ending = describe_failure(std::current_exception(), config);
    return world.fail(exit_code(ending.outcome), ending.message);
  }
}

int work_in_world(Config config, TimeLimit::Clock::time_point start, Command command,
                  World& world) {
  if (config.rehearsal.asked) return rehearse_alone(config, world);
  if (config.find_batch) return find_batch(config, world);
  config.rank = world.rank();
  config.local_rank = world.launch().local_rank;
  config.local_size = world.launch().local_size;
  return command == Command::evaluate ? evaluate(config, world) : run(config, start, world);
}

int train_or_evaluate_here(const std::vector<char*>& argv, TimeLimit::Clock::time_point start,
                           Command command) {
  const LaunchOptions options = parse_launch_options(static_cast<int>(argv.size()), argv.data());
  const Launch launch =
      discover_launch(options, [](const char* name) { return std::getenv(name); });
  if (!launch.supervised && (options.processes > 1 || options.prefix))
    return start_ranks(options, launch, argv, [&](int processes, int ranks) {
      return find_fault(processes, ranks, argv, command);
    });
  Config config;
  std::optional<Fault> fault;
  try {
    config = parse_args(static_cast<int>(argv.size()), argv.data(), stored_models(), launch.size,
                        command);
  } catch (const HelpRequest&) {
    if (launch.rank == 0) throw;
    return exit_completed;
  } catch (const UsageError& e) {
    if (launch.size == 1) throw;
    fault.emplace().message = e.what();
  }
  World world(launch, options, fault);
  return work_in_world(std::move(config), start, command, world);
}

int links_here(const std::vector<char*>& argv) {
  const int argc = static_cast<int>(argv.size());
  const LaunchOptions options = parse_launch_options(argc, argv.data());
  const Launch launch =
      discover_launch(options, [](const char* name) { return std::getenv(name); });
  const LinksOptions asked = parse_links(argc, argv.data());
  if (!launch.supervised && (options.processes > 1 || options.prefix))
    return start_ranks(options, launch, argv, [](int, int) { return std::nullopt; });
  World world(launch, options);
  try {
    const int code = links(asked, world);
    if (const std::string lost = output_failure(); !lost.empty()) throw std::runtime_error(lost);
    world.done();
    return code;
  } catch (...) {
    const Ending ending = describe_failure(std::current_exception(), asked.config);
    return world.fail(exit_code(ending.outcome), ending.message);
  }
}

// Calls `work`, which reads the command line. Returns the exit code.
template <typename Work>
int run_command(const Work& work) {
  try {
    return work();
  } catch (const HelpRequest& help) {
    return print_and_end(help.text);
  } catch (const UsageError& e) {
    print_error(e.what());
    return exit_bad_input;
  } catch (const LaunchError& e) {
    print_error(e.what());
    return exit_bad_input;
  }
}

ModelFacts model_facts() {
  const auto parameters = [](const ModelConfig& config) {
    ParameterTable names;
    register_model(config, &names);
    return names.all();
  };
  return {[=](const ModelConfig& config) { return tensor_names(parameters(config)); },
          [=](const std::string& path, const ModelConfig& config) {
            return check_model_weights(path, config, parameters(config));
          }};
}

int dispatch(int argc, char** argv) {
  const auto start = TimeLimit::Clock::now();
  if (const auto code = run_text_command(argc, argv, model_facts())) return *code;
  const bool evaluates = std::strcmp(argv[1], "evaluate") == 0;
  prepare_output();
  // This comes before anything that a restart would lose. Ranks inherit what it sets.
  restart_with_brief_spinning(argv);
  const std::vector<char*> words(argv, argv + argc);
  if (std::strcmp(argv[1], "links") == 0) return run_command([&] { return links_here(words); });
  return run_command([&] {
    return train_or_evaluate_here(words, start, evaluates ? Command::evaluate : Command::train);
  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return dispatch(argc, argv);
  } catch (const StartFailed& e) {
    return e.code;
  } catch (const std::exception& e) {
    print_error(e.what());
    return exit_error;
  }
}
