"""Words in pictures: how wide they are, shortened, and abbreviated."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, product
from string import ascii_lowercase

WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
"""The words of a name: ``createMatMul_2`` has four."""


LONGEST = 4
"""Letters of an abbreviation, unless so many names need more."""


def width(text: str, size: float) -> float:
    """Return about how wide a text is in a sans-serif font of a size, rather too much."""
    return size * sum(map(_advance, text))


def _advance(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    if letter in "ijlftrI.,:;|!'()[] ":
        return 0.4
    return 0.74 if letter.isupper() or letter in "mw%@—" else 0.61


def shortened(text: str, limit: int = 22) -> str:
    """Return a text of at most ``limit`` letters, the middle of a longer one left out."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 1]}…{text[-tail:]}"


def abbreviations(names: Iterable[str]) -> dict[str, str]:
    """Return a short form of each name, no two alike.

    A name of one or two signs itself; else the first letter where no other name begins with
    it, else the initials of the words, else the first two letters, both with the number that
    ends the name; what is still ambiguous gets a letter more, in order.
    """
    short: dict[str, str] = {}
    left = list(dict.fromkeys(names))
    for form in (_whole, _first, _initials, _two):
        forms = {name: form(name) for name in left}
        times = Counter([*forms.values(), *short.values()])
        short |= {name: x for name, x in forms.items() if x and times[x] == 1}
        left = [name for name in left if name not in short]
    taken = set(short.values())
    for name in left:
        short[name] = next(x for x in _lettered(_first(name)) if x not in taken)
        taken.add(short[name])
    return short


def _whole(name: str) -> str:
    return name if len(name) <= 2 and name.isalnum() and name[0].isalpha() else ""


def _first(name: str) -> str:
    return next((letter for letter in name if letter.isalpha()), "")


def _initials(name: str) -> str:
    words = WORDS.findall(name)
    initials = "".join(word[0] for word in words if not word.isdigit()) + _number(words)
    return initials if len(initials) <= LONGEST else ""


def _two(name: str) -> str:
    letters = "".join(letter for letter in name if letter.isalpha())[:2]
    numbered = letters + _number(WORDS.findall(name))
    return numbered if letters and len(numbered) <= LONGEST else ""


def _number(words: Sequence[str]) -> str:
    return words[-1] if words and words[-1].isdigit() else ""


def _lettered(head: str) -> Iterator[str]:
    for length in count(1):
        for tail in product(ascii_lowercase, repeat=length):
            yield head + "".join(tail)
