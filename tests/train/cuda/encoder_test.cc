// BERT and DistilBERT on the GPU, padded and not: loss and gradients against float64 on the CPU.
#include "src/ops/attention/attention.h"
#include "tests/train/cuda/both.h"
#include "tests/train/model/tiny_encoder.h"

namespace tally::train {
namespace {

// Unfused attention computes all pairs of a row's tokens, so models plan scratch for padded rows
// alone, as tally-train feeds them (feed_options()).
bool serves_one_row(const Config& c, const Kind& kind, double dropout) {
  const auto stream = make_stream(Device{DeviceKind::cuda, 0});
  ComputeOptions options;
  options.matmul_mode = kind.mode;
  AttentionShape shape;
  shape.batch = 1;
  shape.tokens = c.micro_batch * c.sequence;
  shape.heads = c.model.heads;
  shape.head_dim = c.model.head_dim();
  shape.mask = AttentionMask::none;
  shape.scale = 1;
  shape.dropout = dropout;
  shape.documents = true;
  shape.most_documents = 2 * c.micro_batch;
  shape.longest = c.sequence;
  return std::string(attention_backend({*stream, options}, shape, kind.type)) != "unfused";
}

struct Gradients {
  double loss = 0;
  std::vector<std::string> names;
  std::vector<std::vector<double>> values;
  std::vector<double> logits;
};

// Odd sizes, or heads of 64, which cuDNN's attention serves in 16-bit types.
Config config_of(const std::string& encoder, Task task, const Kind& kind, bool wide) {
  Config c = tiny_encoder(encoder, task, kind.type);
  if (kind.type == DType::f16) c.precision = Precision::f16;
  if (kind.mode == MatmulMode::tf32) c.precision = Precision::tf32;
  if (kind.mode == MatmulMode::tf32x3) c.precision = Precision::tf32x3;
  if (!wide) return c;
  c.model.hidden = 192;
  c.model.ffn = 768;
  c.model.max_positions = c.sequence = 128;
  c.model.vocabulary = 1000;
  c.model.padded_vocabulary = 1024;
  return c;
}

Gradients run(Config c, DeviceKind device, const Kind& kind, bool padded,
              uint64_t dropout_seed = 0) {
  const auto stream = make_stream(Device{device, 0});
  c.policy.matmul_mode = kind.mode;
  ParameterTable table;
  register_model(c.model, &table);
  table.allocate(*stream, kind.type);
  table.initialize(c.seed);
  perturb(table, *stream);
  const auto model = one_set(make_model(c, table, *stream));
  Gradients r;
  const TinyState state(*stream, 16), unused(*stream);
  // Micro batches of different numbers of tokens, and of masked tokens.
  for (int i = 0; i < 2; ++i) {
    TinyEncoderBatch batch(c, *stream, 100 + static_cast<uint64_t>(i), padded);
    batch.batch.first = i == 0;
    model->forward_backward(batch.batch, 0.5, dropout_seed, state.state);
    if (i == 0) continue;
    model->evaluate(batch.batch, 1, unused.state);
    const Tensor logits = model->stage().logits();
    if (logits.defined()) r.logits = read_doubles(*stream, logits);
    stream->synchronize();
  }
  r.loss = state.read().loss();
  for (const Parameter& p : table.all()) {
    r.names.push_back(p.name);
    r.values.push_back(read_doubles(*stream, table.get(p.name).gradient));
  }
  for (double& v : r.logits) v = std::isinf(v) ? 0 : v;  // beyond the sequence
  return r;
}

// As in gpt_test.cc, but for 16-bit types: a gradient here is of a few rows only.
double tolerance_of(const Kind& kind) {
  if (kind.type == DType::f64) return 1e-10;
  if (kind.mode == MatmulMode::tf32) return 1e-2;
  if (kind.type == DType::f32) return 1e-5;
  return kind.type == DType::bf16 ? 0.15 : 2e-2;
}

double norm_of(const std::vector<double>& values) {
  double squares = 0;
  for (const double v : values) squares += v * v;
  return std::sqrt(squares);
}

// Gradients that are 0 but for rounding (of all logits of an answer alike) are compared with the
// embedding's.
void compare(const Gradients& got, const Gradients& want, double tolerance) {
  CHECK(std::abs(got.loss - want.loss) <= tolerance * std::abs(want.loss));
  REQUIRE(got.names == want.names);
  const double words = norm_of(want.values.front());
  for (size_t i = 0; i < got.names.size(); ++i) {
    const double scale = norm_of(want.values[i]);
    const double error = relative_norm(got.values[i], want.values[i]);
    INFO(got.names[i], ": relative error ", error);
    CHECK((error <= tolerance ||
           (scale <= 1e-12 * words && norm_of(got.values[i]) <= tolerance * words)));
  }
  if (!want.logits.empty()) CHECK(relative_norm(got.logits, want.logits) <= tolerance);
}

struct Case {
  const char* encoder;
  Task task;
  // The rounding of 16 bits and of TF32 decides which of a few units a ReLU lets through.
  bool serves(const Kind& kind) const {
    const bool exact = size_of(kind.type) > 2 && kind.mode != MatmulMode::tf32;
    return exact || std::string(encoder) == "bert" || task == Task::pretraining;
  }
};
constexpr Case cases[] = {{"bert", Task::pretraining},
                          {"bert", Task::classification},
                          {"bert", Task::question_answering},
                          {"distilbert", Task::pretraining},
                          {"distilbert", Task::classification}};

const Kind float64{DType::f64, MatmulMode::ieee, "f64", 1e-12};

TEST_CASE("cuda: encoders' gradients equal float64's on the CPU" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const Case& k : cases) {
      if (!k.serves(kind)) continue;
      for (const bool wide : {false, true}) {
        for (const bool padded : {false, true}) {
          const Config c = config_of(k.encoder, k.task, kind, wide);
          if (!padded && !serves_one_row(c, kind, 0)) continue;
          INFO(std::string(kind.name), " ", std::string(k.encoder), " task ",
               static_cast<int>(k.task), std::string(wide ? " wide" : " odd"),
               std::string(padded ? " padded" : " not padded"));
          compare(run(c, DeviceKind::cuda, kind, padded), run(c, DeviceKind::cpu, float64, padded),
                  tolerance_of(kind));
        }
      }
    }
  }
}

TEST_CASE("cuda: encoders' dropout draws the CPU's masks" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const Case& k : cases) {
      if (!k.serves(kind)) continue;
      Config c = config_of(k.encoder, k.task, kind, false);
      c.model.hidden_dropout = 0.1;
      c.model.attention_dropout = size_of(kind.type) == 2 ? 0 : 0.2;  // cuDNN draws its own
      c.model.classifier_dropout = 0.3;
      INFO(std::string(kind.name), " ", std::string(k.encoder), " task ", static_cast<int>(k.task));
      const bool padded = !serves_one_row(c, kind, c.model.attention_dropout);
      compare(run(c, DeviceKind::cuda, kind, padded, 7),
              run(c, DeviceKind::cpu, float64, padded, 7), tolerance_of(kind));
    }
  }
}

}  // namespace
}  // namespace tally::train
