#!/usr/bin/env python3
"""workflows/llama.yaml: --tag small to its tables and chart, the layers that fit, the published numbers, 70B, its jobs."""
import golden
from golden import SOURCE, check, tally

WORKFLOW = str(SOURCE / "workflows/llama.yaml")
PARAMETERS = ("sequence", "gpus", "tensor", "pipeline", "global_batch", "planned_batch")


def small(cwd):
    _, err = tally("run", WORKFLOW, "--tag", "small", "-o", "run", cwd=cwd)
    check("warning" not in err, err)
    golden.compare("llama.txt", golden.shown("run", cwd / "run/000000", cwd, PARAMETERS))


def rehearsal(cwd):
    tally("run", WORKFLOW, "--tag", "small", "70b", "-o", "run", cwd=cwd)
    golden.compare("llama_70b.txt", golden.shown("run", cwd / "run/000000", cwd, PARAMETERS))


def plan(cwd):
    """The layout of 70B that the workflow names fits, by the planner's own words."""
    tally("run", WORKFLOW, "--tag", "70b", "plan", "-o", "run", cwd=cwd)
    table = golden.tables("run", cwd)["plan"]
    row = dict(zip(table[0], table[1]))
    check(row["Model"] == "llama-70b" and row["Fits"] == "true" and row["Planned tokens/s"] == "N", str(row))


def cuts(cwd):
    """As many layers as fit: one more does not, by tally-train --plan. The FLOPs that were cut are those of the record."""
    plan = ["run", WORKFLOW, "-n", "-o", "run"]
    out, _ = tally(*plan, "--set", "gpu=H100", "--set", "gpus=1,8", cwd=cwd)
    first, last = (int(out.split(f"#00000{n} train")[1].split("layers=")[1].split()[0]) for n in (0, 1))
    check(1 <= first < last < 32, out)
    check(f"cut='{first} of 32 layers'" in out and f"cut='{last} of 32 layers'" in out, out)
    for layers, fits in ((first, True), (first + 1, False)):
        out, _ = tally(*plan, "--set", "gpu=H100", "--set", "gpus=1", "--set", f"layers={layers}", cwd=cwd)
        check(("of H100: fits" in out) == fits, out)
    # Whole models, by other memory, other lengths and by the person's own number.
    out, _ = tally(*plan, "--tag", "1b", "--set", "gpu=H100", "--set", "gpus=1", cwd=cwd)
    check("layers=16" in out and "cut=no" in out and "cut_flops=0.0" in out, out)
    out, _ = tally(*plan, "--set", "gpu=H100", "--set", "gpus=8", "--set", "tensor=4", "--set", "pipeline=2", cwd=cwd)
    check("layers=32" in out and "cut=no" in out, out)
    # 6 (32 - 6) (2 4096^2 (1 + 8/32) + 3 4096 14336 + 4096 8192)
    out, _ = tally(*plan, "--set", "layers=6", cwd=cwd)
    check(f"cut_flops={6.0 * 26 * (2.5 * 4096**2 + 3 * 4096 * 14336 + 4096 * 8192)}" in out, out)
    check("torchtitan_bf16=6667" in out and "torchao_bf16=6150" in out and "megatron_fp8=14451" in out, out)
    # What is published is of 8B at 8,192 tokens.
    for other in (["--set", "sequence=4096"], ["--tag", "13b"]):
        out, _ = tally(*plan, "--set", "layers=6", *other, cwd=cwd)
        check("torchtitan_bf16=nan" in out, out)
    # No layer fits.
    out, err = tally(*plan, "--set", "gpu=8GB", "--set", "gpus=1", cwd=cwd, expected=2)
    check("$layers > 0" in out + err, out + err)


def jobs(cwd):
    text = golden.script("llama.yaml", 1, cwd, "--tag", "slurm", "--set", "gpus=1,4", "--set", "gpu=H100")
    check("#SBATCH --gpus-per-node=4\n" in text or "#SBATCH --gres=gpu:4\n" in text, text)
    check("--use-distributed-optimizer" in text and "--nproc-per-node 4" in text, text)


def mistakes(cwd):
    for arguments, words in (
            (["--tag", "8b", "13b"], "check_tags"), (["--tag", "plan"], "check_tags"), (["--tag", "7b"], "did you mean"),
            (["--set", "precision=fp17"], "'precision' has to be one of fp32, tf32, bf16, fp16, fp8, not 'fp17'"),
            (["--set", "model=llama-7b"], "'llama-7b'"), (["--set", "gpus=0"], "has to be >= 1, not '0'"),
            (["--set", "gpu=XYZ"], "--plan-device: 'XYZ' is not known")):
        out, err = tally("run", WORKFLOW, "-o", "run", "-n", *arguments, cwd=cwd, expected=2)
        check(words in out + err, f"{arguments}: no '{words}' in\n{out}{err}")


if __name__ == "__main__":
    for test in (mistakes, cuts, plan, jobs, rehearsal, small):
        golden.in_a_folder(test)
