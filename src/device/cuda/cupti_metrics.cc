#include "src/device/cuda/cupti_metrics.h"

#include <algorithm>
#include <utility>

namespace tally::train::cuda {

CuptiMetrics::CuptiMetrics(const CuptiLibrary& library, std::string chip,
                           std::vector<uint8_t> availability)
    : library_(library), chip_(std::move(chip)), availability_(std::move(availability)) {
  auto start = CUPTI_PARAMS(CUpti_Profiler_Host_Initialize_Params);
  start.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  start.pChipName = chip_.c_str();
  start.pCounterAvailabilityImage = availability_.empty() ? nullptr : availability_.data();
  CUPTI_CALL(library_, cuptiProfilerHostInitialize, &start, "list the metrics of this GPU");
  host_ = start.pHostObject;
  for (const CUpti_MetricType type :
       {CUPTI_METRIC_TYPE_COUNTER, CUPTI_METRIC_TYPE_RATIO, CUPTI_METRIC_TYPE_THROUGHPUT}) {
    auto list = CUPTI_PARAMS(CUpti_Profiler_Host_GetBaseMetrics_Params);
    list.pHostObject = host_;
    list.metricType = type;
    CUPTI_CALL(library_, cuptiProfilerHostGetBaseMetrics, &list, "list the metrics of this GPU");
    all_.insert(all_.end(), list.ppMetricNames, list.ppMetricNames + list.numMetrics);
  }
  std::sort(all_.begin(), all_.end());
}

CuptiMetrics::~CuptiMetrics() {
  decltype(&cuptiProfilerHostDeinitialize) end = nullptr;
  library_.load("cuptiProfilerHostDeinitialize", &end);
  auto params = CUPTI_PARAMS(CUpti_Profiler_Host_Deinitialize_Params);
  params.pHostObject = host_;
  end(&params);
}

bool CuptiMetrics::has(const std::string& base) const {
  return std::binary_search(all_.begin(), all_.end(), base);
}

int CuptiMetrics::select(std::vector<std::string> metrics) {
  metrics_ = std::move(metrics);
  pointers_.clear();
  for (const std::string& m : metrics_) pointers_.push_back(m.c_str());
  constexpr const char* what = "schedule the hardware counters";
  auto add = CUPTI_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params);
  add.pHostObject = host_;
  add.ppMetricNames = names();
  add.numMetrics = count();
  CUPTI_CALL(library_, cuptiProfilerHostConfigAddMetrics, &add, what);
  auto size = CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params);
  size.pHostObject = host_;
  CUPTI_CALL(library_, cuptiProfilerHostGetConfigImageSize, &size, what);
  config_.resize(size.configImageSize);
  auto image = CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImage_Params);
  image.pHostObject = host_;
  image.configImageSize = config_.size();
  image.pConfigImage = config_.data();
  CUPTI_CALL(library_, cuptiProfilerHostGetConfigImage, &image, what);
  auto passes = CUPTI_PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params);
  passes.configImageSize = config_.size();
  passes.pConfigImage = config_.data();
  CUPTI_CALL(library_, cuptiProfilerHostGetNumOfPasses, &passes, what);
  return static_cast<int>(passes.numOfPasses);
}

std::vector<double> CuptiMetrics::values(const std::vector<uint8_t>& counter_data, size_t range) {
  std::vector<double> values(count());
  auto params = CUPTI_PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params);
  params.pHostObject = host_;
  params.pCounterDataImage = counter_data.data();
  params.counterDataImageSize = counter_data.size();
  params.rangeIndex = range;
  params.ppMetricNames = names();
  params.numMetrics = count();
  params.pMetricValues = values.data();
  CUPTI_CALL(library_, cuptiProfilerHostEvaluateToGpuValues, &params, "evaluate the counters");
  return values;
}

}  // namespace tally::train::cuda
