// Memory of a layout against published formulas and figures.
#include "src/plan/stage_count.h"

#include <doctest/doctest.h>

#include <ctime>

#include "src/model/architecture.h"
#include "src/plan/megatron.h"
#include "src/plan/plan.h"
#include "tests/train/plan/plans.h"

using namespace tally::train;
using doctest::Approx;

namespace {

constexpr double giga = 1e9;
const CountedDevice gpu{true};

StageMemory first_stage(const std::string& flags) {
  return stage_memory(parse(flags), 0, gpu);
}

double states_of_a_parameter(const StageMemory& s) {
  return s.states() / s.parameters;
}

}  // namespace

// About (12 h^2 + 13 h) L / (p t) + V h / t.
TEST_CASE("parameters of stage 0: 1.70 and 2.80 billion for the layouts of the JUPITER benchmark") {
  CHECK(first_stage(jupiter_13b).parameters == Approx(1.70 * giga).epsilon(0.003));
  CHECK(first_stage(jupiter_175b).parameters == Approx(2.80 * giga).epsilon(0.003));
}

TEST_CASE("one stage has the parameters of the model, several have a copy of the embedding more") {
  const std::string model = "--plan --model 124M ";
  const Config one = parse(model);
  CHECK(first_stage(model).parameters == static_cast<double>(parameter_count(one.model)));
  const Config four = parse(model + "--pipeline-model-parallel-size 4 ");
  double sum = 0;
  for (const StageMemory& s : all_stages(four, gpu)) sum += s.parameters;
  const auto embedding = static_cast<double>(one.model.padded_vocabulary * one.model.hidden);
  CHECK(sum == static_cast<double>(parameter_count(one.model)) + embedding);
  const std::string untied = model + "--untie-embeddings-and-output-weights ";
  sum = 0;
  for (const StageMemory& s : all_stages(parse(untied + "--pipeline-model-parallel-size 2"), gpu))
    sum += s.parameters;
  CHECK(sum == static_cast<double>(parameter_count(parse(untied).model)));
}

TEST_CASE("Llama: the plan's parameters and states") {
  const std::string model = "--plan --model llama-1b --bf16 ";
  const Config one = parse(model);
  CHECK(first_stage(model).parameters == static_cast<double>(parameter_count(one.model)));
  CHECK(states_of_a_parameter(first_stage(model)) == Approx(18).epsilon(1e-3));
  CHECK(states_of_a_parameter(first_stage(model + "--optimizer sgd")) == Approx(14).epsilon(1e-3));
  CHECK(states_of_a_parameter(first_stage(model + "--optimizer lamb")) == Approx(18).epsilon(1e-3));
  // Two tensor parallel ranks have half of everything but the norms.
  const StageMemory half = first_stage(model +
                                       "--tensor-model-parallel-size 2 "
                                       "--make-vocab-size-divisible-by 64");
  const double norms = 33.0 * 2048;
  CHECK(2 * half.parameters == static_cast<double>(parameter_count(one.model)) + norms);
}

// Shoeybi et al. 2019, section 3: norms, positions and the biases of row-parallel layers are whole
// on every rank.
TEST_CASE("two tensor parallel ranks have the model's parameters, and twice what is not divided") {
  const std::string model = "--plan --model 124M --ffn-hidden-size 1000 ";
  const ModelConfig m = parse(model).model;
  const int64_t norms = 4 * m.hidden, biases = 2 * m.hidden;
  const int64_t whole = m.layers * (norms + biases) + 2 * m.hidden + m.max_positions * m.hidden;
  // The vocabulary's padding is a multiple of 128 in each rank.
  const StageMemory half =
      first_stage(model + "--tensor-model-parallel-size 2 " + "--make-vocab-size-divisible-by 64");
  CHECK(2 * half.parameters == static_cast<double>(parameter_count(m) + whole));
}

// Megatron-LM's docs/source/api-guide/dist_optimizer.md: bf16 weights with float32 gradients take
// 18 bytes a parameter, with the distributed optimizer 6 + 12 / d; float32 takes 16.
TEST_CASE("states: bytes of a parameter by ZeRO stage") {
  const auto bytes = [](const std::string& flags, int zero) {
    return states_of_a_parameter(first_stage("--plan --model 1.5B --plan-gpus 8 " + flags +
                                             " --plan-zero " + std::to_string(zero)));
  };
  CHECK(bytes("--bf16", 0) == Approx(18).epsilon(1e-3));
  CHECK(bytes("--bf16", 1) == Approx(6 + 12.0 / 8).epsilon(1e-3));
  // Of the gradients the blocks' matrices are shared, and two blocks whole: 48 blocks of 12 x 1600^2.
  const ModelConfig m = parse("--plan --model 1.5B").model;
  const double block = 12.0 * 1600 * 1600, all = static_cast<double>(parameter_count(m));
  const double gradients = (all - 48 * block + (48.0 / 8 + 2) * block) / all;
  CHECK(bytes("--bf16", 2) == Approx(2 + 12.0 / 8 + 4 * gradients).epsilon(1e-3));
  CHECK(bytes("--fp16", 1) == Approx(6 + 12.0 / 8).epsilon(1e-3));
  CHECK(bytes("", 0) == Approx(16).epsilon(1e-3));
  // Of float32, too, a share of the weights is kept as master weights.
  CHECK(bytes("", 1) == Approx(8 + 12.0 / 8).epsilon(1e-3));
  CHECK(first_stage(jupiter_175b).states() == Approx(22.4 * giga).epsilon(0.003));
}

TEST_CASE("ZeRO changes nothing with one replica") {
  CHECK(first_stage("--plan --model 124M --bf16 --plan-zero 2").states() ==
        first_stage("--plan --model 124M --bf16").states());
}

// Korthikanti et al. 2022, table 2, for 16-bit types: sbh (34 + 5as/h) and its divided forms.
TEST_CASE("Megatron-LM's activations: 7.1 and 10.3 GB for the layouts of the JUPITER benchmark") {
  CHECK(megatron_activation_bytes(parse(jupiter_13b)) == Approx(7.1 * giga).epsilon(0.01));
  CHECK(megatron_activation_bytes(parse(jupiter_175b)) == Approx(10.3 * giga).epsilon(0.01));
  const std::string layer =
      "--plan --num-layers 1 --hidden-size 1024 --num-attention-heads 16 --seq-length 512 "
      "--micro-batch-size 3 --bf16 --tensor-model-parallel-size 2 ";
  const double sbh = 512.0 * 3 * 1024, scores = 5.0 * 16 * 512 / 1024;
  const auto bytes = [&](const std::string& flags) {
    return megatron_activation_bytes(parse(layer + flags));
  };
  CHECK(bytes("") == sbh * (10 + 12 + scores / 2));
  CHECK(bytes("--sequence-parallel") == sbh * (34 + scores) / 2);
  CHECK(bytes("--sequence-parallel --recompute-granularity selective") == sbh * 34 / 2);
  CHECK(bytes("--recompute-granularity full") == sbh * 2);
}

TEST_CASE("activations in flight: stage i of p keeps min(m, p - i) micro batches") {
  PlanLayout l;
  l.pipeline = 4;
  l.micro_batches = 8;
  for (int stage = 0; stage < 4; ++stage) CHECK(sets_in_flight(l, stage) == 4 - stage);
  l.micro_batches = 2;
  CHECK(sets_in_flight(l, 0) == 2);
  CHECK(sets_in_flight(l, 3) == 1);
  l.pipeline = 1;
  CHECK(sets_in_flight(l, 0) == 1);
}

// Korthikanti et al. 2022, section 4.2.3: stage 0 keeps L (1 + (p - 1) / (p v)) layers' worth. Each
// chunk has sets of its own for the most micro batches that it holds, which need not be at the same
// time for all chunks.
TEST_CASE(
    "activations in flight: the interleaved schedule keeps 1 + (p - 1) / (p v) times as many") {
  for (const int64_t v : {2, 3, 12}) {
    PlanLayout l;
    l.pipeline = 8;
    l.chunks = v;
    l.micro_batches = 64;
    const double layers = 96, of_a_chunk = layers / 8 / static_cast<double>(v);
    const double least = layers * (1 + 7.0 / (8 * static_cast<double>(v)));
    const double planned = static_cast<double>(sets_in_flight(l, 0)) * of_a_chunk;
    CHECK(planned >= least);
    if (v == 2) CHECK(planned == Approx(least + of_a_chunk));
    CHECK(planned <= 1.4 * least);
  }
}

TEST_CASE("tensor parallelism divides what is inside the layers; sequence parallelism the rest") {
  const std::string flags =
      "--plan --num-layers 4 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 --bf16 "
      "--make-vocab-size-divisible-by 1024 --hidden-dropout 0 ";
  const double one = first_stage(flags).activations;
  const StageMemory four = first_stage(flags + "--tensor-model-parallel-size 4");
  const StageMemory sequence =
      first_stage(flags + "--tensor-model-parallel-size 4 --sequence-parallel");
  CHECK(sequence.activations == Approx(one / 4).epsilon(1e-9));
  CHECK(four.activations > one / 4);
  // Two residual streams and two norms' outputs in each layer, and the stream after the last one,
  // with the statistics of each, stay whole.
  const double stream = 2048.0 * 4096 * 2, statistics = 2048.0 * 4;
  const double outer = 4 * (4 * stream + 4 * statistics) + stream + 2 * statistics;
  CHECK(four.activations == Approx((one - outer) / 4 + outer).epsilon(1e-9));
}

// 18 bytes for each parameter are 3.14 TB, more than 20 H200 have. With all activations (34sbh/t in
// each layer), 24 do not suffice, and a pipeline divides 96 layers on nodes of four over 32.
TEST_CASE("the smallest run of 175 billion parameters has 32 H200, without recomputation") {
  Config c = parse(jupiter_175b);
  c.recompute = Recompute::none;
  const SmallestRun s = smallest_run(c, gpu_kind("H200"), 4);
  CHECK(s.nodes == 8);
  CHECK(s.tensor * s.pipeline * s.data == 32);
  CHECK(s.bytes <= gpu_kind("H200").memory);
  c.recompute = Recompute::full;
  const SmallestRun less = smallest_run(c, gpu_kind("H200"), 4);
  CHECK(less.nodes == 6);
  CHECK(smallest_run(parse("--plan --model 124M --bf16"), gpu_kind("H200"), 4).nodes == 1);
  CHECK(smallest_run(parse("--plan --model 124M --bf16"), gpu_kind("0.5GB"), 4).nodes == 0);
}

TEST_CASE("many layers are as four of them, and as many more as the fourth is to three") {
  const auto alike = [](const std::string& flags) {
    CAPTURE(flags);
    const Config c = parse("--plan " + flags);
    for (int stage = 0; stage < c.pipeline_parallel; ++stage) {
      const StageCount few = count_stage(c, stage, gpu), all = count_every_layer(c, stage, gpu);
      CHECK(few.memory.parameters == all.memory.parameters);
      // Replicas' shares are rounded up.
      CHECK(few.memory.states() == Approx(all.memory.states()).epsilon(1e-5));
      CHECK(few.memory.scratch() == all.memory.scratch());
      CHECK(few.memory.messages == all.memory.messages);
      CHECK(few.sent.total() == Approx(all.sent.total()).epsilon(1e-12));
      CHECK(few.update.moved == Approx(all.update.moved).epsilon(1e-12));
    }
  };
  for (const char* more :
       {"", "--bf16 --plan-gpus 4 --plan-zero 1", "--fp16 --plan-gpus 8 --plan-zero 2",
        "--precision tf32x3", "--bf16 --recompute-granularity full --optimizer sgd",
        "--pipeline-model-parallel-size 2 --global-batch-size 8 --recompute-granularity selective"})
    alike(std::string("--model 1.5B ") + more);
  alike(
      "--model llama-8b --bf16 --tensor-model-parallel-size 2 --sequence-parallel --plan-gpus 8 "
      "--use-distributed-optimizer");
  alike(
      "--num-layers 160 --hidden-size 512 --num-attention-heads 8 --bf16 --global-batch-size 8 "
      "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 20");
}

TEST_CASE("a plan of 175 billion parameters takes a processor less than a second") {
#ifdef NDEBUG
  constexpr double most = 1;
#else
  constexpr double most = 30;  // without optimization, and with sanitizers
#endif
  const std::clock_t begin = std::clock();
  CHECK(make_plan(parse(jupiter_175b + "--plan-device A100-40GB")).smallest->nodes == 48);
  CHECK(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC < most);
}

TEST_CASE("a device is a name in any case or a size of memory in GiB") {
  CHECK(gpu_kind("h200").memory == 143771.0 * (1 << 20));
  CHECK(gpu_kind("A100-40gb").memory == 40.0 * (1 << 30));
  for (const char* size : {"64", "64GB", "64 GB", "64gib"})
    CHECK(gpu_kind(size).memory == 64.0 * (1 << 30));
  CHECK(gpu_kind("94.5GB").memory == 94.5 * (1 << 30));
  for (const char* wrong : {"H2000", "-3", "0", "64MB", "GB", "nan", "inf"})
    CHECK_THROWS_AS(gpu_kind(wrong), UsageError);
}

TEST_CASE("the JUPITER benchmark's layouts fit an A100 of 40 GB, and 13B does not fit it whole") {
  CHECK(make_plan(parse(jupiter_13b + "--plan-device A100-40GB")).fits());
  CHECK(make_plan(parse(jupiter_175b + "--plan-device A100-40GB")).fits());
  CHECK_FALSE(make_plan(parse("--plan --num-layers 40 --hidden-size 5120 --num-attention-heads 40 "
                              "--bf16 --plan-device A100-40GB"))
                  .fits());
}

TEST_CASE("replicas that share the state gather the blocks' weights in FP8 in half of the bytes") {
  const std::string run =
      "--plan --num-layers 4 --hidden-size 64 --num-attention-heads 2 --ffn-hidden-size 256 "
      "--seq-length 16 --tokenizer-type bytes --bf16 --plan-gpus 4 "
      "--use-distributed-optimizer ";
  const auto sent = [&](const std::string& more) {
    return step_volumes(parse(run + more), 0).data;
  };
  const double matrices = 4 * 12 * 64 * 64;
  // Each of four replicas sends its quarter to three; the magnitudes of the 16 matrices are more.
  const double saved = sent("") - sent("--fp8-format hybrid");
  CHECK(saved <= matrices * 3 / 4);
  CHECK(saved >= matrices * 3 / 4 - 16 * 4 * 2);
  CHECK(sent("") == sent("--fp8-format e4m3 --fp8-recipe blockwise"));
  CHECK(sent("") == sent("--fp8-format hybrid --ddp-bucket-size 0"));
}

TEST_CASE("a planned layout gives each process sizes that FP8 takes") {
  // Two processes would have 24 of the MLP's 48.
  Config c = parse(
      "--plan --num-layers 2 --hidden-size 64 --num-attention-heads 2 --ffn-hidden-size 48 "
      "--seq-length 16 --tokenizer-type bytes --bf16 --fp8-format e4m3");
  check_parallel_layout(c);
  c.tensor_parallel = c.world_size = 2;
  CHECK_THROWS_AS(check_parallel_layout(c), UsageError);
  c.fp8 = {};
  check_parallel_layout(c);
}
