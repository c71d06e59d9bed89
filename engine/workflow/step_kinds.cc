#include "engine/workflow/step_kinds.h"

#include <algorithm>

#include "engine/workflow/workflow.h"

namespace tally {

NamedValues StepKinds::values(const Step&, const Lookup&, const Lookup&) const {
  return {};
}

const std::vector<std::string_view>& StepKinds::value_names() const {
  static const std::vector<std::string_view> none;
  return none;
}

Platform StepKinds::platform_of(const Step&, const Lookup&) const {
  return {};
}

LocalLaunch StepKinds::local_launch(const Step&, const Lookup&) const {
  return {};
}

std::string StepKinds::outcome_of(int) const {
  return {};
}

bool StepKinds::is_expected(const Step&, const std::string&, const Lookup&) const {
  return false;
}

std::vector<JobFault> StepKinds::job_faults(const Step&, const Lookup&) const {
  return {};
}

JobRequests StepKinds::job_requests(const Step&, const Lookup&) const {
  return {};
}

PlanRequest StepKinds::plan_request(const Step&, const Lookup&) const {
  return {};
}

std::string StepKinds::plan_summary(const std::string&) const {
  return {};
}

Status StepKinds::pack_rule(const Step&, const Lookup&, PackRule* rule) const {
  *rule = PackRule();
  return Status::ok();
}

std::string StepKinds::script_options(const std::string&) const {
  return {};
}

std::string StepKinds::common_options(const std::string&) const {
  return {};
}

PackMember StepKinds::pack_member(const std::string& directory, const std::string& script,
                                  const std::string& options, const NamedValues& environment,
                                  const Lookup&) const {
  return {directory, script, environment, options};
}

std::string StepKinds::pack_script(const PackRule&, const std::string&,
                                   const std::vector<PackMember>&) const {
  return {};
}

JobRequests requests_of_job(const Step& step, const Lookup& lookup) {
  JobRequests requests = step.kinds->job_requests(step, lookup);
  for (const Step& component : step.components) {
    const JobRequests more = step.kinds->job_requests(component, lookup);
    requests.gpus = requests.gpus || more.gpus;
    requests.memory = requests.memory || more.memory;
  }
  return requests;
}

const StepKinds& plain_kinds() {
  static const StepKinds kinds;
  return kinds;
}

std::optional<double> pack_seconds(const PackRule& rule, size_t members) {
  if (!rule.seconds) return std::nullopt;
  const auto side_by_side = static_cast<size_t>(std::max(1, rule.at_once));
  const size_t rounds = (members + side_by_side - 1) / side_by_side;
  return *rule.seconds * static_cast<double>(rounds);
}

std::string pack_folder(const std::string& run_dir, const std::string& first) {
  return run_dir + "/pack_" + first;
}

}  // namespace tally
