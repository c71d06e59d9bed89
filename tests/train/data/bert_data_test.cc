// Pairs, masks, shards and batches of encoders' samples; peer_bert_test.py compares them with the
// original's and with h5py.
#include <doctest/doctest.h>

#include <set>
#include <thread>

#include "src/data/encoders/bert_shards.h"
#include "src/data/encoders/encoder_loader.h"
#include "src/data/encoders/hdf5_chunk.h"
#include "src/data/encoders/sentence_pairs.h"
#include "tests/train/data/temp_dir.h"

using namespace tally::train;

namespace {

constexpr BertTokens kTokens{0, 1, 2, 3, 4};

EncoderSample sample_of(int32_t first, int64_t a, int64_t b) {
  EncoderSample s;
  s.ids = {kTokens.cls};
  for (int64_t i = 0; i < a; ++i) s.ids.push_back(first + static_cast<int32_t>(i));
  s.ids.push_back(kTokens.sep);
  s.token_types.assign(s.ids.size(), 0);
  for (int64_t i = 0; i < b; ++i) s.ids.push_back(first + 50 + static_cast<int32_t>(i));
  s.ids.push_back(kTokens.sep);
  s.token_types.resize(s.ids.size(), 1);
  s.next_sentence = first % 2;
  return s;
}

MaskingOptions masking() {
  return {0.15, 5, 1000, kTokens};
}

class List final : public EncoderSource {
 public:
  explicit List(std::vector<EncoderSample> samples) : samples_(std::move(samples)) {}
  int64_t samples_per_epoch() const override { return static_cast<int64_t>(samples_.size()); }
  int64_t sequence() const override { return 32; }
  void sample(int64_t index, EncoderSample* out) const override {
    *out = samples_[static_cast<size_t>(index) % samples_.size()];
  }

 private:
  std::vector<EncoderSample> samples_;
};

}  // namespace

TEST_CASE("masks: how many, where, and back") {
  for (const int64_t length : {1, 2, 10, 27}) {
    const EncoderSample plain = sample_of(100, length, length);
    EncoderSample s = plain;
    PhiloxDraws draws(3, Draw::masks, static_cast<uint64_t>(length));
    mask_tokens(masking(), &draws, &s);
    const size_t expected = length == 1 ? 1 : length == 2 ? 1 : length == 10 ? 3 : 5;
    CHECK(s.masked_positions.size() == expected);
    CHECK(s.masked_labels.size() == expected);
    CHECK(std::is_sorted(s.masked_positions.begin(), s.masked_positions.end()));
    for (const int32_t place : s.masked_positions) {
      CHECK(plain.ids[static_cast<size_t>(place)] != kTokens.cls);
      CHECK(plain.ids[static_cast<size_t>(place)] != kTokens.sep);
    }
    unmask_tokens(&s);
    CHECK(s.ids == plain.ids);
  }
}

TEST_CASE("no more is masked than there is") {
  EncoderSample s = sample_of(100, 1, 0);
  MaskingOptions all = masking();
  all.probability = 1;
  PhiloxDraws draws(3, Draw::masks, 0);
  mask_tokens(all, &draws, &s);
  CHECK(s.masked_positions == std::vector<int32_t>{1});
}

TEST_CASE("shards are read by many threads as by one") {
  const TempDir dir;
  std::vector<std::string> files;
  for (int32_t file = 0; file < 3; ++file) {
    std::vector<EncoderSample> samples;
    for (int32_t i = 0; i < 20 + file; ++i) {
      EncoderSample s = sample_of(100 + file * 100 + i, 1 + i % 7, 2);
      PhiloxDraws draws(1, Draw::masks, static_cast<uint64_t>(i));
      mask_tokens(masking(), &draws, &s);
      samples.push_back(s);
    }
    files.push_back(dir / ("training_" + std::to_string(file) + ".hdf5"));
    write_bert_shard(files.back(), samples, 16, 5);
  }
  CHECK(bert_shard_files(dir / "", true) == files);
  CHECK(error_of([&] { bert_shard_files(dir / "", false); })
            .find("has no .hdf5 files for "
                  "validation") != std::string::npos);
  BertShardOptions options;
  options.masking = masking();
  options.mode = Masking::dynamic;
  const auto source = open_bert_shards(files, options);
  CHECK(source->samples_per_epoch() == 63);
  CHECK(source->sequence() == 16);
  CHECK(source->max_predictions() == 5);
  std::vector<EncoderSample> alone(200), together(200);
  for (size_t i = 0; i < alone.size(); ++i) source->sample(static_cast<int64_t>(i), &alone[i]);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; i < together.size(); i += 4)
        source->sample(static_cast<int64_t>(i), &together[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < alone.size(); ++i) {
    CHECK(alone[i].ids == together[i].ids);
    CHECK(alone[i].masked_positions == together[i].masked_positions);
  }
}

TEST_CASE("a batch pads its samples and counts masked places through all rows") {
  EncoderSample first = sample_of(100, 3, 2), second = sample_of(7, 1, 1);
  first.masked_positions = {1, 3};
  first.masked_labels = {60, 61};
  second.masked_positions = {2};
  second.masked_labels = {62};
  second.label = 5;
  const List list({first, second});
  EncoderBatch batch;
  fill_batch(list, 1, 2, 0, 9, &batch);
  CHECK(batch.sequence == 8);
  CHECK(batch.ids == std::vector<int32_t>{2, 7, 3, 57, 3, 9, 9, 9,  //
                                          2, 100, 101, 102, 3, 150, 151, 3});
  CHECK(batch.token_types == std::vector<int32_t>{0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1});
  CHECK(batch.lengths == std::vector<int32_t>{5, 8});
  CHECK(batch.masked_positions == std::vector<int32_t>{2, 9, 11});
  CHECK(batch.masked_labels == std::vector<int32_t>{62, 60, 61});
  CHECK(batch.label == std::vector<int32_t>{5, -1});
  CHECK(batch.next_sentence == std::vector<int32_t>{1, 0});
  fill_batch(list, 0, 1, 12, 0, &batch);
  CHECK(batch.ids.size() == 12);
  CHECK(error_of([&] { fill_batch(list, 0, 2, 4, 0, &batch); }) ==
        "a sample has 8 tokens, and rows of the batch have 4: raise --seq-length");
}

TEST_CASE("loaders of all ranks together give every sample once, whatever the threads") {
  std::vector<EncoderSample> samples;
  for (int32_t i = 0; i < 30; ++i) samples.push_back(sample_of(100 + i, 1 + i % 9, 3));
  const auto list = std::make_shared<List>(samples);
  for (const int workers : {1, 4}) {
    std::vector<int32_t> seen(40);
    for (int rank = 0; rank < 2; ++rank) {
      EncoderLoader loader(list, {2, 0, rank, 2, 6}, 0, workers, 3);
      for (int64_t round = 0; round < 10; ++round) {
        const EncoderBatch& batch = loader.next();
        REQUIRE(batch.rows == 2);
        for (int64_t row = 0; row < 2; ++row) {
          const int64_t number = 6 + 2 * (2 * round + rank) + row;
          CHECK(batch.ids[static_cast<size_t>(row * batch.sequence) + 1] == 100 + number % 30);
          ++seen[static_cast<size_t>(number - 6)];
        }
      }
    }
    CHECK(seen == std::vector<int32_t>(40, 1));
  }
  // Those that are yet to come.
  for (const int workers : {1, 4}) {
    EncoderLoader loader(list, {2, 0, 0, 1, 0}, 0, workers, 4);
    for (int64_t round = 0; round < 10; ++round) {
      for (int64_t ahead = 3; ahead >= 0; --ahead)
        CHECK(loader.peek(ahead).ids[1] == 100 + 2 * (round + ahead) % 30);
      CHECK(loader.next().ids[1] == 100 + 2 * round % 30);
    }
    if (workers == 4) CHECK_THROWS_AS(loader.peek(4), std::invalid_argument);
  }
  EncoderLoader narrow(list, {2, 8, 0, 1, 0}, 0, 2);
  CHECK(narrow.next().sequence == 8);
  CHECK(error_of([&] { narrow.next(); }).find("rows of the batch have 8") != std::string::npos);
  CHECK_THROWS_AS(EncoderLoader(list, {2, 8, 1, 1, 0}, 0), std::invalid_argument);
}

TEST_CASE("stored integers of every size") {
  const unsigned char bytes[] = {0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F};
  CHECK(hdf5_integer(bytes, {1, true, true}) == -2);
  CHECK(hdf5_integer(bytes, {1, false, true}) == 254);
  CHECK(hdf5_integer(bytes, {2, true, false}) == -257);
  CHECK(hdf5_integer(bytes, {4, true, true}) == -2);
  CHECK(hdf5_integer(bytes, {4, false, true}) == 2147483647);
  CHECK(hdf5_integer(bytes, {8, true, true}) == 2147483647);
  CHECK(hdf5_integer(bytes, {8, true, false}) == -2147483647 - 1);
  std::vector<unsigned char> data{1, 2, 3, 4};
  CHECK(unpack_hdf5_chunk({{false}}, 0, 2, 4, &data) == "");
  CHECK(data == std::vector<unsigned char>{1, 3, 2, 4});
  CHECK(unpack_hdf5_chunk({{false}}, 1, 2, 4, &data) == "");
  CHECK(data == std::vector<unsigned char>{1, 3, 2, 4});
  CHECK(unpack_hdf5_chunk({{true}}, 1, 2, 8, &data) == "4 bytes are stored where 8 belong");
  CHECK(unpack_hdf5_chunk({{true}}, 0, 2, 8, &data).find("gzip data do not unpack") == 0);
}
