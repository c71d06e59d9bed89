// The tokens that are scored, and the checks of a dataset before.
#include "src/train/score/evaluation.h"

#include <doctest/doctest.h>

#include <memory>

#include "src/data/tokens/documents.h"
#include "src/train/feed/data_sources.h"
#include "tests/train/train/numbers_source.h"

using namespace tally::train;

TEST_CASE("a text's blocks score every token but the first once, with the context of the stride") {
  std::vector<int32_t> tokens(11);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i) + 100;
  for (int64_t stride = 1; stride <= 4; ++stride) {
    for (size_t size = 2; size <= tokens.size(); ++size) {
      CAPTURE(stride);
      CAPTURE(size);
      const auto blocks = make_text_blocks({tokens.begin(), tokens.begin() + size}, 4, stride);
      CHECK(blocks->targets() == static_cast<int64_t>(size) - 1);
      std::vector<int32_t> scored;
      for (int64_t k = 0; k < blocks->blocks(); ++k) {
        std::vector<int32_t> ids(4), targets(4);
        blocks->fill(k, ids.data(), targets.data());
        int fresh = 0;
        for (size_t j = 0; j < 4; ++j) {
          if (targets[j] < 0) continue;
          ++fresh;
          CHECK(targets[j] == ids[j] + 1);
          CHECK(ids[0] == 100 + k * stride);
          if (k > 0) CHECK(static_cast<int64_t>(j) >= 4 - stride);
          scored.push_back(targets[j]);
        }
        CHECK(fresh > 0);
      }
      CHECK(scored == std::vector<int32_t>(tokens.begin() + 1, tokens.begin() + size));
    }
  }
}

TEST_CASE("losses of held-out data: a head without labels leaves no mean") {
  EvaluatedLosses losses;
  losses.mean = 2.5;
  losses.counted = {3, 0};
  CHECK(losses.mean_of(1) == 2.5);
  CHECK_THROWS_WITH(
      losses.mean_of(2),
      "no label of the model's head 2 of 2 counts in the held-out data, so that there "
      "is no loss");
  losses.counted = {0, 4};  // of the next sentence alone
  CHECK_THROWS(losses.mean_of(2));
  CHECK_THROWS_WITH(losses.mean_of(1),
                    "no label of the held-out data counts, so that there is no loss");
  losses.counted = {3, 4};
  CHECK(losses.mean_of(2) == 2.5);
}

TEST_CASE("blocks of masked samples score what counts") {
  const auto blocks = make_sample_blocks(
      with_document_ends(std::make_shared<Numbers>(4, 5), {3, true, false, false}), 4);
  CHECK(blocks->targets() == 16);
  std::vector<int32_t> ids(4), targets(4);
  blocks->fill(3, ids.data(), targets.data());
  CHECK(targets == std::vector<int32_t>{-1, -1, -1, -1});
  blocks->fill(2, ids.data(), targets.data());
  CHECK(targets == std::vector<int32_t>{2, 2, 2, 2});
}

TEST_CASE("which token ends a document") {
  Config c;
  c.data.tokenizer = "bytes";
  CHECK(end_of_document(c) == 256);
  c.data.tokenizer = "GPT2BPETokenizer";
  CHECK(end_of_document(c) == 50256);
  c.model.vocabulary = 1000;
  CHECK_THROWS_WITH(end_of_document(c), doctest::Contains("give --vocab-file and --merge-file"));
  c.data.tokenizer = "NullTokenizer";
  CHECK(end_of_document(c) == 999);
}

TEST_CASE("tokens beyond the vocabulary are refused with the sample and the advice") {
  const auto checked = check_tokens(std::make_shared<Numbers>(4), 4, 10, "corpus");
  std::vector<int32_t> out(5);
  checked->sample(9, out.data());
  CHECK_THROWS_WITH(checked->sample(10, out.data()),
                    "corpus: sample 10 holds token 10, and the vocabulary has 10 tokens: give the "
                    "--tokenizer-type that the dataset was made with, or --vocab-size");
}
