// tally fleet, and the report of its runs.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/terminal.h"
#include "engine/base/text.h"
#include "engine/cli/application.h"
#include "engine/cli/fleet.h"
#include "engine/cli/prepare.h"
#include "engine/cli/runs.h"
#include "engine/cli/version.h"
#include "engine/energy/gpu_devices.h"
#include "engine/execute/jobs/slurm_nodes.h"
#include "engine/report/fleet_report.h"
#include "engine/report/grid.h"
#include "engine/workflow/fleet_pairs.h"

namespace tally {
namespace {

// The rounds of the tournament: the first tests each machine in one pair, the others tell whose a
// slow pair is.
constexpr size_t kPairRounds = 4;

struct Machines {
  std::vector<std::string> tested;
  std::vector<std::string> not_tested;  // "node3: drained: bad DIMM"
};

Status local_machines(const FleetArgs& args, Machines* out) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string given = !args.nodes.empty() ? args.nodes : visible != nullptr ? visible : "";
  for (std::string& name : split_strip(given, ","))
    if (!name.empty() && !contains(out->tested, name)) out->tested.push_back(std::move(name));
  if (!out->tested.empty()) return Status::ok();
  std::unique_ptr<GpuDevices> gpus;
  TRY(GpuDevices::open(&gpus));
  for (size_t i = 0; i < gpus->count(); ++i) out->tested.push_back(std::to_string(i));
  return Status::ok();
}

Status machines_of_slurm(const FleetArgs& args, Machines* out) {
  std::vector<SlurmNode> all;
  TRY(slurm_nodes(args.partition, &all));
  std::map<std::string, const SlurmNode*> known;
  std::vector<std::string> names;
  for (const SlurmNode& node : all) {
    known[node.name] = &node;
    if (args.nodes.empty()) names.push_back(node.name);
  }
  if (!args.nodes.empty()) {
    TRY(expand_nodes(args.nodes, &names));
  }
  for (const std::string& name : names) {
    const auto found = known.find(name);
    if (found == known.end()) {
      out->not_tested.push_back(
          fmt::format("{}: Slurm does not know it{}", name,
                      args.partition.empty() ? "" : " in partition " + args.partition));
    } else if (!found->second->unusable.empty()) {
      out->not_tested.push_back(name + ": " + found->second->unusable);
    } else if (args.idle && !found->second->is_idle) {
      out->not_tested.push_back(name + ": busy");
    } else {
      out->tested.push_back(name);
    }
  }
  return Status::ok();
}

// "rack1 node[01-16]" a line, as "rack1: node01,node02,...".
Status read_groups(const std::string& path, bool local, std::string* out) {
  std::string text;
  TRY(read_file(path, &text));
  for (const std::string& line : split_strip(text, "\n")) {
    if (line.empty() || line.front() == '#') continue;
    const size_t end = line.find_first_of(" \t");
    if (end == std::string::npos)
      return Status::error(fmt::format("'{}': '{}' is not a group and its nodes", path, line))
          .with_hint("a line is: rack1 node[01-16]");
    std::string nodes(strip(line.substr(end)));
    if (!local) {
      std::vector<std::string> names;
      TRY(expand_nodes(nodes, &names));
      nodes = join(names, ",");
    }
    *out += (out->empty() ? "" : "\n") + line.substr(0, end) + ": " + nodes;
  }
  return Status::ok();
}

// The values that the run keeps, so that `continue` has them: parameters and those of the fleet.
Status settings_of(const FleetArgs& args, const Machines& machines, std::vector<std::string>* set) {
  const auto give = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) set->push_back("fleet." + name + "=" + value);
  };
  std::string groups;
  if (!args.groups.empty()) {
    TRY(read_groups(args.groups, args.local, &groups));
  }
  set->push_back("node=" + join(machines.tested, ","));
  // One machine has no pair, whatever the workflow has for `tally run`.
  set->push_back("fleet.pair=" + fleet_pairs(machines.tested, fleet_groups(groups), kPairRounds));
  give("machines", std::to_string(machines.tested.size()));
  give("local", args.local ? "true" : "");
  give("not_tested", join(machines.not_tested, "\n"));
  if (args.budget >= 0) give("budget", fmt::format("{}", args.budget));
  give("groups", groups);
  const std::string baseline = args.baseline.empty() ? "" : absolute_path(args.baseline);
  if (args.accept) {
    std::string file = args.run.files.front();
    if (const size_t ending = file.rfind(".yaml"); ending != std::string::npos) file.erase(ending);
    give("accept", baseline.empty() ? absolute_path(file + ".baseline.json") : baseline);
  }
  const bool is_there = !baseline.empty() && ::access(baseline.c_str(), R_OK) == 0;
  if (!baseline.empty() && !is_there && !args.accept)
    return Status::error(fmt::format("--baseline: '{}' cannot be read", args.baseline))
        .with_hint("--accept writes it");
  if (is_there) give("baseline", baseline);
  return Status::ok();
}

}  // namespace

int fleet_command(const Settings& settings, const FleetArgs& args) {
  if (args.nodes.empty() && args.partition.empty() && !args.idle && !args.local) {
    print_error(
        settings, "fleet: which machines?",
        "--nodes node[01-16], --partition NAME, --idle, or --local for this machine's GPUs");
    return kBadInput;
  }
  Machines machines;
  const Status found =
      args.local ? local_machines(args, &machines) : machines_of_slurm(args, &machines);
  if (print_if_error(settings, found)) return kBadInput;
  if (machines.tested.empty()) {
    print_error(settings, "fleet: no machine can be tested", join(machines.not_tested, "\n"));
    return kBadInput;
  }
  RunArgs run = args.run;
  if (args.local) run.input.tags.emplace_back("local");
  if (print_if_error(settings, settings_of(args, machines, &run.input.set))) return kBadInput;
  return run_command(settings, run);
}

Status FleetRepeats::make(const Run& run, std::unique_ptr<FleetRepeats>* out) {
  FleetBaseline baseline;
  const std::string& file = run.benchmark().fleet.find_given("baseline");
  if (!file.empty()) {
    TRY(read_baseline(file, &baseline));
  }
  out->reset(new FleetRepeats(run.benchmark(), std::move(baseline)));
  std::vector<Journal::Facts> sessions;
  TRY(run.journal().sessions(&sessions));
  for (const Journal::Facts& facts : sessions) (*out)->judge_.take_decided(facts);
  return Status::ok();
}

Status FleetRepeats::decide(const Run& run) {
  TRY(judge_.read(run.journal(), run.directory().path, run.evaluator()));
  for (const auto& [name, verdict] : judge_.decide()) TRY(run.journal().add_fact(name, verdict));
  return Status::ok();
}

Status FleetRepeats::not_needed(const Run& run, std::vector<int>* workpackages) {
  TRY(decide(run));
  *workpackages = judge_.not_needed();
  return Status::ok();
}

Status FleetRepeats::write_files(const Run& run, const FleetReport& report) const {
  const std::string folder = run.directory().path + "/result";
  Journal::Facts facts;
  TRY(run_facts(run.journal(), &facts));
  TRY(make_directories(folder));
  const std::string& name = run.benchmark().name.value;
  TRY(write_file(folder + "/fleet.json", fleet_json(report, facts, kVersion)));
  TRY(write_file(folder + "/fleet.svg",
                 fleet_svg(report, fmt::format("{}, run {}", name, run.directory().id))));
  JunitSuite suite = fleet_suite(report, name);
  suite.timestamp = run.journal().run().start;
  TRY(write_file(folder + "/fleet.xml", junit_document({suite})));
  const std::string& accept = run.benchmark().fleet.find_given("accept");
  if (accept.empty()) return Status::ok();
  TRY(write_file(accept, baseline_text(judge_.accepted(), facts, kVersion)));
  fmt::print("accepted: {}\n", accept);
  return Status::ok();
}

int FleetRepeats::report(const Settings& settings, const Run& run) {
  if (print_if_error(settings, decide(run))) return kFailed;
  const FleetReport report = judge_.report();
  fmt::print("{}\n", layout(for_stdout(fleet_grid(report)), "fleet", {TableStyle::pretty}));
  const bool color = in_color(settings, STDOUT_FILENO);
  print_styled(stdout, fleet_map(report, color) + "\n");
  for (const std::string& line : fleet_summary(report)) fmt::print("{}\n", line);
  const std::string exclude = fleet_exclude(report);
  if (!exclude.empty() && run.benchmark().fleet.find_given("local").empty())
    fmt::print("for Slurm: {}\n", exclude);
  if (print_if_error(settings, write_files(run, report))) return kFailed;
  if (report.any_bad()) return kReferenceMissed;
  return report.all_pass() ? kFine : kFailed;
}

void Application::add_fleet() {
  CLI::App* sub = command("fleet", "test which of many equal machines are fast and right", [this] {
    RunArgs& a = fleet_.run;
    if (!resolve_files("fleet", a.files, a.input, {})) return kBadInput;
    if (!a.dry_run && !may_execute("fleet")) return kBadInput;
    return fleet_command(settings_, fleet_);
  });
  sub->add_option("files", fleet_.run.files, "the input file, which has a section `fleet`")
      ->option_text("FILE");
  planned_options(sub, fleet_.run.input);
  sub->add_option("--nodes", fleet_.nodes, "these nodes, as Slurm writes them: node[01-16]")
      ->option_text("LIST");
  sub->add_option("--partition", fleet_.partition, "the nodes of this partition of Slurm")
      ->option_text("NAME");
  sub->add_flag("--idle", fleet_.idle, "only nodes that are free now");
  sub->add_flag("--local", fleet_.local,
                "the GPUs of this machine, without Slurm: one at a time, and pairs; sets the tag "
                "`local`");
  sub->add_option("--baseline", fleet_.baseline, "the file of accepted values to judge against")
      ->option_text("FILE");
  sub->add_flag("--accept", fleet_.accept,
                "write the values of the machines that pass to the baseline's file");
  sub->add_option("--budget", fleet_.budget, "begin nothing more once so many node-hours are spent")
      ->check(amount())
      ->option_text("NODE-HOURS");
  sub->add_option("--groups", fleet_.groups,
                  "a file with a line for each rack or switch: its name, and its nodes")
      ->option_text("FILE");
  sub->add_option("-o,--outpath", fleet_.run.outpath, "folder of the runs, in place of the file's")
      ->option_text("DIR");
  sub->add_flag("-n,--dry-run", fleet_.run.dry_run, "print what would run; write nothing");
}

}  // namespace tally
