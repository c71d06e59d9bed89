#!/usr/bin/env python3
"""workflows/distilbert-scaling.yaml: --tag small to its tables and charts, its numbers by hand, a user's texts, its jobs."""
import json
import re

import golden
from golden import SOURCE, check, tally

WORKFLOW = str(SOURCE / "workflows/distilbert-scaling.yaml")
PARAMETERS = ("devices", "train_batch", "phases_batch", "eval_batch", "accuracy_devices", "accuracy_batch")


def small(cwd):
    tally("run", WORKFLOW, "--tag", "small", "-o", "run", cwd=cwd)
    machine = golden.machine_of("run", cwd)
    golden.compare("distilbert_scaling.txt", golden.shown("run", cwd / "run/000000", cwd, PARAMETERS, machine))
    by_hand(cwd)


def records(cwd, step):
    """(the folder, the record) of each workpackage of a step."""
    found = []
    for folder in sorted((cwd / "run/000000").glob(f"0*_{step}")):
        file = folder / "work" / ("score.json" if step == "score" else "record.json")
        found.append((folder, json.loads(file.read_text())))
    return found


def by_hand(cwd):
    """Columns against the programs' own records."""
    kept = ("throughput", "seconds", "Speedup", "Efficiency", "prediction_seconds", "eval_throughput", "metric_share",
            "accuracy", "training_seconds", "accuracy_speedup", *PARAMETERS)
    tables = golden.tables("run", cwd, kept=kept)
    rows = {name: [dict(zip(rows[0], row)) for row in rows[1:]] for name, rows in tables.items()}
    rates = {}
    for _, record in records(cwd, "train"):
        training = record["configuration"]["training"]
        ranks = record["configuration"]["parallel"]["world_size"]
        key = (str(ranks), str(training["micro_batch_size"]), record["configuration"]["precision"])
        rates[key] = record["results"]["samples_per_second_steady"]
        check(record["results"]["iterations"] == 60 * 256 // (ranks * training["micro_batch_size"]), f"{key}: steps")
    check(len(rates) == 8 == len(rows["training"]), f"{rates}")
    for row in rows["training"]:
        key = (row["GPUs"], row["Batch"], row["Precision"])
        rate, one = rates[key], rates["1", *key[1:]]
        near(row["Throughput per GPU[samples/s]"], rate / int(row["GPUs"]), row)
        near(row["Time[s]"], 256 / rate, row)
        near(row["Speedup"], rate / one, row)
        near(row["Efficiency"], rate / one / int(row["GPUs"]), row)
    for row in rows["evaluation"]:
        found = [r for _, r in records(cwd, "evaluate") if r["eval_mode"] == row["Mode"]
                 and str(r["micro_batch_size"]) == row["Evaluation batch"]
                 and str(r["data_parallel_size"]) == row["GPUs"]]
        check(len(found) == 1, str(row))
        phases = found[0]["results"]["phases"]
        predictions = phases["evaluation_seconds"] + phases["gather_seconds"]
        near(row["Predictions[s]"], predictions, row)
        near(row["Throughput per GPU[samples/s]"], 1024 / predictions / int(row["GPUs"]), row)
        near(row["Metric and broadcast in %"], 100 * (1 - predictions / sum(phases.values())), row)
    seconds = [100 * 192 / r["results"]["samples_per_second_steady"] for _, r in records(cwd, "finetune")]
    check({r["results"]["samples"] for _, r in records(cwd, "score")} == {96}, "texts to evaluate on")
    made_texts(next((cwd / "run/000000").glob("0*_texts/work")))
    accuracies = [r["results"]["accuracy"] for _, r in records(cwd, "score")]
    for row, time, accuracy in zip(rows["accuracy"], seconds, accuracies, strict=True):
        near(row["Time[s]"], time, row)
        near(row["Speedup"], seconds[0] / time, row)
        near(row["Accuracy"], accuracy, row)


def made_texts(folder):
    """Texts whose words tell their class, but for a label in twenty."""
    words = (folder / "vocab.txt").read_text().split()
    lines = [line.split("\t") for line in (folder / "train.tsv").read_text().splitlines()[1:]]
    wrong = 0
    for text, label in lines:
        numbers = [int(word[1:]) for word in text.split()]
        check(12 <= len(numbers) <= 24 and set(text.split()) <= set(words), text)
        marks = [number // 30 for number in numbers if number < 180]
        best = [k for k in range(6) if k in marks]
        wrong += str(max(best, key=marks.count)) != label if best else 1
    check(len(lines) == 192 and 0 < wrong < 24, f"{wrong} of {len(lines)}")


def near(text, expected, row):
    check(abs(float(text) - expected) <= 1e-6 * abs(expected) + 1e-12, f"{text}, expected {expected}, in {row}")


def published(cwd):
    """The numbers of the study, in the rows of its own sizes."""
    out, _ = tally("run", WORKFLOW, "--tag", "slurm", "-n", "--all", "-o", "run", cwd=cwd)
    check(len(re.findall(r"^  #\d+ finetune ", out, re.M)) == 7, out)
    check(len(re.findall(r"^  #\d+ train ", out, re.M)) == 30 and len(re.findall(r"^  #\d+ evaluate ", out, re.M)) == 60,
          out)
    text = (SOURCE / "workflows/distilbert-scaling.yaml").read_text()
    for numbers in ("0.9375 60.5 1", "0.927 29.9 2.025", "0.941 16.55 3.655", "0.84 9.45 6.4", "0.56 5.83 10.38",
                    "0.93 10.33 5.86", "0.90 6.51 9.3"):
        check(f"'{numbers}'" in text, numbers)


def published_lines(cwd):
    """The study's lines stand in the charts of one device, up to 16 GPUs; here beside a tiny model."""
    tiny = ["sizes=--num-layers 1 --hidden-size 16 --num-attention-heads 2 --vocab-size 1000", "sequence=16",
            "train_texts=512", "eval_texts=32", "accuracy_precision=fp32"]
    tally("run", WORKFLOW, "--tag", "accuracy", "-o", "run", *[f"--set={one}" for one in tiny], cwd=cwd)
    for chart, title, numbers in (
            ("accuracy", "Accuracy", "0.9375 0.927 0.941 0.84 0.56 0.93 0.9"),
            ("accuracy_time", "Time[s]", "60.5 29.9 16.55 9.45 5.83 10.33 6.51"),
            ("accuracy_speedup", "Speedup", "1 2.025 3.655 6.4 10.38 5.86 9.3")):
        shown = re.findall(r"<title>(.*?)</title>", (cwd / f"run/000000/result/{chart}.svg").read_text())
        places = [(256, gpus) for gpus in (1, 2, 4, 8, 16)] + [(128, 8), (128, 16)]
        expected = [f"V100 (16 GB), {batch}: Number of GPUs {gpus}, {title} {number}"
                    for (batch, gpus), number in zip(places, numbers.split(), strict=True)]
        check([one for one in shown if one.startswith("V100")] == expected, f"{chart}: {shown}")
        check(sum(one.startswith("256: ") for one in shown) == 1, f"{chart}: {shown}")
    row = golden.tables("run", cwd)["accuracy"][1]
    check("0.9375" in row and "60.5" in row, str(row))


def texts(cwd):
    """A table of one's own: two words tell the classes apart, and the model learns it."""
    (cwd / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "it", "is"]))
    lines = [f"it is {'good' if k % 2 else 'bad'}\t{k % 2}" for k in range(96)]
    for name, some in (("train", lines), ("eval", lines[:10])):
        (cwd / f"{name}.tsv").write_text("\n".join(["text\tlabel", *some]) + "\n")
    words = ["--tag", "small", "accuracy", "-o", "run", "--set", "classes=2", "--set", f"train_data={cwd}/train.tsv",
             "--set", f"eval_data={cwd}/eval.tsv", "--set", f"vocabulary={cwd}/vocab.txt"]
    tally("run", WORKFLOW, *words, "--set", "learning_rate=1e-2", "--set", "epochs=20", cwd=cwd)
    rows = golden.tables("run", cwd, kept=("accuracy",))["accuracy"]
    check([row[rows[0].index("Accuracy")] for row in rows[1:]] == ["1.0"] * 3, str(rows))
    mistakes_with_texts(cwd, words)


def mistakes_with_texts(cwd, words):
    for change, message in (
            (f"train_data={cwd}/none.tsv", "none.tsv' cannot be read"),
            ("train_data=train.tsv", "'train.tsv' is not a whole path: give the path from / on"),
            ("eval_data=", "train_data and eval_data belong together: name both, or none"),
            ("vocabulary=", "Name the vocab.txt with --set vocabulary=FILE"),
            ("trainer=tally-trai", "there is no program 'tally-trai'. Name tally-train with --set trainer=FILE")):
        out, err = tally("run", WORKFLOW, *words, "--set", change, cwd=cwd, expected=1)
        check(message in out + err, f"{change}: no '{message}' in\n{out}{err}")


def jobs(cwd):
    out, _ = tally("run", WORKFLOW, "--tag", "slurm", "-n", "--all", "-o", "run", cwd=cwd)
    last = {step: number for number, step in re.findall(r"^  #0*(\d+) (\w+) ", out, re.M)}
    text = "".join(golden.script("distilbert-scaling.yaml", last[step], cwd, "--tag", "slurm")
                   for step in ("train", "phases", "evaluate", "finetune", "score"))
    golden.compare("distilbert_scaling.job", text)


def mistakes(cwd):
    for arguments, code, words in (
            (["--tag", "smal"], 2, "did you mean 'small'"),
            (["--tag", "training", "accuracy"], 2, "training"),
            (["--set", "devices=two"], 2, "'two' is not a valid int"),
            (["--set", "batch=64"], 2, "'batch'"),
            (["--set", "precision=fp17"], 2, "'precision' has to be one of fp32, tf32, fp16, bf16, not 'fp17'"),
            (["--set", "train_batch=0"], 2, "--set train_batch=0: parameter 'train_batch' has to be >= 1, not '0'"),
            (["--set", "devices=-1"], 2, "--set devices=-1: parameter 'devices' has to be >= 1, not '-1'"),
            (["--set", "eval_mode=gahter"], 2, "did you mean 'gather'?"),
            (["--tag", "small", "training", "--set", "train_samples=10"], 1, "less than one step"),
            (["--tag", "small", "training", "--set", "flags=--no-such-flag"], 1, "--no-such-flag")):
        dry = [] if code == 1 else ["-n"]
        out, err = tally("run", WORKFLOW, "-o", "run", *dry, *arguments, cwd=cwd, expected=code)
        check(words in out + err, f"{arguments}: no '{words}' in\n{out}{err}")


if __name__ == "__main__":
    for test in (jobs, published, published_lines, mistakes, texts, small):
        golden.in_a_folder(test)
