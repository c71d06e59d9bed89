// Input files that the tests of several folders begin with.
#pragma once

#include <doctest/doctest.h>

#include <string>

namespace tally::testing {

// A benchmark of one parameter set and one step, whose output `v=NUMBER` is the table's last
// column. Each argument is the inside of a YAML flow mapping or list.
inline std::string one_step_bench(const std::string& set, const std::string& step,
                                  const std::string& columns, const std::string& table = {}) {
  return "name: b\noutpath: run\nparameterset: {name: ps, " + set +
         "}\n"
         "patternset: {name: pt, pattern: {name: v, type: float, _: \"v=$jube_pat_fp\"}}\n"
         "step: {name: s, use: ps, " +
         step +
         "}\n"
         "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, style: pretty, column: [" +
         columns + "]" + table + "}}\n";
}
// For its first argument.
inline constexpr const char* kNodesTasks =
    "parameter: [{name: nodes, type: int, _: \"1,2,4\"}, {name: tasks, type: int, _: \"2,4,8\"}]";

// A file of Tally's keys: n = 1, 2, 4; n=2 prints its rate and fails.
inline std::string middle_fails(const std::string& table = {}) {
  return "name: b\noutpath: run\n"
         "parameterset: {name: ps, parameter: {name: n, type: int, _: \"1,2,4\"}}\n"
         "patternset: {name: pt, pattern: {name: rate, type: float, _: \"rate=$jube_pat_fp\"}}\n"
         "step: {name: s, kind: run, use: ps, do: \"echo rate=$n.5; test $n -ne 2\"}\n"
         "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, column: [n, rate]" +
         table + "}}\n";
}

// `what` stands in the text at least once; its first place is changed.
inline std::string with_replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

}  // namespace tally::testing
