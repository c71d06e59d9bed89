// The communicator over NCCL, for GPUs: a module of its own (tally_nccl.so), so that runs on one
// GPU neither need nor load the library.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "src/parallel/collectives/module.h"
#include "src/parallel/nvlink/copy_engine.h"
#include "src/parallel/nvlink/cuda_check.h"
#include "src/parallel/nvlink/gpu_links.h"
#include "src/parallel/nvlink/peer_kernels.h"

namespace tally::train {
namespace {

using tally::train::check;

void check(ncclResult_t status, const char* op, ncclComm_t comm = nullptr) {
  if (status == ncclSuccess) return;
  const std::string detail = ncclGetLastError(comm);
  throw CommunicationError(fmt::format("NCCL: {}: {}{}{}", op, ncclGetErrorString(status),
                                       detail.empty() ? "" : ": ", detail));
}

ncclDataType_t type_of(DType type) {
  switch (type) {
    case DType::f64:
      return ncclFloat64;
    case DType::f32:
      return ncclFloat32;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f16:
      return ncclFloat16;
    case DType::i64:
      return ncclInt64;
    case DType::i32:
      return ncclInt32;
    case DType::u16:
    case DType::u8:
    case DType::e4m3:
    case DType::e5m2:
      break;
  }
  return ncclUint8;
}

// Elements as NCCL counts them. u16 can only be moved, as bytes.
size_t count_of(const Tensor& t) {
  return type_of(t.dtype) == ncclUint8 ? t.bytes() : static_cast<size_t>(t.numel());
}

ncclRedOp_t operation(Reduce op) {
  return op == Reduce::sum ? ncclSum : ncclMax;
}

cudaStream_t native(Stream& s) {
  return static_cast<cudaStream_t>(s.native());
}

// A side stream of the computation, ordered with it by events; a CUDA graph records both.
class Side {
 public:
  Side() {
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest),
          "cudaStreamCreate");
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
  }
  ~Side() {
    cudaEventDestroy(event_);
    cudaStreamDestroy(stream_);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  // Returns the side stream, after it waits for everything that `s` has so far.
  cudaStream_t after(cudaStream_t s) {
    wait(s, stream_);
    busy_ = true;
    return stream_;
  }
  void wait(cudaStream_t s) {
    if (busy_) wait(stream_, s);
    busy_ = false;
  }
  cudaStream_t stream() const { return stream_; }
  void synchronize() { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  void wait(cudaStream_t first, cudaStream_t second) {
    check(cudaEventRecord(event_, first), "cudaEventRecord");
    check(cudaStreamWaitEvent(second, event_, 0), "cudaStreamWaitEvent");
  }
  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
  bool busy_ = false;
};

class Nccl;

// While it lives, copy engines and kernels carry what they can.
class Mapping final : public PeerMapping {
 public:
  Mapping(Nccl* owner, Stream* stream) : owner_(*owner), stream_(*stream) {}
  ~Mapping() override;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

 private:
  Nccl& owner_;
  Stream& stream_;
};

class Nccl final : public Communicator {
 public:
  Nccl(ncclComm_t comm, int rank, int size, bool linked, std::vector<std::string> settings)
      : Communicator(rank, size), comm_(comm), linked_(linked), settings_(std::move(settings)) {}
  ~Nccl() override { ncclCommDestroy(comm_); }
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  CommunicatorInfo info() const override {
    int v = 0;
    ncclGetVersion(&v);
    return {"nccl", fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100), settings_};
  }
  bool linked() const override { return linked_; }
  bool uses_copy_engines() const override { return engine_ != nullptr; }
  bool uses_peer_kernels() const override { return kernels_ != nullptr; }
  // No rank reads or writes another's memory any more when this returns.
  void unmap(Stream& s) {
    side_.synchronize();
    s.synchronize();
    for (const auto* carrier : {&engine_, &kernels_})
      if (*carrier) (*carrier)->unmap();
    barrier(s);
    for (auto* carrier : {&engine_, &kernels_}) carrier->reset();
  }
  void abandon_mapping() {
    for (auto* carrier : {&engine_, &kernels_}) {
      if (*carrier) (*carrier)->abandon();
      carrier->reset();
    }
  }
  void wait(Stream& s) override { side_.wait(native(s)); }
  void begin_group() override { check(ncclGroupStart(), "ncclGroupStart"); }
  void end_group() override { check(ncclGroupEnd(), "ncclGroupEnd", comm_); }

 private:
  void reduce_on(cudaStream_t stream, const Tensor& t, Reduce op) {
    check(
        ncclAllReduce(t.data, t.data, count_of(t), type_of(t.dtype), operation(op), comm_, stream),
        "ncclAllReduce", comm_);
  }
  void do_all_reduce(Stream& s, const Tensor& t, Reduce op) override {
    if (kernels_ && op == Reduce::sum && kernels_->all_reduce(native(s), t)) return;
    reduce_on(native(s), t, op);
  }
  void do_start_all_reduce(Stream& s, const Tensor& t, Reduce op) override {
    const cudaStream_t side = side_.after(native(s));
    if (engine_ && op == Reduce::sum && engine_->all_reduce(side, t)) return;
    // The sum runs on the main stream: beside kernels it would cost them more time, by their SMs,
    // than it takes.
    if (kernels_ && op == Reduce::sum && kernels_->all_reduce(native(s), t)) return;
    reduce_on(side, t, op);
  }
  void do_start_send(Stream& s, const Tensor& t, int to) override {
    check(ncclSend(t.data, count_of(t), type_of(t.dtype), to, comm_, side_.after(native(s))),
          "ncclSend", comm_);
  }
  void do_broadcast(Stream& s, const Tensor& t, int root) override {
    check(ncclBroadcast(t.data, t.data, count_of(t), type_of(t.dtype), root, comm_, native(s)),
          "ncclBroadcast", comm_);
  }
  void gather_on(cudaStream_t stream, const Tensor& part, const Tensor& whole) {
    check(ncclAllGather(part.data, whole.data, count_of(part), type_of(part.dtype), comm_, stream),
          "ncclAllGather", comm_);
  }
  void do_all_gather(Stream& s, const Tensor& part, const Tensor& whole) override {
    if (kernels_ && kernels_->all_gather(native(s), part, whole)) return;
    gather_on(native(s), part, whole);
  }
  void do_start_all_gather(Stream& s, const Tensor& part, const Tensor& whole) override {
    const cudaStream_t side = side_.after(native(s));
    if (engine_ && engine_->all_gather(side, part, whole)) return;
    if (kernels_ && kernels_->all_gather(native(s), part, whole)) return;
    gather_on(side, part, whole);
  }
  void scatter_on(cudaStream_t stream, const Tensor& whole, const Tensor& part, Reduce op) {
    check(ncclReduceScatter(whole.data, part.data, count_of(part), type_of(part.dtype),
                            operation(op), comm_, stream),
          "ncclReduceScatter", comm_);
  }
  void do_reduce_scatter(Stream& s, const Tensor& whole, const Tensor& part, Reduce op) override {
    if (kernels_ && op == Reduce::sum && kernels_->reduce_scatter(native(s), whole, part)) return;
    scatter_on(native(s), whole, part, op);
  }
  void do_start_reduce_scatter(Stream& s, const Tensor& whole, const Tensor& part,
                               Reduce op) override {
    const cudaStream_t side = side_.after(native(s));
    if (engine_ && op == Reduce::sum && engine_->reduce_scatter(side, whole, part)) return;
    if (kernels_ && op == Reduce::sum && kernels_->reduce_scatter(native(s), whole, part)) return;
    scatter_on(side, whole, part, op);
  }
  void do_send_receive(Stream& s, const Tensor& out, int to, const Tensor& in, int from) override {
    begin_group();
    if (out.defined())
      check(ncclSend(out.data, count_of(out), type_of(out.dtype), to, comm_, native(s)), "ncclSend",
            comm_);
    if (in.defined())
      check(ncclRecv(in.data, count_of(in), type_of(in.dtype), from, comm_, native(s)), "ncclRecv",
            comm_);
    end_group();
  }
  std::unique_ptr<Communicator> do_split(int color, int key) override {
    ncclComm_t made = nullptr;
    check(ncclCommSplit(comm_, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &made, nullptr),
          "ncclCommSplit", comm_);
    if (made == nullptr) return nullptr;
    int rank = 0, size = 0;
    check(ncclCommUserRank(made, &rank), "ncclCommUserRank");
    check(ncclCommCount(made, &size), "ncclCommCount");
    auto group = std::make_unique<Nccl>(made, rank, size, linked_, settings_);
    if (!linked_) group->find_links();
    return group;
  }
  std::unique_ptr<PeerMapping> do_map_peers(Stream& s, const std::vector<Tensor>& memory) override {
    if (!linked_ || memory.empty() || engine_ || kernels_) return nullptr;
    s.synchronize();
    const GatherBytes gather = [&](const std::vector<char>& mine) {
      return gather_bytes(native(s), mine);
    };
    engine_ = CopyEngine::make(rank(), size(), memory, gather);
    kernels_ = PeerKernels::make(rank(), size(), memory, gather);
    return engine_ || kernels_ ? std::make_unique<Mapping>(this, &s) : nullptr;
  }
  std::vector<char> gather_bytes(cudaStream_t stream, const std::vector<char>& mine);
  void find_links();

  ncclComm_t comm_;
  bool linked_;
  Side side_;
  std::vector<std::string> settings_;
  // Null: NCCL carries what they would.
  std::unique_ptr<PeerCollectives> engine_, kernels_;
};

// The values go through device memory, which is all that NCCL carries.
std::vector<char> Nccl::gather_bytes(cudaStream_t stream, const std::vector<char>& mine) {
  std::vector<char> all(mine.size() * static_cast<size_t>(size()));
  void* memory = nullptr;
  check(cudaMalloc(&memory, all.size()), "cudaMalloc");
  const std::unique_ptr<void, cudaError_t (*)(void*)> owner(memory, cudaFree);
  char* own = static_cast<char*>(memory) + static_cast<size_t>(rank()) * mine.size();
  check(cudaMemcpyAsync(own, mine.data(), mine.size(), cudaMemcpyDefault, stream), "cudaMemcpy");
  check(ncclAllGather(own, memory, mine.size(), ncclUint8, comm_, stream), "ncclAllGather", comm_);
  check(cudaMemcpyAsync(all.data(), memory, all.size(), cudaMemcpyDefault, stream), "cudaMemcpy");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return all;
}

// A group may have GPUs of one host alone.
void Nccl::find_links() {
  constexpr size_t longest = 512;  // a host's name has 64 characters
  int index = 0;
  check(cudaGetDevice(&index), "cudaGetDevice");
  linked_ = all_linked(index, [this](const std::string& text) {
    std::vector<char> mine(longest);
    text.copy(mine.data(), longest - 1);
    const std::vector<char> all = gather_bytes(side_.stream(), mine);
    std::vector<std::string> texts;
    for (int r = 0; r < size(); ++r)
      texts.emplace_back(all.data() + static_cast<size_t>(r) * longest);
    return texts;
  });
}

// While an exception is thrown, the other ranks do not come here, and a stream may wait for them.
Mapping::~Mapping() {
  try {
    if (std::uncaught_exceptions() == 0) owner_.unmap(stream_);
  } catch (const std::exception&) {  // this process is about to fail as well
  }
  owner_.abandon_mapping();
}

std::vector<std::string> nccl_variables() {
  std::vector<std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::strncmp(*entry, "NCCL_", 5) == 0) found.emplace_back(*entry);
  std::sort(found.begin(), found.end());
  return found;
}

void check_no_shared_gpu(const std::vector<std::string>& gpus) {
  for (size_t i = 0; i < gpus.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (gpus[i] == gpus[j])
        throw CommunicationError(
            fmt::format("ranks {} and {} have the same device, {}: start no more ranks on a host "
                        "than it has GPUs, or take --device cpu",
                        j, i, gpus[i].substr(0, gpus[i].rfind(" ("))));
}

}  // namespace
}  // namespace tally::train

extern "C" tally::train::Communicator* tally_make_communicator(
    const tally::train::ModuleContext& context) {
  using namespace tally::train;
  if (!context.device.is_cuda())
    throw CommunicationError(
        "--distributed-backend nccl carries the memory of GPUs, and this run "
        "is on the CPU");
  Rendezvous& meeting = *context.meeting;
  check(cudaSetDevice(context.device.index), "cudaSetDevice");
  // NCCL's own ports have no token. The ports of one host's ranks need no network.
  std::string interface = context.interface;
  const auto hosts = meeting.exchange(meeting.address());
  if (interface.empty() && std::all_of(hosts.begin(), hosts.end(), [](const std::string& address) {
        return address.rfind("127.", 0) == 0;
      }))
    interface = "=lo";
  if (!interface.empty()) setenv("NCCL_SOCKET_IFNAME", interface.c_str(), 0);
  check_no_shared_gpu(meeting.exchange(gpu_name(context.device.index)));
  const bool linked = all_linked(context.device.index,
                                 [&](const std::string& mine) { return meeting.exchange(mine); });
  ncclUniqueId id{};
  if (meeting.rank() == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  const std::string first = meeting.exchange(std::string(id.internal, sizeof id.internal)).front();
  std::memcpy(id.internal, first.data(), std::min(first.size(), sizeof id.internal));
  ncclComm_t comm = nullptr;
  check(ncclCommInitRank(&comm, meeting.size(), id, meeting.rank()), "ncclCommInitRank");
  return new Nccl(comm, meeting.rank(), meeting.size(), linked, nccl_variables());
}
