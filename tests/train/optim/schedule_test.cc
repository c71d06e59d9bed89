// Warm-up and weight decay as Megatron-LM's OptimizerParamScheduler computes them (get_lr, get_wd).
#include "src/optim/schedule.h"

#include <doctest/doctest.h>

using namespace tally::train;

TEST_CASE("learning rate: a warm-up of a fraction of a sample count is not cut off") {
  OptimizerConfig c;
  c.lr = 1;
  c.min_lr = 0;
  c.decay_style = "linear";
  c.warmup_samples = 2.5;
  c.decay_samples = 10;
  CHECK(learning_rate(c, 1) == doctest::Approx(1 / 2.5));
  CHECK(learning_rate(c, 2) == doctest::Approx(2 / 2.5));
  CHECK(learning_rate(c, 3) == doctest::Approx(1 - 0.5 / 7.5));
  CHECK(learning_rate(c, 10) == 0);
}

TEST_CASE("learning rate: the warm-up starts at --lr-warmup-init") {
  OptimizerConfig c;
  c.lr = 1;
  c.warmup_init = 0.2;
  c.warmup_samples = 4;
  c.decay_samples = 10;
  CHECK(learning_rate(c, 0) == 0.2);
  CHECK(learning_rate(c, 1) == doctest::Approx(0.4));
  CHECK(learning_rate(c, 4) == 1);
}

TEST_CASE("weight decay: constant, linear or the half wave of a cosine") {
  OptimizerConfig c;
  c.weight_decay = c.end_weight_decay = 0.1;
  CHECK(weight_decay(c, 0) == 0.1);
  CHECK(weight_decay(c, 1000) == 0.1);
  c.end_weight_decay = 0.5;
  c.weight_decay_samples = 100;
  c.weight_decay_style = "linear";
  CHECK(weight_decay(c, 0) == 0.1);
  CHECK(weight_decay(c, 25) == doctest::Approx(0.2));
  CHECK(weight_decay(c, 100) == doctest::Approx(0.5));
  CHECK(weight_decay(c, 101) == 0.5);
  // 0.5 (cos(pi (1 - 1/4)) + 1) = 0.146447 of the way.
  c.weight_decay_style = "cosine";
  CHECK(weight_decay(c, 25) == doctest::Approx(0.1 + 0.4 * 0.14644661));
  CHECK(weight_decay(c, 50) == doctest::Approx(0.3));
  CHECK(weight_decay(c, 101) == 0.5);
  c.weight_decay_style = "step";
  CHECK_THROWS_AS(weight_decay(c, 25), std::invalid_argument);
}
