"""Byte-level BPE of any tokenizer.json against Hugging Face's `tokenizers` and `transformers`: files made by `tokenizers`
with the rules of Llama 3, Qwen 2 and GPT-2, and with every other rule that is taken, on a megabyte of odd Unicode in six
scripts. What is not taken is refused by its key, before anything is tokenized."""
import copy
import json
import os
import subprocess
import sys
import tempfile
import unicodedata

tool = sys.argv[1]
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from odd_text import odd_text, script_text
from peer_support import check, skip

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
try:
    import numpy
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, processors, trainers
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split
    from transformers import AutoTokenizer
    from transformers.utils import logging
except ImportError as error:
    skip(f"the package {error.name} is missing")
logging.set_verbosity_error()

# The patterns of the published tokenizer.json.
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
TEXT = script_text(53, 1 << 20) + odd_text(54, 1 << 17)
MARKS = [" <|im_start|>user\n", "<|begin_of_text|>", "<|end_of_text|>", "<|endoftext|>", "<|im_start", "x<sep> ", " <sep>",
         "  <left>", "<right>  \n", "\u00a0<both>\u2003", "<word>", "a<word>", "<word>\u0301", "\u200d<word>", " <word>.", "<word>_",
         "caf\xe9-token", "cafe\u0301-token", "<se<sep>>", "<sep><sep>", "ab", "abc", "abcd", "<left><right> <left>"]
holder = tempfile.TemporaryDirectory()
folder = os.path.join(holder.name, "model")
os.mkdir(folder)
path = os.path.join(folder, "tokenizer.json")


def with_marks(text):
    """The text with what might be an added token after every few words."""
    words = text.split(" ")
    for n in range(0, len(words), 7):
        words[n] += MARKS[n % len(MARKS)]
    return " ".join(words)


MARKED = with_marks(script_text(55, 1 << 18))


def trained(pre_tokenizer, normalizer=None, special=(), tokens=600):
    peer = Tokenizer(models.BPE())
    if normalizer is not None:
        peer.normalizer = normalizer
    peer.pre_tokenizer = pre_tokenizer
    peer.train_from_iterator([TEXT[:100000], "lower newest widest " * 99], trainers.BpeTrainer(
        vocab_size=256 + tokens, special_tokens=list(special), initial_alphabet=ByteLevel.alphabet(), show_progress=False))
    return peer


def split(pattern, behavior="isolated", invert=False):
    return Split(pattern if isinstance(pattern, str) else Regex(pattern.pattern), behavior, invert)


class R:
    def __init__(self, pattern):
        self.pattern = pattern


def words(*steps, space=False, regex=False):
    return Sequence([*steps, ByteLevel(add_prefix_space=space, use_regex=regex)])


def changed(peer, change=None):
    """The tokenizer's file, changed, for both; the peer that reads it."""
    file = json.loads(peer.to_str())
    if change:
        change(file)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(file, f)
    return Tokenizer.from_file(path)


def encode(text):
    return subprocess.run([tool, "encode", path, "HuggingFaceTokenizer"], input=text.encode("utf-8"), capture_output=True,
                          timeout=300)


def compare(name, peer, *texts):
    for text in texts:
        done = encode(text)
        check(done.returncode == 0, f"{name}: {done.stderr.decode()[-500:]}")
        ours = numpy.frombuffer(done.stdout, dtype="<i4").tolist()
        theirs = peer.encode(text, add_special_tokens=False).ids
        if ours != theirs:
            at = next((n for n, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
            sys.exit(f"FAILED {name}: token {at} of {len(theirs)}: ours {ours[at:at + 8]}, tokenizers {theirs[at:at + 8]} "
                     f"after {peer.decode(theirs[max(0, at - 8):at], skip_special_tokens=False)!r}: "
                     f"{[peer.id_to_token(i) for i in ours[at:at + 8]]}, {[peer.id_to_token(i) for i in theirs[at:at + 8]]}")
    print(f"{name}: {sum(len(text.encode()) for text in texts)} bytes equal")


def prepared(name, peer, end):
    """A dataset of a text that is cut, with the tokens around a document."""
    text = os.path.join(holder.name, "text.txt")
    document = "plain words of a text " * 47000 + "\n" + MARKED * 4 + "\n" + TEXT[:200000]
    with open(text, "wb") as f:
        f.write(document.encode("utf-8"))
    out = os.path.join(holder.name, "data")
    done = subprocess.run([tool, "prepare", "--tokenizer-type", "HuggingFaceTokenizer", "--vocab-file", path, "--input", text,
                           "--output", out, "--dtype", "i32", "--append-eod", "--workers", "2"], capture_output=True, text=True)
    check(done.returncode == 0, f"{name}: prepare: {done.stderr}")
    theirs = peer.encode(document).ids + [peer.token_to_id(end)]
    ours = numpy.fromfile(out + ".bin", dtype="<i4").tolist()
    check(ours == theirs, f"{name}: the dataset: {len(ours)} and {len(theirs)} tokens, different from "
                          f"{next((n for n, (a, b) in enumerate(zip(ours, theirs)) if a != b), 'the end')} on")
    print(f"{name}: a dataset of {len(document.encode())} bytes equal")


def write(name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        json.dump(value, f)


def transformed(name, config, text):
    """The tokens of transformers, which reads the files beside tokenizer.json, too."""
    write("tokenizer_config.json", config)
    auto = AutoTokenizer.from_pretrained(folder)
    done = encode(text)
    check(done.returncode == 0, f"{name}: {done.stderr.decode()[-500:]}")
    theirs = auto(text, add_special_tokens=False)["input_ids"]
    check(numpy.frombuffer(done.stdout, dtype="<i4").tolist() == theirs, f"{name}: the numbers of transformers")
    print(f"{name}: transformers equal")


# Llama 3: no normalization, whole words first, a token before each text.
llama_tokens = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|im_start|>"]


def llama_file(file):
    file["model"]["ignore_merges"] = True
    # Words that no merge makes, and one that merges make otherwise.
    for word in (" widest", " zebra", "newest!", "\n\n\n"):
        text = "".join(ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(word)[0][0])
        file["model"]["vocab"].setdefault(text, len(file["model"]["vocab"]))
    first = len(file["model"]["vocab"])
    file["added_tokens"] = [{"id": first + n, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
                             "normalized": False, "special": True} for n, token in enumerate(llama_tokens)]
    bos = llama_tokens[0]
    file["post_processor"] = {"type": "Sequence", "processors": [
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": bos, "type_id": 0}},
                                                  {"Sequence": {"id": "A", "type_id": 0}}],
         "pair": [{"SpecialToken": {"id": bos, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                  {"SpecialToken": {"id": bos, "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
         "special_tokens": {bos: {"id": bos, "ids": [first], "tokens": [bos]}}}]}


learned = trained(words(split(R(LLAMA3))))
llama = changed(learned, llama_file)
EXTRA = " the widest zebra newest!\n\n\n\nx newest! zebra zebras" * 3
compare("Llama 3", llama, TEXT, MARKED, EXTRA, "", " ", "\n", "a", "'", "<|begin_of_text|>")
prepared("Llama 3", llama, "<|end_of_text|>")
transformed("Llama 3", {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|begin_of_text|>",
                        "eos_token": "<|end_of_text|>", "clean_up_tokenization_spaces": True,
                        "added_tokens_decoder": {str(t["id"]): {k: v for k, v in t.items() if k != "id"}
                                                 for t in json.load(open(path, encoding="utf-8"))["added_tokens"]}},
            MARKED[:50000])
os.remove(os.path.join(folder, "tokenizer_config.json"))
with open(path, encoding="utf-8") as f:
    llama_json = json.load(f)

# Qwen 2: NFC, numbers alone.
qwen = trained(words(split(R(QWEN2))), normalizers.NFC())
qwen.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
qwen.post_processor = processors.ByteLevel(trim_offsets=False)
qwen = changed(qwen, lambda file: file["model"].update(
    merges=[" ".join(pair) for pair in file["model"]["merges"]], continuing_subword_prefix="", end_of_word_suffix=""))
compare("Qwen 2", qwen, TEXT, MARKED, "e\u0301", "\u0301", "\u1100\u1161\u11a8")
prepared("Qwen 2", qwen, "<|endoftext|>")
transformed("Qwen 2", {"tokenizer_class": "Qwen2Tokenizer", "add_prefix_space": False, "eos_token": "<|endoftext|>",
                       "additional_special_tokens": ["<|im_start|>", "<|im_end|>"]}, MARKED[:50000])
os.remove(os.path.join(folder, "tokenizer_config.json"))
# Every character that this Python's Unicode has, which is no newer than the engines' (docs/data.md), alone and in context.
if unicodedata.unidata_version == "14.0.0":
    every = [chr(c) for c in range(0x110000)
             if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) not in ("Cn", "Co")]
    compare("Qwen 2, every character", qwen, "".join(every), "".join(f"a{c} {c}{c}1\u0301 \n{c}'s" for c in every))

# GPT-2, with and without a space before the text, by its pattern and by the same as a Split.
for space in (False, True):
    for steps in ([], [split(R(GPT2))]):
        peer = trained(words(*steps, space=space, regex=not steps), special=["<|endoftext|>"])
        peer = changed(peer)
        compare(f"GPT-2, space {space}, {len(steps)} Split", peer, TEXT, MARKED, "", " a", "a", "\ta", "\xa0a", "<|endoftext|>a")
        prepared(f"GPT-2, space {space}, {len(steps)} Split", peer, "<|endoftext|>")

# Added tokens in every form, in normalized text and in the text as it is.
FORMS = [AddedToken("<sep>"), AddedToken("<left>", lstrip=True), AddedToken("<right>", rstrip=True),
         AddedToken("<both>", lstrip=True, rstrip=True), AddedToken("<word>", single_word=True),
         AddedToken("cafe\u0301-token", normalized=True), AddedToken("ab"), AddedToken("abcd"), AddedToken("  "), AddedToken("lower")]
for normalizer in (None, normalizers.Sequence([normalizers.NFC()])):
    for single in (False, True):
        for space in (False, True):
            peer = trained(words(split(R(QWEN2)), space=space), normalizer, special=["<|endoftext|>"])
            peer.add_tokens([token for token in FORMS if single or not token.single_word])
            peer.add_special_tokens([AddedToken("<|im_start|>", rstrip=True), AddedToken("\u1ec7x")])
            name = f"added tokens, {'NFC' if normalizer else 'as it is'}, single words {single}, space {space}"
            peer = changed(peer)
            compare(name, peer, MARKED, script_text(57, 1 << 17), "<word>", " <word> ", "<right>   <left>", "<right>  lower  <left>")
            if not single and (space or normalizer is None):
                prepared(name, peer, "<|endoftext|>")

# Every behavior, other steps, several of them.
def with_words(pre_tokenizer):
    return changed(base, lambda file: file.update(pre_tokenizer=json.loads(pre_tokenizer.__getstate__())))


base = trained(words(split(R(LLAMA3))), special=["<|endoftext|>"])
for behavior in ("isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"):
    for invert in (False, True):
        for pattern in (R(r"\s"), R(LLAMA3), R(r"\p{N}{1,2}|[^\S\r\n]+|x*+y"), "\u4e2d", " <"):
            shown = pattern if isinstance(pattern, str) else pattern.pattern
            compare(f"{behavior}, invert {invert}, {shown}", with_words(words(split(pattern, behavior, invert))), MARKED[:50000])
OTHERS = {
    "DeepSeek's steps": [split(R(r"\p{N}{1,3}")), split(R("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+")), split(R(
        r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"))],
    "o200k": [split(R(r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
                      r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
                      r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"), "removed", True)],
    "cl100k": [split(R(r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s*[\r\n]"
                       r"|\s+(?!\S)|\s"))],
    "digits one by one": [Digits(individual_digits=True)],
    "runs of digits": [Digits(individual_digits=False)],
}
for name, steps in OTHERS.items():
    for regex in (False, True):
        compare(f"{name}, GPT-2's pattern after them {regex}", with_words(words(*steps, regex=regex)), TEXT[:200000], MARKED[:50000])
for individual in (True, False):
    prepared(f"digits ({individual}) and GPT-2's pattern", with_words(words(Digits(individual), regex=True)), "<|endoftext|>")
# No merges: bytes, and a vocabulary without any but them.
compare("no merges", changed(base, lambda file: file["model"].update(merges=[])), MARKED[:50000])

# What is not done is refused by its key.
added = llama_json["added_tokens"][0]
template = llama_json["post_processor"]["processors"][1]


def refused(place, value, *said):
    file = copy.deepcopy(llama_json)
    at = file
    *parts, last = place.split("/")
    for part in parts:
        at = at[int(part) if part.isdigit() else part]
    if value is None:
        at.pop(last)
    else:
        at[int(last) if last.isdigit() else last] = value
    with open(path, "w", encoding="utf-8") as f:
        json.dump(file, f)
    done = encode("text")
    error = done.stderr.decode()
    check(done.returncode != 0 and not done.stdout and path in error and all(word in error for word in said),
          f"{place} {value}: {done.returncode} {error[-300:]}")


STEP = "pre_tokenizer/pretokenizers/0"
REGEX = STEP + "/pattern/Regex"
refused("truncation", {"max_length": 9}, '"truncation" is {"max_length":9}')
refused("padding", {"strategy": "BatchLongest"}, '"padding" is')
refused("version", "2.0", '"version" is "2.0"')
refused("more", 1, '"more" is not known')
refused("model/type", "Unigram", '"model.type" is "Unigram"')
refused("model/dropout", 0.1, '"model.dropout" is 0.1')
refused("model/byte_fallback", True, '"model.byte_fallback" is true')
refused("model/end_of_word_suffix", "</w>", '"model.end_of_word_suffix" is "</w>"')
refused("model/continuing_subword_prefix", "##", '"model.continuing_subword_prefix"')
refused("model/pretrained", 1, '"model.pretrained" is not known')
refused("model/vocab", [], "it has no vocabulary")
refused("model/vocab/a", None, "has no token for the byte 0x61")
refused("model/merges", None, "it has no merges")
refused("model/merges/3", "abc", "merge 4: expected two tokens")
refused("normalizer", {"type": "NFKC"}, '"normalizer.type" is "NFKC"')
refused("normalizer", {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]},
        '"normalizer.normalizers[1].type" is "Lowercase"')
refused("pre_tokenizer", None, '"pre_tokenizer" does not end with ByteLevel')
refused("pre_tokenizer", {"type": "Metaspace", "replacement": "\u2581"}, '"pre_tokenizer.type" is "Metaspace"')
refused("pre_tokenizer/pretokenizers", llama_json["pre_tokenizer"]["pretokenizers"][:1], "does not end with ByteLevel")
refused("pre_tokenizer/pretokenizers", llama_json["pre_tokenizer"]["pretokenizers"][::-1],
        '"pre_tokenizer.pretokenizers[1]" comes after ByteLevel')
refused(STEP + "/behavior", "Joined", '"pre_tokenizer.pretokenizers[0].behavior" is "Joined"')
refused(STEP + "/invert", 1, '"pre_tokenizer.pretokenizers[0].invert" is neither')
refused(STEP + "/more", 1, 'pretokenizers[0].more" is not known')
refused(STEP + "/pattern", {"String": ""}, 'pattern.String" is ""')
for pattern, part in [(r"\w+", r'\w'), (r"a\b", r'"\b" at character 2'), (r"^a", '"^"'), (r"a$", '"$" at character 2'), (".", '"."'),
                      (r"\p{Han}", r"\p{Ha"), (r"\p{^L}", r"\p{^"), (r"[[:alpha:]]", '"[:"'), (r"[a&&b]", "&&"), (r"(?<=a)b", "(?<"),
                      (r"(a)\1", r"\1"), (r"(?i)a", "(?i"), (r"a**", "**"), (r"a{2}+", "{2}+"), (r"a{,2}", "{,2"), (r"(?i:ss)", "ss"),
                      (r"(?i:\p{Lu})", r"\p{Lu}"), (r"(?i:\u00e9)", r"\u"), ("(?i:\xe9)", "\xe9"), (r"\h", r"\h"), (r"[a-\d]", r"\d"),
                      (r"[\s-z]", "-z"), ("(a", "nothing after character 2"), ("a)", '")"'), ("[a", "[a"), ("\\", "\\")]:
    refused(REGEX, pattern, '"pre_tokenizer.pretokenizers[0].pattern.Regex" has ', part)
for pattern in ("a*", "(?=a)", "a|"):
    file = copy.deepcopy(llama_json)
    file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = pattern
    with open(path, "w", encoding="utf-8") as f:
        json.dump(file, f)
    done = encode("text")
    check(done.returncode != 0 and not done.stdout and b"matches an empty text" in done.stderr, f"{pattern}: {done.stderr}")
refused("added_tokens/0/id", 5, "has the number 5, and tokenizers gives it")
refused("added_tokens/0/id", 2000000000, "has the number 2000000000, and tokenizers gives it")
refused("added_tokens/0/id", -1, '"added_tokens[0].id" is -1')
refused("added_tokens/0/content", "", '"added_tokens[0].content" is empty')
refused("added_tokens/0/content", llama_tokens[1], '"added_tokens[1].content" is there twice')
refused("added_tokens/0/lstrip", "yes", '"added_tokens[0].lstrip" is neither')
refused("added_tokens/0/way", 1, '"added_tokens[0].way" is not known')
refused("post_processor", {"type": "BertProcessing"}, '"post_processor.type" is "BertProcessing"')
refused("post_processor/processors/1/single", [{"Sequence": {"id": "B"}}], "post_processor.processors[1].single[0]")
refused("post_processor/processors/1/special_tokens", {}, "special_tokens.<|begin_of_text|>")
refused("post_processor/processors/0", template, '"post_processor.processors[1]"')

# And so is what the files beside it say otherwise.
for name, value, said in [
        ("tokenizer_config.json", {"add_bos_token": False}, '"add_bos_token": false'),
        ("tokenizer_config.json", {"add_eos_token": True}, '"add_eos_token": true'),
        ("tokenizer_config.json", {"add_prefix_space": True}, '"add_prefix_space": true'),
        ("tokenizer_config.json", {"split_special_tokens": True}, '"split_special_tokens": true'),
        ("tokenizer_config.json", {"tokenizer_class": "LlamaTokenizerFast"}, '"LlamaTokenizerFast"'),
        ("tokenizer_config.json", {"tokenizer_class": "Qwen2Tokenizer"}, "has other rules than that class"),
        ("tokenizer_config.json", {"pad_token": "<pad>"}, 'adds the token "<pad>"'),
        ("special_tokens_map.json", {"additional_special_tokens": ["<x>"]}, 'adds the token "<x>"'),
        ("added_tokens.json", {"<|eot_id|>": 3}, "has the number 3"),
        ("tokenizer_config.json", {"added_tokens_decoder": {str(added["id"]): {"content": added["content"], "lstrip": True}}},
         'has true for "lstrip"'),
        ("merges.txt", None, "merges.txt")]:
    changed(llama)
    if value is None:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write("#version: 0.2\na b\n")
    else:
        write(name, value)
    done = encode("text")
    check(done.returncode != 0 and not done.stdout and name in done.stderr.decode() and said in done.stderr.decode(),
          f"{name} {value}: {done.returncode} {done.stderr.decode()[-300:]}")
    os.remove(os.path.join(folder, name))
print("what is not done is refused")
