"""BERT's two phases of pre-training on a real text: short samples first, then the checkpoint goes on with longer ones.
Steps, samples and the optimizer's state continue; positions that only the longer samples have begin to learn."""
import collections
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
TEXT = SOURCE / ".deps/text/english.txt"
SHORT, LONG, BATCH, FIRST, ALL = 32, 64, 16, 150, 400
if not TEXT.exists():
    print(f"SKIPPED: there is no text {TEXT} (scripts/setup fetches it)")
    sys.exit(77)


def check(condition, what):
    if not condition:
        sys.exit("FAILED: " + what)
    print("ok: " + what)


def run(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"FAILED: tally-train {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout + done.stderr


def steps(out):
    """iteration: (consumed samples, loss as printed)."""
    return {int(i): (int(samples), loss) for i, samples, loss in re.findall(
        r"iteration\s+(\d+)/.*?consumed samples:\s+(\d+).*?lm loss: (\S+)", out)}


def tensor(path, name):
    """The numbers of an f32 tensor of a safetensors file, by rows."""
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        entry = json.loads(f.read(size))[name]
        begin, end = entry["data_offsets"]
        f.seek(8 + size + begin)
        numbers = struct.unpack(f"<{(end - begin) // 4}f", f.read(end - begin))
    columns = entry["shape"][1]
    return [numbers[i:i + columns] for i in range(0, len(numbers), columns)]


with tempfile.TemporaryDirectory() as folder:
    work = pathlib.Path(folder)
    text = TEXT.read_text(errors="replace")[200_000:500_000]
    (work / "text.txt").write_text(text)
    words = collections.Counter(re.findall(r"[a-z]+", text.lower()))
    letters = [chr(c) for c in range(33, 127) if not chr(c).isupper()]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + letters + ["##" + c for c in letters]
    pieces += [word for word, n in words.most_common(800) if len(word) > 1]
    (work / "vocab.txt").write_text("\n".join(pieces) + "\n")
    tokenizer = ("--tokenizer-type", "BertWordPieceLowerCase", "--vocab-file", work / "vocab.txt")
    for length in (SHORT, LONG):
        run("prepare", "--task", "bert", "--input", work / "text.txt", "--split-sentences", "--output", work / str(length),
            "--seq-length", length, "--dupe-factor", 1, *tokenizer)

    def train(length, iterations, *more):
        data = next((work / str(length)).iterdir())
        return run("train", "--model", "bert-base", "--num-layers", 2, "--hidden-size", 64, "--num-attention-heads", 2,
                   "--vocab-size", len(pieces), "--max-position-embeddings", LONG, "--seq-length", length, "--data-path", data,
                   *tokenizer, "--micro-batch-size", BATCH, "--train-iters", iterations, "--lr", "1e-3", "--lr-decay-style",
                   "constant", "--weight-decay", 0, "--log-interval", 1, *more)

    first = steps(train(SHORT, FIRST, "--save", work / "one"))
    check(list(first) == list(range(1, FIRST + 1)), "phase 1 has its steps")
    out = train(LONG, ALL, "--load", work / "one", "--save", work / "two")
    check(f"--seq-length {LONG} differs from the checkpoint's {SHORT}" in out, "a note says that the length differs")
    second = steps(out)
    check(list(second) == list(range(FIRST + 1, ALL + 1)), "phase 2 begins at the step after the last of phase 1")
    check([samples for samples, _ in second.values()] == [BATCH * i for i in second], "samples are counted on")

    def mean(losses):
        return sum(float(loss) for _, loss in losses) / len(losses)
    start, end = mean(list(first.values())[:5]), mean(list(first.values())[-10:])
    begins, ends = mean(list(second.values())[:10]), mean(list(second.values())[-50:])
    check(end < start - 1, f"phase 1 learns: {start} {end}")
    check(begins < end + (start - end) / 3, f"phase 2 goes on from there: {end} {begins}")
    check(ends < begins, f"and learns: {begins} {ends}")

    name = "embeddings.position_embeddings.weight"
    for kind in ("exp_avg", "exp_avg_sq"):
        rows = [tensor(work / run_folder / f"iter_{i:07d}" / "optimizer.safetensors", f"{kind}.{name}")
                for run_folder, i in (("one", FIRST), ("two", ALL))]
        check(all(any(row) for row in rows[0][:SHORT]) and not any(any(row) for row in rows[0][SHORT:]),
              f"{kind}: phase 1 trained the positions of short samples alone")
        check(all(any(row) for row in rows[1]), f"{kind}: phase 2 trained all positions")
    with open(work / "two" / f"iter_{ALL:07d}" / "state.json") as f:
        state = json.load(f)
    check((state["iteration"], state["consumed_samples"], state["sequence"]) == (ALL, BATCH * ALL, LONG),
          "the checkpoint of phase 2 has its length")

    # Within phase 2, a run that was interrupted sees the samples that it would have seen.
    train(LONG, FIRST + 10, "--load", work / "one", "--save", work / "part")
    check(steps(train(LONG, ALL, "--load", work / "part")) == {i: s for i, s in second.items() if i > FIRST + 10},
          "phase 2 resumes with the same losses")
