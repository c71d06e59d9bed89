// Command lines of published runs.
#pragma once

#include <string>

#include "tests/train/config/parse.h"

// The JUPITER NLP benchmark on JUWELS Booster: 8 and 96 nodes of four A100.
inline const std::string jupiter =
    "--plan --seq-length 2048 --position-embedding-type rope --sequence-parallel "
    "--use-distributed-optimizer --recompute-activations --micro-batch-size 1 ";
inline const std::string jupiter_13b =
    jupiter +
    "--num-layers 40 --hidden-size 5120 --num-attention-heads 32 --fp16 --global-batch-size 1024 "
    "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --plan-gpus 32 ";
inline const std::string jupiter_175b =
    jupiter +
    "--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --bf16 --global-batch-size 96 "
    "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 8 --plan-nodes 96 ";
