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
