"""`prepare` and the indexed dataset against a reader and a writer written here from the format alone (numpy),
with the tokens of Hugging Face's tokenizers where it is installed."""
import gzip
import json
import os
import struct
import subprocess
import sys
import tempfile

tool, root = sys.argv[1], sys.argv[2]
try:
    import numpy
except ImportError:
    print("SKIPPED: the package numpy is missing (scripts/setup --tests provides it)")
    sys.exit(77)

SIZES = {4: numpy.dtype("<i4"), 8: numpy.dtype("<u2")}


def index_bytes(documents, code):
    """The .idx of documents with one sequence each."""
    lengths = numpy.array([len(d) for d in documents], dtype="<i4")
    pointers = numpy.zeros(len(documents), dtype="<i8")
    numpy.cumsum(lengths[:-1].astype("<i8") * SIZES[code].itemsize, out=pointers[1:])
    return (b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, code, len(documents), len(documents) + 1) +
            lengths.tobytes() + pointers.tobytes() + numpy.arange(len(documents) + 1, dtype="<i8").tobytes())


def check(prefix, documents, code, name):
    tokens = numpy.concatenate([numpy.asarray(d, dtype=SIZES[code]) for d in documents]).tobytes()
    for suffix, expected in ((".idx", index_bytes(documents, code)), (".bin", tokens)):
        with open(prefix + suffix, "rb") as f:
            got = f.read()
        if got != expected:
            at = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b), min(len(got), len(expected)))
            sys.exit(f"FAILED {name}{suffix}: {len(got)} bytes, expected {len(expected)}; they differ at byte {at}")
    print(f"{name}: {len(documents)} documents, {len(tokens)} bytes of tokens equal")


def run(*flags, **more):
    subprocess.run([tool, "prepare", *flags], check=True, stdout=subprocess.DEVNULL, **more)


texts = [f"Document {i}: " + "word " * (i % 17) + "\u4e2d\n\n'll" * (i % 3) for i in range(5000)] + ["", "x"]
with tempfile.TemporaryDirectory() as work:
    out = os.path.join(work, "out")
    lines = os.path.join(work, "in.jsonl.gz")
    with gzip.open(lines, "wt", encoding="utf-8") as f:
        for text in texts:
            f.write(json.dumps({"text": text}, ensure_ascii=len(text) % 2 == 0) + "\n")
    as_bytes = [list(t.encode("utf-8")) for t in texts]
    run("--input", lines, "--output", out, "--tokenizer-type", "bytes", "--workers", "3")
    check(out, [d for d in as_bytes if d], 8, "bytes, u16")
    run("--input", lines, "--output", out, "--tokenizer-type", "bytes", "--append-eod", "--dtype", "i32")
    check(out, [d + [256] for d in as_bytes if d], 4, "bytes with end of document, i32")
    whole = "\n".join(texts)
    run("--input", "-", "--output", out, "--tokenizer-type", "bytes", input=whole.encode("utf-8"))
    check(out, [list(whole.encode("utf-8"))], 8, "standard input")

    vocab = os.environ.get("TALLY_TEST_VOCAB", os.path.join(root, ".deps", "vocab"))
    files = [os.path.join(vocab, name) for name in ("vocab.json", "merges.txt")]
    try:
        from tokenizers import ByteLevelBPETokenizer
    except ImportError:
        ByteLevelBPETokenizer = None
    if ByteLevelBPETokenizer is None or not all(map(os.path.exists, files)):
        print("SKIPPED: the GPT-2 half needs the package tokenizers and " + " and ".join(files))
        sys.exit(77)
    peer = ByteLevelBPETokenizer(*files)
    run("--input", lines, "--output-prefix", out, "--vocab-file", files[0], "--merge-file", files[1], "--append-eod")
    check(out + "_text_document", [peer.encode(t).ids + [50256] for t in texts if t], 8, "GPT-2, u16")
