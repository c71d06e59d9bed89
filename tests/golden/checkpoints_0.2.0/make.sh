#!/bin/sh
# make.sh TALLY_TRAIN: makes these checkpoints, which have no checksums, with tally-train 0.2.0 at 414eca5. They are
# inputs of tests as that version wrote them; losses.txt has what it printed when one process resumed from each.
set -e
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
flags="--num-layers 1 --hidden-size 8 --num-attention-heads 2 --seq-length 8 --tokenizer-type bytes --device cpu --mock-data
  --micro-batch-size 1 --global-batch-size 4 --lr 1e-2 --log-interval 1 --train-iters 6"
rm -rf one two four losses.txt
"$1" $flags --exit-interval 3 --save one
"$1" $flags --exit-interval 3 --save two --nproc-per-node 2 --use-distributed-optimizer
"$1" $flags --exit-interval 3 --save four --nproc-per-node 4 --tensor-model-parallel-size 2 --use-distributed-optimizer
for parts in one two four; do
  rm -f "$parts/.tally-train.lock"
  echo "$parts $("$1" $flags --load "$parts" | grep -o 'lm loss: [^ ]*' | sed 's/lm loss: //' | tr '\n' ' ')" >>losses.txt
done
