"""Conversions that are tried again without what cannot be converted.

Where a rewritten network is not sound, the ops that are the reason are looked for by bisection
among those that run in another mode than they are written in.  They then stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from layoutopt.conversion.result import Conversion
from layoutopt.rewriting.source import OnnxSource

if TYPE_CHECKING:
    from layoutopt.rewriting.source import Model

Key: TypeAlias = tuple[OnnxSource, str]
"""A graph, and the name of an op in it."""

MOST = 8
"""So many ops are looked for one by one; then all of their types stay as they are."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """A network that was rewritten, and is sound.

    Parameters
    ----------
    conversions
        What became of each graph.
    model
        The network.
    difference
        The largest relative difference of outputs, if it was run.
    """

    conversions: Mapping[OnnxSource, Conversion]
    model: Model
    difference: float | None


class Unsound(Exception):  # it says what a network is
    """Raised where a rewritten network is not sound.

    Parameters
    ----------
    reason
        What is wrong, in one line.
    conversions
        What became of each graph; none if it did not come so far.
    """

    def __init__(
        self, reason: str, conversions: Mapping[OnnxSource, Conversion] | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.conversions = conversions or {}

    def changed(self, key: Key) -> bool:
        """Return whether an op runs in another mode than it is written in."""
        source, name = key
        return source not in self.conversions or name in self.conversions[source].changed


Try: TypeAlias = Callable[[frozenset[Key]], Attempt]
"""Converts a network with some ops as they are written; raises :class:`Unsound`."""


@dataclass
class Found:
    """What came of it.

    Parameters
    ----------
    attempt
        The network; None if none is sound, though no op were converted.
    error
        What was wrong at first.
    written
        The ops that stay as they are written, and why.
    """

    attempt: Attempt | None
    error: Unsound | None = None
    written: dict[Key, str] = field(default_factory=dict)


def soundest(ops: Sequence[Key], attempt: Try, over: Callable[[], bool]) -> Found:
    """Return a network that is sound, with as few ops as they are written as are found.

    Parameters
    ----------
    ops
        All ops, in order.
    attempt
        Converts the network.
    over
        Whether no time is left to look for the ops.
    """
    try:
        return Found(attempt(frozenset()))
    except Unsound as error:
        first = last = error
    try:
        fallback = attempt(frozenset(ops))
    except Unsound:
        return Found(None, first)
    written: dict[Key, str] = {}
    while len(written) < MOST and not over():
        candidates = [key for key in ops if last.changed(key) and key not in written]
        culprit = _culprit(ops, candidates, attempt, over)
        if culprit is None:
            break
        written[culprit] = last.reason
        try:
            return Found(attempt(frozenset(written)), first, written)
        except Unsound as error:
            last = error
    types = {source.ops[name].type for source, name in written}
    alike = {key: first.reason for key in ops if key[0].ops[key[1]].type in types}
    for kept in (alike, dict.fromkeys(ops, first.reason)):
        if len(kept) == len(ops):
            return Found(fallback, first, kept)
        try:
            return Found(attempt(frozenset(kept)), first, kept)
        except Unsound:
            continue
    return Found(fallback, first, dict.fromkeys(ops, first.reason))


def _culprit(
    ops: Sequence[Key], candidates: Sequence[Key], attempt: Try, over: Callable[[], bool]
) -> Key | None:
    """Return the op with which the first candidates cannot be converted, without which they can."""
    if not candidates or not _fails(ops, candidates, attempt):
        return None
    low, high = 0, len(candidates)  # so many can be converted, so many cannot
    while high - low > 1:
        if over():
            return None
        middle = (low + high) // 2
        if _fails(ops, candidates[:middle], attempt):
            high = middle
        else:
            low = middle
    return candidates[low]


def _fails(ops: Sequence[Key], converted: Collection[Key], attempt: Try) -> bool:
    """Return whether a network is not sound if of all ops only some are converted."""
    try:
        attempt(frozenset(ops).difference(converted))
    except Unsound:
        return True
    return False
