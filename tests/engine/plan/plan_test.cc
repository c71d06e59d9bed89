// Ids, parents and iterations are those of real runs of JUBE 2.5.1 unless a comment says otherwise.
#include "engine/plan/plan.h"

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <sstream>

#include "engine/plan/estimate.h"
#include "engine/workflow/builtin_names.h"
#include "engine/workpackage/lineage.h"
#include "engine/workpackage/values.h"
#include "tests/engine/expand/small_workflow.h"

namespace tally {
namespace {

using Strings = std::vector<std::string>;

struct Planned {
  explicit Planned(const std::string& yaml)
      : benchmark(testing::small_workflow(yaml)),
        evaluator(make_evaluator("")),
        expander(benchmark, RunInfo{0, benchmark.name.value, "/home", "out/000000", ""}, *evaluator,
                 pool, {}),
        plan(make_plan(benchmark, expander, diagnostics)) {}

  std::string print(const PlanPrint& options = {}) const {
    std::ostringstream out;
    print_plan(plan, expander, pool, options, out);
    return out.str();
  }
  // "step value... iteration <parents>" of each workpackage, by id.
  Strings show(const Strings& names) const {
    Strings lines;
    for (const Workpackage& workpackage : plan.workpackages) {
      std::string line = benchmark.steps[static_cast<size_t>(workpackage.step)].name.value;
      for (const std::string& name : names) {
        for (const Binding& b : workpackage.point.bindings) {
          if (pool[b.name] != name) continue;
          line += ' ';
          line += pool[b.value];
        }
      }
      line += " i" + std::to_string(workpackage.iteration);
      for (const int id : workpackage.parents) line += " <" + std::to_string(id);
      lines.push_back(line);
    }
    return lines;
  }

  Benchmark benchmark;
  TextPool pool;
  std::unique_ptr<Evaluator> evaluator;
  Diagnostics diagnostics;
  Expander expander;
  Plan plan;
};

TEST_CASE("a workpackage has a value of every built-in name, in the order of the list") {
  const Planned p(R"yaml(
step: [{name: first}, {name: s, depend: first}])yaml");
  const std::set<Builtin> empty = {Builtin::benchmark_start, Builtin::wp_envstr,
                                   Builtin::wp_envlist};  // no run, and nothing is exported
  const WorkpackageValues values(p.benchmark, p.expander, p.plan.workpackages.back());
  Strings names, wanted;
  for (const auto& [name, value] : values.builtins()) names.push_back(name);
  for (const BuiltinName& builtin : builtin_names()) {
    wanted.emplace_back(builtin.id == Builtin::wp_parent_id ? parent_id_name("first")
                                                            : std::string(builtin.name));
    CAPTURE(wanted.back());
    REQUIRE(find_builtin(wanted.back()) != nullptr);
    CHECK(find_builtin(wanted.back())->id == builtin.id);
    const std::string* value = values.find(wanted.back());
    REQUIRE(value != nullptr);
    CHECK(value->empty() == (empty.count(builtin.id) != 0));
    if (builtin.type == ValueType::integer)
      CHECK(value->find_first_not_of("0123456789") == std::string::npos);
    CHECK(is_workpackage_name(builtin.name) == (builtin.phase == BuiltinPhase::workpackage));
  }
  CHECK(names == wanted);
}

TEST_CASE("steps without depend first, children when their parent finishes") {
  const Planned p(R"yaml(
step: [{name: c, depend: b}, {name: b, depend: a}, {name: a, iterations: 2}, {name: d},
       {name: e, depend: a}])yaml");
  CHECK(p.show({}) == Strings{"a i0", "a i1", "d i0", "b i0 <0", "e i0 <0", "b i1 <1", "e i1 <1",
                              "c i0 <3", "c i1 <5"});
}

TEST_CASE("a diamond keeps only parents that agree") {
  const Planned p(R"yaml(
parameterset: [{name: p, parameter: {name: a, _: "1,2"}}, {name: q, parameter: {name: b, _: "$a,9"}}]
step: [{name: r, use: p}, {name: s, depend: r, use: q}, {name: t, depend: r}, {name: u, depend: "s,t"}])yaml");
  CHECK(p.show({"a", "b"}) == Strings{"r 1 i0", "r 2 i0", "s 1 1 i0 <0", "s 1 9 i0 <0", "t 1 i0 <0",
                                      "s 2 2 i0 <1", "s 2 9 i0 <1", "t 2 i0 <1", "u 1 1 i0 <2 <4",
                                      "u 1 9 i0 <3 <4", "u 2 2 i0 <5 <7", "u 2 9 i0 <6 <7"});
}

TEST_CASE("combinations of parents: steps sorted by name, whatever the order of depend") {
  // One of the orders that JUBE takes at random.
  const Planned p(R"yaml(
parameterset: [{name: p, parameter: {name: a, _: "1,2"}}, {name: q, parameter: {name: b, _: "x,y"}},
  {name: r, parameter: {name: c, _: "K,L"}}]
step: [{name: zp, use: p}, {name: mq, use: q}, {name: ar, use: r}, {name: u, depend: "ar,mq,zp"}])yaml");
  const Strings all = p.show({"a", "b", "c"});
  CHECK(Strings(all.begin() + 6, all.end()) ==
        Strings{"u 1 x K i0 <4 <2 <0", "u 2 x K i0 <4 <2 <1", "u 1 y K i0 <4 <3 <0",
                "u 2 y K i0 <4 <3 <1", "u 1 x L i0 <5 <2 <0", "u 2 x L i0 <5 <2 <1",
                "u 1 y L i0 <5 <3 <0", "u 2 y L i0 <5 <3 <1"});
}

TEST_CASE("iterations count within the parents' iterations") {
  const Planned p(R"yaml(
step: [{name: z, iterations: 2}, {name: r, depend: z, iterations: 2}, {name: s, iterations: 3},
       {name: u, depend: "r,s", iterations: 2}])yaml");
  const Strings all = p.show({});
  REQUIRE(all.size() == 33);
  CHECK(all[9] == "u i0 <5 <2");
  CHECK(all[11] == "u i2 <5 <3");
  CHECK(all[15] == "u i6 <6 <2");
  CHECK(all[32] == "u i23 <8 <4");
  const Planned by_name(R"yaml(
step: [{name: b, iterations: 3}, {name: a, iterations: 2}, {name: w, depend: "a,b"}])yaml");
  const Strings w = by_name.show({});
  CHECK(Strings(w.begin() + 5, w.end()) == Strings{"w i0 <3 <0", "w i1 <3 <1", "w i2 <3 <2",
                                                   "w i3 <4 <0", "w i4 <4 <1", "w i5 <4 <2"});
  const Planned shared(R"yaml(
step: [{name: a, iterations: 2}, {name: y, depend: a}, {name: x, depend: a}, {name: z, depend: "x,y"}])yaml");
  const Strings z = shared.show({});
  CHECK(Strings(z.begin() + 6, z.end()) ==
        Strings{"z i0 <3 <2", "z i1 <3 <4", "z i1 <5 <2", "z i2 <5 <4"});
}

TEST_CASE("an inactive package gives its id back") {
  const Planned p(R"yaml(
parameterset: {name: p, parameter: {name: a, _: "1,2"}}
step: [{name: s, use: p, iterations: 2, active: "$jube_wp_iteration==1 or $a==2"},
       {name: t, depend: s, iterations: 2}])yaml");
  CHECK(p.show({"a"}) == Strings{"s 1 i1", "s 2 i0", "s 2 i1", "t 1 i2 <0", "t 1 i3 <0",
                                 "t 2 i0 <1", "t 2 i1 <1", "t 2 i2 <2", "t 2 i3 <2"});
  const Planned q(R"yaml(
parameterset: {name: p, parameter: {name: a, _: "1,2,3"}}
step: [{name: s, use: p, iterations: 2, active: "$a != 2 and $jube_wp_iteration == 0"},
       {name: t, depend: s, active: "$jube_wp_id % 2"}, {name: o, active: "false"},
       {name: n, use: p, active: "$a > 2"}])yaml");
  CHECK(q.show({"a"}) == Strings{"s 1 i0", "s 3 i0", "n 3 i0", "t 1 i0 <0"});
}

TEST_CASE("an active that is nothing of the kind") {
  const Planned p(R"yaml(step: {name: s, active: "maybe"})yaml");
  REQUIRE(p.diagnostics.error_count() == 1);
  CHECK(p.diagnostics.all()[0].message.find(
            "active=\"maybe\" is neither true, false nor a Python expression") !=
        std::string::npos);
}

TEST_CASE("iterations may name a parameter; nonsense is one error") {  // Tally's own
  const Planned p(R"yaml(
parameterset: {name: p, parameter: {name: a, _: "1,2"}}
step: {name: s, use: p, iterations: "$a"})yaml");
  CHECK(p.show({"a"}) == Strings{"s 1 i0", "s 2 i0", "s 2 i1"});
  const Planned bad(R"yaml(step: {name: s, iterations: "2x"})yaml");
  REQUIRE(bad.diagnostics.error_count() == 1);
  CHECK(bad.diagnostics.all()[0].message ==
        "step 's': iterations=\"2x\" is not a whole number of at least 1");
}

TEST_CASE("repeat: all points once, then all again") {  // Tally's own
  const Planned p(R"yaml(
parameterset: {name: p, parameter: {name: a, _: "1,2"}}
step: {name: s, use: p, kind: run, repeat: 3})yaml");
  CHECK(p.show({"a"}) == Strings{"s 1 i0", "s 2 i0", "s 1 i1", "s 2 i1", "s 1 i2", "s 2 i2"});
  CHECK(p.print() ==
        "plan  b: 2 points, 3 repeats -> 6 workpackages\n"
        "  #000000 s  a=1  repeat 1\n"
        "  #000001 s  a=2  repeat 1\n"
        "  #000002 s  a=1  repeat 2\n"
        "  #000003 s  a=2  repeat 2\n"
        "  #000004 s  a=1  repeat 3\n"
        "  #000005 s  a=2  repeat 3\n");
}

TEST_CASE("a package's own names are in its values") {
  const Planned p(R"yaml(
parameterset: {name: p, parameter: [{name: a, _: "1,2"}, {name: w, update_mode: step, _: "$jube_wp_id"}]}
step: [{name: s, use: p}, {name: t, depend: s}])yaml");
  CHECK(p.show({"a", "w"}) == Strings{"s 1 0 i0", "s 2 1 i0", "t 1 2 i0 <0", "t 2 3 i0 <1"});
}

TEST_CASE("what only a run can tell is listed, not run") {
  const Planned p(R"yaml(
parameterset: [{name: p, parameter: {name: a, _: "1"}}, {name: q, parameter: [
  {name: sh, mode: shell, _: "touch /nonexistent/$jube_wp_parent_s_id"}, {name: d, _: "<$sh>"},
  {name: py, mode: python, _: "open('/nonexistent/x').read()"}]}]
step: [{name: s, use: p}, {name: t, depend: s, use: q}])yaml");
  CHECK_FALSE(p.diagnostics.has_errors());
  REQUIRE(p.plan.workpackages.size() == 2);
  CHECK(p.plan.workpackages[1].outcome.state == State::pending);
  REQUIRE_FALSE(p.plan.unknown.empty());
  CHECK(p.print().find("known only to a run:\n") != std::string::npos);
  const Planned late(R"yaml(
parameterset: {name: q, parameter: [
  {name: sh, mode: shell, _: "touch /nonexistent/$jube_wp_parent_s_id"}, {name: d, _: "<$sh>"}]}
step: [{name: s}, {name: t, depend: s, use: q}])yaml");
  CHECK(late.plan.unknown == Strings{"parameter 'd' of step 't' reads what only a run can make",
                                     "parameter 'sh' of step 't' reads what only a run can make"});
}

TEST_CASE("a point that cannot be computed fails, has no children, and says why") {
  const Planned p(R"yaml(
parameterset: {name: p, parameter: [{name: k, _: "0,1"}, {name: a, mode: python, _: "1/$k"}]}
step: [{name: s, use: p}, {name: t, depend: s}])yaml");
  CHECK(p.show({"k"}) == Strings{"s 0 i0", "s 1 i0", "t 1 i0 <1"});
  CHECK(p.print().find("fails: Cannot evaluate \"1/0\" for parameter \"a\": division by zero\n") !=
        std::string::npos);
}

TEST_CASE("the printed plan: what varies, what does not, exclusions with their rule") {
  const Planned p(R"yaml(
name: llm
parameterset: {name: p, where: "nodes * 4 >= tp", parameter: [{name: nodes, _: "1,2"},
  {name: tp, _: "4,8"}, {name: text, _: "two words"}, {name: seq, _: "1024"}]}
step: [{name: corpus}, {name: train, use: p, depend: corpus, iterations: 2}])yaml");
  const std::string expected =
      "plan  llm: 4 points, 1 excluded -> 7 workpackages\n"
      "  the same everywhere: text='two words' seq=1024\n"
      "  #000000 corpus\n"
      "  #000001 train  nodes=1 tp=4  iteration 0  after #000000 corpus\n"
      "  #000002 train  nodes=1 tp=4  iteration 1  after #000000 corpus\n"
      "  #000003 train  nodes=2 tp=4  iteration 0  after #000000 corpus\n"
      "  #000004 train  nodes=2 tp=4  iteration 1  after #000000 corpus\n"
      "  #000005 train  nodes=2 tp=8  iteration 0  after #000000 corpus\n"
      "  #000006 train  nodes=2 tp=8  iteration 1  after #000000 corpus\n"
      "excluded by a rule:\n"
      "  train  nodes=1 tp=8  where: nodes * 4 >= tp\n";
  CHECK(p.print() == expected);
  CHECK(p.print() == p.print());
  PlanPrint few;
  few.most = 2;
  CHECK(p.print(few).find("  ... and 5 workpackages more (--all lists them)\n") !=
        std::string::npos);
}

TEST_CASE("jobs and node-hours") {
  const Planned p(R"yaml(
name: llm
parameterset: {name: executeset, parameter: [{name: nodes, _: "1,2"}, {name: scheduler, _: slurm},
  {name: submit_script, _: submit.job}, {name: limit, _: "00:30:00"}]}
step: [{name: train, kind: run, use: executeset, nodes: $nodes, time: $limit}])yaml");
  // A step without `launch` submits no job.
  CHECK(p.print().substr(0, 43) == "plan  llm: 2 points -> 2 workpackages\n  tra");
  Benchmark with_launch = p.benchmark;
  with_launch.steps[0].launch.value = "tally-train";
  TextPool pool;
  const auto evaluator = make_evaluator("");
  Expander expander(with_launch, RunInfo{0, "llm", "/home", "out/000000", ""}, *evaluator, pool,
                    {});
  Diagnostics diagnostics;
  const Plan plan = make_plan(with_launch, expander, diagnostics);
  std::ostringstream out;
  print_plan(plan, expander, pool, {}, out);
  CHECK(out.str() ==
        "plan  llm: 2 points -> 2 workpackages, 2 jobs, 1.5 node-hours at most\n"
        "  train: 1 job x 1 node x 00:30:00 = 0.5 node-hours at most\n"
        "  train: 1 job x 2 nodes x 00:30:00 = 1.0 node-hours at most\n"
        "  train asks for: nodes=$nodes time=00:30:00\n"
        "  the same everywhere: scheduler=slurm submit_script=submit.job limit=00:30:00\n"
        "  #000000 train  nodes=1  job 1/2  000000_train/work/submit.job\n"
        "  #000001 train  nodes=2  job 2/2  000001_train/work/submit.job\n");
}

TEST_CASE("limits of the queue, where they are set, stand behind the jobs") {
  const auto shown = [](const std::string& parameters, const char* retry = "0") {
    Planned p(
        "name: llm\nparameterset: {name: executeset, parameter: [{name: scheduler, _: slurm}, " +
        parameters + "]}\nstep: [{name: train, kind: run, use: executeset, time: 30m, nodes: 1}]");
    Benchmark benchmark = p.benchmark;
    benchmark.steps[0].retry.value = retry;
    benchmark.steps[0].launch.value = "tally-train";
    TextPool pool;
    const auto evaluator = make_evaluator("");
    Expander expander(benchmark, RunInfo{0, "llm", "/home", "out/000000", ""}, *evaluator, pool,
                      {});
    Diagnostics diagnostics;
    std::ostringstream out;
    print_estimate(estimate_jobs(make_plan(benchmark, expander, diagnostics), expander), out);
    return out.str();
  };
  const std::string jobs = "  train: 1 job x 1 node x 00:30:00 = 0.5 node-hours at most";
  CHECK(shown("{name: jobs_in_flight, _: '200'}, {name: pending_limit, _: 12h}") ==
        jobs + "; 200 jobs at once; waits for 12h at most\n");
  CHECK(shown("{name: pending_limit, _: '0:30:00'}") == jobs + "; waits for 0:30:00 at most\n");
  CHECK(shown("{name: jobs_in_flight, _: '1'}") == jobs + "; 1 job at once\n");
  CHECK(shown("{name: jobs_in_flight, _: '0'}, {name: pending_limit, _: '0'}") == jobs + "\n");
  CHECK(shown("{name: r, _: '2'}", "$r") ==
        "  train: 1 job x 1 node x 00:30:00 x 3 attempts = 1.5 node-hours at most\n");
}

// Nodes, time limit and platform's limits of one step with two points; what refusal() says.
std::string refused(const std::string& parameters, std::optional<double> limit = {},
                    const PackKeys& pack = {}) {
  Planned p(
      "name: llm\nparameterset: {name: executeset, parameter: [{name: i, _: '1,2'},\n"
      "  {name: scheduler, _: slurm}, " +
      parameters + "]}\nstep: [{name: train, kind: run, use: executeset}]");
  Benchmark benchmark = p.benchmark;
  benchmark.steps[0].launch.value = "tally-train";
  benchmark.steps[0].pack = pack;
  TextPool pool;
  const auto evaluator = make_evaluator("");
  Expander expander(benchmark, RunInfo{0, "llm", "/home", "out/000000", ""}, *evaluator, pool, {});
  Diagnostics diagnostics;
  return refusal(estimate_jobs(make_plan(benchmark, expander, diagnostics), expander), limit);
}

TEST_CASE("a run that may take too much is refused in one sentence") {
  const std::string job = "{name: nodes, _: '4'}, {name: timelimit, _: '01:30:00'}";
  CHECK(refused(job) == "");
  CHECK(refused(job, 12) == "");
  CHECK(refused(job, 11.5) ==
        "the run may take 12.0 node-hours in 2 jobs, more than the 11.5 that --max-node-hours "
        "allows");
  CHECK(refused(job, 0) != "");
  CHECK(refused(job + ", {name: max_node_hours, _: '10'}")
            .find("more than the 10 that "
                  "max_node_hours of its platform") != std::string::npos);
  CHECK(refused(job + ", {name: max_time, _: '02:00:00'}") == "");
  CHECK(refused(job + ", {name: max_time, _: '01:00:00'}") ==
        "the time limit 01:30:00 of step 'train' is beyond the 01:00:00 that its platform takes");
}

PackKeys packed(const char* kind, const char* size = "1000", const char* at_once = "1") {
  PackKeys keys;
  keys.kind.value = kind;
  keys.size.value = size;
  keys.at_once.value = at_once;
  return keys;
}

TEST_CASE("packs: an array costs what its tasks do, steps side by side what their rounds do") {
  const std::string job = "{name: nodes, _: '4'}, {name: timelimit, _: '01:30:00'}";
  CHECK(refused(job, 11, packed("array")).find("12.0 node-hours in 1 job,") != std::string::npos);
  CHECK(refused(job, 11, packed("steps")).find("12.0 node-hours in 1 job,") != std::string::npos);
  CHECK(refused(job, 5, packed("steps", "1000", "2")).find("6.0 node-hours in 1 job,") !=
        std::string::npos);
  CHECK(refused(job, 11, packed("steps", "1")).find("12.0 node-hours in 2 jobs,") !=
        std::string::npos);
  const std::string limited = job + ", {name: max_time, _: '02:00:00'}";
  CHECK(refused(limited, {}, packed("steps")) ==
        "2 workpackages of step 'train' in one job need 180 minutes, beyond the 02:00:00 that its "
        "platform takes; give pack a smaller size");
  CHECK(refused(limited, {}, packed("steps", "1000", "2")) == "");
}

TEST_CASE("node-hours that nobody knows are not below a limit") {
  const std::string job = "{name: nodes, _: '4'}, {name: timelimit, _: ''}";
  CHECK(refused(job) == "");
  CHECK(refused(job, 1000).find("the node-hours of 2 jobs are not known") == 0);
}

TEST_CASE("the exact bytes of one workpackage's files") {
  const Planned p("step: {name: s, iterations: 2}");
  PlanPrint options;
  options.script_of = 1;
  options.scripts = [](const Workpackage& workpackage) {
    return std::vector<std::pair<std::string, std::string>>{
        {"submit.job", "#!/bin/sh\nid=" + std::to_string(workpackage.id)}};
  };
  CHECK(p.print(options) == "#!/bin/sh\nid=1");
}

TEST_CASE("every state has a name") {
  CHECK(std::string(state_name(State::pending)) == "pending");
  CHECK(std::string(state_name(State::lost)) == "lost");
}

}  // namespace
}  // namespace tally
