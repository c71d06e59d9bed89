// --plan of the program: what it prints and how it ends, and its figures against what the program
// itself allocates.
#include "tests/train/train/tiny_run.h"

namespace {

json plan_of(const std::string& flags) {
  const Ended ended = tally_train(flags + " --plan --plan-json");
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  return json::parse(ended.out);
}

// Bytes that the device held at most, of the record of a run.
double measured_peak(const Folder& folder, const std::string& flags) {
  const std::string record = folder / "r.json";
  const Ended ended = tally_train(flags + " --mock-data --train-iters 2 --record " + record);
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  return read_json(record)["results"]["peak_device_bytes"].get<double>();
}

}  // namespace

TEST_CASE("the plan of ten runs on the CPU is within 5 % of what each allocates at most") {
  const Folder folder("plan_memory");
  std::istringstream lines(
      read_text(std::string(TALLY_SOURCE_DIR) + "/tests/train/plan/cpu_runs.txt"));
  int runs = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.front() == '#') continue;
    const std::string flags = line + " --device cpu";
    CAPTURE(flags);
    const double planned = plan_of(flags)["stages"][0]["bytes"]["allocated"].get<double>();
    CHECK(planned == doctest::Approx(measured_peak(folder, flags)).epsilon(0.05));
    ++runs;
  }
  CHECK(runs == 13);
}

// The record has what rank 0 allocates, which is in stage 0.
TEST_CASE("several processes allocate what their plan says") {
  const Folder folder("plan_ranks");
  const std::string model =
      "--num-layers 4 --hidden-size 128 --num-attention-heads 4 --seq-length 64 --device cpu "
      "--micro-batch-size 2 --global-batch-size 8 --tokenizer-type bytes ";
  const std::string tensor = "--tensor-model-parallel-size 2 --sequence-parallel ";
  for (const auto& ranks : {std::pair{2, std::string()}, std::pair{2, tensor},
                            std::pair{4, tensor + "--pipeline-model-parallel-size 2 "},
                            std::pair{4, std::string("--pipeline-model-parallel-size 4 --bf16")}}) {
    const auto& [processes, layout] = ranks;
    CAPTURE(ranks.second);
    const double measured =
        measured_peak(folder, model + layout + fmt::format(" --nproc-per-node {}", processes));
    const json plan = plan_of(model + layout + fmt::format(" --plan-gpus {}", processes));
    CHECK(plan["layout"]["gpus"] == processes);
    const auto planned = plan["stages"][0]["bytes"]["allocated"].get<double>();
    CHECK(planned == doctest::Approx(measured).epsilon(0.05));
  }
}

TEST_CASE("the exit code says whether the layout fits") {
  const std::string flags =
      "--plan --num-layers 40 --hidden-size 5120 --num-attention-heads 40 --seq-length 2048 --bf16 "
      "--plan-device ";
  const Ended large = tally_train(flags + "H200 --recompute-granularity full");
  CHECK(large.code == 3);
  CHECK(contains(large.out, "fits       no: "));
  CHECK(contains(large.out, "smallest   "));
  // None of the single changes is enough for 13 billion parameters in one GPU.
  CHECK_FALSE(contains(large.out, "try  "));
  const Ended batch = tally_train("--plan --model 124M --micro-batch-size 64 --plan-device 20GB");
  CHECK(batch.code == 3);
  CHECK(contains(batch.out, "try        --recompute-granularity full, or --micro-batch-size 1\n"));
  const std::string shared = " --use-distributed-optimizer --plan-nodes 2";
  const Ended sharded = tally_train(flags + "h200" + shared);
  CHECK(sharded.code == 0);
  CHECK(contains(sharded.out, "fits       yes: "));
  CHECK(contains(sharded.out, "layout     8 GPUs = tensor 1 x pipeline 1 x data 8, ZeRO 1"));
  CHECK(contains(sharded.out, "time of a step"));
  CHECK(tally_train("--plan --model 124M").code == 0);
  CHECK(tally_train("--plan --model 124M --plan-device 1GB").code == 3);
}

TEST_CASE("a plan takes the flags of the run: its launcher, data and length") {
  const Ended ended = tally_train(
      "--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048 --bf16 "
      "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 8 --nproc-per-node 4 "
      "--micro-batch-size 1 --global-batch-size 96 --sequence-parallel --plan-nodes 96 --plan "
      "--plan-device A100-40GB --data-path /nowhere/dataset --train-samples 300_000_000 "
      "--recompute-activations --use-distributed-optimizer");
  CHECK_MESSAGE(ended.code == 0, ended.err);
  CHECK(contains(ended.out, "384 GPUs = tensor 8 x pipeline 8 x data 6"));
  CHECK(contains(ended.out, "bubble     43.8 % of the time of its work"));
}

TEST_CASE("a wrong flag of a plan is one sentence that names it") {
  const auto error = [](const std::string& flags) {
    const Ended ended = tally_train(flags);
    CHECK(ended.code == 2);
    return ended.err;
  };
  CHECK(
      error("--plan --model 124M --bf16 --fp8-format hybrid --plan-device A100-80GB") ==
      "tally-train: error: --fp8-format: A100-80GB (compute capability 8.0) has no FP8, which came "
      "with 8.9: leave it out\n");
  CHECK(tally_train("--plan --model 124M --bf16 --fp8-format hybrid --plan-device H100")
            .out.find(", bf16 with FP8 (hybrid, tensorwise)\n") != std::string::npos);
  CHECK(
      error(
          "--plan --model 124M --bf16 --fp8-format e4m3 --fp8-recipe rowwise --plan-device B200") ==
      "tally-train: error: --fp8-recipe: B200 (compute capability 10.0) does not compute rowwise, "
      "which only 9.0 does: take tensorwise\n");
  CHECK(error("--plan --plan-device H20") ==
        "tally-train: error: --plan-device: 'H20' is not known: H200, GH200, H100, GB300, B300, "
        "GB200, B200, A100-80GB, A100-40GB, or a size of memory as 64GB\n");
  CHECK(contains(error("--plan --plan-gpus 3 --tensor-model-parallel-size 2"),
                 "--plan-gpus: world size (3) is not divisible by tensor parallel size (2) times "
                 "pipeline parallel size (1)"));
  CHECK(contains(error("--plan --plan-gpus 4 --plan-nodes 1"), "--plan-nodes: contradicts"));
  CHECK(contains(error("--plan --nproc-per-node 3 --tensor-model-parallel-size 2"),
                 "--nproc-per-node: world size (3) is not divisible by tensor parallel size (2)"));
  const std::string two = tally_train("--plan --model 124M --nproc-per-node 2").out;
  CHECK(contains(two, "2 GPUs = tensor 1 x pipeline 1 x data 2"));
  CHECK(tally_train("--plan --model 124M --plan-gpus 2").out == two);
  CHECK(contains(
      tally_train("--plan --model 124M --nproc-per-node 2 --tensor-model-parallel-size 4").out,
      "4 GPUs = tensor 4 x"));
  CHECK(contains(error("--plan --num-layers 9 --pipeline-model-parallel-size 2"),
                 "--num-layers: num_layers must be divisible by"));
  CHECK(contains(error("--plan-zero 1 --mock-data --train-iters 1"),
                 "--plan-zero: has a meaning with --plan only"));
  CHECK(contains(error("--plan --plan-zero 3"), "--plan-zero: "));
  CHECK(error("evaluate --plan --mock-data") ==
        "tally-train: error: --plan: plans training, and this is 'evaluate'\n");
}

TEST_CASE("a rehearsal sends what the plan says: new weights are gathered once a step") {
  const std::string run =
      "--num-layers 2 --hidden-size 64 --num-attention-heads 2 --seq-length 16 --vocab-size 97 "
      "--bf16 "
      "--mock-data --micro-batch-size 1 --lr 1e-3 --train-iters 3 --use-distributed-optimizer ";
  for (const std::string more : {"", "--fp8-format hybrid "}) {
    const std::string out =
        tally_train(run + more + "--device cpu --global-batch-size 2 --rehearse 1x1x2").out;
    CAPTURE(out);
    const auto calls = [&](const std::string& kind) {
      const size_t end = out.find(" " + kind);
      REQUIRE(end != std::string::npos);
      return std::stoi(out.substr(out.rfind(' ', end - 1) + 1));
    };
    // A range's gradients are sent once, and so are its new weights.
    CHECK(calls("all-gather") == calls("reduce-scatter"));
  }
}

TEST_CASE("flags of a file may ask for a plan") {
  const Folder folder("plan_file");
  std::ofstream(folder / "flags") << "--model 124M --plan # no training\n";
  const Ended ended = tally_train("@" + folder / "flags");
  CHECK_MESSAGE(ended.code == 0, ended.err);
  CHECK(contains(ended.out, "memory of each GPU"));
}
