// Samples without data: lengths, balance, masks, answers.
#include "src/data/encoders/synthetic_samples.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/train/data/temp_dir.h"

using namespace tally::train;

namespace {

std::vector<EncoderSample> epoch_of(const SyntheticOptions& options) {
  const auto source = make_synthetic_samples(options);
  std::vector<EncoderSample> samples(static_cast<size_t>(source->samples_per_epoch()));
  for (size_t i = 0; i < samples.size(); ++i) source->sample(static_cast<int64_t>(i), &samples[i]);
  return samples;
}

}  // namespace

TEST_CASE("lengths: fixed, uniform, from a histogram") {
  const TempDir dir;
  SyntheticOptions options;
  options.samples = 4000;
  options.task = SyntheticTask::classification;
  for (const EncoderSample& s : epoch_of(options)) REQUIRE(s.length() == 128);
  options.lengths = LengthDistribution("10:19");
  std::map<int64_t, int> seen;
  for (const EncoderSample& s : epoch_of(options)) ++seen[s.length()];
  CHECK(seen.size() == 10);
  CHECK(seen.begin()->first == 10);
  CHECK(seen.rbegin()->first == 19);
  for (const auto& [length, count] : seen) CHECK(std::abs(count - 400) < 100);
  CHECK(LengthDistribution("10:11").at(0.0) == 10);
  CHECK(LengthDistribution("10:11").at(0.5) == 11);
  CHECK(LengthDistribution("10:19").mean() == doctest::Approx(14.5));
  const std::string path = dir.write("h.txt", "# lengths\n64 3\n  8\t1e0 \n\n32, 0\n64:1\r\n");
  options.lengths = LengthDistribution("@" + path);
  CHECK(options.lengths.mean() == doctest::Approx(0.2 * 8 + 0.8 * 64));
  seen.clear();
  for (const EncoderSample& s : epoch_of(options)) ++seen[s.length()];
  CHECK(seen.size() == 2);
  CHECK(std::abs(seen[8] - 800) < 120);
}

TEST_CASE("faults of distributions, with their place") {
  const TempDir dir;
  for (const char* text : {"", "3", "a", "10:", "20:10", "10:20:30", "128 ", "9999999999999"})
    CHECK(error_of([&] { LengthDistribution{text}; }).find("is not a distribution of lengths") !=
          std::string::npos);
  const auto fault = [&](const std::string& text) {
    const std::string error = error_of([&] { LengthDistribution("@" + dir.write("h.txt", text)); });
    return error.substr(std::min(error.size(), (dir / "h.txt").size()));
  };
  CHECK(fault("64 1\nx 2\n").find(":2:1: a length from 4") == 0);
  CHECK(fault("64 1\n  3 2\n").find(":2:3: a length from 4") == 0);
  CHECK(fault("64\n").find(":1:3: a weight") == 0);
  CHECK(fault("64 -1\n").find(":1:4: a weight") == 0);
  CHECK(fault("64 1 2\n").find(":1:4: a weight") == 0);
  CHECK(fault("64 nan\n").find(":1:4: a weight") == 0);
  CHECK(fault("64 0\n").find(":1:1: the histogram has no length") == 0);
  CHECK(error_of([] { LengthDistribution("@/none"); }).find("cannot be read") != std::string::npos);
}

TEST_CASE("classes are balanced and depend on the seed alone") {
  SyntheticOptions options;
  options.task = SyntheticTask::classification;
  options.samples = 1000;
  options.classes = 3;
  options.vocabulary = 110;
  const auto samples = epoch_of(options);
  std::map<int32_t, int> seen;
  std::vector<int> tokens(110);
  for (const EncoderSample& s : samples) {
    ++seen[s.label];
    for (const int32_t id : s.ids) ++tokens[static_cast<size_t>(id)];
    REQUIRE(s.ids.front() == 101);
    REQUIRE(s.ids.back() == 102);
    REQUIRE(std::count(s.ids.begin(), s.ids.end(), 102) == 1);
    REQUIRE(s.token_types == std::vector<int32_t>(s.ids.size(), 0));
  }
  CHECK(seen == std::map<int32_t, int>{{0, 334}, {1, 333}, {2, 333}});
  for (const int32_t special : {0, 100, 103}) CHECK(tokens[static_cast<size_t>(special)] == 0);
  for (const size_t ordinary : {1, 99, 104, 109}) CHECK(std::abs(tokens[ordinary] - 1200) < 200);
  // The labels are not a pattern of the order.
  int same = 0;
  for (size_t i = 0; i < samples.size(); ++i)
    same += samples[i].label == static_cast<int32_t>(i % 3) ? 1 : 0;
  CHECK(std::abs(same - 333) < 100);
  CHECK(epoch_of(options)[7].ids == samples[7].ids);
  EncoderSample again;
  make_synthetic_samples(options)->sample(1007, &again);
  CHECK(again.ids == samples[7].ids);
  options.seed = 5;
  CHECK(epoch_of(options)[7].ids != samples[7].ids);
}

TEST_CASE("pre-training: both kinds of pairs, and masks; answers lie in the second text") {
  SyntheticOptions options;
  options.samples = 500;
  options.lengths = LengthDistribution("4:128");
  int random = 0;
  for (const EncoderSample& s : epoch_of(options)) {
    random += s.next_sentence;
    const auto expected = static_cast<size_t>(
        std::min(20.0, std::max(1.0, std::nearbyint(0.15 * static_cast<double>(s.length())))));
    REQUIRE(s.masked_positions.size() == expected);
    REQUIRE(std::count(s.ids.begin(), s.ids.end(), 102) >= 2);
    REQUIRE(s.token_types.size() == s.ids.size());
  }
  CHECK(random == 250);
  options.task = SyntheticTask::question_answering;
  for (const EncoderSample& s : epoch_of(options)) {
    REQUIRE(s.start <= s.end);
    REQUIRE(s.token_types[static_cast<size_t>(s.start)] == 1);
    REQUIRE(s.end < s.length() - 1);
    REQUIRE(s.masked_positions.empty());
  }
  options.vocabulary = 103;
  CHECK_THROWS_AS(make_synthetic_samples(options), std::invalid_argument);
}
