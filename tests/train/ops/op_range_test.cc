// What a profiler sees of the operations: NVTX loads this test's functions as it would load nsys's.
#define NVTX_NO_IMPL  // types alone: the library under test has the functions
#include <doctest/doctest.h>
#include <nvtx3/nvToolsExt.h>

#include <string>
#include <vector>

#include "src/ops/loss/loss.h"

namespace {

std::vector<std::string>& events() {
  static std::vector<std::string> all;
  return all;
}
int push(const char* name) {
  events().emplace_back(name);
  return 0;
}
int pop() {
  events().emplace_back("end");
  return 0;
}

int load(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0)
    return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}

}  // namespace

extern "C" NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr;
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = load;

namespace tally::train {
namespace {

TEST_CASE("each operation is a range of its own name in a profiler's timeline") {
  const auto s = make_stream(Device{});
  std::vector<float> losses{1, 2};
  double sum = 0;
  events().clear();
  add_losses(*s, Tensor(losses.data(), DType::f32, {2}), 0.5, &sum);
  CHECK(sum == 1.5);
  CHECK(events() == std::vector<std::string>{"add_losses", "end"});
}

}  // namespace
}  // namespace tally::train
