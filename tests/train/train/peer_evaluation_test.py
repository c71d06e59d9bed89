"""tally-train evaluate in 1, 2 and 4 processes, reduced and gathered, against transformers.

    peer_evaluation_test.py TALLY_TRAIN SOURCE_DIRECTORY

Expected values: transformers' logits of each sample by itself, PyTorch's cross entropy, and SQuAD's rules of scoring
(exact match and F1 of evaluate-v1.1.py) written here once more.
"""
import collections
import json
import os
import string
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
tool, root = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.join(root, "tests", "train", "data"))
from peer_support import check, skip  # noqa: E402

try:
    import torch
    import transformers as hf
except ImportError as error:
    skip(str(error))

torch.set_num_threads(1)
SEQUENCE, SAMPLES = 24, 23  # not a multiple of the micro batch, and fewer micro batches than 4 ranks like
WORDS = ["the", "cat", "dog", "sat", "ran", "on", "mat", "far", "red", "sun", "who", "where", "under", "tree"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + WORDS
CLS, SEP = 2, 3
LAYOUTS = [(ranks, mode) for ranks in (1, 2, 4) for mode in ("reduce", "gather")]


def run(*flags, code=0):
    done = subprocess.run([tool, *map(str, flags)], capture_output=True, text=True, timeout=300)
    if done.returncode != code:
        sys.exit(f"FAILED: exit code {done.returncode}: {' '.join(map(str, flags))}\n{done.stdout}{done.stderr}")
    return done


def draw(g, low, high, count):
    return torch.randint(low, high, (count,), generator=g).tolist()


def save_model(architecture, work, **more):
    torch.manual_seed(11)
    config = hf.BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                           initializer_range=0.2, vocab_size=len(PIECES), max_position_embeddings=SEQUENCE, **more)
    model = getattr(hf, architecture)(config).eval()
    model.save_pretrained(f"{work}/model")
    with open(f"{work}/vocab.txt", "w", encoding="utf-8") as f:
        f.write("\n".join(PIECES) + "\n")
    return model


def evaluate(work, data, ranks, mode, *more, code=0):
    words = ["evaluate", "--device", "cpu", "--load-hf", f"{work}/model", "--data-path", data, "--vocab-file",
             f"{work}/vocab.txt", "--seq-length", SEQUENCE, "--micro-batch-size", 3, "--nproc-per-node", ranks,
             "--eval-mode", mode, "--record", f"{work}/e.json", *more]
    done = run(*words, code=code)
    if code:
        return done.stderr
    with open(f"{work}/e.json", encoding="utf-8") as f:
        record = json.load(f)
    check(record["stride"] is None and record["eval_mode"] == mode and record["data_parallel_size"] == ranks, "record")
    phases = record["results"].pop("phases")
    check(set(phases) == {"evaluation_seconds", "gather_seconds", "metric_seconds",
                          "broadcast_seconds" if mode == "gather" else "reduce_seconds"}, f"{phases}")
    check(0 < sum(phases.values()) <= record["results"]["seconds"] * 1.001, f"{phases}")
    check((phases["gather_seconds"] > 0) == (mode == "gather" and ranks > 1), f"{phases}")
    return record["results"]


def classifies():
    with tempfile.TemporaryDirectory() as work:
        model = save_model("BertForSequenceClassification", work, num_labels=3)
        g = torch.Generator().manual_seed(2)
        lines, predictions, scores, labels, loss = [], [], [], draw(g, 0, 3, SAMPLES), 0.0
        labels[:3] = [0, 1, 2]
        for k in range(SAMPLES):
            words = [WORDS[i] for i in draw(g, 0, len(WORDS), 1 + k % 20)]
            lines.append(f"{' '.join(words)}\t{labels[k]}")
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([[CLS, *(PIECES.index(w) for w in words), SEP]])).logits
            predictions.append(logits.argmax().item())
            scores.append(torch.softmax(logits[0], 0).tolist())
            loss += torch.nn.functional.cross_entropy(logits, torch.tensor([labels[k]])).item() / SAMPLES
        data = f"{work}/texts.tsv"
        with open(data, "w", encoding="utf-8") as f:
            f.write("\n".join(["text\tlabel", *lines]) + "\n")
        right = sum(p == n for p, n in zip(predictions, labels))
        check(0 < right < SAMPLES and len(set(predictions)) > 1, f"the data tell models apart: {predictions}")
        for ranks, mode in LAYOUTS:
            results = evaluate(work, data, ranks, mode, "--predictions", f"{work}/p.jsonl")
            check(results["accuracy"] == right / SAMPLES, f"{ranks} {mode}: {results}, {right} are right")
            check(abs(results["loss"] - loss) <= 1e-5 * loss, f"{ranks} {mode}: {results}, {loss}")
            check(results["samples"] == SAMPLES, f"{results}")
            first = results if (ranks, mode) == LAYOUTS[0] else first
            check(abs(results["loss"] - first["loss"]) < 1e-13 and results["tokens"] == first["tokens"], "the same")
            with open(f"{work}/p.jsonl", encoding="utf-8") as f:
                rows = [json.loads(line) for line in f]
            for row, expected in zip(rows, scores):
                found = row.pop("scores")
                check(list(found) == ["0", "1", "2"] if isinstance(found, dict) else len(found) == 3, f"{found}")
                values = list(found.values()) if isinstance(found, dict) else found
                check(all(abs(v - e) < 1e-5 for v, e in zip(values, expected)), f"{ranks} {mode}: {found}, {expected}")
            check(rows == [{"sample": k, "prediction": predictions[k], "label": labels[k]} for k in range(SAMPLES)],
                  f"{ranks} {mode}: predictions")
        validates(work, data, lines, predictions, labels)
        error = evaluate(work, data, 1, "reduce", "--predictions", f"{work}/none/p", code=2)
        check(error.startswith("tally-train: error: --predictions: ") and error.count("\n") == 1, error)
        replaces_only_predictions(work, data)
        print("ok: classification")


def replaces_only_predictions(work, data):
    for path in (data, f"{work}/model/model.safetensors", f"{work}/model/config.json"):
        with open(path, "rb") as f:
            before = f.read()
        error = evaluate(work, data, 1, "reduce", "--predictions", path, code=2)
        check("exists but does not hold predictions" in error and error.count("\n") == 1, error)
        with open(path, "rb") as f:
            check(f.read() == before, f"{path} is as before")
    # The file that predictions are written to before they are complete is no one else's either.
    with open(f"{work}/q.jsonl.tmp", "w", encoding="utf-8") as f:
        f.write("my own notes")
    error = evaluate(work, data, 1, "reduce", "--predictions", f"{work}/q.jsonl", code=2)
    check("q.jsonl.tmp' exists but does not hold predictions" in error and error.count("\n") == 1, error)
    with open(f"{work}/q.jsonl.tmp", encoding="utf-8") as f:
        check(f.read() == "my own notes", "the user's file is as before")
    error = evaluate(work, data, 1, "reduce", "--predictions", f"{work}/./e.json", code=2)
    check("is the file of --record, too" in error, error)


def validates(work, data, lines, predictions, labels):
    """Validation prints the accuracy, of the samples that it takes: 2 global batches of 4."""
    expected = sum(p == n for p, n in zip(predictions[:8], labels)) / 8
    for ranks in (1, 2):
        done = run("--device", "cpu", "--load-hf", f"{work}/model", "--task", "classify", "--train-data-path", data,
                   "--valid-data-path", data, "--vocab-file", f"{work}/vocab.txt", "--seq-length", SEQUENCE,
                   "--micro-batch-size", 2, "--global-batch-size", 4, "--eval-iters", 2, "--skip-train",
                   "--nproc-per-node", ranks, "--record", f"{work}/r.json")
        check(f"| accuracy value: {expected:.6E} |" in done.stdout, f"{expected}: {done.stdout}")
        with open(f"{work}/r.json", encoding="utf-8") as f:
            check(json.load(f)["results"]["evaluations"][0]["accuracy"] == expected, "the record's accuracy")


def normalized(text):
    kept = "".join(c for c in text.lower() if c not in string.punctuation)
    return [w for w in kept.split() if w not in ("a", "an", "the")]


def f1(a, b):
    same = sum((collections.Counter(a) & collections.Counter(b)).values())
    return 2 * same / (len(a) + len(b)) if same else 0


def answers():
    with tempfile.TemporaryDirectory() as work:
        save_model("BertForQuestionAnswering", work)
        g = torch.Generator().manual_seed(3)
        paragraphs, right = [], {}
        for k in range(11):
            # Up to five windows a paragraph: they lie in several micro batches and on several ranks.
            words = [WORDS[i] for i in draw(g, 0, len(WORDS), 4 + 5 * k)]
            right[str(k)] = [" ".join(words[1:3]), " ".join(words[2:4])]
            starts = [len(words[0]) + 1, len(" ".join(words[:2])) + 1]
            paragraphs.append({"context": " ".join(words), "qas": [{"id": str(k), "question": "who sat", "answers": [
                {"text": t, "answer_start": s} for t, s in zip(right[str(k)], starts)]}]})
        data = f"{work}/questions.json"

        def write(content):
            with open(data, "w", encoding="utf-8") as f:
                json.dump({"version": "1.1", "data": content}, f)

        # Some answers are those that the model gives, so that not all scores are 0.
        more = ["--doc-stride", 7, "--max-query-length", 4, "--predictions", f"{work}/p.json"]
        write([{"title": "t", "paragraphs": paragraphs}])
        evaluate(work, data, 1, "reduce", *more)
        with open(f"{work}/p.json", encoding="utf-8") as f:
            given = json.load(f)
        for k in (0, 4, 9):
            context, qa = paragraphs[k]["context"], paragraphs[k]["qas"][0]
            qa["answers"].append({"text": given[str(k)], "answer_start": context.index(given[str(k)])})
            right[str(k)].append(given[str(k)])
        write([{"title": "t", "paragraphs": paragraphs}])
        first = None
        for ranks, mode in LAYOUTS:
            results = evaluate(work, data, ranks, mode, *more)
            with open(f"{work}/p.json", encoding="utf-8") as f:
                given = json.load(f)
            check(list(given) == [str(k) for k in range(11)], f"{given}")
            exact = 100 / 11 * sum(max(normalized(given[k]) == normalized(t) for t in right[k]) for k in right)
            score = 100 / 11 * sum(max(f1(normalized(given[k]), normalized(t)) for t in right[k]) for k in right)
            check(abs(results["exact_match"] - exact) < 1e-9, f"{ranks} {mode}: {results}, {exact}")
            check(abs(results["f1"] - score) < 1e-9, f"{ranks} {mode}: {results}, {score}")
            kept = {k: results[k] for k in ("exact_match", "samples", "tokens")}
            first = first or (kept, given)
            check((kept, given) == first and results["samples"] > 23, f"{ranks} {mode}: {kept}, {first[0]}")
            check("loss" not in results, "SQuAD has no loss")
        write([])
        error = evaluate(work, data, 1, "reduce", code=2)
        check("no question" in error and error.count("\n") == 1, error)
        print("ok: SQuAD")


def texts():
    """A language model's loss is the same for any number of processes."""
    with tempfile.TemporaryDirectory() as work:
        text = f"{root}/CONTRIBUTING.md"
        run("--device", "cpu", "--num-layers", 1, "--hidden-size", 32, "--num-attention-heads",
            2, "--seq-length", 64, "--max-position-embeddings", 64, "--tokenizer-type", "bytes", "--mock-data",
            "--train-iters", 1, "--save", f"{work}/s")
        losses = []
        for ranks in (1, 2, 4):
            run("evaluate", "--device", "cpu", "--load", f"{work}/s", "--text", text, "--tokenizer-type", "bytes",
                "--micro-batch-size", 3, "--stride", 32, "--nproc-per-node", ranks, "--record", f"{work}/e.json")
            with open(f"{work}/e.json", encoding="utf-8") as f:
                record = json.load(f)
            check(record["stride"] == 32, "the record of a language model")
            losses.append(record["results"]["loss"])
        check(max(losses) - min(losses) < 1e-12, f"{losses}")
        print("ok: texts")


classifies()
answers()
texts()
