// Prints the plan for people.
#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/expand/substitute.h"
#include "engine/plan/estimate.h"
#include "engine/plan/plan.h"
#include "engine/workpackage/values.h"

namespace tally {
namespace {

constexpr size_t longest_value = 48;

// A value on one line. It is quoted if blanks make it ambiguous, and shortened if it is long.
std::string shown(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
    } else if (c == '\t') {
      text += "\\t";
    } else {
      text += c;
    }
  }
  if (text.size() > longest_value) {
    size_t cut = longest_value - 3;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;
    text.resize(cut);
    text += "...";
  }
  if (text.empty() || text.find_first_of(" '\"") != std::string::npos) return "'" + text + "'";
  return text;
}

// The path from the current folder, if the value is a path in it.
std::string from_here(const std::string& value, const std::string& here) {
  if (value.front() != '/' || value.find_first_of(" :,;'\"\n") != std::string::npos) return value;
  const std::string path = normal_path(value);
  return starts_with(path, here) && path.size() > here.size() ? path.substr(here.size()) : value;
}

class Printer {
 public:
  Printer(const Plan& plan, const Expander& expander, const TextPool& pool,
          const PlanPrint& options, std::ostream& out)
      : plan_(plan), expander_(expander), pool_(pool), options_(options), out_(out) {}

  void print() {
    find_varying();
    print_totals();
    if (options_.parameters) {
      print_requests();
      print_constants();
    }
    const size_t shown_workpackages = std::min(options_.most, plan_.workpackages.size());
    for (size_t i = 0; i < shown_workpackages; ++i) print_workpackage(plan_.workpackages[i]);
    if (shown_workpackages < plan_.workpackages.size()) {
      out_ << fmt::format("  ... and {} (--all lists them)\n",
                          counted(plan_.workpackages.size() - shown_workpackages,
                                  "workpackage more", "workpackages more"));
    }
    print_result_steps();
    print_excluded();
    print_unknown();
  }

  void print_scripts() {
    const auto wanted = static_cast<size_t>(options_.script_of);
    if (wanted >= plan_.workpackages.size()) return;
    const Workpackage& workpackage = plan_.workpackages[wanted];
    const auto files = options_.scripts ? options_.scripts(workpackage)
                                        : std::vector<std::pair<std::string, std::string>>();
    if (files.empty()) {
      out_ << fmt::format("tally: workpackage {} generates no files\n",
                          folder_name_of(*plan_.benchmark, workpackage));
    }
    for (const auto& [name, bytes] : files) {
      if (files.size() > 1) out_ << "==> " << name << " <==\n";
      out_ << bytes;
    }
  }

 private:
  const Step& step_of(const Workpackage& workpackage) const {
    return plan_.benchmark->steps[static_cast<size_t>(workpackage.step)];
  }

  // Finds the parameters that differ between a step's workpackages, and those that are the same in
  // all workpackages that have them.
  void find_varying() {
    struct Seen {
      TextId value;
      bool varies;
    };
    std::map<std::pair<int, TextId>, Seen> by_step;
    std::map<TextId, Seen> overall;
    const auto note = [](auto& map, const auto& key, TextId value) {
      const auto [entry, added] = map.try_emplace(key, Seen{value, false});
      if (!added && entry->second.value != value) entry->second.varies = true;
      return added;
    };
    for (const Workpackage& workpackage : plan_.workpackages) {
      for (const Binding& b : workpackage.point.bindings) {
        note(by_step, std::make_pair(workpackage.step, b.name), b.value);
        if (!note(overall, b.name, b.value)) continue;
        order_.push_back(b.name);
        if (expander_.definition(b).owner == Owner::platform) platforms_.insert(b.name);
      }
    }
    for (const auto& [key, seen] : by_step) {
      // This includes parameters that are constant within a step but differ between steps.
      if (seen.varies || overall.at(key.second).varies) varying_.insert(key);
    }
    for (const TextId name : order_) {
      // The platform's value where the user has one of the name: `resources` are printed.
      if (starts_with(pool_[name], kPlatformPrefix)) continue;
      if (!overall.at(name).varies) constants_.emplace_back(name, overall.at(name).value);
    }
  }

  bool stops_early() const {
    const auto& steps = plan_.benchmark->steps;
    return std::ranges::any_of(steps,
                               [](const Step& step) { return !step.until.metric.value.empty(); });
  }

  void print_totals() {
    const Estimate estimate = estimate_jobs(plan_, expander_);
    jobs_ = estimate.jobs;
    for (const std::vector<int>& pack : estimate.packs) {
      for (size_t i = 0; i < pack.size(); ++i) members_[pack[i]] = {pack.front(), i};
    }
    out_ << fmt::format("plan  {}: {}", plan_.benchmark->name.value,
                        counted(static_cast<size_t>(plan_.points), "point", "points"));
    if (!plan_.excluded.empty()) out_ << fmt::format(", {} excluded", plan_.excluded.size());
    if (plan_.repeats > 1)
      out_ << fmt::format(", {}{} repeats", stops_early() ? "at most " : "", plan_.repeats);
    out_ << " -> " << counted(plan_.workpackages.size(), "workpackage", "workpackages");
    if (jobs_ > 0) out_ << ", " << counted(jobs_, "job", "jobs");
    if (jobs_ > estimate.unknown) {
      out_ << fmt::format(", {:.1f} node-hours at most", estimate.node_hours);
    }
    out_ << '\n';
    print_estimate(estimate, out_);
  }

  // Prints `title` and `parts` on one line, which is broken at `width`.
  void print_list(const std::string& title, const std::vector<std::string>& parts) {
    constexpr size_t width = 100;
    if (parts.empty()) return;
    std::string line = title;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i > 0 && line.size() + 1 + parts[i].size() > width) {
        out_ << line << '\n';
        line = "   ";
      }
      line += ' ' + parts[i];
    }
    out_ << line << '\n';
  }

  // Leaves out parameters without a value, and those that a step's own `resources` replace.
  void print_constants() {
    std::vector<std::string> parts;
    for (const auto& [name, value] : constants_) {
      if (strip(pool_[value]).empty() || replaced_.count(pool_[name]) > 0) continue;
      if (!options_.everything && platforms_.count(name) > 0) continue;
      const std::string& text = pool_[value];
      parts.push_back(fmt::format("{}={}", pool_[name],
                                  shown(options_.everything ? text : from_here(text, here_))));
    }
    print_list("  the same everywhere:", parts);
  }

  // Prints what run steps request from their platform. Parameters that are the same everywhere have
  // their values there, the others their names.
  void print_requests() {
    for (const Step& step : plan_.benchmark->steps) {
      if (step.kind != StepKind::run || !step.resources.any) continue;
      std::vector<std::string> parts;
      const Lookup lookup = [this](std::string_view name) -> const std::string* {
        for (const auto& [constant, value] : constants_) {
          if (pool_[constant] == name) return &pool_[value];
        }
        return nullptr;
      };
      const auto add = [&](const Step& asking) {
        for (const ResourceKey& one : resource_keys()) {
          const std::string& text = (asking.resources.*one.text).value;
          if (text.empty()) continue;
          parts.push_back(fmt::format("{}={}", one.key, shown(substitute(text, lookup))));
          if (!has_users(*plan_.benchmark, one.parameter)) replaced_.insert(one.parameter);
        }
      };
      add(step);
      for (const Step& component : step.components) {
        parts.emplace_back("and");
        add(component);
      }
      // These follow from what it asks for, so the platform's own values are not in force.
      for (const char* derived : {"tasks", "cpuspernode", "timelimit_seconds", "timelimit_minutes"})
        if (!has_users(*plan_.benchmark, derived)) replaced_.insert(derived);
      print_list(fmt::format("  {} asks for:", step.name.value), parts);
    }
  }

  void print_result_steps() {
    for (const Step& step : plan_.benchmark->steps) {
      if (!has_workpackages(step))
        out_ << fmt::format("  then {}, from the tables: in result/{}\n", step.name.value,
                            step.name.value);
    }
  }

  void print_workpackage(const Workpackage& workpackage) {
    const Step& step = step_of(workpackage);
    out_ << fmt::format("  #{:06} {}", workpackage.id, step.name.value);
    if (options_.parameters) {
      std::string values;
      for (const Binding& b : workpackage.point.bindings) {
        if (varying_.count({workpackage.step, b.name}) == 0) continue;
        values += ' ' + pool_[b.name] + '=';
        values += expander_.is_final(b) ? shown(pool_[b.value]) : "?";
      }
      if (!values.empty()) out_ << ' ' << values;
    }
    if (plan_.repeats > 1 && !step.repeat.value.empty()) {
      out_ << fmt::format("  repeat {}", workpackage.repetition + 1);
    } else if (workpackage.iteration > 0 || step.iterations.value != "1") {
      out_ << fmt::format("  iteration {}", workpackage.iteration);
    }
    for (size_t i = 0; i < workpackage.parents.size(); ++i) {
      const int id = workpackage.parents[i];
      out_ << (i == 0 ? "  after " : ", ")
           << fmt::format("#{:06} {}", id,
                          step_of(plan_.workpackages[static_cast<size_t>(id)]).name.value);
    }
    const PlannedJob job = planned_job(plan_, expander_, workpackage);
    if (job.submitted) print_job(workpackage, job);
    if (const auto remark = options_.remarks.find(workpackage.id);
        remark != options_.remarks.end()) {
      out_ << "  " << remark->second;
    }
    if (workpackage.outcome.state == State::failed) print_failure(workpackage);
    out_ << '\n';
  }

  // One value that cannot be computed may affect many workpackages. Only the first one shows the
  // message.
  void print_failure(const Workpackage& workpackage) {
    const Mark& at = workpackage.outcome.place;
    const auto [known, fresh] =
        failed_at_.try_emplace({workpackage.step, at.file, at.line, at.column}, workpackage.id);
    if (fresh || !at.known()) {
      out_ << "  fails: " << message(workpackage.outcome);
    } else {
      out_ << fmt::format("  fails as #{:06}", known->second);
    }
  }

  void print_job(const Workpackage& workpackage, const PlannedJob& job) {
    const auto found = members_.find(workpackage.id);
    if (found == members_.end()) {
      out_ << fmt::format("  job {}/{}", ++job_number_, jobs_);
      if (!job.script.empty()) {
        out_ << fmt::format("  {}/work/{}", folder_name_of(*plan_.benchmark, workpackage),
                            job.script);
      }
      return;
    }
    const auto& [leader, member] = found->second;
    if (member == 0) number_of_[leader] = ++job_number_;
    const Workpackage& first = plan_.workpackages[static_cast<size_t>(leader)];
    out_ << fmt::format("  job {}/{} {} {}  pack_{}/{}", number_of_[leader], jobs_,
                        job.pack.kind == PackRule::Kind::array ? "task" : "step", member,
                        folder_name_of(*plan_.benchmark, first), pack_script_name);
  }

  // Excluded points show the parameters that differ within their step, and their rule with its
  // values.
  void print_excluded() {
    if (plan_.excluded.empty()) return;
    out_ << "excluded by a rule:\n";
    std::map<std::pair<const Step*, TextId>, std::set<TextId>> values;
    for (const Excluded& e : plan_.excluded) {
      for (const Binding& b : e.point.bindings) values[{e.step, b.name}].insert(b.value);
    }
    for (const Workpackage& workpackage : plan_.workpackages) {
      for (const Binding& b : workpackage.point.bindings) {
        const auto found = values.find({&step_of(workpackage), b.name});
        if (found != values.end() && found->second.size() < 2) found->second.insert(b.value);
      }
    }
    const size_t listed = std::min(options_.most, plan_.excluded.size());
    for (size_t i = 0; i < listed; ++i) {
      const Excluded& e = plan_.excluded[i];
      out_ << "  " << e.step->name.value << ' ';
      for (const Binding& b : e.point.bindings) {
        if (values[{e.step, b.name}].size() < 2) continue;
        out_ << ' ' << pool_[b.name] << '=' << shown(pool_[b.value]);
      }
      const Lookup lookup = [&](std::string_view name) -> const std::string* {
        for (const Binding& b : e.point.bindings) {
          if (pool_[b.name] == name) return &pool_[b.value];
        }
        return nullptr;
      };
      const std::string with_values = substitute(e.rule.value, lookup);
      out_ << "  where: " << e.rule.value;
      if (with_values != e.rule.value) out_ << " (" << with_values << ')';
      out_ << '\n';
    }
    if (listed < plan_.excluded.size()) {
      out_ << "  ... and " << counted(plan_.excluded.size() - listed, "point", "points")
           << " more\n";
    }
  }

  void print_unknown() {
    if (plan_.unknown.empty()) return;
    out_ << "known only to a run:\n";
    for (const std::string& sentence : plan_.unknown) out_ << "  " << sentence << '\n';
  }

  const Plan& plan_;
  const Expander& expander_;
  const TextPool& pool_;
  const PlanPrint& options_;
  std::ostream& out_;
  std::set<std::pair<int, TextId>> varying_;  // step, parameter
  std::vector<TextId> order_;                 // in the order of first appearance
  std::vector<std::pair<TextId, TextId>> constants_;
  std::set<TextId> platforms_;  // parameters of a platform's file
  const std::string here_ = absolute_path("") + "/";
  std::set<std::string, std::less<>> replaced_;  // parameters that a `resources` key replaces
  std::map<std::tuple<int, uint32_t, uint32_t, uint32_t>, int> failed_at_;  // step, place -> first
  size_t jobs_ = 0;
  size_t job_number_ = 0;
  std::map<int, std::pair<int, size_t>>
      members_;                      // workpackage in a pack -> first member, position
  std::map<int, size_t> number_of_;  // first member -> number of the pack's job
};

}  // namespace

void print_plan(const Plan& plan, const Expander& expander, const TextPool& pool,
                const PlanPrint& options, std::ostream& out) {
  Printer printer(plan, expander, pool, options, out);
  if (options.script_of >= 0) {
    printer.print_scripts();
  } else {
    printer.print();
  }
}

}  // namespace tally
