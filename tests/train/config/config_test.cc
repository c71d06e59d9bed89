#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "src/model/architecture.h"
#include "tests/train/config/parse.h"

using namespace tally::train;

TEST_CASE("defaults are Megatron's where it has them") {
  const Config c = parse(base);
  CHECK(c.model.layers == 12);
  CHECK(c.model.ffn == 4 * 768);
  CHECK(c.model.padded_vocabulary == 50304);
  CHECK(c.model.hidden_dropout == 0.1);
  CHECK(c.model.attention_dropout == 0.1);
  CHECK(c.model.layernorm_epsilon == 1e-5);
  CHECK(c.model.init_std == 0.02);
  CHECK(c.optimizer.weight_decay == 0.01);
  CHECK(c.optimizer.beta2 == 0.999);
  CHECK(c.optimizer.clip == 1.0);
  CHECK(c.optimizer.decay_style == "linear");
  CHECK(c.optimizer.decay_samples == 10);
  CHECK(c.seed == 1234);
  CHECK(c.initial_loss_scale == 4294967296.0);
  CHECK(c.loss_scale_window == 1000);
  CHECK(c.hysteresis == 2);
  CHECK(c.global_batch == 1);
  CHECK(c.precision == Precision::f32);
  CHECK(c.notices.empty());
}

TEST_CASE("a limit of 0 minutes is none, and a note says so") {
  for (const char* zero : {"0", "0.0", "0e3"}) {
    const Config c = parse(base + "--exit-duration-in-mins " + zero);
    CHECK(c.exit_duration_minutes == 0);
    CHECK(c.notices == std::vector<std::string>{
                           "--exit-duration-in-mins 0 sets no limit, as if it were left out"});
  }
  CHECK(parse(base + "--exit-duration-in-mins 0.001").notices.empty());
}

TEST_CASE("the command line of the JUPITER NLP benchmark, 13B, is read value by value") {
  // spec: "The whole parameter set, value by value". 32 processes.
  const std::string line =
      "--num-layers 40 --hidden-size 5120 --num-attention-heads 32 --ffn-hidden-size 20480 --fp16 "
      "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size "
      "1024 "
      "--train-samples 300_000_000 --tokenizer-type GPT2BPETokenizer --vocab-file v --merge-file m "
      "--loss-scale-window 500 --hysteresis 2 --min-loss-scale 1.0 --initial-loss-scale 4096 "
      "--seed 42 "
      "--position-embedding-type rope --use-flash-attn --sequence-parallel --recompute-activations "
      "--recompute-granularity selective --optimizer adam --adam-beta1 0.9 --adam-beta2 0.999 "
      "--adam-eps 1e-8 --lr 1e-4 --min-lr 1e-5 --lr-decay-style cosine --lr-decay-samples "
      "128_953_125 "
      "--lr-warmup-samples 216_320 --clip-grad 1.0 --weight-decay 1e-1 --use-distributed-optimizer "
      "--exit-duration-in-mins 1190 --log-interval 10 --save-interval 1500 --eval-interval 1000 "
      "--eval-iters 5 --tensorboard-dir t --tensorboard-queue-size 5 --log-timers-to-tensorboard "
      "--log-batch-size-to-tensorboard --log-validation-ppl-to-tensorboard --save s --load s "
      "--data-path d "
      "--split 7,3,1 --distributed-backend nccl "
      "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4";
  const Config c = parse(line, 32);
  CHECK(c.model.layers == 40);
  CHECK(c.model.head_dim() == 160);
  CHECK(c.model.padded_vocabulary == 50432);  // 128 x TP 2
  CHECK(c.model.positions == Positions::rotary);
  CHECK(c.data_parallel == 4);
  CHECK(c.micro_batches() == 256);
  CHECK(c.train_samples == 300000000);
  CHECK(c.train_iterations == 300000000 / 1024);
  CHECK(c.optimizer.decay_samples == 128953125);
  CHECK(c.optimizer.warmup_samples == 216320);
  CHECK(c.optimizer.weight_decay == 0.1);
  CHECK(c.precision == Precision::f16);
  CHECK(c.recompute == Recompute::selective);
  CHECK(c.exit_duration_minutes == 1190);
  CHECK(c.eval_iterations == 5);
  CHECK(c.data.split == "7,3,1");
  CHECK(c.sequence_parallel);
  REQUIRE(c.notices.size() == 1);
  CHECK(c.notices[0].find("--use-flash-attn (attention always runs") != std::string::npos);
  CHECK(c.notices[0].find("--log-timers-to-tensorboard") != std::string::npos);
  CHECK(c.distributed_backend == "nccl");
}

TEST_CASE("the 175B run has 3125000 iterations, as its published log says") {
  const Config c = parse(
      "--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --global-batch-size 96 "
      "--train-samples 300_000_000 --init-method-std 0.0048 --bf16 --mock-data "
      "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 8 --seq-length 2048",
      384);
  CHECK(c.train_iterations == 3125000);
  CHECK(c.model.padded_vocabulary == 51200);
  CHECK(c.micro_batches() == 16);
  CHECK(c.model.init_std == 0.0048);
}

TEST_CASE("presets, and flags that override them in any order") {
  for (const auto& [name, layers, hidden, heads] :
       {std::tuple{"gpt2", 12, 768, 12}, std::tuple{"355M", 24, 1024, 16},
        std::tuple{"gpt2-large", 36, 1280, 20}, std::tuple{"1.5b", 48, 1600, 25}}) {
    const std::string model = name;
    CAPTURE(model);
    const Config c = parse(fmt::format("{} --model {}", base, model));
    CHECK(c.model.layers == layers);
    CHECK(c.model.hidden == hidden);
    CHECK(c.model.heads == heads);
  }
  const Config c = parse(base + "--num-layers 3 --model gpt2-medium --hidden-dropout 0");
  CHECK(c.model.layers == 3);
  CHECK(c.model.hidden == 1024);
  CHECK(c.model.hidden_dropout == 0);
  // Parameters of the released GPT-2 124M: 124,439,808 with its vocabulary of 50257 unpadded.
  const Config gpt2 = parse(base + "--model gpt2 --make-vocab-size-divisible-by 1");
  CHECK(parameter_count(gpt2.model) == 124439808);
}

TEST_CASE("Llama's blocks: the flags that Megatron-LM's users give for them") {
  const std::string llama =
      base +
      "--swiglu --normalization RMSNorm --disable-bias-linear --position-embedding-type rope ";
  const Config c = parse(llama +
                         "--hidden-size 2048 --num-attention-heads 32 --num-layers 16 "
                         "--group-query-attention --num-query-groups 8 --rotary-base 500000 "
                         "--ffn-hidden-size 8192 --untie-embeddings-and-output-weights");
  CHECK(c.model.block.gated());
  CHECK(c.model.kv_heads() == 8);
  CHECK(c.model.head_dim() == 64);
  CHECK(c.model.qkv_width() == 3072);
  CHECK(c.model.rotary_base == 500000);
  CHECK_FALSE(c.model.tied_embeddings);
  // Megatron-LM: int((4 * 2048 * 2 / 3) / 64) * 64.
  CHECK(parse(llama + "--hidden-size 2048 --num-attention-heads 32").model.ffn == 5440);
  CHECK(parse(llama + "--group-query-attention").model.kv_heads() == 1);
  CHECK(parse(llama).model.kv_heads() == parse(llama).model.heads);
  CHECK(parse(llama + "--kv-channels 32").model.head_dim() == 32);
  // The parameters of Llama 3.2 1B and Llama 3 8B with their vocabulary of 128256 (model cards).
  const Config small = parse(base + "--model llama-1b");
  // LlamaConfig of transformers has attention_dropout 0 and no other.
  CHECK(small.model.hidden_dropout == 0);
  CHECK(small.model.attention_dropout == 0);
  CHECK(small.notices.empty());
  CHECK(parse(base + "--model llama-8b --hidden-dropout 0.2").model.hidden_dropout == 0.2);
  const std::string none = "--hidden-dropout 0 --attention-dropout 0";
  CHECK(parse(llama).model.hidden_dropout == 0.1);
  REQUIRE(parse(llama).notices.size() == 1);
  CHECK(parse(llama).notices[0].find(
            "Llama has no dropout, and this model has --hidden-dropout 0.1") == 0);
  CHECK(parse(llama + none).notices.empty());
  CHECK(parameter_count(small.model) == 1235814400);
  CHECK(parse(base + "--model llama-1b --vocab-size 1000").model.vocabulary == 1000);
  CHECK(parse(base + "--model llama-1b --tokenizer-type bytes").model.vocabulary == 257);
  CHECK(parse(base + "--model llama-1b --tokenizer-type GPT2BPETokenizer").model.vocabulary ==
        50257);
  CHECK(parse(base + "--model llama-1b --vocab-file v --merge-file m").model.vocabulary == 50257);
  const Config large = parse(base + "--model llama-8b");
  CHECK(parameter_count(large.model) == 8030261248);
  CHECK(large.model.rotary_base == 500000);
  CHECK(parse(base + "--model llama-1b --num-query-groups 4").model.kv_heads() == 4);
}

TEST_CASE("the last of repeated flags holds, underscores and equals signs are read") {
  const Config c = parse(base + "--num-layers=2 --num-layers 1_0 --lr 1_0e-1_0 --seed=0");
  CHECK(c.model.layers == 10);
  CHECK(c.optimizer.lr == 10e-10);
  CHECK(c.seed == 0);
}

TEST_CASE("tokenizers decide the vocabulary") {
  CHECK(parse(base + "--tokenizer-type bytes").model.vocabulary == 257);
  CHECK(parse(base + "--tokenizer-type bytes").model.padded_vocabulary == 384);
  CHECK(parse(base + "--tokenizer-type NullTokenizer --vocab-size 1000").model.vocabulary == 1000);
  CHECK(parse(base + "--tokenizer-type huggingfacetokenizer --vocab-size 70").model.vocabulary ==
        70);
}

TEST_CASE("warm-up and decay are samples whichever way they were given") {
  Config c = parse(base + "--global-batch-size 4 --lr-warmup-iters 3 --lr-decay-iters 8");
  CHECK(c.optimizer.warmup_samples == 12);
  CHECK(c.optimizer.decay_samples == 32);
  c = parse(base + "--global-batch-size 4 --lr-warmup-fraction 0.5");
  CHECK(c.optimizer.decay_samples == 40);
  CHECK(c.optimizer.warmup_samples == 20);
}

TEST_CASE("flags files") {
  const std::string path = "config_test_flags.txt";
  std::ofstream(path) << "# model\n--num-layers 5   # five\n--save \"a dir\"\n";
  const Config c = parse(base + "@" + path);
  CHECK(c.model.layers == 5);
  CHECK(c.save_dir == "a dir");
  std::remove(path.c_str());
  CHECK(error_of(base + "@none.txt") == "@none.txt: the file cannot be read");
  CHECK(error_of(base + "@/tmp") == "@/tmp: the file cannot be read: it is a directory");
}

TEST_CASE("what several ranks read is a file of its own for each, and no pipe") {
  int fds[2];
  REQUIRE(pipe(fds) == 0);
  const std::string shared = fmt::format("/dev/fd/{}", fds[0]);
  const std::string why = fmt::format(
      "'{}' is one stream for all of 2 ranks, and each would get a part of what comes: "
      "write it to a file",
      shared);
  const std::string classify =
      "--model bert-base --task classify --num-classes 2 --train-iters 10 ";
  CHECK(error_of(classify + "--data-path " + shared, 2) == "--data-path: " + why);
  CHECK(error_of(classify + "--data-path a.tsv --vocab-file " + shared, 2) ==
        "--vocab-file: " + why);
  CHECK(error_of(classify + "--train-data-path a.tsv --valid-data-path " + shared, 2) ==
        "--valid-data-path: " + why);
  CHECK(error_of(classify + "--data-path " + shared) == "(no error)");
  close(fds[0]);
  close(fds[1]);
}

TEST_CASE("where a process meets the others is known although another flag is wrong") {
  const std::string place =
      "--master-port 31999 --master-addr node7 --distributed-timeout-minutes 0.25 "
      "--rendezvous-token-file t --network-interface ib0 ";
  for (const std::string wrong : {"--lr abc", "--no-such-flag x", "--micro-batch-size", "@none.txt",
                                  "stray", "--nproc-per-node many"}) {
    CAPTURE(wrong);
    for (const std::string& line : {place + wrong, "--seq-length 8 " + wrong + " " + place}) {
      if (wrong == "--micro-batch-size" && line.find(place) != 0) continue;
      const LaunchOptions known = launch_options(line);
      CHECK(known.port == 31999);
      CHECK(known.address == "node7");
      CHECK(known.start_seconds() == 15);
      CHECK(known.token_file == "t");
      CHECK(known.interface == "ib0");
      CHECK(known.processes == 0);
    }
  }
  // Of the launch's own flags, those that are right.
  const LaunchOptions some = launch_options("--master-port 0 --master-addr node7 --lr abc");
  CHECK(some.port == 0);
  CHECK(some.address == "node7");
}

TEST_CASE("--mock-lengths takes a histogram's @FILE for itself") {
  const std::string path = "config_test_lengths.txt";
  std::ofstream(path) << "16 3\n20 1\n";
  const std::string flags =
      "--model bert-base --mock-data --train-iters 1 --lr 1 --seq-length 64 --mock-lengths";
  CHECK(parse(flags + " @" + path).data.mock_lengths == "@" + path);
  CHECK(parse(flags + "=@" + path).data.mock_lengths == "@" + path);
  std::remove(path.c_str());
}

TEST_CASE("--mock-samples: of --mock-data, and what an evaluation of it takes") {
  const std::string flags = "--model distilbert --task classify --train-iters 1 --lr 1 ";
  CHECK(parse(flags + "--mock-data").data.mock_samples == 1024);
  CHECK(parse(flags + "--mock-data --mock-samples 131_072").data.mock_samples == 131072);
  CHECK(
      error_of(flags + "--data-path a.tsv --mock-samples 8") ==
      "--mock-samples: goes with --mock-data; files have the samples that they have: leave it out");
  CHECK(error_of("--num-layers 2 --hidden-size 32 --num-attention-heads 2 --train-iters 1 "
                 "--mock-data --mock-samples 8") ==
        "--mock-samples: is for encoders, and this is gpt: give --model bert-base, for example");
}

TEST_CASE("a later --data-path replaces one of a flags file; one with several values is a list") {
  const std::string path = "config_test_data.txt";
  std::ofstream(path) << "--train-iters 1 --data-path 0.7 a 0.3 b\n";
  CHECK(parse("@" + path).data.paths == std::vector<std::string>{"a", "b"});
  const Config c = parse("@" + path + " --data-path c --lr 1");
  CHECK(c.data.paths == std::vector<std::string>{"c"});
  CHECK(c.data.weights.empty());
  CHECK(parse("@" + path + " --data-path=c").data.paths == std::vector<std::string>{"c"});
  std::remove(path.c_str());
}

TEST_CASE("evaluation: Megatron's defaults once one of its flags is given") {
  CHECK(parse(base).eval_interval == 0);
  CHECK(parse(base + "--eval-iters 5").eval_interval == 1000);
  CHECK(parse(base + "--eval-interval 7").eval_iterations == 100);
}

TEST_CASE("evaluation by samples, a target, MLPerf's log") {
  const Config c = parse(base +
                         "--eval-interval-samples 64 --target-loss 2.5 --mllog x.log --mllog-set "
                         "submission_org=ACME seed=7");
  CHECK(c.eval_interval == 0);
  CHECK(c.eval_interval_samples == 64);
  CHECK(c.eval_iterations == 100);
  CHECK(c.target_loss == 2.5);
  CHECK(c.mllog_values == std::vector<std::pair<std::string, std::string>>{
                              {"submission_org", "ACME"}, {"seed", "7"}});
  for (const auto& [flags, why] :
       {std::pair{"--eval-interval-samples 6 --eval-interval 2", "contradicts --eval-interval 2"},
        std::pair{"--target-loss 2", "is that of an evaluation"},
        std::pair{"--mllog-set a=b", "goes with --mllog FILE"},
        std::pair{"--mllog x --mllog-set ab", "not of the form KEY=VALUE"},
        std::pair{"--mllog x --skip-train", "in training only"}})
    CHECK_MESSAGE(error_of(base + flags).find(why) != std::string::npos, error_of(base + flags));
}

TEST_CASE("what Megatron clamps silently is reported") {
  const Config c = parse(base + "--sequence-parallel --use-distributed-optimizer");
  CHECK_FALSE(c.sequence_parallel);
  REQUIRE(c.notices.size() == 2);
  CHECK(c.notices[0] == "--sequence-parallel has no effect at tensor parallel size 1");
}

TEST_CASE("what replicas share: two flags say it, and one replica shares nothing") {
  const auto shared = [](const std::string& flags, int world) {
    const Config c = parse(base + flags, world);
    return std::pair(c.distributed_optimizer, c.shard_gradients);
  };
  CHECK(shared("", 2) == std::pair(false, false));
  CHECK(shared("--use-distributed-optimizer", 2) == std::pair(true, false));
  CHECK(shared("--data-parallel-sharding-strategy optim", 2) == std::pair(true, false));
  CHECK(shared("--data-parallel-sharding-strategy optim_grads", 2) == std::pair(true, true));
  CHECK(shared("--data-parallel-sharding-strategy no_shard", 2) == std::pair(false, false));
  CHECK(shared("--data-parallel-sharding-strategy optim_grads", 1) == std::pair(false, false));
  const Config c = parse(base + "--data-parallel-sharding-strategy optim_grads");
  CHECK(c.notices ==
        std::vector<std::string>{"--data-parallel-sharding-strategy optim_grads has no effect at "
                                 "data parallel size 1"});
}

TEST_CASE("bad values and combinations get one sentence that names the flag") {
  struct Row {
    const char* flags;
    int world;
    const char* message;
  };
  // Parallel layouts: the sentences are Megatron-LM's at commit f772743 (spec: "Validity
  // messages").
  const Row rows[] = {
      {"--data-parallel-sharding-strategy optim_grads_params", 2,
       "--data-parallel-sharding-strategy: optim_grads_params: this version divides no weights: "
       "take optim_grads"},
      {"--data-parallel-sharding-strategy grads", 2,
       "--data-parallel-sharding-strategy: 'grads' is not known: no_shard, optim, optim_grads"},
      {"--data-parallel-sharding-strategy optim_grads --reference", 2,
       "--data-parallel-sharding-strategy: optim_grads: the model of --reference keeps all "
       "gradients: take optim"},
      {"--tensor-model-parallel-size 2", 1,
       "--tensor-model-parallel-size: world size (1) is not divisible by tensor parallel size (2) "
       "times "
       "pipeline parallel size (1)"},
      {"--pipeline-model-parallel-size 3", 4,
       "--pipeline-model-parallel-size: world size (4) is not divisible by tensor parallel size "
       "(1) times "
       "pipeline parallel size (3)"},
      {"--micro-batch-size 3 --global-batch-size 8", 2,
       "--global-batch-size: global batch size (8) is not divisible by micro batch size (3) times "
       "data "
       "parallel size (2)"},
      {"--tensor-model-parallel-size 8", 8,
       "--num-attention-heads: num_attention_heads (12) must be a multiple of "
       "tensor_model_parallel_size (8)."},
      {"--pipeline-model-parallel-size 8", 8,
       "--num-layers: num_layers must be divisible by transformer_pipeline_model_parallel_size (12 "
       "by 8)"},
      {"--tensor-model-parallel-size 4 --ffn-hidden-size 30", 4,
       "--ffn-hidden-size: 30 is not divisible by 4"},
      {"--tensor-model-parallel-size 4 --sequence-parallel --seq-length 30", 4,
       "--sequence-parallel: --seq-length 30 is not divisible by the tensor parallel size 4"},
      {"--num-layers-per-virtual-pipeline-stage 1", 1,
       "--num-layers-per-virtual-pipeline-stage: pipeline-model-parallel size should be greater "
       "than 2 "
       "with interleaved schedule"},
      {"--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2", 4,
       "--num-layers-per-virtual-pipeline-stage: number of layers per pipeline stage must be "
       "divisible "
       "number of layers per virtual pipeline stage"},
      {"--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 1 "
       "--global-batch-size 6",
       4,
       "--num-layers-per-virtual-pipeline-stage: number of microbatches (6) is not divisible by "
       "pipeline-model-parallel-size (4) when using interleaved schedule"},
      {"--num-layers 100000000 --hidden-size 120000", 1,
       "--num-layers: a model of 100000000 layers and 1.7e+19 parameters is too large for any "
       "machine: "
       "check --num-layers, --hidden-size, --ffn-hidden-size and --vocab-size"},
      {"--micro-batch-size 1000000000 --seq-length 1000000000", 1,
       "--micro-batch-size: 1000000000 samples of 1000000000 tokens at a time are too many for any "
       "machine"},
      {"--hidden-size 770", 1, "--hidden-size: 770 is not divisible by --num-attention-heads 12"},
      {"--seq-length 64 --max-position-embeddings 32", 1,
       "--max-position-embeddings: 32 is less than --seq-length 64"},
      {"--lr 1e-5 --min-lr 1e-4", 1, "--min-lr: 0.0001 is greater than --lr 1e-05"},
      {"--fp16 --bf16", 1, "--fp16: --fp16 and --bf16 cannot both be given"},
      {"--precision tf32 --bf16", 1, "--bf16: --bf16 and --precision cannot both be given"},
      {"--precision int8", 1,
       "--precision: 'int8' is not known: fp32, tf32x3, tf32, bf16, fp16, fp64"},
      {"--loss-scale 8", 1, "--loss-scale: only --fp16 scales its loss; this run is fp32"},
      {"--fp32-attention tf32", 1, "--fp32-attention: 'tf32' is not known: ieee, tf32x3"},
      {"--bf16 --fp32-attention tf32x3", 1,
       "--fp32-attention: goes with --precision fp32; this run is bf16"},
      {"--fp32-attention tf32x3 --device cpu", 1,
       "--fp32-attention: a CPU has no TF32: leave it out, or use a GPU"},
      {"--fp32-attention tf32x3 --device cuda --hidden-size 640 --num-attention-heads 4", 1,
       "--fp32-attention: tf32x3 serves heads of up to 128; these have 160: leave it out"},
      {"--bf16 --fp8-format mxfp8", 1, "--fp8-format: 'mxfp8' is not known: hybrid, e4m3"},
      {"--fp8-format hybrid", 1,
       "--fp8-format: goes with --bf16, which is what is not in FP8; this run is fp32"},
      {"--bf16 --fp8-format hybrid --fp8-recipe delayed", 1,
       "--fp8-recipe: 'delayed' is not computed here: take tensorwise, rowwise or blockwise"},
      {"--bf16 --fp8-format e4m3 --fp8-recipe mxfp8", 1,
       "--fp8-recipe: 'mxfp8' is not computed here: take tensorwise, rowwise or blockwise"},
      {"--bf16 --fp8-format hybrid --fp8-recipe rowwise", 1,
       "--fp8-recipe: rowwise has gradients in E4M3, as torchao has it, and hybrid takes E5M2: add "
       "--fp8-format e4m3"},
      {"--bf16 --fp8-recipe tensorwise", 1, "--fp8-recipe: goes with --fp8-format"},
      {"--bf16 --first-last-layers-bf16", 1, "--first-last-layers-bf16: goes with --fp8-format"},
      {"--bf16 --fp8-format hybrid --num-layers-at-end-in-bf16 2", 1,
       "--num-layers-at-end-in-bf16: goes with --first-last-layers-bf16"},
      {"--bf16 --fp8-format hybrid --num-layers 2 --first-last-layers-bf16", 1,
       "--first-last-layers-bf16: 1 and 1 of 2 layers in bf16 leave none in FP8"},
      {"--bf16 --fp8-format e4m3 --hidden-size 264 --num-attention-heads 3", 1,
       "--hidden-size: with --fp8-format it (264) must be a multiple of 16"},
      {"--bf16 --fp8-format e4m3 --seq-length 24", 1,
       "--micro-batch-size: with --fp8-format the number of tokens of a micro batch (24) must be a "
       "multiple of 16"},
      {"--bf16 --fp8-format hybrid --reference", 1,
       "--fp8-format: the model of --reference has no FP8"},
      {"--precision tf32x3 --device cpu", 1,
       "--precision: a CPU has no TF32: use --precision fp32, or a GPU"},
      {"--tf32 --device cpu", 1, "--tf32: a CPU has no TF32: use --precision fp32, or a GPU"},
      {"--train-samples 10", 1,
       "--train-samples: expected iteration-based training: give --train-iters or --train-samples, "
       "not "
       "both"},
      {"--lr-decay-samples 10", 1,
       "--lr-decay-samples: expected iteration-based learning rate decay: --train-iters goes with "
       "--lr-decay-iters"},
      {"--lr-warmup-samples 10", 1,
       "--lr-warmup-samples: expected iteration-based learning rate warmup: --train-iters goes "
       "with "
       "--lr-warmup-iters"},
      {"--lr-warmup-iters 1 --lr-warmup-fraction 0.1", 1,
       "--lr-warmup-fraction: can only specify one of lr-warmup-fraction and lr-warmup-iters"},
      {"--lr-warmup-iters 10", 1,
       "--lr-warmup-iters: the warm-up of 10 samples must end before the decay does at 10 samples"},
      {"--num-layers ten", 1, "--num-layers: 'ten' is not a whole number"},
      {"--num-layers 1.5", 1, "--num-layers: '1.5' is not a whole number"},
      {"--num-layers _5", 1, "--num-layers: '_5' is not a whole number"},
      {"--num-layers 0", 1, "--num-layers: 0 is too small: at least 1"},
      {"--num-layers 99999999999999999999", 1, "--num-layers: 99999999999999999999 is too large"},
      {"--hidden-dropout 1", 1, "--hidden-dropout: 1 is too large: it must be below 1"},
      {"--lr nan", 1, "--lr: 'nan' is not a number"},
      {"--lr -1", 1, "--lr: -1 is too small: at least 0"},
      {"--seed -1", 1, "--seed: -1 is too small: at least 0"},
      {"--num-layers", 1, "--num-layers: needs a value"},
      {"--num-layer 5", 1, "--num-layer: unknown flag; did you mean '--num-layers'?"},
      {"--num_layers=5", 1, "--num_layers: unknown flag; did you mean '--num-layers'?"},
      {"--qqqqqqqqqqqqqqq", 1, "--qqqqqqqqqqqqqqq: unknown flag; --help lists all"},
      {"extra", 1, "'extra': not a flag, and no flag before it takes it as a value; see --help"},
      {"--model gpt9", 1,
       "--model: 'gpt9' is not a known model: gpt2 (124M), gpt2-medium (355M), gpt2-large (774M), "
       "gpt2-xl (1.5B), llama-1b, llama-8b, bert-base (110M), bert-large (340M), distilbert (66M)"},
      {"--data-path x", 1, "--mock-data: contradicts --data-path x"},
      {"--split 1,x", 1, "--split: '1,x' is not a list of up to three weights, as 969,30,1"},
      {"--split 0,0", 1, "--split: '0,0' leaves no documents for any split"},
      {"--optimizer sgdm", 1, "--optimizer: 'sgdm' is not known: adam, lamb, sgd"},
      {"--sgd-momentum 0.5", 1, "--sgd-momentum: goes with --optimizer sgd; this run's is adam"},
      {"--optimizer sgd --adam-eps 1e-6", 1,
       "--adam-eps: goes with --optimizer adam or lamb, not sgd"},
      {"--optimizer sgd --adam-beta1 0.8", 1,
       "--adam-beta1: goes with --optimizer adam or lamb, not sgd"},
      {"--plan --plan-zero 0 --use-distributed-optimizer", 1,
       "--plan-zero: 0 contradicts --use-distributed-optimizer: leave one of them out"},
      {"--swiglu", 1,
       "--swiglu: needs --normalization RMSNorm: the blocks are GPT-2's, or Llama's, which have "
       "--swiglu, --normalization RMSNorm, --disable-bias-linear and --position-embedding-type "
       "rope"},
      {"--normalization BatchNorm", 1,
       "--normalization: 'BatchNorm' is not known: LayerNorm, RMSNorm"},
      {"--model llama-1b --num-query-groups 5", 1,
       "--num-query-groups: 5 does not divide --num-attention-heads 32"},
      {"--model llama-1b --position-embedding-type learned_absolute", 1,
       "--position-embedding-type: learned_absolute contradicts --model llama-1b: the blocks are "
       "GPT-2's, or Llama's, which have --swiglu, --normalization RMSNorm, --disable-bias-linear "
       "and "
       "--position-embedding-type rope"},
      {"--model llama-1b --rotary-percent 0.5", 1,
       "--rotary-percent: 0.5: Llama's heads rotate as a whole: leave it out"},
      {"--model llama-1b --tensor-model-parallel-size 16", 16,
       "--num-query-groups: num_query_groups (8) must be a multiple of tensor_model_parallel_size "
       "(16)."},
      {"--lr-decay-style step", 1,
       "--lr-decay-style: 'step' is not known: constant, linear, cosine"},
      {"--recompute-granularity some", 1,
       "--recompute-granularity: 'some' is not known: selective, full"},
      {"--device tpu", 1, "--device: 'tpu' is not known: auto, cpu, cuda, cuda:N"},
      {"--device cuda:x", 1, "--device: 'cuda:x' is not known: auto, cpu, cuda, cuda:N"},
      {"--tokenizer-type HuggingFaceTokenizer", 1,
       "--tokenizer-type: HuggingFaceTokenizer needs --vocab-file, the model's tokenizer.json"},
      {"--tokenizer-type HuggingFaceTokenizer --vocab-file /none/tokenizer.json", 1,
       "--tokenizer-type: HuggingFaceTokenizer: --vocab-file '/none/tokenizer.json' cannot be "
       "read: "
       "No such file or directory"},
      {"--tokenizer-type HuggingFaceTokenizer --vocab-size 9 --merge-file m", 1,
       "--merge-file: is not read for HuggingFaceTokenizer: --vocab-file names tokenizer.json"},
      {"--tokenizer-type Foo", 1,
       "--tokenizer-type: 'Foo' is not a known tokenizer: GPT2BPETokenizer, HuggingFaceTokenizer, "
       "bytes, NullTokenizer"},
      {"--tokenizer-type BertWordPieceCase", 1,
       "--tokenizer-type: BertWordPieceCase is the tokenizer of BERT's models, and this is a GPT: "
       "GPT2BPETokenizer, HuggingFaceTokenizer, bytes, NullTokenizer"},
      {"--save-interval 5", 1, "--save-interval: needs --save DIR"},
      {"--exit-on-missing-checkpoint", 1, "--exit-on-missing-checkpoint: needs --load DIR"},
      {"--position-embedding-type alibi", 1,
       "--position-embedding-type: 'alibi' is not known: learned_absolute, rope"},
      {"--position-embedding-type rope --rotary-percent 0.01", 1,
       "--rotary-percent: 0.01 of a head of 64 dimensions rotates 0 of them, and rotation needs "
       "pairs: "
       "choose another share, --hidden-size or --num-attention-heads"},
      {"--initial-loss-scale 2 --min-loss-scale 4", 1,
       "--initial-loss-scale: 2 is less than --min-loss-scale 4"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.flags));
    CHECK(error_of(base + row.flags, row.world) == row.message);
  }
  CHECK(
      error_of("--train-iters 1") ==
      "--data-path: is missing: name a dataset made by 'tally-train prepare', or give --mock-data");
  CHECK(error_of("--mock-data") ==
        "--train-iters: is missing: give --train-iters, --train-samples or --epochs");
  CHECK(error_of(base + "--epochs 2") ==
        "--epochs: contradicts --train-iters: give one length of training");
  CHECK(error_of("--mock-data --epochs 2") ==
        "--epochs: random tokens (--mock-data) have no end: give --train-iters");
  CHECK(error_of("--epochs 2 --data-path 1 a 2 b") ==
        "--epochs: counts the passes over one dataset, and 2 are blended: give --train-samples");
  CHECK(error_of("--epochs 1 --data-path /none/x").rfind("--epochs: ", 0) == 0);
  CHECK(error_of("--train-iters 1 --data-path a b") ==
        "--data-path: several datasets are given as pairs of a weight and a prefix (0.7 A 0.3 B), "
        "and 'a' is not a weight");
  CHECK(error_of("--train-iters 1 --data-path 1 a 2") ==
        "--data-path: several datasets are given as pairs of a weight and a prefix (0.7 A 0.3 B), "
        "and '2' has no prefix after it");
  CHECK(error_of("--train-iters 1 --data-path 0 a 2 b") ==
        "--data-path: the weight 0 of a is not a positive number");
  CHECK(error_of(base + "--text x") ==
        "--text: is read by 'tally-train evaluate'; 'tally-train prepare' makes a dataset for "
        "training");
  CHECK(error_of(base + "--stride 4") == "--stride: is read by 'tally-train evaluate' only");
  CHECK(error_of(base + "--load-hf /none") ==
        "--load-hf: '/none' cannot be read: No such file or directory");
  CHECK(error_of("--mock-data --train-samples 3 --global-batch-size 4") ==
        "--train-samples: 3 is less than one step of --global-batch-size 4");
  CHECK(error_of("--mock-data --train-samples 8 --lr-decay-iters 4") ==
        "--lr-decay-iters: expected sample-based learning rate decay: --train-samples goes with "
        "--lr-decay-samples");
}

TEST_CASE("a blend of datasets: pairs of weight and prefix") {
  const Config c = parse("--train-iters 1 --data-path 0.7 a 3 b");
  CHECK(c.data.paths == std::vector<std::string>{"a", "b"});
  CHECK(c.data.weights == std::vector<double>{0.7, 3});
  CHECK(parse("--train-iters 1 --data-path a").data.weights.empty());
}

TEST_CASE("--help lists every flag, even with a wrong one") {
  try {
    parse("--nonsense --help");
    FAIL("no help");
  } catch (const HelpRequest& help) {
    for (const std::string& flag : flag_names())
      CHECK_MESSAGE(help.text.find(flag) != std::string::npos, flag);
    for (const char* group :
         {"Model:", "Training:", "Optimizer:", "Precision:", "Data:", "Device:"})
      CHECK_MESSAGE(help.text.find(group) != std::string::npos, std::string(group));
  }
}

TEST_CASE("docs/flags.md is the table that parses") {
  std::ifstream in(std::string(TALLY_SOURCE_DIR) + "/docs/flags.md");
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  CHECK_MESSAGE(text == flags_reference(), "renew it: tally-train reference > docs/flags.md");
}

TEST_CASE("rotary flags without rotary positions have no effect, and that is said") {
  const Config c = parse(base + "--rotary-base 5000");
  REQUIRE(c.notices.size() == 1);
  CHECK(c.notices[0] == "--rotary-base has no effect: this model's positions are a learned table");
  CHECK(parse(base + "--rotary-base 5000 --position-embedding-type rope").notices.empty());
}

TEST_CASE("--rehearse: a layout without its other ranks") {
  const Config c = parse(
      "--train-iters 3 --seq-length 64 --num-layers 8 --rehearse 2x4x3:1 --save s --load l "
      "--network 25,10,400,5 --global-batch-size 12");
  CHECK(c.rehearsal.asked);
  CHECK(c.rehearsal.stage == 1);
  CHECK(c.tensor_parallel == 2);
  CHECK(c.pipeline_parallel == 4);
  CHECK(c.data_parallel == 3);
  CHECK(c.world_size == 24);
  CHECK(c.data.mock);
  CHECK(c.save_dir.empty());
  CHECK(c.load_dir.empty());
  CHECK(c.notices.empty());
  CHECK(parse("--train-iters 3 --rehearse 1x1x2 --record r.json").notices.back() ==
        "accepted without effect: --record (a rehearsal writes none)");
  CHECK(c.rehearsal.network_rate == 25e9);
  CHECK(c.rehearsal.network_seconds == doctest::Approx(10e-6));
  CHECK(c.rehearsal.node_rate == 400e9);
  CHECK(parse("--train-iters 3 --rehearse 1x1x2 --network 5,1").rehearsal.node_rate == 5e9);
  for (const char* wrong : {"2", "2x4", "2x4x0", "ax1x1", "1x1x1:", "1x1x1:0:0", "1x1x1x1"})
    CHECK(error_of(base + "--rehearse " + wrong) ==
          std::string("--rehearse: '") + wrong +
              "' is not a valid layout: TPxPPxDP or TPxPPxDP:STAGE, as 2x4x4:0");
  CHECK(error_of(base + "--rehearse 1x4x1:4") ==
        "--rehearse: '1x4x1:4': there are 4 stages, numbered from 0");
  CHECK(error_of(base + "--rehearse 2x1x1", 2) ==
        "--rehearse: is the work of one rank on one device, and 2 processes were started");
  CHECK(error_of(base + "--rehearse 2x1x1 --tensor-model-parallel-size 4") ==
        "--rehearse: its layout has 2 and --tensor-model-parallel-size is 4: leave "
        "--tensor-model-parallel-size out");
  CHECK(error_of(base + "--rehearse 2x1x1 --skip-train") ==
        "--rehearse: rehearses training: leave out --skip-train");
  CHECK(error_of(base + "--rehearse 2x1x1 --reference") ==
        "--rehearse: rehearses the explicit model: leave out --reference");
  CHECK(error_of(base + "--rehearse 2x1x1 --plan") ==
        "--rehearse: measures what --plan estimates: give one of them");
  CHECK(parse("--train-samples 300 --rehearse 1x1x2 --global-batch-size 16 "
              "--rampup-batch-size 4 4 100")
            .rampup.start == 0);
  CHECK(error_of(base + "--network 5,1") ==
        "--network: says what a rehearsal is to assume: give --rehearse with it");
  for (const char* wrong : {"5", "5,1,2", "0,1", "a,1", "5,-1"})
    CHECK(error_of(base + "--rehearse 1x1x2 --network " + wrong).find("--network: '") == 0);
}

TEST_CASE("--profile-counters: one process, after the steps that time algorithms, no CUDA graphs") {
  const std::string counters = base + "--profile-counters --profile-stop 5 ";
  const Config c = parse(counters + "--profile-start 3");
  CHECK(c.profile_counters);
  CHECK(!c.cuda_graph);
  CHECK(c.notices.size() == parse(base).notices.size() + 1);
  CHECK(c.notices.back().find("no CUDA graphs") != std::string::npos);
  CHECK(parse(base + "--profile-start 3 --profile-stop 5").cuda_graph);
  CHECK(error_of(counters + "--profile-start 2") ==
        "--profile-start: the first 2 iterations time algorithms, which --profile-counters would "
        "disturb: give 3 or later");
  CHECK(error_of(counters + "--profile-start 3 --time-phases") ==
        "--profile-counters: contradicts --time-phases: leave one out");
  const std::string explains = base + "--explain ";
  CHECK(error_of(explains + "--time-phases") ==
        "--explain: contradicts --time-phases: leave one out");
  CHECK(error_of(explains + "--profile-start 3 --profile-stop 5") ==
        "--explain: contradicts --profile-start, as CUPTI serves one at a time: leave one out");
  CHECK(error_of(counters + "--profile-start 3", 2).find("this run has 2: start one") !=
        std::string::npos);
}
