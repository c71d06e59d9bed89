#include "src/train/saved_run.h"

#include <doctest/doctest.h>

using namespace tally::train;

namespace {

// A run with the bytes' vocabulary of 257, padded to a multiple of 128.
Config bytes_config() {
  Config c;
  c.model.vocabulary = 257;
  c.model.padded_vocabulary = 384;
  c.precision = Precision::bf16;
  return c;
}

const std::string saved_by_bf16 = R"({"model": {"padded_vocab_size": 384}, "precision": "bf16"})";

}  // namespace

TEST_CASE("what a checkpoint's configuration has, and what it may lack") {
  const SavedRun saved = saved_run(saved_by_bf16);
  CHECK(saved.precision == "bf16");
  for (const char* other : {"", "null", "{}", "[1]", R"({"precision": 3})", R"({"model": 1})"}) {
    CAPTURE(std::string(other));
    CHECK(saved_run(other).precision.empty());
    CHECK(differences(saved_run(other), bytes_config()).empty());
  }
}

TEST_CASE("another precision is reported with the flag to set; another padding changes nothing") {
  Config c = bytes_config();
  CHECK(differences(saved_run(saved_by_bf16), c).empty());
  c.model.padded_vocabulary = 257;
  CHECK(differences(saved_run(saved_by_bf16), c).empty());
  c.precision = Precision::f32;
  const auto notes = differences(saved_run(saved_by_bf16), c);
  REQUIRE(notes.size() == 1);
  CHECK(notes[0] ==
        "--precision: the checkpoint was trained in bf16, and this run trains in fp32: give "
        "--precision bf16 to train as before");
}
