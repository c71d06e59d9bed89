#include "tests/train/parallel/peer_times.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>

#include "src/device/arena.h"
#include "src/device/graph.h"

using namespace tally::train;

namespace {

// Microseconds of one call of `work`, of many in a graph.
double time_of(Communicator& c, Stream& s, const std::function<void()>& work) {
  constexpr int recorded = 20, replays = 10;
  const auto graph = StepGraph::make(s);
  const auto many = [&] {
    for (int i = 0; i < recorded; ++i) work();
  };
  for (int i = 0; i <= StepGraph::eager_calls; ++i) graph->run(many);
  c.barrier(s);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < replays; ++i) graph->run(many);
  s.synchronize();
  const std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - begin;
  return passed.count() / recorded / replays;
}

struct Timed {
  const char* name;
  double moved;  // bytes in each direction of a rank, of the whole tensor's
  std::function<void()> work;
};

}  // namespace

// GB/s: the bus bandwidth of NCCL's tests, which is what a rank has to send at least.
void time_peers(Communicator& c, Stream& s) {
  const double others = c.size() - 1, ranks = c.size();
  if (c.rank() == 0)
    fmt::print("{:16} {:>8} {:>14} {:>8} {:>10} {:>8}\n", "bf16", "MB", "mapped: us", "GB/s",
               "else: us", "GB/s");
  for (const double megabytes : {0.01, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.5, 21.0, 42.0}) {
    Arena arena(s);
    const auto n = static_cast<int64_t>(megabytes * 1e6 / 2 / 64 / ranks) * 64;  // of a part
    const Tensor whole = arena.make(DType::bf16, {n * c.size()}, "test");
    const Tensor part = arena.make(DType::bf16, {n}, "test");
    s.fill_zero(whole.data, whole.bytes());
    s.fill_zero(part.data, part.bytes());
    const Timed all[] = {
        {"all-reduce", 2 * others / ranks, [&] { c.all_reduce(s, whole); }},
        {"reduce-scatter", others / ranks, [&] { c.reduce_scatter(s, whole, part); }},
        {"all-gather", others / ranks, [&] { c.all_gather(s, part, whole); }}};
    for (const Timed& t : all) {
      double mapped = 0;
      {
        const auto peers = c.map_peers(s, {whole});
        if (peers) mapped = time_of(c, s, t.work);
      }
      const double unmapped = time_of(c, s, t.work);
      const double bytes = t.moved * static_cast<double>(whole.bytes());
      if (c.rank() == 0)
        fmt::print("{:16} {:8.3f} {:14.1f} {:8.0f} {:10.1f} {:8.0f}\n", t.name,
                   static_cast<double>(whole.bytes()) / 1e6, mapped,
                   mapped > 0 ? bytes / mapped / 1e3 : 0.0, unmapped, bytes / unmapped / 1e3);
    }
  }
}
