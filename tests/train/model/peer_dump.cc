// Writes what a Python peer needs to repeat our numbers: weights, batches, losses, gradients.
//   peer_dump gpt f64|f32 learned|rotary tied|own explicit|reference none|selective|full DIR
//   peer_dump llama f64|f32 DIR
//   peer_dump optimizer adam|lamb|sgd f64|f32 gpt|llama|bert DIR
// Every array is a raw little-endian file that DIR/manifest.json names, with its type and shape.
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "src/optim/optimizer.h"
#include "src/optim/schedule.h"
#include "tests/train/model/tiny_encoder.h"

using namespace tally::train;
using nlohmann::json;

namespace {

class Dump {
 public:
  Dump(Stream& stream, std::string directory) : stream_(stream), directory_(std::move(directory)) {}
  void array(const std::string& name, const Tensor& t) {
    std::vector<char> bytes(t.bytes());
    stream_.copy(bytes.data(), t.data, bytes.size());
    stream_.synchronize();
    const std::string file = std::to_string(manifest["arrays"].size()) + ".raw";
    std::ofstream(directory_ + "/" + file, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    manifest["arrays"][name] = {
        {"file", file},
        {"type", dtype_name(t.dtype)},
        {"shape", std::vector<int64_t>(t.shape.begin(), t.shape.begin() + t.rank)}};
  }
  void finish() { std::ofstream(directory_ + "/manifest.json") << manifest.dump(1) << "\n"; }
  json manifest = {{"arrays", json::object()}};

 private:
  Stream& stream_;
  std::string directory_;
};

Config training_config(DType type) {
  Config c = tiny_config(type);
  c.optimizer.lr = 1e-2;
  c.optimizer.min_lr = 1e-3;
  c.optimizer.decay_style = "cosine";
  c.optimizer.warmup_samples = 12;
  c.optimizer.decay_samples = 36;
  c.optimizer.weight_decay = 0.1;
  c.optimizer.clip = 0.5;
  return c;
}

void describe(const Config& c, json& m) {
  m["layers"] = c.model.layers;
  m["heads"] = c.model.heads;
  m["hidden"] = c.model.hidden;
  m["vocabulary"] = c.model.vocabulary;
  m["epsilon"] = c.model.layernorm_epsilon;
  m["rotary_base"] = c.model.rotary_base;
  m["optimizer"] = {{"lr", c.optimizer.lr},
                    {"min_lr", c.optimizer.min_lr},
                    {"warmup", c.optimizer.warmup_samples},
                    {"decay", c.optimizer.decay_samples},
                    {"weight_decay", c.optimizer.weight_decay},
                    {"clip", c.optimizer.clip},
                    {"beta1", c.optimizer.beta1},
                    {"beta2", c.optimizer.beta2},
                    {"momentum", c.optimizer.sgd_momentum},
                    {"epsilon", c.optimizer.epsilon}};
}

// Six steps of two micro batches with training: gradients of the first, losses and norms of all,
// weights at the end.
int dump_gpt(char** a) {
  const DType type = std::string(a[2]) == "f64" ? DType::f64 : DType::f32;
  Config c = training_config(type);
  c.model.positions = std::string(a[3]) == "rotary" ? Positions::rotary : Positions::learned;
  c.model.tied_embeddings = std::string(a[4]) == "tied";
  c.recompute = std::string(a[6]) == "full"        ? Recompute::full
                : std::string(a[6]) == "selective" ? Recompute::selective
                                                   : Recompute::none;
  auto stream = make_stream(Device{});
  ParameterTable table;
  register_model(c.model, &table);
  table.allocate(*stream, type);
  table.initialize(c.seed);
  perturb(table, *stream);
  const auto model =
      one_set(std::string(a[5]) == "reference" ? make_reference_gpt(c, table, *stream)
                                               : make_gpt(c, table, *stream));
  Optimizer optimizer(c, table, *stream);
  Dump dump(*stream, a[7]);
  describe(c, dump.manifest);
  for (const Parameter& p : table.all()) dump.array("weight " + p.name, table.get(p.name).value);
  const int micro_batches = 2;
  for (int step = 0; step < 6; ++step) {
    const int64_t samples = step * micro_batches * c.micro_batch;
    optimizer.begin_step(learning_rate(c.optimizer, samples));
    for (int i = 0; i < micro_batches; ++i) {
      TinyBatch batch(c, *stream, 1000 + static_cast<uint64_t>(step * micro_batches + i));
      const std::string at = std::to_string(step) + " " + std::to_string(i);
      dump.array("ids " + at, batch.batch.ids);
      dump.array("targets " + at, batch.batch.labels[0]);
      model->forward_backward(batch.batch, 1.0 / micro_batches, 0, optimizer.state());
    }
    if (step == 0) {
      for (const Parameter& p : table.all())
        dump.array("gradient " + p.name, table.get(p.name).gradient);
    }
    optimizer.apply();
    const StepState s = optimizer.finish_step();
    dump.manifest["steps"].push_back({{"loss", s.loss()},
                                      {"norm", s.grad_norm},
                                      {"samples", samples},
                                      {"lr", learning_rate(c.optimizer, samples)}});
  }
  for (const Parameter& p : table.all()) dump.array("trained " + p.name, table.get(p.name).value);
  dump.finish();
  return 0;
}

// One micro batch of a small Llama.
int dump_llama(char** a) {
  const DType type = std::string(a[2]) == "f64" ? DType::f64 : DType::f32;
  Config c = training_config(type);
  make_llama(&c.model);
  c.model.tied_embeddings = false;
  c.model.rotary_base = 500;
  auto stream = make_stream(Device{});
  ParameterTable table;
  register_model(c.model, &table);
  table.allocate(*stream, type);
  table.initialize(c.seed);
  perturb(table, *stream);
  const auto model = one_set(make_gpt(c, table, *stream));
  Dump dump(*stream, a[3]);
  describe(c, dump.manifest);
  dump.manifest["groups"] = c.model.kv_heads();
  dump.manifest["head_dim"] = c.model.head_dim();
  dump.manifest["ffn"] = c.model.ffn;
  TinyBatch batch(c, *stream, 1000);
  TinyState state(*stream);
  model->forward_backward(batch.batch, 1, 0, state.state);
  dump.array("ids", batch.batch.ids);
  dump.array("targets", batch.batch.labels[0]);
  for (const Parameter& p : table.all()) {
    dump.array("weight " + p.name, table.get(p.name).value);
    dump.array("gradient " + p.name, table.get(p.name).gradient);
  }
  dump.manifest["loss"] = state.read().loss();
  dump.finish();
  return 0;
}

// The optimizer alone on given gradients, some of them clipped.
int dump_optimizer(char** a) {
  const DType type = std::string(a[3]) == "f64" ? DType::f64 : DType::f32;
  Config c = training_config(type);
  const std::string name = a[2];
  c.optimizer.kind = name == "lamb"  ? OptimizerKind::lamb
                     : name == "sgd" ? OptimizerKind::sgd
                                     : OptimizerKind::adam;
  const std::string model = a[4];
  if (model == "llama") make_llama(&c.model);
  if (model == "bert") c.model = tiny_encoder("bert", Task::pretraining).model;
  auto stream = make_stream(Device{});
  ParameterTable table;
  register_model(c.model, &table);
  table.allocate(*stream, type);
  table.initialize(c.seed);
  perturb(table, *stream);
  Optimizer optimizer(c, table, *stream);
  Dump dump(*stream, a[5]);
  describe(c, dump.manifest);
  dump.manifest["kv_width"] = c.model.kv_heads() * c.model.head_dim();
  for (const Parameter& p : table.all()) dump.array("weight " + p.name, table.get(p.name).value);
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal(0, 1);
  for (int step = 0; step < 10; ++step) {
    // A learning rate that float32 holds exactly, and norms on both sides of the clipping
    // threshold.
    optimizer.begin_step(0x1p-8);
    const float scale = step % 3 == 0 ? 1e-4F : 1e-2F;
    for (const Parameter& p : table.all()) {
      const Tensor g = table.get(p.name).gradient;
      std::vector<float> values(static_cast<size_t>(g.numel()));
      for (float& v : values) v = scale * normal(random);
      convert_elements(Tensor(values.data(), DType::f32, {g.numel()}), g.view({g.numel()}));
      dump.array("gradient " + std::to_string(step) + " " + p.name, g);
    }
    optimizer.apply();
    const StepState s = optimizer.finish_step();
    dump.manifest["steps"].push_back({{"norm", s.grad_norm}, {"lr", 0x1p-8}});
  }
  for (const Parameter& p : table.all()) dump.array("trained " + p.name, table.get(p.name).value);
  dump.finish();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "gpt" && argc == 8) return dump_gpt(argv);
  if (mode == "llama" && argc == 4) return dump_llama(argv);
  if (mode == "optimizer" && argc == 6) return dump_optimizer(argv);
  std::fprintf(stderr, "usage: see the top of peer_dump.cc\n");
  return 2;
}
