#include "src/measure/counters.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

using namespace tally::train;

namespace {

constexpr size_t tensor = 0, tensor_tc = 1, fp16 = 2, xu = 4, dram = 5;
const std::string percent = ".avg.pct_of_peak_sustained_elapsed";

// The metrics of the columns that CUPTI 13 lists for an H100, as far as a selection may ask for them.
const std::set<std::string> gh100{"gpu__time_duration",
                                  "sm__pipe_tensor_cycles_active",
                                  "sm__inst_executed_pipe_tensor",
                                  "sm__inst_executed_pipe_fma_type_fp16",
                                  "sm__inst_executed_pipe_fma",
                                  "sm__pipe_fma_cycles_active",
                                  "sm__inst_executed_pipe_xu",
                                  "dram__throughput",
                                  "sm__cycles_active"};

CounterSelection selection_of(std::set<std::string> metrics) {
  return select_counters([metrics](const std::string& name) { return metrics.count(name) > 0; });
}

// Tensor cores and special functions alone are counted.
CounterSelection two_columns() {
  return selection_of(
      {"gpu__time_duration", "sm__pipe_tensor_cycles_active", "sm__inst_executed_pipe_xu"});
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the metrics of an H100: the duration first, then each column's first choice") {
  const CounterSelection selection = selection_of(gh100);
  CHECK(selection.metrics ==
        std::vector<std::string>{
            "gpu__time_duration.sum", "sm__pipe_tensor_cycles_active" + percent,
            "sm__inst_executed_pipe_fma_type_fp16" + percent,
            "sm__inst_executed_pipe_fma" + percent, "sm__inst_executed_pipe_xu" + percent,
            "dram__throughput" + percent, "sm__cycles_active" + percent});
  CHECK(selection.index[tensor] == 1U);
  CHECK(!selection.index[tensor_tc]);
  CHECK(selection.index[fp16] == 2U);
  CHECK(missing_counters_text(selection, "GH100").empty());
}

TEST_CASE("a column without its first choice takes the next; without any it is empty and said so") {
  std::set<std::string> metrics = gh100;
  metrics.erase("sm__pipe_tensor_cycles_active");
  metrics.insert("sm__inst_executed_pipe_fp16");
  metrics.erase("dram__throughput");
  const CounterSelection selection = selection_of(metrics);
  CHECK(selection.metrics[*selection.index[tensor]] == "sm__inst_executed_pipe_tensor" + percent);
  CHECK(selection.metrics[*selection.index[fp16]] == "sm__inst_executed_pipe_fp16" + percent);
  CHECK(!selection.index[dram]);
  CHECK(missing_counters_text(selection, "GB10B") ==
        "--profile-counters: CUPTI has no counter on GB10B for dram (device memory): left empty");
  CHECK(contains(message_of([] { selection_of({"sm__cycles_active"}); }), "gpu__time_duration"));
  CHECK(contains(message_of([] { selection_of({"gpu__time_duration"}); }), "no metric of a pipe"));
}

TEST_CASE("values get the names of the kernels in the order of the launches") {
  const CounterReading reading{{"gemm", "softmax"}, {{2000, 80, 0}, {500, 0, 40}}, 0};
  const auto kernels = match_counters(reading, two_columns(), 7);
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].name == "gemm");
  CHECK(kernels[0].iteration == 7);
  CHECK(kernels[0].seconds == doctest::Approx(2e-6));
  CHECK(kernels[0].percent[tensor] == 80.0);
  CHECK(kernels[1].percent[xu] == 40.0);
  CHECK(!kernels[1].percent[fp16]);
}

TEST_CASE("numbers that differ, lost kernels and values that are no numbers are errors") {
  const CounterSelection selection = two_columns();
  const auto message = [&selection](const CounterReading& reading) {
    return message_of([&] { match_counters(reading, selection, 7); });
  };
  const std::string one_more = message({{"gemm"}, {{1, 1, 1}, {1, 1, 1}}, 0});
  CHECK(contains(one_more, "iteration 7 launched 1 kernels"));
  CHECK(contains(one_more, "counters of 2"));
  CHECK(contains(message({{"gemm", "gemm"}, {{1, 1, 1}}, 0}), "launched 2 kernels"));
  CHECK(contains(message({{"gemm"}, {{1, 1, 1}}, 3}), "lost those of 3"));
  CHECK(contains(message({{"gemm"}, {{1, 1}}, 0}), "kernel 0 of iteration 7 (gemm)"));
  CHECK(contains(message({{"gemm"}, {{1, NAN, 1}}, 0}), "not a number"));
  CHECK(contains(message({{"gemm"}, {{1, -1, 1}}, 0}), "not a number"));
}

TEST_CASE("means are weighted with durations, by kernel and over all") {
  const CounterReading reading{
      {"gemm", "softmax", "gemm"}, {{3000, 90, 0}, {4000, 0, 50}, {1000, 10, 8}}, 0};
  const CounterProfile p = counter_profile_of(match_counters(reading, two_columns(), 1));
  CHECK(p.all.calls == 3);
  CHECK(p.all.seconds == doctest::Approx(8e-6));
  CHECK(*p.all.percent[tensor] == doctest::Approx((3 * 90 + 10) / 8.0));
  CHECK(*p.all.percent[xu] == doctest::Approx((4 * 50 + 8) / 8.0));
  CHECK(!p.all.percent[dram]);
  REQUIRE(p.kernels.size() == 2);
  CHECK(p.kernels[0].name == "gemm");
  CHECK(p.kernels[0].calls == 2);
  CHECK(p.kernels[0].share == doctest::Approx(0.5));
  CHECK(*p.kernels[0].percent[tensor] == doctest::Approx(70));
  CHECK(*p.kernels[1].percent[xu] == doctest::Approx(50));
  CHECK(counter_profile_of({}).all.calls == 0);
}

TEST_CASE("the files: a line for each invocation, a line for each kernel and one for all") {
  const CounterReading reading{{"gemm<'\"', 2>", "softmax"}, {{3000, 90, 0}, {1000, 0, 50.5}}, 0};
  const auto kernels = match_counters(reading, two_columns(), 4);
  CHECK(counters_csv(kernels) ==
        "iteration,order,name,nanoseconds,tensor,tensor_tc,fp16,fma,xu,dram,sm_active\n"
        "4,0,\"gemm<'\"\"', 2>\",3000,90.000,,,,0.000,,\n"
        "4,1,\"softmax\",1000,0.000,,,,50.500,,\n");
  CHECK(kernel_use_csv(counter_profile_of(kernels)) ==
        "name,calls,nanoseconds,share,tensor,tensor_tc,fp16,fma,xu,dram,sm_active\n"
        "\"gemm<'\"\"', 2>\",1,3000,0.750000,90.000,,,,0.000,,\n"
        "\"softmax\",1,1000,0.250000,0.000,,,,50.500,,\n"
        "\"[all kernels]\",2,4000,1.000000,67.500,,,,12.625,,\n");
}
