"""The tensors of an instance, and what a certificate says of their elements."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from math import prod
from typing import Any

from layoutopt.certificate.refused import Refused, entry, listed
from layoutopt.certificate.sums import MOST, CertifiedBox, Sums, read_boxes
from layoutopt.certificate.views import FIXED, OWN, SAME, VIEWS, carriers, line, relation, shape_of


class Tensors:
    """Boxes of tensors, from sinks and sources on through the views of an instance.

    Elements are numbered through all tensors, in the order of the file, then the locations that
    mappings name.
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
        self.starts = [0]
        for size in sizes:
            self.starts.append(self.starts[-1] + size)
        if self.starts[-1] + len(self.pool) > MOST:
            raise Refused("the instance has too many elements")
        self.base = dict(zip(self.shapes, self.starts, strict=False))
        self.names = list(self.shapes)
        self.boxes: dict[str, list[CertifiedBox]] = {}

    def _enter(self, op: dict[str, Any]) -> None:
        """Note an op's outputs and their shapes."""
        if op["type"] in VIEWS:
            shapes = [
                shape_of(op, [self.shapes[self.tensor(op["inputs"][i])] for i in carriers(op)])
            ]
        elif op["type"] in {*OWN, "sink"}:
            shapes = [tuple(s) for s in (op["shapes"] if "shapes" in op else [op["shape"]])]
        else:
            raise Refused(f"ops of type {op['type']!r} are not known")
        for k, shape in enumerate(shapes):
            name = op["id"] if k == 0 else f"{op['id']}:{k}"
            self.shapes[name], self.ops[name] = shape, op
        for value in op.get("mapping") or ():
            self.pool.setdefault((type(value), value), len(self.pool))

    def tensor(self, name: str) -> str:
        """Return the name of a tensor, of which an op's first output has two."""
        return name if name in self.shapes else name.removesuffix(":0")

    def sources(self, name: str) -> list[str]:
        """Return the tensors that a view's elements come from."""
        op = self.ops[name]
        return [self.tensor(op["inputs"][i]) for i in carriers(op)] if op["type"] in VIEWS else []

    def traced(self, name: str) -> list[CertifiedBox]:
        """Return the boxes ``(side, element)`` of a tensor.

        A side is a copy for elements of a class, and a location for those that are fixed.
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
        """Return the boxes of a tensor that lies at locations of its own, or at mapped ones."""
        mapping, end = self.ops[name].get("mapping"), self.starts[-1]
        if mapping is not None:
            where = [end + self.pool[type(v), v] for v in mapping]
            return [CertifiedBox(FIXED, (x, at), ()) for at, x in enumerate(where)]
        return [b._replace(tag=FIXED) for b in line(prod(self.shapes[name]), self.base[name])]

    def _view(self, name: str) -> list[CertifiedBox]:
        """Return the boxes of a view's output, by what the certificate says of its inputs'.

        It says of boxes of each input where its op moves their elements, and which boxes the op
        leaves out.  Where together they are the input, and what is moved is what the op moves,
        they say nothing wrong.
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
                f"{what}: its boxes are not where the op moves elements of {t!r}",
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
        """Refuse two lists of boxes of which the first does not hold the second so many times."""
        if self.sums.total(one) != self.sums.total(two, times):
            raise Refused(why)

    def place(self, where: int) -> int:
        """Return the number of the tensor that a location is an element of."""
        found = bisect_right(self.starts, where) - 1
        if where < 0 or where >= self.starts[-1] + len(self.pool):
            raise Refused(f"there is no location {where}")
        return found

    def kind(self, place: int) -> str:
        """Return the type of the op that gives a tensor, by number."""
        return "mapping" if place >= len(self.names) else str(self.ops[self.names[place]]["type"])


def objects(given: dict[str, Any], key: str) -> dict[str, Any]:
    """Return an object of a certificate, an empty one if there is none."""
    found = given.get(key, {})
    if not isinstance(found, dict):
        raise Refused(f"{key!r} must be an object")
    return found
