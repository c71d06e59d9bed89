#include "src/measure/profile.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/train/measure/kernel_activity.h"

using namespace tally::train;
using nlohmann::json;

namespace {

// Of 1000 ns: gemm runs for 300 and 100, norm for 200, of which 50 overlap with the first gemm and
// lie on another stream; a copy of 100 lies within norm.
std::vector<DeviceActivity> sample() {
  std::vector<DeviceActivity> all{kernel("gemm<float, 2>", 5000, 5300),
                                  kernel("norm", 5250, 5450, 9),
                                  kernel("gemm<float, 2>", 5900, 6000)};
  all[0].registers = 200;
  all[1].registers = 50;
  all[2].registers = 100;
  all[0].shared_bytes = 1000;
  DeviceActivity copy;
  copy.name = "[copy to device]";
  copy.start = 5300;
  copy.end = 5400;
  copy.stream = 7;
  copy.bytes = 64;
  all.push_back(copy);
  return all;
}

}  // namespace

TEST_CASE("a profile: time by kernel, what overlaps is busy once, means by duration") {
  std::vector<DeviceActivity> activities = sample();
  for (int order = 0; order < 2; ++order) {
    const DeviceProfile p = profile_of(activities, 1000e-9);
    CHECK(p.calls == 4);
    CHECK(p.kernel_seconds == doctest::Approx(700e-9));
    CHECK(p.busy_seconds == doctest::Approx(550e-9));  // 5000 to 5450, 5900 to 6000
    CHECK(p.busy_fraction() == doctest::Approx(0.55));
    REQUIRE(p.kernels.size() == 3);
    const KernelTime& gemm = p.kernels.front();
    CHECK(gemm.name == "gemm<float, 2>");
    CHECK(gemm.calls == 2);
    CHECK(gemm.seconds == doctest::Approx(400e-9));
    CHECK(gemm.min_seconds == doctest::Approx(100e-9));
    CHECK(gemm.max_seconds == doctest::Approx(300e-9));
    CHECK(gemm.share == doctest::Approx(4.0 / 7));
    CHECK(p.kernels[1].name == "norm");
    // (200 x 300 + 50 x 200 + 100 x 100) / 600; copies have none.
    CHECK(p.mean_registers == doctest::Approx(80000.0 / 600));
    CHECK(p.mean_shared_bytes == doctest::Approx(500));
    std::reverse(activities.begin(), activities.end());
  }
  const DeviceProfile nothing = profile_of({}, 1);
  CHECK(nothing.busy_fraction() == 0);
  CHECK(nothing.kernels.empty());
  CHECK(nothing.mean_registers == 0);
}

TEST_CASE("a mean weighted with durations") {
  CHECK(weighted_mean({{1, 3}, {5, 1}}) == 2);
  CHECK(weighted_mean({}) == 0);
}

TEST_CASE("every invocation is a line, from the first start on") {
  std::vector<DeviceActivity> activities = sample();
  activities[1].name = "cast<'\"'>";
  CHECK(profile_csv(activities) ==
        "name,start,end,stream,graph,grid,block,registers,shared,bytes\n"
        "\"gemm<float, 2>\",0,300,7,0,132x1x1,128x1x1,200,1000,0\n"
        "\"cast<'\"\"'>\",250,450,9,0,132x1x1,128x1x1,50,0,0\n"
        "\"gemm<float, 2>\",900,1000,7,0,132x1x1,128x1x1,100,0,0\n"
        "\"[copy to device]\",300,400,7,0,,,0,0,64\n");
}

TEST_CASE("Chrome's trace format: complete events in microseconds, a row for each stream") {
  const json trace = json::parse(chrome_trace(sample(), "rank 0"));
  std::vector<json> complete;
  int rows = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") complete.push_back(event);
    rows += event["name"] == "thread_name" ? 1 : 0;
  }
  CHECK(rows == 2);
  CHECK(trace["traceEvents"][0]["args"]["name"] == "rank 0");
  REQUIRE(complete.size() == 4);
  CHECK(complete[1]["name"] == "norm");
  CHECK(complete[1]["tid"] == 9);
  CHECK(complete[1]["ts"] == doctest::Approx(0.25));
  CHECK(complete[1]["dur"] == doctest::Approx(0.2));
  CHECK(complete[1]["args"]["grid"] == "132x1x1");
  CHECK(complete[3]["args"]["bytes"] == 64);
}
