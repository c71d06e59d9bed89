#include "src/parallel/nvlink/shares.h"

#include <doctest/doctest.h>

#include <vector>

using namespace tally::train;

namespace {

// How often the pieces of all ranks and rounds have each element.
std::vector<int> covered(int64_t count, int ranks, int64_t share, int64_t slot) {
  std::vector<int> times(static_cast<size_t>(count));
  for (int64_t round = 0; round < rounds_of(share, slot); ++round)
    for (int rank = 0; rank < ranks; ++rank) {
      const SharePiece p = piece_of(count, share, slot, rank, round);
      REQUIRE(p.count >= 0);
      REQUIRE(p.count <= slot);
      for (int64_t i = 0; i < p.count; ++i) {
        REQUIRE(p.first + i < count);
        ++times[static_cast<size_t>(p.first + i)];
      }
    }
  return times;
}

}  // namespace

TEST_CASE("pieces have every element once and fit their slot") {
  for (const int ranks : {2, 3, 4, 7, 8})
    for (const int64_t count : {1, 2, 127, 128, 129, 255, 257, 1000, 4096, 12345})
      for (const int64_t slot : {1, 128, 384, 1000, 100000}) {
        CAPTURE(ranks);
        CAPTURE(count);
        CAPTURE(slot);
        const std::vector<int> once(static_cast<size_t>(count), 1);
        CHECK(covered(count, ranks, share_of(count, ranks), slot) == once);
        // A reduce-scatter's shares are what its parts are.
        const std::vector<int> parts(static_cast<size_t>(count * ranks), 1);
        CHECK(covered(count * ranks, ranks, count, slot) == parts);
      }
}

TEST_CASE("shares start at multiples of 128 elements, and no rank has much more than its part") {
  CHECK(share_of(1, 2) == 128);
  CHECK(share_of(256, 2) == 128);
  CHECK(share_of(257, 2) == 256);
  CHECK(share_of(25'000'000, 4) == 6'250'112);
  // The last ranks' shares of a small tensor are empty.
  CHECK(piece_of(200, share_of(200, 4), 1000, 1, 0).count == 72);
  CHECK(piece_of(200, share_of(200, 4), 1000, 2, 0).count == 0);
  CHECK(piece_of(200, share_of(200, 4), 1000, 3, 0).count == 0);
}

TEST_CASE("rounds go through a share in its order, and the last is what is left") {
  CHECK(rounds_of(1000, 300) == 4);
  CHECK(piece_of(2000, 1000, 300, 1, 0).first == 1000);
  CHECK(piece_of(2000, 1000, 300, 1, 3).first == 1900);
  CHECK(piece_of(2000, 1000, 300, 1, 3).count == 100);
  CHECK(piece_of(2000, 1000, 300, 1, 4).count == 0);
}
