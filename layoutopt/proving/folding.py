"""Modes that can be left out, because others stand in for all of them at once.

What :mod:`layoutopt.certificate.conversion` checks is found here: for each mode another one, so
that layouts that were equal still are.  Modes that are of use stand in for themselves.  The others
fall into families: to replace one replaces all that ask for its layouts.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence

from layoutopt.certificate.conversion import Need, Op, Statement

PATIENCE = 100
"""How often each mode of a family is tried, on average, before it is left as it is."""

Place = tuple[int, int]
"""The number of an op, and that of a mode."""


def folding(statement: Statement, useful: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return for each op and mode the mode that stands in for it; itself if none can.

    Parameters
    ----------
    statement
        The ops.
    useful
        For each op the modes that stand for themselves, at least one.
    """
    return _Folding(statement.ops, useful).folded()


class _Folding:
    """What stands in for what."""

    def __init__(self, ops: Sequence[Op], useful: Sequence[Sequence[int]]) -> None:
        self.ops, self.useful = ops, useful
        self.turned: dict[Need, Need] = {}
        self.left: dict[Place, None] = {}
        self.at: dict[Need, list[Place]] = {}
        for i, (op, kept) in enumerate(zip(ops, useful, strict=True)):
            self.turned |= {need: need for m in kept for need in op.modes[m]}
            self.left |= {(i, m): None for m in range(len(op.modes)) if m not in set(kept)}
        for i, m in self.left:
            for need in ops[i].modes[m]:
                if need not in self.turned:
                    self.at.setdefault(need, []).append((i, m))

    def folded(self) -> list[list[int]]:
        found = [list(range(len(op.modes))) for op in self.ops]
        while self.left:
            family = self._family()
            for (i, m), k in zip(family, self._replaced(family), strict=False):
                found[i][m] = k
        return found

    def _family(self) -> list[Place]:
        """Take one of the modes that are left, and all that are joined to it."""
        family = [next(iter(self.left))]
        del self.left[family[0]]
        for i, m in family:
            for need in self.ops[i].modes[m]:
                for place in self.at.pop(need, ()):
                    if place in self.left:
                        del self.left[place]
                        family.append(place)
        return family

    def _replaced(self, family: list[Place]) -> list[int]:
        """Return a mode for each of a family, found by trying; nothing if that takes too long."""
        turned = ChainMap[Need, Need]({}, self.turned)
        tried = [self._options(family[0], turned)]
        found: list[tuple[int, list[Need]]] = []
        for _ in range(PATIENCE * len(family)):
            if len(found) == len(tried):
                for need in found.pop()[1]:
                    del turned[need]
            option = next(tried[-1], None)
            if option is None:
                tried.pop()
                if not tried:
                    break
                continue
            i, m = family[len(found)]
            new = dict(zip(self.ops[i].modes[m], self.ops[i].modes[option], strict=True))
            found.append((option, [need for need in new if need not in turned]))
            turned.update(new)
            if len(found) == len(family):
                return [k for k, _ in found]
            tried.append(self._options(family[len(found)], turned))
        return []

    def _options(self, place: Place, turned: Mapping[Need, Need]) -> Iterator[int]:
        """Yield the modes that agree with what is decided on layouts."""
        i, m = place
        own = self.ops[i].modes[m]
        for k in self.useful[i]:
            new = self.ops[i].modes[k]
            pairs = dict(zip(own, new, strict=True))  # an op may take a tensor twice
            if all(turned.get(a, b) == b == pairs[a] for a, b in zip(own, new, strict=True)):
                yield k
