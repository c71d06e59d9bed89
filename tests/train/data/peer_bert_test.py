"""BERT's pre-training data: `prepare --task bert` against create_pretraining_data.py of google-research/bert, which
draws our random numbers here and must then make the same samples; and the reader of HDF5 shards against h5py."""
import glob
import json
import os
import random
import resource
import subprocess
import sys
import tempfile

tool, root = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from peer_support import check, skip

try:
    import h5py
    import numpy
except ImportError as error:
    skip(f"the package {error.name} is missing")
import original_bert
import philox_draws
from philox_draws import Draws

original = original_bert.load("create_pretraining_data") or skip("the package bert-tensorflow is missing")
tokenization = sys.modules["bert.tokenization"]
folder_ = tempfile.TemporaryDirectory()
folder = folder_.name
KEYS = ["input_ids", "input_mask", "segment_ids", "masked_lm_positions", "masked_lm_ids", "next_sentence_labels"]


def run(*arguments, code=0):
    limit = int(os.environ.get("TALLY_TEST_MEMORY", 6 << 30))
    done = subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    if code is not None:
        check(done.returncode == code, f"{arguments[:3]}: exit code {done.returncode}: {done.stderr}")
    return done


def samples_of(*arguments):
    lines = [json.loads(line) for line in run("shards", *arguments).stdout.splitlines()]
    return lines[0], lines[1:]


# --- A text of invented words, with documents of many shapes -----------------------------------------------
draw = random.Random(11)
words = ["".join(draw.choice("abcdefghijklmnop") for _ in range(draw.randint(1, 7))) for _ in range(400)]
pieces = sorted(set(words[:300]) | set("abcdefghijklmnop") | {"##" + c for c in "abcdefghijklmnop"} |
                {"##" + w for w in words[:60]})
vocab = os.path.join(folder, "vocab.txt")
with open(vocab, "w") as f:
    f.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *pieces]) + "\n")
tokens_of = {p: i for i, p in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *pieces])}
documents = []
for _ in range(60):
    documents.append([" ".join(draw.choice(words) for _ in range(draw.choice([1, 5, 12, 30, 200]))) + "."
                      for _ in range(draw.choice([1, 1, 2, 7, 25]))])
text = os.path.join(folder, "text.txt")
with open(text, "w") as f:
    f.write("\n\n\n".join("\n".join(d) for d in documents) + "\n")


def prepared(name, sequence, predictions, *flags, input=text):
    out = os.path.join(folder, name)
    run("prepare", "--task", "bert", "--tokenizer-type", "BertWordPieceLowerCase", "--vocab-file", vocab, "--input",
        input, "--output", out, "--seq-length", sequence, "--max-predictions-per-seq", predictions, *flags)
    made = os.listdir(out)
    check(len(made) == 1, f"{name}: {made}")
    return os.path.join(out, made[0])


def arrays(path):
    with h5py.File(path) as f:
        check(sorted(f.keys()) == sorted(KEYS), f"{path} has {list(f.keys())}")
        return {k: f[k][()] for k in KEYS}


def by_original(sequence, predictions, seed, dupe, shards, probability=0.15, short=0.1):
    """The shards as the original's functions make them with our draws."""
    full = tokenization.FullTokenizer(vocab_file=vocab, do_lower_case=True)
    texts = [[full.tokenize(s) for s in d] for d in documents]
    mask, made, places = original.create_masked_lm_predictions, [], []

    def masked(tokens, probability_, most, vocabulary, _):
        return mask(tokens, probability_, most, vocabulary, Draws(seed, philox_draws.MASKS, masked.number()))
    counter = iter(range(10**9))
    masked.number = lambda: next(counter)
    original.create_masked_lm_predictions = masked
    try:
        for i in range(dupe * len(texts)):
            made += original.create_instances_from_document(
                texts, i % len(texts), sequence, short, probability, predictions, list(tokens_of),
                Draws(seed, philox_draws.PAIRS, i))
    finally:
        original.create_masked_lm_predictions = mask
    files = [[] for _ in range(shards)]
    for number, instance in enumerate(made):
        files[Draws(seed, philox_draws.SHARDS, number).below(shards)].append(instance)
    for number, instances in enumerate(files):
        Draws(seed, philox_draws.ROWS, number).shuffle(instances)
    return files


def same_shard(path, instances, sequence, predictions):
    got = arrays(path)
    check(len(instances) == len(got["input_ids"]), f"{path}: {len(got['input_ids'])} rows, not {len(instances)}")
    pad = lambda values, size: list(values) + [0] * (size - len(values))
    for row, i in enumerate(instances):
        expected = {"input_ids": pad([tokens_of[t] for t in i.tokens], sequence),
                    "input_mask": pad([1] * len(i.tokens), sequence), "segment_ids": pad(i.segment_ids, sequence),
                    "masked_lm_positions": pad(i.masked_lm_positions, predictions),
                    "masked_lm_ids": pad([tokens_of[t] for t in i.masked_lm_labels], predictions),
                    "next_sentence_labels": int(i.is_random_next)}
        for key, value in expected.items():
            check(numpy.array_equal(got[key][row], value), f"{path}, row {row}, {key}: {got[key][row]} not {value}")


for sequence, predictions, seed, dupe, shards in [(128, 20, 12345, 2, 4), (512, 80, 7, 2, 1), (32, 3, 2**63, 3, 2)]:
    out = prepared(f"a{sequence}", sequence, predictions, "--seed", seed, "--dupe-factor", dupe, "--shards", shards,
                   "--workers", 3)
    check(os.path.basename(out) == f"hdf5_lower_case_1_seq_len_{sequence}_max_pred_{predictions}_masked_lm_prob_0.15_"
          f"random_seed_{seed}_dupe_factor_{dupe}", out)
    files = by_original(sequence, predictions, seed, dupe, shards)
    for number, instances in enumerate(files):
        same_shard(f"{out}/training_{number}.hdf5", instances, sequence, predictions)
    check(len(os.listdir(out)) == shards, f"{os.listdir(out)}")
    print(f"sequence {sequence}: {sum(map(len, files))} samples equal to the original's")

one = prepared("one", 128, 20, "--shards", 4, "--dupe-factor", 2, "--workers", 1)
many = prepared("many", 128, 20, "--shards", 4, "--dupe-factor", 2, "--workers", 7)
for name in os.listdir(one):
    check(open(f"{one}/{name}", "rb").read() == open(f"{many}/{name}", "rb").read(), f"workers change {name}")
lines = os.path.join(folder, "text.jsonl")
with open(lines, "w") as f:
    f.writelines(json.dumps({"text": "\n".join(d)}) + "\n" for d in documents)
other = prepared("json", 128, 20, "--shards", 4, "--dupe-factor", 2, input=lines)
for name in os.listdir(one):
    check(open(f"{one}/{name}", "rb").read() == open(f"{other}/{name}", "rb").read(), f"JSON lines change {name}")
long = [s for d in documents * 40 for s in d]  # one document, which is read in parts
with open(lines, "w") as f:
    f.write(json.dumps({"text": "\n".join(long)}) + "\n")
with open(text + ".long", "w") as f:
    f.write("\n".join(long))
check(os.path.getsize(text + ".long") > 3_000_000, "the long document is too short")
parts = [prepared(n, 512, 80, "--dupe-factor", 1, input=i) for n, i in [("long", text + ".long"), ("whole", lines)]]
a, b = [open(p + "/training_0.hdf5", "rb").read() for p in parts]
check(a == b, "a document that is read in parts differs")
prose = os.path.join(folder, "prose.txt")
with open(prose, "w") as f:
    f.write("Mr. Ab ran. He sat\ndown? Yes! It was 3.5 m.\n")
sentences = subprocess.run([tool, "prepare", "--task", "bert", "--split-sentences", "--tokenizer-type",
                            "BertWordPieceLowerCase", "--vocab-file", vocab, "--input", prose, "--output",
                            os.path.join(folder, "prose")], capture_output=True, text=True, check=True).stdout
check("of 5 sentences" in sentences, sentences)  # "Mr." ends one by Unicode's rules
print("equal for any number of workers, and from JSON lines")

# --- Reading -----------------------------------------------------------------------------------------------
files = sorted(glob.glob(one + "/*.hdf5"))


def plain(paths):
    out = []
    for path in paths:
        a = arrays(path)
        for row in range(len(a["input_ids"])):
            length = int(a["input_mask"][row].sum())
            count = int((a["masked_lm_positions"][row] != 0).sum())
            out.append({"ids": a["input_ids"][row][:length].tolist(), "types": a["segment_ids"][row][:length].tolist(),
                        "positions": a["masked_lm_positions"][row][:count].tolist(),
                        "labels": a["masked_lm_ids"][row][:count].tolist(),
                        "next": int(a["next_sentence_labels"][row]), "label": -1, "start": -1, "end": -1})
    return out


expected = plain(files)
head, got = samples_of(vocab, "fixed", "ordered", 1, 0, -1, one)
check(head == {"samples": len(expected), "sequence": 128, "max_predictions": 20}, str(head))
check(got == expected, "the reader's samples are not h5py's")
key = lambda s: json.dumps(s, sort_keys=True)
_, epochs = samples_of(vocab, "fixed", "shuffled", 5, 0, 2 * len(expected), *files)
first, second = epochs[:len(expected)], epochs[len(expected):]
check(sorted(map(key, first)) == sorted(map(key, expected)), "a shuffled epoch is not every sample once")
check(sorted(map(key, second)) == sorted(map(key, expected)), "the second epoch is not every sample once")
check(first != expected and second != first and second != expected, "epochs are not shuffled anew")
firsts = [sum(key(s) in set(map(key, plain([f]))) for s in epochs[e * len(expected):][:20])
          for f in files for e in range(2)]
check(sorted(firsts)[-2:] == [20, 20] and sum(firsts) == 40, f"shards are not gone through one by one: {firsts}")
_, many_epochs = samples_of(vocab, "fixed", "shuffled", 5, 0, 6 * len(expected), *files)
begins = {i for e in range(6) for i, f in enumerate(files) if key(many_epochs[e * len(expected)]) in map(key, plain([f]))}
_, alone = samples_of(vocab, "fixed", "shuffled", 5, 0, 2 * len(plain(files[:1])), files[0])
check(alone[:len(alone) // 2] != alone[len(alone) // 2:], "one shard's samples come in one order in every epoch")
check(len(begins) > 1, "every epoch begins with the same shard")
_, later = samples_of(vocab, "fixed", "shuffled", 5, len(expected) - 3, 40, *files)
check(later == epochs[len(expected) - 3:len(expected) + 37], "a sample depends on where reading began")
_, seeded = samples_of(vocab, "fixed", "shuffled", 6, 0, -1, *files)
check(seeded != first, "the seed changes nothing")


def unmasked(s):
    ids = list(s["ids"])
    for place, label in zip(s["positions"], s["labels"]):
        ids[place] = label
    return {**s, "ids": ids, "positions": [], "labels": []}


_, dynamic = samples_of(vocab, "dynamic", "shuffled", 5, 0, 2 * len(expected), *files)
check([unmasked(s) for s in dynamic] == [unmasked(s) for s in epochs], "dynamic masking changes other tokens")
pairs = {}
kinds = {"mask": 0, "same": 0, "random": 0}
for i, s in enumerate(dynamic):
    tokens = [list(tokens_of)[t] for t in unmasked(s)["ids"]]
    o = original.create_masked_lm_predictions(tokens, 0.15, 20, list(tokens_of), Draws(5, philox_draws.MASKS, i))
    check(([tokens_of[t] for t in o[0]], o[1], [tokens_of[t] for t in o[2]]) == (s["ids"], s["positions"],
                                                                                 s["labels"]),
          f"dynamic masks of sample {i} are not the original's")
    pairs.setdefault(key(unmasked(s)), set()).add(key(s["positions"]))
    for place, label in zip(s["positions"], s["labels"]):
        kinds["mask" if s["ids"][place] == 4 else "same" if s["ids"][place] == label else "random"] += 1
check(sum(len(p) > 1 for p in pairs.values()) > 0.8 * len(pairs), "dynamic masks are the same in every epoch")
share = kinds["mask"] / sum(kinds.values())
check(abs(share - 0.8) < 0.02, f"{kinds}")
print(f"{len(expected)} samples read as h5py reads them; masks {kinds}")

# --- Files of others, and files that are none --------------------------------------------------------------
base = arrays(files[0])
made = 0


def shard(change=None, **how):
    """A copy of a shard as h5py writes it, changed."""
    global made
    made += 1
    path = os.path.join(folder, f"made{made}.hdf5")
    with h5py.File(path, "w", **how.pop("file", {})) as f:
        for k in KEYS:
            f.create_dataset(k, data=base[k].astype(how.get("dtype", base[k].dtype)),
                             **how.get("storage", {"compression": "gzip"}))
        if change:
            change(f)
    return path


for how in [{}, {"storage": {}}, {"dtype": "i8"}, {"dtype": ">i2"}, {"dtype": "u4"},
            {"storage": {"compression": "gzip", "shuffle": True}},
            {"storage": {"chunks": True}}, {"dtype": ">i8", "storage": {"compression": "gzip", "shuffle": True}},
            {"dtype": "u2", "storage": {"shuffle": True, "chunks": True}}, {"file": {"libver": ("v110", "v110")}}]:
    _, got = samples_of(vocab, "fixed", "ordered", 1, 0, -1, shard(**how))
    check(got == expected[:len(got)] and len(got) == len(base["input_ids"]), f"h5py's file {how} reads otherwise")


def replaced(key, data, **how):
    def change(f):
        del f[key]
        if data is not None:
            f.create_dataset(key, data=data, **how)
    return change


def set_value(key, row, column, value):
    def change(f):
        if column is None:
            f[key][row] = value
        else:
            f[key][row, column] = value
    return change


def huge(f):
    del f["input_ids"]
    f.create_dataset("input_ids", shape=(2**28, 128), dtype="i4", chunks=(64, 128), compression="gzip")


def unwritten(f):
    del f["input_ids"]
    f.create_dataset("input_ids", shape=base["input_ids"].shape, dtype="i4", chunks=(64, 128))[:64] = 5


def many_chunks(f):
    del f["input_ids"]
    f.create_dataset("input_ids", shape=(2**18, 128), dtype="i1", chunks=(1, 1), compression="gzip")


def huge_chunk(f):
    del f["input_ids"]
    f.create_dataset("input_ids", shape=base["input_ids"].shape, maxshape=(None, None), dtype="i4",
                     chunks=(2**20, 512), compression="gzip")


def outside(f):
    del f["input_ids"]
    f["input_ids"] = h5py.ExternalLink("/etc/passwd", "x")


def external(f):
    del f["input_ids"]
    f.create_dataset("input_ids", shape=base["input_ids"].shape, dtype="i4", external=[("/etc/passwd", 0, 2**20)])


def virtual(f):
    layout = h5py.VirtualLayout(shape=base["input_ids"].shape, dtype="i4")
    layout[:] = h5py.VirtualSource(files[0], "input_ids", shape=base["input_ids"].shape)
    del f["input_ids"]
    f.create_virtual_dataset("input_ids", layout)


rows = len(base["input_ids"])
for change, message in [
        (replaced("input_ids", None), "has no dataset input_ids"),
        (replaced("input_ids", base["input_ids"].astype("f4")), "does not hold integers"),
        (replaced("input_ids", base["input_ids"][:, :, None]), "is not a table"),
        (replaced("input_mask", base["input_mask"][:-1]), f"would fit input_ids"),
        (replaced("input_ids", base["input_ids"], compression="lzf"), "only gzip and shuffle are read"),
        (replaced("input_ids", h5py.Empty("i4")), "is not a table"),
        (huge, "the file has only"), (unwritten, "has no numbers from row 64 on"), (huge_chunk, "the file has only"), (many_chunks, "the file has only"), (outside, "link to somewhere else"),
        (external, "lies in other files"), (virtual, "lies in other files"),
        (set_value("input_ids", 3, 1, 10**6), "row 3 of input_ids has the token 1000000"),
        (set_value("input_ids", 3, 1, -1), "row 3 of input_ids has the token -1"),
        (set_value("input_mask", 4, 1, 0), "row 4 of input_mask is not ones, then zeros"),
        (set_value("segment_ids", 4, 0, 1), "row 4 of segment_ids"),
        (set_value("masked_lm_positions", 5, 0, 400), "row 5 of masked_lm_positions has 400"),
        (set_value("masked_lm_positions", 5, 0, -4), "row 5 of masked_lm_positions has -4"),
        (set_value("masked_lm_ids", 5, 0, -4), "row 5 of masked_lm_ids has the token -4"),
        (set_value("next_sentence_labels", 6, None, 2), "row 6 of next_sentence_labels is 2")]:
    path = shard(change)
    error = run("shards", vocab, "fixed", "ordered", 1, 0, 1, path, code=2).stderr
    check(message in error and path in error and error.count("\n") == 1, f"expected '{message}', got: {error}")
error = run("shards", vocab, "fixed", "ordered", 1, 0, 1, files[0], f"{folder}/a32", code=2).stderr
check("no .hdf5 files" in error, error)
error = run("shards", vocab, "fixed", "ordered", 1, 0, 1, files[0], glob.glob(f"{folder}/a32/*")[0], code=2).stderr
check("train on shards of one shape at a time" in error, error)
check("cannot be read: No such file" in run("shards", vocab, "fixed", "ordered", 1, 0, 1, "/none", code=2).stderr,
      "a missing file")
check("already exists" in run("prepare", "--task", "bert", "--tokenizer-type", "BertWordPieceLowerCase",
                                "--vocab-file", vocab, "--input", text, "--output", folder + "/one", "--dupe-factor",
                                2, code=2).stderr, "an output is overwritten")

check("--task bert needs --tokenizer-type" in run("prepare", "--task", "bert", "--input", text, "--output",
                                                  folder + "/none", code=2).stderr, "no WordPiece tokenizer")

# Truncated and damaged files: an error or the data, in bounded memory; never a crash.
whole = open(shard(), "rb").read()
damaged = os.path.join(folder, "damaged.hdf5")
outcomes = {0: 0, 2: 0}
trials = [whole[:int(len(whole) * share)] for share in (0, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)]
trials += [whole[:-1], b"\0" * 4096, b"not HDF5" * 100]
count = int(os.environ.get("TALLY_TEST_DAMAGES", "150"))
for i in range(count):
    bytes_ = bytearray(whole)
    for _ in range(draw.randint(1, 8)):
        # Most of the structure is at the beginning of the file.
        bytes_[draw.randrange(min(len(whole), draw.choice([2048, 16384, len(whole)])))] = draw.choice(
            [0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)])
    trials.append(bytes(bytes_))
for i, data in enumerate(trials):
    with open(damaged, "wb") as f:
        f.write(data)
    done = run("shards", vocab, "fixed", "ordered", 1, 0, -1, damaged, code=None)
    if done.returncode not in outcomes:
        os.replace(damaged, "/tmp/tally-damaged.hdf5")
        sys.exit(f"FAILED damaged file {i}: exit code {done.returncode}: {done.stderr[-300:]}")
    outcomes[done.returncode] += 1
    check(done.returncode == 0 or (damaged in done.stderr and done.stderr.count("\n") == 1),
          f"damaged file {i}: {done.stderr}")
print(f"{len(trials)} damaged files: {outcomes[2]} refused, {outcomes[0]} still read")
print("all equal")
