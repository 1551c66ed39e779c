"""Tensors of an instance, with the boxes that a certificate gives for their elements."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from math import prod
from typing import Any

from layoutopt.certificate.refused import Refused, entry, listed
from layoutopt.certificate.sums import MOST, CertifiedBox, Sums, read_boxes
from layoutopt.certificate.views import FIXED, OWN, SAME, VIEWS, carriers, line, relation, shape_of


class Tensors:
    """Boxes of all tensors, passed on from sinks and sources through views.

    Locations are numbered: elements of all tensors in the order of the file, then those named by
    mappings.
    """

    sums: Sums

    def __init__(self, instance: dict[str, Any], certificate: dict[str, Any]) -> None:
        self.certificate = certificate
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.ops: dict[str, dict[str, Any]] = {}
        self.pool: dict[Any, int] = {}
        for op in instance["ops"]:
            self._enter(op)
        sizes = [prod(shape) for shape in self.shapes.values()]
        self.starts = [*accumulate(sizes, initial=0)]
        if self.starts[-1] + len(self.pool) > MOST:
            raise Refused("the instance has too many elements")
        self.base = dict(zip(self.shapes, self.starts, strict=False))
        self.names = list(self.shapes)
        self.boxes: dict[str, list[CertifiedBox]] = {}

    def _enter(self, op: dict[str, Any]) -> None:
        """Register an op's outputs and their shapes."""
        if op["type"] in VIEWS:
            shapes = [
                shape_of(op, [self.shapes[self.tensor(op["inputs"][i])] for i in carriers(op)])
            ]
        elif op["type"] in {*OWN, "sink"}:
            shapes = [tuple(s) for s in (op["shapes"] if "shapes" in op else [op["shape"]])]
        else:
            raise Refused(f"unknown type of op {op['type']!r}")
        for k, shape in enumerate(shapes):
            name = op["id"] if k == 0 else f"{op['id']}:{k}"
            self.shapes[name], self.ops[name] = shape, op
        for value in op.get("mapping") or ():
            self.pool.setdefault((type(value), value), len(self.pool))

    def tensor(self, name: str) -> str:
        """Return the canonical name of a tensor; an op's first output has two names."""
        return name if name in self.shapes else name.removesuffix(":0")

    def sources(self, name: str) -> list[str]:
        """Return the carriers of a view."""
        op = self.ops[name]
        return [self.tensor(op["inputs"][i]) for i in carriers(op)] if op["type"] in VIEWS else []

    def traced(self, name: str) -> list[CertifiedBox]:
        """Return the boxes ``(side, element)`` of a tensor.

        A side is a copy for elements of a class, and a location for fixed ones.
        """
        stack = [name]
        while stack:
            t = stack[-1]
            missing = [s for s in self.sources(t) if s not in self.boxes]
            stack += missing
            if not missing and stack.pop() not in self.boxes:
                self.boxes[t] = self._view(t) if self.sources(t) else self._own(t)
        return self.boxes[name]

    def _own(self, name: str) -> list[CertifiedBox]:
        """Return the boxes of a tensor at its own or mapped locations."""
        mapping, end = self.ops[name].get("mapping"), self.starts[-1]
        if mapping is not None:
            where = [end + self.pool[type(v), v] for v in mapping]
            return [CertifiedBox(FIXED, (x, at), ()) for at, x in enumerate(where)]
        return [b._replace(tag=FIXED) for b in line(prod(self.shapes[name]), self.base[name])]

    def _view(self, name: str) -> list[CertifiedBox]:
        """Return the boxes of a view's output, given by the certificate.

        For each input, the certificate divides the boxes into kept ones, with their elements of
        the output, and omitted ones.  Verified is that both together are the input's boxes, and
        that the kept ones are moved as by the op.
        """
        op, ins = self.ops[name], self.sources(name)
        if op["type"] in SAME:
            return self.boxes[ins[0]]
        shapes, what = [self.shapes[t] for t in ins], f"view {name!r}"
        claims = listed(objects(self.certificate, "views").get(name), len(ins), what)
        found: list[CertifiedBox] = []
        for t, moved, claim in zip(ins, relation(op, shapes), claims, strict=True):
            own = read_boxes(entry(claim, "kept"), 2, 3, what)
            left = read_boxes(entry(claim, "left"), 2, 2, what)
            times = max(1, prod(self.shapes[name]) // max(1, prod(self.shapes[t])))
            self._same(
                [box.of(1, 2, tag=()) for box in own],
                moved,
                f"{what}: its boxes are not those to which the op moves elements of {t!r}",
            )
            self._same(
                [box.of(0, 1) for box in own] + left,
                self.boxes[t],
                f"{what}: its boxes are not those of {t!r}",
                times if op["type"] == "expand" else 1,
            )
            found += [box.of(0, 2) for box in own]
        return found

    def _same(
        self, one: Iterable[CertifiedBox], two: Iterable[CertifiedBox], why: str, times: int = 1
    ) -> None:
        """Refuse boxes unless ``one`` has each member of ``two`` exactly ``times`` times."""
        if self.sums.total(one) != self.sums.total(two, times):
            raise Refused(why)

    def place(self, where: int) -> int:
        """Return the number of the tensor that owns a location."""
        found = bisect_right(self.starts, where) - 1
        if where < 0 or where >= self.starts[-1] + len(self.pool):
            raise Refused(f"unknown location {where}")
        return found

    def kind(self, place: int) -> str:
        """Return the type of the op that produces a tensor, by number."""
        return "mapping" if place >= len(self.names) else str(self.ops[self.names[place]]["type"])


def objects(given: dict[str, Any], key: str) -> dict[str, Any]:
    """Return an object of a certificate, by default an empty one."""
    found = given.get(key, {})
    if not isinstance(found, dict):
        raise Refused(f"{key!r} must be an object")
    return found
