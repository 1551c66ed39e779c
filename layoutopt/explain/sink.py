"""Explanations of sinks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from decimal import Decimal

from layoutopt.base import numbers
from layoutopt.base.limits import Progress, callbacks_raise, interruptible, limited
from layoutopt.base.result import Piece, UnwindingResult, elements
from layoutopt.check.elements import evaluate
from layoutopt.explain.explanation import Share, SinkExplanation
from layoutopt.explain.pair import explained
from layoutopt.explain.subject import Subject
from layoutopt.graphs.locations import check_graph, layout_sink
from layoutopt.graphs.ops import Source
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.tiling import unused

ALTERNATIVES = 3  # default number of losing pairs to explain


def explain_sink(
    graph: GraphStore,
    result: UnwindingResult,
    sink: Tensor | str,
    *,
    alternatives: int = ALTERNATIVES,
    time_limit: float | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> SinkExplanation:
    """Explain a sink's locations, their score, and the alternatives of losing pairs.

    Parameters
    ----------
    graph
        The graph.
    result
        What is explained: layouts, and whether they are proved to be optimal.
    sink
        The sink.
    alternatives
        Number of losing pairs to explain among those that the sink influences, largest values
        first.
    time_limit, seed, workers, progress
        As for :func:`~layoutopt.unwinding.unwind`; the limit is for the whole call.

    Returns
    -------
    SinkExplanation
        With flags for numbers that are not proved.

    Raises
    ------
    InputError
        If there is no such sink, or the result has no layouts or belongs to another graph.
    SizeError
        If the graph is too irregular to be solved by classes, and too large for memory.
    """
    check_graph(graph)
    limits = limited(time_limit, seed=seed, workers=workers, progress=progress)
    tensor = layout_sink(graph, sink)
    alternatives = numbers.least("alternatives", alternatives, 0)
    with callbacks_raise(limits), interruptible(limits):
        subject = Subject(graph, result, limits)
        near = _influenced(subject, tensor.index)
        scores = {p: subject.pair_score(p) for p in near}
        losing = [p for p in near if scores[p].loss > 0]
        losing.sort(key=lambda p: (scores[p].value, scores[p].loss), reverse=True)
        return SinkExplanation(
            sink=tensor.name,
            elements=tensor.size,
            score=subject.score,
            status=result.status,
            shares=_shares(subject, tensor, near),
            pairs=tuple(sorted(scores.values(), key=lambda pair: pair.loss.copy_negate())),
            alternatives=tuple(explained(subject, p) for p in losing[:alternatives]),
            left=max(0, len(losing) - alternatives),
        )


def _influenced(subject: Subject, sink: int) -> list[int]:
    """Return the pairs that a sink influences through views."""
    graph, reached = subject.graph, {sink}
    for i in range(len(graph.ops)):
        if any(t in reached for t in graph.carriers(i)):
            reached.update(graph.op_outputs[i])
    return [p for p, ends in enumerate(subject.ends) if any(t in reached for t in ends)]


def _shares(subject: Subject, sink: Tensor, near: Iterable[int]) -> tuple[Share, ...]:
    """Return the origins of a sink's locations, most elements first."""
    layout = subject.layouts[sink.name]
    by_origin: dict[str, list[Piece]] = {}
    for piece in layout:
        by_origin.setdefault(piece[0], []).append(piece)
    elsewhere = _Elsewhere(subject, sink, near)
    shares = [
        Share(origin, sum(map(elements, pieces)), len(pieces), elsewhere.loss(origin))
        for origin, pieces in by_origin.items()
    ]
    return tuple(sorted(shares, key=lambda share: -share.elements))


class _Elsewhere:
    """A graph with additional unshared locations for some elements of a sink."""

    def __init__(self, subject: Subject, sink: Tensor, near: Iterable[int]) -> None:
        self.subject, self.sink = subject, sink.name
        self.graph = deepcopy(subject.graph)
        self.graph.pairs = [(*subject.ends[p], subject.amount(subject.values[p])) for p in near]
        self.name = unused(self.graph, self.graph, "elsewhere")
        self.graph.add(Source(id=self.name, inputs=(), shape=sink.shape))
        self.now = evaluate(self.graph, subject.layouts).score

    def loss(self, origin: str) -> Decimal | None:
        """Return the loss of score if the elements at one origin's locations move there."""
        limits = self.subject.limits
        if self.graph.tile_memory is not None or limits.over or self.now is None:
            return None
        moved = tuple(
            (self.name, to, to, tuple((n, there, there) for n, _, there in loops))
            if where == origin
            else (where, start, to, loops)
            for where, start, to, loops in self.subject.layouts[self.sink]
        )
        then = evaluate(self.graph, self.subject.layouts | {self.sink: moved}).score
        return None if then is None else numbers.difference(self.now, then)
