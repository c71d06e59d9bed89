#include "src/config/flag_values.h"

namespace tally::train {

KnownValues flag_values() {
  return {
      {"--model",
       {"gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "llama-1b", "llama-8b", "bert-base",
        "bert-large", "distilbert"}},
      {"--normalization", {"LayerNorm", "RMSNorm"}},
      {"--position-embedding-type", {"learned_absolute", "rope"}},
      {"--recompute-granularity", {"selective", "full"}},
      {"--optimizer", {"adam", "lamb", "sgd"}},
      {"--lr-decay-style", {"constant", "linear", "cosine"}},
      {"--weight-decay-incr-style", {"constant", "linear", "cosine"}},
      {"--precision", {"fp32", "tf32x3", "tf32", "bf16", "fp16", "fp64"}},
      {"--fp32-attention", {"ieee", "tf32x3"}},
      {"--fp8-format", {"hybrid", "e4m3"}},
      {"--fp8-recipe", {"tensorwise"}},
      {"--task", {"pretrain", "classify", "squad"}},
      {"--plan-device", {"H200", "H100", "GH200", "B200", "A100-80GB", "A100-40GB"}},
      {"--tokenizer-type",
       {"GPT2BPETokenizer", "HuggingFaceTokenizer", "bytes", "BertWordPieceLowerCase",
        "BertWordPieceCase", "NullTokenizer"}},
      {"--log-format", {"jupiter", "megatron"}},
      {"--eval-mode", {"reduce", "gather"}},
      {"--device", {"auto", "cpu", "cuda"}},
      {"--data-parallel-sharding-strategy", {"no_shard", "optim", "optim_grads"}},
      {"--distributed-backend", {"nccl", "mpi", "sockets"}},
  };
}

}  // namespace tally::train
