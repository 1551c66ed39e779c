"""Words and numbers as pictures and pages show them."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import count, product
from string import ascii_lowercase

ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 does not allow, not even escaped."""

WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
"""The words of a name: ``createMatMul_2`` has four."""


LONGEST = 4
"""Letters of an abbreviation, unless so many names need more."""


def escaped(text: object) -> str:
    """Return text that may stand in XML and HTML, in attributes too."""
    return html.escape(ILLEGAL.sub("\ufffd", str(text)))


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


def number(value: Decimal | float | None) -> str:
    """Return a number with separators and no idle zeros; ``-`` if it is unknown."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def seconds(value: float | None, digits: int = 2) -> str:
    """Return seconds with so many digits after the point; ``-`` if they are unknown."""
    return "-" if value is None else f"{value:.{digits}f}"


def ratio(value: float | None, whole: Decimal | float | None = None) -> str:
    """Return a ratio in percent; ``-`` if it is unknown.

    Parameters
    ----------
    whole
        What it is a ratio to, where that may be 0: then it says nothing, unless it is 0, too.
    """
    if value is None or (value != 0 and whole == 0):
        return "-"
    if value == 0:
        return "0"
    return f"{value:.2%}" if 5e-5 <= abs(value) < 100 else f"{value:.1e}"


def counted(count: int, word: str, words: str = "") -> str:
    """Return so many of something in words.

    Parameters
    ----------
    words
        What several of them are called; the word with an "s" by default.
    """
    return f"{count:,} {word if count == 1 else words or f'{word}s'}"


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
