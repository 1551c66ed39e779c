"""What the cells of drawn tensors show: the colour of each location, and its name."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from layoutopt.graphs.locations import Locations
from layoutopt.graphs.op import Array, Kind, Shape, size
from layoutopt.graphs.roots import Source
from layoutopt.graphs.shares import ALONE, NAMED
from layoutopt.integers import unique
from layoutopt.pictures.colours import palette
from layoutopt.pictures.grids import BLANK, OTHERS, OWN, Cells, Stripe
from layoutopt.pictures.text import abbreviations

WORDS_FIT = 100
"""Cells have words where there are no more coloured locations than that."""


@dataclass(frozen=True)
class Look:
    """How a location is shown: colour, short name and what is said of it."""

    fill: str
    word: str
    tip: str


class Names:
    """Which tensor a location number belongs to, and what it is called."""

    def __init__(self, numbers: Locations) -> None:
        self.graph = numbers.graph
        self._roots, self._starts = list(numbers.first), list(numbers.first.values())
        self._values = {number: value for value, number in numbers.pool.items()}
        self._mapped: dict[int | str, int] = {}
        for i, op in enumerate(self.graph.ops):
            if isinstance(op, Source):
                for value in op.mapping or ():
                    self._mapped.setdefault(value, self.graph.op_outputs[i][0])

    def root(self, number: int) -> int:
        """Return the root tensor that first has a location; -1 if no mapping names it."""
        if number in self._values:
            return self._mapped.get(self._values[number], -1)
        return self._roots[bisect_right(self._starts, number) - 1]

    def family(self, number: int) -> tuple[bool, int]:
        """Return what has a hue: a root tensor, or a value of mappings."""
        named = number in self._values
        return named, number if named else self.root(number)

    def kind(self, number: int) -> Kind:
        """Return the kind of that tensor."""
        if number in self._values:
            return Kind.SOURCE
        return self.graph.ops[self.graph.producers[self.root(number)]].kind

    def full(self, number: int) -> str:
        """Return the name of a location."""
        if number in self._values:
            what = "location" if self.graph.tile_memory is None else "tile"
            return f"{what} {self._values[number]!r}"
        t = self.root(number)
        return self.graph.tensor_name(t) + indexed(self._element(number), self.graph.shapes[t])

    def short(self, locations: Iterable[int]) -> dict[int, str]:
        """Return a name of a few letters for each location; none where two would have the same."""
        every = list(locations)
        own = [n for n in every if n not in self._values]
        tensors = {n: self.graph.tensor_name(self.root(n)) for n in own}
        values = {n: str(self._values[n]) for n in every if n in self._values}
        heads = abbreviations(tensors.values())
        short = abbreviations(value for value in values.values() if len(value) > 3)
        words = {n: self._word(heads[name], n) for n, name in tensors.items()}
        words |= {n: short.get(value, value) for n, value in values.items()}
        times = Counter(words.values())
        return {n: word for n, word in words.items() if times[word] == 1}

    def _word(self, head: str, number: int) -> str:
        if size(self.graph.shapes[self.root(number)]) == 1:
            return head
        return f"{head}{'.' if head[-1].isdigit() else ''}{self._element(number)}"

    def _element(self, number: int) -> int:
        return number - self._starts[bisect_right(self._starts, number) - 1]


Family: TypeAlias = tuple[bool, bool, int]
"""What has a hue: whether it is a sink's, whether a mapping's value, and its number."""


class Looks:
    """How locations are shown.

    Parameters
    ----------
    unknown
        Root tensors whose locations are not known.
    shared
        Locations of sinks that something else shares.
    owners
        Root tensors that have a colour in any case.

    Attributes
    ----------
    of
        How each location is shown.
    hues
        A colour of each family.
    """

    def __init__(
        self,
        names: Names,
        locations: Iterable[int],
        unknown: Container[int],
        shared: Container[int],
        owners: Iterable[int] = (),
    ) -> None:
        self.of: dict[int, Look] = {}
        self.names = names
        families: dict[Family, list[int]] = {self.family(owner): [] for owner in owners}
        for n in sorted(locations):
            root, sink = names.root(n), names.kind(n) is Kind.SINK
            if root in unknown and sink:
                self.of[n] = Look(BLANK, "", "to be chosen")
            elif sink and n not in shared:
                self.of[n] = Look(OWN, "", "at a location of its own")
            else:  # those of sinks last, so that other colours are the same in all solutions
                families.setdefault((sink, *names.family(n)), []).append(n)
        order = sorted(families)
        coloured = [n for family in order for n in families[family]]
        words = names.short(coloured) if len(coloured) <= WORDS_FIT else {}
        colours = palette([max(1, len(families[family])) for family in order])
        self.hues = {f: fills[len(fills) // 2] for f, fills in zip(order, colours, strict=True)}
        for family, fills in zip(order, colours, strict=True):
            for n, fill in zip(families[family], fills, strict=False):
                self.of[n] = Look(fill, words.get(n, ""), f"at {names.full(n)}")
                if names.root(n) in unknown:
                    self.of[n] = Look(BLANK, "", "depends on what is chosen")

    def family(self, owner: int) -> Family:
        """Return the family of all locations of a root tensor."""
        graph = self.names.graph
        return graph.ops[graph.producers[owner]].kind is Kind.SINK, False, owner

    def stripe(self, owner: int, count: int) -> Stripe:
        """Return what stands for the elements of a tensor that take an owner's locations."""
        if owner == ALONE:
            return Stripe(OWN, count, f"{count:,} at locations of their own")
        if owner == NAMED:
            return Stripe(OTHERS, count, f"{count:,} at locations that mappings name")
        name = self.names.graph.tensor_name(owner)
        return Stripe(self.hues[self.family(owner)], count, f"{count:,} at locations of {name}")


def cells(
    numbers: Locations,
    where: Mapping[int, Array],
    unknown: Container[int],
    shared: Container[int],
    shares: Mapping[int, Counter[int]],
) -> dict[int, Cells | tuple[Stripe, ...]]:
    """Return what tensors show: cells, or stripes for many elements at once.

    Parameters
    ----------
    where
        The location number of each element, by tensor number.
    unknown, shared
        As for :class:`Looks`.
    shares
        What :func:`layoutopt.graphs.shares.shares` tells of other tensors.
    """
    graph = numbers.graph
    found: dict[int, Cells | tuple[Stripe, ...]] = {}
    every = {n for array in where.values() for n in unique(array).tolist()}
    owners = {owner for counts in shares.values() for owner in counts if owner >= 0}
    looks = Looks(Names(numbers), every, unknown, shared, owners)
    for t, counts in shares.items():
        found[t] = tuple(looks.stripe(*item) for item in counts.most_common())
    for t, array in where.items():
        shown = [looks.of[n] for n in array.reshape(-1).tolist()]
        name, shape = graph.tensor_name(t), graph.shapes[t]
        found[t] = Cells(
            tuple(one.fill for one in shown),
            tuple(one.word for one in shown),
            tuple(f"{name}{indexed(i, shape)}: {one.tip}" for i, one in enumerate(shown)),
        )
    return found


def indexed(element: int, shape: Shape) -> str:
    """Return the index of a flat element, in brackets; nothing for rank 0."""
    index = []
    for n in reversed(shape):
        element, i = divmod(element, n)
        index.append(i)
    return str(index[::-1]) if shape else ""
