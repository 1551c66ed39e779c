"""Results of solvers, and pieces of layouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from layoutopt.base import numbers
from layoutopt.base.errors import InputError, printable
from layoutopt.base.limits import Stopped
from layoutopt.base.numbers import counted, number, ratio, seconds
from layoutopt.base.table import Figures, Part, Shown, Table, Words

Index = NDArray[np.int64]

Loop: TypeAlias = tuple[int, int, int]  # ``(extent, from_stride, to_stride)`` over flat indices

Piece: TypeAlias = tuple[str, int, int, tuple[Loop, ...]]
"""``(origin, from, to, loops)``: element ``to + sum(i * to_stride)`` of a sink is at the
location of element ``from + sum(i * from_stride)`` of tensor ``origin``."""

AnyPiece: TypeAlias = tuple[str | int, int, int, tuple[Loop, ...]]
"""A piece whose origin is a tensor's name or number."""

Step: TypeAlias = str | tuple[str, int]
"""A sink that is set at once, or ``(sink, number of one of its pieces)``."""


def outer_sum(terms: Sequence[Index], start: int = 0) -> Index:
    """Return ``start + terms[0][i_0] + terms[1][i_1] + ...``, flat in row-major order."""
    total = np.full((1,) * len(terms), start, np.int64)
    for d, term in enumerate(terms):
        total = total + term.reshape([-1 if e == d else 1 for e in range(len(terms))])
    return total.reshape(-1)


def read(piece: AnyPiece) -> Index:
    """Return the flat elements of the origin that a piece refers to, in its loops' order."""
    _origin, start, _to, loops = piece
    return _walk(start, [(extent, step) for extent, step, _ in loops])


def written(piece: AnyPiece) -> Index:
    """Return the flat elements of the sink that a piece sets, in its loops' order."""
    _origin, _from, start, loops = piece
    return _walk(start, [(extent, step) for extent, _, step in loops])


def _walk(start: int, loops: Sequence[tuple[int, int]]) -> Index:
    return outer_sum([np.arange(extent) * step for extent, step in loops if extent != 1], start)


def elements(piece: Piece) -> int:
    """Return the number of elements that a piece sets."""
    return prod(extent for extent, _, _ in piece[3])


def fault(piece: Piece, sink_size: int, origin_size: int) -> str | None:
    """Return the reason why a piece does not fit its sink and origin, or ``None``."""
    _origin, start, to, loops = piece
    if any(extent < 1 for extent, _, _ in loops):
        return "an extent is below 1"
    for what, first, step_of, size in (("from", start, 1, origin_size), ("to", to, 2, sink_size)):
        spans = [(loop[0] - 1) * loop[step_of] for loop in loops]
        low = first + sum(min(span, 0) for span in spans)
        high = first + sum(max(span, 0) for span in spans)
        if low < 0 or high >= size:
            return f"its {what!r} elements {low}..{high} must be within 0..{size - 1}"
    return None


def cover(pieces: Sequence[Piece], size: int) -> str | None:
    """Return the reason why pieces inside a sink do not cover it exactly once, or ``None``."""
    total = sum(map(elements, pieces))
    if total != size:
        return f"pieces set {total} elements of {size}"
    seen = np.zeros(size, bool)
    for _origin, _from, to, loops in pieces:
        long = [(n, step) for n, _, step in loops if n != 1]
        as_strided(seen[to:], [n for n, _ in long], [step for _, step in long])[...] = True
    missing = size - int(np.count_nonzero(seen))
    return f"{missing} elements are set twice, and as many are not set" if missing else None


PAIRS_SHOWN = 30  # rows of the table of pairs in a notebook


class Status(StrEnum):
    """Proof status of an answer."""

    OPTIMAL = "optimal"
    """A solution that is proved optimal."""
    FEASIBLE = "feasible"
    """A solution, with or without a bound."""
    INFEASIBLE = "infeasible"
    """No solution exists; this is proved."""
    UNKNOWN = "unknown"
    """No solution was found, and infeasibility is not proved."""


class Answer:
    """Status and gap of an answer, by its ``objective``, ``bound`` and ``infeasible``."""

    objective: Any
    bound: Any
    infeasible: Any

    @property
    def status(self) -> Status:
        """Proof status; ``optimal`` only if objective and bound are exactly equal."""
        if self.infeasible:
            return Status.INFEASIBLE
        if self.objective is None:
            return Status.UNKNOWN
        return Status.OPTIMAL if self.objective == self.bound else Status.FEASIBLE

    @property
    def gap(self) -> float | None:
        """``(bound - objective) / max(|objective|, 1e-9)``; ``None`` if either is unknown."""
        if self.objective is None or self.bound is None:
            return None
        missing = Fraction(self.bound) - Fraction(self.objective)
        return numbers.relative(missing, self.objective)


@dataclass(frozen=True, eq=False, kw_only=True)
class Result(Answer):
    """A solution, a bound, or both.

    Parameters
    ----------
    objective
        The solution's exact score, ``None`` without a solution.
    bound
        A proved upper bound on all scores, ``None`` if unknown.
    labelling
        The solution: an array of labels for a labelling problem, layouts by sink for an
        unwinding graph; ``None`` without a solution.
    stopped
        Reason why the computation ended.
    infeasible
        Reason why no solution exists, if this is proved.
    seconds
        Wall-clock seconds by phase.
    """

    objective: int | Decimal | None = None
    bound: int | Decimal | None = None
    labelling: Any = None
    stopped: Stopped = Stopped.FINISHED
    infeasible: str = ""
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PairScore:
    """Score of one ValuedPair: ``value * matched`` of at most ``value * elements``."""

    a: str
    b: str
    value: Decimal
    elements: int
    matched: int

    @property
    def loss(self) -> Decimal:
        """Value of the positions that do not match: ``value * (elements - matched)``."""
        return numbers.times(self.value, self.elements - self.matched)


@dataclass(frozen=True, eq=False, kw_only=True)
class UnwindingResult(Result, Shown):
    """The answer to an unwinding problem.

    Parameters
    ----------
    instance, solver, version, seed
        Names of instance and solver, version of this package, and random seed.
    instance_hash
        The instance's :func:`~layoutopt.io.instance.instance_hash`; ``None`` if unknown.
    max_score
        The score if every pair matched at every position.
    size
        Counts by name: ``tensors``, ``elements``, ``free_elements``, ``unconstrained``
        (free elements that influence no pair), ``edges``, ``classes``.
    pairs
        Score of each ValuedPair, in the graph's order.
    order
        An order in which sinks can be set such that every barrier is known before its use.
    certificate, uncertified
        Certificate of score and bound as plain data; or the reason why a requested one is missing.
    graph
        The graph that was solved, not a copy; ``None`` for a result read without it.
    """

    instance: str
    solver: str
    version: str
    seed: int
    max_score: Decimal
    instance_hash: str | None = None
    size: dict[str, int] = field(default_factory=dict)
    pairs: tuple[PairScore, ...] = ()
    order: tuple[Step, ...] = ()
    certificate: dict[str, Any] | None = field(default=None, repr=False)
    uncertified: str = ""
    graph: Any = None  # a Graph; its class is on a higher floor

    @property
    def score(self) -> Decimal | None:
        """The exact score of the layouts."""
        return None if self.objective is None else Decimal(self.objective)

    @property
    def layouts(self) -> dict[str, tuple[Piece, ...]] | None:
        """The pieces that cover each sink, by sink name."""
        layouts: dict[str, tuple[Piece, ...]] | None = self.labelling
        return layouts

    def __repr__(self) -> str:
        facts = [f"score {number(self.score)}", f"bound {number(self.bound)}"]
        facts += [f"gap {ratio(self.gap, self.score)}", f"solver {self.solver!r}"]
        return f"UnwindingResult({self.instance!r}: {self.status}, {', '.join(facts)})"

    def summary(self, pairs: int = 12) -> str:
        """Return a summary as text: status, score, bound, and the pairs with the largest losses.

        Parameters
        ----------
        pairs
            Number of pairs listed.
        """
        head = printable(self.instance or "unnamed")
        if self.size:
            size = {name: f"{count:,}" for name, count in self.size.items()}
            tensors, every, free, edges = (
                size.get(name, "-") for name in ("tensors", "elements", "free_elements", "edges")
            )
            head += f": {tensors} tensors, {every} elements ({free} free), {edges} pair positions"
        lines = [head, Table((), self._verdict(), left=2).text()]
        if self.pairs:
            lines += ["", pairs_table(self.pairs, pairs).text()]
        return "\n".join(lines)

    def _verdict(self) -> list[tuple[str, str]]:
        why = "" if self.stopped is Stopped.FINISHED else f" ({self.stopped})"
        return [
            ("status", f"{self.status}{why}{with_given(self)}"),
            ("score", number(self.score)),
            ("bound", number(self.bound)),
            ("gap", ratio(self.gap, self.score)),
            ("if all matched", number(self.max_score)),
            ("seconds", seconds(self.seconds.get("total"))),
        ]

    def draw(self, tensors: Any = None) -> Any:
        """Draw the graph with these layouts; see :meth:`layoutopt.Graph.draw`.

        Raises
        ------
        InputError
            If the result has no graph, or the graph has changed since.
        """
        if self.graph is None:
            raise InputError("the result has no graph; use read_result(path, graph)")
        pairs = [(*map(self.graph.tensor_name, (a, b)), v) for a, b, v in self.graph.pairs]
        if pairs != [(p.a, p.b, p.value) for p in self.pairs]:
            raise InputError("the graph's valued pairs have changed since it was solved")
        return self.graph.draw(self, tensors)

    def shown_parts(self) -> Iterator[Part]:
        """Yield status and scores, a table of pairs, and a picture of the layouts."""
        yield Words(self.instance or "unnamed", "title")
        facts = [*self._verdict(), ("solver", self.solver)]
        yield Table([name for name, _ in facts], [[value for _, value in facts]])
        yield pairs_table(self.pairs)
        try:
            picture = picture_of(self)
        except InputError:
            yield Words("the graph has changed since it was solved", "soft")
            return
        if picture:
            yield Figures([("", picture)])


def with_given(result: UnwindingResult) -> str:
    """Return how many elements were given, as words behind the status; empty without any."""
    count = result.size.get("given", 0)
    return f" with {counted(count, 'element')} given" if count else ""


def picture_of(result: UnwindingResult) -> str:
    """Draw the graph with a result's layouts as SVG; empty for large or missing graphs."""
    if result.graph is None or result.layouts is None:
        return ""
    picture = result.draw()
    return "" if picture.reduced else str(picture)


def pairs_table(pairs: Sequence[PairScore], most: int = PAIRS_SHOWN) -> Table:
    """Return a table of pairs, of which so many are shown, largest losses first."""
    rows, most = [], max(most, 0)
    for p in sorted(pairs, key=lambda pair: pair.loss, reverse=True)[:most]:
        counts = [f"{p.matched:,}", f"{p.elements:,}"]
        rows.append([p.a, p.b, number(p.value), *counts, number(p.loss)])
    head = ["pair", "", "value", "matched", "of", "loses"]
    return Table(head, rows, 2, len(pairs) - most, "pair")
