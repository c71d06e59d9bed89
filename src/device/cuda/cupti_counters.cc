#include "src/device/cuda/gpu.h"

#include "src/device/errors.h"

#ifdef TALLY_WITH_CUPTI
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>

#include "src/device/cuda/check.h"
#include "src/device/cuda/cupti_library.h"
#include "src/device/cuda/cupti_metrics.h"
#endif

namespace tally::train::cuda {

#ifndef TALLY_WITH_CUPTI

std::unique_ptr<CounterProfiler> open_cupti_counters(int) {
  throw DeviceError("this build has no CUPTI: there was no cupti.h when it was configured");
}

#else

namespace {

// Kernels whose values CUPTI keeps until they are read: 86 KB for each of them on an H100.
constexpr size_t capacity = 256;
constexpr const char* reading = "read hardware counters";

// Every call by which a kernel is launched. The runtime's launches reach the driver by these, too.
constexpr CUpti_driver_api_trace_cbid launches[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunch,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchGrid,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchGridAsync,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice};

CUcontext current_context() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  constexpr unsigned since = 12000;  // the CUDA version whose function is asked for
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &function, since,
                                              cudaEnableDefault, &found));
  CUcontext context = nullptr;
  if (found != cudaDriverEntryPointSuccess ||
      reinterpret_cast<decltype(&cuCtxGetCurrent)>(function)(&context) != CUDA_SUCCESS || !context)
    throw DeviceError("the CUDA driver has no current context to profile");
  return context;
}

std::string chip_name(const CuptiLibrary& library, int device) {
  auto params = CUPTI_PARAMS(CUpti_Device_GetChipName_Params);
  params.deviceIndex = static_cast<size_t>(device);
  CUPTI_CALL(library, cuptiDeviceGetChipName, &params, "name this GPU's chip");
  return params.pChipName ? params.pChipName : "";
}

std::vector<uint8_t> counter_availability(const CuptiLibrary& library, CUcontext context) {
  auto params = CUPTI_PARAMS(CUpti_Profiler_GetCounterAvailability_Params);
  params.ctx = context;
  CUPTI_CALL(library, cuptiProfilerGetCounterAvailability, &params, reading);
  std::vector<uint8_t> image(params.counterAvailabilityImageSize);
  params.pCounterAvailabilityImage = image.data();
  CUPTI_CALL(library, cuptiProfilerGetCounterAvailability, &params, reading);
  return image;
}

// CUPTI's profiler from its start to its end.
class ProfilerUse {
 public:
  explicit ProfilerUse(const CuptiLibrary& library) : library_(library) {
    auto params = CUPTI_PARAMS(CUpti_Profiler_Initialize_Params);
    CUPTI_CALL(library_, cuptiProfilerInitialize, &params, "start its profiler");
  }
  ~ProfilerUse() {
    decltype(&cuptiProfilerDeInitialize) end = nullptr;
    library_.load("cuptiProfilerDeInitialize", &end);
    auto params = CUPTI_PARAMS(CUpti_Profiler_DeInitialize_Params);
    end(&params);
  }
  ProfilerUse(const ProfilerUse&) = delete;
  ProfilerUse& operator=(const ProfilerUse&) = delete;

  // A sentence for what the driver's settings rule out. Rights are found out by use alone.
  void require_support(int device) const {
    auto params = CUPTI_PARAMS(CUpti_Profiler_DeviceSupported_Params);
    params.cuDevice = device;
    params.api = CUPTI_PROFILER_RANGE_PROFILING;
    CUPTI_CALL(library_, cuptiProfilerDeviceSupported, &params, reading);
    const auto lacks = [](CUpti_Profiler_Support_Level level) {
      return level != CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
    };
    if (!lacks(params.isSupported)) return;
    CUptiResult why = CUPTI_ERROR_NOT_SUPPORTED;
    if (lacks(params.vGpu)) why = CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES;
    if (lacks(params.confidentialCompute)) why = CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED;
    library_.check(why, reading);
  }

 private:
  const CuptiLibrary& library_;
};

// The names of the kernels that are launched, in their order.
class Launches {
 public:
  explicit Launches(const CuptiLibrary& library) : library_(library) {
    library_.load("cuptiSubscribe", &subscribe_);
    library_.load("cuptiUnsubscribe", &unsubscribe_);
    library_.load("cuptiEnableCallback", &enable_);
    library_.check(subscribe_(&subscriber_, &Launches::launched, this), "watch kernel launches");
    for (const CUpti_CallbackId id : launches)
      library_.check(enable_(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, id),
                     "watch kernel launches");
  }
  ~Launches() { unsubscribe_(subscriber_); }
  Launches(const Launches&) = delete;
  Launches& operator=(const Launches&) = delete;

  // `full`: called before a launch once `capacity` kernels were launched since the last call.
  void start(std::function<void()> full) {
    const std::lock_guard<std::mutex> guard(mutex_);
    full_ = std::move(full);
    names_.clear();
    since_full_ = 0;
    recording_ = true;
  }
  // Throws what `full` has thrown.
  std::vector<std::string> stop() {
    const std::lock_guard<std::mutex> guard(mutex_);
    recording_ = false;
    full_ = nullptr;
    if (const std::exception_ptr failure = std::exchange(failure_, nullptr))
      std::rethrow_exception(failure);
    return std::exchange(names_, {});
  }

 private:
  static void CUPTIAPI launched(void* self, CUpti_CallbackDomain, CUpti_CallbackId,
                                const void* data) {
    static_cast<Launches*>(self)->add(*static_cast<const CUpti_CallbackData*>(data));
  }
  void add(const CUpti_CallbackData& data) {
    if (data.callbackSite != CUPTI_API_ENTER) return;
    const std::lock_guard<std::mutex> guard(mutex_);
    if (!recording_) return;
    if (since_full_ == capacity) read_all();
    names_.push_back(kernel_name(data.symbolName));
    ++since_full_;
  }
  // CUPTI and the driver, which call this, let no exception pass.
  void read_all() {
    try {
      full_();
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
    }
    since_full_ = 0;
  }

  const CuptiLibrary& library_;
  decltype(&cuptiSubscribe) subscribe_ = nullptr;
  decltype(&cuptiUnsubscribe) unsubscribe_ = nullptr;
  decltype(&cuptiEnableCallback) enable_ = nullptr;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::mutex mutex_;
  std::function<void()> full_;
  std::vector<std::string> names_;
  size_t since_full_ = 0;
  std::exception_ptr failure_;
  bool recording_ = false;
};

class CuptiCounters final : public CounterProfiler {
 public:
  explicit CuptiCounters(int device)
      : use_(library_),
        context_(supported_context(device)),
        metrics_(library_, chip_name(library_, device), counter_availability(library_, context_)),
        launches_(library_) {
    auto params = CUPTI_PARAMS(CUpti_RangeProfiler_Enable_Params);
    params.ctx = context_;
    CUPTI_CALL(library_, cuptiRangeProfilerEnable, &params, reading);
    profiler_ = params.pRangeProfilerObject;
  }
  ~CuptiCounters() override {
    decltype(&cuptiRangeProfilerDisable) disable = nullptr;
    library_.load("cuptiRangeProfilerDisable", &disable);
    auto params = CUPTI_PARAMS(CUpti_RangeProfiler_Disable_Params);
    params.pRangeProfilerObject = profiler_;
    disable(&params);
  }
  CuptiCounters(const CuptiCounters&) = delete;
  CuptiCounters& operator=(const CuptiCounters&) = delete;

  std::string chip() const override { return metrics_.chip(); }
  bool has_metric(const std::string& base) const override { return metrics_.has(base); }

  int select(const std::vector<std::string>& metrics) override {
    const int passes = metrics_.select(metrics);
    auto params = CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataSize_Params);
    params.pRangeProfilerObject = profiler_;
    params.pMetricNames = metrics_.names();
    params.numMetrics = metrics_.count();
    params.maxNumOfRanges = capacity;
    params.maxNumRangeTreeNodes = static_cast<uint32_t>(capacity);
    CUPTI_CALL(library_, cuptiRangeProfilerGetCounterDataSize, &params, reading);
    data_.resize(params.counterDataSize);
    // Rights are found out here, before the run does any work.
    begin();
    end();
    return passes;
  }

  void start() override {
    counted_ = {};
    begin();
    launches_.start([this] {
      end();
      begin();
    });
  }

  CounterReading stop() override {
    std::vector<std::string> launched = launches_.stop();
    end();
    CounterReading result = std::exchange(counted_, {});
    result.launched = std::move(launched);
    return result;
  }

 private:
  CUcontext supported_context(int device) const {
    use_.require_support(device);
    return current_context();
  }

  void begin() {
    auto empty = CUPTI_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
    empty.pRangeProfilerObject = profiler_;
    empty.counterDataSize = data_.size();
    empty.pCounterData = data_.data();
    CUPTI_CALL(library_, cuptiRangeProfilerCounterDataImageInitialize, &empty, reading);
    auto config = CUPTI_PARAMS(CUpti_RangeProfiler_SetConfig_Params);
    config.pRangeProfilerObject = profiler_;
    config.configSize = metrics_.config().size();
    config.pConfig = metrics_.config().data();
    config.counterDataImageSize = data_.size();
    config.pCounterDataImage = data_.data();
    config.range = CUPTI_AutoRange;
    config.replayMode = CUPTI_KernelReplay;
    config.maxRangesPerPass = capacity;
    config.numNestingLevels = 1;
    config.minNestingLevel = 1;
    config.targetNestingLevel = 1;
    CUPTI_CALL(library_, cuptiRangeProfilerSetConfig, &config, reading);
    auto start = CUPTI_PARAMS(CUpti_RangeProfiler_Start_Params);
    start.pRangeProfilerObject = profiler_;
    CUPTI_CALL(library_, cuptiRangeProfilerStart, &start, reading);
  }

  // Adds the values of the kernels since begin().
  void end() {
    auto stop = CUPTI_PARAMS(CUpti_RangeProfiler_Stop_Params);
    stop.pRangeProfilerObject = profiler_;
    CUPTI_CALL(library_, cuptiRangeProfilerStop, &stop, reading);
    auto decode = CUPTI_PARAMS(CUpti_RangeProfiler_DecodeData_Params);
    decode.pRangeProfilerObject = profiler_;
    CUPTI_CALL(library_, cuptiRangeProfilerDecodeData, &decode, reading);
    counted_.dropped += static_cast<int64_t>(decode.numOfRangeDropped);
    auto info = CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo_Params);
    info.pCounterDataImage = data_.data();
    info.counterDataImageSize = data_.size();
    CUPTI_CALL(library_, cuptiRangeProfilerGetCounterDataInfo, &info, reading);
    int64_t first = 0;
    for (size_t range = 0; range < info.numTotalRanges; ++range) {
      const int64_t launch = launch_of(range);
      if (range == 0) first = launch;
      if (launch != first + static_cast<int64_t>(range))
        throw DeviceError(fmt::format("CUPTI gave the counters of kernel {} instead of kernel {}",
                                      launch, first + static_cast<int64_t>(range)));
      counted_.values.push_back(metrics_.values(data_, range));
    }
  }

  // CUPTI names each kernel by its number in the order of the launches.
  int64_t launch_of(size_t range) {
    auto params = CUPTI_PARAMS(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params);
    params.pCounterDataImage = data_.data();
    params.counterDataImageSize = data_.size();
    params.rangeIndex = range;
    params.rangeDelimiter = "/";
    CUPTI_CALL(library_, cuptiRangeProfilerCounterDataGetRangeInfo, &params, reading);
    const char* name = params.rangeName ? params.rangeName : "";
    char* end = nullptr;
    const int64_t launch = std::strtoll(name, &end, 10);
    if (end == name || *end != '\0')
      throw DeviceError(fmt::format("CUPTI names a kernel '{}', which is not a number", name));
    return launch;
  }

  const CuptiLibrary library_;
  const ProfilerUse use_;
  const CUcontext context_;
  CuptiMetrics metrics_;
  Launches launches_;
  CUpti_RangeProfiler_Object* profiler_ = nullptr;
  std::vector<uint8_t> data_;
  CounterReading counted_;
};

}  // namespace

std::unique_ptr<CounterProfiler> open_cupti_counters(int device) {
  return std::make_unique<CuptiCounters>(device);
}

#endif

}  // namespace tally::train::cuda
