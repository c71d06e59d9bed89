// The metrics that --profile-counters takes, against CUPTI itself: it knows every chip and needs no
// GPU for this.
#include <doctest/doctest.h>

#include <iostream>
#include <optional>

#include "src/device/cuda/cupti_metrics.h"
#include "src/device/errors.h"
#include "src/measure/counters.h"

using namespace tally::train;
using cuda::CuptiLibrary;
using cuda::CuptiMetrics;

namespace {

// Null where CUPTI is not installed.
const CuptiLibrary* cupti() {
  static const std::optional<CuptiLibrary> library = []() -> std::optional<CuptiLibrary> {
    try {
      return CuptiLibrary();
    } catch (const DeviceError& e) {
      std::cout << "SKIPPED: " << e.what() << std::endl;
      return std::nullopt;
    }
  }();
  return library ? &*library : nullptr;
}

CounterSelection selection_of(const CuptiMetrics& metrics) {
  return select_counters([&metrics](const std::string& name) { return metrics.has(name); });
}

}  // namespace

TEST_CASE("CUPTI has each column on each data centre chip, and reads them in one or two passes") {
  if (!cupti()) return;
  for (const char* chip :
       {"GV100", "TU102", "GA100", "GA102", "AD102", "GH100", "GB100", "GB202"}) {
    CAPTURE(chip);
    CuptiMetrics metrics(*cupti(), chip, {});
    const CounterSelection selection = selection_of(metrics);
    CHECK(missing_counters_text(selection, chip).empty());
    const int passes = metrics.select(selection.metrics);
    CHECK(passes >= 1);
    CHECK(passes <= 2);
    CHECK(metrics.config().size() > 0);
  }
}

TEST_CASE("on a Hopper GPU every kernel runs once: no replay changes what it computes") {
  if (!cupti()) return;
  CuptiMetrics metrics(*cupti(), "GH100", {});
  const CounterSelection selection = selection_of(metrics);
  CHECK(metrics.select(selection.metrics) == 1);
  CHECK(!selection.index[1]);  // tcgen05 came with Blackwell
}

TEST_CASE("what CUPTI does not know is an error with a name") {
  if (!cupti()) return;
  CHECK_THROWS_AS(CuptiMetrics(*cupti(), "GX999", {}), DeviceError);
  CuptiMetrics metrics(*cupti(), "GH100", {});
  CHECK(!metrics.has("sm__no_such_metric"));
  CHECK_THROWS_WITH_AS(metrics.select({"sm__no_such_metric.sum"}),
                       doctest::Contains("CUPTI cannot schedule the hardware counters"),
                       DeviceError);
  // A selection without a GPU's memory: an integrated one.
  CHECK(missing_counters_text(selection_of(CuptiMetrics(*cupti(), "GB10B", {})), "GB10B") ==
        "--profile-counters: CUPTI has no counter on GB10B for dram (device memory): left empty");
}

TEST_CASE("a refusal says why and what to do") {
  if (!cupti()) return;
  const auto message = [](CUptiResult result) -> std::string {
    try {
      cupti()->check(result, "read hardware counters");
    } catch (const DeviceError& e) {
      return e.what();
    }
    return "";
  };
  CHECK(message(CUPTI_SUCCESS).empty());
  CHECK(
      message(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES) ==
      "CUPTI cannot read hardware counters (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES): the NVIDIA "
      "driver lets only administrators read hardware counters (ERR_NVGPUCTRPERM): run as root (in "
      "a container with --cap-add SYS_ADMIN), let the administrator load the driver with "
      "NVreg_RestrictProfilingToAdminUsers=0, or leave out --profile-counters");
  CHECK(message(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES)
            .find("this GPU is virtualised") != std::string::npos);
  CHECK(message(CUPTI_ERROR_HARDWARE_BUSY).find("another profiler") != std::string::npos);
}
