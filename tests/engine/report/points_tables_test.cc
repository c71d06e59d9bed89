// Points that rules choose and zipped lists make, as a table shows them.
#include <doctest/doctest.h>

#include <string>

#include "tests/engine/report/printed_tables.h"
#include "tests/support/workflows.h"

using tally::testing::has;
using tally::testing::kNodesTasks;
using tally::testing::one_step_bench;
using tally::testing::printed_outputs;
using tally::testing::printed_tables;
using tally::testing::Ran;

TEST_CASE("zip: lists that advance together, crossed with the rest") {
  std::string workflow;
  const std::string set =
      "zip: [nodes, tasks], parameter: [{name: nodes, type: int, _: \"1,2,4\"}, {name: tasks, "
      "type: "
      "int, _: \"2,4,8\"}, {name: m, _: \"a,b\"}]";
  workflow = one_step_bench(set, "do: \"echo v=$$(( $nodes * $tasks ))\"", "m, nodes, tasks, v");
  const Ran ran = printed_tables(workflow);
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out,
                    "| m | nodes | tasks |  v |\n"
                    "|---|-------|-------|----|\n"
                    "| a |     1 |     2 |  2 |\n"
                    "| b |     1 |     2 |  2 |\n"
                    "| a |     2 |     4 |  8 |\n"
                    "| b |     2 |     4 |  8 |\n"
                    "| a |     4 |     8 | 32 |\n"
                    "| b |     4 |     8 | 32 |\n"),
                ran.out);
}

TEST_CASE("where: a parameter has its type, and what is easily taken for another is an error") {
  std::string workflow;
  const auto error_of = [&](const std::string& rule, const std::string& parameters) {
    workflow = one_step_bench("where: \"" + rule + "\", parameter: [" + parameters + "]",
                              "kind: run, quiet_check: false, do: echo v=1", "v");
    const Ran ran = printed_tables(workflow);
    CHECK(ran.code != 0);
    const size_t begin = ran.err.find("Cannot evaluate");
    if (begin == std::string::npos) return ran.err;
    return ran.err.substr(begin, ran.err.find('\n', begin) - begin);
  };
  const auto kept = [&](const std::string& rule, const std::string& parameters,
                        const std::string& name) {
    workflow = one_step_bench("where: \"" + rule + "\", parameter: [" + parameters + "]",
                              "kind: run, quiet_check: false, do: echo $" + name, name);
    std::string all;
    for (const std::string& output : printed_outputs(workflow)) all += output;
    return all;
  };
  for (const char* type : {"", "type: string, "}) {
    const std::string ver = std::string("{name: ver, ") + type + "_: [12.9, 12.10, 12.1]}";
    CHECK(kept("ver != '12.10'", ver, "ver") == "12.9\n12.1\n");
    CHECK(kept("ver in ('12.9', '12.10')", ver, "ver") == "12.9\n12.10\n");
    CHECK(kept("'$ver' != '12.10'", ver, "ver") == "12.9\n12.1\n");
    CHECK(kept("ver.endswith('0') or ver + 'x' == '12.9x'", ver, "ver") == "12.9\n12.10\n");
    // Beside a number that it may be, it is text or number; beside any other it is a number.
    for (const char* rule : {"ver == 12.1", "12.1 != ver", "ver in (12.1, 12.9)"}) {
      CHECK(error_of(rule, ver) == "Cannot evaluate the rule \"" + std::string(rule) +
                                       "\": the type of 'ver' is string: give it `type: float`, or "
                                       "compare it with a text, as in ver == '12.10'");
    }
    CHECK(kept("ver == 12.9", ver, "ver") == "12.9\n");
    CHECK(kept("12.5 > ver and ver * 2 < 25 and -ver < 0 and 1 + ver > 13", ver, "ver") ==
          "12.10\n12.1\n");
  }
  const std::string typed = "{name: ver, type: float, _: [12.9, 12.10, 12.1]}";
  CHECK(kept("ver == 12.1", typed, "ver") == "12.10\n12.1\n");
  CHECK(kept("$ver == 12.1", "{name: ver, _: [12.9, 12.10]}", "ver") == "12.10\n");
  CHECK(kept("n != n or n < 0", "{name: n, type: float, _: [nan, 1, -inf]}", "n") == "nan\n-inf\n");
  const std::string numbers = "{name: n, _: [1, 2, 4, 10]}, {name: m, _: 3}";
  CHECK(kept("n != 2 and n in (1, 2, 10)", numbers, "n") == "1\n10\n");
  CHECK(kept("n > m", numbers, "n") == "4\n10\n");
  CHECK(kept("n + m <= 7 and n % 2 == 0", numbers, "n") == "2\n4\n");
  CHECK(kept("n & 1 or 'x' + n == 'x10'", numbers, "n") == "1\n10\n");
  CHECK(kept("len(range(n)) + [0, 2, 4, 6, 8][min(2, int(n))] == 8", numbers, "n") == "4\n");
  CHECK(kept("n", "{name: n, _: [0, 1, 0.0]}", "n") == "1\n");
  CHECK(error_of("n in {1, 2}", numbers) ==
        "Cannot evaluate the rule \"n in {1, 2}\": the type of 'n' is string, and a set or "
        "dictionary "
        "takes it neither for a number nor for a text: give it `type: int`, or write str(n), or a "
        "list");
  const std::string amp = "{name: amp, _: [false, true]}";
  for (const char* rule : {"amp", "not amp", "amp and w", "amp == True", "amp in (True,)"}) {
    CHECK(error_of(rule, amp + ", {name: w, type: int, _: 1}") ==
          "Cannot evaluate the rule \"" + std::string(rule) +
              "\": 'amp' is the text 'false', which is neither True nor False: write amp == "
              "'false'");
  }
  CHECK(kept("$amp", amp, "amp") == "true\n");
  CHECK(kept("amp == 'true'", amp, "amp") == "true\n");
  CHECK(kept("true", amp, "amp") == "false\ntrue\n");
  CHECK(kept("' True '", amp, "amp") == "false\ntrue\n");
}
