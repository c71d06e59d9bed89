// bench/gpu/trace.cc without a GPU: this program stands in for CUPTI (its functions come before the
// library's) and gives three records; a child process loads tally-trace.so as the driver would and
// leaves by exit().
#include <cupti.h>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace {

CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;
size_t given = 0;

CUpti_ActivityKernel10 kernel;
CUpti_ActivityMemcpy6 copy;
CUpti_ActivityMemset4 fill;

void make_records() {
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.name = "_ZN5tally11norm_kernelEPKdi";
  kernel.start = 1700000000000000100;
  kernel.end = 1700000000000000350;
  kernel.streamId = 7;
  kernel.graphId = 3;
  kernel.gridX = 132;
  kernel.gridY = kernel.gridZ = kernel.blockY = kernel.blockZ = 1;
  kernel.blockX = 256;
  kernel.registersPerThread = 64;
  kernel.staticSharedMemory = 512;
  kernel.dynamicSharedMemory = 1024;
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.start = 10;
  copy.end = 20;
  copy.streamId = 7;
  copy.bytes = 4096;
  fill.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  fill.start = 30;
  fill.end = 31;
  fill.streamId = 8;
  fill.bytes = 16;
}

}  // namespace

extern "C" {
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc r,
                                           CUpti_BuffersCallbackCompleteFunc c) {
  request = r;
  complete = c;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind) {
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(uint32_t) {
  uint8_t* buffer = nullptr;
  size_t size = 0, most = 1;
  request(&buffer, &size, &most);
  if (!buffer || size < 4096 || most != 0) std::abort();
  complete(nullptr, 0, buffer, size, 1);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(uint8_t*, size_t, CUpti_Activity** record) {
  void* const records[] = {&kernel, &copy, &fill};
  if (given == 3) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = static_cast<CUpti_Activity*>(records[given++]);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  *dropped = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "an error";
  return CUPTI_SUCCESS;
}
}

TEST_CASE("tally-trace.so writes a line a record when the program ends") {
  const std::string path = "trace_test.csv";
  unlink(path.c_str());
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    setenv("TALLY_TRACE", path.c_str(), 1);
    make_records();
    void* library = dlopen(TALLY_TRACE_LIBRARY, RTLD_NOW);
    if (!library) std::fprintf(stderr, "%s\n", dlerror());
    if (!library) _exit(1);
    auto* inject = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
    if (!inject || inject() != 1) _exit(2);
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  CHECK(text.str() ==
        "name,start,end,stream,graph,grid,block,registers,shared,bytes\n"
        "\"tally::norm_kernel(double const*, int)\",1700000000000000100,1700000000000000350,7,3,"
        "132x1x1,256x1x1,64,1536,0\n"
        "[copy to device],10,20,7,0,,,,,4096\n"
        "[fill],30,31,8,0,,,,,16\n");
}
