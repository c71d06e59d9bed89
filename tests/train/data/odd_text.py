"""Odd text, drawn with a seed, that every version of Unicode reads alike: characters assigned in Unicode 3.2
whose categories have not changed since. Newer characters are classed by the version that a library has."""
import random
import unicodedata

SPACES = [" ", "  ", "\t", "\n", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\xa0", "\u1680", "\u2000", "\u200a",
          "\u2028", "\u2029", "\u202f", "\u3000"]
BITS = ["don't", "U.S.A.", "x=y+1", "$5", "a_b", "#", "##ing", "`~^|<>", "caf\xe9", "cafe\u0301", "\xc5ngstr\xf6m",
        "\u0130stanbul", "\xdf", "\u1e9b\u0323", "\u039f\u0394\u039f\u03a3", "\u4e2d\u6587\u5b57", "\u3042\u308a",
        "\u30ac", "\uac00\ub098", "\u0e01\u0e33", "\u0915\u094d\u0937", "\u0627\u064e\u0628", "\ufeff", "\u200b",
        "\u200d", "\xad", "\ufffd", "\x00", "\x7f", "\u2019s", "\xab\xbb", "\u2026", "\u3001", "\uff01", "\U00010400",
        "\U0001d11e", "\ue000", "\u20ac", "a" * 100, "b" * 101, "\xe9" * 100, "e\u0301" * 101, "[CLS", "UNK]", "word",
        "WORD", "Word", "1,234.5", "(x)", "e\u0323\u0307", "e\u0307\u0323", "\u1100\u1161\u11a8", "\ufb01"]


def steady():
    """The characters whose class no version of Unicode changed."""
    old = unicodedata.ucd_3_2_0
    return [chr(c) for c in range(0x110000)
            if not 0xD800 <= c < 0xE000 and old.category(chr(c)) not in ("Cn", "Cs", "Co")
            and old.category(chr(c)) == unicodedata.category(chr(c)) and chr(c) not in "\u1885\u1886\u166d\u1734"]


def odd_text(seed, size):
    """At least `size` bytes of UTF-8, as str."""
    draw = random.Random(seed)
    characters = steady()
    latin = [c for c in characters if ord(c) < 0x250]
    parts, bytes_ = [], 0
    while bytes_ < size:
        kind = draw.random()
        if kind < 0.3:
            part = "".join(draw.choice(latin) for _ in range(draw.randint(1, 12)))
        elif kind < 0.55:
            part = "".join(draw.choice(characters) for _ in range(draw.randint(1, 6)))
        else:
            part = draw.choice(BITS)
        if draw.random() < 0.7:
            part += draw.choice(SPACES)
        parts.append(part)
        bytes_ += len(part.encode("utf-8"))
    return "".join(parts)


# Six scripts, and what pre-tokenizers make exceptions of.
SCRIPTS = {
    "latin": ["a", "E", "z", "\xe9", "e\u0301", "\u1ec7", "e\u0323\u0302", "\xdf", "\u0130", "\u0131", "\u017f", "\u212a",
              "\ufb01", "\u01c5", "\u02b0", "o\u0308", "\xf8", "\u1e9e", "A\u030a", "\u212b"],
    "cyrillic": ["\u0434", "\u0416", "\u0439", "\u0438\u0306", "\u0451", "\u0435\u0308", "\u042f", "\u0483", "\u04c1", "\u0456"],
    "arabic": ["\u0627", "\u0644", "\u064e", "\u0628\u0651", "\u0623", "\u0627\u0654", "\u0663", "\u06f5", "\u200f", "\ufdfa",
               "\u0640", "\u066b", "\u061f"],
    "devanagari": ["\u0915", "\u094d", "\u0937", "\u093f", "\u0928\u093c", "\u0929", "\u0967", "\u0964", "\u0930\u093c",
                   "\u0958", "\u200d", "\u200c"],
    "cjk": ["\u4e2d", "\u6587", "\u3042", "\u304b\u3099", "\u304c", "\u30fb", "\u3002", "\uff01", "\uac00", "\u1100\u1161",
            "\u1100\u1161\u11a8", "\ud55c", "\U00020000", "\uf900", "\u3007", "\uff15", "\u3131"],
    "emoji": ["\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd", "\u2764\ufe0f", "1\ufe0f\u20e3",
              "\U0001f1e9\U0001f1ea", "\u2600", "\xa9", "\u203c"],
}
# Never assigned: noncharacters, and code points that no version has.
UNASSIGNED = ["\u0378", "\u05ff", "\ufdd0", "\uffff", "\U0001fffe", "\U00050000", "\U000e0080", "\U0010ffff"]
EXCEPTIONS = (["'s", "'S", "'T", "'re", "'RE", "'ve", "'m", "'LL", "'ll", "'d", "'", "''", "\u2019s", "'\u017f", "don't", "WE'LL"]
              + ["7", "42", "365", "1234", "12345678", "\u0661\u0662\u0663\u0664", "\xbd\xb2", "\u2167", "3.14", "1,000"]
              + ["\r\n", "\n\n", "\r", "\n \n", "  \n", "\t\t", "!\r\n", "...\n\n", "}\n", "//\r\n"]
              + ["\x00", "\x7f", "\x1b", "\x1c", "\x1f", "\u180e", "\ufeff", "\u200b", "\xad", "_", "-", "=" * 70, "ab" * 40])


def script_text(seed, size):
    """At least `size` bytes of UTF-8 in six scripts, as str: runs of one script, mixtures, exceptions."""
    draw = random.Random(seed)
    every = [c for script in SCRIPTS.values() for c in script]
    parts, bytes_ = [], 0
    while bytes_ < size:
        kind = draw.random()
        if kind < 0.55:
            script = draw.choice(list(SCRIPTS.values()))
            part = "".join(draw.choice(script) for _ in range(draw.randint(1, 9)))
        elif kind < 0.7:
            part = "".join(draw.choice(every) for _ in range(draw.randint(1, 6)))
        elif kind < 0.73:
            part = draw.choice(UNASSIGNED)
        else:
            part = draw.choice(EXCEPTIONS)
        if draw.random() < 0.6:
            part += " " if draw.random() < 0.6 else draw.choice(SPACES)
        parts.append(part)
        bytes_ += len(part.encode("utf-8"))
    return "".join(parts)
