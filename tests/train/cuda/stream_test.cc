#include <cstdio>

#include "tests/train/cuda/both.h"

namespace tally::train {
namespace {

// CTest counts the program as skipped when it prints this line.
TEST_CASE("cuda: report that there is no GPU") {
  if (!no_gpu()) return;
  CHECK(!cuda_unavailable_reason().empty());
  std::printf("SKIPPED: no GPU: %s\n", cuda_unavailable_reason().c_str());
  CHECK_THROWS_AS(make_stream(Device{DeviceKind::cuda, 0}), DeviceError);
}

TEST_CASE("cuda: device_info" * NEEDS_GPU) {
  const DeviceInfo info = device_info(Device{DeviceKind::cuda, 0});
  std::printf("%s, compute capability %d, %d sms, driver %s, runtime %s\n", info.name.c_str(),
              info.capability, info.sms, info.driver.c_str(), info.runtime.c_str());
  CHECK(info.capability >= 70);
  CHECK(info.total_bytes > (size_t{1} << 30));
}

TEST_CASE("cuda: a GPU that is not there" * NEEDS_GPU) {
  try {
    make_stream(Device{DeviceKind::cuda, 99});
    FAIL("GPU 99 was made");
  } catch (const DeviceError& e) {
    CHECK(std::string(e.what()).find("GPU 99 does not exist: this process sees ") !=
          std::string::npos);
  }
}

// The sentence holds facts; src/train adds what to try (failures_test.cc).
TEST_CASE("cuda: memory is counted, and too much of it is one clear sentence" * NEEDS_GPU) {
  const auto s = make_stream(Device{DeviceKind::cuda, 0});
  const size_t before = s->bytes_allocated();
  const int64_t allocations = s->allocations();
  void* data = s->allocate(1000, "test");
  CHECK(reinterpret_cast<uintptr_t>(data) % 256 == 0);
  CHECK(s->bytes_allocated() == before + 1024);
  CHECK(s->allocations() == allocations + 1);
  s->release(data);
  CHECK(s->bytes_allocated() == before);
  CHECK(s->bytes_peak() >= before + 1024);
  try {
    s->allocate(size_t{1} << 50, "activations");
    FAIL("a pebibyte was allocated");
  } catch (const OutOfMemory& e) {
    const std::string what = e.what();
    CAPTURE(what);
    CHECK(what.find("GPU 0: 1048576.00 GiB for activations does not fit: ") == 0);
    CHECK(what.find(" are free and ") != std::string::npos);
    CHECK(what.find(" are held by this run") != std::string::npos);
    CHECK(what.find("--") == std::string::npos);
  }
  // The stream still works.
  data = s->allocate(64, "test");
  s->fill_zero(data, 64);
  s->synchronize();
  s->release(data);
}

}  // namespace
}  // namespace tally::train
