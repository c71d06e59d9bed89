#!/usr/bin/env python3
"""workflows/forge.yaml: --tag small to its table and chart, the model's size, GPT-NeoX's formula, its jobs."""
import golden
from golden import SOURCE, check, tally

WORKFLOW = str(SOURCE / "workflows/forge.yaml")


def small(cwd):
    """TFLOP/s are Narayanan's formula times the rate; 2 layers of 64, 32 tokens, 1,000 words."""
    _, err = tally("run", WORKFLOW, "--tag", "small", "-o", "run", "--set", "recompute=none,full", cwd=cwd)
    check("warning" not in err, err)
    golden.compare("forge.txt", golden.shown("run", cwd / "run/000000", cwd, ("gpus", "global_batch")))
    table = golden.tables("run", cwd, kept=("gpus", "of_each_gpu", "tflops"))["forge"]
    for row in table[1:]:
        cells = dict(zip(table[0], row))
        passes = 4 if cells["Recompute"] == "full" else 3
        layers, h, t, words = 2, 64, 32, 1000
        flops = 24 * passes * layers * h**2 * (1 + t / (6 * h) + words / (16 * layers * h))
        ratio = float(cells["TFLOP/s per GPU, as GPT-NeoX counts"]) / (float(cells["Tokens/s of each GPU"]) * flops / 1e12)
        check(abs(ratio - 1) < 1e-6, f"{cells}: {ratio}")


def size(cwd):
    """FORGE-S has 1.44 billion parameters, and 16 samples of each GPU in a step."""
    out, _ = tally("run", WORKFLOW, "-n", "-o", "run", "--set", "gpus_here=8", "--set", "gpus=1,8", cwd=cwd)
    check("1.4 billion parameters on 8 GPUs (tensor 1 x pipeline 1 x data 8)" in out and "global_batch=128" in out, out)
    check("of H100: fits" in out, out)
    out, _ = tally("run", WORKFLOW, "-n", "-o", "run", "--set", "gpus_here=2", "--set", "gpus=1,4", cwd=cwd)
    check("1 point, 1 excluded" in out, out)


def jobs(cwd):
    text = golden.script("forge.yaml", 1, cwd, "--tag", "slurm", "--set", "gpus_here=4", "--set", "gpus=1,4",
                         "--set", "data_path=/data/all_text_document")
    for words in ("--optimizer lamb", "--use-distributed-optimizer", "--recompute-granularity full", "--nproc-per-node 4",
                  "--data-path /data/all_text_document", "--num-layers 24 --hidden-size 2064 --num-attention-heads 24"):
        check(words in text, f"no '{words}' in\n{text}")


def mistakes(cwd):
    for arguments, words in (
            (["--tag", "smal"], "did you mean 'small'"),
            (["--set", "precision=fp17"], "'precision' has to be one of fp32, tf32, bf16, fp16, not 'fp17'"),
            (["--set", "recompute=some"], "'some'"), (["--set", "micro_batch=0"], "has to be >= 1, not '0'")):
        out, err = tally("run", WORKFLOW, "-o", "run", "-n", *arguments, cwd=cwd, expected=2)
        check(words in out + err, f"{arguments}: no '{words}' in\n{out}{err}")


if __name__ == "__main__":
    for test in (mistakes, size, jobs, small):
        golden.in_a_folder(test)
