// What a dry run asks the planner of tally-train.
#include <doctest/doctest.h>

#include <map>

#include "steps/kinds.h"

namespace tally {
namespace {

using Values = std::map<std::string, std::string, std::less<>>;

PlanRequest request_of(Values values, StepKind kind = StepKind::run) {
  Step step;
  step.kind = kind;
  return step_kinds().plan_request(step, [&](std::string_view name) {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : &found->second;
  });
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("flags, GPUs and the device are those of the step") {
  const PlanRequest request = request_of({{"launch", "/opt/t/bin/tally-train --lr 1e-4  --bf16 "},
                                          {"nodes", "8"},
                                          {"gpuspernode", "4"},
                                          {"plan_device", "H100"}});
  CHECK(request.programs == Strings{"tally-train-help", "tally-train"});
  CHECK(request.arguments == Strings{"--lr", "1e-4", "--bf16", "--plan", "--plan-json",
                                     "--plan-nodes=8", "--plan-gpus-per-node=4",
                                     "--plan-device=H100"});
  CHECK(request.why_not.empty());
}

TEST_CASE("without GPUs and a device the flags alone are planned; quotes are the shell's") {
  const PlanRequest request =
      request_of({{"launch", R"(env A=1 tally-train --data-path 'a b' "c d" e\ f '')"}});
  CHECK(request.arguments ==
        Strings{"--data-path", "a b", "c d", "e f", "", "--plan", "--plan-json"});
}

TEST_CASE("other programs and commands have no plan") {
  CHECK(request_of({{"launch", "./solver --n 3"}}).programs.empty());
  CHECK(request_of({{"launch", "tally-train-like --n 3"}}).programs.empty());
  CHECK(request_of({{"launch", "tally-train evaluate --n 3"}}).programs.empty());
  CHECK(request_of({{"launch", "tally-train prepare --n 3"}}).programs.empty());
  CHECK(request_of({{"launch", "tally-train"}}).programs.empty());
  CHECK(request_of({{"launch", "tally-train --n 3"}}, StepKind::setup).programs.empty());
  CHECK(request_of({}).programs.empty());
  CHECK(!request_of({{"launch", "tally-train train --n 3"}}).programs.empty());
}

TEST_CASE("a line that only a shell can expand is not guessed") {
  for (const char* launch : {"tally-train --n $N", "tally-train --n \"$N\"", "tally-train --n `n`",
                             "tally-train --n 3 | tee log", "tally-train --n 'open",
                             "tally-train --n *.bin", "cd x && tally-train --n 3"}) {
    CAPTURE(std::string(launch));
    const PlanRequest request = request_of({{"launch", launch}});
    CHECK(request.programs.empty());
    CHECK(request.why_not == "its launch line is known only to the shell that runs it");
  }
  CHECK(request_of({{"launch", "tally-train --n '$N'"}}).arguments.at(1) == "$N");
}

TEST_CASE("the line of a plan") {
  const std::string layout =
      R"({"parameters": 12843796480, "bubble": 0.0117, "worst_stage": 1, "layout": {"gpus": 32,
      "tensor": 2, "pipeline": 4, "data": 4}, "stages": [{"bytes": {"total": 1e9}},
      {"bytes": {"total": 23.3e9}}])";
  CHECK(step_kinds().plan_summary(layout + "}") ==
        "12.8 billion parameters on 32 GPUs (tensor 2 x pipeline 4 x data 4), 23.3 GB a GPU, "
        "bubble 1.2 %");
  const std::string device = R"(, "device": {"name": "A100-40GB", "bytes": 42.9e9})";
  CHECK(step_kinds().plan_summary(layout + device +
                                  R"(, "fits": true, "changes": [], "smallest": {"nodes": 2}})") ==
        "12.8 billion parameters on 32 GPUs (tensor 2 x pipeline 4 x data 4), 23.3 GB a GPU of the "
        "42.9 GB of A100-40GB: fits, bubble 1.2 %, the model fits from 2 nodes on");
  CHECK(step_kinds().plan_summary(
            layout + device +
            R"(, "fits": false, "changes": ["--plan-zero 2"], "smallest": {"nodes": 0}})") ==
        "12.8 billion parameters on 32 GPUs (tensor 2 x pipeline 4 x data 4), 23.3 GB a GPU of the "
        "42.9 GB of A100-40GB: DOES NOT FIT, bubble 1.2 %, would fit with --plan-zero 2, no layout "
        "of the model fits such nodes");
  // Small, and for one device, which has no layout.
  CHECK(step_kinds().plan_summary(
            R"({"parameters": 203648, "bubble": 0, "worst_stage": 0, "layout": {"gpus": 1,
      "tensor": 1, "pipeline": 1, "data": 1}, "stages": [{"bytes": {"total": 1.4e9}}]})") ==
        "0.2 M parameters, 1 GPU, 1.4 GB");
  CHECK(step_kinds().plan_summary("").empty());
  CHECK(step_kinds().plan_summary("{}").empty());
  CHECK(step_kinds().plan_summary("usage: ...").empty());
}

}  // namespace tally
