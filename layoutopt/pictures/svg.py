"""Elements of SVG as text."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice, product
from pathlib import Path
from string import ascii_lowercase
from typing import NamedTuple, TypeAlias

from layoutopt.base.errors import InputError
from layoutopt.base.files import named, write_bytes
from layoutopt.base.table import Figures, Part, Shown

WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
"""The words of a name: ``createMatMul_2`` has four."""


ILLEGAL = re.compile(
    "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    "|[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Characters that XML 1.0 forbids, even escaped; controls, and such of the direction of text."""

LONGEST = 4  # letters of an abbreviation, unless so many names need more


def escaped(text: object) -> str:
    """Escape text for XML, attributes included."""
    return html.escape(ILLEGAL.sub("\ufffd", str(text)))


def width(text: str, size: float) -> float:
    """Return an upper estimate of a text's width in a sans-serif font."""
    return size * sum(map(_advance, text))


def _advance(letter: str) -> float:
    if letter in "ijlftrI.,:;|!'()[] ":
        return 0.4
    if letter in "WMm%@—…" or unicodedata.east_asian_width(letter) in "WF":
        return 1.1
    return 0.8 if letter.isupper() or letter == "w" else 0.61


def shortened(text: str, limit: int = 22) -> str:
    """Return a text of at most ``limit`` letters, the middle of a longer one left out."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 1]}…{text[-tail:]}"


def fitted(text: str, size: float, wide: float) -> str:
    """Return a text, the middle left out unless it is at most so wide."""
    most = range(min(len(text), int(wide)), 3, -1)
    return next((x for n in most for x in [shortened(text, n)] if width(x, size) <= wide), text[:3])


def distinct(names: Iterable[str], limit: int = 22) -> dict[str, str]:
    """Return names of about so many letters, no two alike: longer ones show where they differ."""
    every = list(dict.fromkeys(names))
    alike: dict[str, list[str]] = {}
    for name in every:
        alike.setdefault(shortened(name, limit), []).append(name)
    short: dict[str, str] = {}
    for told, group in alike.items():
        letters = zip(*group, strict=False)
        start = next((i for i, each in enumerate(letters) if len(set(each)) > 1), 0)
        for name in group:
            differs = shortened(name[max(start - 2, 0) :], limit - 7)
            short[name] = told if len(group) == 1 else f"{shortened(name[:6])}…{differs}"
    taken: set[str] = set()
    for name in every:
        forms = (f"{short[name]} ({n})" for n in count(2))
        short[name] = next(x for x in (short[name], *islice(forms, len(every))) if x not in taken)
        taken.add(short[name])
    return short


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


Point: TypeAlias = tuple[float, float]

INK, SOFT, LINE, PAPER = "#23272e", "#6b7280", "#c9ced6", "#ffffff"
"""Text; lesser text; thin lines; the ground."""

NIGHT = {INK: "#e4e7eb", SOFT: "#a3adba", LINE: "#3b434e", PAPER: "#15181d"}
"""What these are on dark ground."""

FONT = "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"


def element(tag: str, *inside: str, **attributes: object) -> str:
    """Return an element of escaped text; ``stroke_width=2`` is written ``stroke-width="2"``."""
    words = [tag]
    for name, value in attributes.items():
        told = plain(value) if isinstance(value, float) else escaped(value)
        words.append(f'{name.rstrip("_").replace("_", "-")}="{told}"')
    body = "".join(inside)
    return f"<{' '.join(words)}>{body}</{tag}>" if body else f"<{' '.join(words)}/>"


def plain(value: float) -> str:
    """Return a coordinate with at most one decimal place."""
    return f"{value:.1f}".removesuffix(".0")


def text(words: str, x: float, y: float, size: float, **attributes: object) -> str:
    """Return a line of text, the left end of its baseline at a point."""
    return element("text", escaped(words), x=x, y=y, font_size=size, **attributes)


def rect(x: float, y: float, width: float, height: float, *inside: str, **style: object) -> str:
    """Return a rectangle."""
    return element("rect", *inside, x=x, y=y, width=width, height=height, **style)


def tip(words: str) -> str:
    """Return what shows when the pointer rests on the element around it."""
    return element("title", escaped(words))


def group(inside: Iterable[str], **attributes: object) -> str:
    """Return elements with attributes in common; nothing without elements."""
    body = "".join(inside)
    return element("g", body, **attributes) if body else ""


def path(points: Iterable[str], **attributes: object) -> str:
    """Return a path of commands."""
    return element("path", d="".join(points), **attributes)


Drawn: TypeAlias = Callable[[float, float, float, float], str]
"""From left, top, width and height to what stands there."""


class KeyEntry(NamedTuple):
    """Words of a key, and the sample before them, if any, with its width in pixels."""

    words: str
    sample: Drawn | None = None
    width: float = 18.0


def key(entries: Iterable[KeyEntry], left: float, top: float, right: float) -> tuple[str, float]:
    """Return samples with their words, in lines, and the height at which they end."""
    x, y, parts = left, top, list[str]()
    for words, sample, wide in entries:
        indent = wide + 6 if sample else 0.0
        words = fitted(words, 9.5, right - left - indent)
        whole = indent + width(words, 9.5) + 16
        if x > left and x + whole > right:
            x, y = left, y + 20
        parts.append(sample(x, y, wide, 12) if sample else "")
        parts.append(text(words, x + indent, y + 9.5, 9.5, fill=SOFT))
        x += whole
    return group(parts, class_="key"), y + 12 if parts else top


def at_night(scope: str, others: Mapping[str, str], but: str = "") -> str:
    """Return CSS that recolours pictures, given by a selector, where the reader likes it dark.

    Colours, as they are written in pictures, become others beside :data:`NIGHT`; elements of the
    selector ``but`` stay as they are.
    """
    rest = f":not({but})" if but else ""
    rules = [
        f'{scope} [{what}="{day}"]{rest}{{{what}:{night}}}'
        for day, night in (NIGHT | dict(others)).items()
        for what in ("fill", "stroke")
    ]
    ground = f"{scope}{{fill:{NIGHT[INK]}}}"
    return f"@media screen and (prefers-color-scheme:dark){{{ground}{''.join(rules)}}}"


def document(
    inside: Iterable[str], width: float, height: float, title: str, **attributes: object
) -> str:
    """Return a whole picture on white ground."""
    return element(
        "svg",
        tip(title),
        element("rect", width=width, height=height, fill=PAPER, rx=6),
        *inside,
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"0 0 {plain(width)} {plain(height)}",
        font_family=FONT,
        fill=INK,
        role="img",
        **attributes,
    )


@dataclass(frozen=True)
class Picture(Shown):
    """A picture as SVG, which notebooks show.

    Parameters
    ----------
    svg
        The text of the picture.
    reduced
        Whether it shows only counts, as there was too much to draw.
    """

    svg: str = field(repr=False)
    reduced: bool = False

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write an SVG file atomically.

        Parameters
        ----------
        path
            File with the suffix ``.svg``.
        overwrite
            Whether to replace an existing file.

        Raises
        ------
        InputError
            If the suffix is another, or the file exists or cannot be written.
        """
        if named(path).suffix != ".svg":
            raise InputError("is no name of a picture; it must end in .svg", file=str(path))
        write_bytes(named(path), f"{self.svg}\n".encode(), overwrite=overwrite)

    def _repr_svg_(self) -> str:
        return self.svg

    def shown_parts(self) -> Iterable[Part]:
        """Yield the picture."""
        yield Figures([("", self.svg)])

    def __str__(self) -> str:
        return self.svg
