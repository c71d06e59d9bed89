// Positions, masks and document starts. The expected values are those of Megatron-Core 0.16.1's
// _get_ltor_masks_and_position_ids(data, 9, True, True, True, True): its position ids, its loss
// mask, and of its attention mask the first column that each row attends to.
#include "src/data/tokens/documents.h"

#include <doctest/doctest.h>

#include <random>

#include "src/data/tokens/batches.h"

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

TEST_CASE("a loader counts the targets of micro batches that it has not given yet") {
  const auto plain = std::make_shared<Documents>();
  const auto source = with_document_ends(plain, {eod, true, false, false});
  for (const int hold : {0, 1, 6}) {
    BatchLoader loader(source, {2, 8, 0, 1, 0}, {}, 3, hold), again(source, {2, 8, 0, 1, 0});
    for (int step = 0; step < 5; ++step) {
      const int64_t counted = loader.counted(3);
      CHECK(loader.counted(3) == counted);
      CHECK(loader.counted(1) <= counted);
      int64_t sum = 0;
      for (int k = 0; k < 3; ++k) {
        const HostBatch batch = loader.next(), expected = again.next();
        CHECK(std::equal(batch.ids, batch.ids + 16, expected.ids));
        sum += batch.counted;
      }
      CHECK(counted == sum);
    }
    CHECK_THROWS_AS(loader.counted(4), std::invalid_argument);
  }
  CHECK(BatchLoader(plain, {2, 8, 0, 1, 0}).counted(2) == 2 * 16);
}

namespace {

// Megatron-Core's function, statement by statement, for a row of any tokens.
struct Megatron {
  explicit Megatron(const std::vector<int32_t>& data)
      : attends(data.size(), std::vector<bool>(data.size())),
        loss_mask(data.size(), 1),
        position_ids(data.size()) {
    const size_t n = data.size();
    std::vector<size_t> eod_index;
    for (size_t i = 0; i < n; ++i) {
      position_ids[i] = static_cast<int32_t>(i);
      for (size_t j = 0; j <= i; ++j) attends[i][j] = true;
      if (data[i] != eod) continue;
      loss_mask[i] = 0;
      eod_index.push_back(i);
    }
    size_t prev_index = 0;
    for (const size_t i : eod_index) {
      for (size_t r = i + 1; r < n; ++r) {
        for (size_t c = 0; c < i + 1; ++c) attends[r][c] = false;
        position_ids[r] -= static_cast<int32_t>(i + 1 - prev_index);
      }
      prev_index = i + 1;
    }
  }
  std::vector<std::vector<bool>> attends;
  std::vector<int32_t> loss_mask, position_ids;
};

// Whether cu_seqlens lets each token attend to what Megatron's mask does: its document up to itself.
bool same_attention(const int32_t* cu_seqlens, int64_t row, const Megatron& want) {
  const auto tokens = static_cast<int64_t>(want.attends.size());
  const auto document = [&](int64_t t) {
    int64_t d = 0;
    while (cu_seqlens[d + 1] <= row * tokens + t) ++d;
    return d;
  };
  bool same = true;
  for (int64_t i = 0; i < tokens; ++i)
    for (int64_t j = 0; j < tokens; ++j)
      same &= (j <= i && document(i) == document(j)) ==
              want.attends[static_cast<size_t>(i)][static_cast<size_t>(j)];
  return same;
}

// Random rows in which every other token, or none, ends a document; known by the sample's number.
class RandomDocuments final : public SampleSource {
 public:
  static constexpr int64_t sequence = 13;
  int64_t samples_per_epoch() const override { return 1000; }
  void sample(int64_t index, int32_t* out) const override {
    std::mt19937 random(static_cast<uint32_t>(index));
    for (int64_t t = 0; t <= sequence; ++t)
      out[t] = random() % 4 < static_cast<uint32_t>(index % 4) ? eod : 1 + random() % 8;
  }
};

}  // namespace

// Positions and first attended columns by Megatron-Core 0.16.1 for each row by itself; beginnings
// count through the micro batch.
TEST_CASE("a micro batch's documents are those of its rows") {
  const std::vector<int32_t> ids{1, 2, 9, 3, 4, 5, 9, 6,  //
                                 9, 9, 1, 2, 3, 4, 5, 9,  //
                                 1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<int32_t> positions(24, -7), cu_seqlens(25, -7);
  describe_documents(ids.data(), 3, 8, eod, positions.data(), cu_seqlens.data());
  CHECK(positions == std::vector<int32_t>{0, 1, 2, 0, 1, 2, 3, 0,  //
                                          0, 0, 0, 1, 2, 3, 4, 5,  //
                                          0, 1, 2, 3, 4, 5, 6, 7});
  std::vector<int32_t> begins{0, 3, 7, 8, 9, 10, 16};
  begins.resize(25, 24);
  CHECK(cu_seqlens == begins);
  // Each by itself.
  std::vector<int32_t> other(24, -7);
  describe_documents(ids.data(), 3, 8, eod, other.data(), nullptr);
  CHECK(other == positions);
  other.assign(25, -7);
  describe_documents(ids.data(), 3, 8, eod, nullptr, other.data());
  CHECK(other == begins);
}

TEST_CASE("a loader gives positions, documents and targets by Megatron's rule, as they are asked") {
  const auto plain = std::make_shared<RandomDocuments>();
  const int64_t rows = 3, tokens = RandomDocuments::sequence;
  for (int flags = 0; flags < 8; ++flags) {
    CAPTURE(flags);
    const DocumentEnds ends{eod, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0};
    BatchLoader loader(with_document_ends(plain, ends), {rows, tokens, 1, 2, 6});
    for (int64_t k = 0; k < 25; ++k) {  // more than the loader has places for
      const HostBatch batch = loader.next();
      CHECK((batch.positions != nullptr) == ends.reset_positions);
      CHECK((batch.cu_seqlens != nullptr) == ends.reset_attention);
      int64_t counted = 0;
      for (int64_t row = 0; row < rows; ++row) {
        std::vector<int32_t> sample(static_cast<size_t>(tokens) + 1);
        plain->sample(6 + rows * (2 * k + 1) + row, sample.data());
        const std::vector<int32_t> ids(sample.begin(), sample.end() - 1);
        const Megatron want(ids);
        std::vector<int32_t> targets(sample.begin() + 1, sample.end());
        for (size_t t = 0; t < targets.size(); ++t) {
          if (ends.mask_loss && want.loss_mask[t] == 0) targets[t] = -1;
          counted += targets[t] >= 0;
        }
        const auto part = [&](const int32_t* all) {
          return std::vector<int32_t>(all + row * tokens, all + (row + 1) * tokens);
        };
        CHECK(part(batch.ids) == ids);
        CHECK(part(batch.targets) == targets);
        if (batch.positions) CHECK(part(batch.positions) == want.position_ids);
        if (batch.cu_seqlens) CHECK(same_attention(batch.cu_seqlens, row, want));
      }
      CHECK(batch.counted == (ends.mask_loss ? counted : -1));
      if (batch.cu_seqlens) CHECK(batch.cu_seqlens[rows * tokens] == rows * tokens);
    }
  }
}
