"""--epochs of encoders: passes over a table of texts, over SQuAD's questions and over random tokens; after each one the
metrics on all of --valid-data-path, which are those of `evaluate` on the saved model.

    epochs_test.py TALLY_TRAIN SOURCE_DIRECTORY
"""
import json
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
SIZES = ["--num-layers", 1, "--hidden-size", 16, "--num-attention-heads", 2, "--seq-length", 24, "--device", "cpu"]
WORDS = ["cat", "dog", "sat", "ran", "on", "mat", "far", "red", "sun", "who", "where", "under", "tree"]


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")
    print("ok:", what)


def run(*arguments, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != code:
        sys.exit(f"FAILED: exit code {done.returncode}: {' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}")
    return done.stderr if code else done.stdout


def results(work, *arguments):
    run(*arguments, "--record", work / "r.json")
    return json.loads((work / "r.json").read_text())["results"]


def drawn(seed, count, below):
    """Numbers that are the same everywhere."""
    numbers = []
    for _ in range(count):
        seed = seed * 16807 % 2147483647
        numbers.append(seed % below)
    return numbers


def texts(path, count, seed):
    lines = []
    for k, draw in enumerate(drawn(seed, count, 10 ** 6)):
        words = [WORDS[i] for i in drawn(draw + 1, 3 + k % 7, len(WORDS))]
        lines.append(f"{' '.join(words)}\t{k % 3}")
    path.write_text("\n".join(["text\tlabel", *lines]) + "\n")


def questions(path, count, seed):
    paragraphs = []
    for k, draw in enumerate(drawn(seed, count, 10 ** 6)):
        words = [WORDS[i] for i in drawn(draw + 1, 6 + 5 * (k % 6), len(WORDS))]
        at = k % 4
        answers = [{"text": words[at], "answer_start": len(" ".join(words[:at])) + (at > 0)}]
        paragraphs.append({"context": " ".join(words),
                           "qas": [{"id": f"q{k}", "question": "who sat", "answers": answers}]})
    path.write_text(json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}))


def same_as_evaluate(work, task, train, held_out, metrics, more, ranks):
    """A training of three epochs, and what `evaluate` finds of its end."""
    vocabulary = ["--vocab-file", work / "vocab.txt", "--vocab-size", len((work / "vocab.txt").read_text().split())]
    trained = results(work, *SIZES, "--model", "bert-base", "--task", task, *more, *vocabulary,
                      "--train-data-path", train, "--valid-data-path", held_out, "--micro-batch-size", 3,
                      "--global-batch-size", 6, "--epochs", 3, "--lr", "1e-2", "--nproc-per-node", ranks,
                      "--save-hf", work / f"model{task}{ranks}")
    check([e["epoch"] for e in trained["epochs"]] == [1, 2, 3], f"{task}, {ranks} ranks: three epochs")
    held = trained["evaluations"]
    check(len(held) == 3 and all(0 < e["loss"] < 100 for e in held), f"{task}, {ranks} ranks: three losses")
    check([e["validation_loss"] for e in trained["epochs"]] == [e["loss"] for e in held], f"{task}: the same losses")
    found = results(work, "evaluate", "--device", "cpu", "--load-hf", work / f"model{task}{ranks}", *vocabulary[:2],
                    "--data-path", held_out, "--seq-length", 24, "--micro-batch-size", 4,
                    *[word for word in more if word != "--num-classes" and word != 3])
    for name in metrics:
        check(held[-1][name] == found[name], f"{task}, {ranks} ranks: {name} {held[-1][name]}, evaluate {found[name]}")
    if "loss" in found:
        check(abs(held[-1]["loss"] / found["loss"] - 1) < 1e-5, f"{task}: loss {held[-1]['loss']}, {found['loss']}")
    return trained


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n")
        texts(work / "train.tsv", 40, 5)
        texts(work / "dev.tsv", 17, 6)  # no multiple of a micro batch
        questions(work / "train.json", 12, 7)
        questions(work / "dev.json", 7, 8)
        more = {"classify": ["--num-classes", 3], "squad": ["--doc-stride", 7, "--max-query-length", 4]}
        for ranks in (1, 2):
            trained = same_as_evaluate(work, "classify", work / "train.tsv", work / "dev.tsv", ["accuracy"],
                                       more["classify"], ranks)
            check(trained["iterations"] == 3 * 40 // 6, "whole steps of 120 samples")
            trained = same_as_evaluate(work, "squad", work / "train.json", work / "dev.json", ["exact_match", "f1"],
                                       more["squad"], ranks)
            # More windows than questions.
            check(trained["iterations"] > 3 * 12 // 6, "passes over windows")
        mock = ["--model", "bert-base", *SIZES, "--mock-data", "--mock-samples", 20, "--micro-batch-size", 4]
        for task in ("pretrain", "classify", "squad"):
            check(results(work, *mock, "--task", task, "--epochs", 2)["iterations"] == 10, f"random tokens, {task}")
        found = results(work, *mock, "--task", "classify", "--epochs", 2, "--eval-iters", 1)["evaluations"]
        check(len(found) == 2 and "accuracy" in found[0], "random tokens are evaluated after each epoch")
        fails(work, mock)


def fails(work, mock):
    error = run(*mock, "--epochs", 1, "--global-batch-size", 24, code=2)
    check(error == "tally-train: error: --epochs: 1 of 20 samples are less than one step of --global-batch-size 24\n",
          error)
    base = ["--model", "bert-base", *SIZES, "--epochs", 1]
    for task, file in (("classify", "none.tsv"), ("squad", "none.json")):
        error = run(*base, "--task", task, "--vocab-file", work / "vocab.txt", "--vocab-size", 18,
                    "--train-data-path", work / file, code=2)
        check(error.startswith("tally-train: error: --train-data-path: ") and file in error and error.count("\n") == 1,
              error)
    error = run(*base, "--task", "squad", "--data-path", work / "train.json", code=2)
    check(error == "tally-train: error: --vocab-file: is missing: the text is tokenized with the model's vocab.txt\n",
          error)


main()
