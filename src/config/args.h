// The command line of a training run: Megatron-LM's spellings where it has one.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "engine/base/command_spec.h"
#include "src/config/config.h"
#include "src/config/stored_models.h"

namespace tally::train {

// The command line cannot be carried out. what() is one sentence that names the flag. Exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// --help was given; `text` is to be printed.
struct HelpRequest {
  std::string text;
};

// Reads and checks the flags of `tally-train [train|evaluate] FLAGS` (argv[0] is the program).
// `stored` answers what --load and --load-hf name; `world_size` is the number of processes of the
// run. Touches no device and writes nothing; the only files it reads are those named as @FILE
// (flags, one or more a line, '#' starts a comment), the config.json that says what a stored model
// is, and the dataset whose blocks --epochs counts. `command`: evaluate takes the same flags and
// refuses those that only training has. Throws UsageError and HelpRequest.
Config parse_args(int argc, const char* const* argv, const StoredModels& stored, int world_size = 1,
                  Command command = Command::train);

// The processes that the same flags ask for, read before anything else. Flags that
// parse_args() will refuse are no error here: those that are right count. --nproc-per-node 1 counts
// as not given.
LaunchOptions parse_launch_options(int argc, const char* const* argv);

// `tally-train links FLAGS`: those of the launch, --device and --bytes.
struct LinksOptions {
  Config config;
  std::vector<int64_t> bytes{4096, int64_t{1} << 20, int64_t{256} << 20};  // sizes of the messages
};
// Throws UsageError.
LinksOptions parse_links(int argc, const char* const* argv);
std::string links_help_text();
CommandSpec links_spec();

// Whether the flags, those of @FILE included, ask for a plan (--plan). Touches nothing else.
bool asks_for_plan(int argc, const char* const* argv);

// Checks the parallel layout, with Megatron-LM's sentences where it has one (docs/flags.md lists
// them). Exposed for tests of larger world sizes. Throws UsageError.
void check_parallel_layout(const Config& config);

// The text of --help, as wide as the terminal.
std::string help_text();
// Every flag's long name, for suggestions and for the tests of the documentation.
std::vector<std::string> flag_names();
// The values that flags take where these are few, for completion.
KnownValues flag_values();
// The flags of `tally-train [train|evaluate]` as data, for completion and the manual page.
CommandSpec flags_spec();
// The reference page docs/flags.md, made from the table that parses (`tally-train reference`).
std::string flags_reference();

}  // namespace tally::train
