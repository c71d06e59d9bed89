// What NVML says of a GPU's faults, by a driver library of our own.
#include "engine/energy/gpu_devices.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>

#include "tests/support/shell.h"

namespace {

// "name count" of all counters; "-": not counted.
std::string counts_of(const tally::GpuDevices& gpus, size_t gpu) {
  std::string text;
  for (const tally::GpuCounter& one : gpus.counters(gpu))
    text += fmt::format("{} {}\n", one.name, one.value ? fmt::format("{}", *one.value) : "-");
  return text;
}

}  // namespace

TEST_CASE("NVML: faults, UUID and temperature, and what a GPU does not count" *
          doctest::test_suite(tally::testing::kOpensALibrary)) {
  std::unique_ptr<tally::GpuDevices> gpus;
  REQUIRE(tally::GpuDevices::open(&gpus));
  ::setenv("FAKE_NVML", "hot", 1);
  CHECK(gpus->uuid(0) == "GPU-00000000");
  CHECK(gpus->read(0).celsius == 92U);
  CHECK(counts_of(*gpus, 0) ==
        "ecc_corrected 0\necc_uncorrected 0\nrows_remapped_corrected 0\n"
        "rows_remapped_uncorrected 0\nrows_remap_pending 0\nrows_remap_failed 0\n"
        "nvlink_crc_flit -\nnvlink_crc_data 0\nnvlink_replay 0\nnvlink_recovery 0\n");
  ::setenv("FAKE_NVML", "faulty", 1);
  CHECK(counts_of(*gpus, 0) ==
        "ecc_corrected 1\necc_uncorrected 0\nrows_remapped_corrected 0\n"
        "rows_remapped_uncorrected 2\nrows_remap_pending 1\nrows_remap_failed 0\n"
        "nvlink_crc_flit -\nnvlink_crc_data 0\nnvlink_replay 1\nnvlink_recovery 0\n");
  CHECK(gpus->counters(0).front().value == 2U);
  // An old GPU says nothing, and nothing is not 0.
  for (const tally::GpuCounter& one : gpus->counters(1)) CHECK_FALSE(one.value);
  CHECK_FALSE(gpus->read(1).celsius);
  CHECK(gpus->uuid(2).empty());
}
