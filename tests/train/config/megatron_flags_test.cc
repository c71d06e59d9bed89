// Flags whose meaning is Megatron-LM's: sentences and rules from its megatron/training/arguments.py
// and training.py.
#include <doctest/doctest.h>

#include "src/config/args.h"
#include "tests/train/config/parse.h"

using namespace tally::train;

TEST_CASE("--lr-warmup-fraction is a share of the decay in samples, whole or not") {
  // get_optimizer_param_scheduler(): lr_warmup_steps = lr_warmup_fraction * lr_decay_steps.
  Config c = parse("--mock-data --train-samples 1000 --lr-warmup-fraction 0.0015");
  CHECK(c.optimizer.warmup_samples == doctest::Approx(1.5));
  c = parse(base + "--global-batch-size 4 --lr-warmup-fraction 0.33");
  CHECK(c.optimizer.warmup_samples == doctest::Approx(13.2));
  // 0.29 * 100 is 28.999999999999996: one sample too few when cut off.
  c = parse("--mock-data --train-samples 100 --lr-warmup-fraction 0.29");
  CHECK(c.optimizer.warmup_samples == 0.29 * 100);
}

TEST_CASE("--lr-warmup-init is where the warm-up begins") {
  CHECK(parse(base).optimizer.warmup_init == 0);
  const Config c = parse(base + "--lr 1e-3 --lr-warmup-init 1e-4 --lr-warmup-iters 5");
  CHECK(c.optimizer.warmup_init == 1e-4);
  CHECK(error_of(base + "--lr 1e-3 --lr-warmup-init 2e-3") ==
        "--lr-warmup-init: 0.002 is greater than --lr 0.001");
}

TEST_CASE("weight decay may grow over the run") {
  Config c = parse(base + "--weight-decay 0.3");
  CHECK(c.optimizer.weight_decay == 0.3);
  CHECK(c.optimizer.end_weight_decay == 0.3);
  CHECK(c.optimizer.weight_decay_style == "constant");
  c = parse(base +
            "--global-batch-size 4 --weight-decay-incr-style cosine --start-weight-decay 0.1 "
            "--end-weight-decay 0.4");
  CHECK(c.optimizer.weight_decay == 0.1);
  CHECK(c.optimizer.end_weight_decay == 0.4);
  CHECK(c.optimizer.weight_decay_style == "cosine");
  CHECK(c.optimizer.weight_decay_samples == 40);
  CHECK(error_of(base + "--weight-decay-incr-style log") ==
        "--weight-decay-incr-style: 'log' is not known: constant, linear, cosine");
  CHECK(error_of(base + "--start-weight-decay 0.1") ==
        "--start-weight-decay: goes with --weight-decay-incr-style linear or cosine; a constant "
        "weight decay is --weight-decay");
  CHECK(error_of(base + "--end-weight-decay 0.1") ==
        "--end-weight-decay: goes with --weight-decay-incr-style linear or cosine; a constant "
        "weight decay is --weight-decay");
  CHECK(error_of(base + "--weight-decay-incr-style linear --start-weight-decay 0.1") ==
        "--weight-decay-incr-style: linear needs --start-weight-decay and --end-weight-decay");
  CHECK(error_of(base +
                 "--weight-decay-incr-style linear --start-weight-decay 0.1 --end-weight-decay "
                 "0.05") == "--end-weight-decay: 0.05 is less than --start-weight-decay 0.1");
}

TEST_CASE("--no-bias-gelu-fusion takes GELU out of the matmuls, and says what it does not change") {
  const Config c = parse(base + "--no-bias-gelu-fusion");
  CHECK_FALSE(c.fusions.gelu);
  CHECK(c.fusions.bias);
  REQUIRE(c.notices.size() == 1);
  CHECK(c.notices[0] ==
        "--no-bias-gelu-fusion: GELU runs as a kernel of its own, as with --no-fusion gelu; it "
        "stays the tanh approximation, where Megatron-LM computes erf without its fusion");
  CHECK(parse(base).fusions.gelu);
}

TEST_CASE("the help of --hysteresis says what the loss scaler does") {
  // DynamicGradScaler: the tolerance comes back only when the scale grows.
  const std::string text = flags_reference();
  CHECK(text.find("Overflows in a row") == std::string::npos);
  CHECK(
      text.find("The first overflow that halves the loss scale, counted since it last doubled, in "
                "a row or not; each further one halves it, too") != std::string::npos);
}
