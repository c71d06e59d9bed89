// Splits, samples and batches.
#include <doctest/doctest.h>

#include <numeric>
#include <set>
#include <thread>

#include "src/data/tokens/batches.h"
#include "src/data/tokens/dataset.h"
#include "src/data/tokens/indexed_writer.h"
#include "src/data/tokens/permutation.h"
#include "src/data/tokens/split.h"
#include "tests/train/data/temp_dir.h"

using namespace tally::train;
using Tokens = std::vector<int32_t>;

namespace {

// Documents of the given lengths whose tokens are numbered through.
std::shared_ptr<IndexedDataset> numbered(const TempDir& dir, const std::vector<int>& lengths) {
  IndexedDatasetWriter writer(dir / "d", DType::i32);
  int32_t next = 0;
  for (int length : lengths) {
    for (int i = 0; i < length; ++i, ++next) writer.append(&next, 1);
    writer.end_document();
  }
  writer.finish();
  return std::make_shared<IndexedDataset>(dir / "d");
}

Tokens sample_of(const SampleSource& source, int64_t index, int64_t sequence) {
  Tokens out(static_cast<size_t>(sequence) + 1);
  source.sample(index, out.data());
  return out;
}

std::array<int64_t, 3> sizes(const std::string& split, int64_t documents) {
  const auto ranges = split_documents(split, documents);
  CHECK(ranges[0].begin == 0);
  CHECK(ranges[0].end == ranges[1].begin);
  CHECK(ranges[1].end == ranges[2].begin);
  CHECK(ranges[2].end == documents);
  return {ranges[0].end - ranges[0].begin, ranges[1].end - ranges[1].begin,
          ranges[2].end - ranges[2].begin};
}

using Sizes = std::array<int64_t, 3>;

}  // namespace

TEST_CASE("--split divides as Megatron does") {
  // The JUPITER benchmark's dataset: 790 documents with --split 7,3,1 give 503, 215 and 72.
  CHECK(sizes("7,3,1", 790) == Sizes{503, 215, 72});
  CHECK(sizes("969,30,1", 1000) == Sizes{969, 30, 1});
  CHECK(sizes("969,30,1", 1) == Sizes{1, 0, 0});
  CHECK(sizes("1", 10) == Sizes{10, 0, 0});
  CHECK(sizes("0.9/0.1", 10) == Sizes{9, 1, 0});
  // 2.5 and 2.5 both round to the even 2: one document is missing and is added before the first
  // bound.
  CHECK(sizes("1,1", 5) == Sizes{3, 2, 0});
  for (const char* bad : {"", "a", "1,,1", "1,2,3,4", "-1,2", "nan", "1,2,"}) {
    CHECK(error_of([&] { split_documents(bad, 10); }).find("--split") == 0);
  }
  CHECK(error_of([&] { split_documents("0,0", 10); }).find("leaves no documents for any split") !=
        std::string::npos);
}

TEST_CASE(
    "permutations: every number once, another order for another seed, the same on every machine") {
  for (uint64_t size : {1, 2, 3, 4, 5, 16, 17, 1000, 65537}) {
    std::vector<bool> seen(size);
    const Permutation permutation(size, 42);
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t to = permutation(i);
      REQUIRE(to < size);
      CHECK(!seen[to]);
      seen[to] = true;
    }
  }
  int same = 0;
  for (uint64_t i = 0; i < 1000; ++i) same += Permutation(1000, 1)(i) == Permutation(1000, 2)(i);
  CHECK(same < 20);
  // SplitMix64's published first outputs for the seed 0.
  CHECK(mix64(0) == 0xE220A8397B1DCDAFULL);
  CHECK(mix64(0x9E3779B97F4A7C15ULL) == 0x6E789E6AA1B965F4ULL);
}

TEST_CASE("one document: samples are consecutive pieces that overlap by one, each once an epoch") {
  const TempDir dir;
  const auto source = make_gpt_samples(numbered(dir, {101}), "1", Split::train, 10, 1234);
  CHECK(source->samples_per_epoch() == 10);
  std::set<int32_t> starts;
  std::vector<int32_t> order;
  // 101 tokens make samples at 0, 10, ..., 100: the eleventh continues with the next epoch's first
  // document.
  for (int64_t i = 0; i < 11; ++i) {
    const Tokens tokens = sample_of(*source, i, 10);
    CHECK(tokens[0] % 10 == 0);
    for (size_t k = 1; k < tokens.size(); ++k) CHECK(tokens[k] == (tokens[k - 1] + 1) % 101);
    starts.insert(tokens[0]);
    order.push_back(tokens[0]);
  }
  CHECK(starts.size() == 11);
  CHECK(!std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("many documents: an epoch has every token once, in documents' order of that epoch") {
  const TempDir dir;
  const std::vector<int> lengths = {7, 1, 12, 5, 30, 2, 3, 9, 11, 20};  // 100 tokens
  const auto dataset = numbered(dir, lengths);
  const auto source = make_gpt_samples(dataset, "1", Split::train, 5, 7);
  std::vector<std::vector<int32_t>> orders;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int> seen(100);
    std::vector<int32_t> firsts;
    for (int64_t i = 0; i < 20; ++i) {
      const Tokens tokens = sample_of(*source, epoch * 20 + i, 5);
      for (size_t k = 0; k < 5; ++k) ++seen[static_cast<size_t>(tokens[k])];
      firsts.push_back(tokens[0]);
    }
    CHECK(seen == std::vector<int>(100, 1));
    orders.push_back(firsts);
  }
  CHECK(orders[0] != orders[1]);
  CHECK(orders[1] != orders[2]);
  const auto other = make_gpt_samples(dataset, "1", Split::train, 5, 8);
  CHECK(sample_of(*source, 3, 5) != sample_of(*other, 3, 5));
}

TEST_CASE("splits keep to their documents; samples may be longer than an epoch") {
  const TempDir dir;
  const auto dataset = numbered(dir, {10, 10, 10, 10});
  const auto validation = make_gpt_samples(dataset, "2,1,1", Split::validation, 25, 1);
  for (int64_t i = 0; i < 50; ++i) {
    const Tokens tokens = sample_of(*validation, i, 25);
    for (int32_t token : tokens) CHECK((token >= 20 && token < 30));
    for (size_t k = 1; k < tokens.size(); ++k)
      CHECK(tokens[k] == 20 + (tokens[k - 1] - 20 + 1) % 10);
  }
  CHECK(error_of([&] { make_gpt_samples(dataset, "1", Split::validation, 5, 1); }) ==
        "--split 1 leaves no documents for validation of a dataset of 4 documents: change --split, "
        "or prepare more documents (tally-train prepare --split-documents-on-blank-lines makes "
        "many of one "
        "text)");
}

TEST_CASE("300 million samples of a small dataset cost nothing; any index is reached at once") {
  const TempDir dir;
  const auto source =
      make_gpt_samples(numbered(dir, std::vector<int>(503, 3)), "1", Split::train, 2048, 42);
  for (int64_t index : {int64_t{0}, int64_t{299999999}, int64_t{123456789}}) {
    const Tokens tokens = sample_of(*source, index, 2048);
    CHECK(tokens == sample_of(*source, index, 2048));
    for (int32_t token : tokens) CHECK((token >= 0 && token < 1509));
  }
}

TEST_CASE("many threads read one source") {
  const TempDir dir;
  const auto source = make_gpt_samples(numbered(dir, {50, 60, 70}), "1", Split::train, 8, 3);
  std::vector<Tokens> expected;
  for (int64_t i = 0; i < 300; ++i) expected.push_back(sample_of(*source, i, 8));
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 300; ++i) {
        const int64_t index = (i * 37 + static_cast<int64_t>(t) * 75) % 300;
        wrong[t] += sample_of(*source, index, 8) != expected[static_cast<size_t>(index)];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(std::accumulate(wrong.begin(), wrong.end(), 0) == 0);
}

TEST_CASE("mock samples: in the vocabulary, repeatable, different") {
  const auto source = make_mock_samples(11, 64, 5);
  std::set<int32_t> seen;
  for (int64_t i = 0; i < 20; ++i) {
    for (int32_t token : sample_of(*source, i, 64)) seen.insert(token);
  }
  CHECK(seen.size() == 11);
  CHECK(*seen.begin() == 0);
  CHECK(*seen.rbegin() == 10);
  CHECK(sample_of(*source, 3, 64) == sample_of(*make_mock_samples(11, 64, 5), 3, 64));
  CHECK(sample_of(*source, 3, 64) != sample_of(*source, 4, 64));
}

namespace {

// Sample i is {100 i, 100 i + 1, ...}.
class Counting : public SampleSource {
 public:
  explicit Counting(int64_t sequence, int64_t fails_at = -1)
      : sequence_(sequence), fails_at_(fails_at) {}
  int64_t samples_per_epoch() const override { return 1000; }
  void sample(int64_t index, int32_t* out) const override {
    if (index == fails_at_) throw std::runtime_error("the disk is gone");
    for (int64_t i = 0; i <= sequence_; ++i) out[i] = static_cast<int32_t>(100 * index + i);
  }

 private:
  int64_t sequence_, fails_at_;
};

}  // namespace

TEST_CASE("batches: ids and targets one position on, in the order of samples") {
  BatchLoader loader(std::make_shared<Counting>(4), {2, 4, 0, 1, 0});
  for (int32_t k = 0; k < 50; ++k) {
    const HostBatch batch = loader.next();
    for (int32_t b = 0; b < 2; ++b) {
      for (int32_t t = 0; t < 4; ++t) {
        CHECK(batch.ids[b * 4 + t] == 100 * (2 * k + b) + t);
        CHECK(batch.targets[b * 4 + t] == 100 * (2 * k + b) + t + 1);
      }
    }
  }
}

TEST_CASE("batches: ranks share each round of samples; resuming continues where it was") {
  const auto source = std::make_shared<Counting>(1);
  // Two ranks with micro batches of 3: a round is 6 samples.
  std::vector<int32_t> all;
  BatchLoader zero(source, {3, 1, 0, 2, 12});
  BatchLoader one(source, {3, 1, 1, 2, 12});
  for (int round = 0; round < 4; ++round) {
    for (BatchLoader* loader : {&zero, &one}) {
      const HostBatch batch = loader->next();
      all.insert(all.end(), batch.ids, batch.ids + 3);
    }
  }
  std::vector<int32_t> expected;
  for (int32_t i = 12; i < 36; ++i) expected.push_back(100 * i);
  CHECK(all == expected);
}

TEST_CASE("batches: one that is held stays whole while later ones are made") {
  BatchLoader loader(std::make_shared<Counting>(4), {1, 4, 0, 1, 0}, {}, 2, 3);
  std::vector<HostBatch> held;
  for (int32_t k = 0; k < 40; ++k) {
    held.push_back(loader.next());
    std::this_thread::yield();
    for (int32_t back = 0; back <= std::min(k, 3); ++back) {
      CHECK(held[static_cast<size_t>(k - back)].ids[0] == 100 * (k - back));
    }
  }
}

TEST_CASE(
    "batches: given memory is used and released; what the source throws comes out of next()") {
  int allocated = 0;
  int released = 0;
  {
    BatchLoader::Memory memory{[&](size_t bytes) { return ++allocated, std::malloc(bytes); },
                               [&](void* data) { ++released, std::free(data); }};
    BatchLoader loader(std::make_shared<Counting>(4, 3), {1, 4, 0, 1, 0}, memory);
    for (int i = 0; i < 3; ++i) CHECK(loader.next().ids[0] == 100 * i);
    CHECK(error_of([&] { loader.next(); }) == "the disk is gone");
    CHECK(error_of([&] { loader.next(); }) == "the disk is gone");
  }
  CHECK(allocated == 1);
  CHECK(released == 1);
}

TEST_CASE("blocks: documents joined, cut, the rest dropped; validation after training, in order") {
  const TempDir dir;
  const auto dataset = numbered(dir, {3, 0, 10, 1, 9});  // tokens 0 ... 22, blocks of 4 at 0 ... 16
  const auto blocks = [&](Split which, const std::string& split) {
    return make_block_samples(dataset, split, which, 4, 7);
  };
  const auto all = blocks(Split::train, "1");
  REQUIRE(all->samples_per_epoch() == 5);
  std::vector<std::vector<int32_t>> orders;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int32_t> starts;
    for (int64_t i = 0; i < 5; ++i) {
      const Tokens sample = sample_of(*all, epoch * 5 + i, 4);
      Tokens expected(5);
      std::iota(expected.begin(), expected.end(), sample[0]);
      CHECK(sample == expected);
      starts.push_back(sample[0]);
    }
    CHECK(std::set<int32_t>(starts.begin(), starts.end()) == std::set<int32_t>{0, 4, 8, 12, 16});
    orders.push_back(starts);
  }
  CHECK((orders[0] != orders[1] || orders[1] != orders[2]));
  const auto validation = blocks(Split::validation, "3,2");
  REQUIRE(validation->samples_per_epoch() == 2);
  CHECK(block_count(*dataset, "3,2", Split::validation, 4) == 2);
  CHECK(sample_of(*validation, 0, 4) == Tokens{12, 13, 14, 15, 16});
  CHECK(sample_of(*validation, 1, 4) == Tokens{16, 17, 18, 19, 20});
  const auto train = blocks(Split::train, "3,2");
  std::set<int32_t> starts;
  for (int64_t i = 0; i < 3; ++i) starts.insert(sample_of(*train, i, 4)[0]);
  CHECK(starts == std::set<int32_t>{0, 4, 8});
  CHECK(block_count(*dataset, "1", Split::validation, 4) == 0);
  CHECK(error_of([&] { blocks(Split::validation, "1"); }) ==
        "a text of 23 tokens has 5 blocks of 4 tokens, and --split 1 leaves none for validation: "
        "lower --seq-length or change --split");
  // A block needs the token after it.
  CHECK(block_count(*dataset, "1", Split::train, 22) == 1);
  CHECK(block_count(*dataset, "1", Split::train, 23) == 0);
}

TEST_CASE("a blend gives every source its share at every moment, in Megatron's order") {
  // Sample n of source s is s * 1000000 + n.
  class Counted final : public SampleSource {
   public:
    explicit Counted(int32_t number) : number_(number) {}
    int64_t samples_per_epoch() const override { return 100; }
    void sample(int64_t index, int32_t* out) const override {
      out[0] = out[1] = number_ * 1000000 + static_cast<int32_t>(index);
    }

   private:
    int32_t number_;
  };
  std::vector<std::shared_ptr<const SampleSource>> sources;
  for (int32_t s = 0; s < 3; ++s) sources.push_back(std::make_shared<Counted>(s));
  const std::vector<double> weights{6, 3, 1};
  const auto blend = make_blended_samples(sources, weights);
  CHECK(blend->samples_per_epoch() == 300);
  // Megatron's helper, written out: the largest weight * max(i, 1) - count, the first of equals.
  const int64_t count = 50000;
  std::vector<int64_t> counts(3, 0);
  std::vector<int32_t> expected;
  for (int64_t i = 0; i < count; ++i) {
    const double n = i > 1 ? static_cast<double>(i) : 1.0;
    size_t best = 0;
    double error = -1e300;
    for (size_t s = 0; s < 3; ++s) {
      const double e = weights[s] / 10 * n - static_cast<double>(counts[s]);
      if (e > error) {
        error = e;
        best = s;
      }
    }
    expected.push_back(static_cast<int32_t>(best) * 1000000 + static_cast<int32_t>(counts[best]++));
  }
  CHECK(std::vector<int32_t>(expected.begin(), expected.begin() + 6) ==
        std::vector<int32_t>{0, 1000000, 2000000, 1, 2, 1000001});
  // From the far end first, as a resumed run does.
  for (const int64_t i : {count - 1, int64_t{0}, int64_t{40000}})
    CHECK(sample_of(*blend, i, 1)[0] == expected[static_cast<size_t>(i)]);
  Tokens got;
  for (int64_t i = 0; i < count; ++i) got.push_back(sample_of(*blend, i, 1)[0]);
  CHECK(got == Tokens(expected.begin(), expected.end()));
  CHECK(counts == std::vector<int64_t>{30000, 15000, 5000});
}
