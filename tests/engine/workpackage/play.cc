#include "tests/engine/workpackage/play.h"

#include <unistd.h>

#include <algorithm>
#include <memory>

#include "engine/base/files.h"
#include "engine/check/check.h"
#include "engine/execute/execute.h"
#include "engine/journal/journal_files.h"
#include "engine/plan/planned_run.h"
#include "engine/read/yaml_writer.h"
#include "engine/run/run.h"
#include "engine/workpackage/values.h"
#include "steps/kinds.h"
#include "tests/engine/workpackage/compare.h"
#include "tests/engine/workpackage/draw.h"
#include "tests/engine/workpackage/fake_processes.h"

namespace tally::testing {
namespace {

// As the program's own.
Settings settings_of_program() {
  Settings of_program;
  of_program.kinds = &step_kinds();
  return of_program;
}

constexpr const char* file_name = "drawn.yaml";
constexpr const char* run_directory = "runs/000000";
constexpr size_t most_workpackages = 80;

std::string first_difference(Planned& one, Planned& other) {
  if (one.error() != other.error()) return one.error() + " / " + other.error();
  if (one.workpackages().size() != other.workpackages().size()) return "other workpackages";
  std::vector<Finished> of_one, of_other;
  for (size_t i = 0; i < one.workpackages().size(); ++i) {
    of_one.push_back(finish(one, one.workpackages()[i], of_one));
    of_other.push_back(finish(other, other.workpackages()[i], of_other));
    const std::string where = "workpackage " + std::to_string(i);
    if (of_one[i].error.empty() != of_other[i].error.empty()) {
      return where + ": \"" + of_one[i].error + "\", shown \"" + of_other[i].error + "\"";
    }
    if (of_one[i].by_cycle != of_other[i].by_cycle) return where + " has other values";
    const Step& step = one.step_of(one.workpackages()[i]);
    const Step& shown = other.step_of(other.workpackages()[i]);
    if (step.name.value != shown.name.value) return where + " is of step " + shown.name.value;
  }
  return {};
}

class Play {
 public:
  Play(uint64_t seed, std::string folder, Evaluator& evaluator)
      : random_(seed ^ 0x5eedU),
        planned_(seed % 2 == 1),
        folder_(std::move(folder)),
        evaluator_(evaluator) {}

  Played play(const Drawn& drawn) {
    if (!load(drawn)) return played_;
    const Benchmark& benchmark = input_.workflow->benchmarks.front();
    const RunInfo info = run_info(benchmark, 0, run_directory, start);
    if (Planned::more_than(most_workpackages, benchmark, info, evaluator_, input_.tags())) {
      played_.end = Played::End::large;
      return played_;
    }
    Planned planned(benchmark, info, evaluator_, input_.tags());
    planned.all_at_once();
    const Rules& rules = benchmark.rules;
    const std::string shown = document_to_yaml(input_.document, rules.plain_values_as_written);
    if (!same_workflow("what show prints", shown, planned, drawn.tags)) return played_;
    if (!drawn.long_form.empty() &&
        !same_workflow("the long form", drawn.long_form, planned, drawn.tags))
      return played_;
    draw_luck();
    if (!make_run(benchmark)) return played_;
    run_to_its_end(planned);
    played_.workpackages = static_cast<int>(planned.workpackages().size());
    played_.commands = static_cast<int>(seen_.size());
    return played_;
  }

 private:
  static constexpr const char* start = "2026-11-21T01:18:53";

  void differs(const std::string& what) {
    if (played_.end == Played::End::equal) played_.what = what;
    played_.end = Played::End::different;
  }

  bool load(const Drawn& drawn) {
    played_.what = read(drawn.yaml, drawn.tags, input_);
    if (!played_.what.empty()) played_.end = Played::End::refused;
    return played_.what.empty();
  }

  // Returns why it is refused, or "".
  static std::string read(const std::string& yaml, const std::vector<std::string>& tags,
                          Input& input) {
    CheckOptions options;
    options.kinds = &step_kinds();
    options.tags = tags;
    options.read.tags = tags;
    options.read.stored = {{file_name, yaml}, {common_name, common_text}};
    Status no_templates;
    options.read.builtin_path = template_directories(&no_templates);
    input.document = read_document(file_name, options.read, input.sources, input.diagnostics);
    if (!input.diagnostics.has_errors()) {
      input.workflow = check_document(input.document, options, input.sources, input.diagnostics);
    }
    const bool has_one = input.workflow && !input.workflow->benchmarks.empty();
    if (!input.diagnostics.has_errors() && has_one) return {};
    return input.diagnostics.format(input.sources) + "no benchmark\n";
  }

  // Whether another text has the same workpackages with the same values.
  bool same_workflow(const std::string& what, const std::string& text, Planned& planned,
                     const std::vector<std::string>& tags) {
    Input input;
    if (const std::string why = read(text, tags, input); !why.empty()) {
      differs(what + " is refused: " + why + text);
      return false;
    }
    const Benchmark& benchmark = input.workflow->benchmarks.front();
    Planned again(benchmark, run_info(benchmark, 0, run_directory, start), evaluator_,
                  input.tags());
    again.all_at_once();
    const std::string difference = first_difference(planned, again);
    if (!difference.empty()) differs(what + " is another workflow: " + difference + "\n" + text);
    return difference.empty();
  }

  // What happens to the run.
  void draw_luck() {
    jobs_ = random_.chance(50) ? 1 : random_.between(2, 4);
    fail_percent_ = random_.chance(25) ? 15 : 0;
    deaths_ = random_.chance(35) ? random_.between(1, 2) : 0;
  }

  bool make_run(const Benchmark& benchmark) {
    Status made = make_directories(run_directory);
    if (made) made = write_file(template_name, template_text());
    if (made) made = write_run_files(run_directory, "<jube/>\n");
    RunRecord record;
    record.benchmark = benchmark.name.value;
    record.tags = input_.workflow->tags;
    record.input_file = file_name;
    record.start = start;
    record.home = folder_;
    note_directory(run_directory, &record);
    std::unique_ptr<Journal> journal;
    if (made) made = Journal::create(run_directory, record, input_.sources, &journal);
    if (!made) differs("the run cannot be made: " + made.message());
    return static_cast<bool>(made);
  }

  void run_to_its_end(Planned& planned) {
    for (bool dead = true; dead && played_.end == Played::End::equal;) {
      Session session;
      dead = execute_once(session);
      ++played_.sessions;
      check(planned, session);
      if (!session.status) return;
    }
    if (played_.end != Played::End::equal || fail_percent_ > 0 || !random_.chance(10)) return;
    // A run that has ended has nothing left to do.
    const size_t before = seen_.size();
    Session again;
    execute_once(again);
    if (seen_.size() != before) differs("continue ran a command of a run that had ended");
    check(planned, again);
  }

  static Status stored_input(const Journal& journal, Input* input) {
    if (Status s = read_stored_input(settings_of_program(), journal, run_directory, input); !s)
      return s;
    return input->workflow ? Status::ok() : Status::error("the stored input cannot be read");
  }

  // True: the engine was killed or interrupted, and is to be started again.
  bool execute_once(Session& session) {
    std::unique_ptr<Journal> journal;
    auto input = std::make_shared<Input>();
    Status opened = Journal::open(run_directory, &journal);
    if (opened) opened = stored_input(*journal, input.get());
    if (!opened) {
      differs(opened.message());
      return false;
    }
    const Benchmark& benchmark = *input->find(journal->run().benchmark);
    const RunInfo info = run_info(benchmark, 0, run_directory, start);
    Run run(input, benchmark, info, std::shared_ptr<Evaluator>(&evaluator_, [](Evaluator*) {}));
    run.take({0, run_directory}, std::move(journal), Run::Access::write);
    if (sessions_.empty() && planned_ && !start_with_plan(run)) {
      // The program does not begin a run whose plan has errors. Begun without it, it finds the same.
      planned_ = false;
      return execute_once(session);
    }
    sessions_.push_back(now_seconds());
    FakeProcesses processes(random_.next(), fail_percent_);
    const bool dies = deaths_-- > 0;
    if (dies) draw_death(processes, run.journal());
    Settings settings;
    settings.jobs = jobs_;
    settings.hide_animation = true;
    Parts parts;
    parts.processes = &processes;
    parts.gpus = {"0"};
    bool again = false;
    try {
      session.status = execute(run, settings, parts, &session.summary);
      session.ended = !session.summary.interrupted;
      again = session.summary.interrupted;
    } catch (const Killed&) {
      again = true;
    }
    seen_.insert(seen_.end(), processes.seen.begin(), processes.seen.end());
    return again;
  }

  // As the program does: the plan's first workpackages are those of the run. Returns false where the
  // plan has errors; the run's journal is closed then.
  static bool start_with_plan(Run& run) {
    Diagnostics diagnostics;
    PlannedRun planned{std::move(run), {}, {}};
    planned.plan = make_plan(planned.run.benchmark(), planned.run.expander(), diagnostics);
    if (diagnostics.has_errors()) return false;
    tally::start_with_plan(planned);
    run = std::move(planned.run);
    return true;
  }

  void draw_death(FakeProcesses& processes, Journal& journal) {
    switch (random_.below(3)) {
      case 0:
        processes.kill_at = random_.below(12);
        break;
      case 1:
        processes.interrupt_at = random_.below(8);
        break;
      default: {
        const int at = random_.between(1, 30);
        const bool after = random_.chance(50);
        journal.on_commit([at, after](int number, bool done) {
          if (number == at && done == after) throw Killed();
        });
      }
    }
  }

  // Opens the run as `result` does, in a state of its own, and compares.
  void check(Planned& planned, const Session& session) {
    std::unique_ptr<Journal> journal;
    Input input;
    Status opened = Journal::open_read_only(run_directory, &journal);
    if (opened) opened = stored_input(*journal, &input);
    if (!opened) return differs(opened.message());
    Compare compare(input, *journal, run_directory, evaluator_, seen_);
    const std::string what =
        compare.differences(planned, sessions_, session, jobs_ == 1 && fail_percent_ == 0);
    played_.values = compare.values();
    if (!what.empty()) {
      differs("after session " + std::to_string(sessions_.size()) + " (" + std::to_string(jobs_) +
              " at once): " + what);
    }
  }

  Random random_;
  bool planned_;
  std::string folder_;
  Evaluator& evaluator_;
  Input input_;
  Played played_;
  std::vector<Seen> seen_;
  std::vector<double> sessions_;  // when each began
  int jobs_ = 1, fail_percent_ = 0, deaths_ = 0;
};

}  // namespace

Played play(const Drawn& drawn, uint64_t seed, const std::string& folder, Evaluator& evaluator) {
  Played failed;
  if (chdir(folder.c_str()) != 0) {
    failed.end = Played::End::different;
    failed.what = "cannot change to " + folder;
    return failed;
  }
  return Play(seed, folder, evaluator).play(drawn);
}

}  // namespace tally::testing
