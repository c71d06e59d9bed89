// The explicit BERT and DistilBERT against the autograd reference, and without padding against with
// it: loss and every gradient.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/device/stream.h"
#include "src/model/architecture.h"
#include "tests/train/model/tiny_encoder.h"

using namespace tally::train;

namespace {

using Maker = std::unique_ptr<Stage> (*)(const Config&, const ParameterTable&, Stream&);

struct Options {
  bool padded = false;
  uint64_t dropout_seed = 0;
  int micro_batches = 1;
  float loss_scale = 1;
  bool no_labels = false;  // the last micro batch has no masked token
};

struct Result {
  double loss = 0;
  std::vector<std::string> names;
  std::vector<std::vector<double>> gradients;
};

// The gradients hold something else before the first micro batch.
Result run(Maker make, const Config& c, DType type, const Options& o) {
  auto stream = make_stream(Device{});
  ParameterTable table;
  register_model(c.model, &table);
  table.allocate(*stream, type);
  table.initialize(c.seed);
  perturb(table, *stream);
  std::memset(table.gradients().data, 0x7f, table.gradients().bytes());
  auto model = one_set(make(c, table, *stream));
  TinyState state(*stream, o.loss_scale);
  for (int i = 0; i < o.micro_batches; ++i) {
    TinyEncoderBatch batch(c, *stream, 100 + static_cast<uint64_t>(i), o.padded);
    batch.batch.first = i == 0;
    if (o.no_labels && i + 1 == o.micro_batches) {
      batch.batch.rows = batch.batch.rows.rows(0, 0);
      batch.batch.labels[0] = batch.batch.labels[0].rows(0, 0);
      batch.batch.counted[0] = 0;
    }
    const uint64_t seed = o.dropout_seed ? o.dropout_seed + static_cast<uint64_t>(i) : 0;
    model->forward_backward(batch.batch, 1.0 / o.micro_batches, seed, state.state);
  }
  Result r;
  r.loss = state.read().loss();
  for (const Parameter& p : table.all()) {
    r.names.push_back(p.name);
    r.gradients.push_back(read_doubles(*stream, table.get(p.name).gradient));
  }
  return r;
}

double norm_of(const std::vector<double>& values) {
  double squares = 0;
  for (const double v : values) squares += v * v;
  return std::sqrt(squares);
}

// The gradients of these are 0 but for rounding: the same number added to all logits of a sequence
// changes no softmax over it. Dropout before the logits makes it different numbers.
bool is_nothing(const std::string& name, const Config& c) {
  if (c.model.task != Task::question_answering) return false;
  const std::vector<WeightSpec> weights = weights_of(c.model, whole_model(c.model));
  return std::any_of(weights.begin(), weights.end(), [&](const WeightSpec& w) {
    const bool last = w.id == WeightId{Role::in_norm, c.model.layers};
    return w.name == name && w.bias &&
           (w.id.role == Role::answers || (last && c.model.head_dropout().value_or(0) == 0));
  });
}

void compare(const Config& c, const Result& a, const Result& b, double tolerance) {
  CHECK(std::abs(a.loss - b.loss) <= tolerance * std::abs(b.loss));
  REQUIRE(a.names == b.names);
  const double word_norm = norm_of(b.gradients.front());
  for (size_t i = 0; i < a.names.size(); ++i) {
    INFO(a.names[i]);
    if (is_nothing(a.names[i], c)) {
      CHECK(norm_of(a.gradients[i]) <= tolerance * word_norm);
    } else {
      CHECK(relative_norm(a.gradients[i], b.gradients[i]) <= tolerance);
    }
  }
}

void against_reference(const Config& c, DType type, const Options& o) {
  compare(c, run(make_model, c, type, o), run(make_reference, c, type, o),
          type == DType::f64   ? 1e-10
          : type == DType::f32 ? 1e-5
                               : 4e-2);
}

struct Case {
  const char* kind;
  Task task;
};
constexpr Case cases[] = {
    {"bert", Task::pretraining},          {"bert", Task::classification},
    {"bert", Task::question_answering},   {"distilbert", Task::pretraining},
    {"distilbert", Task::classification}, {"distilbert", Task::question_answering}};

}  // namespace

TEST_CASE("encoders equal the autograd reference: loss and every gradient") {
  for (const Case& k : cases) {
    for (const bool padded : {false, true}) {
      CAPTURE(k.kind);
      CAPTURE(static_cast<int>(k.task));
      CAPTURE(padded);
      for (const DType type : {DType::f64, DType::f32, DType::bf16})
        against_reference(tiny_encoder(k.kind, k.task, type), type, {padded});
      Config c = tiny_encoder(k.kind, k.task);
      against_reference(c, DType::f64, {padded, 0, 3, 256});
      c.model.hidden_dropout = 0.1;
      c.model.attention_dropout = 0.2;
      c.model.classifier_dropout = 0.3;
      for (const Recompute r : {Recompute::none, Recompute::selective, Recompute::full}) {
        c.recompute = r;
        against_reference(c, DType::f64, {padded, 77, 2});
      }
    }
  }
}

TEST_CASE("a micro batch without padding equals the padded one") {
  for (const Case& k : cases) {
    CAPTURE(k.kind);
    const Config c = tiny_encoder(k.kind, k.task);
    compare(c, run(make_model, c, DType::f64, {false, 0, 2}),
            run(make_model, c, DType::f64, {true, 0, 2}), 1e-12);
  }
}

TEST_CASE("BERT without the next sentence, with GELU's tanh form, without fusions") {
  Config c = tiny_encoder("bert", Task::pretraining);
  SUBCASE("without the next sentence") {
    c.model.next_sentence = false;
  }
  SUBCASE("GELU's tanh form") {
    c.model.block.mlp = MlpActivation::gelu_tanh;
  }
  SUBCASE("without fusions") {
    c.policy.fusions = no_fusions();
  }
  SUBCASE("one block") {
    c.model.layers = 1;
  }
  against_reference(c, DType::f64, {});
}

TEST_CASE("a micro batch may have no masked token") {
  const Config c = tiny_encoder("bert", Task::pretraining);
  against_reference(c, DType::f64, {false, 0, 2, 1, true});
  against_reference(c, DType::f64, {false, 0, 1, 1, true});  // the step's only one
}

TEST_CASE("encoders: evaluation leaves the heads' logits, and allocates nothing") {
  for (const Case& k : cases) {
    CAPTURE(k.kind);
    CAPTURE(static_cast<int>(k.task));
    for (const bool padded : {false, true}) {
      Config c = tiny_encoder(k.kind, k.task);
      c.model.hidden_dropout = 0.5;
      auto stream = make_stream(Device{});
      ParameterTable table;
      register_model(c.model, &table);
      table.allocate(*stream, DType::f64);
      table.initialize(1);
      TinyEncoderBatch batch(c, *stream, 1, padded);
      double loss[2];
      std::vector<double> found[2];
      int i = 0;
      for (const Maker make :
           {static_cast<Maker>(make_model), static_cast<Maker>(make_reference)}) {
        TinyState state(*stream);
        auto model = one_set(make(c, table, *stream));
        const int64_t before = stream->allocations();
        model->evaluate(batch.batch, 0.25, state.state);
        CHECK(stream->allocations() == before);
        loss[i] = state.read().loss();
        const Tensor logits = model->stage().logits();
        CHECK(logits.defined() == (k.task != Task::pretraining));
        if (logits.defined()) found[i] = read_doubles(*stream, logits);
        ++i;
      }
      CHECK(std::abs(loss[0] - loss[1]) < 1e-12 * loss[1]);
      if (k.task == Task::classification) CHECK(found[0].size() == 4 * 3);
      if (k.task == Task::question_answering) CHECK(found[0].size() == 2 * 4 * 19);
      REQUIRE(found[0].size() == found[1].size());
      // -infinity beyond a sequence equals itself.
      for (size_t n = 0; n < found[0].size(); ++n)
        CHECK((found[0][n] == found[1][n] || std::abs(found[0][n] - found[1][n]) < 1e-12));
    }
  }
}

TEST_CASE("batches that an encoder was not planned for are refused") {
  const Config c = tiny_encoder("bert", Task::classification);
  auto stream = make_stream(Device{});
  ParameterTable table;
  register_model(c.model, &table);
  table.allocate(*stream, DType::f64);
  auto model = one_set(make_model(c, table, *stream));
  TinyState state(*stream);
  const auto refused = [&](const Batch& batch) {
    CHECK_THROWS_AS(model->evaluate(batch, 1, state.state), std::invalid_argument);
  };
  Config longer = c;
  longer.sequence = 36;
  refused(TinyEncoderBatch(longer, *stream, 1, true).batch);
  const TinyEncoderBatch good(c, *stream, 1, true);
  Batch batch = good.batch;
  batch.token_types = Tensor();
  refused(batch);
  batch = good.batch;
  batch.labels[0] = batch.labels[0].rows(0, 3);
  refused(batch);
  Config answers = c;
  answers.model.task = Task::question_answering;
  answers.sequence = c.model.max_positions + 1;
  CHECK_THROWS_AS(make_model(answers, table, *stream), std::invalid_argument);
}
