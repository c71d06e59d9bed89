#include "src/device/cuda/gpu.h"

#include "src/device/cuda/check.h"
#include "src/device/cuda/cuda_stream.h"

namespace tally::train::cuda {
namespace {

class CudaGraph final : public StepGraph {
 public:
  explicit CudaGraph(CudaStream& stream) : stream_(stream) {}
  ~CudaGraph() override { drop(); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void begin_capture() override {
    drop();
    // Thread-local: other threads (checkpoint writer, sampler of the GPU's state) may still call
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
