#include "src/ops/cuda/cuda_stream.h"

#include <cublas_v2.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "src/ops/cuda/attention_cudnn.h"
#include "src/ops/cuda/check.h"
#include "src/ops/cuda/cuda_graph.h"
#include "src/ops/cuda/cuda_ops.h"
#include "src/ops/cuda/gemm.h"
#include "src/ops/cuda/kernels.h"

namespace tally::train::cuda {
namespace {

// cuBLASLt's fastest algorithms for wide weight gradients split K and want room for it; measured
// best with 256 MiB on an H200. Small GPUs give up a 64th of their memory.
constexpr size_t largest_workspace = size_t{256} << 20;
constexpr size_t second_workspace_size = size_t{64} << 20;
constexpr size_t alignment = 256;

const char* base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

std::string gibibytes(size_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string version(int v) {
  return fmt::format("{}.{}", v / 1000, v % 1000 / 10);
}

// TALLY_GPU_CAPABILITY=80 takes only the kernels and libraries' paths that a GPU of that compute
// capability has, so that a newer GPU can test them.
int most_capability() {
  const char* wanted = std::getenv("TALLY_GPU_CAPABILITY");
  const int most = wanted ? std::atoi(wanted) : 0;
  return most > 0 ? most : 1000;
}

}  // namespace

void throw_cuda(cudaError_t error, const char* op, const char* file, int line) {
  throw DeviceError(fmt::format("{}:{}: {}: {} ({})", base_name(file), line, op,
                                cudaGetErrorString(error), cudaGetErrorName(error)));
}

void throw_cublas(cublasStatus_t status, const char* op, const char* file, int line) {
  throw DeviceError(fmt::format("{}:{}: {}: cuBLASLt: {}", base_name(file), line, op,
                                cublasLtGetStatusString(status)));
}

int device_count() {
  int n = 0;
  if (cudaGetDeviceCount(&n) != cudaSuccess) {
    cudaGetLastError();  // the error is sticky in the runtime's last-error slot only
    return 0;
  }
  return n;
}

std::string unavailable_reason() {
  int n = 0;
  const cudaError_t error = cudaGetDeviceCount(&n);
  if (error == cudaSuccess) return n > 0 ? "" : "no CUDA device is visible";
  cudaGetLastError();
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    return "no NVIDIA driver is loaded on this machine";
  }
  if (error == cudaErrorInsufficientDriver) {
    int runtime = 0;
    cudaRuntimeGetVersion(&runtime);
    return fmt::format(
        "the NVIDIA driver serves CUDA {} and this build needs CUDA {}: update the driver",
        version(driver), version(runtime));
  }
  return fmt::format("CUDA reports: {}", cudaGetErrorString(error));
}

DeviceInfo device_info(int index) {
  cudaDeviceProp p;
  CUDA_CHECK(cudaGetDeviceProperties(&p, index));
  int driver = 0, runtime = 0;
  CUDA_CHECK(cudaDriverGetVersion(&driver));
  CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  DeviceInfo info;
  info.name = p.name;
  info.capability = p.major * 10 + p.minor;
  info.total_bytes = p.totalGlobalMem;
  info.multiprocessors = p.multiProcessorCount;
  info.driver = "CUDA " + version(driver);
  info.runtime = fmt::format("CUDA {}, cuBLASLt {}", version(runtime), cublasLtGetVersion());
  return info;
}

std::unique_ptr<Stream> make_stream(int index) {
  return std::make_unique<CudaStream>(index);
}

CudaStream::CudaStream(int index) : index_(index) {
  const int devices = device_count();
  if (devices == 0) throw DeviceError("no GPU can be used: " + unavailable_reason());
  if (index < 0 || index >= devices) {
    throw DeviceError(
        fmt::format("there is no GPU {}: this process sees {} (numbered from 0)", index, devices));
  }
  CUDA_CHECK(cudaSetDevice(index));
  const DeviceInfo info = cuda::device_info(index);
  if (!has_device_code()) {
    throw DeviceError(fmt::format(
        "{} has compute capability {}.{} and this build has code for {}: configure with "
        "-DTALLY_CUDA_ARCHITECTURES={} and build again",
        info.name, info.capability / 10, info.capability % 10, TALLY_CUDA_ARCHITECTURES_TEXT,
        info.capability));
  }
  capability_ = std::min(info.capability, most_capability());
  multiprocessors_ = info.multiprocessors;
  int shared = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, index));
  // What a GPU of compute capability 8.0 has, where its paths are asked for.
  shared_bytes_ = static_cast<size_t>(capability_ < 90 ? std::min(shared, 163 << 10) : shared);
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  CUBLAS_CHECK(cublasLtCreate(&blas_));
  workspace_bytes_ = std::min(largest_workspace, info.total_bytes / 64 / alignment * alignment);
  workspace_ = allocate(workspace_bytes_, "workspace of the matrix products");
  gemms_ = std::make_shared<GemmPlans>(info);
  cudnn_ = make_cudnn_attention();
}

CudaStream::CudaStream(CudaStream* main)
    : main_(main),
      index_(main->index_),
      capability_(main->capability_),
      multiprocessors_(main->multiprocessors_),
      shared_bytes_(main->shared_bytes_),
      gemms_(main->gemms_) {
  CUDA_CHECK(cudaSetDevice(index_));
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  CUBLAS_CHECK(cublasLtCreate(&blas_));
}

void CudaStream::follow(const CudaStream& main) {
  matmul_mode = main.matmul_mode;
  own_bias_products = main.own_bias_products;
  float64_products = main.float64_products;
  fused_gelu = main.fused_gelu;
  deterministic = main.deterministic;
}

CudaStream::~CudaStream() {
  cudaSetDevice(index_);
  if (stream_) cudaStreamSynchronize(stream_);
  if (main_) {
    main_->release(split_memory_.data);
    main_->release(product_workspace_.data);
    main_->release(product_marks_.data);
  }
  cudnn_.reset();
  gemms_.reset();
  for (const auto& [data, bytes] : blocks_) cudaFree(data);
  if (blas_) cublasLtDestroy(blas_);
  if (stream_) cudaStreamDestroy(stream_);
}

void CudaStream::synchronize() {
  CUDA_CHECK(cudaStreamSynchronize(stream_));
}

void CudaStream::copy(void* to, const void* from, size_t bytes) {
  if (bytes) CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
}

void CudaStream::fill_zero(void* data, size_t bytes) {
  if (bytes) CUDA_CHECK(cudaMemsetAsync(data, 0, bytes, stream_));
}

void* CudaStream::allocate(size_t bytes, const char* what) {
  if (main_) return main_->allocate(bytes, what);
  const size_t rounded = std::max((bytes + alignment - 1) / alignment * alignment, alignment);
  CUDA_CHECK(cudaSetDevice(index_));
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, rounded);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw OutOfMemory(
        fmt::format("GPU {}: {} for {} does not fit: {} of {} are free and {} are held by this "
                    "run",
                    index_, gibibytes(rounded), what, gibibytes(free), gibibytes(total),
                    gibibytes(allocated_)));
  }
  CUDA_CHECK(error);
  blocks_[data] = rounded;
  ++allocations_;
  allocated_ += rounded;
  peak_ = std::max(peak_, allocated_);
  return data;
}

void CudaStream::release(void* data) {
  if (main_) {
    synchronize();
    return main_->release(data);
  }
  const auto it = blocks_.find(data);
  if (it == blocks_.end()) return;
  CUDA_CHECK(cudaStreamSynchronize(stream_));
  CUDA_CHECK(cudaFree(data));
  allocated_ -= it->second;
  blocks_.erase(it);
}

bool CudaStream::capturing() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CUDA_CHECK(cudaStreamIsCapturing(stream_, &status));
  return status == cudaStreamCaptureStatusActive;
}

void* CudaStream::second_workspace() {
  if (!second_workspace_) {
    if (capturing()) {
      throw DeviceError(
          "an operation ran for the first time while a CUDA graph was recorded: run one "
          "step before recording");
    }
    second_workspace_ = allocate(second_workspace_size, "second workspace");
  }
  return second_workspace_;
}

void* CudaStream::grow(Growing* memory, size_t bytes, const char* what) {
  if (bytes <= memory->bytes) return memory->data;
  if (capturing()) {
    throw DeviceError(
        "a product ran for the first time while a CUDA graph was recorded: run one step before "
        "recording");
  }
  if (memory->data) release(memory->data);
  *memory = {};
  memory->data = allocate(bytes, what);
  memory->bytes = bytes;
  return memory->data;
}

void* CudaStream::split_memory(size_t bytes) {
  return grow(&split_memory_, bytes, "operands split for tf32x3");
}

void CudaStream::announce_long_tuning() {
  if (const auto announce = std::exchange(tuning().before_long_tuning, nullptr)) announce();
}

void* CudaStream::product_workspace(size_t bytes) {
  if (!main_) return workspace_;
  return grow(&product_workspace_, bytes, "workspace of the weight gradients");
}

void* CudaStream::product_marks(size_t bytes) {
  if (bytes > product_marks_.bytes)
    fill_zero(grow(&product_marks_, bytes, "marks of the products"), bytes);
  return product_marks_.data;
}

size_t CudaStream::second_workspace_bytes() const {
  return second_workspace_size;
}

namespace {

class CudaGraph final : public StepGraph {
 public:
  explicit CudaGraph(CudaStream& stream) : stream_(stream) {}
  ~CudaGraph() override { drop(); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void begin_capture() override {
    drop();
    // Thread-local: other threads (checkpoint writer, sampler of the GPU's state) may go on calling
    // CUDA.
    CUDA_CHECK(cudaStreamBeginCapture(stream_.stream(), cudaStreamCaptureModeThreadLocal));
  }

  void end_capture() override {
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamEndCapture(stream_.stream(), &graph));
    const cudaError_t error = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    CUDA_CHECK(error);
  }

  void replay() override {
    if (!executable_) throw DeviceError("StepGraph::replay: nothing was recorded");
    CUDA_CHECK(cudaGraphLaunch(executable_, stream_.stream()));
  }

  bool records() const override { return true; }

 private:
  void drop() {
    if (executable_) cudaGraphExecDestroy(executable_);
    executable_ = nullptr;
  }

  CudaStream& stream_;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace

std::unique_ptr<StepGraph> make_step_graph(Stream& stream) {
  return std::make_unique<CudaGraph>(cuda_stream(stream));
}

}  // namespace tally::train::cuda
