#include "src/train/commands/batch_search.h"

#include <doctest/doctest.h>

#include <set>

using namespace tally::train;

TEST_CASE("the largest that fits is found from any start, and none is asked for twice") {
  for (const int64_t most : {1, 2, 7, 100}) {
    for (int64_t largest = 0; largest <= most; ++largest) {
      for (int64_t start = 1; start <= most + 3; ++start) {
        CAPTURE(most);
        CAPTURE(largest);
        CAPTURE(start);
        std::set<int64_t> asked;
        CHECK(largest_that_fits(start, most, [&](int64_t n) {
                CHECK(n >= 1);
                CHECK(n <= most);
                CHECK(asked.insert(n).second);
                return n <= largest;
              }) == largest);
      }
    }
  }
}

TEST_CASE("a good guess needs few tries, a bad one not many") {
  for (const auto& [start, few] : {std::pair{1000, 9}, std::pair{960, 10}, std::pair{64, 40}}) {
    int tries = 0;
    largest_that_fits(start, 1 << 30, [&](int64_t n) { return ++tries, n <= 1000; });
    CHECK(tries <= few);
  }
}
