// The kinds of step: setup work done once, run steps on this machine and through a scheduler.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <map>
#include <memory>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/execute/status_line.h"
#include "engine/execute/step_table.h"
#include "engine/workflow/job_options.h"
#include "engine/workflow/scheduler_table.h"
#include "engine/workspace/setup_inputs.h"
#include "steps/container.h"
#include "steps/kinds.h"
#include "tests/engine/check/checked.h"
#include "tests/engine/execute/fake_scheduler.h"
#include "tests/engine/execute/run_fixture.h"

using namespace tally;
using namespace tally::testing;

namespace {

NamedValues kind_values(const Step& step, const Lookup& lookup) {
  return step_kinds().values(step, lookup, {});
}

Step run_step(const std::string& launch) {
  Step step = step_of("train", {}, {"ps"});
  step.kind = StepKind::run;
  step.launch.value = launch;
  return step;
}

ParameterSet slurm_platform() {
  return set_of("ps", {parameter("scheduler", "slurm"), parameter("submit", "sbatch --parsable"),
                       parameter("submit_script", "submit.job"), parameter("nodes", "1"),
                       parameter("n", "2")});
}

void write_status(const JobRequest& request, const std::string& text) {
  REQUIRE(write_file(request.directory + "/job.status", text));
}

}  // namespace

TEST_CASE("a setup step's work is done once for equal commands, parameters and files") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1,2,3,4"), parameter("half", "$p // 3", Mode::python)}));
  Step setup = step_of(
      "corpus", {"echo made $half | tee made; echo once >> $jube_benchmark_home/times"}, {"ps"});
  setup.kind = StepKind::setup;
  run.add(setup);
  run.add(step_of("train", {"cat corpus/made"}, {}, {"corpus"}));
  run.settings.jobs = 3;
  const RunSummary summary = run.run();
  CHECK(summary.done == 8);
  std::string times;
  REQUIRE(read_file(run.folder.path() + "/times", &times));
  CHECK(times == "once\nonce\n");
  for (const auto& workpackage : run.stored()) {
    if (workpackage.step != "train") continue;
    const std::string value = workpackage.parameters[1].second;
    CHECK(run.file(workpackage.directory + "/work/stdout") == "made " + value + "\n");
  }
  int reused = 0;
  for (const auto& workpackage : run.stored()) {
    const Outcome& outcome = workpackage.workpackage.outcome;
    if (outcome.reason == Reason::reused && outcome.workpackage >= 0) ++reused;
  }
  CHECK(reused == 2);
}

TEST_CASE("a setup step that fails is tried by the next that needs it") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1,2")}));
  Step setup = step_of("corpus",
                       {"test -e $jube_benchmark_home/second || { touch "
                        "$jube_benchmark_home/second; exit 1; }"},
                       {"ps"});
  setup.kind = StepKind::build;
  run.add(setup);
  const RunSummary summary = run.run();
  CHECK(summary.failed == 1);
  CHECK(summary.done == 1);
}

TEST_CASE("a run step without a platform runs its launch line here, after its commands") {
  RunFixture run;
  run.add(set_of(
      "ps", {parameter("starter", "env"), parameter("args_starter", "R=1"), parameter("n", "2")}));
  Step step = run_step("sh -c 'echo $n $nodes $tasks $R'");
  step.operations.push_back(op("echo before"));
  step.resources.nodes.value = "$n";
  step.resources.tasks_per_node.value = "4";
  run.add(step);
  CHECK(run.run().done == 1);
  CHECK(run.file("000000_train/work/stdout") == "before\n2 2 8 1\n");
}

TEST_CASE("a run step on a scheduler: submitted once, its exit status decides") {
  RunFixture run;
  run.add(slurm_platform());
  FakeScheduler scheduler;
  run.parts.scheduler = &scheduler;
  Step step = run_step("prog $n");
  SUBCASE("well") {
    run.add(step);
    scheduler.on_submit = [](const JobRequest& r, const std::string&) { write_status(r, "0\n"); };
    const RunSummary summary = run.run();
    CHECK(summary.done == 1);
    REQUIRE(scheduler.requests.size() == 1);
    CHECK(scheduler.requests[0].submit == "sbatch --parsable");
    CHECK(scheduler.requests[0].script == "submit.job");
    CHECK(scheduler.requests[0].name.rfind("test-train-000000-", 0) == 0);
    CHECK(run.stored()[0].job_id == "101");
    CHECK(run.continue_run().done == 1);
    CHECK(scheduler.requests.size() == 1);
  }
  SUBCASE("exit code") {
    run.add(step);
    scheduler.on_submit = [](const JobRequest& r, const std::string&) { write_status(r, "7\n"); };
    CHECK(run.run().failed == 1);
    CHECK(run.file("000000_train/error").find("ended with exit code 7") != std::string::npos);
  }
  SUBCASE("expected outcome") {
    step.expect.push_back({"oom", {}});
    run.add(step);
    scheduler.on_submit = [](const JobRequest& r, const std::string&) { write_status(r, "3\n"); };
    CHECK(run.run().done == 1);
    CHECK(run.stored()[0].workpackage.outcome.state == State::expected);
  }
  SUBCASE("rejected, in the scheduler's words") {
    run.add(step);
    scheduler.refuse_with = Refusal::rejected;
    scheduler.words = "sbatch: error: invalid partition specified: x";
    CHECK(run.run().failed == 1);
    CHECK(run.file("000000_train/error") == "sbatch: error: invalid partition specified: x");
  }
}

TEST_CASE("jobs: not waited for, adopted by continue, found by name") {
  RunFixture run;
  run.add(slurm_platform());
  run.add(run_step("prog"));
  FakeScheduler scheduler;
  run.parts.scheduler = &scheduler;
  run.settings.wait_for_jobs = false;
  RunSummary summary = run.run();
  CHECK(summary.running == 1);
  CHECK(summary.exit_code() == 1);
  const std::string work = run.directory.path + "/000000_train/work";
  REQUIRE(write_file(work + "/job.status", "0\n"));
  run.settings.wait_for_jobs = true;
  summary = run.continue_run();
  CHECK(summary.done == 1);
  CHECK(scheduler.requests.size() == 1);
}

TEST_CASE("jobs: a kill between submission and record is healed by the job's name") {
  RunFixture run;
  run.add(slurm_platform());
  run.add(run_step("prog"));
  FakeScheduler scheduler;
  run.parts.scheduler = &scheduler;
  run.settings.wait_for_jobs = false;
  CHECK(run.run().running == 1);
  const std::string name = scheduler.requests[0].name;
  {
    std::unique_ptr<Journal> journal;
    REQUIRE(Journal::open(run.directory.path, &journal));
    REQUIRE(
        journal->jobs_named({{0, name}}));  // forgets the id, as if the engine had ended before it
  }
  scheduler.found[name] = "101";
  CHECK(run.continue_run().running == 1);
  CHECK(scheduler.asked_for == std::vector<std::string>{name});
  CHECK(scheduler.requests.size() == 1);
  CHECK(run.stored()[0].job_id == "101");
}

TEST_CASE("values of the kinds: resources, modules, environment") {
  Step step = run_step("prog");
  step.resources.nodes.value = "$n";
  step.resources.time.value = "00:30:00";
  step.resources.extra.push_back({{"hint", {}}, {"nomultithread", {}}});
  step.modules.push_back({"GCC", {}});
  step.modules.push_back({"CUDA/$n", {}});
  step.env.push_back({{"A", {}}, {"x \"y\" $HOME", {}}});
  step.env_unset.push_back({"B", {}});
  const std::string two = "2", taskspernode = "4";
  const auto values = kind_values(step, [&](std::string_view name) {
    return name == "n" ? &two : name == "taskspernode" ? &taskspernode : nullptr;
  });
  const std::map<std::string, std::string> all(values.begin(), values.end());
  CHECK(all.at("nodes") == "2");
  CHECK(all.at("tasks") == "8");
  CHECK(all.at("timelimit") == "00:30:00");
  CHECK(all.at("timelimit_seconds") == "1800");
  CHECK(all.at("timelimit_minutes") == "30");
  CHECK(all.at("scheduler_options") == "#SBATCH --hint=nomultithread");
  CHECK(all.at("modules") == "module load GCC CUDA/2");
  CHECK(all.at("env") == "unset B\nexport A=\"x \\\"y\\\" ${HOME-}\"");
  CHECK(all.at("launch") == "prog");
}

TEST_CASE("value_names() has every value of the kinds") {
  Step step = run_step("prog");
  Resources& r = step.resources;
  for (Text* text : {&r.nodes, &r.tasks_per_node, &r.cpus_per_task, &r.gpus_per_node, &r.partition,
                     &r.account, &r.memory, &r.hint})
    text->value = "1";
  r.time.value = "60";
  step.work_dir.value = "/somewhere";
  step.env.push_back({{"A", {}}, {"x", {}}});
  // With every name of the platform given, nothing is left out.
  const std::string any = "$nodes@60", scheduler = "slurm", variables = "A=x";
  const Lookup lookup = [&](std::string_view asked) -> const std::string* {
    if (!without_platform_prefix(asked).empty()) return nullptr;  // no name is the user's
    if (asked.ends_with("_variables")) return &variables;
    return asked == "modules" ? nullptr : asked == "scheduler" ? &scheduler : &any;
  };
  const auto& names = step_kinds().value_names();
  CHECK(std::is_sorted(names.begin(), names.end()));
  std::set<std::string_view> given;
  step.components = {step};
  const auto of_slurm = kind_values(step, lookup);
  step.components.clear();
  SchedulerTable table;
  table.submit = {"submit"};
  step.scheduler = std::make_shared<const SchedulerTable>(table);
  const auto of_table = kind_values(step, lookup);
  for (const auto* values : {&of_slurm, &of_table})
    for (const auto& [key, value] : *values) given.insert(key);
  CHECK(given == std::set<std::string_view>(names.begin(), names.end()));
}

TEST_CASE("each name of the kinds may stand in a command and in a column") {
  std::string commands, columns;
  for (const std::string_view name : step_kinds().value_names()) {
    commands += fmt::format("{}'echo ${{{}}}'", commands.empty() ? "" : ", ", name);
    columns += fmt::format("{}{}", columns.empty() ? "" : ", ", name);
  }
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  CheckOptions options;
  options.kinds = &step_kinds();
  const auto checked = [&](const std::string& kind, const std::string& more) {
    return Checked(fmt::format("name: b\noutpath: r\n"
                               "step: {{name: s, {}do: [{}]}}\n"
                               "analyser: {{name: a, analyse: {{step: s}}}}\n"
                               "result: {{use: a, table: {{name: t, column: [{}{}]}}}}\n",
                               kind, commands, columns, more),
                   options)
        .messages();
  };
  for (const char* kind : {"run", "setup", "build"}) {
    CAPTURE(std::string(kind));
    CHECK(checked(fmt::format("kind: {}, ", kind), "") == "");
    CHECK(has(checked(fmt::format("kind: {}, ", kind), ", launch_lin"),
              "hint: did you mean 'launch_line'?"));
  }
  // Nothing gives them to a step of JUBE's.
  CHECK(has(checked("timeout: 5, ", ""), "error: 'launch_line' is not a parameter of step 's'"));
}

TEST_CASE("a job too short for the signal before its time limit gets none") {
  // Slurm: "the signal may be sent up to 60 seconds earlier than specified" (sbatch --signal), and
  // its limits are whole minutes.
  const auto signal = [](const char* time, const std::string& of_platform) {
    Step step = run_step("prog");
    step.resources.time.value = time;
    const auto values = kind_values(
        step, [&](std::string_view name) { return name == "signal" ? &of_platform : nullptr; });
    const std::map<std::string, std::string> all(values.begin(), values.end());
    return all.count("signal") != 0 ? all.at("signal") : of_platform;
  };
  CHECK(signal("00:01:00", "B:TERM@60").empty());
  CHECK(signal("00:02:00", "B:TERM@60").empty());
  CHECK(signal("121s", "B:TERM@60") == "B:TERM@60");  // three minutes for Slurm
  CHECK(signal("00:03:00", "B:TERM@60") == "B:TERM@60");
  CHECK(signal("00:03:00", "B:12@120").empty());
  CHECK(signal("00:04:00", "B:12@120") == "B:12@120");
  CHECK(signal("00:01:00", "").empty());
  CHECK(signal("00:01:00", "USR1") == "USR1");  // the scheduler's own time before the limit
  CHECK(signal("", "B:TERM@60") == "B:TERM@60");
}

TEST_CASE("a time limit reaches the scheduler in the one form that means the same everywhere") {
  const auto limit = [](const char* time, const char* platforms) {
    Step step = run_step("prog");
    step.resources.time.value = time;
    const std::string of_platform = platforms;
    const auto values = kind_values(step, [&](std::string_view name) {
      return name == "timelimit" && !of_platform.empty() ? &of_platform : nullptr;
    });
    std::string found;
    for (const auto& [name, value] : values) {
      if (name != "timelimit") continue;
      CHECK(found.empty());
      found = value;
    }
    return found.empty() ? of_platform : found;
  };
  // A plain number is seconds here (docs/reference.md), minutes for Slurm, which knows no units.
  CHECK(limit("1800", "") == "00:30:00");
  CHECK(limit("90s", "") == "00:01:30");
  CHECK(limit("30m", "") == "00:30:00");
  CHECK(limit("1.5h", "") == "01:30:00");
  CHECK(limit("2d", "") == "48:00:00");
  CHECK(limit("1-01:00:00", "") == "25:00:00");
  CHECK(limit("10", "2h") == "00:00:10");
  // A platform's, of a step that names none.
  CHECK(limit("", "2h") == "02:00:00");
  CHECK(limit("", "5400") == "01:30:00");
  CHECK(limit("", "01:00:00") == "01:00:00");
  CHECK(limit("", "") == "");
  CHECK(limit("1-12", "") == "36:00:00");
  CHECK(limit("1-12:30", "") == "36:30:00");
  // The scheduler's own words.
  CHECK(limit("30:00", "") == "30:00");
}

TEST_CASE("a local platform's environment, launcher and container are those of the launch line") {
  RunFixture run;
  run.add(
      set_of("ps", {parameter("starter", "env N=$$tasks"), parameter("taskspernode", "4"),
                    parameter("site_variables", "SITE=here \\dN\nBOTH=site"),
                    parameter("container_runtime", "none"), parameter("container_image", "i")}));
  Step step = run_step("sh -c 'echo $N $SITE $BOTH'");
  step.resources.nodes.value = "2";
  step.env.push_back({{"BOTH", {}}, {"step", {}}});
  run.add(step);
  CHECK(run.run().done == 1);
  CHECK(run.file("000000_train/work/stdout") == "8 here step\n");
}

TEST_CASE("containers: a step's keys before its platform's, GPUs when the job has any") {
  std::map<std::string, std::string> platform = {{"container_image", "site.sif"},
                                                 {"container_bind", "/data, /x:/y"},
                                                 {"container_env", "A=b c\nD=\\dHOME"},
                                                 {"jube_benchmark_rundir", "/runs/000001"}};
  Step step = run_step("prog");
  const auto command = [&] {
    return container_command(step, [&](std::string_view name) -> const std::string* {
      const auto found = platform.find(std::string(name));
      return found != platform.end() ? &found->second : nullptr;
    });
  };
  const auto says = [&](const char* part) { return command().find(part) != std::string::npos; };
  CHECK(command() ==
        "env \"APPTAINERENV_A=b c\" \"APPTAINERENV_D=${HOME-}\" apptainer exec --bind \"/runs\" "
        "--bind \"${TMPDIR:-/tmp}\" --bind \"${TALLY_CACHE_DIR:-$PWD}\" --bind \"/data\" --bind "
        "\"/x:/y\" --pwd \"$PWD\" \"site.sif\"");
  step.container.runtime.value = "singularity";
  CHECK(says("env \"SINGULARITYENV_A=b c\" "));
  platform["gpuspernode"] = "4";
  CHECK(says(" --nv "));
  step.resources.gpus_per_node.value = "0";
  CHECK_FALSE(says(" --nv "));
  step.container.gpus.value = "all";
  CHECK(says(" --nv "));
  step.container.image.value = "own/image:1";
  step.container.runtime.value = "docker";
  step.container.args.value = "--shm-size 8g";
  step.env.push_back({{"OWN", {}}, {"v", {}}});
  platform["site_interconnect_variables"] = "NCCL_SOCKET_IFNAME=ib0";
  for (const char* part : {"docker run --rm ", " --gpus all ", " --volume \"/data:/data\" ",
                           " --volume \"/x:/y\" ", " --env OWN ", " --env NCCL_SOCKET_IFNAME ",
                           " --env SLURM_PROCID ", " --shm-size 8g ", " \"own/image:1\""}) {
    CAPTURE(part);
    CHECK(says(part));
  }
  step.container.runtime.value = "pyxis";
  step.container.args.value = "--no-container-mount-home";
  CHECK(command() ==
        "--container-image=\"own/image:1\" --container-mounts=\"/runs:/runs\","
        "\"${TMPDIR:-/tmp}:${TMPDIR:-/tmp}\","
        "\"${TALLY_CACHE_DIR:-$PWD}:${TALLY_CACHE_DIR:-$PWD}\",\"/data:/data\",\"/x:/y\" "
        "--container-workdir=\"$PWD\" --no-container-mount-home env \"A=b c\" \"D=${HOME-}\"");
  step.container.runtime.value = "none";
  CHECK(command().empty());
}

TEST_CASE("options of a job script in a platform's form") {
  Step step = run_step("prog");
  step.resources.extra.push_back({{"l", {}}, {"place=scatter", {}}});
  step.resources.extra.push_back({{"V", {}}, {"", {}}});
  const std::string form = "#PBS -NAME VALUE";
  for (const auto& [name, value] : kind_values(step, [&](std::string_view asked) {
         return asked == "option_line" ? &form : nullptr;
       })) {
    if (name == "scheduler_options") CHECK(value == "#PBS -l place=scatter\n#PBS -V");
  }
}

TEST_CASE(
    "options that have the meaning of a key, that Tally sets, or that the scheduler cannot read") {
  struct Row {
    const char* name;
    const char* value;
    const char* says;  // "": the option may be set
  };
  const auto check = [](const char* scheduler, const JobRequests& requests,
                        std::initializer_list<Row> rows) {
    for (const Row& row : rows) {
      CAPTURE(row.name);
      CAPTURE(row.value);
      const auto fault = option_fault(scheduler, row.name, row.value, requests);
      CHECK(fault.has_value() == (*row.says != '\0'));
      if (fault) {
        const std::string text = fault->message + "; " + fault->hint;
        CHECK_MESSAGE(text.find(row.says) != std::string::npos, text);
      }
    }
  };
  // sbatch(1) of 22.05: long names, letters, and what getopt_long takes for a long name.
  check(
      "slurm", {},
      {{"time", "10:00:00", "'time' of resources"},
       {"t", "5", "'time'"},
       {"tim", "5", "'time'"},
       {"Time", "5", "'time'"},
       {"nodes", "2", "'nodes' of resources"},
       {"N", "2", "'nodes'"},
       {"nod", "2", "'nodes'"},
       {"ntasks", "2", "'tasks_per_node'"},
       {"n", "2", "'tasks_per_node'"},
       {"tasks-per-node", "2", "'tasks_per_node'"},
       {"ntasks_per_node", "2", "'tasks_per_node'"},
       {"ntasks-per-gpu", "2", "'tasks_per_node'"},
       {"cpus-per-task", "2", "'cpus_per_task'"},
       {"cpus_per_task", "2", "'cpus_per_task'"},
       {"c", "2", "'cpus_per_task'"},
       {"tres-per-task", "cpu:2", "'cpus_per_task'"},
       {"gpus-per-node", "2", "'gpus_per_node'"},
       {"mem", "4G", "'memory'"},
       {"memory", "4G", "'memory'"},
       {"partition", "x", "'partition'"},
       {"p", "x", "'partition'"},
       {"account", "x", "'account'"},
       {"A", "x", "'account'"},
       {"hint", "nomultithread", "'hint'"},
       {"signal", "B:1@2", "'signal' of the platform"},
       {"job-name", "x", "name"},
       {"J", "x", "name"},
       {"output", "x", "stdout"},
       {"o", "x", "stdout"},
       {"error", "x", "stderr"},
       {"open-mode", "truncate", "stdout"},
       {"chdir", "/x", "work_dir"},
       {"array", "1-3", "pack: array"},
       {"wrap", "x", "submits"},
       {"parsable", "true", "submits"},
       {"wait", "true", "submits"},
       {"test-only", "true", "submits"},
       {"hetjob", "", "a step with `components` is such a job"},
       {"--qos", "x", "not the name of an option"},
       {"qos=x --time", "9", "not the name of an option"},
       {"qos", "a\nb", "line break"},
       {"comment", "a\x01z", "control character"},
       {"requeue", "5", "takes no value"},
       {"constraint", "true", "takes a value"},
       // Slurm 22.05: "Invalid --exclusive specification", and the like; `nice: yes` is read as 0.
       {"exclusive", "yes", "does not take 'yes'"},
       {"exclusive", "1", "does not take '1'"},
       {"exclusive", "no", "does not take 'no'"},
       {"exclus", "yes", "does not take 'yes'"},
       {"no-kill", "yes", "does not take 'yes'"},
       {"propagate", "yes", "does not take 'yes'"},
       {"propagate", "STACK,no", "does not take 'no'"},
       {"get-user-env", "yes", "does not take 'yes'"},
       {"nice", "Yes", "does not take 'Yes'"},
       {"mail_type", "END", "'mail-type'"},
       {"C", "gpu", "'constraint'"},
       {"ex", "x", "whole name"}});
  check("slurm", {},
        {{"export", "NONE", ""},
         {"nodelist", "n[1-3]", ""},
         {"exclude", "n1", ""},
         {"constraint", "a&b", ""},
         {"qos", "low", ""},
         {"reservation", "r", ""},
         {"exclusive", "", ""},
         {"exclusive", "user", ""},
         {"exclusive", "true", ""},
         {"exclusive", "false", ""},
         {"exclusive", "MCS", ""},
         {"exclusive", "topo", ""},
         {"no-kill", "no", ""},
         {"propagate", "STACK,core", ""},
         {"get-user-env", "10L", ""},
         {"nice", "100", ""},
         {"licenses", "m:2", ""},
         {"gres", "nvme:1", ""},
         {"gres", "gpu:a100:2", ""},
         {"gpus", "2", ""},
         {"mem-per-cpu", "2G", ""},
         {"requeue", "true", ""},
         {"requeue", "False", ""},
         {"no-requeue", "", ""},
         {"contiguous", "false", ""},
         {"nice", "", ""},
         {"comment", "it's \"x\"", ""},
         {"dependency", "afterok:1", ""},
         {"time-min", "5", ""},
         {"tmp", "5G", ""},
         {"no-kill", "off", ""},
         {"site-plugin", "x", ""},
         {"nodel", "n1", ""},
         {"segment", "4", ""}});
  const JobRequests both{true, true};
  check("slurm", both,
        {{"gres", "gpu:2", "'gpus_per_node'"},
         {"gres", "nvme:1,gres/gpu:a100:2", "'gpus_per_node'"},
         {"gpus", "2", "'gpus_per_node'"},
         {"G", "2", "'gpus_per_node'"},
         {"gpus-per-task", "1", "'gpus_per_node'"},
         {"tres-per-task", "gres/gpu:1", "'gpus_per_node'"},
         {"mem-per-cpu", "2G", "'memory'"},
         {"mem-per-gpu", "2G", "'memory'"},
         {"gres", "nvme:1", ""},
         {"gpu-bind", "closest", ""}});
  // Other schedulers have no rules but one line for each option.
  check("other", {}, {{"time", "5", ""}, {"x", "a\nb", "line break"}});
  CHECK(variable_fault("SBATCH_TIMELIMIT", "60", {})->hint.find("'time'") != std::string::npos);
  CHECK(variable_fault("SBATCH_ARRAY_INX", "0-3", {}).has_value());
  CHECK(variable_fault("SBATCH_MEM_PER_CPU", "1G", both).has_value());
  CHECK_FALSE(variable_fault("SBATCH_EXPORT", "NONE", {}).has_value());
  CHECK_FALSE(variable_fault("SBATCH_MEM_PER_CPU", "1G", {}).has_value());
  CHECK_FALSE(variable_fault("SLURM_EXACT", "1", {}).has_value());
  for (const char* name : {"SRUN_EXPORT_ENV", "SRUN_CPUS_PER_TASK", "SRUN_CONTAINER",
                           "SLURM_STDOUTMODE", "SLURM_STDERRMODE"}) {
    CAPTURE(std::string(name));
    CHECK(variable_fault(name, "4", {}).has_value());
  }
  for (const char* value : {"$SLURM_CPUS_PER_TASK", "${SLURM_CPUS_PER_TASK}"})
    CHECK_FALSE(variable_fault("SRUN_CPUS_PER_TASK", value, {}).has_value());
  CHECK_FALSE(variable_fault("SLURM_WAIT", "5", {}).has_value());
  CHECK_FALSE(variable_fault("SRUN_DEBUG", "4", {}).has_value());
  CHECK(variable_fault("SBATCH_GRES", "gpu:3", both).has_value());
  CHECK_FALSE(variable_fault("SBATCH_GRES", "gpu:3", {}).has_value());
}

TEST_CASE("directives are quoted as their scheduler reads them") {
  struct Row {
    const char* text;
    const char* word;
  };
  // Each was read by sbatch 22.05.8, which gave the job the comment `text`.
  for (const Row& row :
       {Row{"plain-1.0_x:y,z", "plain-1.0_x:y,z"}, Row{"two words", "\"two words\""},
        Row{"it's", "\"it's\""}, Row{"a#b", "\"a#b\""}, Row{"a\"b\\c", "\"a\\\"b\\\\c\""},
        Row{"-x --time=9", "\"-x --time=9\""}, Row{"\u00fc", "\"\u00fc\""},
        Row{"n[1-3]&b|c*?", "n[1-3]&b|c*?"}}) {
    CHECK(directive_word("slurm", row.text) == row.word);
    CHECK(read_directive_word(std::string(row.word) + " # a comment") == row.text);
  }
  CHECK(read_directive_word("a'b c'd#e") == "ab cd");
}

TEST_CASE(
    "a step's options replace its platform's, and true and false are an option with and without") {
  Step step = run_step("prog");
  std::map<std::string, std::string> platform = {{"scheduler", "slurm"},
                                                 {"option_line", "#SBATCH --NAME=VALUE"},
                                                 {"site_option_1", "qos=low"},
                                                 {"site_option_2", "exclusive=true"},
                                                 {"site_option_3", "gres=lic:1"},
                                                 {"job_functions", "job_functions.sh"},
                                                 {"stdoutlogfile", "job-%j.out"},
                                                 {"jube_benchmark_rundir", "/runs/50%j/000000"},
                                                 {"queue", "a b"}};
  const auto lines = [&](const char* name) {
    const auto values = kind_values(step, [&](std::string_view asked) {
      const auto found = platform.find(std::string(asked));
      return found == platform.end() ? nullptr : &found->second;
    });
    const std::map<std::string, std::string> all(values.begin(), values.end());
    return all.at(name);
  };
  CHECK(lines("site_options") == "#SBATCH --qos=low\n#SBATCH --exclusive\n#SBATCH --gres=lic:1");
  const auto set = [&](const char* name, const char* value) {
    step.resources.extra.push_back({{name, {}}, {value, {}}});
  };
  set("exclusive", "false");
  set("requeue", "True");
  set("contiguous", "False");
  set("comment", "two words");
  set("reservation", "");
  set("nice", "");
  CHECK(lines("site_options") == "#SBATCH --qos=low\n#SBATCH --gres=lic:1");
  CHECK(lines("scheduler_options") ==
        "#SBATCH --requeue\n#SBATCH --comment=\"two words\"\n#SBATCH --nice");
  // Slurm takes the last of several --gres.
  step.resources.gpus_per_node.value = "4";
  CHECK(lines("gpus_word") == "4,lic:1");
  CHECK(lines("site_options") == "#SBATCH --qos=low");
  set("gres", "nvme:2");
  CHECK(lines("gpus_word") == "4,nvme:2");
  CHECK(lines("queue_word") == "\"a b\"");
  // sbatch(1), "filename pattern": %% is a percent sign. It takes the folder's name for a pattern, too.
  CHECK(lines("stdout_word").find("/runs/50%%j/000000/") == 0);
  CHECK(lines("stdout_word").find("/job-%j.out") != std::string::npos);
}

TEST_CASE("what a job script asks of the scheduler") {
  CHECK(step_kinds().script_options(
            "#!/bin/bash\n#SBATCH --nodes=1\n# a comment\n\n#SBATCH --mem=8G\n\n"
            "rm -f x\n#SBATCH --time=late\n") == "#SBATCH --nodes=1\n#SBATCH --mem=8G\n");
}

TEST_CASE("the script of a pack") {
  PackRule rule;
  rule.kind = PackRule::Kind::array;
  rule.at_once = 3;
  const std::string own =
      "#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:a100:1\n#SBATCH --mem=500M\n"
      "#SBATCH --output=out.log\n#SBATCH --open-mode=truncate\n";
  const std::vector<PackMember> members = {
      {"/run/a b/work", "submit.job", {}, own},
      {"/run/c/work", "/own/submit.job", {{"X", "it's"}}, own, "/own/status"}};
  const std::string options = step_kinds().common_options(own);
  CHECK(options.find("--output") == std::string::npos);
  std::string script = step_kinds().pack_script(rule, options, members);
  const auto has = [&](const char* part) { return script.find(part) != std::string::npos; };
  CHECK(has("#SBATCH --array=0-1%3\n"));
  CHECK(has("  0) cd '/run/a b/work' &&\n    exec bash submit.job > out.log 2>&1 ;;\n"));
  CHECK(has(("  1) cd /run/c/work && export X=" + shell_quote("it's") +
             " &&\n    exec bash /own/submit.job > out.log 2>&1 ;;\n")
                .c_str()));
  // Side by side on one node: what the scheduler gives it grows, and time with the rounds.
  rule.kind = PackRule::Kind::steps;
  rule.at_once = 2;
  rule.seconds = 90;
  rule.tasks_per_node = "4";
  script = step_kinds().pack_script(rule, options, {members[0], members[1], members[1]});
  CHECK(
      has("#SBATCH --time=00:03:00\n#SBATCH --ntasks-per-node=8\n#SBATCH --gres=gpu:a100:2\n"
          "#SBATCH --mem=1000M\n"));
  CHECK(has("SLURM_NTASKS=4 "));
  CHECK(has("export SLURM_GRES=gpu:a100:1\n"));
  CHECK(
      has("member '/run/a b/work' job.status job.reason \\\n"
          "  'env bash submit.job > out.log 2>&1'\n"));
  CHECK(has(("member /run/c/work /own/status job.reason \\\n  " +
             shell_quote("env " + shell_quote("X=it's") + " bash /own/submit.job > out.log 2>&1") +
             "\n")
                .c_str()));
  // Each of several resources grows, and one without a number is one.
  const std::array<std::array<const char*, 3>, 14> amounts = {{
      {"gres", "gpu:1,nvme", "gpu:2,nvme:2"},
      {"gres", "fpga:arria,x:2", "fpga:arria:2,x:4"},
      {"gres", "gres:nvme,disk:10G", "gres:nvme:2,disk:20G"},
      {"gres", "none", "none"},
      {"gpus", "2", "4"},
      {"gpus", "a100:3,v100", "a100:6,v100:2"},
      {"gpus-per-node", "1", "2"},
      {"gpus-per-socket", "a100:1", "a100:2"},
      {"mem", "100", "200"},
      {"mem", "+100", "200"},
      {"mem", "+1G", "2G"},
      {"mem", "1kb", "2kb"},
      {"mem", "0", "0"},
      {"mem", "9000000000000000000", "18000000000000000000"},
  }};
  for (const auto& [option, asked, grown] : amounts) {
    const std::string line = std::string("#SBATCH --") + option + "=";
    CAPTURE(line + asked);
    script = step_kinds().pack_script(rule, line + asked + "\n", members);
    CHECK(has((line + grown + "\n").c_str()));
    // The member's own part is what it asked for.
    std::string variable = std::string("SLURM_") + option;
    for (char& c : variable) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
    const bool is_memory = std::string(option) == "mem";
    CHECK(has(("export " + variable + "=" + asked + "\n").c_str()) == !is_memory);
  }
  // Words with quotes and %% are read as sbatch reads them.
  PackMember quoted = members[0];
  quoted.options = "#SBATCH --output=\"/runs/5%%/a b/out\"\n#SBATCH --error=job-%j.err\n";
  script = step_kinds().pack_script(rule, options, {quoted, quoted});
  CHECK(has("bash submit.job >> "));
  CHECK(has("/runs/5%/a b/out"));
  CHECK(has("2>> stderr"));
  rule.folder = "/runs/5%/pack";
  script = step_kinds().pack_script(rule, options, members);
  CHECK(has("#SBATCH --output=/runs/5%%/pack/pack.out\n"));
  rule.folder.clear();
  // One after the other each has all of it.
  rule.at_once = 1;
  script = step_kinds().pack_script(rule, options, members);
  CHECK(has("#SBATCH --time=00:03:00\n#SBATCH --output=pack.out\n"));
  CHECK_FALSE(has("SLURM_NTASKS"));
}

TEST_CASE("pack's numbers are numbers") {
  Step step = run_step("prog");
  step.pack.kind.value = "steps";
  step.pack.size.value = "$n";
  PackRule rule;
  std::string n = "12";
  const Lookup lookup = [&](std::string_view name) { return name == "n" ? &n : nullptr; };
  CHECK(step_kinds().pack_rule(step, lookup, &rule));
  CHECK(rule.size == 12);
  CHECK(rule.at_once == 1);
  n = "0";
  CHECK(step_kinds().pack_rule(step, lookup, &rule).message() ==
        "pack: size is '0', not a whole number of at least 1");
}

TEST_CASE("content hash tells every part apart") {
  const StepInputs base{"s", {"a", "b"}, {{"p", "h"}}, {{"E", "1"}}, {{"f", "x"}}};
  StepInputs other = base;
  CHECK(content_hash(base) == content_hash(other));
  other.commands = {"ab", ""};
  CHECK(content_hash(base) != content_hash(other));
  other = base;
  other.environment[0].second = "2";
  CHECK(content_hash(base) != content_hash(other));
  other = base;
  other.files[0].second = "y";
  CHECK(content_hash(base) != content_hash(other));
  other = base;
  other.parents[0].second = "g";
  CHECK(content_hash(base) != content_hash(other));
}

namespace {
class FakeTerminal final : public StatusOutput {
 public:
  bool is_terminal() const override { return terminal; }
  int columns() const override { return width; }
  void write(const std::string& out) override { text += out; }
  bool terminal = true;
  int width = 80;
  std::string text;
};
}  // namespace

TEST_CASE("a line for each step: a bar, counts, an estimate") {
  std::vector<StepProgress> steps(4);
  steps[0] = {"build", 1, 1, 0, 0, 0, true, -1};
  steps[1] = {"compute", 22, 11, 2, 0, 1, true, 70};
  steps[2] = {"a_step_with_a_name_that_is_far_too_long", 0, 0, 0, 0, 0, false, -1};
  steps[3] = {"plot", 3, 0, 0, 3, 0, true, -1};
  CHECK(step_lines(steps, 10, 100) ==
        std::vector<std::string>{
            "  build                     [####################]    1/1",
            "  compute                   [##########..........]  11/22  2 running, 1 failed  ETA "
            "01:10",
            "  a_step_with_a_name_th...  [....................]   0/0+",
            "  plot                      [....................]    0/3  3 waiting"});
  // Little room: what is done goes first.
  const std::vector<std::string> few = step_lines(steps, 2, 20);
  REQUIRE(few.size() == 2);
  CHECK(few[0].find("compute") != std::string::npos);
  CHECK(few[0].size() == 20);
}

TEST_CASE("a small window has one line") {
  FakeTerminal terminal;
  CHECK(!StatusLine(&terminal, false, false).is_small());
  terminal.width = 50;
  CHECK(StatusLine(&terminal, false, false).is_small());
}

TEST_CASE("status line: states, X/N, elapsed, ETA; quiet when not a terminal") {
  FakeTerminal terminal;
  RunProgress progress;
  progress.total = 10;
  progress.done = 2;
  progress.failed = 1;
  progress.running = 2;
  progress.current = "000004_train";
  const auto start = StatusLine::Clock::now();
  SUBCASE("terminal") {
    StatusLine line(&terminal, false, false);
    line.update(progress, start + std::chrono::seconds(1));
    progress.done = 5;
    line.update(progress, start + std::chrono::milliseconds(1050));  // too soon: not drawn
    line.update(progress, start + std::chrono::seconds(61));
    line.print("000003_train: failed", true);
    line.finish();
    CHECK(terminal.text ==
          "\r\033[K[3/10] 2 running, 1 failed  00:00  000004_train"
          "\r\033[K[6/10] 2 running, 1 failed  01:00  ETA 01:21  000004_train"
          "\r\033[K000003_train: failed\n");
  }
  SUBCASE("narrow") {
    terminal.width = 11;
    StatusLine line(&terminal, false, false);
    line.update(progress, start + std::chrono::seconds(1));
    CHECK(terminal.text == "\r\033[K[3/10] 2 r");
  }
  SUBCASE("no terminal") {
    terminal.terminal = false;
    StatusLine line(&terminal, false, false);
    line.update(progress, start + std::chrono::seconds(1));
    line.print("000003_train: done", false);
    CHECK(terminal.text.empty());
    StatusLine verbose(&terminal, false, true);
    verbose.print("000003_train: done", false);
    CHECK(terminal.text == "000003_train: done\n");
  }
}
