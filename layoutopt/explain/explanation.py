"""Explanations of pairs and sinks, as data and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from layoutopt.base import files, numbers
from layoutopt.base.errors import InputError, printable
from layoutopt.base.numbers import exact, exact_decimal, more, number
from layoutopt.base.result import PairScore, Piece, Status, pairs_table
from layoutopt.base.table import Part, Shown, Table, Words
from layoutopt.graphs.locations import TILE

NAMED = 3  # largest number of names in a sentence


def paired(a: str, b: str) -> str:
    """Return the name of a pair."""
    return f"({a}, {b})"


def listed(names: Sequence[str]) -> str:
    """Join names, if any, by commas and "and"; of more than :data:`NAMED` the rest is counted."""
    left = len(names) - NAMED
    if left > 1:
        return f"{', '.join(names[:NAMED])} and {left:,} more"
    *first, last = names or [""]
    return f"{', '.join(first)} and {last}" if first else last


def sure(proved: bool) -> str:
    """Return the suffix of statements that are not proved."""
    return "" if proved else " (not proved)"


@dataclass(frozen=True)
class Share:
    """Elements of a sink at the locations of one tensor.

    Parameters
    ----------
    origin
        The tensor's name; the sink's name for its own locations.
    elements
        Number of elements.
    pieces
        Number of strided loops that describe them.
    earns
        Loss of score if only these elements moved to unshared locations; ``None`` on a tile
        memory, which has none.
    """

    origin: str
    elements: int
    pieces: int
    earns: Decimal | None


@dataclass(frozen=True, eq=False, kw_only=True)
class SinkExplanation(Shown):
    """Explanation of one sink: its locations, their score, and the alternatives.

    Parameters
    ----------
    sink
        The sink's name.
    elements
        Number of its elements.
    score, status
        Score and status of the explained result.
    shares
        Origins of the sink's locations, most elements first.
    pairs
        Scores of the pairs that it influences through views, largest losses first.
    alternatives
        Explanations of the losing pairs among them, largest values first.
    left
        Number of losing pairs that are not explained.
    """

    sink: str
    elements: int
    score: Decimal
    status: Status
    shares: tuple[Share, ...] = ()
    pairs: tuple[PairScore, ...] = ()
    alternatives: tuple[PairExplanation, ...] = ()
    left: int = 0

    @property
    def closest(self) -> PairExplanation | None:
        """The cheapest alternative that differs from the result; ``None`` without one."""
        others = [x for x in self.alternatives if x.layouts is not None]
        return min(others, key=lambda x: x.cost or 0, default=None)

    @property
    def proved(self) -> bool:
        """Whether all numbers are proved."""
        return all(x.proved for x in self.alternatives)

    def __str__(self) -> str:
        lines = [f"{self.sink}: {self.elements:,} elements"]
        lines += [f"  {text}" for text in self._lines()]
        lines = list(map(printable, lines))
        for explanation in self.alternatives:
            lines += ["", str(explanation)]
        if self.left:
            lines.append(self._more)
        return "\n".join(lines)

    def shown_parts(self) -> Iterator[Part]:
        """Yield locations, scores of pairs, and alternatives."""
        yield Words(f"{self.sink}: {self.elements:,} elements", "title")
        yield from map(Words, self._lines())
        yield pairs_table(self.pairs)
        for alternative in self.alternatives:
            yield from alternative.shown_parts()
        yield Words(self._more, "soft")

    def _lines(self) -> Iterator[str]:
        for share in self.shares:
            worth = "" if share.earns is None else f" and earn {number(share.earns)}"
            loops = "" if share.pieces == 1 else f" in {share.pieces:,} pieces"
            yield f"{share.elements:,} lie {self._where(share.origin)}{loops}{worth}"
        if not any(pair.loss > 0 for pair in self.pairs):
            yield "no pair that it influences loses anything"

    def _where(self, origin: str) -> str:
        if origin == TILE:
            return "on tiles"
        return "at locations of their own" if origin == self.sink else f"where {origin} does"

    @property
    def _more(self) -> str:
        return more(self.left, "losing pair")


ROWS = 30  # rows of a table of changes


@dataclass(frozen=True)
class Change:
    """Score of one pair before and after.

    Parameters
    ----------
    a, b
        Names of the two tensors.
    value
        Value per position; those of repeated pairs are added up.
    before, after
        Numbers of matching positions.
    """

    a: str
    b: str
    value: Decimal
    before: int
    after: int

    @property
    def difference(self) -> Decimal:
        """Increase of the score: ``value * (after - before)``."""
        return numbers.times(self.value, self.after - self.before)


@dataclass(frozen=True)
class Obstacle:
    """Reason why some positions of a pair cannot match for any values of other pairs.

    Parameters
    ----------
    positions
        Number of these positions.
    why
        A clause such as ``"both locations are fixed and differ"``.
    """

    positions: int
    why: str


@dataclass(frozen=True, eq=False, kw_only=True)
class PairExplanation(Shown):
    """Explanation of one ValuedPair: obstacles, cost of winning it, and threshold values.

    *Winning* the pair means matching it at the largest possible number of positions; the
    *alternative* is the best solution that wins it and keeps what the pair cannot influence.

    Parameters
    ----------
    a, b
        Names of the two tensors.
    value
        Value per position; those of repeated pairs are added up.
    elements, matched
        Number of positions, and of those that match in the explained result.
    score, status
        Score and status of the explained result.
    most
        Largest possible number of matching positions; ``None`` if time ran out.
    obstacles
        Reasons why the other positions cannot match.
    reason
        The obstacles and the cost in one sentence.
    alternative_score
        Total score of the alternative.
    changes
        Gains and losses of all other pairs in the alternative, largest losses first.
    layouts
        Layouts of the alternative; ``None`` without one, or if the result wins the pair.
    threshold
        Least value of this pair, others unchanged, at which winning it is optimal; ``None`` if it
        can match nowhere.  Negative values are considered only if its own value is negative; then
        it is ``None`` also if winning it is optimal at all values.
    threshold_more
        Least value, not below its own, at which some optimal layouts match it at more positions;
        ``None`` if the result wins it.
    smallest
        Smallest set of other pairs whose removal makes the alternative optimal; empty if it is
        optimal already, ``None`` if no such set exists or was found.
    most_proved, alternative_proved, threshold_proved, smallest_proved
        Whether the numbers are proved; otherwise they are the best found in time.
    """

    a: str
    b: str
    value: Decimal
    elements: int
    matched: int
    score: Decimal
    status: Status
    most: int | None = None
    obstacles: tuple[Obstacle, ...] = ()
    reason: str = ""
    alternative_score: Decimal | None = None
    changes: tuple[Change, ...] = ()
    layouts: dict[str, tuple[Piece, ...]] | None = None
    threshold: Fraction | None = None
    threshold_more: Fraction | None = None
    smallest: tuple[PairScore, ...] | None = None
    most_proved: bool = False
    alternative_proved: bool = False
    threshold_proved: bool = False
    smallest_proved: bool = False

    @property
    def loses(self) -> Decimal:
        """Value of the positions that do not match."""
        return numbers.times(self.value, self.elements - self.matched)

    @property
    def cost(self) -> Decimal | None:
        """Cost of winning the pair: score minus alternative score."""
        other = self.alternative_score
        return None if other is None else numbers.difference(self.score, other)

    @property
    def gains(self) -> tuple[Change, ...]:
        """The other pairs that score more in the alternative."""
        return tuple(change for change in self.changes if change.difference > 0)

    @property
    def losses(self) -> tuple[Change, ...]:
        """The other pairs that score less in the alternative."""
        return tuple(change for change in self.changes if change.difference < 0)

    @property
    def proved(self) -> bool:
        """Whether all numbers are proved."""
        parts = self.most_proved, self.alternative_proved, self.threshold_proved
        return all(parts) and self.smallest_proved

    def __str__(self) -> str:
        lines = [self._title(), *(f"  {name:<9} {text}" for name, text in self._lines())]
        return "\n".join(map(printable, lines))

    def shown_parts(self) -> Iterator[Part]:
        """Yield the reason of the loss, and the changes of other pairs."""
        yield Words(self._title(), "title")
        yield from (Words(f"{name}: {text}") for name, text in self._lines())
        head = ["other pair", "", "value", "matches", "then", "difference"]
        rows = [
            [c.a, c.b, number(c.value), f"{c.before:,}", f"{c.after:,}", number(c.difference)]
            for c in self.changes[:ROWS]
        ]
        yield Table(head, rows, 2, len(self.changes) - ROWS, "pair")

    def _title(self) -> str:
        earned = f"matches {self.matched:,} of {self.elements:,}"
        told = f"{paired(self.a, self.b)}  value {number(self.value)}, {earned}"
        return f"{told}, loses {number(self.loses)}"

    def _lines(self) -> Iterator[tuple[str, str]]:
        yield "why", self.reason
        if self.layouts is not None and self.cost is not None:
            so = sure(self.alternative_proved)
            yield "if won", f"{number(self.alternative_score)} in all, {_compared(self.cost)}{so}"
        if self.threshold is not None:
            yield "value", self._values() + sure(self.threshold_proved)
        if self.smallest:
            names = listed([paired(p.a, p.b) for p in self.smallest])
            so = "" if self.smallest_proved else " (perhaps fewer suffice)"
            yield "without", f"if {names} were worth nothing, winning it would be optimal{so}"

    def _values(self) -> str:
        least = self.threshold or Fraction(0)
        if least <= Fraction(self.value):
            return f"winning it is optimal down to {exact(least)}"
        told = f"winning it is optimal from {exact(least)} on"
        if self.threshold_more is None or self.threshold_more == least:
            return told
        return f"matching more of it is optimal from {exact(self.threshold_more)} on, {told}"


def _compared(cost: Decimal) -> str:
    if not cost:
        return "as much as now"
    return f"{number(cost.copy_abs())} {'less' if cost > 0 else 'more'} than now"


FORMAT = "layoutopt/explanation/1"


def explanation_bytes(instance: str, told: PairExplanation | SinkExplanation) -> bytes:
    """Return the bytes of the file of an explanation for the graph of that name."""
    return files.encode_lines({"format": FORMAT, "instance": instance} | _plain(told))


PAIR = (
    *("value", "elements", "matched", "loses", "score", "status", "most", "obstacles", "reason"),
    *("alternative_score", "cost", "changes", "layouts", "threshold", "threshold_more", "smallest"),
    *("most_proved", "alternative_proved", "threshold_proved", "smallest_proved"),
)
"""Members of a pair explanation's file."""


def _plain(value: Any) -> Any:
    """Convert a value to JSON; fractions without finite decimals become strings."""
    if isinstance(value, PairExplanation):
        members = {name: _plain(getattr(value, name)) for name in PAIR}
        return {"pair": [value.a, value.b], **members}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if is_dataclass(value):
        return {name: _plain(member) for name, member in vars(value).items()}
    if isinstance(value, Fraction):
        try:
            return exact_decimal(value)
        except InputError:
            return str(value)
    return str(value) if isinstance(value, Status) else value
