// One rank of a test of a communicator: communicator_ranks BACKEND [RANKS [peers|time]]. With RANKS it
// starts that many of itself; else mpirun or srun did. `peers`: only the checks of mapped memory;
// `time`: no checks, but how long operations take with it and without. Every operation is compared with what the ranks'
// numbers, which are known to all, add up to. Exit code 0 when all is right, 77 when there are too
// few GPUs.
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "src/device/convert.h"
#include "src/optim/gradient_reducer.h"
#include "src/parallel/collectives/communicator.h"
#include "src/parallel/collectives/mesh.h"
#include "src/parallel/collectives/pipeline_links.h"
#include "src/parallel/control/launch.h"
#include "src/parallel/control/rendezvous.h"
#include "src/parallel/control/supervisor.h"
#include "tests/train/parallel/meet.h"
#include "tests/train/parallel/peer_checks.h"
#include "tests/train/parallel/peer_times.h"

using namespace tally::train;

namespace {

int failures = 0;

void check(bool good, const std::string& what) {
  if (good) return;
  ++failures;
  fmt::print(stderr, "communicator_ranks: {}\n", what);
}

// Small whole numbers: their sums are exact in every type.
double number(int rank, int64_t i) {
  return static_cast<double>((rank * 7 + i * 3) % 11 - 5);
}

// Device memory with a copy in doubles on the host.
class Numbers {
 public:
  Numbers(Stream& s, DType type, int64_t count) : stream_(s), tensor_(nullptr, type, {count}) {
    tensor_.data = s.allocate(tensor_.bytes(), "test");
  }
  ~Numbers() { stream_.release(tensor_.data); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  const Tensor& tensor() const { return tensor_; }

  template <typename F>
  Numbers& fill(F&& value) {
    std::vector<double> wide(static_cast<size_t>(tensor_.numel()));
    for (size_t i = 0; i < wide.size(); ++i) wide[i] = value(static_cast<int64_t>(i));
    std::vector<char> bytes(tensor_.bytes());
    narrow(wide, bytes.data());
    stream_.copy(tensor_.data, bytes.data(), bytes.size());
    stream_.synchronize();
    return *this;
  }
  std::vector<double> read() const {
    std::vector<char> bytes(tensor_.bytes());
    stream_.copy(bytes.data(), tensor_.data, bytes.size());
    stream_.synchronize();
    std::vector<double> wide(static_cast<size_t>(tensor_.numel()));
    widen(bytes.data(), wide);
    return wide;
  }
  template <typename F>
  void expect(const std::string& what, F&& value) const {
    const std::vector<double> got = read();
    for (size_t i = 0; i < got.size(); ++i) {
      const double wanted = value(static_cast<int64_t>(i));
      if (got[i] == wanted) continue;
      check(false, fmt::format("{} of {}: element {} of {} is {} and should be {}", what,
                               dtype_name(tensor_.dtype), i, got.size(), got[i], wanted));
      return;
    }
  }

 private:
  bool whole_numbers() const { return tensor_.dtype == DType::i32 || tensor_.dtype == DType::i64; }
  void narrow(std::vector<double>& wide, char* out) const {
    const auto n = static_cast<int64_t>(wide.size());
    if (!whole_numbers()) {
      convert_elements(Tensor(wide.data(), DType::f64, {n}), Tensor(out, tensor_.dtype, {n}));
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      const auto v = static_cast<int64_t>(wide[static_cast<size_t>(i)]);
      const size_t width = size_of(tensor_.dtype);
      std::memcpy(out + static_cast<size_t>(i) * width, &v, width);  // little-endian
    }
  }
  void widen(char* bytes, std::vector<double>& wide) const {
    const auto n = static_cast<int64_t>(wide.size());
    if (!whole_numbers()) {
      convert_elements(Tensor(bytes, tensor_.dtype, {n}), Tensor(wide.data(), DType::f64, {n}));
      return;
    }
    for (size_t i = 0; i < wide.size(); ++i) {
      int32_t narrow = 0;
      int64_t large = 0;
      std::memcpy(&narrow, bytes + i * 4, tensor_.dtype == DType::i32 ? 4 : 0);
      std::memcpy(&large, bytes + i * 8, tensor_.dtype == DType::i64 ? 8 : 0);
      wide[i] = tensor_.dtype == DType::i32 ? narrow : static_cast<double>(large);
    }
  }

  Stream& stream_;
  Tensor tensor_;
};

double sum_over(int size, int64_t i) {
  double sum = 0;
  for (int r = 0; r < size; ++r) sum += number(r, i);
  return sum;
}

void check_collectives(Communicator& c, Stream& s, DType type, int64_t count) {
  const int rank = c.rank(), size = c.size();
  const auto mine = [&](int64_t i) { return number(rank, i); };
  const auto sum = [&](int64_t i) { return sum_over(size, i); };
  const auto most = [&](int64_t i) {
    double m = number(0, i);
    for (int r = 1; r < size; ++r) m = std::max(m, number(r, i));
    return m;
  };
  Numbers a(s, type, count), b(s, type, count * size);
  c.all_reduce(s, a.fill(mine).tensor());
  a.expect("all_reduce(sum)", sum);
  c.all_reduce(s, a.fill(mine).tensor(), Reduce::max);
  a.expect("all_reduce(max)", most);
  c.start_all_reduce(s, a.fill(mine).tensor());
  c.wait(s);
  a.expect("start_all_reduce", sum);
  for (int root = 0; root < size; ++root) {
    c.broadcast(s, a.fill(mine).tensor(), root);
    a.expect("broadcast", [&](int64_t i) { return number(root, i); });
  }
  b.fill([](int64_t) { return -1; });
  c.all_gather(s, a.fill(mine).tensor(), b.tensor());
  b.expect("all_gather", [&](int64_t i) { return number(static_cast<int>(i / count), i % count); });
  b.fill([&](int64_t i) { return i / count == rank ? mine(i % count) : -1; });
  c.all_gather(s, b.tensor().rows(rank * count, count), b.tensor());
  b.expect("all_gather in place",
           [&](int64_t i) { return number(static_cast<int>(i / count), i % count); });
  b.fill([](int64_t) { return -1; });
  c.start_all_gather(s, a.fill(mine).tensor(), b.tensor());
  c.wait(s);
  b.expect("start_all_gather",
           [&](int64_t i) { return number(static_cast<int>(i / count), i % count); });
  b.fill(mine);
  c.start_reduce_scatter(s, b.tensor(), a.fill([](int64_t) { return -1; }).tensor());
  c.wait(s);
  a.expect("start_reduce_scatter", [&](int64_t i) { return sum(i + rank * count); });
  b.fill(mine);
  c.reduce_scatter(s, b.tensor(), a.fill([](int64_t) { return -1; }).tensor());
  a.expect("reduce_scatter", [&](int64_t i) { return sum(i + rank * count); });
  b.expect("what reduce_scatter leaves", mine);
  c.reduce_scatter(s, b.tensor(), b.tensor().rows(rank * count, count));
  b.expect("reduce_scatter in place",
           [&](int64_t i) { return i / count == rank ? sum(i) : mine(i); });
}

// Stages that send to both sides before they receive from either, twice, and add something up after.
void check_links(Communicator& c, Stream& s, int64_t count) {
  if (c.size() == 1) return;
  PipelineLinks links(c, s);
  const int last = c.size() - 1;
  // Two neighbours share one connection for both links of a ring of two, so that nothing goes round.
  const bool ring = c.size() > 2;
  const int right = (c.rank() + 1) % c.size(), left = (c.rank() + last) % c.size();
  const bool has_right = ring || c.rank() < last, has_left = ring || c.rank() > 0;
  Numbers output(s, DType::f32, count), gradient(s, DType::f32, count);
  Numbers input(s, DType::f32, count), from_right(s, DType::f32, count);
  Numbers sum(s, DType::f32, count);
  for (int turn = 0; turn < 2; ++turn) {
    links.wait_for_output(s);
    links.wait_for_gradient(s);
    output.fill([&](int64_t i) { return number(c.rank() + turn, i); });
    gradient.fill([&](int64_t i) { return number(c.rank() + 5 * turn + 3, i); });
    if (has_right) links.start_send_output(s, output.tensor());
    if (has_left) links.start_send_gradient(s, gradient.tensor());
    if (has_left) links.receive_input(s, input.tensor());
    if (has_right) links.receive_gradient(s, from_right.tensor());
    if (has_left)
      input.expect("input of a stage", [&](int64_t i) { return number(left + turn, i); });
    if (has_right)
      from_right.expect("gradient of a stage",
                        [&](int64_t i) { return number(right + 5 * turn + 3, i); });
  }
  // A message that waits comes before those of other groups.
  if (c.rank() < last) links.start_send_output(s, output.tensor());
  if (c.rank() > 0) links.receive_input(s, input.tensor());
  sum.fill([&](int64_t i) { return number(c.rank(), i); });
  c.all_reduce(s, sum.tensor());
  sum.expect("a sum after messages", [&](int64_t i) {
    double all = 0;
    for (int r = 0; r < c.size(); ++r) all += number(r, i);
    return all;
  });
  links.wait_for_output(s);
  s.synchronize();
}

void check_neighbours(Communicator& c, Stream& s, int64_t count) {
  if (c.size() == 1) return;
  const int right = (c.rank() + 1) % c.size(), left = (c.rank() + c.size() - 1) % c.size();
  Numbers out(s, DType::f32, count), in(s, DType::f32, count);
  out.fill([&](int64_t i) { return number(c.rank(), i); });
  c.send_receive(s, out.tensor(), right, in.tensor(), left);
  in.expect("send_receive around the ring", [&](int64_t i) { return number(left, i); });
  // Down the line, as a pipeline does.
  if (c.rank() > 0) c.receive(s, in.tensor(), c.rank() - 1);
  if (c.rank() + 1 < c.size()) c.send(s, out.tensor(), c.rank() + 1);
  if (c.rank() > 0) in.expect("receive", [&](int64_t i) { return number(c.rank() - 1, i); });
}

// Even and odd ranks, each numbered backwards.
void check_groups(Communicator& c, Stream& s) {
  const auto group = c.split(c.rank() % 2, -c.rank());
  const int members = (c.size() - c.rank() % 2 + 1) / 2;
  check(group->size() == members, "split: wrong size");
  check(group->rank() == members - 1 - c.rank() / 2, "split: wrong rank");
  Numbers a(s, DType::f64, 5);
  group->all_reduce(s, a.fill([&](int64_t i) { return number(c.rank(), i); }).tensor());
  a.expect("all_reduce of a group", [&](int64_t i) {
    double sum = 0;
    for (int r = c.rank() % 2; r < c.size(); r += 2) sum += number(r, i);
    return sum;
  });
  const auto none = c.split(c.rank() == 0 ? -1 : 3, 0);
  check((none == nullptr) == (c.rank() == 0), "split: a negative color is no group");
  if (none) check(none->size() == c.size() - 1, "split: without rank 0");
}

// The sum over a mesh's group is that of its ranks, in whose order the group numbers them.
void check_mesh_group(Communicator& c, Stream& s, const MeshShape& shape, MeshGroup group,
                      Communicator* members) {
  const std::vector<int> ranks = ranks_of(shape, group, c.rank());
  check((members == nullptr) == ranks.empty(), "mesh: a group of the wrong ranks");
  if (!members) return;
  const auto mine = std::find(ranks.begin(), ranks.end(), c.rank()) - ranks.begin();
  check(members->size() == static_cast<int>(ranks.size()) && members->rank() == mine,
        "mesh: a group of another size or order");
  Numbers a(s, DType::f64, 5);
  members->all_reduce(s, a.fill([&](int64_t i) { return number(c.rank(), i); }).tensor());
  a.expect("all_reduce of a mesh's group", [&](int64_t i) {
    double sum = 0;
    for (const int r : ranks) sum += number(r, i);
    return sum;
  });
}

// Every mesh that these ranks can be.
void check_meshes(Communicator& c, Stream& s) {
  for (int tensor = 1; tensor <= c.size(); ++tensor) {
    for (int pipeline = 1; tensor * pipeline <= c.size(); ++pipeline) {
      if (c.size() % (tensor * pipeline) != 0) continue;
      const MeshShape shape{tensor, pipeline, c.size() / (tensor * pipeline)};
      const Mesh mesh(c, shape);
      check(mesh.position() == position_of(shape, c.rank()), "mesh: this rank's place");
      check(mesh.tensor().rank() == mesh.position().shard, "mesh: the shard");
      check(mesh.pipeline().rank() == mesh.position().stage, "mesh: the stage");
      check(mesh.samples().rank() == mesh.position().replica, "mesh: the replica");
      check_mesh_group(c, s, shape, MeshGroup::tensor, &mesh.tensor());
      check_mesh_group(c, s, shape, MeshGroup::samples, &mesh.samples());
      check_mesh_group(c, s, shape, MeshGroup::replicas, &mesh.replicas());
      check_mesh_group(c, s, shape, MeshGroup::pipeline, &mesh.pipeline());
      check_mesh_group(c, s, shape, MeshGroup::model, &mesh.model());
      check_mesh_group(c, s, shape, MeshGroup::embedding, mesh.embedding());
    }
  }
}

// The same bits on all ranks, whatever the order of additions.
void check_same_bits(Communicator& c, Stream& s) {
  Numbers a(s, DType::f32, 100003), all(s, DType::f32, 100003 * c.size());
  c.all_reduce(s, a.fill([&](int64_t i) { return std::sin(0.1 + i) / (1 + c.rank()); }).tensor());
  c.all_gather(s, a.tensor(), all.tensor());
  const std::vector<double> bits = all.read();
  for (size_t i = 0; i < 100003; ++i)
    for (size_t r = 1; r < static_cast<size_t>(c.size()); ++r)
      if (bits[i] != bits[r * 100003 + i]) return check(false, "ranks got different sums");
}

// Buckets of parameters in the order of a backward pass: some are reported, some left for the end,
// and a bucket that is not complete is left as well.
void check_reducer(Communicator& c, Stream& s) {
  ParameterTable table;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    Parameter p;
    p.name = name;
    p.shape = {100};
    table.add(p);
  }
  table.allocate(s, DType::f32);
  const Tensor flat = table.gradients();
  const std::vector<int> order{5, 4, 2, 1, 0};
  // Where ranks can map each other's memory, copy engines carry the buckets.
  const auto peers = c.map_peers(s, {flat});
  for (const int64_t elements : {int64_t{0}, int64_t{1}, int64_t{200}, int64_t{100000}}) {
    for (const size_t reported : {size_t{0}, size_t{3}, order.size()}) {
      Numbers g(s, DType::f32, flat.numel());
      g.fill([&](int64_t i) { return number(c.rank(), i); });
      s.copy(flat.data, g.tensor().data, flat.bytes());
      GradientReducer reducer(ReductionGroups(c), s, table,
                              gradient_buckets(table, order, elements));
      reducer.begin(true, true);
      for (size_t i = 0; i < reported; ++i) reducer.ready(order[i]);
      reducer.end();
      reducer.finish();
      s.copy(g.tensor().data, flat.data, flat.bytes());
      g.expect(fmt::format("gradients in buckets of {}, {} reported", elements, reported),
               [&](int64_t i) { return sum_over(c.size(), i); });
    }
  }
}

// Every second parameter is added up over the ranks of the same parity alone.
void check_reducer_of_groups(Communicator& c, Stream& s) {
  std::vector<int> alike;
  for (int r = c.rank() % 2; r < c.size(); r += 2) alike.push_back(r);
  const auto halves = c.subgroup(alike, "halves");
  const ReductionGroups groups({&c, &c, halves.get()});
  ParameterTable table;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    Parameter p;
    p.name = name;
    p.shape = {100};
    p.reduction = table.all().size() % 2 == 0 ? Reduction::replicas : Reduction::ends;
    table.add(p);
  }
  table.allocate(s, DType::f32);
  const Tensor flat = table.gradients();
  const int64_t each = table.end_of(table.all().front());
  const std::vector<int> order{5, 4, 3, 1, 0};
  for (const int64_t elements : {int64_t{0}, int64_t{1}, int64_t{100000}}) {
    for (const size_t reported : {size_t{0}, size_t{2}, order.size()}) {
      Numbers g(s, DType::f32, flat.numel());
      g.fill([&](int64_t i) { return number(c.rank(), i); });
      s.copy(flat.data, g.tensor().data, flat.bytes());
      GradientReducer reducer(groups, s, table, gradient_buckets(table, order, elements));
      reducer.begin(true, true);
      for (size_t i = 0; i < reported; ++i) reducer.ready(order[i]);
      reducer.end();
      reducer.finish();
      s.copy(g.tensor().data, flat.data, flat.bytes());
      g.expect(
          fmt::format("gradients of two groups in buckets of {}, {} reported", elements, reported),
          [&](int64_t i) {
            double sum = 0;
            for (int r = 0; r < c.size(); ++r)
              if (i / each % 2 == 0 || r % 2 == c.rank() % 2) sum += number(r, i);
            return sum;
          });
    }
  }
}

void check_all(Communicator& c, Stream& s) {
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32})
    for (const int64_t count : {1, 3, 1000, 70001}) check_collectives(c, s, type, count);
  for (const int64_t count : {1, 300000}) {
    check_neighbours(c, s, count);
    check_links(c, s, count);
  }
  check_groups(c, s);
  check_meshes(c, s);
  check_same_bits(c, s);
  check_reducer(c, s);
  check_reducer_of_groups(c, s);
}

int run(const std::string& backend, const Launch& launch, const std::string& what) {
  if (backend == "nccl" && cuda_device_count() < launch.local_size) {
    if (launch.rank == 0) fmt::print("SKIPPED: {} GPUs\n", cuda_device_count());
    return 77;
  }
  const auto meeting = meet(launch, "communicator_ranks");
  const bool gpu = backend == "nccl";
  const Device device{gpu ? DeviceKind::cuda : DeviceKind::cpu, gpu ? launch.local_rank : 0};
  const auto stream = make_stream(device);
  {
    const auto c = make_communicator(backend, *meeting, device, "");
    check(c->rank() == launch.rank && c->size() == launch.size, "wrong rank or size");
    const CommunicatorInfo info = c->info();
    if (launch.rank == 0) fmt::print("{} ranks by {} {}\n", c->size(), info.backend, info.version);
    if (what == "time") {
      time_peers(*c, *stream);
    } else {
      if (what != "peers") check_all(*c, *stream);
      check_peers(*c, *stream, check);
    }
    c->barrier(*stream);
  }
  if (failures > 0) meeting->fail(1, fmt::format("{} checks failed", failures));
  meeting->done();
  return failures > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string backend = argc > 1 ? argv[1] : "";
    LaunchOptions options;
    options.processes = argc > 2 ? std::atoi(argv[2]) : 0;
    const Launch launch =
        discover_launch(options, [](const char* name) { return std::getenv(name); });
    if (options.processes > 1 && !launch.supervised) {
      return supervise(options.processes, options, launch, argv);
    }
    return run(backend, launch, argc > 3 ? argv[3] : "");
  } catch (const std::exception& e) {
    fmt::print(stderr, "communicator_ranks: {}\n", e.what());
    return 1;
  }
}
