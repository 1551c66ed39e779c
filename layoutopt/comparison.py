"""One instance, several solvers: how far each is from the best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from layoutopt.assignment import Assignment
from layoutopt.graphs.store import Store
from layoutopt.limits import Progress
from layoutopt.pictures import html
from layoutopt.pictures.text import number, ratio
from layoutopt.result import Stopped, UnwindingResult, picture_html
from layoutopt.unwinding import unwind


@dataclass(frozen=True, eq=False)
class Comparison:
    """Results of several solvers on one instance.

    Parameters
    ----------
    results
        In the order in which the solvers were given; fewer if the run was interrupted.
    """

    results: tuple[UnwindingResult, ...]

    @property
    def best(self) -> Decimal | None:
        """The best score; ``None`` if no solver found a solution."""
        return max((r.score for r in self.results if r.score is not None), default=None)

    @property
    def bound(self) -> Decimal | None:
        """The lowest bound that a solver proved; it holds for all of them."""
        bounds = [Decimal(r.bound) for r in self.results if r.bound is not None]
        return min(bounds, default=None)

    def losses(self) -> Iterator[float | None]:
        """Return for each result what it loses against the best.

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
                yield float(best - result.score) / max(abs(float(best)), 1e-9)

    def _repr_html_(self) -> str:
        rows = []
        for r, loss in zip(self.results, self.losses(), strict=True):
            numbers = [number(r.score), number(r.bound), ratio(r.gap)]
            seconds = f"{r.seconds.get('total', 0.0):.3f}"
            rows.append([r.solver, str(r.status), *numbers, seconds, ratio(loss)])
        head = ["solver", "status", "score", "bound", "gap", "seconds", "loss"]
        drawn = [(f"{r.solver}: {number(r.score)}", picture_html(r)) for r in self.results]
        name = self.results[0].instance if self.results else ""
        parts = [html.heading(name or "unnamed"), html.table(head, rows, left=2)]
        return html.block([*parts, html.beside(part for part in drawn if part[1])])


def compare(
    graph: Store,
    solvers: Sequence[str] = ("auto", "greedy0"),
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
    graph
        The graph.
    solvers
        Names from :data:`layoutopt.unwinding.SOLVERS`.
    fixed
        Layouts of some sinks, or of parts of them, that every solver keeps.
    time_limit
        Seconds for each solver.
    gap, seed, workers, progress
        As for :func:`layoutopt.unwinding.unwind`.

    Raises
    ------
    InputError
        As :func:`layoutopt.unwinding.unwind` does.
    """
    results = []
    for solver in solvers:
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
    return Comparison(tuple(results))
