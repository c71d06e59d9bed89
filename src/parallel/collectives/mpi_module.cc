// The communicator over MPI, for the CPU: a module of its own (tally_mpi.so), so that only runs
// that ask for MPI need the library it was built with.
#include <dlfcn.h>
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "src/parallel/collectives/module.h"

namespace tally::train {
namespace {

// MPI counts in int.
constexpr int64_t largest_count = int64_t{1} << 30;

void check(int status, const char* op) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int size = 0;
  MPI_Error_string(status, text.data(), &size);
  throw CommunicationError(
      fmt::format("MPI: {}: {}", op, std::string(text.data(), static_cast<size_t>(size))));
}

// MPI has no bf16 and f16, and its operators take no argument of ours, so the function that adds is
// passed in this variable.
ReduceElements reduce_narrow = nullptr;

template <DType type, Reduce op>
void reduce_callback(void* from, void* to, int* count, MPI_Datatype*) {
  reduce_narrow(type, op, from, to, *count);
}

struct Operators {
  MPI_Op bf16_sum, bf16_max, f16_sum, f16_max;
  Operators() {
    check(MPI_Op_create(reduce_callback<DType::bf16, Reduce::sum>, 1, &bf16_sum), "MPI_Op_create");
    check(MPI_Op_create(reduce_callback<DType::bf16, Reduce::max>, 1, &bf16_max), "MPI_Op_create");
    check(MPI_Op_create(reduce_callback<DType::f16, Reduce::sum>, 1, &f16_sum), "MPI_Op_create");
    check(MPI_Op_create(reduce_callback<DType::f16, Reduce::max>, 1, &f16_max), "MPI_Op_create");
  }
  MPI_Op of(DType type, Reduce op) const {
    if (type == DType::bf16) return op == Reduce::sum ? bf16_sum : bf16_max;
    if (type == DType::f16) return op == Reduce::sum ? f16_sum : f16_max;
    return op == Reduce::sum ? MPI_SUM : MPI_MAX;
  }
};

MPI_Datatype type_of(DType type) {
  switch (type) {
    case DType::f64:
      return MPI_DOUBLE;
    case DType::f32:
      return MPI_FLOAT;
    case DType::i64:
      return MPI_INT64_T;
    case DType::i32:
      return MPI_INT32_T;
    case DType::bf16:
    case DType::f16:
    case DType::u16:
      return MPI_UINT16_T;
    case DType::u8:
    case DType::e4m3:
    case DType::e5m2:
      return MPI_UINT8_T;
  }
  return MPI_BYTE;
}

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int size = 0;
  MPI_Get_library_version(text.data(), &size);
  const std::string whole(text.data(), static_cast<size_t>(size));
  std::string first = whole.substr(0, whole.find_first_of(",\n"));
  if (first.rfind("Open MPI v", 0) == 0) first.erase(9, 1);
  return first;
}

// MPI_Init, and MPI_Finalize when the last communicator goes.
struct Library {
  Library() {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  ~Library() { MPI_Finalize(); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
};

struct Shared {
  Library library;
  Operators operators;
};

class Mpi final : public Communicator {
 public:
  Mpi(std::shared_ptr<Shared> shared, MPI_Comm comm, int rank, int size)
      : Communicator(rank, size), shared_(std::move(shared)), comm_(comm) {}
  ~Mpi() override {
    for (Sending& sending : sending_) MPI_Wait(&sending.request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm_);
  }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  CommunicatorInfo info() const override { return {"mpi", library_version(), {}}; }

 private:
  // Calls f(first element, count) for pieces that MPI can count.
  template <typename F>
  static void pieces(const Tensor& t, F&& f) {
    if (!t.defined()) return;
    for (int64_t first = 0; first < t.numel(); first += largest_count)
      f(static_cast<char*>(t.data) + static_cast<size_t>(first) * size_of(t.dtype),
        static_cast<int>(std::min(largest_count, t.numel() - first)));
  }

  void do_all_reduce(Stream&, const Tensor& t, Reduce op) override {
    pieces(t, [&](char* at, int count) {
      check(MPI_Allreduce(MPI_IN_PLACE, at, count, type_of(t.dtype),
                          shared_->operators.of(t.dtype, op), comm_),
            "MPI_Allreduce");
    });
  }
  void do_broadcast(Stream&, const Tensor& t, int root) override {
    pieces(t, [&](char* at, int count) {
      check(MPI_Bcast(at, count, type_of(t.dtype), root, comm_), "MPI_Bcast");
    });
  }
  void do_all_gather(Stream& s, const Tensor& part, const Tensor& whole) override {
    // If a part is too large for MPI's counts, each rank broadcasts its part in turn.
    const Tensor parts = whole.view({size(), part.numel()});
    const Tensor mine = parts.rows(rank(), 1);
    if (part.numel() > largest_count) {
      if (mine.data != part.data) s.copy(mine.data, part.data, part.bytes());
      for (int r = 0; r < size(); ++r) do_broadcast(s, parts.rows(r, 1), r);
      return;
    }
    const bool in_place = mine.data == part.data;
    const int count = static_cast<int>(part.numel());
    check(MPI_Allgather(in_place ? MPI_IN_PLACE : part.data, count, type_of(part.dtype), whole.data,
                        count, type_of(part.dtype), comm_),
          "MPI_Allgather");
  }
  void do_reduce_scatter(Stream&, const Tensor& whole, const Tensor& part, Reduce op) override {
    const Tensor parts = whole.view({size(), part.numel()});
    const MPI_Op operation = shared_->operators.of(part.dtype, op);
    for (int r = 0; r < size(); ++r) {
      const Tensor share = parts.rows(r, 1);
      const bool in_place = r == rank() && share.data == part.data;
      char* to = static_cast<char*>(part.data);
      pieces(share, [&](char* at, int count) {
        check(MPI_Reduce(in_place ? MPI_IN_PLACE : at, r == rank() ? to : nullptr, count,
                         type_of(part.dtype), operation, r, comm_),
              "MPI_Reduce");
        to += static_cast<size_t>(count) * size_of(part.dtype);
      });
    }
  }
  void do_send_receive(Stream&, const Tensor& out, int to, const Tensor& in, int from) override {
    std::vector<MPI_Request> requests;
    pieces(in, [&](char* at, int count) {
      check(MPI_Irecv(at, count, type_of(in.dtype), from, 0, comm_, &requests.emplace_back()),
            "MPI_Irecv");
    });
    pieces(out, [&](char* at, int count) {
      check(MPI_Isend(at, count, type_of(out.dtype), to, 0, comm_, &requests.emplace_back()),
            "MPI_Isend");
    });
    check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
          "MPI_Waitall");
  }
  // MPI sends the copy while this rank computes or waits in other calls of the library.
  void do_start_send(Stream&, const Tensor& t, int to) override {
    while (!sending_.empty()) {
      int done = 0;
      check(MPI_Test(&sending_.front().request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done == 0) break;
      sending_.pop_front();
    }
    pieces(t, [&](const char* at, int count) {
      Sending& made = sending_.emplace_back();
      made.copy.assign(at, at + static_cast<size_t>(count) * size_of(t.dtype));
      check(MPI_Isend(made.copy.data(), count, type_of(t.dtype), to, 0, comm_, &made.request),
            "MPI_Isend");
    });
  }
  std::unique_ptr<Communicator> do_split(int color, int key) override {
    MPI_Comm made = MPI_COMM_NULL;
    check(MPI_Comm_split(comm_, color < 0 ? MPI_UNDEFINED : color, key, &made), "MPI_Comm_split");
    if (made == MPI_COMM_NULL) return nullptr;
    return wrap(shared_, made);
  }

 public:
  static std::unique_ptr<Communicator> wrap(std::shared_ptr<Shared> shared, MPI_Comm comm) {
    int rank = 0, size = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    return std::make_unique<Mpi>(std::move(shared), comm, rank, size);
  }

 private:
  // A message that MPI may not have sent yet.
  struct Sending {
    std::vector<char> copy;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  std::shared_ptr<Shared> shared_;
  MPI_Comm comm_;
  std::deque<Sending> sending_;
};

}  // namespace
}  // namespace tally::train

extern "C" tally::train::Communicator* tally_make_communicator(
    const tally::train::ModuleContext& context) {
  using namespace tally::train;
  if (context.device.is_cuda())
    throw CommunicationError("--distributed-backend mpi carries the memory of CPUs, not of GPUs");
  reduce_narrow = context.reduce;
  auto shared = std::make_shared<Shared>();
  // Ranks are numbered as the run's, whatever MPI's own order.
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_split(MPI_COMM_WORLD, 0, context.meeting->rank(), &comm), "MPI_Comm_split");
  auto made = Mpi::wrap(std::move(shared), comm);
  if (made->size() != context.meeting->size())
    throw CommunicationError(
        fmt::format("MPI counts {} processes and the launcher {}: the MPI library of this build "
                    "and the launcher do "
                    "not belong together",
                    made->size(), context.meeting->size()));
  return made.release();
}
