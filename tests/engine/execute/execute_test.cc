#include <doctest/doctest.h>

#include "tests/engine/execute/run_fixture.h"

using namespace tally;
using namespace tally::testing;

TEST_CASE("a step over two values: folders, output, marks") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1,2")}));
  run.add(step_of("gen", {"echo run $p $jube_wp_id"}, {"ps"}));
  const RunSummary summary = run.run();
  CHECK(summary.done == 2);
  CHECK(summary.exit_code() == 0);
  CHECK(run.file("000000_gen/work/stdout") == "run 1 0\n");
  CHECK(run.file("000001_gen/work/stdout") == "run 2 1\n");
  CHECK(run.has("000000_gen/done"));
  CHECK(run.has("000001_gen/done"));
}
