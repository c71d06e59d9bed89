// Pipeline, communication and time of a layout against published formulas and figures.
#include "src/plan/time_model.h"

#include <doctest/doctest.h>

#include "src/model/architecture.h"
#include "src/plan/stage_count.h"
#include "tests/train/plan/plans.h"

using namespace tally::train;
using doctest::Approx;

namespace {

// Korthikanti et al. 2022: 22 billion parameters on eight A100-80GB, a micro batch of 4.
const std::string model_22b =
    "--plan --num-layers 48 --hidden-size 6144 --num-attention-heads 64 --seq-length 2048 --fp16 "
    "--vocab-size 51200 --micro-batch-size 4 --tensor-model-parallel-size 8 "
    "--plan-gpus-per-node 8 ";

constexpr ProgramTraits megatron{AttentionKind::unfused, false, true, true, true};

Machine a100(const Config& config) {
  return machine_of(config, gpu_kind("A100-80GB"));
}

}  // namespace

TEST_CASE("the bubble of the 175B benchmark is 7/16, and 64 micro batches of 4 chunks give 1.40x") {
  PlanLayout l;
  l.pipeline = 8;
  l.micro_batches = 16;
  CHECK(bubble_over_work(l) == 7.0 / 16);
  CHECK(pipeline_efficiency(l) == Approx(16.0 / 23));
  PlanLayout better = l;
  better.micro_batches = 64;
  better.chunks = 4;
  CHECK(bubble_over_work(better) == 7.0 / (4 * 64));
  CHECK(pipeline_efficiency(better) / pipeline_efficiency(l) == Approx(1.40).epsilon(0.005));
  l.pipeline = 1;
  CHECK(bubble_over_work(l) == 0);
}

// Korthikanti et al. 2022, section 4.2.2: two all-gathers and two reduce-scatters of 2sbh bytes
// forward, the same backward, and the inputs again.
TEST_CASE("tensor parallel volumes of a layer") {
  const double message = 2 * 2048.0 * 4 * 6144;
  const Config plain = parse(model_22b), sequence = parse(model_22b + "--sequence-parallel");
  const LayerCount whole = count_layer(plain, {true}), parts = count_layer(sequence, {true});
  CHECK(whole.forward.sent == Approx(4 * message * 7 / 8));
  CHECK(parts.forward.sent == Approx(4 * message * 7 / 8));
  CHECK(whole.backward.sent == Approx(4 * message * 7 / 8));
  CHECK(parts.backward.sent == Approx(6 * message * 7 / 8));
  CHECK(border_bytes(plain) == message);
  CHECK(border_bytes(sequence) == message / 8);
  CHECK(count_layer(parse("--plan --model 124M"), {true}).forward.sent == 0);
}

TEST_CASE("volumes of a step: the pipeline's borders, and gradients and weights by ZeRO stage") {
  const std::string flags =
      "--plan --num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 128 --bf16 "
      "--pipeline-model-parallel-size 4 --plan-gpus 16 --global-batch-size 32 ";
  const double message = 128.0 * 512 * 2;
  const Config c = parse(flags);
  CHECK(step_volumes(c, 0).pipeline == 8 * message);
  CHECK(step_volumes(c, 1).pipeline == 8 * 2 * message);
  CHECK(step_volumes(c, 3).pipeline == 8 * message);
  const Config chunks = parse(flags + "--num-layers-per-virtual-pipeline-stage 1");
  CHECK(step_volumes(chunks, 0).pipeline == 8 * 3 * message);
  CHECK(step_volumes(chunks, 1).pipeline == 8 * 4 * message);
  const double parameters = stage_memory(c, 1, {}).parameters;
  CHECK(step_volumes(c, 1).data == Approx(2 * 0.75 * 4 * parameters));
  CHECK(step_volumes(parse(flags + "--plan-zero 1"), 1).data == Approx(0.75 * 6 * parameters));
  // After every micro batch those of the blocks' matrices alone.
  const double matrices = 2 * static_cast<double>(block_matrices(c.model));
  CHECK(step_volumes(parse(flags + "--plan-zero 2"), 1).data ==
        Approx(0.75 * ((8 - 1) * 4 * matrices + 6 * parameters)));
  CHECK(step_volumes(c, 1).embedding == 0);
  CHECK(step_volumes(c, 0).embedding ==
        static_cast<double>(c.model.padded_vocabulary * c.model.hidden) * 4);
}

TEST_CASE("bandwidth: NVLink within a node, the shared adapters between nodes") {
  Machine m;
  m.links = NodeLinks::switched(300e9);
  m.network = 25e9;
  m.linked = 4;
  const double within = group_bandwidth(m, 4, 1);
  CHECK(within > 0.5 * 300e9);
  CHECK(within <= 300e9);
  // Eight tensor parallel ranks over two nodes use the four adapters of each.
  CHECK(group_bandwidth(m, 8, 1) / within == Approx(100.0 / 300));
  // Replicas with eight tensor parallel ranks each: one member in a node.
  CHECK(group_bandwidth(m, 6, 8) / within == Approx(25.0 / 300));
  // With two ranks each: two members in a node.
  CHECK(group_bandwidth(m, 6, 2) / within == Approx(50.0 / 300));
}

TEST_CASE("bandwidth: two GH200 of a node have a third of what four have") {
  const Machine m = machine_of(parse("--plan --model 124M --bf16"), gpu_kind("GH200"));
  CHECK(group_bandwidth(m, 4, 1) / group_bandwidth(m, 2, 1) == Approx(3));
  CHECK(group_bandwidth(m, 2, 2) == group_bandwidth(m, 2, 1));
  CHECK(pair_bandwidth(m, 4, 1) == group_bandwidth(m, 2, 1));
  const Machine switched = machine_of(parse("--plan --model 124M --bf16"), gpu_kind("H200"));
  CHECK(group_bandwidth(switched, 2, 1) == group_bandwidth(m, 4, 1));
}

TEST_CASE("bandwidth: NVLink of a GB200's rack connects its nodes of four") {
  const Machine m = machine_of(parse("--plan --model 124M --bf16"), gpu_kind("GB200"));
  CHECK(group_bandwidth(m, 72, 1) == group_bandwidth(m, 4, 1));
  CHECK(group_bandwidth(m, 18, 4) == group_bandwidth(m, 4, 1));
  // Of 144 GPUs in two racks each sends through its adapter.
  CHECK(group_bandwidth(m, 2, 72) / group_bandwidth(m, 4, 1) == Approx(50.0 / 900));
  const Machine node = machine_of(parse("--plan --model 124M --bf16"), gpu_kind("B200"));
  CHECK(group_bandwidth(node, 2, 4) / group_bandwidth(node, 4, 1) == Approx(50.0 / 900));
}

// Korthikanti et al. 2022, table 4: milliseconds of a layer, forward and backward. The efficiency
// is fitted to the first figure alone.
TEST_CASE("layers of 22B: every figure of the table within 7 % from the first") {
  const Config baseline = parse(model_22b);
  Machine m = a100(baseline);
  m.efficiency = fitted_efficiency(m, 7.7e-3, [&](const Machine& machine) {
    return layer_time(baseline, machine, megatron).forward;
  });
  CHECK(m.efficiency > 0.5);
  CHECK(m.efficiency < 0.8);
  struct Row {
    const char* flags;
    double forward, backward;
  };
  for (const Row& row : {Row{"", 7.7, 11.9}, Row{"--sequence-parallel", 7.2, 11.8},
                         Row{"--recompute-granularity full", 7.7, 19.5},
                         Row{"--recompute-granularity selective", 7.7, 13.2},
                         Row{"--sequence-parallel --recompute-granularity selective", 7.2, 13.1}}) {
    CAPTURE(row.flags);
    const LayerTime t = layer_time(parse(model_22b + row.flags), m, megatron);
    CHECK(t.forward * 1e3 == Approx(row.forward).epsilon(0.07));
    CHECK(t.backward * 1e3 == Approx(row.backward).epsilon(0.07));
  }
}

TEST_CASE("messages that take longer than the weight gradients count in the backward pass") {
  const Config c = parse(model_22b + "--sequence-parallel");
  Machine m = a100(c);
  const double fast = layer_time(c, m, {}).backward;
  m.links = NodeLinks::switched(4e9);
  const double slow = layer_time(c, m, {}).backward;
  m.links = NodeLinks::switched(2e9);
  const double slower = layer_time(c, m, {}).backward;
  const double bytes = count_layer(c, {true}).backward.sent;
  const double link = group_bandwidth(m, 8, 1);
  CHECK(slower - slow == Approx(bytes / link / 2));
  CHECK(slow - fast < bytes / link / 2);
  CHECK(slow > fast);
}

TEST_CASE("a step is its parts, and more micro batches shrink the bubble alone") {
  const Config c = parse(jupiter_175b);
  const Machine m = machine_of(c, gpu_kind("A100-40GB"));
  const StepTime t = step_time(c, m);
  CHECK(t.bubble == Approx((t.work + t.ends) * 7 / 16));
  CHECK(t.seconds() == t.work + t.bubble + t.messages + t.ends + t.data + t.optimizer);
  // Attention and links do not depend on the GEMMs' efficiency alone: half of it is less than twice
  // the time.
  Machine slow = m;
  slow.efficiency /= 2;
  CHECK(step_time(c, slow).work > t.work);
  CHECK(step_time(c, slow).work < 2 * t.work);
  Config four = c;
  four.global_batch *= 4;
  const StepTime more = step_time(four, m);
  CHECK(more.bubble == Approx(t.bubble));
  CHECK(more.work == Approx(4 * t.work));
  CHECK(more.data == Approx(t.data));
}
