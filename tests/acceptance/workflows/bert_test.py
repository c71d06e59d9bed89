#!/usr/bin/env python3
"""workflows/bert.yaml: --tag small to its tables and charts; profiles of a GPU, from a record of one; a user's SQuAD; its jobs."""
import json
import re

import golden
from golden import SOURCE, check, tally

WORKFLOW = str(SOURCE / "workflows/bert.yaml")
PARAMETERS = ("sequence", "batch", "devices", "start_iteration", "stop_iteration")


def small(cwd):
    tally("run", WORKFLOW, "--tag", "small", "-o", "run", cwd=cwd)
    text = golden.shown("run", cwd / "run/000000", cwd, PARAMETERS, golden.machine_of("run", cwd))
    # So small a model may answer nothing right, or something.
    golden.compare("bert.txt", re.sub(r"[N0] \| [N0] \| [N0] \| [N0] \| MACHINE", "SCORES | MACHINE", text))
    run = cwd / "run/000000"
    record = json.loads(next(run.glob("0*_answers/work/answers_record.json")).read_text())["results"]
    row = golden.tables("run", cwd, kept=("exact_match", "f1"))["end_to_end"]
    cells = dict(zip(*row))
    check(cells["Exact match"] == str(record["exact_match"]) and cells["F1"] == str(record["f1"]), str(row))
    answers = json.loads(next(run.glob("0*_answers/work/answers.json")).read_text())
    check(len(answers) == 32, f"{answers}")
    made_questions(next(run.glob("0*_questions/work")))
    for folder in run.glob("0*_throughput"):
        results = json.loads((folder / "work/record.json").read_text())["results"]["throughput_window"]
        settings = json.loads((folder / "work/record.json").read_text())["configuration"]
        tokens = settings["training"]["micro_batch_size"] * settings["model"]["seq_length"]
        check((results["first_iteration"], results["last_iteration"]) == (4, 4 + 160000 // tokens), str(results))
    second = json.loads(next(run.glob("0*_phase2/work/record.json")).read_text())["results"]
    check((second["first_iteration"], second["iterations"]) == (1250, 1650), "phase 2 continues phase 1")


def made_questions(folder):
    """Each answer is at its place, and is the one that the text gives."""
    words = (folder / "vocab.txt").read_text().split()
    count = 0
    for file in ("train.json", "dev.json"):
        for paragraph in json.loads((folder / file).read_text())["data"][0]["paragraphs"]:
            context, qa = paragraph["context"], paragraph["qas"][0]
            answer = qa["answers"][0]
            check(context[answer["answer_start"]:].startswith(answer["text"] + " ."), f"{paragraph}")
            asked = qa["question"].replace("what is ", "").replace(" ?", "")
            check(context.count(f"{asked} is ") == 1 and f"{asked} is {answer['text']} ." in context, f"{paragraph}")
            check(set(context.split() + qa["question"].split()) <= set(words), f"{paragraph}")
            count += 1
    check(count == 3000 + 32, f"{count}")


PROFILE = {"first_iteration": 20, "last_iteration": 24, "directory": "batch", "seconds": 0.5, "busy_seconds": 0.49,
           "busy_fraction": 0.98, "kernel_seconds": 0.492, "calls": 1250, "lost_records": 0, "mean_registers": 150.5,
           "mean_shared_bytes": 1e5, "kernels": [
               {"name": "gemm_fp16<128>", "calls": 250, "seconds": 0.25, "mean_seconds": 0.001, "min_seconds": 0.001,
                "max_seconds": 0.002, "share": 0.508},
               {"name": "norm", "calls": 10, "seconds": 0.01, "mean_seconds": 0.001, "min_seconds": 0.001,
                "max_seconds": 0.001, "share": 0.02}]}
USE = {"tensor": 61.25, "tensor_tc": None, "fp16": None, "fma": 4.5, "xu": 1.75, "dram": 33.5, "sm_active": 88.0}
COUNTERS = {"first_iteration": 3, "last_iteration": 3, "directory": "batch", "chip": "GH100", "passes": 2,
            "metrics": {"tensor": "sm__inst_executed_pipe_tensor", "fp16": None, "fma": "sm__pipe_fma"}, "calls": 900,
            "kernel_seconds": 0.11, "percent_of_peak": USE, "kernels": [
                {"name": "gemm", "calls": 9, "seconds": 0.1, "share": 0.9,
                 "percent_of_peak": {**USE, "tensor": 70.0, "fma": 1.0}}]}


def profiles(cwd):
    """On a GPU alone: the tables from a record in the form that docs/record.md describes, and the flags."""
    record = {"schema": "tally-train-record/1", "outcome": "completed", "environment": {"device_name": "GPU"},
              "results": {"peak_device_bytes": 1}}
    for tag, key, value in (("profile", "profile", PROFILE), ("cores", "counters", COUNTERS)):
        folder = cwd / tag
        folder.mkdir()
        (folder / "record").write_text(json.dumps({**record, "results": {**record["results"], key: value}}, indent=1))
        program = folder / "tally-train"
        program.write_text(f'#!/bin/sh\necho "$@" >> {folder}/flags\ncp {folder}/record record.json\n')
        program.chmod(0o755)
        tally("run", WORKFLOW, "--tag", tag, "-o", "run", "--set", f"trainer={program}", cwd=folder)
    rows = golden.tables("run", cwd / "profile", kept=("busy_percent", "calls", "window_seconds", "longest_percent",
                                                       "profile_batch"))["profile"]
    check(len(rows) == 7, str(rows))
    cells = dict(zip(rows[0], rows[1]))
    check(cells["Batch"] == "8" and cells["Compute utilisation in %"] == "98.0" and cells["Kernels"] == "1250", str(cells))
    check(cells["Time[s]"] == "0.5" and cells["Longest kernel"] == "gemm_fp16<128>" and
          abs(float(cells["Its share in %"]) - 50.8) < 1e-9, str(cells))
    rows = golden.tables("run", cwd / "cores", kept=("tensor", "fma", "special", "dram", "counted_kernels"))["cores"]
    cells = dict(zip(rows[0], rows[1]))
    found = [cells[title] for title in ("Kernels", "Tensor cores in %", "FMA in %", "FP16 in %", "SFU in %", "Memory in %")]
    check(len(rows) == 4 and found == ["900", "61.25", "4.5", "-", "1.75", "33.5"], str(rows))
    flags = (cwd / "cores/flags").read_text().splitlines()
    check(all("--profile-start 3 --profile-stop 3 --profile-counters --profile-dir batch_" in line for line in flags) and
          len(flags) == 3, str(flags))


def squad(cwd):
    """A user's questions; and what is wrong with them."""
    (cwd / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "who"]))
    paragraphs = [{"context": "the cat sat", "qas": [{"id": f"q{k}", "question": "who sat", "answers": [
        {"text": "cat", "answer_start": 4}]}]} for k in range(24)]
    for name, some in (("train", paragraphs), ("dev", paragraphs[:4])):
        (cwd / f"{name}.json").write_text(json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": some}]}))
    words = ["--tag", "small", "end_to_end", "-o", "run", "--set", f"squad_train={cwd}/train.json",
             "--set", f"squad_dev={cwd}/dev.json", "--set", f"vocabulary={cwd}/vocab.txt"]
    tally("run", WORKFLOW, *words, "--set", "squad_lr=1e-2", "--set", "squad_epochs=20", cwd=cwd)
    rows = golden.tables("run", cwd, kept=("exact_match", "f1"))["end_to_end"]
    cells = dict(zip(*rows))
    check((cells["Exact match"], cells["F1"]) == ("100.0", "100.0"), str(rows))
    for change, message in (
            (f"squad_train={cwd}/none.json", "none.json' cannot be read"),
            ("squad_dev=dev.json", "'dev.json' is not a whole path: give the path from / on"),
            ("squad_dev=", "squad_train and squad_dev belong together: name both, or none"),
            ("vocabulary=", "Name the vocab.txt with --set vocabulary=FILE"),
            (f"phase1_data={cwd}/none", "none' cannot be read"),
            ("trainer=tally-trai", "there is no program 'tally-trai'. Name tally-train with --set trainer=FILE")):
        out, err = tally("run", WORKFLOW, *words, "--set", change, cwd=cwd, expected=1)
        check(message in out + err, f"{change}: no '{message}' in\n{out}{err}")


def jobs(cwd):
    out, _ = tally("run", WORKFLOW, "--tag", "slurm", "-n", "--all", "-o", "run", cwd=cwd)
    last = {step: number for number, step in re.findall(r"^  #0*(\d+) (\w+) ", out, re.M)}
    steps = ("throughput", "profile", "cores", "phase1", "phase2", "squad", "answers")
    golden.compare("bert.job", "".join(golden.script("bert.yaml", last[step], cwd, "--tag", "slurm") for step in steps))


def mistakes(cwd):
    for arguments, code, words in (
            (["--tag", "smal"], 2, "did you mean 'small'"),
            (["--tag", "small", "profile"], 2, "small"),
            (["--tag", "profile", "cores"], 2, "profile"),
            (["--set", "batch=many"], 2, "'many' is not a valid int"),
            (["--set", "batchsize=8"], 2, "'batchsize'"),
            (["--set", "task=phase3"], 2, "'task' has to be one of phase1, phase2, squad, not 'phase3'"),
            (["--set", "precision=fp17"], 2, "'precision' has to be one of fp32, tf32, fp16, bf16, not 'fp17'"),
            (["--set", "batch=8,0"], 2, "--set batch=8,0: parameter 'batch' has to be >= 1, not '0'"),
            (["--set", "devices=-1"], 2, "--set devices=-1: parameter 'devices' has to be >= 1, not '-1'"),
            (["--tag", "small", "throughput", "--set", "flags=--no-such-flag"], 1, "--no-such-flag")):
        dry = [] if code == 1 else ["-n"]
        out, err = tally("run", WORKFLOW, "-o", "run", *dry, *arguments, cwd=cwd, expected=code)
        check(words in out + err, f"{arguments}: no '{words}' in\n{out}{err}")


if __name__ == "__main__":
    for test in (jobs, profiles, mistakes, squad, small):
        golden.in_a_folder(test)
