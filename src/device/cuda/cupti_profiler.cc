#include "src/device/cuda/gpu.h"

#include <fmt/format.h>

#ifdef TALLY_WITH_CUPTI
#include <cupti.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "src/device/cuda/cupti_library.h"
#include "src/device/cuda/cupti_records.h"
#endif

namespace tally::train::cuda {

#ifndef TALLY_WITH_CUPTI

std::unique_ptr<DeviceProfiler> open_cupti_profiler() {
  throw DeviceError("this build has no CUPTI: there was no cupti.h when it was configured");
}

#else

namespace {

// The functions of libcupti.so, which is opened at run time.
struct Library : CuptiLibrary {
  Library() {
    load("cuptiActivityRegisterCallbacks", &register_callbacks);
    load("cuptiActivityEnable", &enable);
    load("cuptiActivityDisable", &disable);
    load("cuptiActivityFlushAll", &flush_all);
    load("cuptiActivityGetNextRecord", &next_record);
    load("cuptiActivityGetNumDroppedRecords", &dropped_records);
  }

  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
};

// The list that CUPTI's thread adds to. CUPTI's callbacks have no argument for the profiler that
// they serve.
struct Collected {
  std::mutex mutex;
  const Library* library = nullptr;  // null: nobody profiles
  std::vector<DeviceActivity> activities;
  int64_t lost = 0;
};
Collected& collected() {
  static Collected& all = *new Collected;  // never destroyed: records may come after main()
  return all;
}

std::string size_text(int x, int y, int z) {
  return fmt::format("{}x{}x{}", x, y, z);
}

DeviceActivity activity_of(const CUpti_ActivityKernel10& k) {
  DeviceActivity a;
  a.name = kernel_name(k.name);
  a.start = static_cast<int64_t>(k.start);
  a.end = static_cast<int64_t>(k.end);
  a.stream = k.streamId;
  a.graph = k.graphId;
  a.grid = size_text(k.gridX, k.gridY, k.gridZ);
  a.block = size_text(k.blockX, k.blockY, k.blockZ);
  a.registers = k.registersPerThread;
  a.shared_bytes = static_cast<int64_t>(k.staticSharedMemory) + k.dynamicSharedMemory;
  return a;
}

// A copy or a fill.
template <typename Record>
DeviceActivity transfer_of(const char* name, const Record& r) {
  DeviceActivity a;
  a.name = name;
  a.start = static_cast<int64_t>(r.start);
  a.end = static_cast<int64_t>(r.end);
  a.stream = r.streamId;
  a.graph = r.graphId;
  a.bytes = static_cast<int64_t>(r.bytes);
  return a;
}

void add(const CUpti_Activity* record, std::vector<DeviceActivity>* to) {
  visit_activity(
      record, [to](const auto& kernel) { to->push_back(activity_of(kernel)); },
      [to](const char* name, const auto& r) { to->push_back(transfer_of(name, r)); });
}

void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t* buffer, size_t,
                          size_t filled) {
  Collected& all = collected();
  const std::lock_guard<std::mutex> guard(all.mutex);
  if (all.library) {
    CUpti_Activity* record = nullptr;
    while (filled > 0 && all.library->next_record(buffer, filled, &record) == CUPTI_SUCCESS)
      add(record, &all.activities);
    size_t lost = 0;
    all.library->dropped_records(context, stream, &lost);
    all.lost += static_cast<int64_t>(lost);
  }
  std::free(buffer);
}

class CuptiProfiler final : public DeviceProfiler {
 public:
  CuptiProfiler() {
    library_.check(library_.register_callbacks(give_buffer, take_buffer), "take buffers");
  }
  ~CuptiProfiler() override {
    const std::lock_guard<std::mutex> guard(collected().mutex);
    collected().library = nullptr;
  }
  CuptiProfiler(const CuptiProfiler&) = delete;
  CuptiProfiler& operator=(const CuptiProfiler&) = delete;

  void start() override {
    {
      const std::lock_guard<std::mutex> guard(collected().mutex);
      collected().library = &library_;
      collected().activities.clear();
      collected().lost = 0;
    }
    for (const CUpti_ActivityKind kind : activity_kinds)
      library_.check(library_.enable(kind), "record what the GPU does");
  }

  std::vector<DeviceActivity> stop(int64_t* lost) override {
    for (const CUpti_ActivityKind kind : activity_kinds)
      library_.check(library_.disable(kind), "end its records");
    library_.check(library_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "give its last records");
    const std::lock_guard<std::mutex> guard(collected().mutex);
    std::vector<DeviceActivity> activities = std::move(collected().activities);
    collected().activities.clear();
    collected().library = nullptr;
    if (lost) *lost = collected().lost;
    std::stable_sort(
        activities.begin(), activities.end(),
        [](const DeviceActivity& a, const DeviceActivity& b) { return a.start < b.start; });
    return activities;
  }

 private:
  const Library library_;
};

}  // namespace

std::unique_ptr<DeviceProfiler> open_cupti_profiler() {
  return std::make_unique<CuptiProfiler>();
}

#endif

}  // namespace tally::train::cuda
