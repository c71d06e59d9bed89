#include "src/train/score/evaluator.h"

#include <doctest/doctest.h>

#include "src/train/feed/loader.h"
#include "tests/train/train/numbers_source.h"

using namespace tally::train;

namespace {

// The loss of a row is its first token.
class FirstTokens final : public Stage {
 public:
  std::unique_ptr<ActivationSet> make_activations() override { return std::make_unique<Set>(); }
  void forward(const Batch&, const Pass&, ActivationSet&) override { FAIL("a forward pass"); }
  void backward(ActivationSet&) override { FAIL("a backward pass"); }
  void evaluate(const Batch& batch, const Pass& pass, ActivationSet&) override {
    CHECK(pass.dropout.value == 0);
    const int64_t rows = batch.ids.dim(0), tokens = batch.ids.dim(1);
    double sum = 0;
    for (int64_t row = 0; row < rows; ++row) {
      // A row that fills up the last batch scores nothing.
      const bool scored = batch.labels[0].as<int32_t>()[row * tokens] >= 0;
      if (!scored) continue;
      sum += static_cast<double>(tokens) * batch.ids.as<int32_t>()[row * tokens];
      samples.push_back(batch.ids.as<int32_t>()[row * tokens]);
    }
    pass.state->loss_sums[0] += pass.weight * sum;
  }
  size_t scratch_bytes() const override { return 0; }

  std::vector<int32_t> samples;

 private:
  struct Set final : ActivationSet {
    size_t bytes() const override { return 0; }
  };
};

struct Fixture {
  explicit Fixture(int64_t epochs) {
    config.sequence = 4;
    config.micro_batch = 2;
    config.global_batch = 6;
    config.eval_iterations = 2;
    config.epochs = epochs;
    batch = std::make_unique<DeviceBatch>(config, *stream);
    evaluator = std::make_unique<Evaluator>(
        config, *stream,
        [this](const Batch& filled, const Pass& pass) {
          stage.evaluate(filled, pass, *activations);
        },
        nullptr, mesh);
  }
  double loss(int64_t samples, int64_t first) {
    stage.samples.clear();
    return evaluator->evaluate(std::make_shared<Numbers>(config.sequence, samples), first, *batch)
        .loss;
  }

  Config config;
  std::unique_ptr<Stream> stream = make_stream(Device{});
  std::unique_ptr<Communicator> communicator = make_single_communicator();
  Mesh mesh{*communicator, {}};
  FirstTokens stage;
  std::unique_ptr<ActivationSet> activations = stage.make_activations();
  std::unique_ptr<DeviceBatch> batch;
  std::unique_ptr<Evaluator> evaluator;
};

}  // namespace

TEST_CASE("an evaluation is the mean over its global batches, from the sample that it is given") {
  Fixture f(0);
  CHECK(f.loss(1000, 0) == doctest::Approx(5.5));  // of 0 ... 11
  CHECK(f.stage.samples.size() == 12);
  // A second one does not add to the first.
  CHECK(f.loss(1000, 24) == doctest::Approx(29.5));
  CHECK(f.stage.samples.front() == 24);
  CHECK(f.stage.samples.size() == 12);
}

TEST_CASE("with epochs an evaluation is the mean over all blocks, once each") {
  Fixture f(1);
  for (const int64_t first : {0, 24}) {  // where it would begin without epochs
    CHECK(f.loss(5, first) == doctest::Approx(2));
    CHECK(f.stage.samples == std::vector<int32_t>{0, 1, 2, 3, 4});
  }
}

TEST_CASE("an evaluation allocates nothing on the device") {
  Fixture f(0);
  const int64_t before = f.stream->allocations();
  f.loss(1000, 0);
  CHECK(f.stream->allocations() == before);
}
