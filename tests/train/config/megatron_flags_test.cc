// Flags whose meaning is Megatron-LM's: sentences and rules from its megatron/training/arguments.py
// and training.py.
#include <doctest/doctest.h>

#include "src/config/args.h"
#include "src/config/megatron_flags.h"
#include "src/model/architecture.h"
#include "tests/train/config/parse.h"

using namespace tally::train;

TEST_CASE("--lr-warmup-fraction is a share of the decay in samples, whole or not") {
  // get_optimizer_param_scheduler(): lr_warmup_steps = lr_warmup_fraction * lr_decay_steps.
  Config c = parse("--mock-data --train-samples 1000 --lr-warmup-fraction 0.0015");
  CHECK(c.optimizer.warmup_samples == doctest::Approx(1.5));
  c = parse(base + "--global-batch-size 4 --lr-warmup-fraction 0.33");
  CHECK(c.optimizer.warmup_samples == doctest::Approx(13.2));
  // 0.29 * 100 is 28.999999999999996: one sample too few when cut off.
  c = parse("--mock-data --train-samples 100 --lr-warmup-fraction 0.29");
  CHECK(c.optimizer.warmup_samples == 0.29 * 100);
}

TEST_CASE("--lr-warmup-init is where the warm-up begins") {
  CHECK(parse(base).optimizer.warmup_init == 0);
  const Config c = parse(base + "--lr 1e-3 --lr-warmup-init 1e-4 --lr-warmup-iters 5");
  CHECK(c.optimizer.warmup_init == 1e-4);
  CHECK(error_of(base + "--lr 1e-3 --lr-warmup-init 2e-3") ==
        "--lr-warmup-init: 0.002 is greater than --lr 0.001");
}

TEST_CASE("weight decay may grow over the run") {
  Config c = parse(base + "--weight-decay 0.3");
  CHECK(c.optimizer.weight_decay == 0.3);
  CHECK(c.optimizer.end_weight_decay == 0.3);
  CHECK(c.optimizer.weight_decay_style == "constant");
  c = parse(base +
            "--global-batch-size 4 --weight-decay-incr-style cosine --start-weight-decay 0.1 "
            "--end-weight-decay 0.4");
  CHECK(c.optimizer.weight_decay == 0.1);
  CHECK(c.optimizer.end_weight_decay == 0.4);
  CHECK(c.optimizer.weight_decay_style == "cosine");
  CHECK(c.optimizer.weight_decay_samples == 40);
  CHECK(error_of(base + "--weight-decay-incr-style log") ==
        "--weight-decay-incr-style: 'log' is not known: constant, linear, cosine");
  CHECK(error_of(base + "--start-weight-decay 0.1") ==
        "--start-weight-decay: goes with --weight-decay-incr-style linear or cosine; a constant "
        "weight decay is --weight-decay");
  CHECK(error_of(base + "--end-weight-decay 0.1") ==
        "--end-weight-decay: goes with --weight-decay-incr-style linear or cosine; a constant "
        "weight decay is --weight-decay");
  CHECK(error_of(base + "--weight-decay-incr-style linear --start-weight-decay 0.1") ==
        "--weight-decay-incr-style: linear needs --start-weight-decay and --end-weight-decay");
  CHECK(error_of(base +
                 "--weight-decay-incr-style linear --start-weight-decay 0.1 --end-weight-decay "
                 "0.05") == "--end-weight-decay: 0.05 is less than --start-weight-decay 0.1");
}

TEST_CASE(
    "--no-bias-gelu-fusion takes GELU out of the GEMMs' epilogues, and says what it does not "
    "change") {
  const Config c = parse(base + "--no-bias-gelu-fusion");
  CHECK_FALSE(c.policy.fusions.gelu);
  CHECK(c.policy.fusions.bias);
  REQUIRE(c.notices.size() == 1);
  CHECK(c.notices[0] ==
        "--no-bias-gelu-fusion: GELU runs as a kernel of its own, as with --no-fusion gelu; "
        "GPT's stays the tanh approximation, where Megatron-LM computes erf without its fusion");
  CHECK(parse(base).policy.fusions.gelu);
}

TEST_CASE("the help of --hysteresis says what the loss scaler does") {
  // DynamicGradScaler: the tolerance comes back only when the scale grows.
  const std::string text = flags_reference();
  CHECK(text.find("Overflows in a row") == std::string::npos);
  CHECK(
      text.find("The first overflow that halves the loss scale, counted since it last doubled, in "
                "a row or not; each further one halves it, too") != std::string::npos);
}

TEST_CASE("a flag that Megatron-LM has and tally-train lacks is not unknown, but not supported") {
  CHECK(
      error_of(base + "--squared-relu") ==
      "--squared-relu: not supported by tally-train: blocks are GPT-2's or Llama's, see --swiglu: "
      "leave it out");
  CHECK(error_of(base + "--moe-router-topk 2") ==
        "--moe-router-topk: not supported by tally-train: models are dense, without experts: leave "
        "it out");
  CHECK(error_of(base + "--ckpt-step=10 --lr 1") ==
        "--ckpt-step: not supported by tally-train: name the checkpoint's own folder: --load "
        "DIR/iter_0000010");
  // All of a long command line at once.
  CHECK(
      error_of(base + "--q-lora-rank 8 --lr 1 --fp8-margin 1 --nonsense --squared-relu") ==
      "--q-lora-rank: not supported by tally-train: see --group-query-attention and --kv-channels "
      "for what there is: leave it out; not supported either: --fp8-margin --squared-relu");
  CHECK(error_of(base + "--context-parallel-size 2") ==
        "--context-parallel-size: 2: context and experts are not divided among processes: take 1");
  CHECK(parse(base + "--context-parallel-size 1 --expert-model-parallel-size 1").world_size == 1);
  CHECK(flags_reference().find("`--onnx-safe`") == std::string::npos);  // in a row with others
  CHECK(flags_reference().find(" --onnx-safe ") != std::string::npos);
}

TEST_CASE("no flag is both supported and unsupported") {
  for (const std::string& flag : flag_names())
    if (flag != "--pipeline-model-parallel-size")  // its family is not there
      CHECK_MESSAGE(unsupported_advice(flag) == nullptr, flag);
}

TEST_CASE("flags that change nothing are accepted with a note, a launcher's without") {
  Config c = parse(base + "--exit-signal-handler --no-load-rng --no-save-rng");
  REQUIRE(c.notices.size() == 1);
  CHECK(c.notices[0].find("--exit-signal-handler (always done: SIGTERM") != std::string::npos);
  CHECK(c.notices[0].find("--no-load-rng (no state of a random generator") != std::string::npos);
  for (const char* flag : {"--local_rank=3", "--local-rank 3", "--local-rank=0"}) {
    CAPTURE(std::string(flag));
    c = parse(base + flag);
    CHECK(c.notices.empty());
    CHECK(c.local_rank == 0);
  }
  CHECK(parse(base + "--deterministic-mode").policy.deterministic);
}

TEST_CASE("--finetune and related flags report that they have no effect") {
  CHECK(error_of(base + "--finetune") ==
        "--finetune: needs the weights to begin with: give --load DIR or --load-hf DIR");
  const Config c = parse(base + "--no-load-optim --no-save-optim");
  REQUIRE(c.notices.size() == 2);
  CHECK(c.notices[0] == "--no-load-optim has no effect without --load");
  CHECK(c.notices[1] == "--no-save-optim has no effect without --save");
  CHECK_FALSE(parse(base + "--finetune --load none").load_optimizer);
}

TEST_CASE("--untie-embeddings-and-output-weights gives the output layer weights of its own") {
  const Config tied = parse(base), untied = parse(base + "--untie-embeddings-and-output-weights");
  CHECK(tied.model.tied_embeddings);
  CHECK_FALSE(untied.model.tied_embeddings);
  CHECK(parameter_count(untied.model) == parameter_count(tied.model) + 50304 * 768);
}

TEST_CASE("--train-data-path and related flags: a dataset each") {
  const std::string run = "--train-iters 10 ";
  const Config c = parse(run +
                         "--train-data-path 1 a 3 b --valid-data-path c --test-data-path d "
                         "--eval-iters 5");
  CHECK(c.data.separate);
  CHECK(c.data.paths == std::vector<std::string>{"a", "b"});
  CHECK(c.data.weights == std::vector<double>{1, 3});
  CHECK(c.data.validation.paths == std::vector<std::string>{"c"});
  CHECK(c.data.test.paths == std::vector<std::string>{"d"});
  CHECK(c.data.training_split() == "1");
  CHECK(c.notices.empty());
  CHECK(parse(run + "--data-path a").data.training_split() == "969,30,1");
  const std::string apart = run + "--train-data-path a ";
  CHECK(error_of(apart + "--data-path b") == "--train-data-path: contradicts --data-path b");
  CHECK(error_of(apart + "--mock-data") == "--mock-data: contradicts --train-data-path");
  CHECK(error_of(apart + "--split 1,1") ==
        "--split: divides --data-path; the dataset of --train-data-path is taken whole");
  CHECK(error_of(run + "--valid-data-path a") ==
        "--train-data-path: is missing: --valid-data-path needs a dataset to train on");
  CHECK(error_of(apart + "--eval-iters 5") ==
        "--eval-iters: needs --valid-data-path or --test-data-path with --train-data-path");
  CHECK(error_of(apart + "--valid-data-path x y") ==
        "--valid-data-path: several datasets are given as pairs of a weight and a prefix (0.7 A "
        "0.3 B), and 'x' is not a weight");
  REQUIRE(parse(apart + "--test-data-path b").notices.size() == 1);
  CHECK(parse(apart + "--test-data-path b").notices[0] ==
        "--valid-data-path and --test-data-path have no effect without --eval-interval or "
        "--eval-iters");
}

TEST_CASE("--skip-train needs no length, and evaluates as Megatron-LM does by default") {
  Config c = parse("--mock-data --skip-train");
  CHECK(c.skip_train);
  CHECK(c.eval_iterations == 100);
  CHECK_FALSE(c.load_optimizer);
  CHECK(parse("--mock-data --skip-train --train-samples 8 --lr-warmup-samples 9").skip_train);
  c = parse("--mock-data --skip-train --save a --save-hf b");
  CHECK(c.save_dir.empty());
  CHECK(c.save_hf_dir.empty());
  CHECK(c.notices.size() == 2);
  CHECK(error_of("--mock-data --skip-train --eval-iters 0") ==
        "--skip-train: leaves nothing to do with --eval-iters 0: give the global batches to "
        "evaluate on");
  CHECK(error_of("--data-path x --skip-train --epochs 2") ==
        "--epochs: is a length of training, and --skip-train does not train: leave it out");
}

TEST_CASE("what is done at the ends of documents") {
  const Config c = parse(base + "--eod-mask-loss --reset-position-ids --reset-attention-mask");
  CHECK(c.data.eod_mask_loss);
  CHECK(c.data.reset_position_ids);
  CHECK(c.data.reset_attention_mask);
  CHECK(c.cuda_graph);
  CHECK(c.notices.empty());
}

TEST_CASE("--log-format and --log-throughput") {
  CHECK(parse(base).log_format == LogFormat::jupiter);
  Config c = parse(base + "--log-format megatron --log-throughput");
  CHECK(c.log_format == LogFormat::megatron);
  CHECK(c.log_throughput);
  CHECK(c.notices.empty());
  c = parse(base + "--log-throughput");
  REQUIRE(c.notices.size() == 1);
  CHECK(c.notices[0] ==
        "--log-throughput has no effect: the log line of --log-format jupiter always has TFLOPs");
  CHECK(error_of(base + "--log-format json") ==
        "--log-format: 'json' is not known: jupiter, megatron");
}
