#include "tests/train/parallel/peer_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "src/device/arena.h"
#include "src/device/convert.h"
#include "src/device/graph.h"

using namespace tally::train;

namespace {

using Check = std::function<void(bool, const std::string&)>;

// Small whole numbers: their sums are exact in every type.
double number(int rank, int64_t i, int64_t turn) {
  return static_cast<double>((rank * 7 + i * 3 + turn * 5) % 11 - 5);
}

// Device memory, and what all ranks should have in theirs.
class Region {
 public:
  Region(Arena* arena, Stream& s, DType type, int64_t count, const Communicator& c)
      : stream_(s),
        rank_(c.rank()),
        tensor_(arena->make(type, {count}, "test")),
        expected_(static_cast<size_t>(c.size()), std::vector<double>(static_cast<size_t>(count))) {}
  const Tensor& tensor() const { return tensor_; }
  double& at(int rank, int64_t i) {
    return expected_[static_cast<size_t>(rank)][static_cast<size_t>(i)];
  }

  void fill(int64_t turn) {
    for (size_t r = 0; r < expected_.size(); ++r)
      for (int64_t i = 0; i < tensor_.numel(); ++i)
        at(static_cast<int>(r), i) = number(static_cast<int>(r), i, turn);
    std::vector<char> bytes(tensor_.bytes());
    convert_elements(wide(&expected_[static_cast<size_t>(rank_)]), narrow(&bytes));
    stream_.copy(tensor_.data, bytes.data(), bytes.size());
    stream_.synchronize();
  }
  // "" or the first difference.
  std::string difference() {
    std::vector<char> bytes(tensor_.bytes());
    stream_.copy(bytes.data(), tensor_.data, bytes.size());
    stream_.synchronize();
    std::vector<double> got(static_cast<size_t>(tensor_.numel()));
    convert_elements(narrow(&bytes), wide(&got));
    for (int64_t i = 0; i < tensor_.numel(); ++i)
      if (got[static_cast<size_t>(i)] != at(rank_, i))
        return fmt::format("element {} of {} of {} is {} and should be {}", i, tensor_.numel(),
                           dtype_name(tensor_.dtype), got[static_cast<size_t>(i)], at(rank_, i));
    return "";
  }

 private:
  Tensor wide(std::vector<double>* numbers) const {
    return Tensor(numbers->data(), DType::f64, {tensor_.numel()});
  }
  Tensor narrow(std::vector<char>* bytes) const {
    return Tensor(bytes->data(), tensor_.dtype, {tensor_.numel()});
  }

  Stream& stream_;
  const int rank_;
  Tensor tensor_;
  std::vector<std::vector<double>> expected_;  // of each rank
};

enum class Kind : uint8_t { all_reduce, all_gather, reduce_scatter };

struct Operation {
  Kind kind = Kind::all_reduce;
  Region* region = nullptr;
  int64_t first = 0, count = 0;  // the whole tensor
  Region* parts = nullptr;       // where a part lies at `part`; null: in its place in the whole
  int64_t part = 0;
  bool starts = true;  // overlaps with what follows
  bool waits = false;  // after it
  std::string text() const {
    constexpr std::array<const char*, 3> names{"all-reduce", "all-gather", "reduce-scatter"};
    return fmt::format("{}{}{} of {} {} at {}", starts ? "started " : "",
                       names[static_cast<size_t>(kind)], parts ? "" : " in place", count,
                       dtype_name(region->tensor().dtype), first);
  }
};

void enqueue(Communicator& c, Stream& s, const Operation& o) {
  const Tensor whole = o.region->tensor().rows(o.first, o.count);
  const int64_t n = o.count / c.size();
  const Tensor part = o.parts ? o.parts->tensor().rows(o.part, n) : whole.rows(c.rank() * n, n);
  if (o.starts) {
    if (o.kind == Kind::all_reduce) c.start_all_reduce(s, whole);
    if (o.kind == Kind::all_gather) c.start_all_gather(s, part, whole);
    if (o.kind == Kind::reduce_scatter) c.start_reduce_scatter(s, whole, part);
  } else {
    if (o.kind == Kind::all_reduce) c.all_reduce(s, whole);
    if (o.kind == Kind::all_gather) c.all_gather(s, part, whole);
    if (o.kind == Kind::reduce_scatter) c.reduce_scatter(s, whole, part);
  }
  if (o.waits) c.wait(s);
}

// The same on the host.
void expect(const Communicator& c, const Operation& o) {
  const int ranks = c.size();
  const int64_t n = o.kind == Kind::all_reduce ? o.count : o.count / ranks;
  const auto part = [&](int rank, int64_t i) -> double& {
    return o.parts ? o.parts->at(rank, o.part + i) : o.region->at(rank, o.first + rank * n + i);
  };
  const auto sum = [&](int64_t i) {
    double total = 0;
    for (int r = 0; r < ranks; ++r) total += o.region->at(r, o.first + i);
    return total;
  };
  if (o.kind == Kind::reduce_scatter) {
    for (int r = 0; r < ranks; ++r)
      for (int64_t i = 0; i < n; ++i) part(r, i) = sum(r * n + i);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const double total = o.kind == Kind::all_reduce ? sum(i) : 0;
    for (int r = 0; r < ranks; ++r) {
      if (o.kind == Kind::all_reduce) {
        o.region->at(r, o.first + i) = total;
        continue;
      }
      for (int from = 0; from < ranks; ++from)
        o.region->at(r, o.first + from * n + i) = part(from, i);
    }
  }
}

// Regions that are mapped, and others for parts. Copy engines carry what is started of f32 and f64,
// kernels sums of other types and what is not started, and NCCL what is not aligned.
class Regions {
 public:
  Regions(Communicator& c, Stream& s, int64_t count) : communicator_(c), stream_(s), arena_(s) {
    for (const DType type : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      shared_.push_back(std::make_unique<Region>(&arena_, s, type, count, c));
      apart_.push_back(std::make_unique<Region>(&arena_, s, type, count, c));
    }
    busy_ = arena_.make(DType::u8, {s.device().is_cuda() ? int64_t{1} << 28 : 1024}, "test");
  }
  std::vector<Tensor> mapped() const {
    std::vector<Tensor> tensors;
    for (const auto& region : shared_) tensors.push_back(region->tensor());
    return tensors;
  }

  // Operations that have a section of the regions each. All ranks draw the same.
  std::vector<Operation> draw(std::mt19937& random, int count) {
    const auto below = [&](int64_t n) {
      return static_cast<int64_t>(random()) % std::max<int64_t>(1, n);
    };
    const auto aligned = [&](int64_t n) { return below(3) > 0 ? n / 8 * 8 : n; };
    const int64_t section = shared_.front()->tensor().numel() / count / 8 * 8;
    std::vector<Operation> operations;
    for (int k = 0; k < count; ++k) {
      const auto type = static_cast<size_t>(below(4));
      Operation o;
      o.kind = static_cast<Kind>(below(3));
      o.region = shared_[type].get();
      const int64_t skipped = below(2) == 0 ? 0 : aligned(below(section / 2));
      o.first = k * section + skipped;
      const int64_t room = section - skipped;
      o.count = std::min(room, 1 + below(below(3) == 0 ? 300 : room));
      if (o.kind != Kind::all_reduce) {
        const int ranks = communicator_.size();
        o.count = std::clamp<int64_t>(aligned(o.count / ranks), 1, room / ranks) * ranks;
        o.parts = below(2) == 0 ? nullptr : apart_[type].get();
        o.part = k * section + (below(3) == 0 ? 1 : 0);
        if (o.part + o.count / communicator_.size() > (k + 1) * section) o.part = k * section;
      }
      o.starts = below(2) == 0;
      o.waits = below(3) == 0;
      operations.push_back(o);
    }
    return operations;
  }

  void fill(int64_t turn) {
    for (auto* regions : {&shared_, &apart_})
      for (const auto& region : *regions) region->fill(turn);
  }
  // Some ranks come late.
  void dawdle(int64_t turn) {
    if ((turn + communicator_.rank()) % communicator_.size() != 0) return;
    for (int k = 0; k < 5; ++k) stream_.fill_zero(busy_.data, busy_.bytes());
  }
  std::string difference() {
    for (auto* regions : {&shared_, &apart_})
      for (const auto& region : *regions)
        if (const std::string d = region->difference(); !d.empty())
          return (regions == &shared_ ? "mapped memory: " : "other memory: ") + d;
    return "";
  }

 private:
  Communicator& communicator_;
  Stream& stream_;
  Arena arena_;
  std::vector<std::unique_ptr<Region>> shared_, apart_;
  Tensor busy_;
};

std::string text_of(const std::vector<Operation>& operations) {
  std::string text;
  for (const Operation& o : operations) text += (text.empty() ? "" : "; ") + o.text();
  return text;
}

// Operations that are called, each time others, and operations that are recorded and replayed with
// other numbers, by turns.
void check_random(Communicator& c, Stream& s, const Check& check) {
  constexpr int turns = 60, count = 12;
  for (const int64_t elements : {int64_t{3000}, int64_t{240'000}}) {
    Regions regions(c, s, elements);
    const auto peers = c.map_peers(s, regions.mapped());
    std::mt19937 random(static_cast<unsigned>(elements));
    const std::vector<Operation> fixed = regions.draw(random, count);
    const auto graph = StepGraph::make(s);
    for (int turn = 0; turn < turns; ++turn) {
      const bool replays = turn % 6 != 5;
      const std::vector<Operation> operations = replays ? fixed : regions.draw(random, count);
      const auto work = [&] {
        for (const Operation& o : operations) enqueue(c, s, o);
        c.wait(s);
      };
      regions.fill(turn);
      regions.dawdle(turn);
      if (replays) {
        graph->run(work);
      } else {
        work();
      }
      for (const Operation& o : operations) expect(c, o);
      const std::string d = regions.difference();
      check(d.empty(), fmt::format("{} operations, turn {}: {}: {}",
                                   replays ? "recorded" : "called", turn, d, text_of(operations)));
      if (!d.empty()) break;
    }
    s.synchronize();
  }
}

// More than the staging memory holds.
void check_large(Communicator& c, Stream& s, const Check& check) {
  const int64_t elements = s.device().is_cuda() ? 36'000'012 : 12'012;
  Arena arena(s);
  Region region(&arena, s, DType::f32, elements, c);
  const auto peers = c.map_peers(s, {region.tensor()});
  int turn = 0;
  for (const Kind kind : {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather,
                          Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather}) {
    Operation o;
    o.kind = kind;
    o.region = &region;
    o.starts = turn < 3;
    o.first = o.starts ? 3 : 4;
    o.count = (elements - 9) / c.size() / 8 * 8 * c.size();
    o.waits = true;
    region.fill(turn++);
    enqueue(c, s, o);
    expect(c, o);
    const std::string d = region.difference();
    check(d.empty(), fmt::format("{}: {}", o.text(), d));
  }
}

// Sums that have to be rounded: the same bits on all ranks, and of 16-bit types rounded once.
void check_rounded(Communicator& c, Stream& s, const Check& check) {
  const int64_t elements = 100'003;
  const auto value = [](int rank, int64_t i) {
    return static_cast<double>(static_cast<float>(std::sin(0.1 + static_cast<double>(i)))) /
           (1 << rank);
  };
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    Arena arena(s);
    const Tensor t = arena.make(type, {elements}, "test");
    const Tensor all = arena.make(type, {c.size() * elements}, "test");
    const auto peers = c.map_peers(s, {t});
    const auto rounded = [&](int rank) {
      std::vector<double> wide(static_cast<size_t>(elements));
      for (int64_t i = 0; i < elements; ++i) wide[static_cast<size_t>(i)] = value(rank, i);
      std::vector<char> bytes(t.bytes());
      convert_elements(Tensor(wide.data(), DType::f64, {elements}),
                       Tensor(bytes.data(), type, {elements}));
      return bytes;
    };
    const std::vector<char> mine = rounded(c.rank());
    s.copy(t.data, mine.data(), mine.size());
    c.all_reduce(s, t);
    c.all_gather(s, t, all);
    std::vector<char> bits(all.bytes());
    s.copy(bits.data(), all.data, bits.size());
    s.synchronize();
    for (int r = 1; r < c.size(); ++r)
      check(std::memcmp(bits.data(), bits.data() + static_cast<size_t>(r) * t.bytes(), t.bytes()) ==
                0,
            fmt::format("ranks got different sums of {}", dtype_name(type)));
    if (!c.uses_peer_kernels() || type == DType::f32) continue;
    std::vector<double> total(static_cast<size_t>(elements)), next(total.size());
    for (int r = 0; r < c.size(); ++r) {
      std::vector<char> theirs = rounded(r);
      convert_elements(Tensor(theirs.data(), type, {elements}),
                       Tensor(next.data(), DType::f64, {elements}));
      for (size_t i = 0; i < total.size(); ++i) total[i] += next[i];
    }
    convert_elements(Tensor(bits.data(), type, {elements}),
                     Tensor(next.data(), DType::f64, {elements}));
    const double half = type == DType::bf16 ? 1.0 / 256 : 1.0 / 2048;  // of the last place, at most
    for (size_t i = 0; i < total.size(); ++i)
      if (const double error = std::abs(next[i] - total[i]);
          error > half * 1.001 * std::abs(total[i]) + 1e-6) {
        check(false, fmt::format("element {} of a sum of {} is {} and should be {}", i,
                                 dtype_name(type), next[i], total[i]));
        break;
      }
  }
}

// Where one rank cannot, none does.
void check_refused(Communicator& c, Stream& s, const Check& check) {
  Arena arena(s);
  Region region(&arena, s, DType::f32, 1000, c);
  std::vector<float> pageable(1000);
  const Tensor other(pageable.data(), DType::f32, {1000});
  const bool odd = c.rank() == c.size() - 1;
  check(c.map_peers(s, {odd ? other : region.tensor()}) == nullptr, "memory of a host was mapped");
  check(c.map_peers(s, {odd ? region.tensor().rows(0, 999) : region.tensor()}) == nullptr,
        "memory of different sizes was mapped");
  check(!c.uses_copy_engines() && !c.uses_peer_kernels(), "carried without a mapping");
  Operation o;
  o.region = &region;
  o.count = 1000;
  o.waits = true;
  region.fill(0);
  enqueue(c, s, o);
  expect(c, o);
  const std::string d = region.difference();
  check(d.empty(), fmt::format("after a refusal: {}: {}", o.text(), d));
}

}  // namespace

void check_peers(Communicator& c, Stream& s, const Check& check) {
  if (c.size() == 1) return;
  {
    Arena arena(s);
    const Tensor t = arena.make(DType::f32, {1000}, "test");
    const auto peers = c.map_peers(s, {t});
    check((peers != nullptr) == (c.uses_copy_engines() || c.uses_peer_kernels()),
          "a mapping that nothing uses");
    const auto text = [](bool used) { return used ? "used" : "not used on these ranks"; };
    if (c.rank() == 0)
      fmt::print("copy engines: {}; kernels: {}\n", text(c.uses_copy_engines()),
                 text(c.uses_peer_kernels()));
    check(c.map_peers(s, {t}) == nullptr, "two mappings at a time");
  }
  check_refused(c, s, check);
  check_random(c, s, check);
  check_large(c, s, check);
  check_rounded(c, s, check);
  check(!c.uses_copy_engines() && !c.uses_peer_kernels(), "carried after the mapping");
}
