#include "src/config/args.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "engine/base/text.h"
#include "src/config/flags.h"
#include "src/config/megatron_flags.h"
#include "src/config/resolve_parts.h"
#include "src/config/settings.h"
#include "src/data/commands/help_formatter.h"
#include "src/data/text/text_input.h"

namespace tally::train {
namespace {

void configure(CLI::App* app) {
  app->set_help_flag();  // handled before parsing, so that --help works with a wrong flag
  app->allow_extras();
  app->formatter(std::make_shared<HelpFormatter>());
}

// An empty value is an unset variable of a script. Ignoring the flag would run something else.
void refuse_empty(const std::string& flag, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (word.empty()) throw UsageError(flag + ": is empty: give a value or leave it out");
}

void declare(const Setting& row, CLI::App* app, std::set<std::string>* given) {
  const auto store = [row, given](const std::vector<std::string>& words) {
    refuse_empty(row.first_flag(), words);
    row.store(words);
    given->insert(row.first_flag());
  };
  CLI::Option* option = nullptr;
  if (row.form == Setting::Form::toggle) {
    const auto toggle = [store](int64_t on) {
      if (on > 0) store({});
    };
    option = app->add_flag_function(row.flags, toggle, row.help);
  } else if (row.form == Setting::Form::list) {
    option = app->add_option_function<std::vector<std::string>>(row.flags, store, row.help);
    option->trigger_on_parse()->type_name(row.type)->expected(1, -1);
  } else {
    const auto last = [store](const std::string& word) { store({word}); };
    option = app->add_option_function<std::string>(row.flags, last, row.help);
    option->type_name(row.type)->take_last();
  }
  if (!row.initial.empty()) option->default_str(row.initial);
  option->group(row.group);
}

// A parser of the whole table, or of a part of it, that stores into `flags`.
void declare(const std::vector<Setting>& rows, Flags* flags, CLI::App* app) {
  configure(app);
  for (const Setting& row : rows)
    if (row.form != Setting::Form::none) declare(row, app, &flags->given);
}

// The table of `tally-train links`: the launch's, the device's first row, and its own.
std::vector<Setting> links_settings(Flags* flags, std::vector<int64_t>* bytes) {
  SettingTable devices, own;
  add_device_settings(&devices, flags);
  own.group("Links");
  own.list("--bytes", "INT", "Bytes of each message (default: 4096, 1048576 and 268435456)",
           [bytes](const std::vector<std::string>& words) {
             bytes->clear();
             for (const std::string& word : words) {
               bytes->push_back(parse_number<int64_t>("--bytes", word, 4, int64_t{1} << 40));
               if (bytes->back() % 4 != 0)
                 refuse_value(
                     "--bytes",
                     fmt::format("{} is not a multiple of 4, the size of a float32 number", word));
             }
           });
  add_launch_settings(&own, flags);
  std::vector<Setting> rows = own.rows();
  for (const Setting& row : devices.rows())
    if (row.first_flag() == "--device") rows.push_back(row);
  return rows;
}

// A table of each group of flags.
std::string reference_of(const CLI::App& app) {
  std::string out, group;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group() != group) {
      group = option->get_group();
      out += fmt::format("\n## {}\n\n| flag | value | default | meaning |\n|---|---|---|---|\n",
                         group);
    }
    std::string names;
    for (const std::string& name : option->get_lnames())
      names += (names.empty() ? "`--" : ", `--") + name + "`";
    const bool value = option->get_items_expected_max() > 0 && option->get_type_size_max() > 0;
    out += fmt::format("| {} | {} | {} | {} |\n", names, value ? option->get_type_name() : "",
                       option->get_default_str(), option->get_description());
  }
  return out;
}

}  // namespace

std::string help_text() {
  CLI::App app(
      "Trains GPT, Llama, BERT and DistilBERT models and says how fast. Flags are Megatron-LM's; "
      "numbers may carry "
      "underscores (300_000_000). @FILE reads flags from a file.");
  app.name("tally-train [train|evaluate]");
  Flags flags;
  declare(settings(&flags), &flags, &app);
  app.footer(
      "'tally-train evaluate' gives the loss and the perplexity of a stored model on a text.\n"
      "Other commands: 'tally-train prepare --help' makes a dataset from text; 'tally-train "
      "tokenize "
      "--help' prints its tokens; 'tally-train --version'.\n"
      "Exit codes: 0 completed or ended by --exit-interval, 2 bad input, 3 out of memory (or of a "
      "plan's device), 4 time "
      "limit or asked to stop (SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP, output that cannot be "
      "written), 5 a check failed (a loss that is not finite), 1 anything else.");
  return app.help();
}

namespace {

// Splits a flags file into words: white space separates, quotes group, '#' starts a comment.
std::vector<std::string> words_of_file(const std::string& path) {
  if (const std::string why = why_no_file(path); !why.empty())
    throw UsageError(fmt::format("@{}: the file cannot be read: {}", path, why));
  std::ifstream in(path);
  if (!in) throw UsageError(fmt::format("@{}: the file cannot be read", path));
  std::vector<std::string> words;
  for (std::string line; std::getline(in, line);) {
    char quote = 0;
    bool pending = false;
    std::string word;
    for (const char c : line) {
      if (quote != 0) {
        if (c == quote) {
          quote = 0;
        } else {
          word += c;
        }
      } else if (c == '"' || c == '\'') {
        quote = c;
        pending = true;
      } else if (c == '#' && !pending) {
        break;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        if (pending) words.push_back(word);
        word.clear();
        pending = false;
      } else {
        word += c;
        pending = true;
      }
    }
    if (quote != 0) throw UsageError(fmt::format("@{}: a quote is not closed: {}", path, line));
    if (pending) words.push_back(word);
  }
  return words;
}

void expand(const std::string& word, int depth, std::vector<std::string>* out) {
  if (word.size() < 2 || word[0] != '@') {
    out->push_back(word);
    return;
  }
  if (depth > 8)
    throw UsageError(fmt::format("{}: flags files include each other without end", word));
  for (const std::string& inner : words_of_file(word.substr(1))) expand(inner, depth + 1, out);
}

// The words after the program and, where given, the command.
std::vector<std::string> words_of(int argc, const char* const* argv) {
  const bool command =
      argc > 1 && (std::strcmp(argv[1], "train") == 0 || std::strcmp(argv[1], "evaluate") == 0 ||
                   std::strcmp(argv[1], "links") == 0);
  std::vector<std::string> words;
  for (int i = command ? 2 : 1; i < argc; ++i) {
    // The @FILE of this flag is a histogram of its own.
    if (i > 1 && std::strcmp(argv[i - 1], "--mock-lengths") == 0) {
      words.emplace_back(argv[i]);
    } else {
      expand(argv[i], 0, &words);
    }
  }
  return words;
}

// `words`: those that no flag took.
[[noreturn]] void unknown(const std::vector<std::string>& words) {
  const std::string& word = words.front();
  if (word.rfind("--", 0) != 0) {
    throw UsageError(fmt::format(
        "'{}': not a flag, and no flag before it takes it as a value; see --help", word));
  }
  const auto name_of = [](const std::string& w) { return w.substr(0, w.find('=')); };
  const std::string name = name_of(word);
  if (const char* advice = unsupported_advice(name)) {
    std::string others;
    for (size_t i = 1; i < words.size(); ++i)
      if (unsupported_advice(name_of(words[i]))) others += " " + name_of(words[i]);
    throw UsageError(fmt::format("{}: not supported by tally-train: {}{}", name, advice,
                                 others.empty() ? "" : "; not supported either:" + others));
  }
  const std::string hint = did_you_mean(name, flag_names());
  throw UsageError(
      fmt::format("{}: unknown flag{}", name, hint.empty() ? "; --help lists all" : "; " + hint));
}

std::string unsupported_reference() {
  std::string out =
      "\n## Flags of Megatron-LM that are not supported\n\nEach ends the run with a sentence that "
      "says what to do. A star stands for any ending.\n\n| flags | what to do |\n|---|---|\n";
  for (const UnsupportedFlags& group : unsupported_flags())
    out += fmt::format("| `{}` | {} |\n", group.names, group.what_to_do);
  return out;
}

}  // namespace

std::vector<std::string> flag_names() {
  Flags flags;
  std::vector<std::string> names;
  for (const Setting& row : settings(&flags)) {
    std::istringstream spellings(row.flags);
    for (std::string name; std::getline(spellings, name, ',');) names.push_back(name);
  }
  return names;
}

KnownValues flag_values() {
  Flags flags;
  KnownValues values;
  for (const Setting& row : settings(&flags))
    if (!row.choices.empty()) values[row.first_flag()] = row.choices;
  return values;
}

CommandSpec flags_spec() {
  CLI::App app;
  Flags flags;
  declare(settings(&flags), &flags, &app);
  CommandSpec spec = command_spec(app, {"", "train", "evaluate"}, flag_values());
  spec.summary = "train a model, or evaluate a stored one";
  return spec;
}

std::string flags_reference() {
  CLI::App app;
  Flags flags;
  declare(settings(&flags), &flags, &app);
  std::string out =
      "# Flags of `tally-train`\n\n"
      "Made by `tally-train reference`; a test compares. The spellings are Megatron-LM's. Numbers "
      "may carry "
      "underscores\n(`128_953_125`); of a repeated flag the last holds; `@FILE` reads flags from a "
      "file "
      "(white space separates, quotes\ngroup, `#` starts a comment). A wrong value or combination "
      "is one "
      "sentence on stderr that names the flag, and exit code 2,\nbefore anything is allocated or "
      "written. Where Megatron-LM has a sentence for it, it is that one.\n\n"
      "| exit code | meaning |\n|---|---|\n| 0 | completed, or ended by `--exit-interval` |\n| 2 | "
      "bad input: flags, dataset, "
      "checkpoint, text |\n"
      "| 3 | out of memory; with `--plan`, the layout does not fit `--plan-device` |\n| 4 | "
      "stopped before the last step: `--exit-duration-in-mins`, "
      "SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP, or standard output or error that cannot be "
      "written |\n| 5 | a check failed: a loss that is not finite |\n| 1 | anything else, such as "
      "a "
      "record or a newest checkpoint that could not be written at the end |\n";
  out += reference_of(app) + unsupported_reference();
  LinksOptions links;
  CLI::App app_of_links;
  Flags of_links;
  declare(links_settings(&of_links, &links.bytes), &of_links, &app_of_links);
  return out + "\n# Flags of `tally-train links`\n" + reference_of(app_of_links);
}

bool asks_for_plan(int argc, const char* const* argv) {
  try {
    for (const std::string& word : words_of(argc, argv))
      if (word == "--plan" || word.rfind("--plan=", 0) == 0) return true;
  } catch (const UsageError&) {  // parse_args() reports it
  }
  return false;
}

namespace {

// The flags of the launch where parse_args() refuses a flag: those of them that are right. By them
// a process finds the others and tells them.
void parse_launch_flags_alone(const std::vector<std::string>& words, Flags* flags) {
  CLI::App app;
  SettingTable table;
  add_launch_settings(&table, flags);
  declare(table.rows(), flags, &app);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const std::exception&) {
    for (CLI::Option* option : app.get_options()) {
      try {
        if (option->count() > 0) option->run_callback();
      } catch (const std::exception&) {  // this one is wrong
      }
    }
  }
}

bool asks_for_help(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word == "--help" || word == "-h"; });
}

void parse(const std::vector<std::string>& words, CLI::App* app) {
  try {
    app->parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ArgumentMismatch& e) {
    const std::string what = e.what();
    throw UsageError(what.substr(0, what.find(':')) + ": needs a value");
  } catch (const CLI::ParseError& e) {
    throw UsageError(e.what());
  }
}

}  // namespace

std::string links_help_text() {
  CLI::App app(
      "Measures the messages between the processes of a run and checks their sums: all_reduce of "
      "all, and an exchange with the rank half way round (docs/distributed.md).");
  app.name("tally-train links");
  Flags flags;
  LinksOptions options;
  declare(links_settings(&flags, &options.bytes), &flags, &app);
  return app.help();
}

CommandSpec links_spec() {
  CLI::App app;
  Flags flags;
  LinksOptions options;
  declare(links_settings(&flags, &options.bytes), &flags, &app);
  CommandSpec spec = command_spec(app, {"links"}, flag_values());
  spec.summary = "bandwidth and latency between the processes of a run";
  return spec;
}

LinksOptions parse_links(int argc, const char* const* argv) {
  CLI::App app;
  Flags flags;
  LinksOptions options;
  declare(links_settings(&flags, &options.bytes), &flags, &app);
  parse(words_of(argc, argv), &app);
  if (const auto extra = app.remaining(); !extra.empty())
    throw UsageError(
        fmt::format("{}: not a flag of links; see tally-train links --help", extra.front()));
  options.config = flags.config;
  options.config.device = to_lower(options.config.device);
  options.config.distributed_backend = flags.launch.backend;
  options.config.network_interface = flags.launch.interface;
  return options;
}

LaunchOptions parse_launch_options(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  Flags flags;
  try {
    CLI::App app;
    declare(settings(&flags), &flags, &app);
    words = words_of(argc, argv);
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const std::exception&) {  // parse_args() reports the error, once for all processes
    flags = Flags();
    parse_launch_flags_alone(words, &flags);
  }
  LaunchOptions launch = flags.launch;
  launch.processes = flags.processes.value_or(0) > 1 ? *flags.processes : 0;
  launch.port = flags.port.value_or(0);
  return launch;
}

Config parse_args(int argc, const char* const* argv, const StoredModels& stored, int world_size,
                  Command command) {
  const std::vector<std::string> words = words_of(argc, argv);
  if (asks_for_help(words)) throw HelpRequest{help_text()};

  CLI::App app;
  Flags flags;
  declare(settings(&flags), &flags, &app);
  parse(words, &app);
  if (const auto extra = app.remaining(); !extra.empty()) unknown(extra);
  const Rehearsal rehearsal = resolve_rehearsal(&flags, command, &world_size);
  Config config = resolve(flags, stored, world_size, command);
  config.rehearsal = rehearsal;
  config.command_line.assign(argv, argv + argc);
  return config;
}

}  // namespace tally::train
