"""Barrier order: existence for given layouts, and bounds over all orders.

A barrier is known once all its inputs are.  If an element at a location of barrier ``b`` is read by
barrier ``c``, then ``b`` precedes ``c``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import Any, TypeAlias

from layoutopt.certificate.classes import Class
from layoutopt.certificate.refused import Refused, listed
from layoutopt.certificate.sums import CertifiedBox, disjoint
from layoutopt.certificate.tensors import Tensors
from layoutopt.certificate.views import BARRIERS, FIXED

DEEPEST, MOST_LEAVES, MOST_COMPARED = 200, 10**6, 10**6
"""Limits: depth of the tree of orders, bounds of classes in all its leaves, and compared boxes of a
class's terminals."""

Tag: TypeAlias = tuple[int, ...]
Arcs: TypeAlias = dict[str, set[str]]
"""For each barrier those that precede it."""


class BarrierOrder:
    """Dependencies between classes and barriers.

    ``nodes`` are the boxes ``(copy, location, element)`` of each class's nodes, ``terminals`` those
    of its terminals, and ``tensors`` those of all tensors.
    """

    def __init__(
        self,
        tensors: Tensors,
        classes: Sequence[Class],
        nodes: Mapping[Tag, Sequence[CertifiedBox]],
        terminals: Sequence[Sequence[Sequence[CertifiedBox]]],
    ) -> None:
        self.tensors, self.classes, self.nodes, self.terminals = tensors, classes, nodes, terminals
        self.apart: set[int] = set()
        read = listed(tensors.certificate.get("read", []), None, "read")
        self.read = {tensors.tensor(str(name)) for name in read}
        if stray := self.read - tensors.shapes.keys():
            raise Refused("read contains unknown tensors", sorted(stray))
        self.barriers = {
            str(op["id"]): [tensors.tensor(t) for t in op["inputs"]]
            for op in tensors.ops.values()
            if op["type"] in BARRIERS
        }
        self.offered: dict[tuple[int, int], set[str]] = {}
        for k, own in enumerate(terminals):
            for m, boxes in enumerate(own):
                of = {self._barrier(box, 1) for box in boxes}
                if any(of):
                    self.offered[k, m] = of

    def _barrier(self, box: CertifiedBox, q: int = 0) -> str:
        """Return the barrier that owns a box's locations, or an empty string."""
        place, other = (self.tensors.place(end) for end in box.ends(q))
        if place != other:
            raise Refused("a box that is read has locations of several tensors")
        found = self.tensors.kind(place) in BARRIERS
        return str(self.tensors.ops[self.tensors.names[place]]["id"]) if found else ""

    def check_legal(self, labels: Sequence[Sequence[int]]) -> None:
        """Refuse labels of all classes' nodes that violate barrier order."""
        arcs: dict[Any, Any] = {
            (k, j): self.offered[k, label]
            for k, own in enumerate(labels)
            for j, label in enumerate(own)
            if (k, label) in self.offered
        }
        tensors = self.tensors
        for name, op in tensors.ops.items():
            if op["type"] in BARRIERS:
                arcs[name] = self.barriers[name] if name == op["id"] else [op["id"]]
            elif name in self.read:
                boxes = tensors.traced(name)
                arcs[name] = {self._barrier(b) if b.tag == FIXED else b.tag for b in boxes}
            else:
                tags = {box.tag for box in tensors.boxes[name]} if op["type"] == "sink" else ()
                arcs[name] = [*tags, *tensors.sources(name)]
        try:
            TopologicalSorter(arcs).prepare()
        except CycleError as error:
            circle = [x for x in dict.fromkeys(error.args[1]) if x in self.barriers]
            raise Refused(
                "the layouts make barriers depend on each other in a cycle", circle
            ) from None

    @cached_property
    def sure(self) -> tuple[Arcs, dict[Tag, set[str]]]:
        """Necessary precedences of barriers, and for each node those that read all its copies."""
        before: Arcs = defaultdict(set)
        readers: dict[Tag, set[str]] = defaultdict(set)
        sums = self.tensors.sums
        for barrier, inputs in self.barriers.items():
            parts = [self.tensors.traced(t) for t in set(inputs) & self.read]
            for part in (*parts, list(chain(*parts))):  # copies may be read separately
                own: dict[Tag, list[CertifiedBox]] = defaultdict(list)
                for box in part:
                    own[box.tag].append(box.of(0, tag=()))
                before[barrier].update(self._barrier(box) for box in own.pop(FIXED, ()))
                for tag in own.keys() & self.nodes.keys():
                    copies = [b.of(0) for b in self.nodes[tag]]
                    count, of = (sum(b.members for b in boxes) for boxes in (own[tag], copies))
                    if sums.total(own[tag]) == sums.total(copies, count // of):
                        readers[tag].add(barrier)
        return before, readers

    def check_apart(self, k: int) -> None:
        """Refuse terminals of a class that may be the same location in a copy."""
        if k in self.apart:
            return
        c, terminals = self.classes[k], self.terminals[k]
        every = sorted((*box.ends(1), m, box) for m, own in enumerate(terminals) for box in own)
        near: list[tuple[int, int, int, CertifiedBox]] = []
        compared = 0
        for low, high, m, box in every:
            near = [entry for entry in near if entry[1] >= low]
            compared += len(near)
            if compared > MOST_COMPARED:
                raise Refused(f"{c.name}: its terminals are in too many boxes")
            for _, _, other, twin in near:
                if other != m and not disjoint(box, twin):
                    raise Refused(f"{c.name}: terminals {other} and {m} may be the same in a copy")
            near.append((low, high, m, box))
        self.apart.add(k)

    def bound(self, copies: Sequence[int]) -> tuple[int, set[int]]:
        """Return a bound on all legal choices, and the classes whose bounds are unverified."""
        self.known: dict[Any, tuple[int, bool]] = {}
        self.looked = 0
        return self._best(self.tensors.certificate.get("order", {}), [], copies)

    def _best(
        self, tree: Any, before: list[tuple[str, str]], copies: Sequence[int]
    ) -> tuple[int, set[int]]:
        """Return the bound of a tree; at each fork one of two barriers precedes the other."""
        if not isinstance(tree, dict) or len(before) > DEEPEST:
            raise Refused(f"the tree of orders must be of objects, at most {DEEPEST} deep")
        if "before" in tree:
            b, c = (str(x) for x in listed(tree["before"], 2, "before"))
            one, doubted = self._best(tree.get("yes"), [*before, (b, c)], copies)
            two, others = self._best(tree.get("no"), [*before, (c, b)], copies)
            return max(one, two), doubted | others
        own, total, doubted = tree.get("evidence", {}), 0, set()
        if not isinstance(own, dict):
            raise Refused("evidence of an order must be an object")
        self.looked += len(copies)
        if self.looked > MOST_LEAVES:
            raise Refused("the tree of orders has too many leaves")
        for k, n in enumerate(copies):
            evidence = own.get(str(k), self.classes[k].evidence)
            banned = self.banned(k, before)
            if (k, banned) not in self.known:
                kind = evidence.get("kind") if isinstance(evidence, dict) else None
                if kind not in ("earned", "word"):  # all others assume different terminals
                    self.check_apart(k)
                self.known[k, banned] = self.classes[k].bound(evidence, banned)
            bound, unverified = self.known[k, banned]
            total += n * bound
            doubted |= {k} if unverified else set()
        return total, doubted

    def banned(self, k: int, order: Sequence[tuple[str, str]]) -> frozenset[tuple[int, int]]:
        """Return the pairs of nodes and terminals that an order forbids in all copies."""
        _, readers = self.sure
        nodes = [(j, by) for (c, j), by in readers.items() if c == k]
        found = set()
        for (c, m), barriers in self.offered.items():
            if c == k:
                early = [self._up_to(b, order) for b in barriers]
                found |= {(j, m) for j, by in nodes if all(by & own for own in early)}
        return frozenset(found)

    def _up_to(self, b: str, order: Sequence[tuple[str, str]]) -> set[str]:
        """Return a barrier and all that necessarily precede it, given an order."""
        (arcs, _), found, todo = self.sure, {b}, [b]
        while todo:
            c = todo.pop()
            new = (arcs.get(c, set()) | {x for x, y in order if y == c}) - found
            found |= new
            todo += new
        return found
