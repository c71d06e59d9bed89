// Positions, masks and document starts. The expected values are those of Megatron-Core 0.16.1's
// _get_ltor_masks_and_position_ids(data, 9, True, True, True, True): its position ids, its loss
// mask, and of its attention mask the first column that each row attends to.
#include "src/data/documents.h"

#include <doctest/doctest.h>

#include "src/data/batches.h"

using namespace tally::train;

namespace {

constexpr int32_t eod = 9;

struct Row {
  std::vector<int32_t> ids, positions, loss_mask, first_attended;
};

const std::vector<Row> rows{
    {{1, 2, 9, 3, 4, 5, 9, 6},
     {0, 1, 2, 0, 1, 2, 3, 0},
     {1, 1, 0, 1, 1, 1, 0, 1},
     {0, 0, 0, 3, 3, 3, 3, 7}},
    {{9, 1, 9, 9, 2}, {0, 0, 1, 0, 0}, {0, 1, 0, 0, 1}, {0, 1, 1, 3, 4}},
    {{1, 2, 3, 9}, {0, 1, 2, 3}, {1, 1, 1, 0}, {0, 0, 0, 0}},
    {{1, 2, 3}, {0, 1, 2}, {1, 1, 1}, {0, 0, 0}},
    {{9, 9, 9}, {0, 0, 0}, {0, 0, 0}, {0, 1, 2}},
    {{1}, {0}, {1}, {0}},
};

// Sample n is rows[0]'s ids with n at its end.
class Documents final : public SampleSource {
 public:
  int64_t samples_per_epoch() const override { return 10; }
  void sample(int64_t index, int32_t* out) const override {
    std::copy(rows[0].ids.begin(), rows[0].ids.end(), out);
    out[8] = static_cast<int32_t>(100 + index);
    if (index == 1) out[0] = eod;
  }
};

}  // namespace

TEST_CASE("position ids restart after each end of a document") {
  for (const Row& row : rows) {
    std::vector<int32_t> positions(row.ids.size(), -7);
    document_positions(row.ids.data(), static_cast<int64_t>(row.ids.size()), eod, positions.data());
    CHECK(positions == row.positions);
  }
}

TEST_CASE("targets of an end of a document do not count") {
  for (const Row& row : rows) {
    std::vector<int32_t> targets(row.ids.size(), 5), expected;
    int64_t sum = 0;
    for (const int32_t counts : row.loss_mask) {
      expected.push_back(counts == 1 ? 5 : -1);
      sum += counts;
    }
    CHECK(mask_document_ends(row.ids.data(), static_cast<int64_t>(row.ids.size()), eod,
                             targets.data()) == sum);
    CHECK(targets == expected);
  }
  // Targets that did not count before do not count now.
  std::vector<int32_t> targets{-1, 3};
  CHECK(mask_document_ends(std::vector<int32_t>{1, 2}.data(), 2, eod, targets.data()) == 1);
}

TEST_CASE("documents start where attention's first column changes, and end with the row") {
  for (const Row& row : rows) {
    const auto tokens = static_cast<int32_t>(row.ids.size());
    std::vector<int32_t> expected{0};
    for (const int32_t first : row.first_attended)
      if (first != expected.back()) expected.push_back(first);
    expected.push_back(tokens);
    CHECK(document_starts(row.ids.data(), tokens, eod) == expected);
  }
}

TEST_CASE("a loader of masked samples marks targets and says how many count") {
  const auto plain = std::make_shared<Documents>();
  BatchLoader all(plain, {2, 8, 0, 1, 0});
  CHECK(all.next().counted == -1);
  BatchLoader masked(with_document_ends(plain, {eod, true, false, false}), {2, 8, 0, 1, 0});
  HostBatch batch = masked.next();
  CHECK(batch.counted == 6 + 5);
  const std::vector<int32_t> targets(batch.targets, batch.targets + 16);
  CHECK(targets == std::vector<int32_t>{2, 9, -1, 4, 5, 9, -1, 100,  //
                                        -1, 9, -1, 4, 5, 9, -1, 101});
  CHECK(batch.ids[2] == eod);
  CHECK(masked.next().counted == 12);
}
