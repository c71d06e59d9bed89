#!/usr/bin/env python3
"""workflows/my-cluster.yaml: --tag small to its table and chart, the layouts that the planner picks, its jobs."""
import golden
from golden import SOURCE, check, tally

WORKFLOW = str(SOURCE / "workflows/my-cluster.yaml")
PARAMETERS = ("nodes", "gpus", "tensor", "pipeline", "data")


def small(cwd):
    _, err = tally("run", WORKFLOW, "--tag", "small", "-o", "run", cwd=cwd)
    check("warning" not in err, err)
    golden.compare("my_cluster.txt", golden.shown("run", cwd / "run/000000", cwd, PARAMETERS))


def layouts(cwd):
    """Of all layouts that fit, the one with the highest predicted rate; points without one are left out."""
    plan = ["run", WORKFLOW, "-n", "-o", "run", "--set", "model=llama-8b"]
    out, _ = tally(*plan, "--tag", "nodes", "slurm", "--set", "gpu=H100", "--set", "nodes=1,2", cwd=cwd)
    check("(tensor 2 x pipeline 1 x data 2), 62.9 GB a GPU of the 85.5 GB of H100: fits" in out, out)
    check("(tensor 1 x pipeline 1 x data 8), 81.7 GB a GPU of the 85.5 GB of H100: fits" in out, out)
    check("2 jobs" in out, out)
    # A GPU of which the planner knows no rate: the shortest pipeline and then the smallest tensor parallel size.
    out, _ = tally(*plan, "--set", "gpu=64GB", "--set", "gpus_per_node=2,4", cwd=cwd)
    check("1 point, 1 excluded" in out, out)
    check("(tensor 2 x pipeline 1 x data 2), 62.9 GB a GPU" in out, out)
    # A person's own.
    out, _ = tally(*plan, "--set", "gpu=H100", "--set", "gpus_per_node=8", "--set", "layout=4 2", cwd=cwd)
    check("(tensor 4 x pipeline 2 x data 1)" in out, out)


def mistakes(cwd):
    """What the planner does not know is said in its words, and not taken for a model that fits nowhere."""
    for setting, words in (("gpu=XYZ", "--plan-device: 'XYZ' is not known: H200, GH200, H100, "),
                           ("model=llama-9b", "--model: 'llama-9b' is not a known model: ")):
        _, err = tally("run", WORKFLOW, "-n", "-o", "run", "--set", "gpu=H100", "--set", setting, cwd=cwd, expected=2)
        check("tally-train: error: " + words in err, err)
    check(not (cwd / "run").exists(), "run")


def jobs(cwd):
    out, _ = tally("run", WORKFLOW, "-n", "--tag", "nodes", "slurm", "--set", "gpu=H100", "--script", "3", cwd=cwd)
    check("#SBATCH --nodes=8\n" in out and "#SBATCH --ntasks-per-node=4\n" in out, out)
    check("--nproc-per-node" not in out, out)


if __name__ == "__main__":
    for test in (small, layouts, mistakes, jobs):
        golden.in_a_folder(test)
