#include "src/parallel/collectives/communicator.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/parallel/control/operations.h"

namespace tally::train {
namespace {

void require(bool good, const char* op, const char* what) {
  if (!good) throw CommunicationError(fmt::format("{}: {}", op, what));
}

bool can_reduce(DType type) {
  return type != DType::u16 && size_of(type) > 1;
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
  if (size_ == 1 || t.numel() == 0) return;
  const OperationScope scope(watch_, group_, "all-reduce");
  do_all_reduce(s, t, op);
}

void Communicator::start_all_reduce(Stream& s, const Tensor& t, Reduce op) {
  require(can_reduce(t.dtype), "all_reduce", "numbers of this type cannot be added");
  if (size_ == 1 || t.numel() == 0) return;
  const OperationScope scope(watch_, group_, "all-reduce");
  do_start_all_reduce(s, t, op);
}

void Communicator::wait(Stream&) {}

void Communicator::broadcast(Stream& s, const Tensor& t, int root) {
  require(root >= 0 && root < size_, "broadcast", "there is no such rank");
  if (size_ == 1 || t.numel() == 0) return;
  const OperationScope scope(watch_, group_, "broadcast");
  do_broadcast(s, t, root);
}

void Communicator::all_gather(Stream& s, const Tensor& part, const Tensor& whole) {
  if (!has_parts(s, part, whole)) return;
  const OperationScope scope(watch_, group_, "all-gather");
  do_all_gather(s, part, whole);
}

void Communicator::start_all_gather(Stream& s, const Tensor& part, const Tensor& whole) {
  if (!has_parts(s, part, whole)) return;
  const OperationScope scope(watch_, group_, "all-gather");
  do_start_all_gather(s, part, whole);
}

void Communicator::reduce_scatter(Stream& s, const Tensor& whole, const Tensor& part, Reduce op) {
  if (!has_shares(s, whole, part)) return;
  const OperationScope scope(watch_, group_, "reduce-scatter");
  do_reduce_scatter(s, whole, part, op);
}

void Communicator::start_reduce_scatter(Stream& s, const Tensor& whole, const Tensor& part,
                                        Reduce op) {
  if (!has_shares(s, whole, part)) return;
  const OperationScope scope(watch_, group_, "reduce-scatter");
  do_start_reduce_scatter(s, whole, part, op);
}

// Whether there is something to gather from other ranks; one rank alone copies its part.
bool Communicator::has_parts(Stream& s, const Tensor& part, const Tensor& whole) const {
  require(whole.numel() == part.numel() * size_ && whole.dtype == part.dtype, "all_gather",
          "the whole is not as large as all parts");
  if (part.numel() == 0) return false;
  if (size_ == 1 && part.data != whole.data) s.copy(whole.data, part.data, part.bytes());
  return size_ > 1;
}

bool Communicator::has_shares(Stream& s, const Tensor& whole, const Tensor& part) const {
  require(whole.numel() == part.numel() * size_ && whole.dtype == part.dtype, "reduce_scatter",
          "the whole is not as large as all parts");
  require(can_reduce(part.dtype), "reduce_scatter", "numbers of this type cannot be added");
  if (part.numel() == 0) return false;
  if (size_ == 1 && part.data != whole.data) s.copy(part.data, whole.data, part.bytes());
  return size_ > 1;
}

void Communicator::send(Stream& s, const Tensor& t, int to) {
  send_receive(s, t, to, Tensor(), 0);
}

void Communicator::receive(Stream& s, const Tensor& t, int from) {
  send_receive(s, Tensor(), 0, t, from);
}

void Communicator::start_send(Stream& s, const Tensor& t, int to) {
  require(to >= 0 && to < size_ && to != rank_, "start_send", "the peer is not another rank");
  if (t.numel() == 0) return;
  const OperationScope scope(watch_, group_, "send to", rank_of_run(to));
  do_start_send(s, t, to);
}

void Communicator::send_receive(Stream& s, const Tensor& out, int to, const Tensor& in, int from) {
  const auto other = [&](const Tensor& t, int peer) {
    return !t.defined() || (peer >= 0 && peer < size_ && peer != rank_);
  };
  require(other(out, to) && other(in, from), "send_receive", "the peer is not another rank");
  if (!out.defined() && !in.defined()) return;
  const bool receives = in.defined();
  const OperationScope scope(watch_, group_, receives ? "receive from" : "send to",
                             rank_of_run(receives ? from : to));
  do_send_receive(s, out, to, in, from);
}

std::unique_ptr<PeerMapping> Communicator::map_peers(Stream& s, const std::vector<Tensor>& memory) {
  if (size_ == 1) return nullptr;
  const OperationScope scope(watch_, group_, "mapping of memory");
  return do_map_peers(s, memory);
}

std::unique_ptr<PeerMapping> Communicator::do_map_peers(Stream&, const std::vector<Tensor>&) {
  return nullptr;
}

void Communicator::barrier(Stream& s) {
  s.synchronize();
  if (size_ == 1) return;
  const OperationScope scope(watch_, group_, "barrier");
  // The values are in memory of the caller's device; set-up and ends of runs can afford an
  // allocation.
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

std::unique_ptr<Communicator> Communicator::subgroup(const std::vector<int>& ranks,
                                                     const char* name) {
  const std::string id = id_ + "/" + std::to_string(groups_made_++);
  std::unique_ptr<Communicator> made;
  {
    const OperationScope scope(size_ > 1 ? watch_ : nullptr, group_, "making of a group");
    made = do_subgroup(ranks);
  }
  if (!made) return made;
  made->name_ = name;
  if (watch_ == nullptr || made->size() == 1) return made;
  std::vector<int> ranks_of_run;
  for (const int r : ranks) ranks_of_run.push_back(rank_of_run(r));
  made->report_to(watch_, id, std::move(ranks_of_run));
  return made;
}

void Communicator::report_to(OperationWatch* watch, std::vector<int> ranks) {
  report_to(watch, name_, std::move(ranks));
}

void Communicator::report_to(OperationWatch* watch, std::string id, std::vector<int> ranks) {
  watch_ = watch;
  id_ = std::move(id);
  ranks_of_run_ = std::move(ranks);
  group_ = watch_->add_group(id_, name_, ranks_of_run_);
}

int Communicator::rank_of_run(int rank) const {
  return ranks_of_run_.empty() ? rank : ranks_of_run_[static_cast<size_t>(rank)];
}

// The first rank of a group is in no other.
std::unique_ptr<Communicator> Communicator::do_subgroup(const std::vector<int>& ranks) {
  const auto me = std::find(ranks.begin(), ranks.end(), rank_);
  if (me == ranks.end()) return split(-1, 0);
  return split(ranks.front(), static_cast<int>(me - ranks.begin()));
}

std::unique_ptr<Communicator> make_single_communicator() {
  return std::make_unique<Single>();
}

}  // namespace tally::train
