// The time of traced steps, divided among bars: planted activities on several streams.
#include "src/measure/step_bars.h"

#include <doctest/doctest.h>

#include <numeric>
#include <random>

#include "tests/train/measure/kernel_activity.h"

using namespace tally::train;

namespace {

const char* const gemm = "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NTT";
const char* const flash = "void flash_forward_kernel<64>(Flash)";
const char* const norm = "void norm_forward_kernel<bf16>(bf16 const*)";
const char* const sum = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
const char* const send = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";

DeviceActivity copy(const char* name, int64_t start, int64_t end, int64_t bytes) {
  DeviceActivity a;
  a.name = name;
  a.start = start;
  a.end = end;
  a.bytes = bytes;
  return a;
}

int64_t of(const BarTimes& times, StepBar bar) {
  return times[static_cast<size_t>(bar)];
}
int64_t sum_of(const BarTimes& times) {
  return std::accumulate(times.begin(), times.end(), int64_t{0});
}

}  // namespace

TEST_CASE("classes of kernels, by the names that GPUs of ours have seen") {
  const auto is = [](const char* name, KernelClass kind) {
    CHECK_MESSAGE(class_of(name) == kind, name);
  };
  is(gemm, KernelClass::gemm);
  is("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", KernelClass::gemm);
  is("void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_bf16>(Params)", KernelClass::gemm);
  is("_ZN7cutlass13device_kernelI20TmaGmmaWarpSpecialized8TanhGeluE", KernelClass::gemm);
  is("void cublasLt::splitKreduce_kernel<32, 16>(Params)", KernelClass::gemm);
  is(flash, KernelClass::attention);
  is("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16", KernelClass::attention);
  is("void tally::train::cuda::rotary_kernel<bf16>(bf16*, Rotation)", KernelClass::attention);
  is("void adamw_kernel<bf16>(AdamW)", KernelClass::other);
  is("squares_kernel(float const*)", KernelClass::other);
  is(norm, KernelClass::other);
  is("[copy to device]", KernelClass::other);
  is("[fill]", KernelClass::other);
  is("somebody_s_kernel", KernelClass::other);
  is("[copy to peer]", KernelClass::collective);
  is(sum, KernelClass::collective);
  is("void add<bf16, 8, 4>(PeerFlags, PeerSum)", KernelClass::collective);
  is(send, KernelClass::point_to_point);
}

TEST_CASE("the end of a step is the copy of its state") {
  const std::vector<DeviceActivity> all{
      copy("[copy to host]", 500, 510, 280), copy("[copy to host]", 90, 100, 280),
      copy("[copy to host]", 100, 120, 8), copy("[copy to device]", 130, 140, 280)};
  CHECK(step_ends(all, 280) == std::vector<int64_t>{100, 510});
}

TEST_CASE("each nanosecond to one bar: overlaps, gaps, work that crosses the ends") {
  StepTrace t;
  t.ends = {100, 200, 300};
  t.activities = {kernel(gemm, 50, 120),        // 20 within
                  kernel(norm, 110, 140, 9),    // 20 behind the GEMM
                  kernel(flash, 130, 150),      // 20, 10 of them before norm
                  kernel(gemm, 160, 200),       // gap of 10 before
                  kernel(sum, 190, 230, 11),    // 10 hidden
                  kernel(norm, 240, 250),       // gap of 10 before
                  kernel(norm, 240, 250, 9),    // once
                  copy("[fill]", 250, 260, 4),  //
                  kernel(send, 260, 290),       // gap of 10 behind
                  kernel(flash, 400, 500)};
  SUBCASE("messages that wait for nobody") {
    const BarTimes times = divide(t, {40, 30});
    CHECK(of(times, StepBar::gemm) == 20 + 40);
    CHECK(of(times, StepBar::attention) == 20);
    CHECK(of(times, StepBar::other) == 10 + 10 + 10);
    CHECK(of(times, StepBar::messages) == 30 + 30);
    CHECK(of(times, StepBar::gap) == 10 + 10 + 10);
    CHECK(of(times, StepBar::bubble) == 0);
    CHECK(of(times, StepBar::waiting) == 0);
    CHECK(sum_of(times) == 200);
  }
  SUBCASE("a wait comes before the transfer, and computing hides it first") {
    const BarTimes times = divide(t, {25, 5});
    CHECK(of(times, StepBar::waiting) == 5);  // 190 to 205, hidden until 200
    CHECK(of(times, StepBar::bubble) == 25);
    CHECK(of(times, StepBar::messages) == 25 + 5);
    CHECK(sum_of(times) == 200);
  }
}

TEST_CASE("the bars of any activities add up to the steps") {
  std::mt19937 random(7);
  const auto draw = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(0, most)(random);
  };
  const char* const names[] = {gemm, flash, norm, sum, send, "[fill]"};
  for (int round = 0; round < 200; ++round) {
    StepTrace t;
    t.ends = {draw(100), 300, 600, 600 + draw(500)};
    for (int64_t k = draw(60); k > 0; --k) {
      const int64_t start = draw(1200);
      t.activities.push_back(kernel(names[draw(5)], start, start + draw(200)));
    }
    std::vector<int64_t> transfers;
    for (const int64_t ns : messages_of(t.activities).nanoseconds)
      transfers.push_back(draw(ns + 10));
    CHECK(sum_of(divide(t, transfers)) == t.ends.back() - t.ends.front());
  }
}

TEST_CASE("what others on the GPU take: the same call took longer than in other steps") {
  StepTrace t;
  constexpr int64_t ms = 1'000'000;
  for (int64_t step = 0; step <= 5; ++step) t.ends.push_back(step * 10 * ms);
  // In each step a GEMM of 1 ms and one of 4 ms, which differ by much and in no step; in the third
  // the first one is away for 2 ms.
  for (int64_t step = 0; step < 5; ++step) {
    const int64_t at = step * 10 * ms;
    t.activities.push_back(kernel(gemm, at, at + (step == 2 ? 3 : 1) * ms));
    t.activities.push_back(kernel(gemm, at + 4 * ms, at + 8 * ms));
  }
  const BarTimes times = divide(t, {});
  CHECK(of(times, StepBar::interrupted) == 2 * ms);
  CHECK(of(times, StepBar::gemm) == 5 * 5 * ms);
  CHECK(of(times, StepBar::gap) == 50 * ms - 27 * ms);
  SUBCASE("steps that differ in such kernels tell nothing") {
    t.activities.push_back(kernel(gemm, 9 * ms, 9 * ms + 10));
    CHECK(of(divide(t, {}), StepBar::interrupted) == 0);
  }
  SUBCASE("two steps tell nothing") {
    t.ends.resize(3);
    CHECK(of(divide(t, {}), StepBar::interrupted) == 0);
  }
  SUBCASE("a little more is no interruption") {
    // Less than half as long again.
    t.activities[4].end = t.activities[4].start + ms + ms / 2;
    CHECK(of(divide(t, {}), StepBar::interrupted) == 0);
    // Much longer, of a short kernel.
    for (size_t k = 0; k < t.activities.size(); k += 2)
      t.activities[k].end = t.activities[k].start + 1000;
    t.activities[4].end += kInterruption - 1;
    CHECK(of(divide(t, {}), StepBar::interrupted) == 0);
    ++t.activities[4].end;
    CHECK(of(divide(t, {}), StepBar::interrupted) == kInterruption);
  }
  SUBCASE("messages wait, they are not interrupted") {
    for (DeviceActivity& a : t.activities) a.name = sum;
    const BarTimes waited = divide(t, std::vector<int64_t>(10, ms / 2));
    CHECK(of(waited, StepBar::interrupted) == 0);
    CHECK(of(waited, StepBar::messages) == 5 * ms);
  }
}

TEST_CASE("the transfer of a message, by all ranks' times of it") {
  // Two ranks of one stage, one of another; the last column is a message to a neighbour.
  const std::vector<TracedMessages> ranks{
      {"ccp", {30, 50, 90}}, {"ccp", {40, 20, 80}}, {"cp", {5, 60}}};
  CHECK(transfers_of(ranks, 0) == std::vector<int64_t>{30, 20, 60});
  CHECK(transfers_of(ranks, 1) == std::vector<int64_t>{30, 20, 60});
  CHECK(transfers_of(ranks, 2) == std::vector<int64_t>{5, 60});
  CHECK(transfers_of({{"", {}}}, 0).empty());
  const TracedMessages found =
      messages_of({kernel(sum, 0, 7), kernel(gemm, 1, 3), kernel(send, 9, 12)});
  CHECK(found.kinds == "cp");
  CHECK(found.nanoseconds == std::vector<int64_t>{7, 3});
}

TEST_CASE("GEMMs alone: the median of each kernel, and no other kernels") {
  std::vector<DeviceActivity> all;
  for (int64_t k = 0; k < 5; ++k) {
    all.push_back(kernel(gemm, 1000 * k,
                         1000 * k + (k == 0   ? 900
                                     : k == 1 ? 50
                                              : 100)));  // one was interrupted
    all.push_back(kernel(norm, 1000 * k + 900, 1000 * k + 950));
    all.push_back(kernel("splitKreduce_kernel", 1000 * k + 950, 1000 * k + 960));
  }
  CHECK(gemm_nanoseconds(all) == 5 * (100 + 10));
  CHECK(gemm_nanoseconds({}) == 0);
}
