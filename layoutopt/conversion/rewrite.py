"""The graph with its ops in chosen modes, and the transforms that this takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layoutopt.conversion.candidates import CandidateModes
from layoutopt.conversion.graph import HELD, ConversionGraph, ConversionTensor
from layoutopt.conversion.materialise import Forms, arranged
from layoutopt.conversion.modes import Mode
from layoutopt.conversion.rules.op import Op, Shape
from layoutopt.conversion.rules.registry import operator_of
from layoutopt.conversion.values import Values
from layoutopt.layout.factors import (
    Form,
    Order,
    is_permutation,
    order_of,
    renamed,
    sizes_of,
    spread,
    whole_axes,
)
from layoutopt.layout.permutations import Permutation

VECTOR_RANKS = {(1, 0), (1, 1)}
"""Ranks of what a Gather reads where it picks one or several entries of a vector."""


@dataclass
class Rewritten:
    """A new graph.

    Parameters
    ----------
    graph
        The graph.
    forms
        The transforms and constants that it has.
    freed
        How inputs and outputs are permuted that come in another layout.
    """

    graph: ConversionGraph
    forms: Forms
    freed: dict[str, Permutation]


def rewrite(
    graph: ConversionGraph,
    values: Values,
    every: Sequence[CandidateModes],
    numbers: Sequence[int],
    orders: Mapping[int, Order],
    kept: frozenset[str],
) -> Rewritten:
    """Return the graph with its ops in chosen modes.

    Transforms stand before the first op that needs them, and serve all.

    Parameters
    ----------
    graph, values, every
        The graph as it is given, its values, and its ops without transposes.
    numbers
        For each op the number of its mode.
    orders
        The order of constants, and of inputs that are freed.
    kept
        Names of outputs that are given back in the layout in which they are written.
    """
    writing = _Writing(graph, values, orders, kept)
    for one, number in zip(every, numbers, strict=True):
        writing.op(one, number)
    writing.outputs()
    return Rewritten(writing.new, writing.forms, writing.freed)


class _Writing:
    def __init__(
        self,
        graph: ConversionGraph,
        values: Values,
        orders: Mapping[int, Order],
        kept: frozenset[str],
    ) -> None:
        self.old, self.values, self.kept = graph, values, kept
        self.free = set(graph.outputs) - kept
        self.forms = Forms(graph, values)
        self.new, self.names, self.laid = self.forms.new, self.forms.names, self.forms.laid
        self.freed: dict[str, Permutation] = {}
        self.orders = orders
        for name, tensor in graph.tensors.items():
            if tensor.kind == "input":
                self._input(name, tensor)

    def _input(self, name: str, tensor: ConversionTensor) -> None:
        number = self.values.number[name]
        shape = self.values.every[number].shape
        form: Form = tuple(range(len(shape)))
        order = self.orders.get(number)
        if order is not None and order != order_of(form, shape):
            form = spread(order, shape)
            self._free(name, form)
        sizes = None if tensor.shape is None else self.laid[number].sizes(form)
        self.new.input(name, sizes, arranged(tensor.layout, form), tensor.element_bytes)
        self.names.take(name)
        self.laid[number].add(form, name)

    def op(self, one: CandidateModes, number: int) -> None:
        """Add an op in one of its modes."""
        mode = one.mode(number)
        attributes, read = self._operands(one.op, mode)
        names, shapes = list[str](), list[Shape | None]()
        for name, own, shape in zip(
            one.op.outputs, mode.outputs, one.op.output_shapes, strict=True
        ):
            new = name
            if name:
                frame = self.values.frame[name]
                form = frame if own is None else renamed(own, frame)
                new = self._given(self.values.number[name], form, name)
                self.forms.note(new, self.values.number[name], form)
                picked = mode.entries.get(len(one.op.inputs) + len(names))
                if picked is not None:
                    waiting, new = new, self.names.new(f"{name}_entries")
                    self.forms.waiting[waiting] = new, picked
                    own, shape = None, None
            names.append(new)
            shapes.append(shape if own is None or shape is None else sizes_of(own, shape))
        changed = Op(
            mode.type or one.op.type,
            attributes,
            read,
            tuple(names),
            tuple([self.new.tensors[n].shape if n else None for n in read]),
            tuple(shapes),
            one.op.name,
            one.op.opset,
            mode.layouts,
            one.op.element_type,
        )
        sizes = [self.old.tensors[n].element_bytes if n else None for n in one.op.outputs]
        self.new.add(changed, sizes)

    def _operands(self, op: Op, mode: Mode) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """Return an op's attributes, and the names of what it reads, in a mode."""
        if (found := self._picked(op, mode)) is not None:
            return found
        known, attributes = operator_of(op), mode.attributes
        told = {n for name, n in known.parameters.items() if name in attributes}
        told -= {n for name, n in known.parameters.items() if name in op.attributes}
        read = list[str]()
        for n, (name, form) in enumerate(zip(op.inputs, mode.inputs, strict=True)):
            picked = mode.entries.get(n)
            if not name or n in told:
                read.append("")
            elif picked is None:
                read.append(self._read(name, form))
            else:
                laid = self.laid[self.values.number[name]]
                vector = (laid.name((0,)) if laid.shape else None) or self._read(name, None)
                read.append(self.forms.entries(vector, picked, name))
        return attributes, tuple(read[n] for n in mode.operands or range(len(read)))

    def _picked(self, op: Op, mode: Mode) -> tuple[Mapping[str, Any], tuple[str, ...]] | None:
        """Return a Gather of entries of a vector that waits to be made, as one of its source."""
        indices = mode.attributes.get("indices")
        if op.type != "Gather" or indices is None or (op.rank(0), op.rank(1)) not in VECTOR_RANKS:
            return None
        name = self.laid[self.values.number[op.inputs[0]]].name((0,))
        if name not in self.forms.waiting:
            return None
        source, first = self.forms.waiting[name]
        one = isinstance(indices, int)
        picked = first[indices] if one else tuple(first[i] for i in indices)
        return {**mode.attributes, "indices": picked}, (source, self._read(op.inputs[1], None))

    def _given(self, number: int, form: Form, name: str) -> str:
        """Return the name of a value as an op gives it; what is held keeps its own."""
        producer = self.old.producer(name)
        if producer is not None and producer.type == HELD:
            self.laid[number].add(form, self.names.take(name))
            return name
        free = [n for n in self.values.every[number].tensors if n in self.free]
        if free and is_permutation(form, self.values.every[number].shape):
            found = self.names.take(name if name in free else free[0])
            self._free(found, form)
        else:
            found = self.names.of(number, form, name)
        self.laid[number].add(form, found)
        return found

    def _free(self, name: str, form: Form) -> None:
        frame, axes = self.values.frame[name], whole_axes(form)
        if axes != frame:
            self.freed[name] = tuple(map(frame.index, axes))

    def outputs(self) -> None:
        """Give back the graph's outputs, under their names."""
        for name in self.old.outputs:
            if name not in self.new.tensors:
                number = self.values.number[name]
                form: Form = self.values.frame[name]
                if name in self.free and self.laid[number].forms:
                    form = self._whole(number)
                    self._free(name, form)
                found = self.forms.materialised(number, form, name)
                if found != name:
                    self.forms.insert("Identity", found, {}, name, self.new.tensors[found].shape)
            self.new.output(name)

    def _read(self, name: str, own: Form | None) -> str:
        number, frame = self.values.number[name], self.values.frame[name]
        return self.forms.materialised(number, frame if own is None else renamed(own, frame), name)

    def _whole(self, number: int) -> Form:
        """Return the form in which a value came about, with a dimension for each axis."""
        laid = self.laid[number]
        order = order_of(laid.forms[0], laid.shape)
        whole = (form for form in laid.forms if is_permutation(form, laid.shape))
        return next(whole, spread(order, laid.shape))
