"""The tensors of an instance, and what a certificate says of their elements."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from layoutopt.certificate.refused import Refused
from layoutopt.certificate.sums import MOST, Box, Sums, flat, inside, read_boxes
from layoutopt.certificate.views import (
    CUTTING,
    FIXED,
    OWN,
    SAME,
    VIEWS,
    carried,
    carriers,
    check_cut,
    shape_of,
)


class Tensors:
    """Boxes of tensors, carried through the ops of an instance.

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
        self.boxes: dict[str, list[Box]] = {}

    def _enter(self, op: dict[str, Any]) -> None:
        """Note an op's outputs and their shapes."""
        if op["type"] in VIEWS:
            shapes = [
                shape_of(op, [self.shapes[self.tensor(op["inputs"][i])] for i in carriers(op)])
            ]
        elif op["type"] in {*OWN, "sink"}:
            shapes = [tuple(s) for s in op.get("shapes") or [op["shape"]]]
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

    def traced(self, name: str) -> list[Box]:
        """Return the boxes of a tensor, with quantities ``(where, indices...)``."""
        stack = [name]
        while stack:
            missing = [t for t in self.sources(stack[-1]) if t not in self.boxes]
            if missing and stack[-1] not in self.boxes:
                stack += missing
            else:
                t = stack.pop()
                if t not in self.boxes:
                    self.boxes[t] = self._view(t) if self.sources(t) else self._own(t)
        return self.boxes[name]

    def _own(self, name: str) -> list[Box]:
        """Return the boxes of a tensor that lies at locations of its own, or at mapped ones."""
        shape, mapping = self.shapes[name], self.ops[name].get("mapping")
        steps = [prod(shape[d + 1 :]) for d in range(len(shape))]
        if mapping is not None:
            indices = [
                tuple(i // s % n for s, n in zip(steps, shape, strict=True))
                for i in range(prod(shape))
            ]
            end = self.starts[-1]
            where = [end + self.pool[type(v), v] for v in mapping]
            return [Box(FIXED, (x, *index), ()) for x, index in zip(where, indices, strict=True)]
        if not prod(shape):
            return []
        units = [tuple(int(d == e) for e in range(len(shape))) for d in range(len(shape))]
        loops = tuple((n, (s, *unit)) for n, s, unit in zip(shape, steps, units, strict=True))
        return [Box(FIXED, (self.base[name], *[0] * len(shape)), loops)]

    def _view(self, name: str) -> list[Box]:
        """Return the boxes of a view's output."""
        op, ins = self.ops[name], self.sources(name)
        shapes, inputs = [self.shapes[t] for t in ins], [self.boxes[t] for t in ins]
        out = self.shapes[name]
        if op["type"] in CUTTING:
            cut = _object(_object(self.certificate, "cuts"), name)
            kept, left = (
                read_boxes(cut.get(part), 2, 1 + len(shapes[0]), f"the cut of {name!r}")
                for part in ("kept", "left")
            )
            check_cut(op, shapes[0], kept, left)
            self._same(
                ("one", "at"),
                [flat(box, shapes[0]) for box in (*kept, *left)],
                [flat(box, shapes[0]) for box in inputs[0]],
                f"the cut of {name!r} is not its input",
            )
            inputs = [kept]
        elif op["type"] in SAME and shapes[0] != out:
            boxes = self._claimed("tensors", name, 1 + len(out), out)
            self._same(
                ("one", "at"),
                [flat(box, out) for box in boxes],
                [flat(box, shapes[0]) for box in inputs[0]],
                f"tensor {name!r} does not hold what its input does",
            )
            return boxes
        return carried(op, shapes, inputs)

    def _claimed(self, what: str, name: str, width: int, shape: Sequence[int]) -> list[Box]:
        """Return boxes of a tensor that the certificate states."""
        boxes = read_boxes(_object(self.certificate, what).get(name), 2, width, f"{what} {name!r}")
        if not all(inside(box, shape) for box in boxes):
            raise Refused(f"{what} {name!r}: a box is outside the tensor")
        return boxes

    def _same(self, names: Sequence[str], one: Iterable[Box], two: Iterable[Box], why: str) -> None:
        """Refuse two lists of boxes that do not hold the same."""
        if self.sums.total(names, one) != self.sums.total(names, two):
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


def _object(given: dict[str, Any], key: str) -> dict[str, Any]:
    found = given.get(key, {})
    if not isinstance(found, dict):
        raise Refused(f"{key!r} must be an object")
    return found
