#!/usr/bin/env python3
"""workflows/transformers.yaml: --tag small to its tables and charts, its jobs, what does not fit, the notebook's formula."""
import resource

import golden
from golden import SOURCE, check, tally

WORKFLOW = str(SOURCE / "workflows/transformers.yaml")
PARAMETERS = ("sequence", "batch_size", "accumulation", "gpus", "notebook_batch", "notebook_memory", "notebook_rate",
              "notebook_tflops")


def small(cwd):
    tally("run", WORKFLOW, "--tag", "small", "-o", "run", cwd=cwd)
    golden.compare("transformers.txt", golden.shown("run", cwd / "run/000000", cwd, PARAMETERS))


def notebook_formula(cwd):
    """TFLOP/s of the table are the notebook's tflops() times the rate; 2 layers of 64, 32 tokens, 1,000 words."""
    tally("run", WORKFLOW, "--tag", "small", "-o", "run", "--set", "config=bert_4,bert_6,mbert_2", cwd=cwd)
    table = golden.tables("run", cwd, kept=("rate", "tflops", "gpus"))["transformers"]
    h, t, vocabulary, layers = 64, 32, 1000, 2
    forward = layers * ((4 * h * t**2 + 8 * t * h**2) + 16 * t * h**2) + 2 * t * h * vocabulary
    for row in table[1:]:
        cells = dict(zip(table[0], row))
        passes = 4 if cells["Recompute"] == "yes" else 3
        expected = float(cells["Samples/s"]) * passes * forward / 1e12 / int(cells["GPUs"])
        check(abs(float(cells["TFLOP/s per GPU"]) / expected - 1) < 1e-6, f"{cells}: expected {expected}")


def out_of_memory(cwd):
    """A row that does not fit says so, and the others are measured."""
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    _, err = tally("run", WORKFLOW, "--tag", "small", "-o", "run", "--set", "config=bert_1,gpt_1", "--set",
                   "batch_size=4,4000000", cwd=cwd)
    check("row 2: workpackage 1 (train) expected: out of memory" in err, err)
    table = golden.tables("run", cwd, kept=("batch_size",))["transformers"]
    at = {title: i for i, title in enumerate(table[0])}
    for row in table[1:]:
        fits = row[at["Batch"]] == "4"
        check(row[at["Outcome"]] == ("completed" if fits else "out_of_memory"), str(row))
        check(row[at["Samples/s"]] == ("N" if fits else "-"), str(row))
        check(row[at["GPU memory[GB]"]] == "-", f"on a CPU: {row}")


def labels(cwd):
    """What is changed from outside changes the label as well, and a contradiction is left out."""
    one = ["run", WORKFLOW, "--tag", "small", "-n", "--set", "config=bert_4,mbert_3"]
    out, _ = tally(*one, "--set", "gpus=2", cwd=cwd)
    check("parallel=data" in out and "parallel=zero2" in out, out)
    out, _ = tally(*one, "--set", "gpus=1", cwd=cwd)
    check("parallel=none" in out and "parallel=zero2" not in out, out)
    out, _ = tally(*one, "--set", "parallel=none", cwd=cwd)
    check("1 point, 1 excluded" in out and "where: ($gpus == 1) == ('$parallel' == 'none')" in out, out)


def find_batch(cwd):
    tally("run", WORKFLOW, "--tag", "small", "find_batch", "-o", "run", "--set", "config=bert_4,gpt_2,mbert_2", cwd=cwd)
    golden.compare("transformers_find_batch.txt", golden.shown("run", cwd / "run/000000", cwd, PARAMETERS))


def jobs(cwd):
    rows = ["--tag", "slurm", "--set", "gpus_here=2", "--set", "config=bert_1,bert_6,mbert_1,mbert_3_p2p_off,mgpt_2"]
    text = "".join(golden.script("transformers.yaml", number, cwd, *rows) for number in range(5))
    golden.compare("transformers.job", text)


def mistakes(cwd):
    for arguments, code, words in (
            (["--tag", "smal"], 2, "did you mean 'small'"),
            (["--set", "config=bert_9"], 2, "'bert_9'\nhint: did you mean 'bert_1'?"),
            (["--set", "batch_size=0"], 2, "--set batch_size=0: parameter 'batch_size' has to be >= 1, not '0'"),
            (["--set", "gpus=-1"], 2, "--set gpus=-1: parameter 'gpus' has to be >= 1, not '-1'"),
            (["--set", "precision=fp17"], 2, "'precision' has to be one of fp32, tf32, fp16, bf16, fp8, not 'fp17'"),
            (["--set", "gpus=two"], 2, "'two' is not a valid int"),
            (["--set", "config=bert_1", "--set", "parallel=zero3"], 2, "'zero3'"),
            (["--set", "config=bert_1", "--set", "recompute=maybe"], 2, "'maybe'"),
            (["--set", "config=bert_1", "--set", "fused_optimizer=true"], 2, "'true'"),
            (["--set", "config=bert_1", "--set", "peer_to_peer=0"], 2, "'0'"),
            (["--set", "gpus_here=1", "--set", "config=mbert_2"], 1, "the rules under 'where' exclude every point"),
            (["--tag", "small", "--set", "config=bert_1", "--set", "flags=--no-such-flag"], 1, "--no-such-flag")):
        dry = [] if code == 1 else ["-n"]
        out, err = tally("run", WORKFLOW, "-o", "run", *dry, *arguments, cwd=cwd, expected=code)
        check(words in out + err, f"{arguments}: no '{words}' in\n{out}{err}")


if __name__ == "__main__":
    for test in (jobs, mistakes, labels, notebook_formula, find_batch, small, out_of_memory):
        golden.in_a_folder(test)
