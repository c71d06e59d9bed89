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
  CHECK(parse_duration("1e-1") == 0.1);
  // Behind days Slurm reads hours first: sbatch(1), --time.
  CHECK(parse_duration("1-02") == 26 * 3600.0);
  CHECK(parse_duration("1-02:03") == 26 * 3600.0 + 180);
  CHECK(parse_duration("1-02:03:04") == 26 * 3600.0 + 184);
  CHECK_FALSE(parse_duration("1-"));
  CHECK_FALSE(parse_duration("1-2h"));
  CHECK_FALSE(parse_duration("-1-02"));
  for (const char* long_one :
       {"99999999999999999999", "4000000000000000h", "9999999999999999:00:00",
        "99999999999999999999:00", "inf", "1e30d", "99999999999-00"})
    CHECK_FALSE(parse_duration(long_one));
  CHECK_FALSE(parse_duration("soon"));
  CHECK_FALSE(parse_duration("-5"));
  CHECK_FALSE(parse_duration("0x10"));
  CHECK_FALSE(parse_duration("1h30m"));
  CHECK_FALSE(parse_duration("1:2:3:4"));
}
