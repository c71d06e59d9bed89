// What command lines written for Megatron-LM carry and what is not needed here.
#include "src/config/flag_group.h"

namespace tally::train {

void declare_ignored_flags(CLI::App* app, Flags* f) {
  FlagGroup g(app, "Accepted for Megatron-LM's command lines, without effect");
  const char* attention = "attention always runs the fastest kernel that serves it";
  const char* fused = "fused kernels are always used";
  const char* tensorboard = "no TensorBoard log is written, see --record";
  g.ignored("--use-flash-attn", false, attention, f);
  g.ignored("--overlap-grad-reduce", false, "always done, see --ddp-bucket-size", f);
  for (const char* flag :
       {"--tensorboard-dir", "--tensorboard-queue-size", "--tensorboard-log-interval"})
    g.ignored(flag, true, tensorboard, f);
  for (const char* flag :
       {"--log-timers-to-tensorboard", "--log-batch-size-to-tensorboard",
        "--log-validation-ppl-to-tensorboard", "--log-memory-to-tensorboard",
        "--log-world-size-to-tensorboard", "--no-log-learnig-rate-to-tensorboard",
        "--no-log-loss-scale-to-tensorboard"})
    g.ignored(flag, false, tensorboard, f);
  for (const char* flag : {"--no-masked-softmax-fusion", "--no-bias-dropout-fusion",
                           "--no-gradient-accumulation-fusion"})
    g.ignored(flag, false, fused, f);
  g.ignored("--recompute-method", true, "every layer is treated alike", f);
  g.ignored("--recompute-num-layers", true, "every layer is treated alike", f);
  g.ignored("--accumulate-allreduce-grads-in-fp32", false,
            "gradients are always accumulated in fp32", f);
  g.ignored("--attention-softmax-in-fp32", false, "softmax is always computed in fp32", f);
  g.ignored("--no-query-key-layer-scaling", false, "never applied", f);
  g.ignored("--no-async-tensor-model-parallel-allreduce", false,
            "no tensor parallelism in this run", f);
  g.ignored("--data-impl", true, "datasets are memory-mapped", f);
  g.ignored("--dataloader-type", true, "samples are drawn in one order", f);
  g.ignored("--num-workers", true, "one thread reads ahead", f);
  g.ignored("--DDP-impl", true, "gradients lie in one flat buffer", f);
  g.ignored("--timing-log-level", true, "step times are in the record", f);
}

}  // namespace tally::train
