"""Parts of layouts: blocks, dimensions, and errors that point at a place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from string import ascii_uppercase
from typing import Any, Literal

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import integers, least

Dialect = Literal["glow", "tvm", "onednn", "xla"]

ANY = "*"
"""The axis of a dimension that may be anything."""

LOGICAL_ORDER = "GNOICDHW"
"""The order of well-known axes in a tensor's shape; other letters follow by alphabet."""

RECURRENT_ORDER = "LDTNIGOC"
"""The same where layers (L) or time (T) are among the axes but no image is, as oneDNN has it."""


class LayoutError(InputError):
    """A layout that cannot be read, or not be used as asked.

    Parameters
    ----------
    reason, place, file
        As for :class:`~layoutopt.base.errors.InputError`.
    text, at
        The layout's text, and the offset of the offending place in it, if there is one.
    """

    def __init__(
        self, reason: str, place: str = "", file: str = "", *, text: str = "", at: int | None = None
    ) -> None:
        self.text = text
        self.at = at
        super().__init__(reason, place, file)

    def located(self, place: str = "", file: str = "") -> LayoutError:
        """Return the same error with a place or file added where it had none."""
        place, file = self.place or place, self.file or file
        return LayoutError(self.reason, place, file, text=self.text, at=self.at)

    @property
    def picture(self) -> str:
        """Two lines, the text and a caret under the offending place; empty if there is none."""
        if self.at is None:
            return ""
        shown = "".join(c if c.isprintable() else "\N{MIDDLE DOT}" for c in self.text)
        return f"{shown}\n{' ' * self.at}^"


def size(name: str, given: Any, low: int) -> int:
    """Return one integer of ``low`` or more, else raise a :class:`LayoutError`."""
    return least(name, given, low, error=LayoutError)


def sizes(name: str, given: Any, low: int = 0, count: int | None = None) -> tuple[int, ...]:
    """Return integers of ``low`` or more, ``count`` of them, else raise a :class:`LayoutError`."""
    return integers(name, given, low, count, error=LayoutError)


@dataclass(frozen=True, slots=True)
class Block:
    """``size`` values of one logical axis, an upper-case letter or ``*``, that lie side by side.

    The outermost block of an axis has no size: it takes what the others leave.
    """

    axis: str
    size: int | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.axis, str) and re.fullmatch(r"[A-Z]|\*", self.axis)):
            raise LayoutError(f"an axis must be an upper-case letter or '*', got {self.axis!r}")
        if self.size is not None and (self.axis == ANY or self.size < 1):
            raise LayoutError(f"a block must be 1 or more values of a letter's axis, got {self}")

    def __str__(self) -> str:
        return self.axis if self.size is None else f"{self.size}{self.axis.lower()}"


@dataclass(frozen=True, slots=True)
class Dim:
    """A physical dimension: one block, or several packed into one dimension, outermost first.

    ``extensions`` are what Glow writes in brackets behind it: ``a=32`` (alignment of its stride in
    bytes) or ``namespace:anything``.  ``lower`` says that Glow writes the letter in lower case; it
    names the same axis.
    """

    blocks: tuple[Block, ...]
    extensions: tuple[str, ...] = ()
    lower: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if not self.blocks:
            raise LayoutError("a dimension must have a block")

    @property
    def name(self) -> str:
        """Its blocks as they are written, without brackets: ``C``, ``16c``, ``4o4i``."""
        return "".join(map(str, self.blocks))

    @property
    def alignment(self) -> int:
        """What the stride is rounded up to a multiple of, in bytes; 1 if nothing is said."""
        return next((int(e[2:]) for e in self.extensions if is_alignment(e)), 1)

    def __str__(self) -> str:
        text = self.name.lower() if self.lower else self.name
        text = text if len(self.blocks) == 1 else f"[{text}]"
        return text + "".join(f"[{extension}]" for extension in self.extensions)


def is_alignment(extension: str) -> bool:
    """Return whether an extension is ``a=bytes``, and not a namespace's that looks alike."""
    return re.fullmatch("a=[0-9]+", extension) is not None


def axes_of(dims: Iterable[Dim]) -> str:
    """Return each axis once, outermost first."""
    return "".join(dict.fromkeys(block.axis for dim in dims for block in dim.blocks))


def positions(rank: int) -> str:
    """Return the letters that stand for the first logical axes: ``ABC`` for three."""
    return ascii_uppercase[:rank]


def is_positional(axes: str) -> bool:
    """Return whether axes are letters for positions: ``A`` to the last, in any order."""
    return sorted(axes) == list(positions(len(axes)))


def logical_order(axes: str) -> str:
    """Return axes in the order in which a tensor's shape names them."""
    if is_positional(axes):
        return "".join(sorted(axes))
    recurrent = set(axes) & set("LT") and not set(axes) & set("HW")
    known = [a for a in (RECURRENT_ORDER if recurrent else LOGICAL_ORDER) if a in axes]
    return "".join(known + sorted(set(axes) - set(known)))


def renamed(dims: Iterable[Dim], names: Mapping[str, str]) -> tuple[Dim, ...]:
    """Return dimensions whose axes have other letters."""
    return tuple(
        replace(dim, blocks=tuple(Block(names[b.axis], b.size) for b in dim.blocks)) for dim in dims
    )


def check_axes(dims: Iterable[Dim]) -> None:
    """Refuse axes with no outermost block, or with two."""
    blocks = [block for dim in dims for block in dim.blocks]
    whole = [block.axis for block in blocks if block.size is None]
    for axis in axes_of(dims):
        if axis != ANY and whole.count(axis) != 1:
            how = "has no outermost block" if axis not in whole else "is there twice"
            raise LayoutError(f"axis {axis} {how}")


def outer_and_inner(dims: Iterable[Dim], dialect: str) -> tuple[str, list[Block]]:
    """Return the axes in their order, then blocks from the outer inwards; refuse other layouts.

    ``dialect`` is the notation that wants it so.
    """
    dims = tuple(dims)
    check_axes(dims)
    axes, inner = "", []
    for dim in dims:
        refuse_extensions(dim, dialect)
        if len(dim.blocks) > 1:
            raise LayoutError(f"{dialect} has no packed axes such as {dim}")
        [block] = dim.blocks
        if block.size is not None:
            inner.append(block)
        elif inner:
            raise LayoutError(f"{dialect} has all blocks after the axes, here {inner[-1]} is not")
        else:
            axes += block.axis
    return axes, inner


def refuse_extensions(dim: Dim, dialect: str) -> None:
    """Refuse what only Glow can say of a dimension."""
    if ANY in axes_of([dim]):
        raise LayoutError(f"{dialect} has no dimension that may be anything (*)")
    for extension in dim.extensions:
        what = "alignment" if is_alignment(extension) else "extension"
        raise LayoutError(f"{dialect} has no place for the {what} [{extension}]")


DIGITS = re.compile("[0-9]*")
LARGEST = 2**63 - 1
LONGEST_QUOTE = 60


class Scanner:
    """A text and how far it has been read; blanks are passed."""

    def __init__(self, text: str, blanks: str = "") -> None:
        self.text, self.blanks = text, blanks
        self.at = 0

    @property
    def char(self) -> str:
        """The next character; empty at the end."""
        while self.at < len(self.text) and self.text[self.at] in self.blanks:
            self.at += 1
        return self.text[self.at : self.at + 1]

    def take(self, chars: str) -> str:
        """Return the next character and pass it if it is among the given ones; else nothing."""
        char = self.char
        if char and char in chars:
            self.at += 1
            return char
        return ""

    def number(self, what: str, least: int = 1) -> int:
        """Return the decimal number that comes next, and pass it; errors call it ``what``."""
        found = DIGITS.match(self.text, self.at)
        digits = found[0] if found else ""
        if not digits:
            raise self.expected(what)
        if len(digits) > 1 and digits[0] == "0":
            raise self.error(f"expected {what} without leading zeros")
        # Long texts are not turned into numbers: Python limits how long they may be.
        if len(digits) > len(str(LARGEST)) or not least <= int(digits) <= LARGEST:
            raise self.error(f"expected {what} from {least} to 2^63 - 1")
        self.at += len(digits)
        return int(digits)

    def expected(self, what: str) -> LayoutError:
        """Return the error that something else should come next."""
        return self.error(f"expected {what}, found {repr(self.char) if self.char else 'the end'}")

    def error(self, problem: str, at: int | None = None) -> LayoutError:
        """Return an error that points at an offset, by default at the next character."""
        at = self.at if at is None else at
        text = self.text
        quoted = repr(text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}...")
        return LayoutError(f"column {at + 1} of layout {quoted}: {problem}", text=text, at=at)
