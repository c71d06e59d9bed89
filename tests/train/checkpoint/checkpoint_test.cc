// Saving and resuming: bit for bit, whole or not at all; GPT-2's layout in Hugging Face's files.
#include "src/checkpoint/checkpoint.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "src/checkpoint/model_config_file.h"
#include "src/device/convert.h"
#include "src/model/stage.h"
#include "tests/train/data/temp_dir.h"

using namespace tally::train;

namespace {

ModelConfig small_config() {
  ModelConfig config;
  config.layers = 2;
  config.hidden = 8;
  config.heads = 2;
  config.ffn = 24;
  config.max_positions = 6;
  config.vocabulary = 11;
  config.padded_vocabulary = 16;
  return config;
}

// A small model on the CPU, every number of its buffers drawn at random.
struct Run {
  explicit Run(DType compute, uint64_t seed, const ModelConfig& model = small_config(),
               bool with_optimizer = true)
      : config(model), stream(make_stream(Device{})) {
    register_model(config, &table);
    table.allocate(*stream, compute);
    if (with_optimizer)
      optimizer = std::make_unique<OptimizerState>(table, *stream, OptimizerKind::adam);
    table.initialize(seed, buffers().master);
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    for (const Tensor& flat : {buffers().master, buffers().first_moment, buffers().second_moment}) {
      if (!flat.defined()) continue;
      for (const Parameter& parameter : table.all()) {
        const Tensor range = parameter_range(flat, parameter);
        for (int64_t i = 0; i < range.numel(); ++i) {
          if (flat.dtype == DType::f64) {
            range.as<double>()[i] = normal(random);
          } else {
            range.as<float>()[i] = static_cast<float>(normal(random));
          }
        }
      }
    }
    if (buffers().master.defined() && buffers().master.data != table.weights().data) {
      convert_elements(buffers().master, table.weights());
    }
  }
  OptimizerBuffers buffers() const { return optimizer ? optimizer->buffers() : OptimizerBuffers(); }
  ParameterState state() const { return ParameterState(table, buffers()); }
  Tensor range(const Tensor& flat, const std::string& name) const {
    for (const Parameter& p : table.all())
      if (p.name == name) return parameter_range(flat, p);
    throw std::out_of_range(name);
  }
  std::string bytes(const Tensor& flat) const {
    return flat.defined() ? std::string(flat.as<char>(), flat.bytes()) : "";
  }
  std::string all_bytes() const {
    return bytes(table.weights()) + bytes(buffers().master) + bytes(buffers().first_moment) +
           bytes(buffers().second_moment);
  }

  ModelConfig config;
  std::unique_ptr<Stream> stream;
  ParameterTable table;
  std::unique_ptr<OptimizerState> optimizer;
};

TrainingState some_state(int64_t iteration) {
  TrainingState state;
  state.iteration = iteration;
  state.consumed_samples = iteration * 512;
  state.scheduled_samples = (iteration - 1) * 512;
  state.optimizer_steps = iteration - 1;
  state.skipped_iterations = 1;
  state.loss_scale = 0.1 + 1e-17;
  state.loss_scale_good_steps = 77;
  state.loss_scale_hysteresis = 2;
  state.seed = 0xFFFFFFFFFFFFFFFFULL;
  state.sequence = 1024;
  state.config_json = "{\"lr\":0.1}";
  return state;
}

}  // namespace

TEST_CASE("weights that are not numbers are refused where they are read") {
  const double huge = 1e30;
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    CAPTURE(static_cast<int>(type));
    for (const double value : {std::nan(""), -HUGE_VAL, huge}) {
      CAPTURE(value);
      for (const char* name : {"wte.weight", "h.1.mlp.c_fc.weight", "ln_f.bias"}) {
        const TempDir dir;
        Run saved(DType::f32, 1);
        const Tensor weights = saved.range(saved.table.weights(), name);
        weights.as<float>()[5] = static_cast<float>(value);
        save_model_weights(dir / "model.safetensors", saved.state(), *saved.stream);
        Run other(type, 2);
        const std::string why = error_of([&] {
          load_model_weights(dir / "model.safetensors", other.config, other.state(), *other.stream);
        });
        CAPTURE(why);
        if (value == huge) {  // f16 alone does not have it
          CHECK((why.find("beyond the range of F16") != std::string::npos) == (type == DType::f16));
          CHECK(why.empty() == (type != DType::f16));
        } else {
          CHECK(why.find("is NaN or infinite") != std::string::npos);
        }
        if (!why.empty()) CHECK(why.find(name) != std::string::npos);
      }
    }
  }
  // The same of master weights.
  const TempDir dir;
  Run saved(DType::bf16, 1);
  saved.range(saved.buffers().master, "h.0.ln_2.bias").as<float>()[7] = NAN;
  save_checkpoint(dir / "ckpt", some_state(10), saved.config, saved.state(), *saved.stream);
  Run resumed(DType::bf16, 2);
  CHECK(error_of([&] {
          load_checkpoint(dir / "ckpt", resumed.config, resumed.state(), *resumed.stream);
        }).find("'master.h.0.ln_2.bias' has one that is NaN or infinite") != std::string::npos);
}

TEST_CASE("the first number that is not finite, in data that is not aligned") {
  std::vector<char> bytes(1 + sizeof(double) * 200'000);
  const auto first = [&](DType type, int64_t count) {
    return first_not_finite(bytes.data() + 1, type, count);
  };
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    CAPTURE(static_cast<int>(type));
    const int64_t count = 200'000;
    std::fill(bytes.begin(), bytes.end(), 0);
    CHECK_FALSE(first(type, 0).has_value());
    CHECK_FALSE(first(type, count).has_value());
    for (const int64_t at : {count - 1, int64_t{131'072}, int64_t{65'535}, int64_t{0}}) {
      const double nan = NAN;
      std::vector<char> value(size_of(type));
      convert_elements(Tensor(const_cast<double*>(&nan), DType::f64, {1}),
                       Tensor(value.data(), type, {1}));
      std::copy(value.begin(), value.end(),
                bytes.begin() + 1 + at * static_cast<int64_t>(value.size()));
      CHECK(first(type, count) == at);
      CHECK_FALSE(first(type, at).has_value());
    }
  }
}

TEST_CASE("a resumed run has every bit of the saved one") {
  for (const DType compute : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    CAPTURE(static_cast<int>(compute));
    const TempDir dir;
    Run saved(compute, 1);
    const std::string place =
        save_checkpoint(dir / "ckpt", some_state(10), saved.config, saved.state(), *saved.stream);
    CHECK(place == dir / "ckpt/iter_0000010");
    CHECK(dir.read("ckpt/latest_checkpointed_iteration.txt") == "10\n");
    Run resumed(compute, 2);
    REQUIRE(resumed.all_bytes() != saved.all_bytes());
    const auto state =
        load_checkpoint(dir / "ckpt", resumed.config, resumed.state(), *resumed.stream);
    REQUIRE(state.has_value());
    CHECK((resumed.all_bytes() == saved.all_bytes()));
    CHECK(state->iteration == 10);
    CHECK(state->consumed_samples == 5120);
    CHECK(state->scheduled_samples == 4608);
    CHECK(state->optimizer_steps == 9);
    CHECK(state->skipped_iterations == 1);
    CHECK(state->loss_scale == some_state(10).loss_scale);
    CHECK(state->loss_scale_good_steps == 77);
    CHECK(state->loss_scale_hysteresis == 2);
    CHECK(state->seed == 0xFFFFFFFFFFFFFFFFULL);
    CHECK(state->sequence == 1024);
    CHECK(state->config_json == "{\"lr\":0.1}");
  }
}

TEST_CASE("the model file is GPT-2's: names, transposed linear layers, no padding") {
  const TempDir dir;
  Run run(DType::f32, 1);
  save_model_weights(dir / "m", run.state(), *run.stream);
  const SafetensorsFile file(dir / "m");
  CHECK(file.tensors().size() == 2 + 2 * 12 + 2);
  CHECK(file.tensors().at("transformer.wte.weight").shape == std::vector<int64_t>{11, 8});
  CHECK(file.tensors().at("transformer.wpe.weight").shape == std::vector<int64_t>{6, 8});
  const StoredTensor& stored = file.tensors().at("transformer.h.1.mlp.c_fc.weight");
  REQUIRE(stored.shape == std::vector<int64_t>{8, 24});            // [in, out]
  const Tensor ours = run.table.get("h.1.mlp.c_fc.weight").value;  // [out, in]
  for (int64_t in = 0; in < 8; ++in) {
    for (int64_t out = 0; out < 24; ++out) {
      float value = 0;
      std::memcpy(&value, stored.data + (in * 24 + out) * 4, 4);
      CHECK(value == ours.as<float>()[out * 8 + in]);
    }
  }
  CHECK(file.tensors().count("lm_head.weight") == 0);

  ModelConfig untied = small_config();
  untied.tied_embeddings = false;
  Run two(DType::bf16, 1, untied);
  save_model_weights(dir / "n", two.state(), *two.stream);
  const SafetensorsFile other(dir / "n");
  CHECK(other.tensors().at("lm_head.weight").shape == std::vector<int64_t>{11, 8});
  CHECK(other.tensors().at("lm_head.weight").dtype == "BF16");
}

TEST_CASE("weights are read with and without prefix; masks and a tied head are ignored") {
  const TempDir dir;
  Run saved(DType::f32, 1);
  save_model_weights(dir / "m", saved.state(), *saved.stream);
  // The same tensors as the hub's gpt2 has them.
  const SafetensorsFile file(dir / "m");
  std::vector<TensorSource> plain;
  const auto add = [&](const std::string& name, const StoredTensor& tensor) {
    plain.push_back({name, DType::f32, tensor.shape,
                     [&tensor](char* out) { std::memcpy(out, tensor.data, tensor.bytes); }});
  };
  for (const auto& [name, tensor] : file.tensors())
    add(name.substr(std::strlen("transformer.")), tensor);
  add("h.0.attn.bias", file.tensors().at("transformer.ln_f.bias"));
  add("transformer.h.0.attn.masked_bias", file.tensors().at("transformer.ln_f.bias"));
  add("lm_head.weight", file.tensors().at("transformer.wte.weight"));
  write_safetensors(dir / "plain.safetensors", plain);
  for (const DType compute : {DType::f32, DType::bf16, DType::f64}) {
    Run loaded(compute, 2);
    load_model_weights(dir / "plain.safetensors", loaded.config, loaded.state(), *loaded.stream);
    for (const Parameter& parameter : saved.table.all()) {
      const Tensor from = saved.table.get(parameter.name).value;
      const Tensor to = loaded.table.get(parameter.name).value;
      const Tensor wide = parameter_range(loaded.buffers().master, parameter);
      std::vector<char> expected(to.bytes()), expected_wide(wide.bytes());
      convert_elements(from, Tensor(expected.data(), to.dtype, {to.numel()}));
      convert_elements(from, Tensor(expected_wide.data(), wide.dtype, {wide.numel()}));
      const int64_t rows = parameter.name == "wte.weight" ? 11 : to.dim(0);
      const size_t used = to.bytes() / static_cast<size_t>(to.dim(0)) * static_cast<size_t>(rows);
      const size_t used_wide =
          wide.bytes() / static_cast<size_t>(wide.dim(0)) * static_cast<size_t>(rows);
      CHECK(std::memcmp(expected.data(), to.data, used) == 0);
      CHECK(std::memcmp(expected_wide.data(), wide.data, used_wide) == 0);
      CHECK(std::count(to.as<char>() + used, to.as<char>() + to.bytes(), 0) ==
            static_cast<std::ptrdiff_t>(to.bytes() - used));
    }
  }
}

TEST_CASE("weights that do not fit are refused by name, and nothing is changed") {
  const TempDir dir;
  Run saved(DType::f32, 1);
  save_model_weights(dir / "m", saved.state(), *saved.stream);
  const auto fault = [&](ModelConfig config) {
    Run run(DType::f32, 2, config);
    const std::string before = run.all_bytes();
    const std::string error =
        error_of([&] { load_model_weights(dir / "m", config, run.state(), *run.stream); });
    CHECK((run.all_bytes() == before));
    return error;
  };
  ModelConfig config = small_config();
  config.layers = 3;
  CHECK(fault(config).find("'h.2.attn.c_attn.weight' is missing") != std::string::npos);
  config.layers = 1;
  CHECK(fault(config).find("'transformer.h.1.attn.c_attn.bias' does not belong to it") !=
        std::string::npos);
  config = small_config();
  config.vocabulary = 12;
  CHECK(
      fault(config).find("'transformer.wte.weight' has the shape [11, 8], and [12, 8] is needed") !=
      std::string::npos);
  config = small_config();
  config.max_positions = 7;
  CHECK(fault(config).find("'transformer.wpe.weight' has the shape [6, 8]") != std::string::npos);
}

TEST_CASE("loading: no checkpoint, another model, another precision, damage") {
  const TempDir dir;
  Run run(DType::bf16, 1);
  CHECK(!load_checkpoint(dir / "none", run.config, run.state(), *run.stream).has_value());
  save_checkpoint(dir / "c", some_state(3), run.config, run.state(), *run.stream);
  const auto fault = [&](Run* into) {
    const std::string before = into->all_bytes();
    const std::string error =
        error_of([&] { load_checkpoint(dir / "c", into->config, into->state(), *into->stream); });
    CHECK((into->all_bytes() == before));
    return error;
  };
  ModelConfig wide = small_config();
  wide.ffn = 32;
  Run other(DType::bf16, 1, wide);
  CHECK(fault(&other).find("resume with the model and precision that it was saved with") !=
        std::string::npos);
  Run f64(DType::f64, 1);
  CHECK(fault(&f64).find("F32 [") != std::string::npos);
  // bf16 and f16 both keep f32 master weights: one resumes from the other.
  Run f16(DType::f16, 5);
  REQUIRE(load_checkpoint(dir / "c", f16.config, f16.state(), *f16.stream).has_value());
  CHECK((f16.bytes(f16.buffers().master) == run.bytes(run.buffers().master)));
  std::string rounded(f16.table.weights().bytes(), '\0');
  convert_elements(run.buffers().master,
                   Tensor(rounded.data(), DType::f16, {f16.table.elements()}));
  CHECK((f16.bytes(f16.table.weights()) == rounded));

  Run evaluation(DType::bf16, 9, small_config(), false);
  CHECK(load_checkpoint(dir / "c", evaluation.config, evaluation.state(), *evaluation.stream)
            ->iteration == 3);
  CHECK((evaluation.bytes(parameter_range(evaluation.table.weights(),
                                          evaluation.table.find("h.0.mlp.c_fc.weight"))) ==
         run.bytes(parameter_range(run.table.weights(), run.table.find("h.0.mlp.c_fc.weight")))));

  Run again(DType::bf16, 2);
  std::string optimizer = dir.read("c/iter_0000003/optimizer.safetensors");
  optimizer.resize(optimizer.size() - 100);
  dir.write("c/iter_0000003/optimizer.safetensors", optimizer);
  CHECK(fault(&again).find("the file is cut short") != std::string::npos);
  dir.write("c/iter_0000003/state.json", "{\"format\":1}");
  CHECK(fault(&again).find("state.json' is damaged: it has 12 bytes") != std::string::npos);
  // Without checksums, as version 0.2.0 saved.
  std::filesystem::remove(dir / "c/iter_0000003/manifest.json");
  CHECK(fault(&again).find("state.json' is damaged: ") != std::string::npos);
  dir.write("c/iter_0000003/state.json", "{\"format\":2}");
  CHECK(fault(&again).find("has format 2 of another version") != std::string::npos);
  // Nobody writes to a FIFO: it is refused, and not waited for.
  for (const char* name : {"c/iter_0000003/state.json", "c/latest_checkpointed_iteration.txt"}) {
    std::filesystem::remove(dir / name);
    REQUIRE(mkfifo((dir / name).c_str(), 0600) == 0);
    CHECK(fault(&again).find("cannot be read: it is not a regular file") != std::string::npos);
    std::filesystem::remove(dir / name);
  }
  dir.write("c/iter_0000003/state.json", "{\"format\":2}");
  dir.write("c/latest_checkpointed_iteration.txt", "x");
  CHECK(fault(&again).find("does not hold the number of an iteration") != std::string::npos);
  dir.write("c/latest_checkpointed_iteration.txt", "4");
  CHECK(fault(&again).find("names iteration 4, and '") != std::string::npos);
}

TEST_CASE(
    "tokenizer files are saved next to the weights; the same iteration is saved over itself") {
  const TempDir dir;
  Run run(DType::f32, 1);
  SideFiles side;
  side.files["vocab.json"] = "{}";
  save_checkpoint(dir / "c", some_state(3), run.config, run.state(), *run.stream, side);
  CHECK(dir.read("c/iter_0000003/vocab.json") == "{}");
  Run later(DType::f32, 2);
  save_checkpoint(dir / "c", some_state(3), later.config, later.state(), *later.stream);
  Run loaded(DType::f32, 3);
  load_checkpoint(dir / "c", loaded.config, loaded.state(), *loaded.stream);
  CHECK((loaded.all_bytes() == later.all_bytes()));
  int entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir / "c"))
    entries += entry.exists();
  CHECK(entries == 2);
  CHECK(error_of([&] {
          save_checkpoint("/proc/none/c", some_state(1), run.config, run.state(), *run.stream);
        }).find("the checkpoint under '/proc/none/c' cannot be written") == 0);
  // A write that fails leaves nothing behind.
  side.files["none/x"] = "";
  CHECK_FALSE(error_of([&] {
                save_checkpoint(dir / "c", some_state(4), run.config, run.state(), *run.stream,
                                side);
              }).empty());
  entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir / "c"))
    entries += entry.exists();
  CHECK(entries == 2);
}

// A stream that kills its process at the n-th copy: every save makes the same copies in the same
// order.
namespace {
class DeadlyStream : public Stream {
 public:
  explicit DeadlyStream(int copies) : left_(copies) {}
  Device device() const override { return {}; }
  void* native() const override { return nullptr; }
  void synchronize() override {}
  void copy(void* to, const void* from, size_t bytes) override {
    if (--left_ == 0) kill(getpid(), SIGKILL);
    std::memcpy(to, from, bytes);
  }
  void fill_zero(void* data, size_t bytes) override { std::memset(data, 0, bytes); }
  void* allocate(size_t, const char*) override { return nullptr; }
  void release(void*) override {}
  int64_t allocations() const override { return 0; }
  size_t bytes_allocated() const override { return 0; }
  size_t bytes_peak() const override { return 0; }

 private:
  int left_;
};
}  // namespace

TEST_CASE("a save that is killed never harms the last good checkpoint") {
  const TempDir dir;
  Run good(DType::bf16, 1);
  Run next(DType::bf16, 2);
  save_checkpoint(dir / "c", some_state(5), good.config, good.state(), *good.stream);
  for (const int copies : {1, 5, 29, 60, 110}) {
    for (const int64_t iteration : {int64_t{6}, int64_t{5}}) {
      const pid_t child = fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        DeadlyStream stream(copies);
        save_checkpoint(dir / "c", some_state(iteration), next.config, next.state(), stream);
        _exit(0);
      }
      int status = 0;
      waitpid(child, &status, 0);
      REQUIRE(WIFSIGNALED(status));
      Run loaded(DType::bf16, 3);
      CHECK(load_checkpoint(dir / "c", loaded.config, loaded.state(), *loaded.stream)->iteration ==
            5);
      CHECK((loaded.all_bytes() == good.all_bytes()));
    }
  }
  // Killed between the two renames of a save over itself: the old one waits under another name.
  std::filesystem::rename(dir / "c/iter_0000005", dir / "c/.iter_0000005.old");
  Run loaded(DType::bf16, 3);
  CHECK(load_checkpoint(dir / "c", loaded.config, loaded.state(), *loaded.stream)->iteration == 5);
  std::filesystem::rename(dir / "c/.iter_0000005.old", dir / "c/iter_0000005");
  save_checkpoint(dir / "c", some_state(6), next.config, next.state(), *next.stream);
  CHECK(load_checkpoint(dir / "c", loaded.config, loaded.state(), *loaded.stream)->iteration == 6);
  for (const auto& entry : std::filesystem::directory_iterator(dir / "c")) {
    CHECK(entry.path().filename().string()[0] != '.');  // leftovers are gone
  }
}

TEST_CASE("config.json: what is written is read; transformers' own for gpt2 is read") {
  const TempDir dir;
  ModelConfig config = small_config();
  config.layernorm_epsilon = 3e-6;
  config.hidden_dropout = 0.25;
  config.tied_embeddings = false;
  for (const Positions positions : {Positions::learned, Positions::rotary}) {
    config.positions = positions;
    config.rotary_fraction = positions == Positions::rotary ? 0.5 : 1.0;
    dir.write("config.json", model_config_json(config, DType::bf16));
    const ModelConfig read = read_model_config(dir / "", {}, 8);
    CHECK(read.layers == 2);
    CHECK(read.hidden == 8);
    CHECK(read.heads == 2);
    CHECK(read.ffn == 24);
    CHECK(read.max_positions == 6);
    CHECK(read.vocabulary == 11);
    CHECK(read.padded_vocabulary == 16);
    CHECK(read.layernorm_epsilon == 3e-6);
    CHECK(read.hidden_dropout == 0.25);
    CHECK(read.attention_dropout == 0.1);
    CHECK(!read.tied_embeddings);
    CHECK(read.positions == positions);
    CHECK(read.rotary_fraction == config.rotary_fraction);
  }
  // The fields of the hub's gpt2 that matter here.
  const std::string hub =
      R"({"activation_function":"gelu_new","architectures":["GPT2LMHeadModel"],"attn_pdrop":0.1,
    "embd_pdrop":0.1,"layer_norm_epsilon":1e-05,"model_type":"gpt2","n_ctx":1024,"n_embd":768,"n_head":12,"n_layer":12,
    "n_inner":null,"n_positions":1024,"resid_pdrop":0.1,"vocab_size":50257})";
  const ModelConfig gpt2 = read_model_config(dir.write("hub.json", hub));
  CHECK(gpt2.ffn == 3072);
  CHECK(gpt2.padded_vocabulary == 50304);
  CHECK(gpt2.tied_embeddings);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = hub;
    text.replace(text.find(from), from.size(), to);
    return dir.write("bad.json", text);
  };
  for (const MlpActivationEntry& entry : mlp_activations) {
    if (entry.gated) continue;
    for (const std::string name : {entry.name, entry.synonym})
      CHECK(read_model_config(changed("gelu_new", name)).block.mlp == entry.kind);
  }
  const auto fault = [&](const std::string& from, const std::string& to) {
    return error_of([&] { read_model_config(changed(from, to)); });
  };
  CHECK(fault("\"gpt2\"", "\"bloom\"").find("type \"bloom\", and only gpt2,") != std::string::npos);
  CHECK(fault("gelu_new", "relu").find("activation \"relu\"") != std::string::npos);
  CHECK(fault("\"n_layer\":12", "\"n_layer\":0").find("no positive \"n_layer\"") !=
        std::string::npos);
  CHECK(fault("\"n_layer\":12", "\"n_layer\":\"x\"").find("which is not a whole number") !=
        std::string::npos);
  CHECK(fault("\"n_layer\":12", "\"n_layer\":2.7")
            .find("2.7 for \"n_layer\", which is not a whole") != std::string::npos);
  CHECK(fault("1e-05", "\"x\"").find("not of the expected kind") != std::string::npos);
  CHECK(fault("1e-05", "-1e-05").find("which is not positive") != std::string::npos);
  for (const char* wrong : {"1.5", "-1", "1.0"})
    CHECK(fault("\"attn_pdrop\":0.1", std::string("\"attn_pdrop\":") + wrong)
              .find("which is not in [0, 1)") != std::string::npos);
  CHECK(fault("\"n_head\":12", "\"n_head\":11").find("11 heads do not divide") !=
        std::string::npos);
  // transformers reads these names, too.
  CHECK(fault("\"n_inner\":null", "\"num_hidden_layers\":6")
            .find("has 12 for \"n_layer\" and 6 for \"num_hidden_layers\"") != std::string::npos);
  CHECK(fault("\"n_layer\":12", "\"num_hidden_layers\":12").empty());
  CHECK(fault("\"embd_pdrop\":0.1", "\"embd_pdrop\":0.0").find("one hidden dropout") !=
        std::string::npos);
  // An evaluation has none.
  CHECK(read_model_config(dir / "bad.json", {}, 128, false).hidden_dropout == 0.1);
  CHECK(fault("\"n_inner\":null", "\"scale_attn_by_inverse_layer_idx\":true")
            .find("which is not supported") != std::string::npos);
  CHECK(fault("{", "[").find("is not valid JSON") != std::string::npos);
  CHECK(error_of([&] { read_model_config(dir / "none.json"); }).find("cannot be read") !=
        std::string::npos);
}
