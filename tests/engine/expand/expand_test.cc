// Expected orders and values are those of real runs of JUBE 2.5.1 unless a comment says otherwise.
#include "engine/expand/expand.h"

#include <doctest/doctest.h>

#include <array>
#include <map>
#include <memory>

#include "engine/expand/substitute.h"
#include "tests/engine/expand/small_workflow.h"

namespace tally {
namespace {

using Strings = std::vector<std::string>;

// A benchmark with what expands it.
struct Bench {
  explicit Bench(const std::string& yaml, std::set<std::string> tags = {})
      : benchmark(testing::small_workflow(yaml)),
        evaluator(make_evaluator("")),
        expander(benchmark, RunInfo{3, benchmark.name.value, "/home", "out/000003", "2026"},
                 *evaluator, pool, tags) {}

  StepPoints expand(const std::string& step, const std::vector<const Point*>& parents = {}) {
    return expander.expand(*benchmark.find_step(step), parents, diagnostics);
  }
  std::string value(const Point& point, const std::string& name) const {
    for (const Binding& b : point.bindings) {
      if (pool[b.name] == name) return pool[b.value];
    }
    return "<none>";
  }
  // The values of `names` at each point, joined by blanks; an error in its place.
  Strings show(const StepPoints& points, const Strings& names) const {
    Strings lines;
    for (size_t i = 0; i < points.points.size(); ++i) {
      std::string line;
      for (const std::string& name : names) {
        if (&name != &names.front()) line += ' ';
        line += value(points.points[i], name);
      }
      lines.push_back(points.errors.count(i) == 0 ? line : points.errors.at(i).text);
    }
    return lines;
  }
  Strings show(const std::string& step, const Strings& names) { return show(expand(step), names); }

  Benchmark benchmark;
  TextPool pool;
  std::unique_ptr<Evaluator> evaluator;
  Expander expander;
  Diagnostics diagnostics;
};

TEST_CASE("the first parameter is slowest, later-born lists vary fastest") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: a, _: "1,2"},
  {name: d, mode: python, _: "'10,20' if $a==1 else '20,30'"}, {name: c, separator: ";", _: "x;y"}]}
step: {name: s, use: p})yaml");
  CHECK(b.show("s", {"a", "d", "c"}) ==
        Strings{"1 10 x", "1 20 x", "1 10 y", "1 20 y", "2 20 x", "2 30 x", "2 20 y", "2 30 y"});
}

TEST_CASE("lists from scripts come after the lists that were there") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: d, mode: python, _: "'u,v'"},
  {name: e, mode: python, _: "'k,l'"}, {name: a, _: "1,2"}]}
step: {name: s, use: p})yaml");
  CHECK(b.show("s", {"d", "e", "a"}) ==
        Strings{"u k 1", "u l 1", "v k 1", "v l 1", "u k 2", "u l 2", "v k 2", "v l 2"});
}

TEST_CASE("a list made of a script's list") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: d, mode: python, _: "'u,v'"},
  {name: e, mode: python, _: "'$d'+'k,l'"}, {name: f, mode: python, _: "'m,n'"}]}
step: {name: s, use: p})yaml");
  CHECK(b.show("s", {"d", "e", "f"}) ==
        Strings{"u uk m", "u l m", "u uk n", "u l n", "v vk m", "v l m", "v vk n", "v l n"});
}

TEST_CASE("sets of one step: file order") {
  Bench b(R"yaml(
parameterset: [{name: pa, parameter: {name: a, _: "1,2"}}, {name: pb, parameter: {name: b, _: "x,y"}}]
step: [{name: s, use: [pa, pb]}, {name: t, use: "pb,pa"}])yaml");
  CHECK(b.show("s", {"a", "b"}) == Strings{"1 x", "1 y", "2 x", "2 y"});
  CHECK(b.show("t", {"a", "b"}) == Strings{"1 x", "2 x", "1 y", "2 y"});
}

TEST_CASE("pieces are stripped, empty ones count, an empty separator never splits") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: a, _: "a,,b,"}, {name: b, _: "  x y  "},
  {name: c, separator: "", _: " 1,2 "}, {name: e, _: ""}, {name: f, separator: "||", _: "u || v"}]}
step: {name: s, use: p})yaml");
  const StepPoints points = b.expand("s");
  REQUIRE(points.points.size() == 8);
  CHECK(b.show(points, {"a"}) == Strings{"a", "a", "", "", "b", "b", "", ""});
  CHECK(b.value(points.points[0], "b") == "x y");
  CHECK(b.value(points.points[0], "c") == "1,2");
  CHECK(b.value(points.points[0], "e").empty());
  CHECK(b.value(points.points[1], "f") == "v");
}

TEST_CASE("a value that a reference brings is split by its own parameter's separator") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: a, separator: ";", _: "1,2"}, {name: b, _: "$a"},
  {name: c, separator: ";", _: "$a"}]}
step: {name: s, use: p})yaml");
  CHECK(b.show("s", {"a", "b", "c"}) == Strings{"1,2 1 1,2", "1,2 2 1,2"});
}

TEST_CASE("one piece of a list stays one value") {
  // JUBE gives c=1: it splits the piece again and keeps the place it had in the first list.
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: b, separator: ";", _: "1,2"}, {name: c, _: "$b,9"}]}
step: {name: s, use: p})yaml");
  CHECK(b.show("s", {"c"}) == Strings{"1,2", "9"});
}

TEST_CASE("chains resolve in any order and any length") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: l, _: "1,2"}, {name: a, _: "$b"}, {name: b, _: "$c"},
  {name: c, _: "$d"}, {name: d, _: "$e"}, {name: e, _: "$f"}, {name: f, _: "$g"}, {name: g, _: "$h"},
  {name: h, mode: python, _: "$l + 1"}]}
step: {name: s, use: p})yaml");
  CHECK(b.show("s", {"a"}) == Strings{"2", "3"});
}

TEST_CASE("cycles and names that nobody gives are left as they are") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: x, _: "$y"}, {name: y, _: "$x"},
  {name: z, mode: python, _: "'$x'+'1'"}, {name: PATH, _: "/x:$PATH"}, {name: q, _: "$PATH"},
  {name: c, mode: python, _: "'$c'+'1'"}, {name: n, _: "$nope/x"},
  {name: f, mode: python, _: "'$nope'+'1'"}]}
step: {name: s, use: p})yaml");
  CHECK(b.show("s", {"x", "y", "z", "PATH", "q", "c", "n", "f"}) ==
        Strings{"$y $x $x1 /x:$PATH $PATH $c1 $nope/x $nope1"});
}

TEST_CASE("names built from values") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: n, _: "a,b"}, {name: v_a, _: "1"}, {name: v_b, _: "2,3"},
  {name: r, _: "${v_$n}"}, {name: q, mode: python, _: "${v_$n}*2"}]}
step: {name: s, use: p})yaml");
  CHECK(b.show("s", {"n", "r", "q"}) == Strings{"a 1 2", "a 1 2", "b 2 4", "b 3 6"});
}

TEST_CASE("a script's result is not substituted again") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: a, _: "1,2"}, {name: n, mode: python, _: "chr(36)+'a'"},
  {name: m, _: "$n"}, {name: k, mode: python, _: "'x$m'"}]}
step: {name: s, use: p})yaml");
  CHECK(b.show("s", {"n", "m", "k"}) == Strings{"$a $a x$a", "$a $a x$a"});
}

TEST_CASE("modes: shell keeps its newline unless split, env, perl, tag") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: a, mode: shell, _: "echo hi"},
  {name: b, mode: shell, _: "echo 1,2"}, {name: c, mode: perl, _: "3*4"},
  {name: e, mode: env, _: "HOME"}, {name: t, mode: tag, _: big}, {name: u, mode: tag, _: small},
  {name: v, mode: python, _: "' x '"}]}
step: {name: s, use: p})yaml",
          {"big"});
  const StepPoints points = b.expand("s");
  REQUIRE(points.points.size() == 2);
  CHECK(b.show(points, {"a", "b", "c", "t", "u", "v"}) ==
        Strings{"hi\n 1 12 big   x ", "hi\n 2 12 big   x "});
  CHECK(b.value(points.points[0], "e") == getenv("HOME"));
}

TEST_CASE("computed values that are not allowed") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: a, type: int, _: "1,2,3"},
  {name: half, type: int, mode: python, allowed: ">= 1", _: $a // 2},
  {name: word, mode: python, allowed: "one,two", _: "['none', 'one', 'two', 'three'][$a]"}]}
step: {name: s, use: p})yaml");
  CHECK(b.show("s", {"a", "half", "word"}) ==
        Strings{"parameter 'half' has to be >= 1, not '0'", "2 1 two",
                "parameter 'word' has to be one of one, two, not 'three'"});
}

TEST_CASE("types") {  // 2.7.1: int takes what int(float(v)) takes
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: a, type: int, _: "1,07,1.5,1_0,x,1e3,inf,"},
  {name: f, type: float, _: "1e3"}]}
step: {name: s, use: p})yaml");
  CHECK(b.show("s", {"a"})[2] == "\"1.5\" from \"a\" cannot be represented as a \"int\"");
  b.benchmark.rules = Rules::jube();
  CHECK(b.show("s", {"a", "f"}) == Strings{"1 1e3", "07 1e3", "1.5 1e3", "1_0 1e3",
                                           "\"x\" from \"a\" cannot be represented as a \"int\"",
                                           "1e3 1e3",
                                           "\"inf\" from \"a\" cannot be represented as a \"int\"",
                                           "\"\" from \"a\" cannot be represented as a \"int\""});
}

TEST_CASE("a value that cannot be computed fails its point only") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: k, _: "0,1"}, {name: a, mode: python, _: "1/$k"},
  {name: e, mode: python, _: "$a * 2"}]}
step: {name: s, use: p})yaml");
  CHECK(b.show("s", {"k", "a", "e"}) ==
        Strings{"Cannot evaluate \"1/0\" for parameter \"a\": division by zero", "1 1.0 2.0"});
  CHECK_FALSE(b.diagnostics.has_errors());
}

TEST_CASE("one parameter with two values in two sets") {
  Bench b(R"yaml(
parameterset: [{name: p, parameter: {name: a, _: "1,2"}}, {name: q, parameter: {name: a, _: "1,3"}},
  {name: r, parameter: [{name: a, type: int, _: "1,2"}, {name: b, _: "3"}]}]
step: [{name: s, use: [p, q]}, {name: t, use: [p, r]}])yaml");
  CHECK(b.show("t", {"a", "b"}) == Strings{"1 3", "2 3"});
  CHECK(b.expand("s").points.empty());
  REQUIRE(b.diagnostics.error_count() == 1);
  CHECK(b.diagnostics.all()[0].message ==
        "Cannot use parameterset 'q' in step 's'.\n"
        "Parameter 'a' is/are already defined by a different parameterset.");
  CHECK(b.diagnostics.all()[0].mark.line == 4);
}

TEST_CASE("sets whose names depend on parameters") {
  Bench b(R"yaml(
parameterset: [{name: p, parameter: [{name: w, _: "A,B"}, {name: i, _: "1,2"}]},
  {name: setA, parameter: [{name: x, _: "1,2"}, {name: v, _: A}]},
  {name: setB, parameter: [{name: x, _: "7"}, {name: y, _: "8"}, {name: v, _: A}]},
  {name: finA, parameter: {name: z, _: "p,q"}}]
step: [{name: s, use: ["fin$v", "set$w", p]}, {name: bad, use: "set$nope"}])yaml");
  CHECK(b.show("s", {"w", "x", "y", "i", "z"}) ==
        Strings{"A 1 <none> 1 p", "A 1 <none> 1 q", "A 2 <none> 1 p", "A 2 <none> 1 q",
                "A 1 <none> 2 p", "A 1 <none> 2 q", "A 2 <none> 2 p", "A 2 <none> 2 q", "B 7 8 1 p",
                "B 7 8 1 q", "B 7 8 2 p", "B 7 8 2 q"});
  CHECK_FALSE(b.diagnostics.has_errors());
  b.expand("bad");
  REQUIRE(b.diagnostics.error_count() == 1);
  CHECK(b.diagnostics.all()[0].message == "<use>set$nope</use> not found in available sets");
}

TEST_CASE("a value may wait for a set that is still to come") {
  // JUBE evaluates u too early and gives $x7.
  Bench b(R"yaml(
parameterset: [{name: p, parameter: [{name: w, _: A}, {name: t, _: "$x.t"},
  {name: u, mode: python, _: "'$x'*2"}]}, {name: setA, parameter: {name: x, _: "7,8"}}]
step: {name: s, use: [p, "set$w"]})yaml");
  CHECK(b.show("s", {"t", "u", "x"}) == Strings{"7.t 77 7", "8.t 88 8"});
}

TEST_CASE("built-ins of the run and the step") {
  Bench b(R"yaml(
name: bench
parameterset: {name: p, parameter: [
  {name: a, _: "$jube_benchmark_name.$jube_benchmark_id.$jube_benchmark_padid"},
  {name: b, _: "$jube_step_name.$jube_step_iterations.$jube_step_cycles"},
  {name: c, mode: python, _: "'$jube_benchmark_name'.upper()"}]
}
step: {name: s, use: p, iterations: 2, cycles: 3})yaml");
  CHECK(b.show("s", {"a", "b", "c"}) == Strings{"bench.3.000003 s.2.3 BENCH"});
}

// ---- parents

TEST_CASE("a child has its parent's values and crosses its own lists with them") {
  Bench b(R"yaml(
parameterset: [{name: p, parameter: {name: a, _: "1,2"}},
  {name: q, parameter: [{name: b, _: "$a,9"}, {name: c, mode: python, _: "$b*10"}]}]
step: [{name: s, use: p}, {name: t, depend: s, use: q}, {name: u, depend: s, use: p}])yaml");
  const StepPoints parents = b.expand("s");
  CHECK(b.show(b.expand("t", {&parents.points[1]}), {"a", "b", "c"}) ==
        Strings{"2 2 20", "2 9 90"});
  CHECK(b.show(b.expand("u", {&parents.points[1]}), {"a"}) == Strings{"2"});
}

TEST_CASE("a later step resolves what no set of an earlier one knew") {
  Bench b(R"yaml(
parameterset: [{name: p, parameter: [{name: exe, _: "run ${folder}/x"}, {name: m, _: "$joined"},
    {name: piece, _: "$joined,z"}, {name: escaped, _: "$$folder $folder"},
    {name: script, mode: shell, _: "printf %s '$folder'"}, {name: of_script, _: "<$script>"}]},
  {name: q, parameter: [{name: folder, _: f}, {name: joined, separator: ";", _: "3,4"}]}]
step: [{name: s, use: p}, {name: t, depend: s}, {name: u, depend: t, use: q},
  {name: v, depend: u}])yaml");
  const Strings names{"exe", "m", "piece", "escaped", "script", "of_script"};
  const StepPoints s = b.expand("s");
  CHECK(b.show(s, names).front() ==
        "run ${folder}/x $joined $joined $folder $folder $folder <$folder>");
  const StepPoints t = b.expand("t", {&s.points[0]});
  CHECK(b.show(t, names) == Strings{b.show(s, names).front()});
  const StepPoints u = b.expand("u", {&t.points[0]});
  const Strings resolved{"run f/x 3 3 $folder $folder $folder <$folder>",
                         "run f/x 4 3 $folder $folder $folder <$folder>"};
  CHECK(b.show(u, names) == resolved);
  CHECK(b.show(b.expand("v", {&u.points[1]}), names) == Strings{resolved[1]});
  // The same from what a run kept of its points.
  Point kept;
  for (const Binding& binding : s.points[0].bindings) {
    REQUIRE(b.expander.restore(b.expander.definition_key(binding), b.pool[binding.value],
                               binding.index, &kept.bindings.emplace_back()));
  }
  CHECK(b.show(b.expand("u", {&kept}), names) == resolved);
}

TEST_CASE("parents that disagree give no points") {
  Bench b(R"yaml(
parameterset: [{name: p, parameter: {name: a, _: "1,2"}}, {name: q, parameter: {name: b, _: "x,y"}},
  {name: r, parameter: {name: e, _: "1,1"}}]
step: [{name: s, use: p}, {name: t, use: [p, q]}, {name: u, depend: "s,t"}, {name: v, use: r},
  {name: w, depend: v}])yaml");
  const StepPoints s = b.expand("s");
  const StepPoints t = b.expand("t");
  CHECK(b.show(b.expand("u", {&s.points[0], &t.points[1]}), {"a", "b"}) == Strings{"1 y"});
  CHECK(b.expand("u", {&s.points[0], &t.points[2]}).points.empty());
  // Equal values from different places of a list are different points.
  const StepPoints v = b.expand("v");
  CHECK(b.expand("w", {&v.points[0], &v.points[1]}).points.empty());
}

TEST_CASE("a set that defines an inherited parameter") {
  Bench b(R"yaml(
parameterset: [{name: p, parameter: [{name: a, _: "1,2"}, {name: c, _: "5"}]},
  {name: q, parameter: {name: a, _: "1"}}, {name: r, parameter: {name: c, _: "5"}},
  {name: r3, parameter: {name: c, update_mode: use, _: "6"}},
  {name: r4, parameter: {name: c, mode: python, _: "2+3"}}]
step: [{name: s, use: p}, {name: t, depend: s, use: q}, {name: u, depend: s, use: r},
  {name: w, depend: s, use: r3}, {name: x, depend: s, use: r4}])yaml");
  const StepPoints s = b.expand("s");
  CHECK(b.expand("t", {&s.points[0]}).points.empty());
  CHECK(b.expand("t", {&s.points[1]}).points.empty());
  CHECK(b.diagnostics.warning_count() == 1);  // once, not for each parent
  CHECK(b.show(b.expand("u", {&s.points[0]}), {"a", "c"}) == Strings{"1 5"});
  CHECK(b.show(b.expand("w", {&s.points[0]}), {"a", "c"}) == Strings{"1 6"});
  CHECK(b.expand("x", {&s.points[0]}).points.empty());
}

TEST_CASE("update modes step and use") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: a, _: "1,2"},
  {name: n, mode: python, update_mode: step, _: "'$jube_step_name'+'_$a'"},
  {name: m, mode: python, _: "'$jube_step_name'"}, {name: k, _: "$n.$m"},
  {name: o, update_mode: use, _: "$jube_step_name"}]}
step: [{name: s, use: p}, {name: t, depend: s}, {name: v, depend: t, use: p}])yaml");
  const StepPoints s = b.expand("s");
  CHECK(b.show(s, {"n", "m", "k", "o"}) == Strings{"s_1 s s_1.s s", "s_2 s s_2.s s"});
  const StepPoints t = b.expand("t", {&s.points[1]});
  CHECK(b.show(t, {"n", "m", "k", "o"}) == Strings{"t_2 s s_2.s s"});
  CHECK(b.show(b.expand("v", {&t.points[0]}), {"n", "m", "k", "o"}) == Strings{"v_2 s s_2.s v"});
}

TEST_CASE("an updated list is expanded again, faster than the step's own") {
  Bench b(R"yaml(
parameterset: [{name: p, parameter: {name: a, update_mode: step, _: "1,2"}},
  {name: q, parameter: [{name: b, _: "x,y"}, {name: d, _: "$a-$b,0"},
                        {name: c, mode: python, _: "'$a'+',k'"}]}]
step: [{name: s, use: p}, {name: t, depend: s, use: q}])yaml");
  const StepPoints s = b.expand("s");
  const Strings points = b.show(b.expand("t", {&s.points[0]}), {"a", "b", "d", "c"});
  REQUIRE(points.size() == 16);
  CHECK(Strings(points.begin(), points.begin() + 6) ==
        Strings{"1 x 1-x 1", "1 x 1-x k", "2 x 2-x 2", "2 x 2-x k", "1 x 0 1", "1 x 0 k"});
  CHECK(points[8] == "1 y 1-y 1");
}

TEST_CASE("parents may disagree about what is updated") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: {name: a, update_mode: step, mode: python, _: "'$jube_step_name'"}}
step: [{name: s, use: p}, {name: t, use: p}, {name: u, depend: "s,t"}])yaml");
  const StepPoints s = b.expand("s");
  const StepPoints t = b.expand("t");
  CHECK(b.show(b.expand("u", {&s.points[0], &t.points[0]}), {"a"}) == Strings{"u"});
}

// ---- one workpackage's own names

TEST_CASE("values that need jube_wp_* wait for finish()yaml") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: a, _: "1,2"}, {name: w, _: "$jube_wp_id"},
  {name: q, mode: python, _: "$jube_wp_id*10"}, {name: r, mode: python, _: "$q+$a"},
  {name: l, _: "i$jube_wp_id,z"}, {name: m, mode: python, _: "str($jube_wp_id)+',5'"}]}
step: {name: s, use: p})yaml");
  StepPoints s = b.expand("s");
  REQUIRE(s.points.size() == 4);
  CHECK_FALSE(b.expander.is_final(s.points[0]));
  CHECK(b.value(s.points[0], "w") == "$jube_wp_id");
  for (size_t i = 0; i < 4; ++i) {
    CHECK(b.expander.finish(b.benchmark.steps[0], s.points[i],
                            {{"jube_wp_id", std::to_string(i)}}) == "");
    CHECK(b.expander.is_final(s.points[i]));
  }
  // JUBE leaves $m unresolved here; a late value is one value.
  CHECK(b.show(s, {"a", "w", "q", "r", "l", "m"}) ==
        Strings{"1 0 0 1 i0 0,5", "1 1 10 11 z 1,5", "2 2 20 22 i2 2,5", "2 3 30 32 z 3,5"});
}

TEST_CASE("update mode cycle") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: a, _: "1,2"},
  {name: c, update_mode: cycle, _: "$a.$jube_wp_cycle"}, {name: n, _: "$c"},
  {name: l, update_mode: always, _: "u$jube_wp_cycle,v$jube_wp_cycle"}]}
step: {name: s, use: p})yaml");
  StepPoints s = b.expand("s");
  REQUIRE(s.points.size() == 4);
  const Step& step = b.benchmark.steps[0];
  CHECK(b.expander.finish(step, s.points[3], {{"jube_wp_cycle", "0"}}).empty());
  CHECK(b.show(s, {"c", "n", "l"})[3] == "2.0 2.0 v0");
  CHECK(b.expander.update(step, s.points[3], {{"jube_wp_cycle", "1"}}).empty());
  CHECK(b.show(s, {"c", "n", "l"})[3] == "2.1 2.0 v1");
}

// The counts and values that JUBE 2.5.1 has (tests/peer/jube/w_update_list_*, w_update_readers).
TEST_CASE("lists of each update mode, and who reads the value of the step before") {
  const auto points = [](const std::string& mode, const std::string& use) {
    Bench b("parameterset: {name: p, parameter: [{name: f, update_mode: " + mode +
            ", _: \"x,y\"}]}\nstep: [{name: s, use: p}, {name: t, depend: s" + use + "}]");
    const StepPoints s = b.expand("s");
    REQUIRE(s.points.size() == 2);
    StepPoints t = b.expander.expand(b.benchmark.steps[1], {&s.points[1]}, b.diagnostics);
    std::string values;
    for (Point& point : t.points) {
      CHECK(b.expander.finish(b.benchmark.steps[1], point, {}).empty());
      values += b.pool[point.bindings.front().value];
    }
    return values;
  };
  for (const auto& [mode, unused, used] :
       std::vector<std::array<std::string, 3>>{{"never", "y", "y"},
                                               {"use", "y", "xy"},
                                               {"step", "xy", "xy"},
                                               {"cycle", "y", "y"},
                                               {"always", "y", "xy"}}) {
    CAPTURE(mode);
    CHECK(points(mode, "") == unused);
    CHECK(points(mode, ", use: p") == used);
  }
  Bench b(
      "parameterset: {name: p, parameter: [{name: c, update_mode: cycle, _: c-$jube_step_name}, "
      "{name: s, update_mode: step, _: <$c>}, {name: a, update_mode: always, _: \"[$c]\"}]}\n"
      "step: [{name: s, use: p}, {name: t, depend: s}]");
  StepPoints s = b.expand("s");
  StepPoints t = b.expander.expand(b.benchmark.steps[1], {&s.points[0]}, b.diagnostics);
  CHECK(b.expander.finish(b.benchmark.steps[1], t.points[0], {}).empty());
  CHECK(b.show(t, {"c", "s", "a"}) == Strings{"c-t <c-s> [c-t]"});
}

TEST_CASE("finish() tells what could not be computed") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: q, mode: python, _: "1/$jube_wp_id"},
  {name: i, type: int, _: "x$jube_wp_id"}]}
step: {name: s, use: p})yaml");
  StepPoints s = b.expand("s");
  Point other = s.points[0];
  CHECK(b.expander.finish(b.benchmark.steps[0], s.points[0], {{"jube_wp_id", "0"}}) ==
        "Cannot evaluate \"1/0\" for parameter \"q\": division by zero");
  CHECK(b.expander.finish(b.benchmark.steps[0], other, {{"jube_wp_id", "1"}}) ==
        "\"x1\" from \"i\" cannot be represented as a \"int\"");
}

TEST_CASE("bindings survive as texts") {
  Bench b(R"yaml(
parameterset: {name: p, parameter: [{name: a, _: "1,2"}, {name: w, _: "$jube_wp_id"}]}
step: {name: s, use: p})yaml");
  const StepPoints s = b.expand("s");
  for (const Binding& binding : s.points[1].bindings) {
    Binding again{};
    REQUIRE(b.expander.restore(b.expander.definition_key(binding), b.pool[binding.value],
                               binding.index, &again));
    CHECK(again.name == binding.name);
    CHECK(again.value == binding.value);
    CHECK(again.index == binding.index);
    CHECK(again.definition == binding.definition);
  }
  Binding none{};
  CHECK_FALSE(b.expander.restore("p/nope", "1", 0, &none));
  CHECK_FALSE(b.expander.restore("nope/a", "1", 0, &none));
}

// ---- Tally's own: rules and zips

TEST_CASE("rules leave points out and say which") {
  Bench b(R"yaml(
parameterset: {name: p, where: ["nodes * 4 >= tp", "$nodes != 8"],
  parameter: [{name: nodes, _: "1,2,8"}, {name: tp, _: "4,8"}, {name: name, _: it's}]}
step: {name: s, use: p})yaml");
  const StepPoints s = b.expand("s");
  CHECK(b.show(s, {"nodes", "tp"}) == Strings{"1 4", "2 4", "2 8"});
  REQUIRE(s.excluded.size() == 3);
  CHECK(b.value(s.excluded[0].point, "tp") == "8");
  CHECK(s.excluded[0].rule.value == "nodes * 4 >= tp");
  CHECK(s.excluded[1].rule.value == "$nodes != 8");
}

TEST_CASE("rules see numbers as numbers and texts as texts; a broken one fails its points") {
  Bench b(R"yaml(
parameterset: {name: p, where: ["k in ('007', 'a\\'b') or f > 1e2 and 10 / f", "text != 'x y'"],
  parameter: [{name: k, _: "1,a'b"}, {name: f, type: float, _: "1e3,5"}, {name: text, _: x z}]}
step: {name: s, use: p})yaml");
  CHECK(b.show("s", {"k", "f"}) == Strings{"1 1e3", "a'b 1e3", "a'b 5"});
  Bench broken(R"yaml(
parameterset: {name: p, where: "1 / k", parameter: {name: k, _: "0,1"}}
step: {name: s, use: p})yaml");
  CHECK(broken.show("s", {"k"}) ==
        Strings{"Cannot evaluate the rule \"1 / k\": division by zero", "1"});
}

TEST_CASE("zipped parameters advance together") {
  Bench b(R"yaml(
parameterset: {name: p, zip: "a,c", parameter: [{name: a, _: "1,2,3"}, {name: b, _: "x,y"},
  {name: c, mode: python, _: "'7,8,9'"}]}
step: {name: s, use: p})yaml");
  CHECK(b.show("s", {"a", "b", "c"}) ==
        Strings{"1 x 7", "2 x 8", "3 x 9", "1 y 7", "2 y 8", "3 y 9"});
  Bench text(R"yaml(
parameterset: {name: p, zip: "a,c", parameter: [{name: a, _: "1,2"}, {name: b, _: "x,y"},
  {name: c, _: "7,8"}]}
step: {name: s, use: p})yaml");
  CHECK(text.show("s", {"a", "b", "c"}) == Strings{"1 x 7", "1 y 7", "2 x 8", "2 y 8"});
}

TEST_CASE("zipped lists of unequal length") {
  Bench b(R"yaml(
parameterset: {name: p, zip: "a,c", parameter: [{name: a, _: "1,2"}, {name: c, _: "7,8,9"}]}
step: {name: s, use: p})yaml");
  b.expand("s");
  REQUIRE(b.diagnostics.error_count() == 1);
  CHECK(b.diagnostics.all()[0].message ==
        "zipped parameters differ in their number of values: a has 2, c has 3");
  CHECK(b.diagnostics.all()[0].mark.line == 2);
}

TEST_CASE("more points than memory are refused at once") {
  std::string yaml = "parameterset: {name: p, parameter: [";
  for (int i = 0; i < 8; ++i) {
    yaml.append("{name: p").append(1, static_cast<char>('a' + i));
    yaml += ", _: \"0,1,2,3,4,5,6,7,8,9\"},";
  }
  Bench b(yaml + "]}\nstep: {name: s, use: p}");
  b.expand("s");
  REQUIRE(b.diagnostics.error_count() == 1);
  CHECK(b.diagnostics.all()[0].message.find("at least 100000000 points") != std::string::npos);
}

}  // namespace
}  // namespace tally
