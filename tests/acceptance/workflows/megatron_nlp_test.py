#!/usr/bin/env python3
"""workflows/megatron-nlp.yaml: --tag small to its tables and charts; strong scaling as published, planned and logged.

Published numbers are written down here by hand: 13B on 8 nodes and 175B on 48, 96 and 192 nodes of JUWELS Booster.
"""
import re

import golden
from golden import SOURCE, check, tally

WORKFLOW = str(SOURCE / "workflows/megatron-nlp.yaml")
LOG = SOURCE / "tests/golden/megatron_175b_job.out"
PARAMETERS = ("NNODES", "processes", "GLOBAL_BATCH_SIZE", "PP_SIZE", "TP_SIZE", "GAS", "MICRO_BATCH_SIZE", "iteration_max",
              "published_tokens_per_second", "published_report_time")
PUBLISHED = {48: (14620.74, 1367.92), 96: (36055.39, 554.70), 192: (52315.10, 382.30)}


def small(cwd):
    tally("run", WORKFLOW, "--tag", "small", "-o", "run", cwd=cwd)
    text = golden.shown("run", cwd / "run/000000", cwd, PARAMETERS)
    # The log's TFLOPs have two digits: 0 on a machine that is busy.
    text = re.sub(r"(?m)^(  tiny \| bf16 .*) \| 0$", r"\1 | N", text)
    # Versions are those of the build.
    golden.compare("megatron_nlp.txt", re.sub(r"(?s)(table versions\n[^\n]*\n).*?(?=chart )", r"\1", text))


def plan(cwd):
    """Without a scheduler, a GPU or data: what was published, and what the planner expects."""
    tally("run", WORKFLOW, "--tag", "scaling", "plan", "-o", "run", cwd=cwd)
    golden.compare("megatron_nlp_plan.txt", golden.shown("run", cwd / "run/000000", cwd, PARAMETERS))
    values = ("NNODES", "published_tokens_per_second", "published_report_time", "predicted_tokens_per_second",
              "predicted_report_time")
    for row in golden.tables("run", cwd, kept=values)["beside_the_published"][1:]:
        nodes, rate, predicted, time, predicted_time = int(row[1]), *row[3:7]
        if nodes in PUBLISHED:
            check((float(rate), round(float(time), 2)) == PUBLISHED[nodes], str(row))
        else:
            check((rate, time) == ("-", "-"), str(row))
        check(abs(float(predicted) * float(predicted_time) / 20e6 - 1) < 1e-9, str(row))
        check(0.5 < float(predicted) / (36055.39 * nodes / 96) < 1.5, f"the planner is far off: {row}")
    tally("run", WORKFLOW, "--tag", "13", "plan", "-o", "thirteen", cwd=cwd)
    values += ("model_size",)
    row = golden.tables("thirteen", cwd, kept=values)["beside_the_published"][1]
    check(row[0] == "13" and row[3] == "60777.68" and round(float(row[5]), 2) == 329.07, str(row))
    # Another model is neither called 13B nor set beside what was published of it: 12 x 20 x 5120 x 5120 is 6.3e9.
    tally("run", WORKFLOW, "--tag", "13", "plan", "--set", "NLAYERS=20", "-o", "other", cwd=cwd)
    row = golden.tables("other", cwd, kept=values)["beside_the_published"][1]
    check(row[0] == "6" and row[3] == "-" and row[5] == "-", str(row))


def logs(cwd):
    """Logs of four jobs: ours beside the published, as a table and as charts."""
    for nodes, seconds in ((48, 6.5), (96, 5.0), (144, 5.2), (192, 5.5)):
        (cwd / f"{nodes}.out").write_text(re.sub(r"\(s\): [0-9.]+", f"(s): {seconds:.4f}", LOG.read_text()))
    out, err = tally("result", WORKFLOW, "--tag", "scaling", "--logs", *(f"{n}.out" for n in (48, 96, 144, 192)), cwd=cwd)
    # 16 x 48 / 16 samples of 2048 tokens: 48 x 2048 / 6.5 = 15123.69 tokens/s; 20000000 / 15123.69 = 1322.43 s.
    check("|    48 |         48 |                 8 |               8 |   15123.69 |     1322.43 |" in out, out)
    check(re.search(r"\|\s+144 \|\s+576 \|\s+56713.85 \|\s+- \|", out), out)
    check("reference report_time <= 560 (baseline of the 175B model, seconds): pass, row 2 (NNODES=96, GLOBAL_BATCH_SIZE=96) has 508.63" in err, err)


def mistakes(cwd):
    for arguments, code, words in (
            (["--tag", "scalin"], 2, "did you mean 'scaling'"), (["--tag", "scaling", "13"], 2, "check_tags"),
            (["--tag", "small", "175"], 2, "check_tags"), (["--tag", "plan", "python"], 2, "check_tags"),
            (["--tag", "plan", "--set", "plan_device=H1000"], 1, "'H1000' is not known"),
            (["--tag", "plan", "--set", "tally_train=/none"], 1, "there is no program '/none', which the parameter tally_train"),
            (["--tag", "plan", "--set", "NNODES=5"], 1, "the rules under 'where' exclude every point"),
            (["-n", "--set", "NNODES=5"], 2, "has no point: this rule leaves out its only one"),
            (["--tag", "plan", "--set", "NNODES=many"], 2, "'many' is not a valid int"),
            (["--set", "precision=fp17"], 2, "'precision' has to be one of bf16, fp16, not 'fp17'"),
            (["--set", "MICRO_BATCH_SIZE=0"], 2, "parameter 'MICRO_BATCH_SIZE' has to be >= 1, not '0'"),
            (["--set", "GPUS_PER_NODE=-4"], 2, "parameter 'GPUS_PER_NODE' has to be >= 1, not '-4'"),
            (["--tag", "small", "--set", "data_path=set"], 1, "'set' is not a whole path: give the path from / on"),
            (["--tag", "small", "--set", f"data_path={cwd}/set"], 1,
             f"'{cwd}/set.idx' cannot be read. data_path names PREFIX of PREFIX.idx and PREFIX.bin")):
        out, err = tally("run", WORKFLOW, "-o", "run", *arguments, cwd=cwd, expected=code)
        check(words in out + err, f"{arguments}: no '{words}' in\n{out}{err}")


if __name__ == "__main__":
    golden.need(".deps/text/english.txt", ".deps/vocab/vocab.json")
    for test in (mistakes, plan, logs, small):
        golden.in_a_folder(test)
