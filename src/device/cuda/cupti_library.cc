#include "src/device/cuda/cupti_library.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "src/device/errors.h"

namespace tally::train::cuda {
namespace {

// Advice on errors that have a cause outside of the program; null for others.
const char* advice_for(CUptiResult result) {
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      return "the NVIDIA driver lets only administrators read hardware counters "
             "(ERR_NVGPUCTRPERM): run as root (in a container with --cap-add SYS_ADMIN), let the "
             "administrator load the driver with NVreg_RestrictProfilingToAdminUsers=0, or leave "
             "out --profile-counters";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "this GPU is virtualised, and its host does not let this machine read hardware "
             "counters: ask the host's administrator to enable profiling for it, or leave out "
             "--profile-counters";
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
      return "confidential computing hides this GPU's hardware counters: leave out "
             "--profile-counters";
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
      return "CUPTI does not read the hardware counters of this MIG instance: take a whole GPU, or "
             "leave out --profile-counters";
    default:
      return nullptr;
  }
}

}  // namespace

CuptiLibrary::CuptiLibrary() {
  for (const char* name : {"libcupti.so.13", "libcupti.so"})
    if (!handle_) handle_ = dlopen(name, RTLD_NOW);
  if (!handle_)
    throw DeviceError(fmt::format(
        "CUPTI cannot be loaded ({}): install the CUDA Toolkit's CUPTI and put the folder of "
        "libcupti.so.13 into LD_LIBRARY_PATH",
        dlerror()));
  load("cuptiGetResultString", &result_string_);
}

void* CuptiLibrary::symbol(const char* name) const {
  void* found = dlsym(handle_, name);
  if (!found) throw DeviceError(fmt::format("this CUPTI has no {}: take CUDA 13's", name));
  return found;
}

void CuptiLibrary::check(CUptiResult result, const char* what) const {
  if (result == CUPTI_SUCCESS) return;
  const char* text = nullptr;
  result_string_(result, &text);
  if (!text) text = "unknown error";
  if (const char* advice = advice_for(result))
    throw DeviceError(fmt::format("CUPTI cannot {} ({}): {}", what, text, advice));
  throw DeviceError(fmt::format(
      "CUPTI cannot {}: {} (another profiler, as Nsight Systems, may use it)", what, text));
}

// CUTLASS's names that demanglers cannot handle are left as they are.
std::string kernel_name(const char* mangled) {
  if (!mangled) return "unknown";
  if (std::strstr(mangled, "TmaGmmaWarpSpecialized")) return mangled;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  return plain ? plain.get() : mangled;
}

}  // namespace tally::train::cuda
