#include "src/parallel/collectives/rehearsal.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "src/device/convert.h"

namespace tally::train {
namespace {

class Rehearsal final : public Communicator {
 public:
  Rehearsal(int rank, int size, RehearsalLedger* ledger)
      : Communicator(rank, size), ledger_(*ledger) {}
  CommunicatorInfo info() const override { return {"rehearsal", "", {}}; }

 private:
  void note(MessageKind kind, const Tensor& t) {
    ledger_.add(name(), kind, size(), static_cast<double>(t.bytes()));
  }
  void do_all_reduce(Stream&, const Tensor& t, Reduce) override {
    note(MessageKind::all_reduce, t);
  }
  void do_broadcast(Stream&, const Tensor& t, int) override { note(MessageKind::broadcast, t); }
  // Every rank's part is this one's. They are copied once: a real gather does not use this
  // process's kernels. Weights are gathered in place, and a rehearsal draws all of them: another
  // rank's norms and matrices must not become pieces of this one's. But casts to FP8 are made by
  // the ranks that have the numbers, and in all of them the largest is the format's.
  void do_all_gather(Stream& s, const Tensor& part, const Tensor& whole) override {
    note(MessageKind::all_gather, whole);
    const Tensor parts = whole.view({size(), part.numel()});
    const bool in_place = parts.rows(rank(), 1).data == part.data;
    if ((in_place && size_of(whole.dtype) > 1) || !known_.insert({whole.data, whole.dtype}).second)
      return;
    for (int64_t r = 0; r < size(); ++r)
      if (!in_place || r != rank()) s.copy(parts.rows(r, 1).data, part.data, part.bytes());
  }
  void do_reduce_scatter(Stream& s, const Tensor& whole, const Tensor& part, Reduce) override {
    note(MessageKind::reduce_scatter, whole);
    const Tensor mine = whole.view({size(), part.numel()}).rows(rank(), 1);
    if (!known_.insert({part.data, part.dtype}).second || mine.data == part.data) return;
    s.copy(part.data, mine.data, part.bytes());
  }
  void do_start_send(Stream&, const Tensor& t, int) override { note(MessageKind::send, t); }
  void do_send_receive(Stream& s, const Tensor& out, int, const Tensor& in, int) override {
    if (out.defined()) note(MessageKind::send, out);
    if (!in.defined()) return;
    note(MessageKind::receive, in);
    const bool numbers = in.dtype != DType::i32 && in.dtype != DType::i64;
    if (numbers && known_.insert({in.data, in.dtype}).second) fill(s, in);
  }
  // Normal numbers: zeros would need less power, and a GPU would be faster with them.
  static void fill(Stream& s, const Tensor& t) {
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal(0, 0.02F);
    std::vector<float> values(static_cast<size_t>(t.numel()));
    for (float& v : values) v = normal(random);
    std::vector<char> bytes(t.bytes());
    convert_elements(Tensor(values.data(), DType::f32, {t.numel()}),
                     Tensor(bytes.data(), t.dtype, {t.numel()}));
    s.copy(t.data, bytes.data(), bytes.size());
    s.synchronize();
  }
  std::unique_ptr<Communicator> do_split(int, int) override {
    throw CommunicationError("a rehearsal does not know the other ranks' groups");
  }
  std::unique_ptr<Communicator> do_subgroup(const std::vector<int>& ranks) override {
    const auto me = std::find(ranks.begin(), ranks.end(), rank());
    if (me == ranks.end()) return nullptr;
    if (ranks.size() == 1) return make_single_communicator();
    return std::make_unique<Rehearsal>(static_cast<int>(me - ranks.begin()),
                                       static_cast<int>(ranks.size()), &ledger_);
  }

  RehearsalLedger& ledger_;
  std::set<std::pair<void*, DType>> known_;  // memory that holds such numbers already
};

bool is_sum(MessageKind kind) {
  return kind == MessageKind::all_reduce;
}
bool is_message(MessageKind kind) {
  return kind == MessageKind::send || kind == MessageKind::receive;
}

}  // namespace

double Messages::bytes_sent() const {
  if (kind == MessageKind::receive) return 0;
  if (is_message(kind) || kind == MessageKind::broadcast) return bytes;
  return bytes * (is_sum(kind) ? 2 : 1) * (ranks - 1) / ranks;
}

double Messages::steps() const {
  if (kind == MessageKind::receive) return 0;
  const auto count = static_cast<double>(calls);
  if (is_message(kind) || kind == MessageKind::broadcast) return count;
  return count * (is_sum(kind) ? 2 : 1) * (ranks - 1);
}

void RehearsalLedger::add(const std::string& group, MessageKind kind, int ranks, double bytes) {
  Messages& m = messages_[{group, kind, ranks}];
  m.group = group;
  m.kind = kind;
  m.ranks = ranks;
  ++m.calls;
  m.bytes += bytes;
}

std::vector<Messages> RehearsalLedger::messages() const {
  std::vector<Messages> all;
  for (const auto& [key, messages] : messages_) all.push_back(messages);
  return all;
}

std::unique_ptr<Communicator> make_rehearsal_communicator(int rank, int size,
                                                          RehearsalLedger* ledger) {
  if (size == 1) return make_single_communicator();
  return std::make_unique<Rehearsal>(rank, size, ledger);
}

}  // namespace tally::train
