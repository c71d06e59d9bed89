// Durations as people and schedulers write them.
#include "engine/base/duration.h"

#include <doctest/doctest.h>

using namespace tally;

TEST_CASE("durations") {
  CHECK(parse_duration("90") == 90.0);
  CHECK(parse_duration("1.5h") == 5400.0);
  CHECK(parse_duration("10m") == 600.0);
  CHECK(parse_duration("02:30") == 150.0);
  CHECK(parse_duration("01:00:01") == 3601.0);
  CHECK(parse_duration("1-00:00:00") == 86400.0);
  CHECK_FALSE(parse_duration("soon"));
  CHECK_FALSE(parse_duration("-5"));
  CHECK_FALSE(parse_duration("1:2:3:4"));
}
