"""Our WordPiece tokenizer against Hugging Face's `tokenizers`: 1 MB of odd Unicode, every steady character in
context, real text; uncased and cased; from vocab.txt and from tokenizer.json. And against the original BERT's
tokenization.py, where its rules are the same."""
import os
import random
import subprocess
import sys
import tempfile
import time

tool, root = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from peer_support import skip

try:
    import numpy
    import tokenizers
    from tokenizers.implementations import BertWordPieceTokenizer
except ImportError as error:
    skip(f"the package {error.name} is missing")
import odd_text
import original_bert

text_file = os.environ.get("TALLY_TEST_TEXT", os.path.join(root, ".deps", "text", "english.txt"))
if not os.path.exists(text_file):
    skip(f"there is no {text_file}")
with open(text_file, "rb") as f:
    real = f.read().decode("utf-8", "replace")
odd = odd_text.odd_text(20261124, 1_000_000)
context = "".join(f"a{c} {c}{c}b 1{c}" for c in odd_text.steady())
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def trained(lower, folder):
    """A vocabulary of the texts, with the numbers of its tokens in the order of a vocab.txt."""
    learner = BertWordPieceTokenizer(lowercase=lower)
    learner.train_from_iterator(odd.split("\n") + real[:400_000].split("\n"), vocab_size=9000,
                                limit_alphabet=3000, show_progress=False, special_tokens=SPECIALS)
    learner.save_model(folder)
    json = os.path.join(folder, "tokenizer.json")
    learner.save(json)
    return os.path.join(folder, "vocab.txt"), json


def ours(text, vocab, kind):
    out = subprocess.run([tool, "encode", vocab, kind], input=text.encode("utf-8"), stdout=subprocess.PIPE,
                         check=True).stdout
    return numpy.frombuffer(out, dtype="<i4")


def same(name, got, expected, peer):
    if len(got) == len(expected) and (got == expected).all():
        return
    at = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b), min(len(got), len(expected)))
    words = [peer.id_to_token(int(t)) for t in expected[max(0, at - 4):at + 4]]
    mine = [peer.id_to_token(int(t)) for t in got[max(0, at - 4):at + 4]]
    sys.exit(f"FAILED {name}: token {at} of {len(expected)}: ours {mine}, tokenizers {words}")


def original(vocab, lower, text):
    """The token numbers by google-research/bert."""
    module = original_bert.load("tokenization") or skip("the package bert-tensorflow is missing")
    full = module.FullTokenizer(vocab_file=vocab, do_lower_case=lower)
    full.wordpiece_tokenizer.max_input_chars_per_word = 100
    return full.convert_tokens_to_ids(full.tokenize(text))


for lower in (True, False):
    kind = "BertWordPieceLowerCase" if lower else "BertWordPieceCase"
    with tempfile.TemporaryDirectory() as folder:
        vocab, json = trained(lower, folder)
        peer = BertWordPieceTokenizer(vocab, lowercase=lower)
        peer.add_special_tokens([])
        for name, text in [("odd Unicode", odd), ("every steady character", context), ("real text", real),
                           ("empty", ""), ("blanks", " \t\n "), ("random bytes as Latin-1", "".join(
                               chr(random.Random(7 + i).randrange(256)) for i in range(30_000)))]:
            begin = time.time()
            expected = numpy.array(peer.encode(text, add_special_tokens=False).ids, dtype=numpy.int32)
            middle = time.time()
            got = ours(text, vocab, kind)
            end = time.time()
            same(f"{kind}, {name}", got, expected, peer)
            assert (ours(text, json, kind) == got).all(), "tokenizer.json and vocab.txt differ"
            unknown = int((expected == peer.token_to_id("[UNK]")).sum())
            print(f"{kind}, {name}: {len(text.encode())} bytes, {len(got)} tokens equal ({unknown} [UNK]); tokenizers "
                  f"{middle - begin:.2f} s, ours with its start {end - middle:.2f} s")
        # The original lowers before it strips accents, has a final sigma, and keeps private characters: none of
        # these in this text.
        plain = "\n".join(line for line in odd.split("\n") if not any(
            c in "\u03a3\u0130\ufeff" or 0xE000 <= ord(c) < 0xF900 for c in line))
        expected = numpy.array(original(vocab, lower, plain), dtype=numpy.int32)
        same(f"{kind}, the original BERT", ours(plain, vocab, kind), expected, peer)
        print(f"{kind}: {len(expected)} tokens of {len(plain)} characters equal to the original BERT's")
        back = subprocess.run([tool, "decode", vocab, kind], input=expected[:2000].tobytes(), stdout=subprocess.PIPE,
                              check=True).stdout.decode()
        pieces = [peer.id_to_token(int(t)) for t in expected[:2000]]
        assert back == " ".join(pieces).replace(" ##", ""), "decoding differs"
        # The command prints a line of tokens for each line of text.
        lines = real[:300_000].split("\n")
        path = os.path.join(folder, "lines.txt")
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines))
        for flags, form in ([], lambda e: [str(i) for i in e.ids]), (["--pieces"], lambda e: e.tokens):
            out = subprocess.run([tool, "tokenize", "--tokenizer-type", kind, "--vocab-file", vocab, "--input", path,
                                  *flags], stdout=subprocess.PIPE, check=True).stdout.decode().split("\n")
            expected = [" ".join(form(peer.encode(line, add_special_tokens=False))) for line in lines]
            assert out == expected + [""], "tokenize prints something else"
done = subprocess.run([tool, "tokenize", "--tokenizer-type", "BertWordPieceCase"], capture_output=True, text=True)
assert done.returncode == 2 and done.stderr.startswith("tally-train tokenize: error: BertWordPieceCase needs --vocab-file")
print("all equal")
