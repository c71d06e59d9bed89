#include "src/train/step/advice.h"

#include <doctest/doctest.h>

#include "src/train/run/device.h"

using namespace tally::train;

TEST_CASE("a run on the CPU says why it leaves GPUs idle: no CUDA in the build, or an old driver") {
  CHECK(idle_gpus_notice(1, "") ==
        "this build has no CUDA and leaves the host's 1 NVIDIA GPU idle: scripts/build --gpu makes "
        "one that trains on it");
  const std::string old =
      "the NVIDIA driver serves CUDA 12.4 and this build needs CUDA 13.0: "
      "update the driver";
  CHECK(idle_gpus_notice(8, old) ==
        "this run is on the CPU and leaves the host's 8 NVIDIA GPUs idle: " + old);
}

TEST_CASE("the advice for a loss that is not finite names nothing that the run does already") {
  const auto advice = [](Precision precision, double clip = 1) {
    Config c;
    c.precision = precision;
    c.optimizer.clip = clip;
    return advice_for_divergence(c, true);
  };
  for (const Precision wide : {Precision::f32, Precision::f64}) {
    CHECK(advice(wide) == "lower --lr or lengthen the warm-up");
    CHECK(advice(wide, 0) == "lower --lr, lengthen the warm-up, or clip gradients (--clip-grad 1)");
  }
  for (const Precision narrow : {Precision::bf16, Precision::tf32, Precision::tf32x3})
    CHECK(advice(narrow) == "lower --lr, lengthen the warm-up, or train with --precision fp32");
  CHECK(advice(Precision::f16) ==
        "lower --lr, lengthen the warm-up, or train with --precision bf16 or fp32");
  Config scaled;
  scaled.precision = Precision::f16;
  scaled.loss_scale = 1e30;
  CHECK(advice_for_divergence(scaled, false)
            .ends_with(": lower --loss-scale or train with "
                       "--precision fp32"));
  CHECK(advice_for_divergence(scaled, true) ==
        "lower --loss-scale, lower --lr, lengthen the warm-up, or train with --precision bf16 or "
        "fp32");
  scaled.loss_scale = 0;
  scaled.min_loss_scale = 1e30;
  CHECK(advice_for_divergence(scaled, true).starts_with("lower --min-loss-scale, lower --lr"));
  Config first;
  first.precision = Precision::bf16;
  CHECK(
      advice_for_divergence(first, false) ==
      "no step has changed the weights yet, so that the learning rate is not the cause: train with "
      "--precision fp32");
}
