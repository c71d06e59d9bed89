// Records what the GPU does, one line a kernel, copy or fill, as it ran: also within CUDA graphs,
// with what overlapped with it, at the clock of the whole step. The CUDA driver loads this library
// by itself when a program first uses the GPU:
//
//   CUDA_INJECTION64_PATH=build/bin/tally-trace.so TALLY_TRACE=trace.csv tally-train ...
//
// CUPTI's activity records arrive on a thread of its own, buffer by buffer, and are written as they
// come, so lines are in no order; times are nanoseconds on one clock. A process that ends by _exit
// or by a signal loses its last buffers. bench/gpu/kernels.py reads the file.
#include <cupti.h>
#include <cxxabi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "src/device/cuda/cupti_records.h"

namespace {

using tally::train::cuda::activity_kinds;
using tally::train::cuda::give_buffer;
using tally::train::cuda::visit_activity;

// The last flush runs on the thread that leaves main(), concurrently with CUPTI's. Never destroyed,
// because a record may come after the destructors of this library.
std::mutex& lock = *new std::mutex;
std::FILE* file = nullptr;

bool succeeded(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return true;
  const char* text = nullptr;
  cuptiGetResultString(result, &text);
  std::fprintf(stderr, "tally-trace: %s: %s\n", what, text ? text : "unknown error");
  return false;
}

// Names contain commas and, as compilers make them, never quotes. CUTLASS's names that demanglers
// cannot handle are left as they are.
std::string quoted(const char* name) {
  if (!name) name = "unknown";
  if (std::strstr(name, "TmaGmmaWarpSpecialized")) return std::string("\"") + name + "\"";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return std::string("\"") + (plain ? plain.get() : name) + "\"";
}

void write_kernel(const CUpti_ActivityKernel10& k) {
  std::fprintf(file, "%s,%llu,%llu,%u,%u,%dx%dx%d,%dx%dx%d,%u,%lld,0\n", quoted(k.name).c_str(),
               static_cast<unsigned long long>(k.start), static_cast<unsigned long long>(k.end),
               k.streamId, k.graphId, k.gridX, k.gridY, k.gridZ, k.blockX, k.blockY, k.blockZ,
               static_cast<unsigned>(k.registersPerThread),
               static_cast<long long>(k.staticSharedMemory) + k.dynamicSharedMemory);
}

// A copy or a fill.
template <typename Record>
void write_transfer(const char* name, const Record& r) {
  std::fprintf(file, "%s,%llu,%llu,%u,%u,,,,,%llu\n", name,
               static_cast<unsigned long long>(r.start), static_cast<unsigned long long>(r.end),
               r.streamId, r.graphId, static_cast<unsigned long long>(r.bytes));
}

void write(const CUpti_Activity* record) {
  visit_activity(record, write_kernel,
                 [](const char* name, const auto& r) { write_transfer(name, r); });
}

void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t* buffer, size_t,
                          size_t filled) {
  const std::lock_guard<std::mutex> guard(lock);
  CUpti_Activity* record = nullptr;
  while (file && filled > 0 &&
         cuptiActivityGetNextRecord(buffer, filled, &record) == CUPTI_SUCCESS) {
    write(record);
  }
  size_t dropped = 0;
  cuptiActivityGetNumDroppedRecords(context, stream, &dropped);
  if (dropped > 0) std::fprintf(stderr, "tally-trace: %zu records were lost\n", dropped);
  std::free(buffer);
}

void finish() {
  succeeded(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "the last records");
  const std::lock_guard<std::mutex> guard(lock);
  if (std::fclose(file) != 0) std::perror("tally-trace: the trace is not complete");
  file = nullptr;
}

}  // namespace

// The driver calls it. 1: success.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char* path = std::getenv("TALLY_TRACE");
  if (!path || file) return 1;
  file = std::fopen(path, "w");
  if (!file) {
    std::fprintf(stderr, "tally-trace: TALLY_TRACE=%s cannot be written: ", path);
    std::perror("");
    return 1;
  }
  std::fputs("name,start,end,stream,graph,grid,block,registers,shared,bytes\n", file);
  if (!succeeded(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), "CUPTI's buffers"))
    return 1;
  for (const CUpti_ActivityKind kind : activity_kinds) {
    if (!succeeded(cuptiActivityEnable(kind), "CUPTI's activity records")) return 1;
  }
  std::atexit(finish);
  return 1;
}
