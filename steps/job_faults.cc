#include <fmt/format.h>

#include <cstdlib>

#include "engine/base/duration.h"
#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/expand/substitute.h"
#include "engine/workflow/job_options.h"
#include "engine/workflow/scheduler_table.h"
#include "steps/components.h"
#include "steps/container.h"
#include "steps/directives.h"
#include "steps/kinds.h"

namespace tally {
namespace {

// Whether the step's key, or else its platform's, has a value. False if it is not known yet.
bool is_asked(const Text& own, const char* parameter, const Lookup& lookup) {
  std::string value(strip(substitute(own.value, lookup)));
  if (value.empty()) value = stripped_value(lookup, parameter);
  return !value.empty() && !has_dollar_name(value);
}

class JobFaults {
 public:
  JobFaults(const Step& step, const Lookup& lookup)
      : step_(step), lookup_(lookup), scheduler_(value_of("scheduler")) {}

  std::vector<JobFault> find() {
    check_variable_names();
    check_container();
    if (step_.kind != StepKind::run || scheduler_.empty() || scheduler_ == "local")
      return std::move(faults_);
    requests_ = step_kinds().job_requests(step_, lookup_);
    check_pack();
    check_cycles();
    check_timeout();
    check_options();
    check_environment();
    check_texts();
    return std::move(faults_);
  }

 private:
  std::string value_of(std::string_view name) const { return stripped_value(lookup_, name); }

  // A platform may be that of several steps, whose messages are then equal.
  void add(JobFault fault) {
    if (fault.parameter.empty())
      fault.message = fmt::format("step '{}': {}", step_.name.value, fault.message);
    faults_.push_back(std::move(fault));
  }

  void check_pack() {
    if (step_.pack.kind.value.empty() || scheduler_ == "slurm" || has_dollar_name(scheduler_))
      return;
    add({step_.pack.kind.mark, "",
         fmt::format("'pack' needs Slurm, and its platform's scheduler is {}",
                     step_.scheduler ? step_.scheduler->title : scheduler_),
         "leave it out: each workpackage is a job then"});
  }

  // A job is started once, after the commands of the last cycle.
  void check_cycles() {
    const std::string cycles(strip(substitute(step_.cycles.value, lookup_)));
    if (step_.launch.value.empty() || strtol(cycles.c_str(), nullptr, 10) <= 1) return;
    add({step_.cycles.mark, "",
         fmt::format(
             "its program would be launched once, as a job, and not in each of its {} cycles",
             cycles),
         "give it 'iterations' or 'repeat' instead of 'cycles'", !has_dollar(step_.cycles.value)});
  }

  // It ends commands of this machine. A job's program is ended by the job's limit.
  void check_timeout() {
    if (step_.launch.value.empty() || strip(substitute(step_.timeout.value, lookup_)).empty())
      return;
    add({step_.timeout.mark, "", "'timeout' has no effect on a program that a job launches",
         "give 'resources' a 'time' instead; 'expect: timeout' holds for it, too",
         !has_dollar(step_.timeout.value)});
  }

  void check_option(const std::string& name, std::string value, JobFault fault) {
    if (has_dollar_name(name)) return;
    if (has_dollar_name(value)) value.clear();  // the name alone may be wrong
    std::optional<OptionFault> found = step_.scheduler
                                           ? option_fault(*step_.scheduler, name, value, requests_)
                                           : option_fault(scheduler_, name, value, requests_);
    if (!found) return;
    fault.message = std::move(found->message);
    fault.hint = std::move(found->hint);
    add(std::move(fault));
  }

  void check_options() {
    const auto& texts = step_.resources.extra;
    const NamedValues own = step_options(step_, lookup_);
    for (size_t i = 0; i < own.size(); ++i) {
      const bool constant = !has_dollar(texts[i].first.value) && !has_dollar(texts[i].second.value);
      check_option(own[i].first, own[i].second, {texts[i].first.mark, "", "", "", constant});
    }
    const NamedValues site = platform_options(lookup_);
    for (size_t i = 0; i < site.size(); ++i) {
      check_option(site[i].first, site[i].second,
                   {{}, fmt::format("site_option_{}", i + 1), "", ""});
    }
  }

  // On every platform, of every kind of step. Constant names are checked as the file is read.
  void check_variable_name(const Text& name) {
    const std::string variable = substitute(name.value, lookup_);
    if (!has_dollar(name.value) || has_dollar_name(variable) || is_variable_name(variable)) return;
    add({name.mark, "",
         fmt::format("'{}' is not the name of an environment variable", one_line(variable)),
         "names have letters, digits and underscores, and no digit first", false});
  }

  void check_variable_names() {
    for (const auto& [name, text] : step_.env) check_variable_name(name);
    for (const Text& name : step_.env_unset) check_variable_name(name);
  }

  void check_container() {
    if (step_.kind != StepKind::run || step_.launch.value.empty()) return;
    const Text& own = step_.container.runtime;
    std::string why = container_fault(step_, lookup_);
    if (why.empty()) return;
    JobFault fault;
    if (own.value.empty()) {
      fault.parameter = "container_runtime";
    } else {
      fault.mark = own.mark;
    }
    fault.message = std::move(why);
    fault.hint = "take another 'runtime', or a platform whose launcher is srun";
    add(std::move(fault));
  }

  // sbatch and srun get the environment of the step and of its platform, too.
  void check_environment() {
    if (scheduler_ != "slurm") return;
    for (const auto& [name_text, text] : step_.env) {
      const Text name = name_text;
      auto found = variable_fault(substitute(name.value, lookup_),
                                  substitute_parameters(text.value, lookup_), requests_);
      if (found) {
        add({name.mark, "", std::move(found->message), std::move(found->hint),
             !has_dollar(name.value) && !has_dollar(text.value)});
      }
    }
    // Variables with one value are checked as the file is read, too.
    const bool runs = step_.kind == StepKind::run;
    for (const std::string& name : runs ? exported_names(lookup_) : std::vector<std::string>()) {
      auto found = variable_fault(name, value_of(name), requests_);
      if (found) add({{}, name, std::move(found->message), std::move(found->hint)});
    }
    for (const char* of_site : {"site_interconnect_variables", "site_variables"}) {
      for (const auto& [name, text] : unpack_variables(value_of(of_site))) {
        auto found = variable_fault(name, text, requests_);
        if (found) add({{}, of_site, std::move(found->message), std::move(found->hint)});
      }
    }
  }

  void check_text(const char* what, const std::string& value, JobFault fault) {
    if (has_dollar_name(value)) return;
    const SchedulerTable* table = step_.scheduler.get();
    std::string why = table != nullptr ? directive_fault(*table, value) : directive_fault(value);
    if (why.empty()) {
      why = table != nullptr ? request_fault(*table, what, value)
                             : request_fault(scheduler_, what, value);
      if (!why.empty()) why = fmt::format("'{}' {}", value, why);
    }
    if (why.empty()) return;
    fault.message = fmt::format("{} {}", what, why);
    fault.hint = "give it another value";
    add(std::move(fault));
  }

  void check_texts() {
    const Resources& asked = step_.resources;
    const struct {
      const char* what;
      const Text* own;
      const char* parameter;
    } texts[] = {{"partition", &asked.partition, "queue"},
                 {"account", &asked.account, "account"},
                 {"memory", &asked.memory, "memory"},
                 {"time", &asked.time, "timelimit"},
                 {"hint", &asked.hint, "site_hint"},
                 {"signal", nullptr, "signal"},
                 {"mpi", nullptr, "site_mpi"},
                 {"tmp", nullptr, "site_tmp"},
                 {"cache", nullptr, "site_cache"},
                 {"the job's output file", nullptr, "stdoutlogfile"},
                 {"the job's error file", nullptr, "stderrlogfile"}};
    for (const auto& [what, own, parameter] : texts) {
      if (own != nullptr && !own->value.empty()) {
        check_text(what, std::string(strip(substitute(own->value, lookup_))),
                   {own->mark, "", "", "", !has_dollar(own->value)});
      } else {
        check_text(what, value_of(parameter), {{}, parameter, "", ""});
      }
    }
    check_platform_time();
    check_folder("tmp", "site_tmp");
    check_folder("cache", "site_cache");
    // tmp and cache are words of the shell, and a job's name gets no characters that need quotes.
    check_line("the benchmark's name", value_of("jube_benchmark_name"),
               {{}, "jube_benchmark_name", "", ""});
    check_line("its name", step_.name.value, {step_.name.mark, "", "", ""});
    if (!step_.work_dir.value.empty()) {
      check_text("suffix", substitute(step_.suffix.value, lookup_),
                 {step_.suffix.mark, "", "", "", !has_dollar(step_.suffix.value)});
    }
  }

  // Slurm takes 0 for no limit.
  void check_platform_time() {
    if (!step_.resources.time.value.empty()) return;
    const auto limit = parse_duration(value_of("timelimit"));
    if (!limit || *limit > 0) return;
    add({{},
         "timelimit",
         "time is 0, but a job's time limit is above 0",
         "write it as seconds, 10m, 2h, HH:MM:SS or D-HH:MM:SS"});
  }

  // The script has the folder in quotes, with its variables. A pair of quotes is there for the
  // shell, which does not read them; one alone belongs to a name, as in O'Brien.
  void check_folder(const char* key, const char* parameter) {
    const std::string value = value_of(parameter);
    const auto in_pairs = [&](char quote) {
      const auto count = std::ranges::count(value, quote);
      return count > 0 && count % 2 == 0;
    };
    if (in_pairs('"') || in_pairs('\'') || in_pairs('`') ||
        value.find("\\ ") != std::string::npos) {
      add({{},
           parameter,
           fmt::format("{} names a folder with quotes or backslashes: {}", key, value),
           "write it without them: blanks and variables need none"});
    } else if (const size_t tilde = other_tilde(value); tilde != std::string::npos) {
      add({{},
           parameter,
           fmt::format("{} names a folder by '{}', which no shell reads there: {}", key,
                       value.substr(tilde, value.find('/', tilde) - tilde), value),
           "~/ at its begin is your home folder; write other folders of users in full, or $HOME"});
    }
  }

  // A ~ that would be a letter of the name though it looks like a home folder: of another user, or
  // at the begin of what stands for a variable without a value.
  static size_t other_tilde(const std::string& value) {
    for (size_t at = value.find('~'); at != std::string::npos; at = value.find('~', at + 1)) {
      std::string_view before = strip(std::string_view(value).substr(0, at));
      const bool escaped = !before.empty() && before.back() == '\\';
      if (escaped) before.remove_suffix(1);
      before = strip(before);
      const size_t open = before.rfind("${");
      const bool stands_in = open != std::string_view::npos &&
                             before.find('}', open) == std::string_view::npos &&
                             std::string_view("-=+?").find(before.back()) != std::string_view::npos;
      const bool home =
          before.empty() && !escaped && (at + 1 == value.size() || value[at + 1] == '/');
      if ((before.empty() || stands_in) && !home) return at;
    }
    return std::string::npos;
  }

  void check_line(const char* what, const std::string& value, JobFault fault) {
    const std::string why = directive_fault(value);
    if (why.empty()) return;
    fault.message = fmt::format("{} {}", what, why);
    add(std::move(fault));
  }

  const Step& step_;
  const Lookup& lookup_;
  const std::string scheduler_;
  JobRequests requests_;
  std::vector<JobFault> faults_;
};

}  // namespace

JobRequests TallyKinds::job_requests(const Step& step, const Lookup& lookup) const {
  JobRequests requests;
  requests.gpus = is_asked(step.resources.gpus_per_node, "gpuspernode", lookup);
  requests.memory = is_asked(step.resources.memory, "memory", lookup);
  return requests;
}

std::vector<JobFault> TallyKinds::job_faults(const Step& step, const Lookup& lookup) const {
  // Asked of each workpackage of a plan.
  const bool none = step.kind != StepKind::run && step.env.empty() && step.env_unset.empty();
  if (none) return {};
  std::vector<JobFault> faults = component_faults(step, lookup);
  if (!faults.empty()) return faults;  // what a part asks for is no matter then
  faults = JobFaults(step, lookup).find();
  for (const Step& component : step.components) {
    const Lookup of_component = beside_first(step, component, lookup);
    for (JobFault& fault : JobFaults(component, of_component).find())
      faults.push_back(std::move(fault));
  }
  return faults;
}

}  // namespace tally
