"""Every setting that the files of a tokenizer's folder have for the tokens of a text is honoured, which gives the
numbers of transformers and tokenizers, or refused in a sentence that names the file and the setting. None is passed
over, whichever file of the folder is named as the vocabulary."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

tool = sys.argv[1]
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from peer_support import check, skip

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    from tokenizers import Tokenizer
    from tokenizers.implementations import ByteLevelBPETokenizer
    from transformers import AutoTokenizer, BertTokenizer, GPT2Tokenizer
    from transformers.utils import logging
except ImportError as error:
    skip(f"the package {error.name} is missing")
logging.set_verbosity_error()

TEXT = "hello World für 中中 hello, world"
ROLES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = ROLES + ["fur", "für", "hello", "Hello", "World", "world", "中", "中中", ","]
holder = tempfile.TemporaryDirectory()
root = holder.name
bert, gpt2, work = (os.path.join(root, name) for name in ("bert", "gpt2", "work"))
# The folders have each form of the vocabulary; below, those that a case does not name are removed.
os.mkdir(bert)
with open(os.path.join(bert, "vocab.txt"), "w", encoding="utf-8") as f:
    f.write("\n".join(PIECES) + "\n")
BertTokenizer.from_pretrained(bert).save_pretrained(bert)
os.mkdir(gpt2)
learner = ByteLevelBPETokenizer()
learner.train_from_iterator([TEXT] * 9, vocab_size=300, special_tokens=["<|endoftext|>"], show_progress=False)
learner.save_model(gpt2)
GPT2Tokenizer.from_pretrained(gpt2).save_pretrained(gpt2)


def load(name, folder):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file)


def store(name, value):
    with open(os.path.join(work, name), "w", encoding="utf-8") as file:
        json.dump(value, file)


def folder_of(source, whole, config, **others):
    """A folder with the vocabulary in one form. `whole`: what is changed in tokenizer.json, or None: it is missing."""
    shutil.rmtree(work, ignore_errors=True)
    os.mkdir(work)
    names = ["vocab.txt"] if source == bert else ["vocab.json", "merges.txt"]
    if whole is None:
        for name in names:
            shutil.copy(os.path.join(source, name), work)
    else:
        file = load("tokenizer.json", source)
        for place, value in whole.items():
            at = file
            *path, last = place.split("/")
            for key in path:
                at = at[key]
            at[last] = value
        store("tokenizer.json", file)
    if config is not None:
        store("tokenizer_config.json", config)
    for name, value in others.items():
        store({"model": "config"}.get(name, name) + ".json", value)


def tokenize(source, kind):
    files = ["--vocab-file", os.path.join(work, "tokenizer.json")]
    if not os.path.exists(files[1]):
        files = ["--vocab-file", os.path.join(work, "vocab.txt")] if source == bert else [
            "--vocab-file", os.path.join(work, "vocab.json"), "--merge-file", os.path.join(work, "merges.txt")]
    return subprocess.run([tool, "tokenize", "--tokenizer-type", kind, *files], input=TEXT + "\n", encoding="utf-8",
                          capture_output=True, timeout=120)


def numbers(done, what):
    check(done.returncode == 0, f"{what}: {done.stderr}")
    return [int(number) for number in done.stdout.split()]


def honoured(source, whole, config, lower=True, **others):
    folder_of(source, whole, config, **others)
    kind = "GPT2BPETokenizer" if source == gpt2 else "BertWordPieceLowerCase" if lower else "BertWordPieceCase"
    what = f"{os.path.basename(source)}: tokenizer.json {whole}, tokenizer_config.json {config} {others}"
    peer = AutoTokenizer.from_pretrained(work)(TEXT, add_special_tokens=False)["input_ids"]
    check(numbers(tokenize(source, kind), what) == peer, f"{what}: the numbers of transformers, {peer}")
    return peer


def refused(words, source, whole, config, kinds=None, **others):
    folder_of(source, whole, config, **others)
    for kind in kinds or (["GPT2BPETokenizer"] if source == gpt2 else ["BertWordPieceLowerCase"]):
        done = tokenize(source, kind)
        check(done.returncode != 0 and not done.stdout and all(word in done.stderr for word in words),
              f"{words}: tokenizer.json {whole}, tokenizer_config.json {config} {others}: exit code "
              f"{done.returncode}, {done.stdout} {done.stderr}")


B, G = {"tokenizer_class": "BertTokenizer"}, {"tokenizer_class": "GPT2Tokenizer"}
HARMLESS = {"model_max_length": 512, "clean_up_tokenization_spaces": True, "never_split": None, "strip_accents": None,
            "do_basic_tokenize": True, "padding_side": "right", "truncation_side": "right"}
normal = "normalizer/"
seen = set()
# The rules of words: in tokenizer_config.json beside a vocab.txt, in both files, in tokenizer.json alone.
for lower in (True, False):
    for strip in (True, False, None):
        for chinese in (True, False):
            rules = {"do_lower_case": lower, "strip_accents": strip, "tokenize_chinese_chars": chinese}
            whole = {normal + "lowercase": lower, normal + "strip_accents": strip,
                     normal + "handle_chinese_chars": chinese}
            peer = honoured(bert, None, {**B, **rules}, lower)
            seen.add(tuple(peer))
            check(honoured(bert, whole, {**B, **rules}, lower) == peer, f"{rules}: two forms")
            check(honoured(bert, whole, {"tokenizer_class": "PreTrainedTokenizerFast"}, lower) == peer, f"{rules}: whole")
            folder_of(bert, whole, None)
            ids = Tokenizer.from_file(os.path.join(work, "tokenizer.json")).encode(TEXT, add_special_tokens=False).ids
            check(ids == peer, f"{rules}: tokenizers")
            kind = "BertWordPieceLowerCase" if lower else "BertWordPieceCase"
            check(numbers(tokenize(bert, kind), rules) == ids, f"{rules}: the numbers of tokenizers")
            # Both forms, of which the named one is vocab.txt.
            shutil.copy(os.path.join(bert, "vocab.txt"), work)
            done = subprocess.run([tool, "tokenize", "--tokenizer-type", kind, "--vocab-file",
                                   os.path.join(work, "vocab.txt")], input=TEXT, encoding="utf-8", capture_output=True)
            check(numbers(done, rules) == ids, f"{rules}: vocab.txt beside tokenizer.json")
            # The other case is an error, also for the type that is the default.
            other = ["BertWordPieceCase" if lower else "BertWordPieceLowerCase"]
            refused(["give --tokenizer-type"], bert, None, {**B, **rules}, other)
            refused(["give --tokenizer-type"], bert, whole, None, other)
check(len(seen) == 8, "each rule changes the tokens")
for cls in ("BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "ElectraTokenizer"):
    honoured(bert, None, {"tokenizer_class": cls, **HARMLESS})
honoured(bert, None, None, model={"model_type": "bert"})
honoured(bert, None, {"strip_accents": False}, model={"model_type": "bert"})
honoured(bert, {"model/max_input_chars_per_word": 4}, {"tokenizer_class": "PreTrainedTokenizerFast"})
# The two files contradict each other: transformers reads one, tokenizers the other.
for place, value, key in [("strip_accents", False, "strip_accents"), ("lowercase", False, "do_lower_case"),
                          ("handle_chinese_chars", False, "tokenize_chinese_chars"), ("clean_text", False, "clean_text")]:
    for config in (B, {**B, "do_lower_case": True, "strip_accents": True, "tokenize_chinese_chars": True}, {}):
        refused(["tokenizer.json'", key, "make them agree"], bert, {normal + place: value}, config)
    # Without tokenizer_config.json, transformers takes the class of config.json's model_type, and its defaults.
    refused(["tokenizer.json'", key, "does not exist", "make them agree"], bert, {normal + place: value}, None,
            model={"model_type": "bert"})
refused(["max_input_chars_per_word"], bert, {"model/max_input_chars_per_word": 4}, B)
refused(["max_input_chars_per_word"], bert, {"model/max_input_chars_per_word": 4}, None, model={"model_type": "bert"})
honoured(bert, {}, None, model={"model_type": "bert"})
# What is not done here.
for key, value in [("truncation_side", "left"), ("padding_side", "left"), ("do_basic_tokenize", False),
                   ("never_split", ["World"]), ("fast_tokenizer_files", ["tokenizer.4.9.0.json", "tokenizer.json"])]:
    for whole in (None, {}):
        refused(["tokenizer_config.json' has", f'"{key}"'], bert, whole, {**B, key: value})
for cls in ("BertJapaneseTokenizer", "RoFormerTokenizer", "Foo", "GPT2Tokenizer"):
    for whole in (None, {}):
        refused(["tokenizer_config.json' has the tokenizer_class", cls], bert, whole, {"tokenizer_class": cls})
        refused(["config.json' has the tokenizer_class", cls], bert, whole, {}, model={"tokenizer_class": cls})
refused(["PreTrainedTokenizerFast"], bert, None, {"tokenizer_class": "PreTrainedTokenizerFast"})
for role, token in [("cls_token", "[MASK]"), ("sep_token", "[CLS]"), ("pad_token", "[UNK]"), ("unk_token", "[PAD]"),
                    ("mask_token", {"content": "[UNK]"})]:
    refused(["tokenizer_config.json' has the " + role], bert, None, {**B, role: token})
    refused(["special_tokens_map.json' has the " + role], bert, {}, B, special_tokens_map={role: token})
for rules in ({"strip_accents": "no"}, {"do_lower_case": 1}, {"tokenize_chinese_chars": "false"}):
    refused(["neither true nor false"], bert, None, {**B, **rules})
one = load("tokenizer.json", bert)["post_processor"]["single"]
for place, value, words in [
        ("model/unk_token", "[PAD]", "unk_token"), ("pre_tokenizer", {"type": "Whitespace"}, "pre_tokenizer"),
        ("normalizer", {"type": "Lowercase"}, "normalizer"), ("post_processor/single", one[:2], "post_processor"),
        ("post_processor", {"type": "RobertaProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]}, "post_processor"),
        ("truncation", {"direction": "Left", "max_length": 9, "strategy": "LongestFirst", "stride": 0}, "truncation"),
        ("padding", {"direction": "Left", "strategy": "BatchLongest", "pad_id": 0, "pad_token": "[PAD]"}, "padding")]:
    refused([words], bert, {place: value}, None)
honoured(bert, {"post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]}}, B)
# A vocabulary with NUL, as training without clean_text gives.
pieces = {**load("tokenizer.json", bert)["model"]["vocab"]}
for piece in ("\0", "##\0", "a\0b", "\ufdd0", "##\ufdd0", "a", "##a"):
    pieces[piece] = len(pieces)
for clean in (False, True):
    folder_of(bert, {normal + "clean_text": clean, "model/vocab": pieces}, None)
    odd = Tokenizer.from_file(os.path.join(work, "tokenizer.json"))
    for text in ("\0", "a\0b", "a\0a", "\0\0a", "\0,\0", "a \0 a", "\ufdd0", "a\ufdd0\0", "f\xfcr\0", "\0World"):
        done = subprocess.run([tool, "tokenize", "--tokenizer-type", "BertWordPieceLowerCase", "--vocab-file",
                               os.path.join(work, "tokenizer.json")], input=text, encoding="utf-8", capture_output=True)
        check(numbers(done, repr(text)) == odd.encode(text, add_special_tokens=False).ids,
              f"{text!r}, clean_text {clean}: the numbers of tokenizers")

# GPT-2's.
for cls in ("GPT2Tokenizer", "GPT2TokenizerFast", "CodeGenTokenizer"):
    for whole in (None, {}):
        honoured(gpt2, whole, {"tokenizer_class": cls, "add_prefix_space": False, "add_bos_token": False,
                               "model_max_length": 1024, "errors": "replace", "pad_token": None})
for whole in (None, {}):
    for key in ("add_prefix_space", "add_bos_token", "add_eos_token"):
        refused(["tokenizer_config.json' has", f'"{key}": true'], gpt2, whole, {**G, key: True})
    for cls in ("Qwen2Tokenizer", "BertTokenizer", "Foo"):
        refused(["the tokenizer_class", cls], gpt2, whole, {"tokenizer_class": cls})
honoured(gpt2, {}, {"tokenizer_class": "PreTrainedTokenizerFast"})
refused(["PreTrainedTokenizerFast"], gpt2, None, {"tokenizer_class": "PreTrainedTokenizerFast"})
around = {"type": "TemplateProcessing", "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [0], "tokens": [
    "<|endoftext|>"]}}, **{key: [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}, {"Sequence": {
        "id": "A", "type_id": 0}}] for key in ("single", "pair")}}
CHANGES = [("pre_tokenizer/add_prefix_space", True), ("pre_tokenizer/use_regex", False), ("normalizer", {"type": "NFC"}),
           ("post_processor", around), ("post_processor", {"type": "Sequence", "processors": [{"type": "ByteLevel"}, around]}),
           ("model/ignore_merges", True)]
for place, value in CHANGES:
    refused(["is not a tokenizer of GPT-2's kind"], gpt2, {place: value}, None)
    # Also beside a vocabulary that is named in its other form.
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(os.path.join(gpt2, name), work)
    done = subprocess.run([tool, "tokenize", "--tokenizer-type", "GPT2BPETokenizer", "--vocab-file",
                           os.path.join(work, "vocab.json"), "--merge-file", os.path.join(work, "merges.txt")], input=TEXT,
                          encoding="utf-8", capture_output=True)
    check(done.returncode != 0 and "is not a tokenizer of GPT-2's kind" in done.stderr, f"{place}: {done.stderr}")

# A folder with both forms of a vocabulary: they are found equal, or one sentence names both files and what differs.
OTHER = {bert: ["vocab.txt"], gpt2: ["vocab.json", "merges.txt"]}


def both_forms(source, change, rewrite=None):
    """The results for either named form. `change(tokenizer.json)` and `rewrite(name, text)` change one of them."""
    folder_of(source, {}, None)
    file = load("tokenizer.json", work)
    change(file)
    store("tokenizer.json", file)
    for name in OTHER[source]:
        with open(os.path.join(source, name), encoding="utf-8") as text:
            changed = text.read() if rewrite is None else rewrite(name, text.read())
        if changed is not None:
            with open(os.path.join(work, name), "w", encoding="utf-8", newline="") as text:
                text.write(changed)
    kind = "BertWordPieceLowerCase" if source == bert else "GPT2BPETokenizer"
    results = []
    for names in (["tokenizer.json"], OTHER[source]):
        flags = [word for flag, name in zip(("--vocab-file", "--merge-file"), names)
                 for word in (flag, os.path.join(work, name))]
        if all(os.path.exists(flag) for flag in flags[1::2]):
            results.append(subprocess.run([tool, "tokenize", "--tokenizer-type", kind, *flags], input=TEXT,
                                          encoding="utf-8", capture_output=True, timeout=120))
    return results


def agree(source, change, rewrite=None):
    for done in both_forms(source, change, rewrite):
        peer = AutoTokenizer.from_pretrained(source)(TEXT, add_special_tokens=False)["input_ids"]
        check(numbers(done, "two forms that agree") == peer, "two forms that agree: the numbers of transformers")


def differ(words, source, change, rewrite=None, other=None):
    for done in both_forms(source, change, rewrite):
        names = [os.path.join(work, name) + "'" for name in ("tokenizer.json", other or OTHER[source][0])]
        check(done.returncode == 2 and not done.stdout and done.stderr.count("\n") == 1
              and all(word in done.stderr for word in words + names + ["two vocabularies that differ"]),
              f"{words}: exit code {done.returncode}, {done.stdout} {done.stderr}")


def vocabulary(change):
    return lambda file: change(file["model"]["vocab"])


def exchange(one, two):
    def change(numbers):
        numbers[one], numbers[two] = numbers[two], numbers[one]
    return change


def without(token):
    return lambda numbers: numbers.pop(token)


def keep(file):
    pass


def merges(change):
    def changed(file):
        file["model"]["merges"] = change(file["model"]["merges"])
    return changed


def only_added(file):
    file["model"]["vocab"].pop("<|endoftext|>")


for source in (bert, gpt2):
    agree(source, keep)
    agree(source, keep, lambda name, text: text.replace("\n", "\r\n"))
agree(bert, keep, lambda name, text: text + "\n")
agree(bert, lambda file: file["model"]["vocab"].pop("[PAD]"))  # added_tokens has it
agree(gpt2, only_added)
agree(gpt2, merges(lambda pairs: [" ".join(pair) if isinstance(pair, list) else pair.split(" ") for pair in pairs]))
agree(gpt2, keep, lambda name, text: json.dumps(json.loads(text), indent=1) if name == "vocab.json" else text.replace(
    "#version: 0.2\n", ""))
differ(['"Hello" has the numbers', "7", "8"], bert, vocabulary(exchange("hello", "Hello")))
differ(["no token", '","'], bert, vocabulary(without(",")))
differ(["no token", '"more"'], bert, vocabulary(lambda numbers: numbers.update(more=len(numbers))))
differ(["no token", '"more"'], bert, keep, lambda name, text: text + "more\n")
differ(["no token"], bert, keep, lambda name, text: text.replace("hello\n", "##s\n"))
pair = [token for token in load("vocab.json", gpt2) if len(token) > 1 and not token.startswith("<|")][:2]
differ([f'"{min(pair)}" has the numbers'], gpt2, vocabulary(exchange(*pair)))
differ(["no token", '"more"'], gpt2, vocabulary(lambda numbers: numbers.update(more=len(numbers))))
differ(["no token", '"more"'], gpt2, keep,
       lambda name, text: text[:-1] + ', "more": 999}' if name == "vocab.json" else text)
differ(["no token", '"more"'], gpt2, keep,  # a vocab.json without its merges.txt
       lambda name, text: text[:-1] + ', "more": 999}' if name == "vocab.json" else None)
differ(["merge 2 is"], gpt2, merges(lambda pairs: [pairs[0], pairs[2], pairs[1], *pairs[3:]]), other="merges.txt")
differ([" merges"], gpt2, merges(lambda pairs: pairs[:-1]), other="merges.txt")
differ([" merges"], gpt2, keep,
       lambda name, text: text if name == "vocab.json" else text[:text.rstrip("\n").rfind("\n") + 1], other="merges.txt")
differ([" merges"], gpt2, keep,  # a merges.txt alone
       lambda name, text: None if name == "vocab.json" else text[:text.rstrip("\n").rfind("\n") + 1], other="merges.txt")
for broken in ("", "[1]", '{"a": 1', "\0\0\0"):
    for done in both_forms(gpt2, keep, lambda name, text: broken if name == "vocab.json" else text):
        check(done.returncode == 2 and "vocab.json' " in done.stderr and not done.stdout, f"{broken}: {done.stderr}")
