#include "src/config/megatron_flags.h"

#include <sstream>
#include <string_view>

namespace tally::train {

const std::vector<UnsupportedFlags>& unsupported_flags() {
  static const std::vector<UnsupportedFlags> table{
      // Old names, and flags whose work another flag does.
      {"it is --micro-batch-size now", "--batch-size"},
      {"it is --tensor-model-parallel-size now", "--model-parallel-size"},
      {"it is --lr-warmup-fraction now", "--warmup"},
      {"it is --recompute-activations now",
       "--checkpoint-activations --distribute-checkpointed-activations"},
      {"give --finetune and --load DIR", "--pretrained-checkpoint"},
      {"name the checkpoint's own folder: --load DIR/iter_0000010", "--ckpt-step"},
      {"the flags decide: give those of the first run again",
       "--use-checkpoint-opt_param-scheduler "
       "--use-checkpoint-opt-param-scheduler"},
      {"flags come from a file as @FILE", "--yaml-cfg --data-args-path --per-split-data-args-path"},
      {"--epochs evaluates on the whole validation split",
       "--full-validation --multiple-validation-sets --test-mode"},
      {"--vocab-size and --make-vocab-size-divisible-by give it",
       "--padded-vocab-size "
       "--vocab-extra-ids"},
      {"give --profile-start and --profile-stop, or run it under nsys profile",
       "--profile --profile-step-start --profile-step-end --profile-ranks --use-pytorch-profiler "
       "--pytorch-profiler-collect-* --record-memory-history --memory-snapshot-path"},
      {"--tokenizer-type names the tokenizer, and --vocab-file and --merge-file its files",
       "--tokenizer-model --tokenizer-metadata --tiktoken-* --trust-remote-code "
       "--legacy-tokenizer --tokenizer-hf-* --tokenizer-sentencepiece-* --tokenizer-prompt-format"},
      // The model.
      {"models are dense, without experts: leave it out",
       "--num-experts --moe-* --expert-tensor-parallel-size --overlap-moe-expert-parallel-comm "
       "--delay-wgrad-compute"},
      {"see --group-query-attention and --kv-channels for what there is: leave it out",
       "--multi-latent-attention --q-lora-rank --kv-lora-rank --qk-head-dim --qk-pos-emb-head-dim "
       "--v-head-dim "
       "--rotary-scaling-factor --mscale --mscale-all-dim --cache-mla-latents "
       "--qk-l2-norm --qk-clip --softmax-type --window-size --window-attn-skip-freq "
       "--attention-output-gate --apply-query-key-layer-scaling"},
      {"blocks are GPT-2's or Llama's, see --swiglu: leave it out",
       "--squared-relu --quick-geglu --onnx-safe --activation-func-clamp-value "
       "--glu-linear-offset "
       "--apply-layernorm-1p --apply-residual-connection-post-layernorm "
       "--fp32-residual-connection --use-fused-weighted-squared-relu --use-te-activation-func"},
      {"positions are learned or rotary, see --position-embedding-type: leave it out",
       "--rotary-interleaved --rotary-seq-len-interpolation-factor --no-rope-freq --rope-type "
       "--mrope-section --no-position-embedding "
       "--relative-attention-num-buckets --relative-attention-max-distance"},
      {"weights are drawn from a normal distribution of --init-method-std: leave it out",
       "--init-method-xavier-uniform --embedding-init-method-std --data-parallel-random-init"},
      {"tally-train trains GPT models and encoders on text: leave it out",
       "--mtp-* --spec --hybrid-* --mamba-* --is-hybrid-model --disable-mamba-mem-eff-path "
       "--heterogeneous-layers-* --retro-* --bert-load --ict-* --biencoder-* --titles-data-path "
       "--query-in-block-prob --use-one-sent-docs --evidence-data-path --retriever-* "
       "--block-data-path --embedding-path --indexer-* --img-h --img-w "
       "--num-channels --patch-dim --classes-fraction --data-per-class-fraction "
       "--no-data-sharding --head-lr-mult --vision-* --swin-backbone-type --mask-type "
       "--mask-factor --short-seq-prob --sample-rate --iter-per-epoch --dino-* "
       "--encoder-num-layers --decoder-num-layers --encoder-seq-length --decoder-seq-length "
       "--sft --sft-* --perform-rl-step --rl-* --grpo-* --langrl-* --fim-*"},
      {"tally-train does not generate text: leave it out",
       "--inference-* --max-tokens-to-oom --output-bert-embeddings --flash-decode "
       "--use-legacy-static-engine --decode-only-cuda-graphs --symmetric-ar-type "
       "--nccl-all-reduce-for-prefill --mlp-chunks-for-prefill --disable-chunked-prefill "
       "--enable-chunked-prefill"},
      // Training.
      {"the optimizer is AdamW, LAMB or SGD with its state in fp32 on the device: leave it out",
       "--muon-* --optimizer-cpu-offload --optimizer-offload-fraction "
       "--use-torch-optimizer-for-cpu-offload --overlap-cpu-optimizer-d2h-h2d "
       "--dump-param-to-param-group-map --no-pin-cpu-grads --no-pin-cpu-params "
       "--use-precision-aware-optimizer --main-grads-dtype --main-params-dtype --exp-avg-dtype "
       "--exp-avg-sq-dtype --cpu-offloading-num-layers"},
      {"the learning rate is constant, linear or cosine, one for all parameters: leave it out",
       "--lr-wsd-decay-style --lr-wsd-decay-samples --lr-wsd-decay-iters --decoupled-lr "
       "--decoupled-min-lr"},
      {"every step trains on a whole batch: leave it out",
       "--decrease-batch-size-if-needed --iterations-to-skip --phase-transition-iterations "
       "--result-rejected-tracker-filename"},
      {"a loss or gradient that is not finite always ends the run: leave it out",
       "--no-check-for-nan-in-loss-and-grad --check-for-spiky-loss --check-for-large-grads "
       "--rerun-mode --error-injection-rate --error-injection-type"},
      {"--recompute-granularity says what is recomputed: leave it out",
       "--recompute-modules --distribute-saved-activations"},
      {"see --precision and docs/fp8.md for what there is: leave it out",
       "--fp8-margin --fp8-interval --fp8-amax-history-len --fp8-amax-compute-algo --fp8-wgrad "
       "--fp8-param-gather --fp8-quantizer-factory --fp8-output-proj --fp8-dot-product-attention "
       "--fp8-multi-head-attention --fp8-param --no-fp8-wgrad --fp4-* --keep-fp8-transpose-cache "
       "--kitchen-* "
       "--fp16-lm-cross-entropy --grad-reduce-in-bf16 --disable-bf16-reduced-precision-matmul "
       "--reuse-grad-buf-for-mxfp8-param-ag"},
      // Processes.
      {"docs/distributed.md says what is divided and overlapped: leave it out",
       "--cp-comm-type --hierarchical-context-parallel-sizes --tp-comm-* --disable-tp-comm-* "
       "--decoder-first-pipeline-num-layers --decoder-last-pipeline-num-layers "
       "--pipeline-model-parallel-* --num-virtual-stages-per-pipeline-rank "
       "--microbatch-group-size-per-virtual-pipeline-stage --no-overlap-p2p-communication "
       "--overlap-p2p-communication-warmup-flush --no-scatter-gather-tensors-in-pipeline "
       "--use-ring-exchange-p2p --defer-embedding-wgrad-compute --wgrad-deferral-limit "
       "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split "
       "--no-clone-scatter-output-in-embedding --use-tp-pp-dp-mapping "
       "--standalone-embedding-stage"},
      {"processes divide the optimizer's state and the gradients, not the weights, see "
       "--data-parallel-sharding-strategy: leave it out",
       "--overlap-param-gather-with-optimizer-step --no-align-param-gather "
       "--use-megatron-fsdp --use-custom-fsdp --use-torch-fsdp2 "
       "--torch-fsdp2-no-reshard-after-forward --init-model-with-meta-device --fsdp-* "
       "--megatron-fsdp-* --enable-full-sharding-in-hsdp "
       "--suggested-communication-unit-size --num-distributed-optimizer-instances"},
      {"see --ddp-bucket-size and docs/distributed.md: leave it out",
       "--ddp-num-buckets --ddp-pad-buckets-for-high-nccl-busbw --ddp-average-in-collective "
       "--ddp-reduce-scatter-with-fp32-accumulation --no-align-grad-reduce "
       "--no-gradient-reduce-div-fusion --use-nccl-ub --disable-symmetric-registration "
       "--use-sharp --sharp-enabled-group --nccl-communicator-config-path "
       "--high-priority-stream-groups --disable-gloo-process-groups "
       "--distributed-timeout-seconds-after-init --lazy-mpu-init"},
      {"--no-cuda-graph turns graphs off, which are recorded otherwise: leave it out",
       "--enable-cuda-graph --external-cuda-graph --cuda-graph-* --te-rng-tracker"},
      // Files and logs.
      {"checkpoints are safetensors, see --save: leave it out",
       "--ckpt-* --no-ckpt-fully-parallel-save --dist-ckpt-* --use-dist-ckpt "
       "--auto-detect-ckpt-format "
       "--async-save --use-persistent-ckpt-worker --distrib-optim-fully-reshardable-mem-efficient "
       "--load-main-params-from-ckpt --no-strict-fsdp-dtensor-load --replication "
       "--replication-jump "
       "--replication-factor"},
      {"--save-interval says when checkpoints are written, and all are kept: leave it out",
       "--save-retain-interval --non-persistent-*"},
      {"datasets are read from files: leave it out",
       "--no-mmap-bin-files --object-storage-cache-path --disable-msc "
       "--allow-ambiguous-pad-tokens"},
      {"--record FILE has what is measured: leave it out",
       "--log-params-norm --log-num-zeros-in-grad --log-energy --log-max-attention-logit "
       "--log-memory-interval --log-straggler --disable-straggler-on-startup --straggler-* "
       "--config-logger-dir --run-workload-inspector-server --no-one-logger --one-logger-* "
       "--app-tag-run-name --app-tag-run-version"},
      {"the workflow engine or the scheduler starts a job again: leave it out",
       "--adlr-autoresume --adlr-autoresume-interval --inprocess-* --enable-ft-package "
       "--calc-ft-timeouts"},
      {"leave it out",
       "--use-legacy-models --enable-experimental --train-sync-interval --no-initialization "
       "--use-mp-args-from-checkpoint-args --no-use-tokenizer-model-from-checkpoint-args"},
  };
  return table;
}

const char* unsupported_advice(const std::string& flag) {
  for (const UnsupportedFlags& group : unsupported_flags()) {
    std::istringstream names(group.names);
    for (std::string name; names >> name;) {
      const bool family = name.back() == '*';
      if (family && flag.rfind(std::string_view(name).substr(0, name.size() - 1), 0) == 0)
        return group.what_to_do;
      if (!family && flag == name) return group.what_to_do;
    }
  }
  return nullptr;
}

}  // namespace tally::train
