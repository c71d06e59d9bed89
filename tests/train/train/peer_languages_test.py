"""A small BERT from random weights learns a real labelled set: the language of paragraphs of Debian's translated manual
pages (packages manpages-de, -es, -fr, -it, -nl, -pl). Every fifth page is held out. `transformers` runs the saved model
on the same texts, and a count of its predictions must give the accuracy that `tally-train evaluate` reports."""
import collections
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
PAGES = SOURCE / ".deps/manpages"
LANGUAGES = ["de", "es", "fr", "it", "nl", "pl"]
PER_PAGE, LENGTH = 12, 32
if not all((PAGES / language).is_dir() for language in LANGUAGES):
    print(f"SKIPPED: no manual pages in {PAGES} (scripts/setup --tests fetches them)")
    sys.exit(77)


def check(condition, what):
    if not condition:
        sys.exit("FAILED: " + what)
    print("ok: " + what)


def paragraphs(path):
    """The lines of text of a page, without roff's requests and escapes."""
    text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
    found = []
    for line in text.splitlines():
        if line.startswith((".", "'")):
            continue
        line = re.sub(r"\\f(\[[^]]*\]|\([A-Z]{2}|.)|\\[&%|^/]|\\\*\[[^]]*\]|\\\(..|\\\[[^]]*\]", "", line)
        line = re.sub(r"\s+", " ", line.replace("\\-", "-").replace("\\", "")).strip()
        if len(line) >= 60:
            found.append(line)
    return found[:PER_PAGE]


def run(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"FAILED: tally-train {arguments[0]}: {done.stderr}")
    return done.stdout


def write(path, rows):
    with open(path, "w") as f:
        for text, language in rows:
            f.write(json.dumps({"text": text, "label": language}) + "\n")


with tempfile.TemporaryDirectory() as folder:
    work = pathlib.Path(folder)
    train, held_out = [], []
    for language in LANGUAGES:
        for i, page in enumerate(sorted((PAGES / language).iterdir())[:150]):
            (held_out if i % 5 == 0 else train).extend((text, language) for text in paragraphs(page))
    counts = collections.Counter(language for _, language in held_out)
    check(min(counts.values()) > 50, f"held-out paragraphs: {dict(counts)}")
    write(work / "train.jsonl", train)
    write(work / "held_out.jsonl", held_out)
    # The vocabulary: the words and characters of the training pages.
    words, letters = collections.Counter(), collections.Counter()
    for text, _ in train:
        for word in re.findall(r"\w+|[^\w\s]", text):
            words[word] += 1
            letters.update(word)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + sorted(letters) + ["##" + c for c in sorted(letters)]
    pieces += [word for word, n in words.most_common(3000) if len(word) > 1 and n > 1]
    vocabulary = list(dict.fromkeys(pieces))
    (work / "vocab.txt").write_text("\n".join(vocabulary) + "\n")

    model = work / "model"
    run("train", "--model", "bert-base", "--task", "classify", "--num-layers", 2, "--hidden-size", 64, "--num-attention-heads", 2,
        "--seq-length", LENGTH, "--max-position-embeddings", LENGTH, "--num-classes", len(LANGUAGES), "--tokenizer-type",
        "BertWordPieceCase", "--vocab-file", work / "vocab.txt", "--train-data-path", work / "train.jsonl", "--micro-batch-size", 32,
        "--vocab-size", len(vocabulary), "--train-iters", 700, "--lr", "1e-3", "--lr-warmup-iters", 20, "--save-hf", model)
    out = run("evaluate", "--load-hf", model, "--data-path", work / "held_out.jsonl", "--seq-length", LENGTH,
              "--micro-batch-size", 32)
    print(out)
    accuracy = float(re.search(r"accuracy\D+([\d.]+(?:[eE][+-]?\d+)?)", out).group(1))
    check(accuracy > 0.9, f"accuracy on {len(held_out)} held-out paragraphs of {len(LANGUAGES)} languages: {accuracy}")

    try:
        import torch
        import transformers
    except ImportError:
        print("transformers is not installed: its predictions were not counted")
        sys.exit(0)
    peer = transformers.BertForSequenceClassification.from_pretrained(model).eval()
    tokenizer = transformers.BertTokenizer(str(model / "vocab.txt"), do_lower_case=False)
    right = 0
    with torch.no_grad():
        for i in range(0, len(held_out), 64):
            part = held_out[i:i + 64]
            batch = tokenizer([text for text, _ in part], truncation=True, max_length=LENGTH, padding=True,
                              return_tensors="pt")
            for (_, language), k in zip(part, peer(**batch).logits.argmax(1).tolist()):
                right += peer.config.id2label[k] == language
    check(abs(right / len(held_out) - accuracy) < 1e-4,  # four decimals are printed
          f"transformers predicts {right} of {len(held_out)} languages as evaluate says")
