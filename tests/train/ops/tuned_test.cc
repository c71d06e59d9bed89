// Ranks that exchange what autotuning has chosen.
#include "src/ops/tuned.h"

#include <doctest/doctest.h>

using namespace tally::train;

TEST_CASE("each call takes the choice of the first rank that has one") {
  CHECK(first_choices({}).empty());
  CHECK(first_choices({"choice a 1\n", "choice a 2\nchoice b 3\n", "choice b 4\n"}) ==
        "choice a 1\nchoice b 3\n");
}

TEST_CASE("a GEMM has one choice: an algorithm of the library, or a tile of our own kernel") {
  CHECK(first_choices({"gemm k 1f 2\n", "choice float64/k 3\n"}) == "gemm k 1f 2\n");
  CHECK(first_choices({"choice float64/k 3\n", "gemm k 1f 2\n"}) == "choice float64/k 3\n");
}

TEST_CASE("nothing is tuned on a CPU") {
  const auto s = make_stream(Device{});
  adopt_algorithms(*s, "choice a 1\n");
  CHECK(tuned_algorithms(*s).empty());
}
