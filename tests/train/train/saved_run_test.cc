#include "src/train/saved_run.h"

#include <doctest/doctest.h>

#include "src/train/failures.h"

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
  CHECK(saved.padded_vocabulary == 384);
  for (const char* other : {"", "null", "{}", "[1]", R"({"precision": 3})", R"({"model": 1})"}) {
    CAPTURE(std::string(other));
    CHECK(saved_run(other).precision.empty());
    CHECK(saved_run(other).padded_vocabulary == 0);
    CHECK(differences(saved_run(other), bytes_config()).empty());
    CHECK_NOTHROW(check_padding(saved_run(other), bytes_config()));
  }
}

TEST_CASE("another precision or padding is reported with the flag to set") {
  Config c = bytes_config();
  CHECK(differences(saved_run(saved_by_bf16), c).empty());
  CHECK_NOTHROW(check_padding(saved_run(saved_by_bf16), c));
  c.precision = Precision::f32;
  c.model.padded_vocabulary = 257;
  const auto notes = differences(saved_run(saved_by_bf16), c);
  REQUIRE(notes.size() == 2);
  CHECK(notes[0] ==
        "--precision: the checkpoint was trained in bf16, and this run trains in fp32: give "
        "--precision bf16 to train as before");
  CHECK(notes[1] ==
        "--make-vocab-size-divisible-by: the checkpoint's vocabulary was padded to 384 rows, and "
        "this run's is to 257: give --make-vocab-size-divisible-by 128 to have the same");
  CHECK_THROWS_WITH_AS(
      check_padding(saved_run(saved_by_bf16), c),
      "--make-vocab-size-divisible-by: the checkpoint's vocabulary is padded to 384 rows, and this "
      "run's to 257, so that the optimizer's state does not fit: give "
      "--make-vocab-size-divisible-by 128",
      InputError);
  // No power of two, where 128 would not give it.
  c.model.padded_vocabulary = 384;
  CHECK_THROWS_WITH(check_padding({"bf16", 260}, c),
                    doctest::Contains("give --make-vocab-size-divisible-by 260"));
}
