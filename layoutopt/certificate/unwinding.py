"""Certificates of unwinding: decomposition of an instance into classes, and their bounds.

A certificate gives for every sink element its class, copy and node, and its location.  A copy is
identified by the element that is its node 0.  Passed on through the ops, this gives for every
position of a ValuedPair an edge of a class.  If all positions are all edges of all copies, with
equal multiplicity, the score is the sum of those of the copies, and bounded by the sum of their
bounds.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from math import prod
from typing import Any, NamedTuple

from layoutopt.certificate.classes import Class
from layoutopt.certificate.order import BarrierOrder
from layoutopt.certificate.refused import Refused, listed, number
from layoutopt.certificate.sums import CertifiedBox, Sums, differ, read_boxes
from layoutopt.certificate.tensors import Tensors, objects
from layoutopt.certificate.views import FIXED, OWN, UNTIED, line


class Verdict(NamedTuple):
    """Score and bound that a certificate proves, and the unverified part of the bound."""

    score: Fraction
    bound: Fraction
    classes: int
    copies: int
    unverified: int
    copies_unverified: int


def check(instance: dict[str, Any], certificate: dict[str, Any]) -> Verdict:
    """Verify a certificate of an instance; raise ``Refused`` if it proves less than it claims."""
    if not isinstance(certificate, dict):
        raise Refused("a certificate must be an object")
    try:
        verdict = Checker(instance, certificate).verdict()
    except (KeyError, RecursionError) as error:
        raise Refused(f"it is incomplete or nested too deeply ({error!r:.60})") from None
    if verdict.score != number(certificate.get("score")):
        raise Refused(f"the layouts score {verdict.score}, but another score is claimed")
    if verdict.bound > number(certificate.get("bound")):
        raise Refused(f"the evidence proves the bound {verdict.bound}, not the claimed one")
    return verdict


class Checker(Tensors):
    """Verification of one certificate of an instance."""

    def __init__(self, instance: dict[str, Any], certificate: dict[str, Any]) -> None:
        if instance.get("tile_memory") is not None:
            raise Refused("certificates do not support instances with a tile memory")
        super().__init__(instance, certificate)
        unit = Fraction(number(certificate.get("unit")))
        if unit <= 0:
            raise Refused("the unit must be positive")
        self.unit, self.pairs = unit, []
        for pair in instance["valued_pairs"]:
            worth = Fraction(pair["value"]) / unit
            if worth.denominator != 1:
                raise Refused(f"value {pair['value']} is not a multiple of the unit {unit}")
            self.pairs.append((self.tensor(pair["a"]), self.tensor(pair["b"]), int(worth)))
        given = listed(certificate.get("classes"), None, "classes")
        self.classes = [Class(entry, f"class {k}") for k, entry in enumerate(given)]
        weights = [abs(w) for c in self.classes for _, _, w in (*c.edges, *c.rewards)]
        self.sums = Sums((sum(abs(v) for _, _, v in self.pairs) + sum(weights)) * 2**60)
        self.members: dict[tuple[int, ...], list[CertifiedBox]] = defaultdict(list)
        self.nodes: dict[tuple[int, ...], list[CertifiedBox]] = {}

    def verdict(self) -> Verdict:
        """Verify the certificate, and add up scores and bounds."""
        constant, copies, order = self.prepared()
        for k, c in enumerate(self.classes):
            if any(
                w < 0 for _, _, w in (*c.edges, *c.rewards)
            ):  # labels may score less than claimed
                order.check_apart(k)
        order.check_legal([c.labels for c in self.classes])
        best, unverified = order.bound(copies)
        score = sum(n * c.score() for n, c in zip(copies, self.classes, strict=True))
        return Verdict(
            (constant + score) * self.unit,
            (constant + best) * self.unit,
            len(self.classes),
            sum(copies),
            len(unverified),
            sum(copies[k] for k in unverified),
        )

    def prepared(self) -> tuple[int, list[int], BarrierOrder]:
        """Verify that classes make up the instance.

        Return the constant part of the score, the number of copies of each class, and the
        dependencies on barriers.
        """
        for name, op in self.ops.items():
            if op["type"] == "sink":
                self.boxes[name] = self._sink(name)
        copies = [self._copies(k) for k in range(len(self.classes))]
        if stray := set(self.members) - {UNTIED}:
            raise Refused(f"a sink has elements of node {min(stray)}, which does not exist")
        terminals = [self._terminals(k, c) for k, c in enumerate(self.classes)]
        order = BarrierOrder(self, self.classes, self.nodes, terminals)
        return self._edges(terminals), copies, order

    def _sink(self, name: str) -> list[CertifiedBox]:
        """Return the boxes of a sink, which must contain each element once."""
        base = self.base[name]
        boxes = read_boxes(objects(self.certificate, "sinks").get(name), 2, 3, f"sink {name!r}")
        self._same(
            [box.of(2, tag=()) for box in boxes],
            [box.of(0) for box in line(prod(self.shapes[name]))],
            f"sink {name!r}: its boxes must contain each element once",
        )
        for tag, start, loops in boxes:
            own = CertifiedBox((), (*start[:2], base + start[2]), loops)
            if tag[1:] == (0,) and own.of(0) != own.of(2):
                raise Refused(f"sink {name!r}: a copy is not identified by its node 0")
            self.members[tag].append(own)
        return [box.of(0, 2) for box in boxes]

    def _copies(self, k: int) -> int:
        """Return the number of copies of a class; each must contain each node once."""
        c = self.classes[k]
        for j in range(c.nodes):
            self.nodes[k, j] = self.members.pop((k, j), [])
        leaders = self.nodes.get((k, 0), [])
        for j in range(1, c.nodes):
            self._same(
                [b.of(0) for b in self.nodes[k, j]],
                [b.of(0) for b in leaders],
                f"{c.name}: node {j} is not in each copy once",
            )
        if not leaders:
            raise Refused(f"{c.name} has no copy")
        return sum(box.members for box in leaders)

    def _terminals(self, k: int, c: Class) -> list[list[CertifiedBox]]:
        """Return the boxes ``(copy, location)`` of terminals; nodes must be at their labels."""
        found = [
            read_boxes(given, 0, 2, f"terminal {m} of {c.name}")
            for m, given in enumerate(c.terminals)
        ]
        leaders = [box.of(0) for box in self.nodes[k, 0]]
        for m, boxes in enumerate(found):
            self._same(
                [b.of(0) for b in boxes],
                leaders,
                f"{c.name}: terminal {m} is not in each copy once",
            )
            for box in boxes:
                low, high = (self.place(end) for end in box.ends(1))
                if low != high or self.kind(low) not in {*OWN, "mapping"}:
                    raise Refused(f"{c.name}: terminal {m} has no location of its own")
        for j, label in enumerate(c.labels):
            own = [b.of(0, 2) for b in self.nodes[k, -1 - label]] if label < 0 else found[label]
            self._same(
                [b.of(0, 1) for b in self.nodes[k, j]],
                own,
                f"{c.name}: node {j} is not at the location of its label",
            )
        return found

    def _edges(self, terminals: list[list[list[CertifiedBox]]]) -> int:
        """Compare positions of pairs with edges of classes; return the score's constant part."""
        sums, constant = self.sums, 0
        found: dict[Any, int] = defaultdict(int)
        claims = listed(self.certificate.get("pairs"), len(self.pairs), "pairs")
        for n, ((a, b, worth), claim) in enumerate(zip(self.pairs, claims, strict=True)):
            if not worth:
                continue
            boxes = read_boxes(claim, 4, 3, f"pair {n}")
            for t, q in ((a, 1), (b, 2)):
                side = [box.of(q, 0, tag=box.tag[2 * q - 2 : 2 * q]) for box in boxes]
                why = f"pair {n}: its boxes are not those of {t!r}"
                self._same(side, self.traced(t), why)
            for box in boxes:
                one, two = box.tag[:2], box.tag[2:]
                if one == two and box.of(1) == box.of(2):  # the same element: always matches
                    constant += worth * box.members
                    continue
                if one == two == FIXED:
                    if differ(box, box, 1, 2):
                        continue
                    raise Refused(
                        f"pair {n}: fixed locations of a box are partly equal and partly different"
                    )
                if UNTIED in (one, two):
                    raise Refused(f"pair {n} has elements that are declared to be in no class")
                turned = one == FIXED or (two != FIXED and two < one)
                key, ends = ((two, one), (2, 1)) if turned else ((one, two), (1, 2))
                found[key] += sums.total([box.of(*ends, tag=())], worth)
        for k, c in enumerate(self.classes):
            leaders = [box.of(0, 0) for box in self.nodes[k, 0]]
            each = sums.total(leaders)
            for i, j, w in c.edges:
                found[(k, min(i, j)), (k, max(i, j))] -= w * each
            ties = [sums.total(boxes) for boxes in terminals[k]]
            for i, m, w in c.rewards:
                found[(k, i), FIXED] -= w * ties[m]
        for about, rest in found.items():
            if rest % sums.prime:
                raise Refused(f"edges of nodes {about} are not those of the pairs")
        return constant
