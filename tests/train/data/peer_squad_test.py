"""SQuAD: features and predictions against run_squad.py of google-research/bert; scores against the rules of SQuAD's
evaluation, written down here a second time, on edge cases and at random."""
import collections
import functools
import json
import math
import os
import random
import re
import string
import sys
import tempfile
import types

tool, root = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from peer_support import check, run_tool, skip

try:
    import numpy
    import original_bert
    original = original_bert.load("run_squad")
except ImportError as error:
    original = None
if original is None:
    skip("numpy or the package bert-tensorflow is missing")
tokenization = sys.modules["bert.tokenization"]
folder_ = tempfile.TemporaryDirectory()
folder = folder_.name


run = functools.partial(run_tool, tool)


def file_of(name, value):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=len(name) % 2 == 0)
    return path


# --- Text ----------------------------------------------------------------------------------------------------
draw = random.Random(404)
stems = ["river", "stone", "The", "an", "a", "John", "Smith", "caf\xe9", "na\xefve", "\u4e2d\u6587", "1895", "1943",
         "U.S.", "e\u0301t\xe9", "of", "in", "record", "\u0394\u03ad\u03bb\u03c4\u03b1", "O'Neill", "x\xa0y", "\ufb01ne",
         "well-known", "\u201cquoted\u201d", "3.5%", "Japanese", "\u0131", "\xad", "#", "##x", "I\u0307"]
marks = ["", "", "", ",", ".", "'s", ")", ";", "\u2026", "?!"]
letters = sorted({c for s in stems + marks for c in s.lower()} | set("abcdefghijklmnopqrstuvwxyz0123456789"))
words = ["the", "river", "stone", "john", "smith", "cafe", "rec", "##ord", "1895", "1943", "of", "in", "well", "known",
         "japan", "##ese", "\u03b4\u03b5\u03bb\u03c4\u03b1", "##ive", "na"]
vocab = os.path.join(folder, "vocab.txt")
with open(vocab, "w", encoding="utf-8") as f:
    f.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + words + [
        c for c in letters if c not in "\u0131" and not c.isspace()] + ["##" + c for c in letters if c.isalnum()]) + "\n")
full = tokenization.FullTokenizer(vocab_file=vocab, do_lower_case=True)
full.wordpiece_tokenizer.max_input_chars_per_word = 100


def context():
    parts = []
    for _ in range(draw.choice([1, 3, 30, 60, 200])):
        parts.append(draw.choice(["", "", "", "("]) + draw.choice(stems) + draw.choice(marks) +
                     draw.choice([" ", " ", " ", "  ", "\n", "\t", "\u202f", "-"]))
    return draw.choice(["", "", " "]) + "".join(parts)


def answer(text):
    for _ in range(100):
        begin = draw.randrange(len(text))
        end = min(len(text), begin + draw.choice([1, 3, 8, 20, 60]))
        if draw.random() < 0.8:  # at words
            while begin > 0 and not text[begin - 1].isspace():
                begin -= 1
            while end < len(text) and not text[end].isspace():
                end += 1
        # From blanks before the first word on, the original counts from the context's end.
        if text[begin:end].strip() and text[:begin + 1].strip():
            return {"text": text[begin:end], "answer_start": begin}
    return {"text": text.strip()[0], "answer_start": text.index(text.strip()[0])}


def squad(version, training):
    data, number = [], 0
    for _ in range(12):
        paragraphs = []
        for _ in range(3):
            text, questions = context(), []
            for _ in range(3):
                impossible = version == 2 and draw.random() < 0.4
                answers = [] if impossible else [answer(text) for _ in range(1 if training else draw.randint(1, 4))]
                if answers and draw.random() < 0.05:
                    answers[0] = {"text": "nowhere", "answer_start": 0} if len(text) > 10 else answers[0]
                qa = {"id": f"q{number}", "answers": answers,
                      "question": " ".join(draw.choice(stems) for _ in range(draw.choice([2, 8, 70])))}
                if version == 2:
                    qa["is_impossible"] = impossible
                questions.append(qa)
                number += 1
            paragraphs.append({"context": text, "qas": questions})
        data.append({"title": "t", "paragraphs": paragraphs})
    return {"version": str(version), "data": data}


def flags(version, threshold=0.0):
    original.FLAGS = types.SimpleNamespace(version_2_with_negative=version == 2, null_score_diff_threshold=threshold,
                                           verbose_logging=False)


def original_features(examples, sequence, stride, question, training):
    features = []
    original.convert_examples_to_features(examples, full, sequence, stride, question, training, features.append)
    return features


def same_features(got, features, sequence, training):
    check(len(got) == len(features), f"{len(got)} features, not {len(features)}")
    for number, (g, f) in enumerate(zip(got, features)):
        pad = [0] * (sequence - len(g["ids"]))
        expected = {"example": f.example_index, "ids": f.input_ids, "types": f.segment_ids,
                    "words": list(f.token_to_orig_map.values()), "window": min(f.token_to_orig_map, default=g["window"]),
                    "most_context": [int(m) for m in f.token_is_max_context.values()]}
        if training:
            expected |= {"start": f.start_position, "end": f.end_position}
        ours = {**{k: g[k] for k in expected}, "ids": g["ids"] + pad, "types": g["types"] + pad}
        check(ours == expected and sum(f.input_mask) == len(g["ids"]), f"feature {number}:\n{ours}\n{expected}")


def rows_of(published):
    """The rows of Hugging Face's datasets squad and squad_v2 (their loading scripts), where answers are two lists."""
    return [{"id": qa["id"], "title": article["title"], "context": paragraph["context"], "question": qa["question"],
             "answers": {key: [a[key] for a in qa["answers"]] for key in ("text", "answer_start")}}
            for article in published["data"] for paragraph in article["paragraphs"] for qa in paragraph["qas"]]


def other_forms(path):
    """The same questions in the other forms that people have."""
    published = json.load(open(path, encoding="utf-8"))
    rows = rows_of(published)
    lines = os.path.join(folder, "lines.json")
    with open(lines, "w", encoding="utf-8") as f:
        f.write("\n" + "\n\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n")
    answers = [{**row, "answers": [dict(zip(row["answers"], a)) for a in zip(*row["answers"].values())]} for row in rows]
    return {"lines": lines, "a list": file_of("list.json", rows), "data": file_of("data.json", {"version": 1, "data": rows}),
            "answers one by one": file_of("answers.json", answers)}


for version in (1, 2):
    for training in (True, False):
        path = file_of(f"v{version}-{training}.json", squad(version, training))
        mode = "training" if training else "evaluation"
        for sequence, stride, question in [(384, 128, 64), (64, 16, 24), (48, 60, 8)]:
            flags(version)
            examples = original.read_squad_examples(path, training)
            features = original_features(examples, sequence, stride, question, training)
            head, *got = run("squad-features", vocab, path, mode, version, sequence, stride, question)
            ids = [e.qas_id for e in examples]
            check(head["examples"] == ids, f"other examples are left out: {set(ids) ^ set(head['examples'])}")
            check(training or head["left_out"] == 0, str(head["left_out"]))
            same_features(got, features, sequence, training)
            for form, other in other_forms(path).items():
                check(run("squad-features", vocab, other, mode, version, sequence, stride, question) == [head, *got],
                      f"SQuAD {version}, {mode}: rows as {form} differ")
            print(f"SQuAD {version}, {mode}, {sequence}/{stride}/{question}: {len(got)} features of {len(examples)} "
                  f"examples equal, {head['left_out']} left out, {sum(f.start_position not in (0, None) for f in features)}"
                  " with their answer")


# --- Predictions -----------------------------------------------------------------------------------------------
def normalized(text):
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def f1(prediction, gold, version):
    p, g = normalized(prediction).split(), normalized(gold).split()
    if version == 2 and not (p and g):
        return float(p == g)
    same = sum((collections.Counter(p) & collections.Counter(g)).values())
    return 0.0 if same == 0 else 2 * (same / len(p)) * (same / len(g)) / (same / len(p) + same / len(g))


def scores(path, predictions, nulls, version):
    """The rules of evaluate-v1.1.py and evaluate-v2.0.py."""
    with open(path) as f:
        questions = [qa for a in json.load(f)["data"] for p in a["paragraphs"] for qa in p["qas"]]
    exact, overlap = {}, {}
    for qa in questions:
        gold = [a["text"] for a in qa["answers"]]
        if version == 2:
            gold = [g for g in gold if normalized(g)] or [""]
        text = predictions[qa["id"]]
        exact[qa["id"]] = max((float(normalized(text) == normalized(g)) for g in gold), default=0.0)
        overlap[qa["id"]] = max((f1(text, g, version) for g in gold), default=0.0)
    mean = lambda values, ids: 100 * sum(values[i] for i in ids) / len(ids) if ids else 0.0
    has = [qa["id"] for qa in questions if qa["answers"]]
    no = [qa["id"] for qa in questions if not qa["answers"]]
    out = {"exact": mean(exact, has + no), "f1": mean(overlap, has + no), "total": len(questions),
           "HasAns_exact": mean(exact, has), "HasAns_f1": mean(overlap, has), "HasAns_total": len(has),
           "NoAns_exact": mean(exact, no), "NoAns_f1": mean(overlap, no), "NoAns_total": len(no)}
    for name, values in (("exact", exact), ("f1", overlap)) if version == 2 else ():
        best, threshold = len(no), 0.0
        current = len(no)
        for i in sorted((qa["id"] for qa in questions), key=lambda q: nulls[q]):
            current += values[i] if i in set(has) else (-1 if predictions[i] else 0)
            if current > best:
                best, threshold = current, nulls[i]
        out |= {f"best_{name}": 100 * best / len(questions), f"best_{name}_thresh": threshold}
    return out


def close(got, expected, what):
    for key, value in expected.items():
        check(math.isclose(got[key], value, rel_tol=1e-12, abs_tol=1e-12), f"{what}: {key} is {got[key]}, not {value}")


for version, sequence, stride, question, n_best, longest, threshold in [
        (1, 384, 128, 64, 20, 30, 0.0), (1, 64, 16, 24, 5, 10, 0.0), (2, 384, 128, 64, 20, 30, 0.0),
        (2, 64, 16, 24, 3, 4, -2.5), (2, 64, 16, 24, 20, 30, 4.0)]:
    path = file_of(f"p{version}.json", squad(version, False))
    flags(version, threshold)
    examples = original.read_squad_examples(path, False)
    features = original_features(examples, sequence, stride, question, False)
    numbers = numpy.random.default_rng(sequence + n_best)
    logits, results = [], []
    for f in features:
        pair = [(numbers.standard_normal(sequence) * 2).astype("f4").round(int(numbers.integers(0, 6))) for _ in range(2)]
        if numbers.random() < 0.5:
            at = int(numbers.integers(0, sum(f.input_mask)))
            pair[0][at], pair[1][min(at + int(numbers.integers(0, 6)), sequence - 1)] = 8, 9
        likely = [t for t, most in f.token_is_max_context.items() if most]
        if likely:  # the original of 2.0 fails where no window has an answer
            at = likely[int(numbers.integers(0, len(likely)))]
            pair[0][at] = pair[1][at] = 6.5 + 4 * numbers.random()
            if n_best < 20:
                pair[0][at] = pair[1][at] = 9
        if version == 2 and f.example_index % 3 == 0:
            pair[0][0] = pair[1][0] = 8.5 + 2 * numbers.random()
        for logit in pair:  # the original looks at padding, and throws it away afterwards
            logit[sum(f.input_mask):] = -1e4
        logits.append([[float(x) for x in p] for p in pair])
        results.append(original.RawResult(f.unique_id, *logits[-1]))
    out = [os.path.join(folder, n) for n in ("predictions.json", "n_best.json", "null.json")]
    original.write_predictions(examples, features, results, n_best, longest, True, *out)
    texts, n_bests = (json.load(open(p)) for p in out[:2])
    nulls = json.load(open(out[2])) if version == 2 else collections.defaultdict(float)
    *got, ours = run("squad-predict", vocab, path, "evaluation", version, sequence, stride, question, n_best, longest,
                     threshold, file_of("logits", logits))
    check([g["id"] for g in got] == [e.qas_id for e in examples], "the questions")
    for g in got:
        check(g["text"] == texts[g["id"]], f"{g['id']}: {g['text']!r}, not {texts[g['id']]!r}")
        check(len(g["n_best"]) == len(n_bests[g["id"]]), f"{g['id']}: {len(g['n_best'])} answers")
        for a, b in zip(g["n_best"], n_bests[g["id"]]):
            check(a["text"] == b["text"], f"{g['id']}: {a} is not {b}")
            close(a, {k: b[k] for k in b if k != "text"}, g["id"])
        check(version == 1 or math.isclose(g["null"], nulls[g["id"]], rel_tol=1e-12), f"{g['id']}: {g['null']}")
    check(version == 1 or threshold > 0 or 5 < sum(not t for t in texts.values()) < 60, "no mixture of answers")
    close(ours, scores(path, texts, nulls, version), f"scores of version {version}")
    print(f"SQuAD {version}: {len(got)} predictions equal, n-best {n_best}; exact {ours['exact']:.1f}, F1 {ours['f1']:.1f}, "
          f"{sum(not t for t in texts.values())} without answer")

# Where no window has an answer, the original fails: here it is "no answer".
path = file_of("none.json", {"data": [{"paragraphs": [{"context": "river of stone", "qas": [
    {"id": "q", "question": "the", "answers": [], "is_impossible": True}]}]}]})
peak = [9.0] + [0.0] * 10
got, ours = run("squad-predict", vocab, path, "evaluation", 2, 64, 16, 24, 1, 30, 0, file_of("logits", [[peak, peak]]))
check((got["text"], got["null"], got["n_best"][0]["text"], ours["exact"]) == ("", None, "", 100), str(got))

# --- Scores of edge cases, worked out by hand too ----------------------------------------------------------------
CASES = [  # answers, prediction, exact and F1 by 1.1 (None: not asked), by 2.0
    (["the Saint Bernadette Soubirous"], "Saint Bernadette Soubirous.", (1, 1), (1, 1)),
    (["Paris", "the city of Paris"], "city of Paris", (1, 1), (1, 1)),
    (["Denver Broncos"], "Broncos", (0, 2 / 3), (0, 2 / 3)),
    (["An apple a day"], "apple day", (1, 1), (1, 1)),
    (["U.S."], "us", (1, 1), (1, 1)),
    (["well-known"], "wellknown", (1, 1), (1, 1)),
    (["\u201cyes\u201d"], "yes", (0, 0), (0, 0)),  # other than ASCII's punctuation stays
    (["CAF\xc9"], "caf\xe9", (1, 1), (1, 1)),
    (["\u039f\u0394\u039f\u03a3"], "\u03bf\u03b4\u03bf\u03c2", (1, 1), (1, 1)),  # a final sigma
    (["\u0130x"], "i\u0307x", (1, 1), (1, 1)),
    (["x\xa0y"], "x y", (1, 1), (1, 1)),
    (["a\u0300 b"], "\u0300 b", (1, 1), (1, 1)),  # a mark ends the word "a"
    (["theatre"], "atre", (0, 0), (0, 0)),
    (["the"], "the", (1, 0), (1, 1)),  # nothing is left of it: for 2.0 that is "no answer"
    (["a b b"], "b", (0, 2 / 3), (0, 2 / 3)),
    (["x y"], "", (0, 0), (0, 0)),
    ([], "", None, (1, 1)), ([], "x", None, (0, 0)), ([], "the", None, (1, 1)),
    (["a_b"], "ab", (1, 1), (1, 1)), (["x\x1cy"], "x y", (1, 1), (1, 1)), (["\xb2a"], "\xb2", (0, 0), (0, 0))]
for version in (1, 2):
    cases = [c for c in CASES if c[1 + version] is not None]
    for i, case in enumerate(cases):
        qa = {"id": "q", "question": "?", "answers": [{"text": t, "answer_start": 0} for t in case[0]],
              "is_impossible": not case[0]}
        path = file_of("case.json", {"data": [{"paragraphs": [{"context": " ".join(case[0]) + " " * 40, "qas": [qa]}]}]})
        got = run("squad-score", path, version, file_of("t.json", {"q": case[1]}), file_of("n.json", {"q": 0.5}))[0]
        close(got, scores(path, {"q": case[1]}, {"q": 0.5}, version), f"case {case}, version {version}")
        close(got, {"exact": 100 * case[1 + version][0], "f1": 100 * case[1 + version][1]}, f"case {case} by hand, {version}")
print(f"{len(CASES)} edge cases scored")

# --- Files that are none -----------------------------------------------------------------------------------------
good = {"context": "one two", "qas": [{"id": "1", "question": "?", "answers": [{"text": "two", "answer_start": 4}]}]}
for change, message in [
        ({"context": 3}, ": data[0].paragraphs[0].context is a number, and should be a text"),
        ({"qas": None}, ": data[0].paragraphs[0].qas is null, and should be a list"),
        ({"qas": [{"question": "?"}]}, ": data[0].paragraphs[0].qas[0] has no \"id\", which should be a text"),
        ({"qas": [3]}, ": data[0].paragraphs[0].qas[0] has no \"id\""),
        ({"context": "one"}, ": data[0].paragraphs[0].qas[0].answers[0] lies outside the context: characters 4 to 7 of 3"),
        ({"qas": [{**good["qas"][0], "answers": [{"text": "a", "answer_start": 2**63}]}]}, "should be an integer"),
        ({"qas": [{**good["qas"][0], "answers": []}]}, "has 0 answers, and training needs one"),
        ({"qas": good["qas"] * 2}, ": data[0].paragraphs[0].qas[1] has the id \"1\" of an earlier question"),
        ({"qas": []}, " has no questions")]:
    path = file_of("bad.json", {"data": [{"paragraphs": [{**good, **change}]}]})
    error = run("squad-features", vocab, path, "training", 1, 384, 128, 64, code=2)
    check(error.startswith(path) and message in error and error.count("\n") == 1, f"expected {message}, got {error}")
row = {"id": 7, "context": "one two", "question": "?", "answers": {"text": ["two"], "answer_start": [4]}}
for number in (7, 2**63, "7"):
    head, *_ = run("squad-features", vocab, file_of("id.json", [{**row, "id": number}]), "training", 1, 384, 128, 64)
    check(head["examples"] == [str(number)], f"the id {number!r}: {head}")
lines = os.path.join(folder, "rows.jsonl")
for change, message in [
        ({"answers": {"text": ["two"], "answer_start": []}}, ":2: answers has 1 texts and 0 values of \"answer_start\""),
        ({"answers": {"text": "two", "answer_start": 4}}, ":2: answers.text is a string, and should be a list"),
        ({"answers": {"text": ["two"], "answer_start": [5]}}, ":2: answers.text[0] lies outside the context: characters 5"),
        ({"answers": {"text": ["two"], "answer_start": ["4"]}}, ":2: answers.answer_start[0] is a string, and should be an"),
        ({"answers": {"text": [], "answer_start": []}}, ":2 has 0 answers, and training needs one"),
        ({"id": 1.5}, ":2: id is a number, and should be a text"), ({"id": 7}, ":2 has the id \"7\" of an earlier question"),
        ({"context": None}, ":2: context is null, and should be a text"), ({"question": 3}, ":2: question is a number")]:
    with open(lines, "w", encoding="utf-8") as f:
        f.write(json.dumps(row) + "\n" + json.dumps({**row, "id": 8, **change}) + "\n")
    error = run("squad-features", vocab, lines, "training", 1, 384, 128, 64, code=2)
    check(error.startswith(lines + message) and error.count("\n") == 1, f"expected {message}, got {error}")
with open(lines, "w", encoding="utf-8") as f:
    f.write(json.dumps(row) + "\n" + json.dumps(row)[:-3] + "\n")
error = run("squad-features", vocab, lines, "training", 1, 384, 128, 64, code=2)
check(error.startswith(f"{lines}:2:"), error)
check("neither an article of SQuAD" in run("squad-features", vocab, file_of("no.json", {"text": "a", "label": 1}), "training", 1,
                                           384, 128, 64, code=2), "another table")
path = os.path.join(folder, "cut.json")
open(path, "w").write('{"data": [\n  {"paragraphs": [\n')
error = run("squad-features", vocab, path, "training", 1, 384, 128, 64, code=2)
check(error.startswith(f"{path}:3:1: unexpected end of input"), error)
open(path, "wb").write(b'{"data":\n "\xff"}')
error = run("squad-features", vocab, path, "training", 1, 384, 128, 64, code=2)
check(error.startswith(f"{path}:2:3: "), error)
check("[0] is neither an article of SQuAD" in run("squad-features", vocab, file_of("l.json", [1]), "training", 1, 384, 128, 64, code=2), "a list")
check("raise --seq-length" in run("squad-features", vocab, file_of("g.json", {"data": [{"paragraphs": [good]}]}),
                                  "training", 1, 66, 128, 64, code=2), "no room")
print("all equal")
