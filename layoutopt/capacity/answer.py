"""What is answered to a labelling problem with capacity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

import numpy as np

from layoutopt import decimals
from layoutopt.problem import IntArray
from layoutopt.result import Status, Stopped


class Reason(StrEnum):
    """Why nothing fits."""

    BYTES = "bytes"
    """All tiles together hold too little."""
    PACKING = "packing"
    """No way to share the nodes out fits, as a complete search has shown."""


@dataclass(frozen=True, eq=False)
class Placement:
    """How many copies of which class take which labels.

    Parameters
    ----------
    classes
        Shape ``(m,)``: the class of each configuration, ascending.
    counts
        Shape ``(m,)``: how many copies take it, 1 or more.
    starts
        Shape ``(m + 1,)``: where each configuration begins in ``nodes`` and ``labels``.
    nodes, labels
        Shape ``(starts[m],)``: nodes of the class, ascending, and the tile of each.
    """

    classes: IntArray
    counts: IntArray
    starts: IntArray
    nodes: IntArray
    labels: IntArray

    def of(self, number: int) -> Iterator[tuple[IntArray, int]]:
        """Yield labels, in the order of the class's nodes, and count of each configuration."""
        first, last = np.searchsorted(self.classes, [number, number + 1])
        for i in range(int(first), int(last)):
            yield self.labels[self.starts[i] : self.starts[i + 1]], int(self.counts[i])


@dataclass(frozen=True, eq=False, kw_only=True)
class CapacityAnswer:
    """A placement, a bound, or a proof that nothing fits.

    Parameters
    ----------
    placement
        The configurations of every class; ``None`` if none was found.
    objective
        Their exact value over all copies.
    bound
        A proved upper bound on the value of every placement; ``None`` if nothing fits.
    dual
        The bound that the prices prove; ``bound`` may be lower, by rounding or search.
    prices
        Value per byte of each tile, 0 or more.  For capacities ``c'`` in place of ``c`` no
        placement is worth more than ``dual + sum_t prices[t] (c'[t] - c[t])``, both rounded down
        to the grain.
    grain
        The greatest common divisor of all bytes, of which a tile can only hold whole numbers.
    infeasible
        Why nothing fits; ``None`` where something does, or where it is not known.
    lacking
        Bytes too many for all tiles together, the capacities rounded down to the grain.
    used
        Bytes on each tile; ``None`` without a placement.
    capacity
        Bytes that each tile holds.
    class_bytes
        Bytes of all copies of each class.
    stopped
        Why the computation ended.
    seconds
        Wall-clock seconds by phase.
    """

    placement: Placement | None = None
    objective: int | None = None
    bound: int | None = None
    dual: Fraction | None = None
    prices: tuple[Fraction, ...] = ()
    grain: int = 1
    infeasible: Reason | None = None
    lacking: int = 0
    used: IntArray | None = None
    capacity: IntArray
    class_bytes: IntArray
    stopped: Stopped = Stopped.FINISHED
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """What is proved."""
        if self.infeasible is not None:
            return Status.INFEASIBLE
        if self.objective is None:
            return Status.UNKNOWN
        return Status.OPTIMAL if self.objective == self.bound else Status.FEASIBLE

    @property
    def gap(self) -> float | None:
        """``(bound - objective) / max(|objective|, 1e-9)``; ``None`` if either is unknown."""
        if self.objective is None or self.bound is None:
            return None
        return decimals.relative(self.bound - self.objective, self.objective)

    def bound_at(self, capacity: IntArray) -> Fraction | None:
        """Return what the prices prove for other capacities; ``None`` without prices."""
        if self.dual is None:
            return None
        more = capacity // self.grain - self.capacity // self.grain
        return self.dual + sum(
            (p * int(m) * self.grain for p, m in zip(self.prices, more, strict=True)), Fraction(0)
        )
