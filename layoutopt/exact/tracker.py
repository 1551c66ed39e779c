"""What is known of a whole while its parts are solved one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from layoutopt.limits import Limits
from layoutopt.problem import IntArray, Labelling
from layoutopt.result import Result, Stopped


class Tracker:
    """Adds up objectives and bounds of parts.

    Parameters
    ----------
    limits
        Those of the parts together.
    parts, starts
        The parts, and a labelling of each.
    """

    def __init__(
        self, limits: Limits, parts: Sequence[Labelling], starts: Sequence[IntArray]
    ) -> None:
        self._limits = limits
        self.results: list[Result] = [
            Result(objective=p.value(s), bound=p.total(), labelling=s)
            for p, s in zip(parts, starts, strict=True)
        ]
        self.stopped = Stopped.FINISHED
        self._low = sum(int(r.objective or 0) for r in self.results)
        self._high = sum(int(r.bound or 0) for r in self.results)

    def limits_for(self, part: int) -> Limits:
        """Return limits whose messages speak of the whole while a part is solved."""
        known = self.results[part]
        low, high = self._low - int(known.objective or 0), self._high - int(known.bound or 0)
        return self._limits.restated(lambda x: low + x, lambda x: high + x)

    def settle(self, part: int, result: Result) -> None:
        """Take in the result of a part."""
        known = self.results[part]
        self._low += int(result.objective or 0) - int(known.objective or 0)
        self._high += int(result.bound or 0) - int(known.bound or 0)
        self.results[part] = result
        if result.stopped is not Stopped.FINISHED:
            self.stopped = result.stopped
