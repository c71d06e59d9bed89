#include "src/ops/cuda/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "src/ops/cuda/check.h"

namespace tally::train::cuda {
namespace {

constexpr int algorithms_tried = 32;
constexpr size_t finalists = 4;
constexpr double turn_milliseconds = 6;
constexpr size_t algorithm_words = sizeof(cublasLtMatmulAlgo_t) / sizeof(uint64_t);

cudaDataType_t data_type(DType t) {
  switch (t) {
    case DType::f64:
      return CUDA_R_64F;
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    default:
      throw DeviceError(
          fmt::format("matrix product of {}: not a floating-point type", dtype_name(t)));
  }
}

// The largest power of two up to 256 that divides the address and both distances.
uint32_t alignment_of(const void* data, DType t, int64_t leading, int64_t stride) {
  const auto bits = reinterpret_cast<uintptr_t>(data) |
                    static_cast<uintptr_t>(leading * static_cast<int64_t>(size_of(t))) |
                    static_cast<uintptr_t>(stride * static_cast<int64_t>(size_of(t))) | 256U;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

bool adds_in_place(const MatMul& p) {
  return p.beta != 0 && (!p.addend || p.addend == p.out);
}

// Of `out` and of what is added to it.
uint32_t out_alignment(const MatMul& p) {
  const uint32_t own = alignment_of(p.out, p.out_dtype, p.out_leading, p.out_stride);
  if (p.beta == 0 || adds_in_place(p)) return own;
  return std::min(own, alignment_of(p.addend, p.out_dtype, p.out_leading, p.out_stride));
}

bool in_tf32(const CudaStream& s, const MatMul& p) {
  return p.split || (s.matmul_mode == MatmulMode::tf32 && p.a.dtype == DType::f32);
}

bool must_split(const CudaStream& s, const MatMul& p) {
  return s.matmul_mode == MatmulMode::tf32x3 && p.a.dtype == DType::f32 && !p.split;
}

std::string key_of(const CudaStream& s, const MatMul& p) {
  return fmt::format("{}x{}x{}*{}/{}{}/{}.{}.{}/{}.{}.{}/{}.{}.{}/a{}.{}.{}/e{}b{}{}", p.rows,
                     p.cols, p.inner, p.batch, p.a.transposed ? 'T' : 'N',
                     p.b.transposed ? 'T' : 'N', dtype_name(p.a.dtype), dtype_name(p.b.dtype),
                     dtype_name(p.out_dtype), p.a.leading, p.b.leading, p.out_leading, p.a.stride,
                     p.b.stride, p.out_stride,
                     alignment_of(p.a.data, p.a.dtype, p.a.leading, p.a.stride),
                     alignment_of(p.b.data, p.b.dtype, p.b.leading, p.b.stride), out_alignment(p),
                     static_cast<int>(p.epilogue),
                     p.beta == 0        ? 0
                     : adds_in_place(p) ? 1
                                        : 2,
                     in_tf32(s, p) ? "t" : "") +
         (s.products_leave > 0 ? fmt::format("l{}", s.products_leave) : "");
}

class Layout {
 public:
  Layout(DType t, int64_t rows, int64_t cols, int64_t leading, int64_t batch, int64_t stride) {
    CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&layout_, data_type(t), static_cast<uint64_t>(rows),
                                            static_cast<uint64_t>(cols), leading));
    if (batch > 1) {
      const auto count = static_cast<int32_t>(batch);
      CUBLAS_CHECK(cublasLtMatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                    &count, sizeof count));
      CUBLAS_CHECK(cublasLtMatrixLayoutSetAttribute(
          layout_, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
    }
  }
  ~Layout() { cublasLtMatrixLayoutDestroy(layout_); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

class Event {
 public:
  Event() { CUDA_CHECK(cudaEventCreate(&event_)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

template <typename T>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t what, const T& value) {
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(desc, what, &value, sizeof value));
}

double milliseconds(const Event& from, const Event& to) {
  float ms = 0;
  CUDA_CHECK(cudaEventSynchronize(to.get()));
  CUDA_CHECK(cudaEventElapsedTime(&ms, from.get(), to.get()));
  return ms;
}

std::string file_name(const DeviceInfo& device) {
  if (const char* given = std::getenv("TALLY_TUNING_CACHE")) {
    return std::strcmp(given, "off") == 0 ? "" : given;
  }
  std::string root;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) {
    root = xdg;
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    root = std::string(home) + "/.cache";
  } else {
    return "";
  }
  std::string name = device.name;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '-';
  }
  return fmt::format("{}/tally/tuning-{}-{}.txt", root, name, cublasLtGetVersion());
}

}  // namespace

// A column-major view of the row-major problem: out^T = b^T a^T.
struct GemmPlans::Plan {
  explicit Plan(const CudaStream& s, const MatMul& p)
      : first(p.b.dtype, p.b.transposed ? p.inner : p.cols, p.b.transposed ? p.cols : p.inner,
              p.b.leading, p.batch, p.b.stride),
        second(p.a.dtype, p.a.transposed ? p.rows : p.inner, p.a.transposed ? p.inner : p.rows,
               p.a.leading, p.batch, p.a.stride),
        result(p.out_dtype, p.cols, p.rows, p.out_leading, p.batch, p.out_stride),
        in_f64(p.out_dtype == DType::f64) {
    cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    if (in_f64) compute = CUBLAS_COMPUTE_64F;
    if (in_tf32(s, p)) compute = CUBLAS_COMPUTE_32F_FAST_TF32;
    CUBLAS_CHECK(cublasLtMatmulDescCreate(&desc, compute, in_f64 ? CUDA_R_64F : CUDA_R_32F));
    const cublasOperation_t op_first = p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t op_second = p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    set(desc, CUBLASLT_MATMUL_DESC_TRANSA, op_first);
    set(desc, CUBLASLT_MATMUL_DESC_TRANSB, op_second);
    if (s.products_leave > 0) {
      const int32_t multiprocessors = s.multiprocessors_for_products();
      set(desc, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, multiprocessors);
    }
    if (p.epilogue == Epilogue::none) return;
    const cublasLtEpilogue_t epilogue =
        p.epilogue == Epilogue::bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(p.out_dtype));
    if (p.epilogue == Epilogue::gelu_aux_bias) {
      set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.out_leading);
    }
  }
  ~Plan() { cublasLtMatmulDescDestroy(desc); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  void point(const MatMul& p) const {
    if (p.epilogue == Epilogue::none) return;
    set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
    if (p.epilogue == Epilogue::gelu_aux_bias)
      set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.aux);
  }

  cublasStatus_t run(CudaStream& s, const MatMul& p, void* out, const cublasLtMatmulAlgo_t& algo,
                     void* scratch, size_t bytes) const {
    const auto alpha = static_cast<float>(p.alpha);
    const auto beta = static_cast<float>(p.beta);
    const void* pa = in_f64 ? static_cast<const void*>(&p.alpha) : &alpha;
    const void* pb = in_f64 ? static_cast<const void*>(&p.beta) : &beta;
    const void* addend = p.beta == 0 || adds_in_place(p) ? out : p.addend;
    return cublasLtMatmul(s.blas(), desc, pa, p.b.data, first.get(), p.a.data, second.get(), pb,
                          addend, result.get(), out, result.get(), &algo, scratch, bytes,
                          s.stream());
  }

  Layout first, second, result;
  cublasLtMatmulDesc_t desc = nullptr;
  bool in_f64;
  bool tuned = false;
  cublasLtMatmulAlgo_t algorithm{};
  size_t workspace = 0;  // bytes that the algorithm wants
};

namespace {

// Where a plan may write while it is timed: the output itself when it is overwritten anyway.
class TuningOutput {
 public:
  TuningOutput(CudaStream& s, const MatMul& p) : data_(p.out) {
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

using Candidates = std::vector<cublasLtMatmulHeuristicResult_t>;

Candidates candidates(CudaStream& s, const MatMul& p, const GemmPlans::Plan& plan, int wanted) {
  cublasLtMatmulPreference_t preference = nullptr;
  CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
    CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(preference, what, &value, sizeof value));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, s.tuning().workspace_bytes());
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
         alignment_of(p.b.data, p.b.dtype, p.b.leading, p.b.stride));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
         alignment_of(p.a.data, p.a.dtype, p.a.leading, p.a.stride));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, out_alignment(p));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, out_alignment(p));
  Candidates found(static_cast<size_t>(wanted));
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      s.blas(), plan.desc, plan.first.get(), plan.second.get(), plan.result.get(),
      plan.result.get(), preference, wanted, found.data(), &count);
  cublasLtMatmulPreferenceDestroy(preference);
  Candidates algorithms;
  if (status != CUBLAS_STATUS_SUCCESS) return algorithms;
  for (int i = 0; i < count; ++i) {
    const auto& f = found[static_cast<size_t>(i)];
    if (f.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(f);
  }
  return algorithms;
}

// Milliseconds a run, of `runs` back to back; infinity when the algorithm does not run.
double time_runs(CudaStream& s, const MatMul& p, const GemmPlans::Plan& plan, void* out,
                 const cublasLtMatmulAlgo_t& algorithm, int runs, const Event& from,
                 const Event& to) {
  CudaStream& owner = s.tuning();
  CUDA_CHECK(cudaEventRecord(from.get(), s.stream()));
  for (int i = 0; i < runs; ++i) {
    if (plan.run(s, p, out, algorithm, owner.workspace(), owner.workspace_bytes()) !=
        CUBLAS_STATUS_SUCCESS)
      return INFINITY;
  }
  CUDA_CHECK(cudaEventRecord(to.get(), s.stream()));
  return milliseconds(from, to) / runs;
}

// The best of the candidates. Each is run twice; then the best few take turns of some milliseconds
// without a pause, because a large GPU lowers its clock under load and the algorithm that wins a
// short burst need not win then.
cublasLtMatmulHeuristicResult_t best_of(CudaStream& s, const MatMul& p, const GemmPlans::Plan& plan,
                                        const Candidates& algorithms, void* out) {
  Event from, to;
  std::vector<std::pair<double, size_t>> times;
  double best = INFINITY;
  time_runs(s, p, plan, out, algorithms[0].algo, 1, from, to);  // loads the library's kernels
  for (size_t i = 0; i < algorithms.size(); ++i) {
    double ms = time_runs(s, p, plan, out, algorithms[i].algo, 1, from, to);
    if (ms < 2 * best) ms = time_runs(s, p, plan, out, algorithms[i].algo, 1, from, to);
    best = std::min(best, ms);
    times.emplace_back(ms, i);
  }
  std::sort(times.begin(), times.end());
  times.resize(std::min(times.size(), finalists));
  constexpr int rounds = 5;
  const int runs = std::clamp(static_cast<int>(turn_milliseconds / std::max(best, 1e-3)), 1, 20);
  std::vector<std::vector<double>> turns(times.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < times.size(); ++i) {
      turns[i].push_back(
          time_runs(s, p, plan, out, algorithms[times[i].second].algo, runs, from, to));
    }
  }
  for (size_t i = 0; i < times.size(); ++i) {
    const auto middle = turns[i].begin() + rounds / 2;
    std::nth_element(turns[i].begin(), middle, turns[i].end());
    times[i].first = *middle;
  }
  return algorithms[std::min_element(times.begin(), times.end())->second];
}

}  // namespace

GemmPlans::GemmPlans(const DeviceInfo& device) : file_(file_name(device)) {
  load();
}
GemmPlans::~GemmPlans() = default;

void GemmPlans::load() {
  std::ifstream in(file_);
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

void GemmPlans::append(const std::string& line) const {
  if (file_.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(file_).parent_path(), ignored);
  // One short write in append mode: ranks that tune at the same time do not mix their lines.
  std::ofstream out(file_, std::ios::app);
  out << line + "\n" << std::flush;
}

int GemmPlans::choice(const std::string& key) const {
  const auto it = choices_.find(key);
  return it == choices_.end() ? -1 : it->second;
}

void GemmPlans::remember(const std::string& key, int index) {
  choices_[key] = index;
  append(fmt::format("choice {} {}", key, index));
}

GemmPlans::Plan* GemmPlans::plan(CudaStream& s, const MatMul& p) {
  const std::string key = key_of(s, p);
  const auto it = plans_.find(key);
  const bool may_tune = !s.deterministic && p.out_dtype != DType::f64;
  if (it != plans_.end() && (!it->second || it->second->tuned || !may_tune))
    return it->second.get();
  return make(s, p, key, may_tune && !s.capturing());
}

GemmPlans::Plan* GemmPlans::make(CudaStream& s, const MatMul& p, const std::string& key,
                                 bool tune) {
  auto plan = std::make_unique<Plan>(s, p);
  plan->point(p);
  const auto stored = stored_.find(key);
  if (stored != stored_.end() && !s.deterministic) {
    cublasLtMatmulHeuristicResult_t result{};
    std::memcpy(&plan->algorithm, stored->second.data(), sizeof plan->algorithm);
    if (cublasLtMatmulAlgoCheck(s.blas(), plan->desc, plan->first.get(), plan->second.get(),
                                plan->result.get(), plan->result.get(), &plan->algorithm,
                                &result) == CUBLAS_STATUS_SUCCESS &&
        result.workspaceSize <= s.tuning().workspace_bytes()) {
      plan->workspace = result.workspaceSize;
      plan->tuned = true;
      return (plans_[key] = std::move(plan)).get();
    }
  }
  const auto algorithms = candidates(s, p, *plan, tune ? algorithms_tried : 1);
  if (algorithms.empty()) return (plans_[key] = nullptr).get();
  const auto take = [&](const cublasLtMatmulHeuristicResult_t& chosen) {
    plan->algorithm = chosen.algo;
    plan->workspace = chosen.workspaceSize;
  };
  take(algorithms[0]);
  if (tune) {
    const TuningOutput out(s, p);
    if (out.data()) {
      take(best_of(s, p, *plan, algorithms, out.data()));
      CUDA_CHECK(cudaStreamSynchronize(s.stream()));
      uint64_t words[algorithm_words];
      std::memcpy(words, &plan->algorithm, sizeof words);
      std::string line = "gemm " + key;
      for (const uint64_t w : words) line += fmt::format(" {:x}", w);
      append(line);
      plan->tuned = true;
    }
  }
  return (plans_[key] = std::move(plan)).get();
}

bool matmul_supported(CudaStream& s, const MatMul& problem) {
  if (must_split(s, problem)) {
    const SplitProblem split = split_problem(s, problem);
    return s.gemms().plan(s, split.small) && s.gemms().plan(s, split.large);
  }
  return s.gemms().plan(s, problem) != nullptr;
}

void matmul(CudaStream& s, const MatMul& p) {
  if (p.rows == 0 || p.cols == 0 || p.batch == 0) return;
  if (must_split(s, p)) {
    const SplitProblem split = split_problem(s, p);
    matmul(s, split.small);
    return matmul(s, split.large);
  }
  const GemmPlans::Plan* plan = s.gemms().plan(s, p);
  if (!plan) {
    throw DeviceError(
        fmt::format("matrix product {} x {} x {} ({} to {}): cuBLASLt has no algorithm", p.rows,
                    p.cols, p.inner, dtype_name(p.a.dtype), dtype_name(p.out_dtype)));
  }
  plan->point(p);
  void* workspace = s.product_workspace(plan->workspace);
  CUBLAS_CHECK(plan->run(s, p, p.out, plan->algorithm, workspace, plan->workspace));
}

double time_on(CudaStream& s, const std::function<void()>& work) {
  Event from, to;
  std::vector<double> runs;
  work();
  for (int i = 0; i < 5; ++i) {
    CUDA_CHECK(cudaEventRecord(from.get(), s.stream()));
    work();
    CUDA_CHECK(cudaEventRecord(to.get(), s.stream()));
    runs.push_back(milliseconds(from, to));
  }
  std::nth_element(runs.begin(), runs.begin() + 2, runs.end());
  return runs[2];
}

int fastest(CudaStream& s, const std::string& key,
            const std::vector<std::function<void()>>& variants) {
  const auto count = static_cast<int>(variants.size());
  s.gemms().variants = count;
  if (s.gemms().forced >= 0) return std::min(s.gemms().forced, count - 1);
  if (s.deterministic || variants.size() < 2) return 0;
  const int known = s.gemms().choice(key);
  if (known >= 0 && known < count) return known;
  if (s.capturing()) return 0;
  int best = 0;
  double least = INFINITY;
  for (size_t i = 0; i < variants.size(); ++i) {
    const double ms = time_on(s, variants[i]);
    if (ms < least) {
      least = ms;
      best = static_cast<int>(i);
    }
  }
  s.gemms().remember(key, best);
  return best;
}

}  // namespace tally::train::cuda
