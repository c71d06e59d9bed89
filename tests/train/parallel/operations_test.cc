// What rank 0 finds out from what all ranks do.
#include "src/parallel/control/operations.h"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

using namespace tally::train;

namespace {

using Clock = OperationWatch::Clock;
constexpr double limit = 60;

// Four ranks: two tensor parallel groups, and the group of all.
struct Four {
  Four() {
    for (size_t r = 0; r < 4; ++r) {
      const int first = r < 2 ? 0 : 2;
      watches[r].add_group("world", "world", {0, 1, 2, 3});
      watches[r].add_group("world/0", "tensor", {first, first + 1});
      watches[r].seconds_in_operation(start, false);
    }
  }
  // All ranks as they are `seconds` later.
  std::vector<RankActivity> after(double seconds) {
    const auto now =
        start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    std::vector<RankActivity> all;
    for (OperationWatch& watch : watches) watch.seconds_in_operation(start, false);
    for (OperationWatch& watch : watches)
      all.push_back(decode_activity(encode(watch.activity(now))));
    return all;
  }
  std::string message(double seconds) {
    const auto failure = explain_wait(after(seconds), limit);
    return failure ? "rank " + std::to_string(failure->rank) + ": " + failure->message : "";
  }

  const Clock::time_point start = Clock::now();
  std::array<OperationWatch, 4> watches;
};

const std::string end = "; --distributed-timeout-minutes sets the limit";

}  // namespace

TEST_CASE("the rank that waits for the one that does not come is named, not those behind it") {
  Four ranks;
  for (const size_t r : {0, 1}) ranks.watches[r].begin(0, "all-reduce");
  ranks.watches[3].begin(1, "all-gather");
  ranks.watches[2].set_iteration(17);
  CHECK(ranks.message(59).empty());
  CHECK(ranks.message(61) ==
        "rank 3: it has waited for 61 s in all-gather of the tensor parallel group (ranks 2, 3); "
        "rank 2 did not come: it is in iteration 17 and waits for no other rank" +
            end);
}

TEST_CASE("ranks that call different operations") {
  Four ranks;
  for (const size_t r : {0, 1, 3}) ranks.watches[r].begin(0, "all-reduce");
  ranks.watches[2].begin(0, "broadcast");
  CHECK(
      ranks.message(61) ==
      "rank 0: it has waited for 61 s in all-reduce of the group of all ranks (ranks 0, 1, 2, 3); "
      "rank 2 called broadcast instead" +
          end);
}

TEST_CASE("a message that is not sent") {
  Four ranks;
  ranks.watches[1].begin(1, "receive from", 0);
  CHECK(ranks.message(61) ==
        "rank 1: it has waited for 61 s in receive from rank 0 of the tensor parallel group "
        "(ranks 0, 1); rank 0 did not come: it waits for no other rank" +
            end);
}

TEST_CASE("nobody waits too long for a rank that writes a checkpoint") {
  Four ranks;
  for (const size_t r : {0, 1, 3}) ranks.watches[r].begin(0, "all-reduce");
  ranks.watches[2].set_task("writes a checkpoint");
  CHECK(ranks.message(3600).empty());
  ranks.watches[2].set_task(nullptr);
  CHECK(!ranks.message(3600).empty());
}

TEST_CASE("ranks that have passed an operation have come; what did not answer is said to be so") {
  Four ranks;
  for (OperationWatch& watch : ranks.watches) watch.begin(0, "broadcast");
  ranks.watches[0].end();
  std::vector<RankActivity> all = ranks.after(61);
  const auto unclear = explain_wait(all, limit);
  REQUIRE(unclear);
  CHECK(unclear->message.find("did not come") == std::string::npos);
  all[2] = {};
  all[2].known = false;
  CHECK(explain_wait(all, limit)->message ==
        "it has waited for 61 s in broadcast of the group of all ranks (ranks 0, 1, 2, 3); rank 2 "
        "did not come: it does not answer" +
            end);
}

TEST_CASE("a GPU that does not finish: the last operations of each group are named") {
  Four ranks;
  for (OperationWatch& watch : ranks.watches) {
    watch.begin(1, "reduce-scatter");
    watch.end();
    watch.begin(-1, "device");
  }
  CHECK(ranks.message(61) ==
        "rank 0: it has waited for its device for 61 s, which may wait in the last reduce-scatter "
        "of the tensor parallel group (ranks 0, 1)" +
            end);
}

TEST_CASE("time in which this process was suspended does not count") {
  OperationWatch watch;
  const Clock::time_point start = Clock::now();
  watch.begin(watch.add_group("world", "world", {0, 1}), "all-reduce");
  using std::chrono::seconds;
  CHECK(watch.seconds_in_operation(start, false) == 0);
  CHECK(watch.seconds_in_operation(start + seconds(5), false) == 5);
  CHECK(watch.seconds_in_operation(start + seconds(3600), true) == 0);
  CHECK(watch.seconds_in_operation(start + seconds(3602), false) == 2);
  watch.end();
  CHECK(watch.seconds_in_operation(start + seconds(3603), false) == 0);
}
