#!/usr/bin/env python3
"""workflows/gpt2-wikitext2.yaml: --tag small to its tables and chart, its jobs, its reading of other programs' logs."""
import resource

import golden
from golden import SOURCE, check, tally

WORKFLOW = str(SOURCE / "workflows/gpt2-wikitext2.yaml")
LOGS = SOURCE / "tests/acceptance/workflows/logs"
PARAMETERS = ("precision", "batch_size", "epochs", "train_samples", "eval_samples")


def small(cwd):
    tally("run", WORKFLOW, "--tag", "small", "-o", "run", cwd=cwd)
    machine = golden.machine_of("run", cwd)
    golden.compare("gpt2_wikitext2.txt", golden.shown("run", cwd / "run/000000", cwd, PARAMETERS, machine))
    # Perplexity is the exponential of the loss, and a model of bytes that has learned anything is below 257.
    table = golden.tables("run", cwd, kept=("perplexity", "eval_loss", "eval_accuracy"))["metrics"]
    for row in table[1:]:
        cells = dict(zip(table[0], row))
        check(1 < float(cells["perplexity"]) < 257, f"perplexity {cells['perplexity']}")
        check(0 < float(cells["eval_accuracy"]) < 1, f"accuracy {cells['eval_accuracy']}")
    # The document's choice on the command line: metric and precision.
    tally("plot", "run", "--table", "metrics", "--kind", "bar", "-x", "machine", "--metric",
          "train_samples_per_second,eval_samples_per_second", "--where", "precision == 'fp32'", "-o", "fp32.svg", cwd=cwd)
    check((cwd / "fp32.svg").read_text().count("<title>") == 2, "two bars: training and evaluation")


def own_text(cwd):
    """A text of WikiText-2's format, named by a relative path; weights of an earlier run."""
    lines = [" \n", " = Robert Boulter = \n", " \n"] + [" Robert Boulter is an English film , television actor . \n"] * 200
    (cwd / "wiki.train.raw").write_text("".join(lines))
    (cwd / "wiki.valid.raw").write_text("".join(lines[:60]))
    texts = ["--set", "train_text=wiki.train.raw", "--set", "valid_text=wiki.valid.raw"]
    tally("run", WORKFLOW, "--tag", "small", "-o", "first", "--set", "precision=fp32", *texts, cwd=cwd)
    weights = next((cwd / "first/000000").glob("*_train/work/model"))
    tally("run", WORKFLOW, "--tag", "small", "-o", "second", "--set", "precision=fp32", *texts, "--set",
          f"weights={weights.relative_to(cwd)}", cwd=cwd)
    losses = [float(golden.tables(run, cwd, kept=("eval_loss",))["metrics"][1][13]) for run in ("first", "second")]
    check(losses[1] < losses[0] - 0.1, f"the second run goes on from the first one's weights: {losses}")


def logs(cwd):
    names = ",".join(str(LOGS / name) for name in ("gpu-a.log", "gpu-b.log"))
    tally("run", WORKFLOW, "--tag", "logs", "-o", "run", "--set", f"log={names}", cwd=cwd)
    values = ("machine", "batch_size", "epochs", "train_samples", "train_runtime", "train_samples_per_second", "train_loss",
              "eval_samples", "eval_runtime", "eval_samples_per_second", "eval_loss", "eval_accuracy", "perplexity",
              "train_steps_per_second", "eval_steps_per_second")
    golden.compare("gpt2_wikitext2_logs.txt", golden.shown("run", cwd / "run/000000", cwd, values))
    for log, words in (("", "there is no log ''. Name logs with --set log=A.log,B.log"), ("none.log", "there is no log '"),
                       (str(LOGS / "README.md"), "has no metrics of run_clm.py")):
        _, err = tally("run", WORKFLOW, "--tag", "logs", "-o", "wrong", "--set", f"log={log}", cwd=cwd, expected=1)
        check(words in err, err)


def mistakes(cwd):
    for arguments, code, words in (
            (["--tag", "smal"], 2, "did you mean 'small'"),
            (["--tag", "small", "logs"], 2, "check_tags"),
            (["--tag", "small", "--set", "batch_size=many"], 2, "'many' is not a valid int"),
            (["--tag", "small", "--set", "precison=fp32"], 2, "precison"),
            (["--tag", "small", "--set", "train_text=nowhere"], 1, f"there is no text '{cwd}/nowhere'"),
            (["--tag", "small", "--set", "valid_text=nowhere"], 1, f"there is no text '{cwd}/nowhere', which valid_text"),
            (["--tag", "small", "--set", "weights=nowhere"], 1,
             f"there is no config.json in '{cwd}/nowhere', which weights names. Name a folder of Hugging Face"),
            (["--set", "precision=fp17"], 2, "'precision' has to be one of fp32, tf32, fp16, bf16, not 'fp17'"),
            (["--set", "batch_size=0"], 2, "--set batch_size=0: parameter 'batch_size' has to be >= 1, not '0'"),
            (["--set", "epochs=-1"], 2, "--set epochs=-1: parameter 'epochs' has to be >= 1, not '-1'")):
        out, err = tally("run", WORKFLOW, "-o", "run", *arguments, cwd=cwd, expected=code)
        check(words in out + err, f"{arguments}: no '{words}' in\n{out}{err}")


def out_of_memory(cwd):
    """A training that does not fit is a row that says so; the other one is measured."""
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    _, err = tally("run", WORKFLOW, "--tag", "small", "-o", "run", "--set", "precision=fp32", "--set", "batch_size=8,400",
                   "--set", "size=gpt2 --num-layers 40 --hidden-size 64 --num-attention-heads 4", cwd=cwd)
    check("expected: out of memory" in err, err)
    rows = golden.tables("run", cwd, kept=("batch_size",))
    check([row[1] for row in rows["memory"][1:]] == ["completed", "out_of_memory"], str(rows["memory"]))
    check([row[2:6] for row in rows["samples_per_second"][1:]] == [["8", "N", "N", "N"], ["400", "-", "-", "-"]], str(rows))


def jobs(cwd):
    text = "".join(golden.script("gpt2-wikitext2.yaml", number, cwd, "--tag", "slurm") for number in (1, 5))
    golden.compare("gpt2_wikitext2.job", text)


if __name__ == "__main__":
    golden.need(".deps/text/english.txt", ".deps/vocab/vocab.json")
    for test in (jobs, logs, mistakes, small, own_text, out_of_memory):
        golden.in_a_folder(test)
