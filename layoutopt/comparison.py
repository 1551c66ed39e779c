"""Comparison of several solvers on one instance: gap to the best result, and loss by pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal

from layoutopt.base import numbers
from layoutopt.base.errors import InputError, printable
from layoutopt.base.limits import Progress, Stopped
from layoutopt.base.numbers import number, ratio, seconds
from layoutopt.base.result import PairScore, Result, UnwindingResult, picture_of, with_given
from layoutopt.base.table import Figures, Part, Shown, Table, Words
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.assignment import Assignment
from layoutopt.unwinding import unwind

COLUMNS = ("solver", "status", "score", "bound", "gap", "to best bound", "seconds", "loss")
"""Columns of the table of results."""

PAIR_COLUMNS = ("solver", "pair", "", "value", "of", "matched", "best", "loses")
"""Columns of the table of losses by pair; "of": positions, "best": matches of the best result."""

CSV_COLUMNS = (
    *("instance", "solver", "status", "stopped", "score", "bound", "best_bound", "max_score"),
    *("gap", "gap_to_best_bound", "loss", "seconds", "seed", "version", "given"),
)
CSV_PAIR_COLUMNS = ("instance", "solver", "a", "b", "value", "elements", "matched", "best", "lost")

SHOWN = 30  # rows of the table of losses in a notebook


@dataclass(frozen=True)
class PairLoss:
    """Loss of a solver on one ValuedPair against the best result: matched positions of both."""

    solver: str
    a: str
    b: str
    value: Decimal
    elements: int
    matched: int
    best: int

    @property
    def lost(self) -> Decimal:
        """``value * (best - matched)``; negative where the solver scores more."""
        return numbers.times(self.value, self.best - self.matched)


@dataclass(frozen=True, eq=False)
class Comparison(Shown):
    """Results of several solvers on one instance.

    Parameters
    ----------
    results
        In the order of the solvers; fewer if the run was interrupted.
    name
        Name of the instance.
    """

    results: tuple[UnwindingResult, ...]
    name: str = ""

    @property
    def best(self) -> Decimal | None:
        """The best score; ``None`` if no solver found a solution."""
        return max((r.score for r in self.results if r.score is not None), default=None)

    @property
    def winner(self) -> UnwindingResult | None:
        """The first result with the best score; ``None`` if no solver found a solution."""
        return next((r for r in self.results if r.score is not None and r.score == self.best), None)

    @property
    def bound(self) -> Decimal | None:
        """The lowest bound that a solver proved; it holds for all of them."""
        bounds = [Decimal(r.bound) for r in self.results if r.bound is not None]
        return min(bounds, default=None)

    def losses(self) -> Iterator[float | None]:
        """Yield the relative loss of each result against the best score.

        Yields
        ------
        float or None
            ``(best - score) / max(|best|, 1e-9)``; ``None`` without a score.
        """
        best = self.best
        for result in self.results:
            if best is None or result.score is None:
                yield None
            else:
                yield numbers.relative(numbers.difference(best, result.score), best)

    def gaps(self) -> Iterator[float | None]:
        """Yield the relative gap of each result to the lowest proved bound.

        Yields
        ------
        float or None
            ``(bound - score) / max(|score|, 1e-9)``; ``None`` without a score or a bound.
        """
        bound = self.bound
        return (Result(objective=r.score, bound=bound).gap for r in self.results)

    def where_lost(self) -> tuple[PairLoss, ...]:
        """Return the loss of each solver against the best result, by ValuedPair.

        Returns
        -------
        tuple
            For each solver the pairs on which it differs, largest losses first.  Their ``lost``
            adds up to ``best - score``.

        Raises
        ------
        InputError
            If the results are for different pairs.
        """
        return tuple(loss for result in self.results for loss in self.lost(result))

    def lost(self, result: UnwindingResult) -> list[PairLoss]:
        """Return the losses of one result, as :meth:`where_lost` does."""
        winner = self.winner
        if winner is None or result.score is None:
            return []
        if [_title(p) for p in result.pairs] != [_title(p) for p in winner.pairs]:
            raise InputError(f"{result.solver} and {winner.solver} solved different ValuedPairs")
        lost = [
            PairLoss(result.solver, *_title(p), p.matched, top.matched)
            for p, top in zip(result.pairs, winner.pairs, strict=True)
            if p.matched != top.matched and p.value
        ]
        return sorted(lost, key=lambda loss: loss.lost, reverse=True)

    def rows(self) -> list[list[str]]:
        """Return the cells of the table of results, a row for each."""
        return [
            [
                r.solver,
                f"{r.status}{with_given(r)}",
                number(r.score),
                number(r.bound),
                ratio(r.gap, r.score),
                ratio(gap, r.score),
                seconds(r.seconds.get("total"), 3),
                ratio(loss, self.best),
            ]
            for r, gap, loss in zip(self.results, self.gaps(), self.losses(), strict=True)
        ]

    def pair_rows(self) -> list[list[str]]:
        """Return the cells of the table of losses, a row for each of :meth:`where_lost`."""
        return [
            [
                *(p.solver, p.a, p.b, number(p.value)),
                *(f"{n:,}" for n in (p.elements, p.matched, p.best)),
                number(p.lost),
            ]
            for p in self.where_lost()
        ]

    def csv_rows(self, pairs: bool = False) -> Iterator[list[object]]:
        """Yield the rows that :meth:`to_csv` writes beneath :data:`CSV_COLUMNS`."""
        if pairs:
            for p in self.where_lost():
                counts = p.elements, p.matched, p.best
                yield [self.name, p.solver, p.a, p.b, _plain(p.value), *counts, _plain(p.lost)]
            return
        for r, gap, loss in zip(self.results, self.gaps(), self.losses(), strict=True):
            exact = [_plain(x) for x in (r.score, r.bound, self.bound, r.max_score)]
            spent = r.seconds.get("total")
            times = ["" if spent is None else f"{spent:.6f}", r.seed, r.version]
            times.append(r.size.get("given", 0))
            yield [self.name, r.solver, r.status, r.stopped, *exact, r.gap, gap, loss, *times]

    def to_csv(self, pairs: bool = False) -> str:
        """Return a table as CSV: exact numbers, unknown ones empty.

        Parameters
        ----------
        pairs
            Whether to write a line for each loss by pair instead of one for each solver.
        """
        return csv_text([self], pairs)

    def to_markdown(self, pairs: bool = False) -> str:
        """Return a table as Markdown.

        Parameters
        ----------
        pairs
            Whether to add a table of the losses by pair.
        """
        return markdown_text([self], pairs)

    def shown_parts(self) -> Iterator[Part]:
        """Yield tables of results and losses, and the results' pictures."""
        yield Words(self.name or "unnamed", "title")
        yield Table(COLUMNS, self.rows(), 2)
        lost = self.pair_rows()
        if lost:
            yield Words("where solvers lose against the best result", "soft")
            yield Table(PAIR_COLUMNS, lost[:SHOWN], 3, len(lost) - SHOWN, "pair")
        with suppress(InputError):  # graphs that have changed since
            drawn = [(f"{r.solver}: {number(r.score)}", picture_of(r)) for r in self.results]
            yield Figures([figure for figure in drawn if figure[1]])

    def __str__(self) -> str:
        head = printable(self.name or "unnamed")
        return f"{head}\n{Table(COLUMNS, self.rows(), 2).text()}"


def _title(pair: PairScore) -> tuple[str, str, Decimal, int]:
    return pair.a, pair.b, pair.value, pair.elements


def _plain(value: Decimal | int | None) -> str:
    """Return a number with all digits, or an empty string if it is unknown."""
    return "" if value is None else f"{Decimal(value):f}"


def csv_text(comparisons: Iterable[Comparison], pairs: bool = False) -> str:
    """Return one table of several comparisons as :meth:`Comparison.to_csv` does."""
    rows = [row for found in comparisons for row in found.csv_rows(pairs)]
    return Table(CSV_PAIR_COLUMNS if pairs else CSV_COLUMNS, rows).csv()


def tables(comparisons: Sequence[Comparison], pairs: bool = False) -> list[Table]:
    """Return the results of several comparisons as a table, and the losses by pair as another."""
    named = [(found.name or "unnamed", found) for found in comparisons]
    rows = [[name, *row] for name, found in named for row in found.rows()]
    results = Table(["instance", *COLUMNS], rows, 3)
    if not pairs:
        return [results]
    lost = [[name, *row] for name, found in named for row in found.pair_rows()]
    return [results, Table(["instance", *PAIR_COLUMNS], lost, 4, noun="pair")]


def markdown_text(comparisons: Sequence[Comparison], pairs: bool = False) -> str:
    """Return several comparisons as :meth:`Comparison.to_markdown` does."""
    return "\n".join(table.markdown() for table in tables(comparisons, pairs))


def compare(
    graph: GraphStore,
    solvers: Sequence[str] | str = ("auto", "greedy0"),
    *,
    fixed: Assignment | None = None,
    time_limit: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> Comparison:
    """Solve one graph by several solvers.

    Parameters
    ----------
    solvers
        One or more names; see :data:`layoutopt.unwinding.SOLVERS`.
    fixed
        Layouts of some sinks, or of parts of them, that every solver keeps.
    time_limit
        Seconds for each solver.
    gap, seed, workers, progress
        As for :func:`layoutopt.unwinding.unwind`.

    Raises
    ------
    InputError
        If no solver is named, and as :func:`layoutopt.unwinding.unwind` does.
    """
    names = [solvers] if isinstance(solvers, str) else solvers
    if not isinstance(names, Iterable):
        raise InputError(f"solvers must be a list of names, not {type(solvers).__name__}")
    results = []
    for solver in names:
        result = unwind(
            graph,
            solver,
            fixed=fixed,
            time_limit=time_limit,
            gap=gap,
            seed=seed,
            workers=workers,
            progress=progress,
        )
        results.append(result)
        if result.stopped is Stopped.INTERRUPTED:
            break
    if not results:
        raise InputError("solvers: at least one name is needed")
    return Comparison(tuple(results), graph.name)
