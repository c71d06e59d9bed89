"""Tokens that somebody added to a tokenizer. `tokenizers` cuts texts at them; here they are refused, in whichever file
they are, and nothing is tokenized. Tokenizers with their own special tokens alone give the numbers of `tokenizers`."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

tool, root = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from peer_support import check, skip

try:
    import numpy
    from tokenizers import AddedToken, Tokenizer
    from tokenizers.implementations import BertWordPieceTokenizer, ByteLevelBPETokenizer
except ImportError as error:
    skip(f"the package {error.name} is missing")

TEXT = "covid-19 spreads in New York: hello, helloworld <sep> covid"
ROLES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
folder_ = tempfile.TemporaryDirectory()
bert, gpt2, work = (os.path.join(folder_.name, name) for name in ("bert", "gpt2", "work"))
for path in (bert, gpt2):
    os.mkdir(path)

learner = BertWordPieceTokenizer(lowercase=True)
learner.train_from_iterator([TEXT] * 9, vocab_size=200, special_tokens=ROLES, show_progress=False)
learner.save_model(bert)
learner.save(os.path.join(bert, "tokenizer.json"))
learner = ByteLevelBPETokenizer()
learner.train_from_iterator([TEXT] * 9, vocab_size=300, special_tokens=["<|endoftext|>"], show_progress=False)
learner.save_model(gpt2)
learner.save(os.path.join(gpt2, "tokenizer.json"))
# GPT-2's own file has neither of the other steps of ByteLevelBPETokenizer.
path = os.path.join(gpt2, "tokenizer.json")
saved = json.load(open(path, encoding="utf-8"))
saved["pre_tokenizer"] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
json.dump(saved, open(path, "w", encoding="utf-8"))


def encode(folder, names):
    """By our tool: its arguments are a vocabulary, and merges or the kind of tokenizer."""
    vocab = os.path.join(folder, names[0])
    last = "BertWordPieceLowerCase" if "vocab.txt" in os.listdir(folder) else os.path.join(folder, names[-1])
    return subprocess.run([tool, "encode", vocab, last], input=TEXT.encode(), capture_output=True, timeout=60)


def copy_of(folder):
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(folder, work)
    return work


def forms(folder):
    return [["tokenizer.json"], ["vocab.txt"] if folder == bert else ["vocab.json", "merges.txt"]]


for folder in (bert, gpt2):
    peer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    for names in forms(folder):
        done = encode(copy_of(folder), names)
        check(done.returncode == 0, done.stderr.decode())
        check(numpy.frombuffer(done.stdout, dtype="<i4").tolist() == peer.encode(TEXT, add_special_tokens=False).ids,
              f"{names}: the numbers of tokenizers")
    for token, special in [(AddedToken("covid-19"), False), (AddedToken("hello"), False), (AddedToken("<sep>"), True),
                           (AddedToken("New York", single_word=True), False), (AddedToken("spread", lstrip=True), False),
                           (AddedToken("COVID", normalized=True), False), (AddedToken("[PAD ]"), True)]:
        copy_of(folder)
        peer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        (peer.add_special_tokens if special else peer.add_tokens)([token])
        peer.save(os.path.join(work, "tokenizer.json"))
        for names in forms(folder):
            done = encode(work, names)
            error = done.stderr.decode()
            check(done.returncode != 0 and not done.stdout and "tokenizer.json' adds the token" in error and
                  f'"{token.content}"' in error, f"{names}: {token.content}: {error}")
    # The file of slow tokenizers.
    copy_of(folder)
    os.remove(os.path.join(work, "tokenizer.json"))
    with open(os.path.join(work, "added_tokens.json"), "w", encoding="utf-8") as f:
        json.dump({"covid-19": 250}, f)
    done = encode(work, forms(folder)[1])
    check(done.returncode != 0 and not done.stdout and b"added_tokens.json' adds the token \"covid-19\"" in done.stderr,
          done.stderr.decode())

# The configuration of transformers' tokenizers: every place in which it may name a token.
try:
    from transformers import AutoTokenizer
except ImportError as error:
    skip(f"the package {error.name} is missing")


def described(token):
    return {"content": token, "lstrip": False, "normalized": True, "rstrip": False, "single_word": False,
            "special": False, "__type": "AddedToken"}


PLACES = [
    ("tokenizer_config.json", lambda t, n: {"added_tokens_decoder": {str(n): described(t)}}),
    *((name, lambda t, n, key=key, value=value: {key: value(t)})
      for name in ("tokenizer_config.json", "special_tokens_map.json")
      for key in ("additional_special_tokens", "extra_special_tokens") for value in (lambda t: [t],)),
    ("tokenizer_config.json", lambda t, n: {"additional_special_tokens": [described(t)]}),
    ("tokenizer_config.json", lambda t, n: {"extra_special_tokens": {"x_token": t}}),
    ("tokenizer_config.json", lambda t, n: {"model_specific_special_tokens": {"x_token": t}}),
    *((name, lambda t, n, role=role, value=value: {role: value(t)})
      for name in ("tokenizer_config.json", "special_tokens_map.json")
      for role in ("bos_token", "pad_token", "image_token") for value in (str, described)
      if name == "tokenizer_config.json" or value is str)]
for folder, cls in ((bert, "BertTokenizer"), (gpt2, "GPT2Tokenizer")):
    names = forms(folder)[1]
    roles = (dict(zip(["pad_token", "unk_token", "cls_token", "sep_token", "mask_token"], ROLES)) if folder == bert else
             {role: described("<|endoftext|>") for role in ("bos_token", "eos_token", "unk_token")})
    for name, entries in [("", lambda t, n: {}), *PLACES]:
        copy_of(folder)
        os.remove(os.path.join(work, "tokenizer.json"))
        if folder == gpt2:
            with open(os.path.join(work, "vocab.json"), encoding="utf-8") as f:
                size = len(json.load(f))
        else:
            with open(os.path.join(work, "vocab.txt"), encoding="utf-8") as f:
                size = len(f.readlines())
        entry = entries("covid-19", size)
        for file in ("tokenizer_config.json", "special_tokens_map.json"):
            described_by = {**{k: v for k, v in roles.items() if k not in entry}, **(entry if file == name else {}),
                            **({"tokenizer_class": cls, "model_max_length": 512, "clean_up_tokenization_spaces": True}
                               if file == "tokenizer_config.json" else {})}
            with open(os.path.join(work, file), "w", encoding="utf-8") as f:
                json.dump(described_by, f)
        done = encode(work, names)
        if not name:
            check(done.returncode == 0, f"{cls}: its own special tokens: {done.stderr.decode()}")
            continue
        check(size in AutoTokenizer.from_pretrained(work)("covid-19", add_special_tokens=False)["input_ids"],
              f"{entry} adds no token")
        check(done.returncode != 0 and not done.stdout and f"{name}' adds the token \"covid-19\"" in done.stderr.decode(),
              f"{cls} {name}: {entry}: {done.stderr.decode()}")
    # What cannot be read may add tokens.
    for name in ("tokenizer.json", "added_tokens.json", "tokenizer_config.json", "special_tokens_map.json"):
        for text in ('{"covid": 6', "", "[]", '["covid"]', "version https://git-lfs.github.com/spec/v1\n"):
            copy_of(folder)
            with open(os.path.join(work, name), "w", encoding="utf-8") as f:
                f.write(text)
            done = encode(work, names)
            check(done.returncode != 0 and not done.stdout and f"{name}' is not a JSON object" in done.stderr.decode(),
                  f"{cls} {name}: {text}: {done.stderr.decode()}")
# tokenizers draws other numbers every time with a dropout, and none with 0.
for dropout in (0.5, 0.0, None):
    copy_of(gpt2)
    path = os.path.join(work, "tokenizer.json")
    with open(path, encoding="utf-8") as f:
        saved = json.load(f)
    saved["model"]["dropout"] = dropout
    with open(path, "w", encoding="utf-8") as f:
        json.dump(saved, f)
    done = encode(work, ["tokenizer.json"])
    check((done.returncode == 0) == (not dropout) and (not dropout or b'"dropout": 0.5' in done.stderr),
          f"dropout {dropout}: {done.stderr.decode()}")
print("added tokens are refused")
