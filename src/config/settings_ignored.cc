// Flags that command lines written for Megatron-LM have and that have no effect here.
#include "src/config/flags.h"
#include "src/config/settings.h"

namespace tally::train {

void add_ignored_settings(SettingTable* table, Flags* flags) {
  SettingTable& t = *table;
  Flags& f = *flags;
  t.group("Accepted for Megatron-LM's command lines, without effect");
  struct Ignored {
    const char* why;
    std::vector<const char*> without_value, with_value;
  };
  const std::vector<Ignored> all{
      {"attention always runs the fastest kernel that serves it",
       {"--use-flash-attn"},
       {"--attention-backend"}},
      {"always done, see --ddp-bucket-size", {"--overlap-grad-reduce"}, {}},
      {"always done, see --use-distributed-optimizer", {"--overlap-param-gather"}, {}},
      {"no TensorBoard log is written, see --record",
       {"--log-timers-to-tensorboard", "--log-batch-size-to-tensorboard",
        "--log-validation-ppl-to-tensorboard", "--log-memory-to-tensorboard",
        "--log-world-size-to-tensorboard", "--no-log-learnig-rate-to-tensorboard",
        "--no-log-loss-scale-to-tensorboard"},
       {"--tensorboard-dir", "--tensorboard-queue-size", "--tensorboard-log-interval"}},
      {"no data is sent to Weights & Biases, see --record",
       {},
       {"--wandb-project", "--wandb-entity", "--wandb-exp-name", "--wandb-save-dir"}},
      {"see --record", {"--log-progress"}, {"--logging-level"}},
      {"fused kernels are always used",
       {"--no-masked-softmax-fusion", "--no-bias-dropout-fusion", "--no-bias-swiglu-fusion",
        "--no-rope-fusion", "--no-gradient-accumulation-fusion", "--cross-entropy-loss-fusion",
        "--no-persist-layer-norm"},
       {"--cross-entropy-fusion-impl"}},
      {"there is one implementation of the model", {"--use-mcore-models"}, {"--transformer-impl"}},
      {"the model decides: GPT's GELU is OpenAI's, the tanh approximation, an encoder's is exact",
       {"--openai-gelu"},
       {}},
      {"every layer is treated alike", {}, {"--recompute-method", "--recompute-num-layers"}},
      {"gradients are always accumulated in fp32 or wider",
       {"--accumulate-allreduce-grads-in-fp32"},
       {}},
      {"softmax is always computed in fp32 or wider", {"--attention-softmax-in-fp32"}, {}},
      {"never applied", {"--no-query-key-layer-scaling"}, {}},
      {"the program chooses which messages overlap with GEMMs, see docs/distributed.md",
       {"--no-async-tensor-model-parallel-allreduce"},
       {}},
      {"initial weights depend on --seed alone", {"--use-cpu-initialization"}, {}},
      {"indexed datasets are memory-mapped", {}, {"--data-impl"}},
      {"samples are drawn in one order", {}, {"--dataloader-type"}},
      {"one thread reads ahead", {}, {"--num-workers", "--num-dataset-builder-threads"}},
      {"samples are made while training: there is no index to be cached",
       {},
       {"--data-cache-path", "--mid-level-dataset-surplus"}},
      {"attention has no mask in memory", {"--no-create-attention-mask-in-dataloader"}, {}},
      {"gradients lie in one flat buffer", {}, {"--DDP-impl"}},
      {"step times are in the record",
       {"--no-barrier-with-level-1-timing"},
       {"--timing-log-level", "--timing-log-option"}},
      {"no garbage collector runs here",
       {"--manual-gc", "--no-manual-gc-eval"},
       {"--manual-gc-interval", "--empty-unused-memory-level"}},
      {"--load always takes the model from its config.json", {"--use-checkpoint-args"}, {}},
      {"the flags always decide, see --lr-decay-style",
       {"--override-opt_param-scheduler", "--override-opt-param-scheduler"},
       {}},
      {"always done: SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 end the run after its step, with record "
       "and checkpoint",
       {"--exit-signal-handler"},
       {}},
      {"no state of a random generator is kept: random numbers follow from --seed and the step",
       {"--no-load-rng", "--no-save-rng"},
       {}}};
  for (const Ignored& group : all) {
    for (const char* flag : group.without_value) t.ignored(flag, false, group.why, &f.ignored);
    for (const char* flag : group.with_value) t.ignored(flag, true, group.why, &f.ignored);
  }
  // Every older launcher passes it, so a note each time would tell nothing.
  t.number("--local-rank,--local_rank", &f.local_rank, 0,
           "passed by launchers; the rank comes from the environment (docs/distributed.md)");
}

}  // namespace tally::train
