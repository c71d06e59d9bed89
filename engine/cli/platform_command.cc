// tally platform detect: a file that describes this cluster, as far as the machine says it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "engine/base/duration.h"
#include "engine/base/files.h"
#include "engine/base/host.h"
#include "engine/base/text.h"
#include "engine/cli/application.h"
#include "engine/cli/prepare.h"
#include "engine/execute/jobs/scheduler.h"
#include "engine/read/yaml_scalar.h"
#include "engine/run/input.h"

namespace tally {
namespace {

// A text of the scheduler's without characters that a file's line cannot have.
std::string in_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  }
  return text;
}

// A text as a value in YAML.
std::string in_yaml(const std::string& text) {
  const bool plain = !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
  if (plain && text.front() != '-' && resolve_scalar(text) == ScalarType::text) return text;
  std::string quoted = "\"";
  for (const char c : in_line(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string first_line(const std::filesystem::path& path) {
  std::string text;
  if (!read_file(path.string(), &text)) return {};
  return std::string(strip(text.substr(0, text.find('\n'))));
}

std::vector<std::string> file_names(const char* folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::ranges::sort(names);
  return names;
}

// Variables by which programs find the network that this machine has, as entries of `interconnect`.
std::vector<std::string> network_variables() {
  constexpr const char* kInfiniBand =
      "32";  // of the kernel's types of networks (ARPHRD_INFINIBAND)
  std::vector<std::string> devices, interfaces, variables;
  for (const std::string& name : file_names("/sys/class/infiniband")) {
    const std::string state =
        first_line("/sys/class/infiniband/" + name + "/ports/1/state");  // "4: ACTIVE"
    if (state.find("ACTIVE") != std::string::npos) devices.push_back(name + ":1");
  }
  for (const std::string& name : file_names("/sys/class/net")) {
    const std::string folder = "/sys/class/net/" + name;
    const bool fast = first_line(folder + "/type") == kInfiniBand || starts_with(name, "hsn");
    if (fast && first_line(folder + "/operstate") == "up") interfaces.push_back(name);
  }
  if (!interfaces.empty())
    variables.push_back("NCCL_SOCKET_IFNAME: " + in_yaml(join(interfaces, ",")));
  if (!devices.empty()) variables.push_back("UCX_NET_DEVICES: " + in_yaml(join(devices, ",")));
  return variables;
}

// GPUs a node, of "gpu:2", "gpu:gh200:4(S:0-3),nvme:1", "ngpus=4". 0: none.
long gpus_of(const std::string& resources) {
  long most = 0;
  for (std::string one : split_strip(resources, ",")) {
    one = one.substr(0, one.find('('));
    if (!starts_with(one, "gpu:") && !starts_with(one, "ngpus=")) continue;
    most = std::max(most, std::strtol(one.c_str() + one.find_last_of(":=") + 1, nullptr, 10));
  }
  return most;
}

std::string list_of(const std::vector<std::string>& names) {
  std::vector<std::string> words;
  for (const std::string& name : names) words.push_back(in_yaml(name));
  return "[" + join(words, ", ") + "]";
}

class PlatformFile {
 public:
  PlatformFile(const SiteFacts& facts, const std::string& scheduler)
      : facts_(facts), scheduler_(scheduler) {}

  std::string make(const std::string& others) {
    text_ = fmt::format(
        "# A cluster as `tally platform detect` found it, on {} from {}. docs/platforms.md has all "
        "keys.\n"
        "# Behind \"fill in\" is what the machine does not say. `tally validate` of this file "
        "checks it.\n",
        host_identity(), in_line(facts_.version));
    if (!others.empty()) text_ += "# Also here: " + others + " (--scheduler).\n";
    text_ += "platform:\n";
    std::string name = facts_.cluster.empty() ? host_identity() : facts_.cluster;
    name = name.substr(0, name.find('.'));
    key("name", in_yaml(name));
    key("scheduler", in_yaml(scheduler_));
    add_queues();
    add_account();
    add_nodes();
    add_time();
    add_programs();
    add_machine();
    return text_;
  }

 private:
  void line(const std::string& words, const std::string& comment) {
    text_ += comment.empty() ? fmt::format("  {}\n", words)
                             : fmt::format("  {:<30} # {}\n", words, in_line(comment));
  }
  void key(const char* name, const std::string& value, const std::string& comment = {}) {
    line(fmt::format("{}: {}", name, value), comment);
  }
  void suggest(const char* name, const std::string& value, const std::string& comment) {
    line(fmt::format("# {}: {}", name, value), comment);
  }

  // The scheduler's default, or the only one. Another one is the person's choice.
  const QueueFacts* chosen() const {
    for (const QueueFacts& queue : facts_.queues)
      if (queue.is_default) return &queue;
    return facts_.queues.size() == 1 ? &facts_.queues.front() : nullptr;
  }

  void add_queues() {
    const QueueFacts* first = chosen();
    if (first != nullptr) key("partition", in_yaml(first->name), queue_text(*first));
    if (first == nullptr)
      suggest(
          "partition", "",
          facts_.queues.empty() ? "fill in, or leave it to the scheduler" : "fill in one of these");
    for (const QueueFacts& queue : facts_.queues)
      if (first == nullptr || queue.name != first->name)
        suggest("partition", in_yaml(queue.name), queue_text(queue));
  }

  void add_account() {
    if (facts_.accounts.size() == 1) {
      key("account", in_yaml(facts_.accounts.front()), "the only one that you may charge");
    } else {
      suggest("account", "",
              facts_.accounts.empty() ? "fill in, if somebody is charged"
                                      : "fill in one of " + join(facts_.accounts, ", "));
    }
  }

  void add_nodes() {
    const QueueFacts* queue = chosen();
    const long gpus = queue == nullptr ? 0 : gpus_of(queue->resources);
    const long cpus = queue == nullptr ? 0 : std::strtol(queue->cpus.c_str(), nullptr, 10);
    if (gpus > 0) {
      key("gpus_per_node", std::to_string(gpus), "of a step that does not say how many it needs");
    } else {
      suggest("gpus_per_node", "1", "fill in, where nodes have GPUs");
    }
    const long tasks = std::max(1L, gpus);
    if (cpus >= tasks)
      suggest("cpus_per_task", std::to_string(cpus / tasks),
              gpus > 0 ? fmt::format("{} CPUs for {} tasks a node, one a GPU", cpus, gpus)
                       : "one task has all CPUs of its node");
  }

  void add_time() {
    std::string limit = chosen() == nullptr ? std::string() : chosen()->limit;
    const auto seconds = parse_duration(limit);
    suggest("time", "30m", "fill in: of a step that gives none");
    if (!seconds) return;
    suggest("max_time", fmt::format("{:.0f}", *seconds),
            fmt::format("the limit {} of {}; longer jobs are refused before they are submitted",
                        limit, chosen()->name));
  }

  void add_programs() {
    if (!facts_.mpi.empty())
      suggest("mpi", in_yaml(facts_.mpi.back()), "fill in one of " + join(facts_.mpi, ", "));
    const char* loaded = std::getenv("LOADEDMODULES");
    const char* path = std::getenv("MODULEPATH");
    std::vector<std::string> modules;
    for (const std::string& module : split_strip(loaded == nullptr ? "" : loaded, ":"))
      if (!module.empty()) modules.push_back(module);
    if (!modules.empty()) {
      suggest("modules", list_of(modules), "fill in what programs need; these are loaded now");
    } else if (path != nullptr && *path != '\0') {
      suggest("modules", "[]", "fill in what programs need: `module avail` lists all");
    }
  }

  void add_machine() {
    const std::vector<std::string> variables = network_variables();
    if (!variables.empty())
      suggest("interconnect", "{" + join(variables, ", ") + "}",
              "of this machine: look at a compute node, too");
    if (const char* scratch = std::getenv("SCRATCH"); scratch != nullptr && *scratch == '/')
      suggest("cache", "$SCRATCH/tally", "with job_environment: SCRATCH");
  }

  const SiteFacts& facts_;
  const std::string& scheduler_;
  std::string text_;
};

}  // namespace

int platform_command(const Settings& settings, const PlatformArgs& args) {
  Status problem;
  std::vector<SchedulerHere> here = schedulers_here(template_directories(&problem), &problem);
  if (print_if_error(settings, problem)) return kFailed;
  std::vector<std::string> others;
  SiteFacts facts;
  std::string chosen;
  Status asked;
  // The commands of one may be there without the scheduler: the first that answers counts.
  for (const SchedulerHere& one : here) {
    const bool wanted = args.scheduler.empty() || args.scheduler == one.name;
    SiteFacts found;
    const Status told =
        wanted && chosen.empty() ? one.scheduler->site(&found) : Status::error("not asked");
    if (told) {
      chosen = one.name;
      facts = std::move(found);
    } else {
      others.push_back(one.name);
      if (wanted && chosen.empty() && asked) asked = told;
    }
  }
  if (chosen.empty()) {
    if (print_if_error(settings, asked)) return kFailed;
    print_error(settings,
                args.scheduler.empty()
                    ? "no scheduler's commands are in PATH"
                    : fmt::format("no commands of scheduler '{}' are in PATH", args.scheduler),
                others.empty() ? "load its module, or go to a login node"
                               : "there are those of " + join(others, ", "));
    return kFailed;
  }
  const std::string text = PlatformFile(facts, chosen).make(join(others, ", "));
  if (args.file.empty()) {
    fmt::print("{}", text);
    return kFine;
  }
  std::error_code error;
  if (std::filesystem::exists(args.file, error)) {
    print_error(settings, fmt::format("'{}' is there already", args.file),
                "give another name, or remove it");
    return kBadInput;
  }
  if (print_if_error(settings, write_file(args.file, text))) return kFailed;
  fmt::print("{}: `platform: {}` of a step goes there\n", args.file, args.file);
  return kFine;
}

void Application::add_platform() {
  CLI::App* sub =
      command("platform", "write a file that describes this cluster, as far as the machine says it",
              [this] { return platform_command(settings_, platform_); });
  sub->add_option("action", platform_.action, "detect: ask the scheduler and this machine")
      ->required()
      ->check(CLI::IsMember({"detect"}))
      ->option_text("detect");
  sub->add_option("--scheduler", platform_.scheduler,
                  "which one, where several have their commands here")
      ->option_text("NAME");
  sub->add_option("-o,--output", platform_.file, "the file to write, in place of standard output")
      ->option_text("FILE");
}

}  // namespace tally
