// Hardware counters of kernels whose use of the GPU is known.
#include "src/measure/counters.h"

#include <cstdio>

#include "src/ops/linear/linear.h"
#include "tests/train/cuda/both.h"

namespace tally::train {
namespace {

TEST_CASE("cuda: report that there is no GPU, or no counters") {
  if (no_gpu()) {
    std::printf("SKIPPED: no GPU: %s\n", cuda_unavailable_reason().c_str());
    return;
  }
  const auto stream = make_stream(Device{DeviceKind::cuda, 0});
  try {
    CounterProfiler::open(*stream);
  } catch (const DeviceError& e) {
    std::printf("SKIPPED: no counters: %s\n", e.what());
  }
}

// Null where the driver does not allow counters.
std::unique_ptr<CounterProfiler> open_counters(Stream& stream) {
  try {
    return CounterProfiler::open(stream);
  } catch (const DeviceError&) {
    return nullptr;
  }
}

TEST_CASE("cuda: a large GEMM uses the tensor cores, and counting does not change it" * NEEDS_GPU) {
  constexpr int64_t n = 4096;
  constexpr size_t tensor = 0, sm_active = 6;
  Both b({DType::bf16, MatmulMode::ieee, "bf16", 1e-2});
  const Pair x = b.input({n, n}), w = b.input({n, n}), bias = b.input({n}), y = b.output({n, n});
  const auto multiply = [&] { linear_forward(*b.gpu, x.gpu, {w.gpu, bias.gpu}, Out(y.gpu), {}); };
  const auto result = [&] {
    std::vector<char> bytes(y.gpu.bytes());
    b.gpu->copy(bytes.data(), y.gpu.data, bytes.size());
    b.gpu->synchronize();
    return bytes;
  };
  multiply();  // times algorithms
  const std::vector<char> expected = result();
  const auto counters = open_counters(*b.gpu.stream);
  if (!counters) return;
  const CounterSelection selection =
      select_counters([&](const std::string& name) { return counters->has_metric(name); });
  CHECK(counters->select(selection.metrics) >= 1);
  // Twice, the second time with more kernels than CUPTI keeps at once.
  for (const int calls : {3, 300}) {
    counters->start();
    for (int call = 0; call < calls; ++call) multiply();
    b.gpu->synchronize();
    const auto kernels = match_counters(counters->stop(), selection, 1);
    REQUIRE(kernels.size() >= static_cast<size_t>(calls));
    const KernelUse gemm = counter_profile_of(kernels).kernels.front();
    CAPTURE(gemm.name);
    CHECK(gemm.calls == calls);
    CHECK(gemm.seconds > 0);
    CHECK(*gemm.percent[tensor] > 40);
    CHECK(*gemm.percent[tensor] < 101);
    CHECK(*gemm.percent[sm_active] > 80);
    CHECK((result() == expected));
  }
  CHECK(counters->chip().size() > 0);
}

}  // namespace
}  // namespace tally::train
