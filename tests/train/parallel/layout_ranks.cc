// One rank of a test of the layouts of a training: layout_ranks BACKEND RANKS [first]. Every way to divide
// the ranks among tensor, sequence, pipeline and data parallelism, with every recomputation and ZeRO
// 0, 1 and 2, trains three steps and is held against the same steps in one process: loss, norm of the gradient, every
// gradient put together from its parts, and the parameters at the end. With first it ends at the
// first that differs. It prints which shapes are done. Exit code 0 when all is right, 77 when there
// are too few GPUs. Only one such test at a time on GPUs: kernels that wait for each other on several
// GPUs hardly advance where processes take turns on each.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "src/data/tokens/documents.h"
#include "src/device/convert.h"
#include "src/parallel/control/launch.h"
#include "src/parallel/control/rendezvous.h"
#include "src/parallel/control/supervisor.h"
#include "src/train/step/forward_backward.h"
#include "src/train/step/session.h"
#include "tests/train/parallel/gathered.h"
#include "tests/train/parallel/meet.h"

using namespace tally::train;

namespace {

// The first has fresh weights, the second an update's, the third the moments of two.
constexpr int steps = 3;

struct Layout {
  MeshShape shape;
  bool sequence = false;
  int chunks = 1;
  int zero = 0;  // ZeRO 1 or 2
  Recompute recompute = Recompute::none;
  DType type = DType::f64;
  bool tied = true;  // and learned positions; else an untied head and rotary positions
  int64_t global_batch = 16;
  OptimizerKind optimizer = OptimizerKind::adam;
  bool llama = false, qk_norm = false, qkv_bias = false;
  const char* fp8 = nullptr;  // the recipe
  double dropout = 0;         // without tensor parallelism: it draws other masks there
  int64_t micro_batch = 2;
  // Losses are divided by the labels of the global batch, which differ from one micro batch to the
  // next. One process takes the global batch at once, by autograd.
  bool counts_labels = false;
  bool reference = false;
  Task task = Task::language_model;  // else of an encoder
  bool counts() const { return counts_labels || task != Task::language_model; }
  std::string labels_text() const {
    if (!counts()) return "";
    const char* what = task == Task::pretraining      ? "BERT's pre-training"
                       : task == Task::classification ? "BERT's classes"
                       : task == Task::language_model ? "masked targets"
                                                      : "BERT's answers";
    return fmt::format(", {}, micro batch {}", what, micro_batch);
  }
  std::string text() const {
    return fmt::format("TP {}{} PP {}{} DP {} ZeRO {}, recompute {}, {}{}, {}, {}{}{}{}",
                       shape.tensor, sequence ? " SP" : "", shape.pipeline,
                       chunks > 1 ? fmt::format(" x {}", chunks) : "", shape.data, zero,
                       recompute_name(recompute), dtype_name(type),
                       fp8 ? fmt::format(" and FP8 {}", fp8) : "", tied ? "tied" : "untied",
                       qk_norm    ? "llama with QK norm, "
                       : qkv_bias ? "llama with biases of Q, K and V, "
                       : llama    ? "llama, "
                                  : "",
                       optimizer_name(optimizer), dropout > 0 ? ", dropout" : "", labels_text());
  }
};

// Sizes that eight ranks can divide in every way, a vocabulary that ends within a shard, and shards
// that have padding alone.
Config config_of(const Layout& l, int rank) {
  Config c;
  ModelConfig& m = c.model;
  m.layers = 8;
  m.hidden = 32;
  m.heads = 8;
  m.ffn = 64;
  m.max_positions = 16;
  m.vocabulary = 41;
  m.padded_vocabulary = 64;
  m.init_std = 0.1;
  m.tied_embeddings = l.tied;
  m.positions = l.tied ? Positions::learned : Positions::rotary;
  if (l.llama) {
    m.set_kind("llama");
    m.positions = Positions::rotary;
    m.block.qk_norm = l.qk_norm;
    m.block.qkv_bias = l.qkv_bias;
    m.query_groups = 4;
    m.kv_channels = 6;
  }
  m.hidden_dropout = m.attention_dropout = l.dropout;
  m.classifier_dropout = l.dropout;
  if (l.task != Task::language_model) {
    m.set_kind("bert");
    m.task = l.task;
    m.classes = 3;
  }
  c.data.eod_mask_loss = c.per_token_loss = l.counts_labels;
  c.reference = l.reference;
  c.sequence = 16;
  c.micro_batch = l.micro_batch;
  c.global_batch = l.global_batch;
  c.train_iterations = steps;
  c.optimizer.kind = l.optimizer;
  c.optimizer.clip = 0.1;
  c.optimizer.epsilon = 1e-4;  // so that a gradient that is zero but for rounding moves nothing
  c.optimizer.weight_decay = 0.1;
  c.precision = l.type == DType::f64   ? Precision::f64
                : l.type == DType::f32 ? Precision::f32
                                       : Precision::bf16;
  if (l.fp8) {
    c.fp8.recipe = *find_fp8_recipe(l.fp8);
    c.fp8.format =
        c.fp8.recipe.e5m2_gradients ? Fp8Config::Format::hybrid : Fp8Config::Format::e4m3;
  }
  c.recompute = l.recompute;
  c.tensor_parallel = l.shape.tensor;
  c.pipeline_parallel = l.shape.pipeline;
  c.data_parallel = l.shape.data;
  c.world_size = l.shape.size();
  c.sequence_parallel = l.sequence;
  c.distributed_optimizer = l.zero > 0;
  c.shard_gradients = l.zero > 1;
  c.virtual_pipeline_layers = l.chunks > 1 ? m.layers / l.shape.pipeline / l.chunks : 0;
  c.rank = rank;
  c.gradient_bucket = 1000;
  c.cuda_graph = false;
  c.policy.deterministic = true;  // on a GPU nothing is timed
  return c;
}

struct Outcome {
  std::vector<double> losses, norms;
  std::vector<Gathered> gradients;  // of each step
  Gathered parameters;
};

// The elements of a flat buffer that `ranges` name, in host memory; the others are NaN.
class Flat {
 public:
  Flat(const ParameterTable& table, DType type)
      : bytes_(static_cast<size_t>(table.elements()) * size_of(type), '\xff'), type_(type) {}
  Tensor tensor() {
    return Tensor(bytes_.data(), type_, {static_cast<int64_t>(bytes_.size() / size_of(type_))});
  }
  void put(const FlatRange& range, const Tensor& from, Stream& stream) {
    stream.copy(tensor().rows(range.first, range.count()).data, from.data, from.bytes());
    stream.synchronize();
  }

 private:
  std::vector<char> bytes_;
  DType type_;
};

Gathered gradients_of(const Session& session, Stream& stream, const Exchange& exchange) {
  const ParameterTable& table = session.table;
  if (!session.sharding) return gather(table, table.gradients(), stream, exchange);
  Flat flat(table, table.gradients().dtype);
  for (const Sharding::Range& r : session.sharding->ranges())
    flat.put(r.own, r.own_gradient, stream);
  return gather(table, flat.tensor(), stream, exchange);
}

Gathered master_of(const Session& session, Stream& stream, const Exchange& exchange) {
  const OptimizerBuffers buffers = session.buffers();
  Flat flat(session.table, buffers.master.dtype);
  int64_t at = 0;
  for (const FlatRange& range : buffers.ranges) {
    flat.put(range, buffers.master.rows(at, range.count()), stream);
    at += range.count();
  }
  return gather(session.table, flat.tensor(), stream, exchange);
}

// Samples of different lengths with different numbers of labels: none in every fourth.
class Sequences final : public EncoderSource {
 public:
  int64_t samples_per_epoch() const override { return 1000; }
  int64_t sequence() const override { return 16; }
  void sample(int64_t index, EncoderSample* out) const override {
    *out = {};
    const auto n = static_cast<int32_t>(index % 1000);
    const int32_t length = 4 + n * 7 % 13;
    for (int32_t i = 0; i < length; ++i) {
      out->ids.push_back((n * 5 + i * 11) % 41);
      out->token_types.push_back(2 * i < length ? 0 : 1);
    }
    if (n % 4 == 1) return;
    for (int32_t i = 1 + n % 3; i < length; i += 1 + n % 5) {
      out->masked_positions.push_back(i);
      out->masked_labels.push_back((n + i) % 41);
    }
    out->next_sentence = n % 2;
    out->label = n % 3;
    out->start = n % 3 == 0 ? length : n % length;  // beyond the sequence it does not count
    out->end = length - 1;
  }
};

Samples samples_of(const Layout& l, const Config& config) {
  if (l.task != Task::language_model) return Samples(std::make_shared<Sequences>());
  const std::shared_ptr<const SampleSource> source =
      make_mock_samples(config.model.vocabulary, config.sequence, 3);
  if (!l.counts_labels) return Samples(source);
  DocumentEnds ends;
  ends.mask_loss = true;
  ends.eod = 5;
  return Samples(with_document_ends(source, ends));
}

// Trains on this rank; every rank returns the whole outcome.
Outcome train(const Layout& l, Stream& stream, const Mesh& mesh, const Exchange& exchange) {
  Communicator& world = mesh.world();
  const Config config = config_of(l, world.rank());
  Session session(config, stream, mesh);
  ParameterTable& table = session.table;
  table.initialize(7, session.buffers().master, session.buffers().ranges);
  Optimizer& optimizer = *session.optimizer;
  ForwardBackward passes(config, stream, table, session.stage_list(), mesh, optimizer, 1);
  optimizer.defer_gather(session.sharding != nullptr);
  const auto loader = make_loader(config, mesh.samples(), stream, samples_of(l, config), 0,
                                  static_cast<int>(2 * config.micro_batches()));
  Outcome outcome;
  for (int step = 0; step < steps; ++step) {
    optimizer.begin_step(0.01);
    passes.run(loader.get(), step * config.global_batch, 0);
    if (world.size() > 1)
      world.all_reduce(stream, Tensor(optimizer.state()->loss_sums, DType::f64, {2}));
    stream.synchronize();
    outcome.gradients.push_back(gradients_of(session, stream, exchange));
    optimizer.apply(false);
    const StepState state = optimizer.finish_step();
    outcome.losses.push_back(state.loss());
    outcome.norms.push_back(state.grad_norm);
  }
  optimizer.complete();
  outcome.parameters = master_of(session, stream, exchange);
  gather(table, table.weights(), stream, exchange);  // throws where replicas differ
  return outcome;
}

// Compares with one process; returns what differs, or "". Of bf16 only the first step's gradients:
// once the rounded weights differ, a bias whose gradient is a difference of large numbers may get any.
std::string difference(const Outcome& got, const Outcome& expected, double first_tolerance) {
  const bool rounds_much = first_tolerance > 1e-2;
  // In float32 the weights of later steps differ already, with each update by a rounding more.
  const bool rounds = first_tolerance > 1e-9;
  const double later_tolerance = (rounds ? 2 : 1) * first_tolerance;
  for (int step = 0; step < steps; ++step) {
    const auto at = static_cast<size_t>(step);
    const double tolerance = (rounds ? 1 + step : 1) * first_tolerance;
    const auto near = [&](double a, double b, double within) {
      return std::abs(a - b) <= within * std::abs(b);
    };
    if (!near(got.losses[at], expected.losses[at], tolerance))
      return fmt::format("step {}: loss {:.15g} instead of {:.15g}", step, got.losses[at],
                         expected.losses[at]);
    if (rounds_much && step > 0) continue;
    if (const std::string d = difference(got.gradients[at], expected.gradients[at], tolerance);
        !d.empty())
      return fmt::format("step {}: gradient of {}", step, d);
    // It is a float.
    if (!near(got.norms[at], expected.norms[at], std::max(tolerance, 1e-7)))
      return fmt::format("step {}: gradient norm {:.9g} instead of {:.9g}", step, got.norms[at],
                         expected.norms[at]);
  }
  if (rounds_much) return "";
  if (const std::string d = difference(got.parameters, expected.parameters, later_tolerance);
      !d.empty())
    return fmt::format("after {} steps: {}", steps, d);
  return "";
}

// Losses over the labels of the global batch: masked targets and every task of an encoder, which is
// parallel in data only, in micro batches of several sizes.
void add_counting(Layout l, std::vector<Layout>* all) {
  const int zeros = l.shape.data > 1 ? 3 : 1;
  const bool encodes = l.shape.data == l.shape.size();
  for (const int64_t micro_batch : {1, 2}) {
    l.micro_batch = micro_batch;
    l.counts_labels = true;
    for (l.zero = 0; l.zero < zeros; ++l.zero) all->push_back(l);
    l.counts_labels = false;
    for (const Task task : {Task::pretraining, Task::classification, Task::question_answering}) {
      if (!encodes) break;
      l.task = task;
      for (l.zero = 0; l.zero < zeros; ++l.zero) all->push_back(l);
    }
    l.task = Task::language_model;
  }
  l.optimizer = OptimizerKind::lamb;
  l.zero = zeros - 1;
  l.counts_labels = true;
  all->push_back(l);
  l.counts_labels = false;
  l.task = Task::pretraining;
  if (encodes) all->push_back(l);
}

// With the GEMMs in FP8. On the CPU the other numbers are float64, so that nothing but a number that
// lies between two of FP8's could make layouts differ. A GPU takes multiples of 16.
void add_fp8(Layout l, bool gpu, std::vector<Layout>* all) {
  l.fp8 = "tensorwise";
  l.type = gpu ? DType::bf16 : DType::f64;
  if (gpu && l.shape.tensor > 2) return;
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    l.recompute = recompute;
    all->push_back(l);
  }
  l.recompute = Recompute::none;
  l.llama = !gpu && l.shape.tensor <= 4;
  l.zero = l.shape.data > 1 ? 1 : 0;
  if (l.llama || l.zero > 0) all->push_back(l);
  for (const char* recipe : {"rowwise", "blockwise"}) {
    l.fp8 = recipe;
    all->push_back(l);
  }
}

// All layouts of so many ranks.
std::vector<Layout> layouts_of(int ranks, bool gpu) {
  std::vector<Layout> all;
  const auto add_variants = [&](Layout l) {
    const std::vector<DType> types = gpu ? std::vector{DType::f64, DType::f32, DType::bf16}
                                         : std::vector{DType::f64, DType::f32};
    for (const DType type : types)
      for (const bool tied : {true, false})
        for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
          l.type = type;
          l.tied = tied;
          l.recompute = recompute;
          // With eight ranks some are enough.
          if (ranks > 4 && (recompute != Recompute::selective || type != DType::f64)) continue;
          l.zero = 0;
          all.push_back(l);
          const bool plain = recompute == (ranks > 4 ? Recompute::selective : Recompute::none);
          if (l.shape.data == 1 || !plain || (type == DType::f32 && !tied)) continue;
          for (l.zero = 1; l.zero <= 2; ++l.zero) all.push_back(l);
        }
    l.type = DType::f64;
    l.tied = true;
    l.recompute = Recompute::none;
    for (const OptimizerKind kind : {OptimizerKind::lamb, OptimizerKind::sgd}) {
      l.optimizer = kind;
      for (l.zero = 0; l.zero <= (l.shape.data > 1 ? 2 : 0); ++l.zero) all.push_back(l);
    }
    l.llama = l.shape.tensor <= 4;  // its groups
    // LAMB has norms of Q, of K and of V.
    for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::lamb}) {
      l.optimizer = kind;
      for (l.zero = 0; l.llama && l.zero <= (l.shape.data > 1 ? 2 : 0); ++l.zero) all.push_back(l);
    }
    l.optimizer = OptimizerKind::adam;
    l.zero = 0;
    l.qk_norm = true;
    if (l.llama) all.push_back(l);
    l.qk_norm = false;
    l.qkv_bias = true;
    if (l.llama) all.push_back(l);
    l.llama = l.qkv_bias = false;
    l.zero = 0;
    add_fp8(l, gpu, &all);
    add_counting(l, &all);
    if (l.shape.tensor > 1 || ranks > 4) return;
    l.dropout = 0.1;
    all.push_back(l);
  };
  for (int tensor = 1; tensor <= ranks; tensor *= 2)
    for (int pipeline = 1; tensor * pipeline <= ranks; pipeline *= 2) {
      if (ranks % (tensor * pipeline) != 0) continue;
      Layout l;
      if (ranks == 3) l.global_batch = 18;
      l.shape = {tensor, pipeline, ranks / tensor / pipeline};
      for (const bool sequence : {false, true})
        for (const int chunks : {1, 2}) {
          l.sequence = sequence;
          l.chunks = chunks;
          // Without sequence parallelism eight ranks add nothing to four.
          const bool sensible = (!sequence || tensor > 1) && (chunks == 1 || pipeline == 4) &&
                                (ranks < 8 || sequence || tensor == 1);
          if (sensible) add_variants(l);
        }
    }
  return all;
}

double tolerance_of(const Layout& l) {
  // Rows and blocks that processes divide have scales of their own: the smallest numbers are rounded
  // differently, by up to half of the distance between two of E4M3's. Undivided they are the same.
  if (l.fp8 && l.type == DType::f64)
    return l.shape.tensor > 1 && l.fp8 != std::string("tensorwise") ? 0.0625 : 1e-6;
  // The parts of a sum differ by bf16's rounding, and where a gradient lies between two numbers of
  // E5M2, which are up to a quarter apart, it becomes the other one. Emulated on a CPU the same
  // layouts are off by 0.08 to 0.14.
  if (l.fp8) return 0.2;
  return l.type == DType::f64 ? 1e-10 : l.type == DType::f32 ? 1e-5 : 0.1;
}

// `first`: ends with the first that differs. Every rank finds the same.
int check_layouts(Communicator& world, Stream& stream, Rendezvous& meeting, bool gpu, bool first) {
  const Exchange exchange = [&](const std::string& mine) { return meeting.exchange(mine); };
  const Exchange alone = [](const std::string& mine) { return std::vector<std::string>{mine}; };
  const auto single = make_single_communicator();
  std::map<std::string, Outcome> expected;  // of one process
  const Mesh one_mesh(*single, {});
  std::unique_ptr<Mesh> mesh;  // of several layouts: NCCL takes seconds to connect its groups
  int failures = 0, count = 0;
  const auto tell = [&] {
    if (world.rank() != 0) return;
    fmt::print("{} layouts of {} ranks, {} differ\n", count, world.size(), failures);
    std::fflush(stdout);  // so that a test that is cut off shows how far it came
  };
  for (const Layout& layout : layouts_of(world.size(), gpu)) {
    if (!mesh || mesh->shape() != layout.shape) {
      if (mesh) tell();
      mesh = std::make_unique<Mesh>(world, layout.shape);
    }
    Layout one = layout;
    one.shape = {};
    one.sequence = false;
    one.chunks = 1;
    one.zero = 0;
    one.recompute = Recompute::none;
    if (one.counts()) {
      one.micro_batch = one.global_batch;
      one.reference = true;
    }
    const auto [place, made] = expected.try_emplace(one.text());
    if (made) place->second = train(one, stream, one_mesh, alone);
    const Outcome got = train(layout, stream, *mesh, exchange);
    const std::string wrong = difference(got, place->second, tolerance_of(layout));
    ++count;
    if (wrong.empty()) continue;
    ++failures;
    if (world.rank() == 0) fmt::print("{}: {}\n", layout.text(), wrong);
    if (first) break;
  }
  tell();
  return failures;
}

int run(const std::string& backend, const Launch& launch, bool first) {
  const bool gpu = backend == "nccl";
  if (gpu && cuda_device_count() < launch.local_size) {
    if (launch.rank == 0) fmt::print("SKIPPED: {} GPUs\n", cuda_device_count());
    return 77;
  }
  const auto meeting = meet(launch, "layout_ranks");
  const Device device{gpu ? DeviceKind::cuda : DeviceKind::cpu, gpu ? launch.local_rank : 0};
  set_threads(1);
  const auto stream = make_stream(device);
  int failures = 0;
  {
    const auto world = make_communicator(backend, *meeting, device, "");
    failures = check_layouts(*world, *stream, *meeting, gpu, first);
    world->barrier(*stream);
  }
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
    if (options.processes > 1 && !launch.supervised)
      return supervise(options.processes, options, launch, argv);
    return run(backend, launch, argc > 3 && std::strcmp(argv[3], "first") == 0);
  } catch (const std::exception& e) {
    fmt::print(stderr, "layout_ranks: {}\n", e.what());
    return 1;
  }
}
