"""The fewest things that together reach every one of several targets, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from layoutopt.limits import Limits

STEPS = 10**6
"""How many partial choices are looked at."""


class Demand(NamedTuple):
    """The chosen things' amounts must add up to a target; amounts may be negative."""

    amounts: Sequence[int]
    target: int


def fewest(demands: Sequence[Demand], things: int, limits: Limits) -> tuple[int, ...] | None:
    """Return the fewest things that meet all demands; ``None`` if no choice does.

    The size is raised one by one.  Whatever meets a demand that the things chosen so far do not
    meet holds one more with a positive amount there: these are tried, the largest first, and each
    is ruled out for those after it.  Branches end where the largest amounts left cannot suffice.

    Parameters
    ----------
    things
        How many there are.

    Raises
    ------
    TimeoutError
        If time runs out, or too many partial choices would have to be looked at.
    """
    search = _Search(demands, limits)
    helpful = {i for i in range(things) if any(d.amounts[i] > 0 for d in demands)}
    for number in range(len(helpful) + 1):
        found = search.found(set(helpful), number)
        if found is not None:
            return tuple(sorted(found))
    return None


class _Search:
    """A search for choices of one size after another."""

    def __init__(self, demands: Sequence[Demand], limits: Limits) -> None:
        self.limits, self.left = limits, STEPS
        self.demands = [
            (d, sorted((i for i, x in enumerate(d.amounts) if x > 0), key=lambda i: -d.amounts[i]))
            for d in demands
        ]

    def found(self, allowed: set[int], number: int) -> list[int] | None:
        """Return at most so many allowed things that meet all demands, if there are any."""
        chosen: list[int] = []
        tried = self._to_try(chosen, allowed, number)
        stack = [] if tried is None else [(allowed, iter(tried))]
        while tried != [] and stack:
            allowed, rest = stack[-1]
            i = next(rest, None)
            if i is None:
                stack.pop()
                chosen = chosen[:-1]
                continue
            allowed.remove(i)
            tried = self._to_try([*chosen, i], allowed, number - len(chosen) - 1)
            if tried is not None:
                chosen.append(i)
                stack.append((set(allowed), iter(tried)))
        return chosen if tried == [] else None

    def _to_try(self, chosen: list[int], allowed: set[int], more: int) -> list[int] | None:
        """Return allowed things of which one must be added to the chosen ones.

        None are left if all demands are met; ``None`` if so many more cannot meet them.
        """
        self.left -= 1
        if not self.left or self.limits.over:
            raise TimeoutError
        tried: list[int] = []
        for demand, order in self.demands:
            lack = demand.target - sum(demand.amounts[i] for i in chosen)
            helping = (demand.amounts[i] for i in order if i in allowed)
            if lack > sum(islice(helping, more)):
                return None
            if lack > 0 and not tried:
                tried = [i for i in order if i in allowed]
        return tried
