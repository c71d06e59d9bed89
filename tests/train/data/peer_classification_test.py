"""Labelled texts: CSV against Python's csv module, TSV and JSON lines against what was written; samples against
Hugging Face's tokenizers, and truncated ones against run_classifier.py of google-research/bert."""
import csv
import functools
import gzip
import io
import json
import os
import random
import sys
import tempfile

tool, root = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from peer_support import check, run_tool, skip

try:
    from tokenizers.implementations import BertWordPieceTokenizer
    import original_bert
    classifier = original_bert.load("run_classifier")
except ImportError:
    classifier = None
if classifier is None:
    skip("tokenizers or the package bert-tensorflow is missing")
folder_ = tempfile.TemporaryDirectory()
folder = folder_.name
draw = random.Random(7)


run = functools.partial(run_tool, tool)


def written(name, data):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode("utf-8"))
    return path


def texts(rows):
    return [[cell[0] for cell in row] for row in rows]


# --- Tables ----------------------------------------------------------------------------------------------------
BITS = ["a", "word", " ", ",", "\"", "\"\"", "\n", "\r\n", "\t", "'", "caf\xe9", "\u4e2d", "\\", "#", ";", "{}", "\u2028"]
for trial in range(60):
    names = ["id", "label", "text", "two words", "c\xf4t\xe9"]
    draw.shuffle(names)
    rows = [["".join(draw.choice(BITS) for _ in range(draw.randint(0, 6))) for _ in names] for _ in range(20)]
    out = io.StringIO(newline="")
    end = draw.choice(["\n", "\r\n"])
    csv.writer(out, quoting=draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), lineterminator=end).writerows([names] + rows)
    data = out.getvalue()
    if draw.random() < 0.3:
        data = data.removesuffix(end)
    if draw.random() < 0.3:
        data = "\ufeff" + data
    columns = draw.sample(names, draw.randint(1, 5))
    path = written("t.csv", data)
    got = run("table", path, draw.choice(["auto", "csv"]), *columns)
    expected = [dict(zip(names, r)) for r in csv.reader(io.StringIO(data.removeprefix("\ufeff"), newline=""))][1:]
    check(texts(got) == [[r[c] for c in columns] for r in expected], f"CSV {trial} differs")
    # Where cells begin: the text before is whole lines, and as many bytes on the line.
    raw = data.encode("utf-8").split(b"\n")
    for row in got:
        for text, line, column in row:
            at = raw[line - 1][column - 1:]
            check(at.startswith((b'"', text.split("\n")[0].split("\r")[0].encode())), f"{text!r} is not at {line}:{column}")
    plain = [[c.replace("\t", " ").replace("\n", " ").replace("\r", " ") for c in r] for r in rows]
    plain = [r if any(r) else ["x"] * 5 for r in plain]
    path = written("t.tsv", "\n".join("\t".join(r) for r in [names] + plain))
    check(texts(run("table", path, "auto", *columns)) == [[dict(zip(names, r))[c] for c in columns] for r in plain],
          f"TSV {trial} differs")
    lines = "\n".join(json.dumps(dict(zip(names, r)), ensure_ascii=trial % 2 == 0) for r in rows) + "\n\n"
    path = os.path.join(folder, "t.jsonl.gz")
    with gzip.open(path, "wb") as f:
        f.write(lines.encode("utf-8"))
    check(texts(run("table", path, "auto", *columns)) == [[dict(zip(names, r))[c] for c in columns] for r in rows],
          f"JSON lines {trial} differ")
check(texts(run("table", written("n.jsonl", '{"a":1,"b":true}\n{"a":-1.5,"b":"x"}'), "auto", "a", "b")) ==
      [["1", "true"], ["-1.5", "x"]], "numbers")
for name, data, message in [
        ("e.csv", "a,b\n1,\"x\n\ny", ":2:3: this quote is not closed"),
        ("e.csv", "a,b\n1,\"x\n\"y,\n", ":3:2: text after the end of a quoted field"),
        ("e.csv", "a,b\n1,x\"y\n", ":2:4: a quote within a field"),
        ("e.csv", "a,b\n1,2\n3\n", ":3:1: this row has 1 field, and the first row has 2"),
        ("e.csv", "a,b\n1,2,3\n", ":2:5: this row has 3 fields, and the first row has 2"),
        ("e.csv", "c,b\n1,2\n", ":1:1: no column is named \"a\": the columns are \"c\", \"b\": the first row has"),
        ("e.csv", "gj04,1,,Our friends\nb,0,,x\n", "columns are \"gj04\", \"1\", \"\", \"Our friends\": the first row has"),
        ("e.csv", "a, b\n1,2\n".replace("a", "A"), "columns are \"A\", \" b\": the first row has"),
        ("e.csv", "a;b\n1;2\n", ":1:1: no column is named \"a\": the first row is \"a;b\", which semicolons separate"),
        ("e.csv", '"a";"b"\n"1";"2"\n', ":1:4: semicolons separate quoted fields here: a .csv is separated by commas"),
        ("e.csv", '"x y"\t"a"\n', ":1:6: tabs separate quoted fields"), ("e.csv", '"a"|"b"\n', "bars separate quoted"),
        ("e.csv", 'a,b\n"1";2\n', ":2:4: semicolons separate quoted"),
        ("e.csv", "a\tb\n1\t2\n", "which tabs separate"), ("e.csv", "a|b\n1|2\n", "which bars separate"),
        ("e.tsv", "a,b\n1,2\n", "which commas separate: a .csv is separated by commas, a .tsv by tabs"),
        ("e.csv", "x;" * 100_000, "..."), ("e.csv", "a" + ",x" * 100_000 + "\n1\n", "has 1 field"),
        ("e.csv", ",".join(f"x{i}" for i in range(100_000)), "\"x30\", ...: the first row has"),
        ("e.csv", "a,b\r1,2\r".replace("a", "A"), "the file's lines end with a carriage return alone"),

        ("e.csv", "a,b,a\n", ":1:5: a second column is named \"a\""),
        ("e.csv", "", ":1:1: the file is empty"),
        ("e.csv", b"a,b\n1,\xe9\n", ":2:3: this byte is not valid UTF-8"),
        ("e.tsv", b"\xff", ":1:1: this byte is not valid UTF-8"),
        ("e.tsv", "a\tb\n\n1\n", ":3:1: this row has 1 field"),
        ("e.jsonl", '{"a":"x"}\n{"a": \n', ":2:7: unexpected end of input"),
        ("e.jsonl", '{"a":"x"}\n\n[1]\n', ":3:1: this line is not a JSON object: each line should be one"),
        ("e.jsonl", '[{"a":"x"},{"a":"y"}]\n', ":1:1: this line is not a JSON object: each line should be one"),
        *(("e.json", text, ":1:1: this line is not a JSON object: each line should be one, without a list around them")
          for text in ('[\n {"a":"x"}\n]', '[{"a":"x"},\n{"a":"y"}]\n', '  [ \r\n', '[\n')),
        ("e.jsonl", '{"b":"x","c":1}\n', ":1:1: the object has no key \"a\": its keys are \"b\", \"c\""),
        ("e.jsonl", '{"a":[]}\n', ":1:1: the value of \"a\" is an array"),
        ("e.dat", "a\n", "' does not say what it is")]:
    path = written(name, data)
    error = run("table", path, "auto", "a", code=2).removeprefix("'")
    check(error.startswith(path) and message in error and error.count("\n") == 1 and len(error) < 600,
          f"expected {message}, got {error}")

# --- Samples ---------------------------------------------------------------------------------------------------
words = ["the", "river", "stone", "well", "known", "cafe", "##ing", "##s", "r", "##i", "##v", ",", "."]
vocab = written("vocab.txt", "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + words) + "\n")
peer = BertWordPieceTokenizer(vocab, lowercase=True)


def sentence(most):
    return " ".join(draw.choice(["The", "river", "stones", "welling", "caf\xe9,", "zzz", "known."]) for _ in range(
        draw.randint(0, most)))


for pair in (False, True):
    rows = [{"text": sentence(40), "label": draw.choice(["joy", "anger", "sad ness"]), **({"second": sentence(40)} if pair
                                                                                         else {})} for _ in range(300)]
    path = written("s.jsonl", "\n".join(map(json.dumps, rows)))
    for sequence in (200, 24, 5):
        classes, head, *got = run("classify", vocab, path, path, sequence, "second" if pair else "")
        check(classes == ["anger", "joy", "sad ness"], str(classes))
        check(head["samples"] == 300 and head["sequence"] == sequence, str(head))
        for row, g in zip(rows, got):
            a = peer.encode(row["text"], add_special_tokens=False).ids
            b = peer.encode(row["second"], add_special_tokens=False).ids if pair else []
            classifier._truncate_seq_pair(a, b, sequence - (3 if pair else 2))
            ids = [2] + a + [3] + (b + [3] if pair else [])
            check(g["ids"] == ids and g["types"] == [0] * (len(a) + 2) + [1] * (len(ids) - len(a) - 2), f"{row}: {g}")
            check(g["label"] == classes.index(row["label"]), f"{row}: {g}")
            if sequence == 200:
                whole = peer.encode(row["text"], row.get("second"))
                check((whole.ids, whole.type_ids) == (g["ids"], g["types"]), f"{row}: {g}")
numbers = written("n.csv", "label,text\n3,the\n0,river\n10,stone\n")
check(run("classify", vocab, numbers, numbers, 8, "")[0] == [str(i) for i in range(11)], "numbers of classes")
# transformers' names of classes without names, as a pipeline prints them.
unnamed = written("u.csv", "label,text\n" + "".join(f"LABEL_{i},the\n" for i in (10, 2, 0)))
classes, head, *got = run("classify", vocab, unnamed, unnamed, 8, "")
check(classes == [str(i) for i in range(11)] and [g["label"] for g in got] == [10, 2, 0], f"{classes} {got}")
for data, message in [("label,text\n1,a\n,b\n", ":3:1: this row has no label"), ("label,text\n", ":1:1: the file has no rows"),
                      ("label,text\n100000,b\n", ":2:1: the label 100000 is too great"),
                      ("label,text\n0,a\npos,b\n", ":3:1: the label \"pos\" is a word, and those before it are numbers"),
                      ("label,text\nneg,a\n1,b\n", ":3:1: the label \"1\" is a number, and those before it are words"),
                      ("label,text\n0,a\n-1,b\n", ":3:1: the label -1 is not the number of a class"),
                      ("label,text\n0.5,a\n", ":2:1: the label 0.5 is not the number of a class"),
                      ("label,text\n1.0,a\n", ":2:1: the label 1.0 is not the number of a class"),
                      ("label,text\n\"1,0\",a\n", ":2:1: the label 1,0 is not the number of a class"),
                      ("label,text\n+1,a\n", ":2:1: the label +1 is not the number of a class"),
                      ("label,text\n01,a\n", ":2:1: the label 01 is not the number of a class"),
                      ("label,text\nNaN,a\n", ":2:1: the label NaN is not the number of a class"),
                      ("label,text\nLABEL_-1,a\n0,b\n", ":3:1: the label \"0\" is a number, and those before"),
                      *((f"text,label\na,{label}\n", f":2:3: the label \"{label}\" begins or ends with white space")
                        for label in (" 1", "1 ", " pos", "pos\t", "pos\xa0", "\u3000pos", "pos\u2003", "1\x85"))]:
    path = written("e.csv", data)
    check(path + message in run("classify", vocab, path, path, 8, "", code=2), message)
# A label counts as itself, whatever the other rows have: a name, else a number. The model's names are shifted numbers
# (1 to 5), transformers' own in another order, or words of which one looks like those.
shifted, turned, odd = ["1", "2", "3", "4", "5"], [f"LABEL_{i}" for i in (4, 3, 2, 1, 0)], ["a", "LABEL_10", "b"]
for names, labels, expected in [
        (shifted, ["LABEL_1", "LABEL_2"], [1, 2]), (shifted, ["LABEL_1", "LABEL_2", "LABEL_0"], [1, 2, 0]),
        (shifted, ["LABEL_4", "0"], [4, 0]), (shifted, ["5", "1"], [4, 0]), (shifted, ["0", "3"], [0, 3]),
        (turned, ["LABEL_4", "LABEL_0"], [0, 4]), (turned, ["LABEL_4"], [0]), (turned, ["4", "0"], [4, 0]),
        (turned, ["4", "LABEL_0"], [4, 0]), (odd, ["LABEL_10", "b"], [1, 2]), (odd, ["LABEL_1", "LABEL_0"], [1, 0]),
        (["x", "y"], ["LABEL_1"], [1]), (["x", "y"], ["y"], [1])]:
    path = written("m.csv", "label,text\n" + "".join(f"{label},the\n" for label in labels))
    got = run("classify", vocab, path, path, 8, "", *names)[2:]
    check([g["label"] for g in got] == expected, f"{names}: {labels}: {got}")
path = written("m.csv", "label,text\nLABEL_3,the\n")
error = run("classify", vocab, path, path, 8, "", *odd, code=2)
check(':2:1: the label "LABEL_3" is not one of the model\'s classes: a, LABEL_10, b' in error, error)
other = written("o.csv", "text,label\n\"a\nb\",x\n")
error = run("classify", vocab, numbers, other, 8, "", code=2)
check(other + ":3:4: the label \"x\" is not one of the 11 classes" in error, error)
print("all equal")
