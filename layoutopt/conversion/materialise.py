"""Values in the forms that ops need: transforms and constants are added where they are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layoutopt.conversion.cuts import padded_axes
from layoutopt.conversion.forms import FormStep, Laid, moves, transform
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.names import TensorNames
from layoutopt.conversion.orders import (
    Form,
    has_parts,
    same,
)
from layoutopt.conversion.relaying import relaid
from layoutopt.conversion.result import Relaid
from layoutopt.conversion.values import Values
from layoutopt.layout.layout import ANY, Block, Dim, Layout
from layoutopt.operators.op import Op, Shape

PADDING = ("Pad", "Slice")
"""Types of ops that pad blocks and cut padding off."""


@dataclass(frozen=True)
class Moved:
    """What a transpose of the new graph does.

    Parameters
    ----------
    value
        The number of the value that it moves.
    source, target
        Its forms before and after.
    """

    value: int
    source: Form
    target: Form


class Forms:
    """The forms in which the values of a graph are there in the new one.

    Parameters
    ----------
    graph
        The graph as it is given.
    values
        Its values.

    Attributes
    ----------
    new
        The new graph.
    moved
        What its transposes do, by their names.
    padding
        For each op that pads blocks, or cuts padding off, its transpose; "" without one.
    narrow
        Shapes of tensors that are padded, without padding, by name.
    relaid
        New constants, by name.
    waiting
        Vectors that a Gather is to make once they are read, by name: of which vector, and which
        entries.
    """

    def __init__(self, graph: ConversionGraph, values: Values) -> None:
        self.old, self.values = graph, values
        self.new = ConversionGraph(graph.name, graph.opset)
        self.names = TensorNames(graph, values)
        self.laid: list[Laid] = [Laid(value.shape) for value in values.every]
        self.moved: dict[str, Moved] = {}
        self.padding: dict[str, str] = {}
        self.narrow: dict[str, Shape] = {}
        self.relaid: dict[str, Relaid] = {}
        self.waiting: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._gathered: dict[tuple[str, tuple[int, ...]], str] = {}

    def materialised(self, number: int, form: Form, wanted: str) -> str:
        """Return the name of a value in a form; what is missing is added."""
        laid, value = self.laid[number], self.values.every[number]
        found = laid.name(form)
        if found is not None:
            return self._made(found)
        if value.kind == "constant" and laid.like(form) is None:
            return self._constant(number, form, wanted)
        source = laid.like(form)
        if source is None:
            return self._transformed(number, form, wanted)
        name = self._made(laid.name(source) or "")
        for step in moves(source, form, value.shape):
            name = self._step(number, name, step, wanted)[0]
        return name

    def entries(self, name: str, indices: tuple[int, ...], wanted: str) -> str:
        """Return the name of a vector of entries of another one.

        Parameters
        ----------
        name
            The other one; it may wait to be made of a third.
        indices
            Which entries.
        wanted
            What its name should tell of.
        """
        source, first = self.waiting.get(name, (name, None))
        picked = indices if first is None else tuple(first[i] for i in indices)
        size = (self.new.tensors[source].shape or (None,))[0]
        if picked == tuple(range(size if isinstance(size, int) else len(picked) + 1)):
            return source
        key = source, picked
        if key not in self._gathered:
            self._gather(source, picked, self.names.new(f"{wanted}_entries"))
        return self._gathered[key]

    def _made(self, name: str) -> str:
        """Return the name of a tensor, and make it if it waits to be."""
        if name in self.waiting:
            self._gather(*self.waiting.pop(name), name)
        return name

    def _gather(self, source: str, indices: tuple[int, ...], name: str) -> None:
        attributes = {"axis": 0, "indices": indices}
        self.insert("Gather", source, attributes, name, (len(indices),))
        self._gathered.setdefault((source, indices), name)

    def _transformed(self, number: int, form: Form, wanted: str) -> str:
        """Return the name of a value in a form of another order than it has."""
        laid, shape = self.laid[number], self.values.every[number].shape
        source = laid.forms[0]
        how, name = Moved(number, source, form), self._made(laid.name(source) or "")
        steps = list(transform(source, form, shape))
        alone = any(step.type in PADDING for step in steps)  # padded tensors are not shared
        padding, transposing = "", ""
        for n, step in enumerate(steps):
            name, op = self._step(number, name, step, wanted, alone and n + 1 < len(steps))
            if step.type in PADDING:
                padding = padding or op
            elif step.type == "Transpose":
                transposing = op
                self.moved[op] = how
                if not alone and (found := laid.name(form)) is not None:
                    return found
        if padding:
            self.padding[padding] = transposing
            self.moved[padding] = how
        return name

    def _step(
        self, number: int, before: str, step: FormStep, wanted: str, passing: bool = False
    ) -> tuple[str, str]:
        """Return the names of a value after a step, and of its op; ``passing``: nobody else's."""
        laid = self.laid[number]
        existing = None if passing else laid.name(step.form)
        if existing is not None:
            return existing, ""
        name = self.names.of(number, step.form, wanted)
        op = self.insert(step.type, before, step.attributes, name, laid.sizes(step.form))
        self.note(name, number, step.form)
        if not passing:
            laid.add(step.form, name)
        return name, op

    def note(self, name: str, number: int, form: Form) -> None:
        """Keep the shape without padding of a tensor that is padded."""
        shape = self.values.every[number].shape
        if has_parts(form) and padded_axes(form, shape):
            self.narrow[name] = shape

    def insert(
        self,
        type: str,
        source: str,
        attributes: Mapping[str, object],
        name: str,
        shape: Shape | None,
    ) -> str:
        """Add an op of one operand and result, and return its name."""
        op = Op(
            type,
            dict(attributes),
            (source,),
            (name,),
            output_shapes=(shape,),
            name=self.names.op(f"{type.lower()}_{name}"),
            opset=self.old.opset,
        )
        self.new.add(op, [self.new.tensors[source].element_bytes])
        return op.name

    def _constant(self, number: int, form: Form, wanted: str) -> str:
        value = self.values.every[number]
        tensor, laid = self.old.tensors[value.root], self.laid[number]
        name = self.names.of(number, form, wanted)
        shape = None if tensor.shape is None else laid.sizes(form)
        self.new.constant(name, shape, arranged(tensor.layout, form), tensor.element_bytes)
        laid.add(form, name)
        whole = tuple(range(len(value.shape)))
        if name != value.root or same(form, value.shape) != same(whole, value.shape):
            self.relaid[name] = relaid(value.root, form, value.shape)
        return name


def arranged(layout: Layout, form: Form) -> Layout:
    """Return the layout of a tensor in another form."""
    if layout.undefined or form == tuple(range(len(layout.dims))):
        return layout
    added = Dim((Block(ANY),))
    dims = (layout.dims[d] if isinstance(d, int) and d >= 0 else added for d in form)
    return Layout(tuple(dims), layout.dialect)
