"""Our GPT-2 tokenizer against Hugging Face's `tokenizers`, with the real vocabulary: on real text, on
every assigned character, on nasty mixtures. Text and vocabulary come from scripts/setup (.deps/), or from
TALLY_TEST_VOCAB (a directory with vocab.json and merges.txt) and TALLY_TEST_TEXT (a file)."""
import os
import random
import subprocess
import sys
import time
import unicodedata

from peer_support import skip

tool, root = sys.argv[1], sys.argv[2]
try:
    import numpy
    from tokenizers import ByteLevelBPETokenizer
except ImportError as error:
    skip(f"the package {error.name} is missing")
vocab = os.environ.get("TALLY_TEST_VOCAB", os.path.join(root, ".deps", "vocab"))
text_file = os.environ.get("TALLY_TEST_TEXT", os.path.join(root, ".deps", "text", "english.txt"))
files = [os.path.join(vocab, name) for name in ("vocab.json", "merges.txt")]
for path in files + [text_file]:
    if not os.path.exists(path):
        skip(f"there is no {path}")
peer = ByteLevelBPETokenizer(*files)


def ours(data):
    out = subprocess.run([tool, "encode", *files], input=data, stdout=subprocess.PIPE, check=True).stdout
    return numpy.frombuffer(out, dtype="<i4")


def compare(name, text):
    data = text if isinstance(text, bytes) else text.encode("utf-8")
    text = data.decode("utf-8", "replace")
    begin = time.time()
    expected = numpy.array(peer.encode(text).ids, dtype=numpy.int32)
    middle = time.time()
    got = ours(data)
    end = time.time()
    if len(got) != len(expected) or (got != expected).any():
        at = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b), min(len(got), len(expected)))
        sys.exit(f"FAILED {name}: token {at} of {len(expected)}: ours {got[at:at + 8].tolist()}, tokenizers "
                 f"{expected[at:at + 8].tolist()} after {peer.decode(expected[max(0, at - 8):at].tolist())!r}")
    back = subprocess.run([tool, "decode", *files], input=got.tobytes(), stdout=subprocess.PIPE, check=True).stdout
    if back != text.encode("utf-8"):
        sys.exit(f"FAILED {name}: decoding does not give the text back")
    print(f"{name}: {len(data)} bytes, {len(got)} tokens equal; tokenizers {middle - begin:.2f} s, ours with "
          f"its start {end - middle:.2f} s")


with open(text_file, "rb") as f:
    real = f.read()
compare("real text", real)

# Every character assigned in this Python's Unicode, alone between letters, spaces and digits. The classes of
# characters that newer versions of Unicode assign may differ between the libraries.
assigned = [chr(c) for c in range(0x110000)
            if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) not in ("Cn", "Co")]
compare("every character, run together", "".join(assigned))
compare("every character in context", "".join(f"a{c} {c}{c}1 \n{c}'s" for c in assigned))

draw = random.Random(20261121)
spaces = [" ", "  ", "\t", "\n", "\r\n", "\x0b", "\x0c", "\x1c", "\x1f", "\x85", "\xa0", "\u1680", "\u180e",
          "\u2000", "\u200a", "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\ufeff"]
bits = spaces + ["'s", "'S", "'t", "'re", "'ve", "'m", "'ll", "'d", "'", "''", "\u2019s", "don't", "we'll've", "0",
                 "\u0663", "\xbd", "\u2167", "\xb2", "e\u0301", "\u0301", "\u4e2d\u6587", "\U0001f600",
                 "\U0001f468\u200d\U0001f469", "\u0e01\u0e33", "\u0915\u094d\u0937", "<|endoftext|>", "_", "-", "...",
                 "\x00", "\x7f", "\u01c5", "\u02b0", "\U00010400", "word", " word", "WORD", "a" * 60, "ab" * 40, "=" * 70]
for round_ in range(20):
    compare(f"mixture {round_}", "".join(draw.choice(bits) for _ in range(3000)))
compare("white space only", "".join(draw.choice(spaces) for _ in range(5000)))
compare("one long word", "".join(draw.choice("abcdefgh") for _ in range(20000)))
compare("random bytes", bytes(draw.getrandbits(8) for _ in range(200000)))
compare("empty", "")
print("all equal")
