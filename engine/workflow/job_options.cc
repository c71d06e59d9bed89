#include "engine/workflow/job_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "engine/base/text.h"
#include "engine/workflow/scheduler_options.h"

namespace tally {
namespace {

bool is_true(const std::string& value) {
  return to_lower(strip(value)) == "true";
}
bool is_false(const std::string& value) {
  return to_lower(strip(value)) == "false";
}

// Whether getopt would find nothing but the option's name in it.
bool is_option_name(const std::string& name) {
  return !name.empty() && name.front() != '-' && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

OptionFault key_fault(const std::string& name, const std::string& key) {
  const char* owner = key == "signal"      ? "the platform"
                      : key == "nodes"     ? "resources"
                      : key == "container" ? "the step or its platform"
                                           : "resources or of the platform";
  return {fmt::format("option '{}' has the meaning of the key '{}'", name, key),
          fmt::format("use '{}' of {} instead", key, owner)};
}

OptionFault own_fault(const std::string& name, const std::string& hint) {
  return {
      fmt::format("option '{}' is one that Tally sets itself or cannot follow a job with", name),
      hint};
}

// --- Slurm -------------------------------------------------------------------------------------

std::string dashed(const std::string& name) {
  std::string text = to_lower(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

const SlurmOption* exact_slurm_option(const std::string& name) {
  for (const SlurmOption& option : slurm_options()) {
    if (name == option.name) return &option;
  }
  return nullptr;
}

// The options that `name` abbreviates, as getopt_long accepts it.
std::vector<const SlurmOption*> abbreviated(const std::string& name) {
  std::vector<const SlurmOption*> found;
  for (const SlurmOption& option : slurm_options()) {
    if (starts_with(option.name, name)) found.push_back(&option);
  }
  return found;
}

// Whether a list of generic resources has one of `kind`: "gpu:a100:2,nvme:1", "gres/gpu=2".
bool lists_resource(const std::string& list, const char* kind) {
  const std::vector<std::string> entries = split_strip(list, ",");
  return std::ranges::any_of(entries, [&](std::string entry) {
    for (const char* prefix : {"gres/", "gres:"}) {
      if (starts_with(entry, prefix)) entry.erase(0, 5);
    }
    return to_lower(entry.substr(0, entry.find_first_of(":="))) == kind;
  });
}

// Whether the option contradicts one of the requests, which makes it an error only beside these.
std::optional<OptionFault> beside_fault(const std::string& name, const SlurmOption& option,
                                        const std::string& value, const JobRequests& requests) {
  const std::string full = option.name;
  if (full == "tres-per-task" && lists_resource(value, "cpu"))
    return key_fault(name, "cpus_per_task");
  const bool list = full == "gres" || full == "tres-per-task";
  const bool gpus = option.use == OptionUse::beside_gpus &&
                    (!list || lists_resource(value, "gpu") || lists_resource(value, "none"));
  if (gpus && requests.gpus) {
    return OptionFault{fmt::format("option '{}' contradicts the key 'gpus_per_node'", name),
                       "leave one of the two out"};
  }
  if (option.use == OptionUse::beside_memory && requests.memory) {
    return OptionFault{fmt::format("option '{}' contradicts the key 'memory'", name),
                       "leave one of the two out"};
  }
  return std::nullopt;
}

// The first of the values, divided by commas, that is none of the option's `values` or, where it
// has no such list, is a flag's value in a spelling of its own.
std::string untaken_value(const std::string& values, const std::string& value) {
  const std::vector<std::string> list = values.empty()
                                            ? std::vector<std::string>{"yes", "no", "on", "off"}
                                            : split_strip(to_lower(values), ",");
  for (const std::string& one : split_strip(value, ",")) {
    const bool listed = contains(list, to_lower(one));
    if (listed == values.empty()) return one;
  }
  return {};
}

std::optional<OptionFault> value_fault(const std::string& name, OptionArgument argument,
                                       const std::string& value, const std::string& values = "") {
  if (argument == OptionArgument::optional && !is_true(value) && !is_false(value)) {
    if (const std::string other = untaken_value(values, value); !other.empty())
      return OptionFault{fmt::format("option '{}' does not take '{}'", name, other),
                         fmt::format("write `{}: true`{}, or `{}: false` to leave it out", name,
                                     values.empty() ? "" : ", one of " + values, name)};
  }
  if (argument == OptionArgument::none && !value.empty() && !is_true(value) && !is_false(value)) {
    return OptionFault{fmt::format("option '{}' takes no value, and has '{}'", name, value),
                       fmt::format("write `{}: true`, or `{}: false` to leave it out", name, name)};
  }
  if (argument == OptionArgument::required && is_true(value)) {
    return OptionFault{fmt::format("option '{}' takes a value, and has none but 'true'", name),
                       "give it its value, or leave it out"};
  }
  return std::nullopt;
}

std::optional<OptionFault> known_option_fault(const std::string& name, const SlurmOption& option,
                                              const std::string& value,
                                              const JobRequests& requests) {
  if (option.use == OptionUse::key) return key_fault(name, option.instead);
  if (option.use == OptionUse::own) return own_fault(name, option.instead);
  if (auto fault = beside_fault(name, option, value, requests)) return fault;
  return value_fault(name, option.argument, value, option.values);
}

// A name that sbatch does not know as it is written, but that means one of its options.
std::optional<OptionFault> misspelt_fault(const std::string& name, const std::string& value,
                                          const JobRequests& requests) {
  const SlurmOption* meant = exact_slurm_option(dashed(name));
  if (name.size() == 1) {
    for (const SlurmOption& option : slurm_options()) {
      if (option.letter == name[0]) meant = &option;
    }
  }
  if (meant == nullptr) return std::nullopt;
  if (meant->use != OptionUse::free) {
    if (auto fault = known_option_fault(name, *meant, value, requests)) return fault;
  }
  return OptionFault{fmt::format("sbatch has no option '--{}'", name),
                     fmt::format("write '{}'", meant->name)};
}

std::optional<OptionFault> slurm_fault(const std::string& name, const std::string& value,
                                       const JobRequests& requests) {
  if (const SlurmOption* option = exact_slurm_option(name))
    return known_option_fault(name, *option, value, requests);
  if (auto fault = misspelt_fault(name, value, requests)) return fault;
  const std::vector<const SlurmOption*> meant = abbreviated(dashed(name));
  for (const SlurmOption* option : meant) {
    if (option->use == OptionUse::free) continue;
    if (auto fault = known_option_fault(name, *option, value, requests)) return fault;
  }
  if (meant.size() > 1) {
    return OptionFault{fmt::format("option '{}' may be short for '{}' or '{}'", name,
                                   meant.front()->name, meant.back()->name),
                       "write the whole name"};
  }
  // Others are those of a site's plugins of Slurm.
  return meant.empty() ? std::nullopt
                       : value_fault(name, meant.front()->argument, value, meant.front()->values);
}

OptionArgument slurm_argument(const std::string& name) {
  const SlurmOption* option = exact_slurm_option(name);
  if (option != nullptr) return option->argument;
  const std::vector<const SlurmOption*> meant = abbreviated(name);
  return meant.size() == 1 ? meant.front()->argument : OptionArgument::optional;
}

// --- words -------------------------------------------------------------------------------------

// sbatch reads quotes, backslashes and blanks only.
bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         is_one_of("_./:,=@%+-^&|!*?()[]{}<>~;$`", c);
}

bool has_control(const std::string& text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

bool has_rules(const std::string& scheduler) {
  return scheduler == "slurm";
}

}  // namespace

std::optional<OptionFault> option_name_fault(const std::string& name) {
  if (is_option_name(name)) return std::nullopt;
  return OptionFault{fmt::format("'{}' is not the name of an option", one_line(name)),
                     "write it without its dashes, and its value after the colon"};
}

std::string key_named(const std::string& name) {
  std::string text = to_lower(name);
  std::replace(text.begin(), text.end(), '-', '_');
  for (const char* key : {"nodes", "tasks_per_node", "cpus_per_task", "gpus_per_node", "time",
                          "partition", "account", "memory", "hint", "signal", "container"}) {
    if (text == key) return key;
  }
  return {};
}

std::string option_line(const std::string& form, const std::string& name,
                        const std::string& value) {
  const size_t at = form.find("NAME");
  const size_t to = form.find("VALUE");
  if (at == std::string::npos || to == std::string::npos || to < at) return form;
  std::string line = form.substr(0, at) + name;
  if (!value.empty()) line += form.substr(at + 4, to - at - 4) + value;
  return line + form.substr(to + 5);
}

std::optional<OptionFault> option_fault(const std::string& scheduler, const std::string& name,
                                        const std::string& value, const JobRequests& requests) {
  if (auto fault = option_name_fault(name)) return fault;
  const std::string text(strip(value));
  if (const std::string why = directive_fault(text); !why.empty())
    return OptionFault{fmt::format("option '{}' {}", name, why), "give it another value"};
  if (!has_rules(scheduler)) return std::nullopt;
  if (const std::string key = key_named(name); !key.empty()) return key_fault(name, key);
  return slurm_fault(name, text, requests);
}

std::optional<OptionFault> variable_fault(const std::string& name, const std::string& value,
                                          const JobRequests& requests) {
  const char* reader = nullptr;
  std::string option;
  for (const auto& [prefix, program] : {std::pair{std::string_view("SBATCH_"), "sbatch"},
                                        {std::string_view("SLURM_"), "srun"},
                                        {std::string_view("SRUN_"), "srun"}}) {
    if (!starts_with(name, prefix)) continue;
    reader = program;
    option = dashed(name.substr(prefix.size()));
  }
  // srun's `wait` is another option than sbatch's.
  if (reader == nullptr || name == "SLURM_WAIT") return std::nullopt;
  if (name == "SLURM_EXPORT_ENV" || name == "SRUN_EXPORT_ENV") {
    return OptionFault{
        fmt::format("srun reads '{}', and would keep the other variables from its program", name),
        "leave it out: a job script passes its environment on"};
  }
  // Usual in site's files, and what the job script sets itself.
  if (name == "SRUN_CPUS_PER_TASK" &&
      (value == "$SLURM_CPUS_PER_TASK" || value == "${SLURM_CPUS_PER_TASK}"))
    return std::nullopt;
  // These are not named as their options are.
  for (const auto& [variable, meant] : {std::pair{"timelimit", "time"},
                                        {"array-inx", "array"},
                                        {"mem-per-node", "mem"},
                                        {"nprocs", "ntasks"},
                                        {"nnodes", "nodes"},
                                        {"job-num-nodes", "nodes"},
                                        {"stdoutmode", "output"},
                                        {"stderrmode", "error"},
                                        {"stdinmode", "input"},
                                        {"step-gres", "gres"},
                                        {"remote-cwd", "chdir"},
                                        {"working-dir", "chdir"},
                                        {"tasks-per-node", "ntasks-per-node"}}) {
    if (option == variable) option = meant;
  }
  const SlurmOption* known = exact_slurm_option(option);
  if (known == nullptr || known->use == OptionUse::free) return std::nullopt;
  std::optional<OptionFault> fault = known_option_fault(option, *known, value, requests);
  if (fault) fault->message = fmt::format("{} reads '{}', and {}", reader, name, fault->message);
  return fault;
}

// sbatch takes a backslash before any character, also within quotes.
std::string directive_word(const std::string& scheduler, const std::string& text) {
  if (!has_rules(scheduler) || std::ranges::all_of(text, is_plain)) return text;
  std::string word = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') word += '\\';
    word += c;
  }
  return word + '"';
}

std::string read_directive_word(std::string_view text) {
  std::string word;
  char quote = '\0';
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size()) {
      word += text[++i];
    } else if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
    } else if (quote == '\0' && (c == '#' || std::isspace(static_cast<unsigned char>(c)) != 0)) {
      break;
    } else {
      word += c;
    }
  }
  return word;
}

std::string directive_fault(const std::string& text) {
  if (!has_control(text)) return {};
  return "has a line break or another control character, which a line of a job script cannot have";
}

std::string option_lines(const std::string& scheduler, const std::string& form,
                         const NamedValues& options) {
  std::string lines;
  for (const auto& [name, given] : options) {
    const std::string value(strip(given));
    if (is_false(value)) continue;
    if (value.empty() && scheduler == "slurm" && slurm_argument(name) == OptionArgument::required)
      continue;
    if (!lines.empty()) lines += '\n';
    lines += option_line(form.empty() ? "#SBATCH --NAME=VALUE" : form, name,
                         is_true(value) ? "" : directive_word(scheduler, value));
  }
  return lines;
}

}  // namespace tally
