"""How score and bound grew during a computation."""

from __future__ import annotations

from typing import TypeAlias

from layoutopt.limits import Progress
from layoutopt.result import Result

Point: TypeAlias = tuple[float, float | None, float | None]
"""Seconds since the call began, the best score, and the best bound so far."""

POINTS = 200
"""Most points that are kept."""


class Trace:
    """Listens to a computation: the ``progress`` of :func:`layoutopt.unwinding.unwind`.

    Attributes
    ----------
    heard
        Each message that told a better score or bound, in order, with the best of both so far;
        of very many, some evenly spread ones.
    """

    def __init__(self) -> None:
        self.heard: list[Point] = []
        self.every, self.left = 1, 0
        self.score: float | None = None
        self.bound: float | None = None

    def __call__(self, message: Progress) -> None:
        """Keep a message that tells a better score or bound."""
        before = self.score, self.bound
        score, bound = message.objective, message.bound
        if score is not None and (self.score is None or score > self.score):
            self.score = score
        if bound is not None and (self.bound is None or bound < self.bound):
            self.bound = bound
        if (self.score, self.bound) == before:
            return
        self.left -= 1
        if self.left <= 0:
            self.left = self.every
            self.heard.append((message.seconds, self.score, self.bound))
        if len(self.heard) == 2 * POINTS:
            self.heard = self.heard[::2]
            self.every *= 2

    def points(self, seconds: float, result: Result) -> tuple[Point, ...]:
        """Return what was heard, thinned to :data:`POINTS`; the last point is the result's.

        Parameters
        ----------
        seconds
            What the whole call took.
        """
        known = result.objective, result.bound
        score, bound = (None if x is None else float(x) for x in known)
        step = -(-len(self.heard) // (POINTS - 1)) or 1
        return (*self.heard[::step], (seconds, score, bound))
