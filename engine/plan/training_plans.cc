#include "engine/plan/training_plans.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/workflow/step_kinds.h"
#include "engine/workpackage/values.h"
#include "engine/workspace/external_command.h"

namespace tally {
namespace {

// It takes a few hundredths of a second.
constexpr std::chrono::seconds patience{5};

// One layout and the workpackages that have it.
struct Layout {
  PlanRequest request;
  const Step* step = nullptr;
  int first = 0;
  size_t workpackages = 0;
};

std::vector<Layout> layouts_of(const Plan& plan, const Expander& expander) {
  std::vector<Layout> layouts;
  std::map<std::string, size_t> known;
  for (const Workpackage& workpackage : plan.workpackages) {
    const Step& step = plan.benchmark->steps[static_cast<size_t>(workpackage.step)];
    if (step.kind != StepKind::run || workpackage.outcome.state == State::failed) continue;
    const WorkpackageValues values(*plan.benchmark, expander, workpackage);
    PlanRequest request = step.kinds->plan_request(step, values.lookup());
    if (request.programs.empty() && request.why_not.empty()) continue;
    const std::string key = step.name.value + '\0' + request.why_not + '\0' +
                            join(request.arguments, std::string(1, '\0'));
    const auto [at, added] = known.try_emplace(key, layouts.size());
    if (added) layouts.push_back({std::move(request), &step, workpackage.id, 0});
    ++layouts[at->second].workpackages;
  }
  return layouts;
}

// Without a launcher's variables: the planner would take itself for one of several processes.
std::vector<std::string> own_environment() {
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.rfind("RANK=", 0) == 0 || text.find("_RANK=") < text.find('=') ||
        text.rfind("SLURM_PROCID=", 0) == 0)
      continue;
    kept.push_back(text);
  }
  return kept;
}

// The line of a layout. Sets *answers to false when the planner did not answer in time.
std::string planned(const Layout& layout, const std::string& program, bool* answers) {
  if (!layout.request.why_not.empty()) return "no plan: " + layout.request.why_not;
  ExternalCommand spec;
  spec.words.push_back(program);
  spec.words.insert(spec.words.end(), layout.request.arguments.begin(),
                    layout.request.arguments.end());
  spec.environment = own_environment();
  spec.patience = patience;
  const CommandResult result = run_external(spec);
  *answers = result.status >= 0;
  std::string summary = layout.step->kinds->plan_summary(result.out);
  if (!summary.empty()) return summary;
  return "no plan: " + first_line(error_text(result, layout.request.programs.back()));
}

}  // namespace

void print_training_plans(const Plan& plan, const Expander& expander,
                          const std::vector<std::string>& directories, size_t most,
                          std::ostream& out) {
  const std::vector<Layout> layouts = layouts_of(plan, expander);
  if (layouts.empty()) return;
  const auto asked = std::ranges::find_if(
      layouts, [](const Layout& layout) { return !layout.request.programs.empty(); });
  std::string program;
  if (asked != layouts.end()) {
    program = find_program(asked->request.programs, directories);
    if (program.empty()) {
      out << fmt::format("no plan of the training: {} is neither beside this program nor in PATH\n",
                         asked->request.programs.back());
      return;
    }
  }
  out << "plan of the training:\n";
  bool answers = true;
  size_t shown = 0;
  for (; shown < std::min(most, layouts.size()) && answers; ++shown) {
    const Layout& layout = layouts[shown];
    out << fmt::format("  #{:06} {}", layout.first, layout.step->name.value);
    if (layout.workpackages > 1) out << fmt::format(" and {} more", layout.workpackages - 1);
    out << ": " << planned(layout, program, &answers) << '\n';
  }
  if (shown == layouts.size()) return;
  out << fmt::format("  ... and {} layout{} more{}\n", layouts.size() - shown,
                     layouts.size() - shown == 1 ? "" : "s", answers ? " (--all plans them)" : "");
}

}  // namespace tally
