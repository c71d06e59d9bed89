#include "src/parallel/communicator.h"

#include <fmt/format.h>

namespace tally::train {
namespace {

void require(bool good, const char* op, const char* what) {
  if (!good) throw CommunicationError(fmt::format("{}: {}", op, what));
}

bool can_reduce(DType type) {
  return type != DType::u16 && type != DType::u8;
}

class Single final : public Communicator {
 public:
  Single() : Communicator(0, 1) {}
  CommunicatorInfo info() const override { return {"single", "", {}}; }

 private:
  void do_all_reduce(Stream&, const Tensor&, Reduce) override {}
  void do_broadcast(Stream&, const Tensor&, int) override {}
  void do_all_gather(Stream&, const Tensor&, const Tensor&) override {}
  void do_reduce_scatter(Stream&, const Tensor&, const Tensor&, Reduce) override {}
  void do_send_receive(Stream&, const Tensor&, int, const Tensor&, int) override {}
  void do_start_send(Stream&, const Tensor&, int) override {}
  std::unique_ptr<Communicator> do_split(int, int) override { return std::make_unique<Single>(); }
};

}  // namespace

void Communicator::all_reduce(Stream& s, const Tensor& t, Reduce op) {
  require(can_reduce(t.dtype), "all_reduce", "numbers of this type cannot be added");
  if (size_ > 1 && t.numel() > 0) do_all_reduce(s, t, op);
}

void Communicator::start_all_reduce(Stream& s, const Tensor& t, Reduce op) {
  require(can_reduce(t.dtype), "all_reduce", "numbers of this type cannot be added");
  if (size_ > 1 && t.numel() > 0) do_start_all_reduce(s, t, op);
}

void Communicator::wait(Stream&) {}

void Communicator::broadcast(Stream& s, const Tensor& t, int root) {
  require(root >= 0 && root < size_, "broadcast", "there is no such rank");
  if (size_ > 1 && t.numel() > 0) do_broadcast(s, t, root);
}

void Communicator::all_gather(Stream& s, const Tensor& part, const Tensor& whole) {
  require(whole.numel() == part.numel() * size_ && whole.dtype == part.dtype, "all_gather",
          "the whole is not as large as all parts");
  if (part.numel() == 0) return;
  if (size_ > 1) {
    do_all_gather(s, part, whole);
  } else if (part.data != whole.data) {
    s.copy(whole.data, part.data, part.bytes());
  }
}

void Communicator::reduce_scatter(Stream& s, const Tensor& whole, const Tensor& part, Reduce op) {
  require(whole.numel() == part.numel() * size_ && whole.dtype == part.dtype, "reduce_scatter",
          "the whole is not as large as all parts");
  require(can_reduce(part.dtype), "reduce_scatter", "numbers of this type cannot be added");
  if (part.numel() == 0) return;
  if (size_ > 1) {
    do_reduce_scatter(s, whole, part, op);
  } else if (part.data != whole.data) {
    s.copy(part.data, whole.data, part.bytes());
  }
}

void Communicator::send(Stream& s, const Tensor& t, int to) {
  send_receive(s, t, to, Tensor(), 0);
}

void Communicator::receive(Stream& s, const Tensor& t, int from) {
  send_receive(s, Tensor(), 0, t, from);
}

void Communicator::start_send(Stream& s, const Tensor& t, int to) {
  require(to >= 0 && to < size_ && to != rank_, "start_send", "the peer is not another rank");
  if (t.numel() > 0) do_start_send(s, t, to);
}

void Communicator::send_receive(Stream& s, const Tensor& out, int to, const Tensor& in, int from) {
  const auto other = [&](const Tensor& t, int peer) {
    return !t.defined() || (peer >= 0 && peer < size_ && peer != rank_);
  };
  require(other(out, to) && other(in, from), "send_receive", "the peer is not another rank");
  if (out.defined() || in.defined()) do_send_receive(s, out, to, in, from);
}

void Communicator::barrier(Stream& s) {
  s.synchronize();
  if (size_ == 1) return;
  // In device memory of the caller's device; set-up and ends of runs can afford an allocation.
  void* one = s.allocate(sizeof(int32_t), "barrier");
  s.fill_zero(one, sizeof(int32_t));
  do_all_reduce(s, Tensor(one, DType::i32, {1}), Reduce::max);
  s.synchronize();
  s.release(one);
}

std::unique_ptr<Communicator> Communicator::split(int color, int key) {
  if (size_ > 1) return do_split(color, key);
  return color < 0 ? nullptr : make_single_communicator();
}

std::unique_ptr<Communicator> make_single_communicator() {
  return std::make_unique<Single>();
}

}  // namespace tally::train
