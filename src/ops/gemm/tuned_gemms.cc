// The tuned algorithms: in memory, and in a file.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "src/device/cuda/check.h"
#include "src/device/tuning_file.h"
#include "src/ops/gemm/float64.h"
#include "src/ops/gemm/timing.h"
#include "src/ops/gemm/tuned_gemm.h"
#include "src/ops/tuned.h"

namespace tally::train::cuda {
namespace {

constexpr int algorithms_tried = 32;
constexpr size_t algorithm_words = sizeof(cublasLtMatmulAlgo_t) / sizeof(uint64_t);

// The memory that a GEMM may write while it is timed: the output itself when it is overwritten
// anyway.
class TuningOutput {
 public:
  TuningOutput(CudaStream& s, const GemmProblem& p) : data_(p.out) {
    if (!adds_in_place(p)) return;
    const int64_t elements = (p.batch - 1) * p.out_stride + (p.rows - 1) * p.out_leading + p.cols;
    const size_t bytes = static_cast<size_t>(elements) * size_of(p.out_dtype);
    if (cudaMalloc(&copy_, bytes) != cudaSuccess) {
      cudaGetLastError();
      copy_ = nullptr;
    } else {
      CUDA_CHECK(cudaMemcpyAsync(copy_, p.out, bytes, cudaMemcpyDeviceToDevice, s.stream()));
    }
    data_ = copy_;
  }
  ~TuningOutput() { cudaFree(copy_); }
  TuningOutput(const TuningOutput&) = delete;
  TuningOutput& operator=(const TuningOutput&) = delete;
  void* data() const { return data_; }  // null: no memory, do not tune

 private:
  void* data_;
  void* copy_ = nullptr;
};

// The key under which the tile is remembered where the float64 tensor cores are the fastest.
const std::string float64_prefix = "float64/";
std::string float64_key(const std::string& key) {
  return float64_prefix + key;
}

std::string line_of(const std::string& key, const cublasLtMatmulAlgo_t& algorithm) {
  uint64_t words[algorithm_words];
  std::memcpy(words, &algorithm, sizeof words);
  std::string line = "gemm " + key;
  for (const uint64_t w : words) line += fmt::format(" {:x}", w);
  return line;
}
std::string line_of(const std::string& key, int index) {
  return fmt::format("choice {} {}", key, index);
}

}  // namespace

TunedGemms::TunedGemms(const DeviceInfo& device)
    : file_(tuning_file(device.name, cublasLtGetVersion(), std::getenv)) {
  std::ifstream in(file_);
  read(in);
}
TunedGemms::~TunedGemms() = default;

void TunedGemms::read(std::istream& in) {
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::string kind, key;
    fields >> kind >> key;
    if (kind == "choice") {
      int index = -1;
      if (fields >> index) choices_[key] = index;
    } else if (kind == "gemm") {
      std::vector<uint64_t> words;
      for (uint64_t w = 0; fields >> std::hex >> w;) words.push_back(w);
      if (words.size() == algorithm_words) stored_[key] = std::move(words);
    }
  }
}

void TunedGemms::append(const std::string& line) const {
  if (file_.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(file_).parent_path(), ignored);
  // One short write in append mode, so that ranks that tune at the same time do not mix their
  // lines.
  std::ofstream out(file_, std::ios::app);
  out << line + "\n" << std::flush;
}

int TunedGemms::choice(const std::string& key) const {
  const auto it = choices_.find(key);
  return it == choices_.end() ? -1 : it->second;
}

void TunedGemms::remember(const std::string& key, int index) {
  choices_[key] = index;
  append(line_of(key, index));
}

std::string TunedGemms::text() const {
  std::string text;
  for (const auto& [key, index] : choices_) {
    // A file's choices of a tile count only where they are in use.
    const bool tile = key.rfind(float64_prefix, 0) == 0;
    const auto gemm = tile ? gemms_.find(key.substr(float64_prefix.size())) : gemms_.end();
    if (!tile || (gemm != gemms_.end() && gemm->second && gemm->second->float64_tile == index))
      text += line_of(key, index) + "\n";
  }
  for (const auto& [key, gemm] : gemms_) {
    if (gemm && gemm->tuned && gemm->float64_tile < 0) text += line_of(key, gemm->algorithm) + "\n";
  }
  return text;
}

void TunedGemms::adopt(const std::string& text) {
  std::set<std::string> mine;
  std::istringstream own_lines(this->text());
  for (std::string line; std::getline(own_lines, line);) mine.insert(line);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (mine.count(line) > 0) continue;
    std::istringstream fields(line);
    std::string kind, key;
    fields >> kind >> key;
    if (kind == "choice" && key.rfind(float64_prefix, 0) == 0) {
      key = key.substr(float64_prefix.size());
      stored_.erase(key);  // it would be recalled first
    }
    gemms_.erase(key);
    std::istringstream one(line);
    read(one);
  }
}

TunedGemms& tuned_gemms(CudaStream& s) {
  return s.state<TunedGemms>([&] { return std::make_shared<TunedGemms>(device_info(s.device())); });
}

TunedGemms::Gemm* TunedGemms::find(const CudaCompute& c, const GemmProblem& p) {
  const std::string key = key_of(c, p);
  const auto it = gemms_.find(key);
  const bool may_tune = !c.options.deterministic && p.out_dtype != DType::f64;
  if (it != gemms_.end() && (!it->second || it->second->tuned || !may_tune) &&
      resize(c, p, it->second.get()))
    return it->second.get();
  return make(c, p, key, may_tune && !c.stream.capturing());
}

// Adapts one to a problem of nearly the same size. False where its algorithm does not serve it.
bool TunedGemms::resize(const CudaCompute& c, const GemmProblem& p, Gemm* gemm) {
  if (!gemm || (gemm->rows == p.rows && gemm->inner == p.inner)) return true;
  gemm->resize(p);
  if (gemm->float64_tile >= 0) return true;
  cublasLtMatmulHeuristicResult_t result{};
  if (cublasLtMatmulAlgoCheck(c.stream.blas(), gemm->desc, gemm->first.get(), gemm->second.get(),
                              gemm->result.get(), gemm->result.get(), &gemm->algorithm,
                              &result) != CUBLAS_STATUS_SUCCESS ||
      result.workspaceSize > c.stream.tuning().workspace_bytes())
    return false;
  gemm->workspace = result.workspaceSize;
  return true;
}

// Takes the algorithm that an earlier run found, if it still serves.
bool TunedGemms::recall(const CudaCompute& c, const GemmProblem& p, const std::string& key,
                        Gemm* gemm) const {
  CudaStream& s = c.stream;
  const auto stored = stored_.find(key);
  if (stored != stored_.end()) {
    cublasLtMatmulHeuristicResult_t result{};
    std::memcpy(&gemm->algorithm, stored->second.data(), sizeof gemm->algorithm);
    if (cublasLtMatmulAlgoCheck(s.blas(), gemm->desc, gemm->first.get(), gemm->second.get(),
                                gemm->result.get(), gemm->result.get(), &gemm->algorithm,
                                &result) == CUBLAS_STATUS_SUCCESS &&
        result.workspaceSize <= s.tuning().workspace_bytes()) {
      gemm->workspace = result.workspaceSize;
      return true;
    }
  }
  const int tile = choice(float64_key(key));
  if (tile < 0 || tile >= float64_tiles || !float64_serves(c, p)) return false;
  gemm->float64_tile = tile;
  return true;
}

// False when no algorithm runs, though the library offers some.
bool TunedGemms::tune(const CudaCompute& c, const GemmProblem& p, const std::string& key,
                      const Algorithms& algorithms, Gemm* gemm) {
  CudaStream& s = c.stream;
  const TuningOutput out(s, p);
  if (!out.data()) return true;
  CudaStream& owner = s.tuning();
  std::vector<Candidate> candidates;
  for (const auto& found : algorithms) {
    candidates.emplace_back([&] {
      return gemm->run(s, p, out.data(), found.algo, owner.workspace(), owner.workspace_bytes()) ==
             CUBLAS_STATUS_SUCCESS;
    });
  }
  for (int tile = 0; tile < float64_tiles && float64_serves(c, p); ++tile) {
    candidates.emplace_back([&, tile] {
      return run_float64(c, p, tile, out.data(), owner.workspace()) == cudaSuccess;
    });
  }
  const size_t best = best_of(s, candidates);
  CUDA_CHECK(cudaStreamSynchronize(s.stream()));
  if (best == candidates.size()) return false;
  gemm->tuned = true;
  if (best >= algorithms.size()) {
    gemm->float64_tile = static_cast<int>(best - algorithms.size());
    remember(float64_key(key), gemm->float64_tile);
    return true;
  }
  gemm->take(algorithms[best]);
  append(line_of(key, gemm->algorithm));
  return true;
}

TunedGemms::Gemm* TunedGemms::make(const CudaCompute& c, const GemmProblem& p,
                                   const std::string& key, bool may_tune) {
  auto gemm = std::make_unique<Gemm>(c, p);
  gemm->point(p);
  if (c.options.deterministic) {
    // The rule takes the float64 kernel, which is the fastest for most sizes, else the library's
    // first choice.
    if (float64_serves(c, p)) gemm->float64_tile = 0;
  } else {
    gemm->tuned = recall(c, p, key, gemm.get());
  }
  if (!gemm->tuned && gemm->float64_tile < 0) {
    // The library's first algorithm is taken without timing. With reserved SMs, the first that runs
    // in pairs may be anywhere in its list.
    const bool one_will_do = !may_tune && c.options.reserved_sms == 0;
    const Algorithms algorithms = candidates(c, p, *gemm, one_will_do ? 1 : algorithms_tried);
    if (algorithms.empty()) return (gemms_[key] = nullptr).get();
    gemm->take(algorithms[0]);
    if (may_tune && !tune(c, p, key, algorithms, gemm.get())) return (gemms_[key] = nullptr).get();
  }
  return (gemms_[key] = std::move(gemm)).get();
}

namespace {

std::string tuned(Stream& s) {
  return tuned_gemms(cuda_stream(s)).text();
}
void adopt(Stream& s, const std::string& lines) {
  tuned_gemms(cuda_stream(s)).adopt(lines);
}

const OnCuda tuned_on_cuda(tuned_algorithms, tuned);
const OnCuda adopt_on_cuda(adopt_algorithms, adopt);

}  // namespace
}  // namespace tally::train::cuda
