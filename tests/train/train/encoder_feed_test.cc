// How an encoder's micro batch is laid out, with padding and without.
#include "src/train/feed/encoder_feed.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/train/run/device.h"

using namespace tally::train;
using Numbers = std::vector<int32_t>;

namespace {

// Samples of these lengths in rows of six tokens: sample k has tokens 10 k + 1 onwards.
EncoderBatch batch_of(const Numbers& lengths) {
  EncoderBatch b;
  b.rows = static_cast<int64_t>(lengths.size());
  b.sequence = 6;
  b.lengths = lengths;
  for (int32_t k = 0; k < static_cast<int32_t>(lengths.size()); ++k) {
    for (int32_t i = 0; i < 6; ++i) {
      const bool real = i < lengths[static_cast<size_t>(k)];
      b.ids.push_back(real ? 10 * k + i + 1 : 0);
      b.token_types.push_back(real && i > 1 ? 1 : 0);
    }
    b.masked_positions.push_back(6 * k + 1);
    b.masked_labels.push_back(50 + k);
    b.next_sentence.push_back(k % 2);
    b.label.push_back(k);
    b.start.push_back(1);
    b.end.push_back(4);  // beyond a sample of three
  }
  return b;
}

ModelConfig bert(Task task) {
  ModelConfig m;
  m.set_kind("bert");
  m.task = task;
  m.vocabulary = 100;
  return m;
}

EncoderArrays laid_out(const Numbers& lengths, const FeedOptions& options,
                       const ModelConfig& model = bert(Task::pretraining)) {
  EncoderArrays a;
  lay_out(batch_of(lengths), model, options, &a);
  return a;
}

}  // namespace

TEST_CASE("without padding: one row of the real tokens") {
  const EncoderArrays a = laid_out({3, 5}, {});
  CHECK(a.rows == 1);
  CHECK(a.columns == 8);
  CHECK(a.packed);
  CHECK(a.ids == Numbers{1, 2, 3, 11, 12, 13, 14, 15});
  CHECK(a.token_types == Numbers{0, 0, 1, 0, 0, 1, 1, 1});
  CHECK(a.positions == Numbers{0, 1, 2, 0, 1, 2, 3, 4});
  CHECK(a.cu_seqlens == Numbers{0, 3, 8, 8, 8});
  CHECK(a.firsts == Numbers{0, 3});
  CHECK(a.lengths == Numbers{3, 5});
  CHECK(a.masked == Numbers{1, 4});
  CHECK(a.labels[0] == Numbers{50, 51});
  CHECK(a.labels[1] == Numbers{0, 1});
  CHECK(a.real_tokens == 8);
}

TEST_CASE("with padding: rows, and padding apart from the sample before it") {
  const EncoderArrays a = laid_out({3, 5}, {true, 6});
  CHECK(a.rows == 2);
  CHECK(a.columns == 6);
  CHECK_FALSE(a.packed);
  CHECK(a.ids == Numbers{1, 2, 3, 0, 0, 0, 11, 12, 13, 14, 15, 0});
  CHECK(a.positions.empty());
  CHECK(a.cu_seqlens == Numbers{0, 3, 6, 11, 12});
  CHECK(a.firsts == Numbers{0, 6});
  CHECK(a.masked == Numbers{1, 7});
  // Rows as long as the longest sample, rounded up.
  CHECK(laid_out({3, 1}, {true, 4}).columns == 4);
  CHECK(laid_out({3, 5}, {true, 4}).columns == 6);  // no longer than --seq-length
}

TEST_CASE("samples of equal length need no borders") {
  for (const bool pad : {false, true}) {
    const EncoderArrays a = laid_out({4, 4, 4}, {pad, 1});
    CHECK(a.rows == 3);
    CHECK(a.columns == 4);
    CHECK(a.cu_seqlens.empty());
    CHECK(a.positions.empty());
    CHECK(a.ids == Numbers{1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24});
  }
}

TEST_CASE("labels that do not count, and tokens beyond the vocabulary") {
  const EncoderArrays a = laid_out({3, 5}, {}, bert(Task::question_answering));
  CHECK(a.labels[0] == Numbers{1, 1});
  CHECK(a.labels[1] == Numbers{-1, 4});
  CHECK(a.counted[0] == 2);
  CHECK(a.counted[1] == 1);
  CHECK(a.masked.empty());
  // A model without the head for the next sentence has no labels of it.
  ModelConfig masked_alone = bert(Task::pretraining);
  masked_alone.next_sentence = false;
  CHECK(laid_out({3, 5}, {}, bert(Task::pretraining)).counted == LabelCounts{2, 2});
  CHECK(laid_out({3, 5}, {}, masked_alone).counted == LabelCounts{2, 0});
  ModelConfig small = bert(Task::classification);
  small.vocabulary = 15;
  try {
    laid_out({3, 5}, {}, small);
    FAIL("token 15 is not in the vocabulary");
  } catch (const std::runtime_error& e) {
    CHECK(std::string(e.what()).find("holds token 15, and the vocabulary has 15 tokens") !=
          std::string::npos);
  }
}

// The record's name of the attention depends on it: kernels ask for the scale, too.
TEST_CASE("encoder feed: the attention's shape has all that kernels ask for") {
  Config c;
  c.model = bert(Task::classification);
  c.model.hidden = 768;
  c.model.heads = 12;
  c.micro_batch = 4;
  c.sequence = 128;
  for (const bool documents : {false, true}) {
    const AttentionShape shape = attention_shape(c, documents);
    CHECK(shape.scale == doctest::Approx(1 / std::sqrt(64.0)));
    CHECK(shape.head_dim == 64);
    CHECK(shape.batch * shape.tokens == 4 * 128);
    CHECK(shape.longest == (documents ? 128 : 0));
    CHECK_FALSE(shape.causal());
  }
}
