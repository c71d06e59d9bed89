// How replicas share the flat buffers (ZeRO), and the memory that it saves.
#include "src/optim/sharding.h"

#include <doctest/doctest.h>

#include <set>

#include "src/optim/optimizer_state.h"
#include "tests/train/model/tiny_gpt.h"

using namespace tally::train;

namespace {

// One of several processes, of which the others do not exist.
class OneOf final : public Communicator {
 public:
  OneOf(int rank, int size) : Communicator(rank, size) {}
  CommunicatorInfo info() const override { return {"test", "", {}}; }

 private:
  [[noreturn]] static void none() { throw CommunicationError("there are no other processes"); }
  void do_all_reduce(Stream&, const Tensor&, Reduce) override { none(); }
  void do_start_send(Stream&, const Tensor&, int) override { none(); }
  void do_broadcast(Stream&, const Tensor&, int) override { none(); }
  void do_all_gather(Stream&, const Tensor&, const Tensor&) override { none(); }
  void do_reduce_scatter(Stream&, const Tensor&, const Tensor&, Reduce) override { none(); }
  void do_send_receive(Stream&, const Tensor&, int, const Tensor&, int) override { none(); }
  std::unique_ptr<Communicator> do_split(int, int) override { none(); }
};

// A replica of a GPT that `replicas` processes share.
struct Replica {
  Replica(const Config& config, DType type, int rank, int replicas, bool shard_gradients,
          int64_t bucket, const char* alone = nullptr)
      : group(rank, replicas) {
    register_model(config.model, &table);
    table.allocate(*stream, type, sharded_memory(replicas, shard_gradients));
    Sharding::Options options;
    options.bucket_elements = bucket;
    options.shard_gradients = shard_gradients;
    if (alone) options.alone = table.get(alone).id;
    // In the order of a backward pass.
    std::vector<int> order;
    for (int64_t layer = config.model.layers; layer-- > 0;)
      for (const char* name : {"mlp.c_proj", "mlp.c_fc", "attn.c_proj", "attn.c_attn"})
        order.push_back(table.get("h." + std::to_string(layer) + "." + name + ".weight").id);
    sharding = std::make_unique<Sharding>(group, table, *stream, order, options);
  }

  std::unique_ptr<Stream> stream = make_stream(Device{});
  OneOf group;
  ParameterTable table;
  std::unique_ptr<Sharding> sharding;
};

int64_t padded(int64_t elements, int64_t alignment) {
  return (elements + alignment - 1) / alignment * alignment;
}

}  // namespace

TEST_CASE("every element belongs to one process, in equal shares of every range") {
  const Config c = tiny_config(DType::f32);
  for (const int replicas : {2, 3, 4, 6, 7, 16}) {
    for (const bool shard_gradients : {false, true}) {
      for (const int64_t bucket : {0, 1, 50000, 100000000}) {
        CAPTURE(replicas);
        CAPTURE(shard_gradients);
        CAPTURE(bucket);
        std::vector<std::unique_ptr<Replica>> all;
        for (int rank = 0; rank < replicas; ++rank)
          all.push_back(
              std::make_unique<Replica>(c, DType::f32, rank, replicas, shard_gradients, bucket));
        const std::vector<Sharding::Range>& first = all[0]->sharding->ranges();
        int64_t at = 0;
        for (size_t i = 0; i < first.size(); ++i) {
          CHECK(first[i].whole.first == at);
          for (int rank = 0; rank < replicas; ++rank) {
            const Sharding::Range& r = all[static_cast<size_t>(rank)]->sharding->ranges()[i];
            CHECK(r.whole == first[i].whole);
            CHECK(r.own.first == at);
            CHECK(r.own.count() == r.whole.count() / replicas);
            CHECK(r.own_gradient.numel() == r.own.count());
            CHECK(r.gradient.numel() == r.whole.count());
            // Vectors of 16 bytes serve it.
            CHECK(r.own.first % 16 == 0);
            at = r.own.last;
          }
          CHECK(at == first[i].whole.last);
        }
        CHECK(at == all[0]->table.elements());
      }
    }
  }
}

TEST_CASE("a parameter that two stages have is a range by itself") {
  const Config c = tiny_config(DType::f32);
  const Replica replica(c, DType::f32, 1, 3, true, 0, "wte.weight");
  const Parameter& wte = replica.table.find("wte.weight");
  CHECK(replica.sharding->alone().numel() == (replica.table.end_of(wte) - wte.offset) / 3);
  CHECK_FALSE(Replica(c, DType::f32, 1, 3, true, 0).sharding->alone().defined());
}

TEST_CASE("ZeRO 2: every second block's matrices share the memory of their gradients") {
  Config c = tiny_config(DType::f32);
  c.model.layers = 5;
  const Replica replica(c, DType::f32, 0, 2, true, 0);
  const auto gradient = [&](const std::string& name) { return replica.table.get(name); };
  std::set<const void*> places;
  for (const char* name : {"mlp.c_proj", "mlp.c_fc", "attn.c_proj", "attn.c_attn"}) {
    const std::string end = std::string(".") + name + ".weight";
    CHECK(gradient("h.0" + end).overwrite);
    CHECK(gradient("h.0" + end).gradient.data == gradient("h.2" + end).gradient.data);
    CHECK(gradient("h.1" + end).gradient.data == gradient("h.3" + end).gradient.data);
    places.insert(gradient("h.0" + end).gradient.data);
    places.insert(gradient("h.1" + end).gradient.data);
  }
  CHECK(places.size() == 8);
  for (const char* name : {"wte.weight", "wpe.weight", "h.0.mlp.c_fc.bias", "ln_f.weight"})
    CHECK_FALSE(gradient(name).overwrite);
  const Replica other(c, DType::f32, 0, 2, false, 0);
  CHECK(other.table.gradients().numel() == other.table.elements());
  CHECK_FALSE(other.table.get("h.0.mlp.c_fc.weight").overwrite);
}

TEST_CASE("the memory of a process is what its shares promise") {
  struct Row {
    DType type;
    int replicas;
  };
  for (const Row& row : {Row{DType::f32, 2}, Row{DType::f32, 4}, Row{DType::bf16, 3}}) {
    CAPTURE(row.replicas);
    Config c = tiny_config(row.type);
    c.model.layers = 8;
    for (const bool shard_gradients : {false, true}) {
      CAPTURE(shard_gradients);
      Replica replica(c, row.type, 0, row.replicas, shard_gradients, 20000);
      const OptimizerState state(replica.table, *replica.stream, OptimizerKind::adam,
                                 replica.sharding->owned());
      const int64_t alignment = sharded_memory(row.replicas, false).alignment;
      int64_t block = 0;
      for (const Parameter& p : replica.table.all())
        if (p.block == 0) block += padded(p.elements(), alignment);
      const int64_t all = replica.table.elements(), blocks = 8 * block;
      const int64_t gradients =
          shard_gradients ? all - blocks + 2 * block + blocks / row.replicas : all;
      const int64_t wide = gradients + 3 * all / row.replicas;
      const auto expected = static_cast<size_t>(all) * size_of(row.type) +
                            static_cast<size_t>(wide) * size_of(DType::f32);
      // Every allocation ends at a multiple of 256 bytes.
      CHECK(replica.stream->bytes_allocated() >= expected);
      CHECK(replica.stream->bytes_allocated() < expected + 256 * 16);
    }
  }
}

TEST_CASE("a parameter's elements in a buffer of ranges") {
  Parameter p;
  p.name = "p";
  p.shape = {10};
  p.offset = 100;
  const auto held = held_elements(p, {{0, 50}, {90, 104}, {106, 107}, {109, 300}, {400, 500}});
  REQUIRE(held.size() == 3);
  const std::vector<std::array<int64_t, 3>> expected{{0, 60, 4}, {6, 64, 1}, {9, 65, 1}};
  for (size_t i = 0; i < 3; ++i)
    CHECK(std::array<int64_t, 3>{held[i].in_parameter, held[i].in_buffer, held[i].count} ==
          expected[i]);
}

TEST_CASE("master weights of shares are drawn with the weights") {
  for (const DType type : {DType::f32, DType::bf16}) {
    const Config c = tiny_config(type);
    const auto stream = make_stream(Device{});
    ParameterTable whole;
    register_model(c.model, &whole);
    whole.allocate(*stream, type, sharded_memory(3, false));
    const OptimizerState all(whole, *stream, OptimizerKind::adam);
    whole.initialize(5, all.buffers().master);
    const std::vector<double> expected = read_doubles(*stream, all.buffers().master);
    for (int rank = 0; rank < 3; ++rank) {
      Replica replica(c, type, rank, 3, false, 20000);
      const OptimizerState state(replica.table, *replica.stream, OptimizerKind::adam,
                                 replica.sharding->owned());
      const OptimizerBuffers& own = state.buffers();
      replica.table.initialize(5, own.master, own.ranges);
      const std::vector<double> master = read_doubles(*replica.stream, own.master);
      size_t at = 0;
      for (const FlatRange& r : own.ranges)
        for (int64_t i = r.first; i < r.last; ++i)
          REQUIRE(master[at++] == expected[static_cast<size_t>(i)]);
      CHECK(at == master.size());
    }
  }
}
