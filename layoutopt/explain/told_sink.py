"""What is told of a sink."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from layoutopt.errors import printable
from layoutopt.explain.told import PairExplanation
from layoutopt.graphs.tiling import TILE
from layoutopt.pictures import html
from layoutopt.pictures.text import number
from layoutopt.result import PairScore, Status, pairs_html


@dataclass(frozen=True)
class Share:
    """How many elements of a sink lie where elements of another tensor do.

    Parameters
    ----------
    origin
        The tensor's name; the sink's own for locations of its own.
    elements
        How many they are.
    pieces
        Of how many strided loops they consist.
    earns
        What would be lost if these elements alone lay where nothing else does; ``None`` on a tile
        memory, where no such place is.
    """

    origin: str
    elements: int
    pieces: int
    earns: Decimal | None


@dataclass(frozen=True, eq=False, kw_only=True)
class SinkExplanation:
    """Where a sink lies, what that earns, and what else it could do.

    Parameters
    ----------
    sink
        Its name.
    elements
        Its elements.
    score, status
        The explained result's.
    shares
        Whose locations it takes, the most first.
    pairs
        What the pairs earn that it influences through views, the largest losses first.
    alternatives
        For the pairs among them that lose, those of the largest values first, what winning each
        would change; see :class:`PairExplanation`.
    left
        How many further ones lose.
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
        """The alternative other than the result itself that costs least; ``None`` without one."""
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
        return "\n".join([*lines, *self._more()])

    def _repr_html_(self) -> str:
        head = html.heading(f"{self.sink}: {self.elements:,} elements")
        told = [html.line(text) for text in self._lines()]
        parts = [x._repr_html_() for x in self.alternatives]
        more = [html.line(text, html.MUTED) for text in self._more()]
        return html.block([head, *told, pairs_html(self.pairs), *parts, *more])

    def _lines(self) -> Iterator[str]:
        for share in self.shares:
            worth = "" if share.earns is None else f" and earn {number(share.earns)}"
            loops = "" if share.pieces == 1 else f" in {share.pieces:,} pieces"
            yield f"{share.elements:,} lie {self._where(share.origin)}{loops}{worth}"
        if not any(pair.loss > 0 for pair in self.pairs):
            yield "no pair that it influences loses anything"

    def _where(self, origin: str) -> str:
        if origin == TILE:
            return "on tiles by number"
        return "at locations of their own" if origin == self.sink else f"where {origin} does"

    def _more(self) -> Iterator[str]:
        if self.left:
            yield f"... and {self.left:,} more pairs that lose"
