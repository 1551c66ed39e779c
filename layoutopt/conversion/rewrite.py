"""The graph with its ops in chosen modes, and the transforms that this takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layoutopt.conversion.choice import Choices
from layoutopt.conversion.forms import Laid, Step, moves, transform
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.names import Names
from layoutopt.conversion.orders import (
    Form,
    Order,
    has_parts,
    is_permutation,
    order_of,
    padded_axes,
    renamed,
    same,
    sizes_of,
    spread,
    whole_axes,
)
from layoutopt.conversion.relaying import relaid
from layoutopt.conversion.result import Relaid
from layoutopt.conversion.tensor import Tensor
from layoutopt.conversion.values import Values
from layoutopt.layout.layout import ANY, Block, Dim, Layout
from layoutopt.layout.permutations import Permutation
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


@dataclass
class Rewritten:
    """A new graph.

    Parameters
    ----------
    graph
        The graph.
    moved
        What its transposes do, by their names.
    padding
        For each op that pads blocks, or cuts padding off, its transpose; "" without one.
    narrow
        Shapes of tensors that are padded, without padding, by name.
    relaid
        New constants, by name.
    freed
        How inputs and outputs are permuted that come in another layout.
    """

    graph: ConversionGraph
    moved: dict[str, Moved]
    padding: dict[str, str]
    narrow: dict[str, Shape]
    relaid: dict[str, Relaid]
    freed: dict[str, Permutation]


def rewrite(
    graph: ConversionGraph,
    values: Values,
    every: Sequence[Choices],
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
    return Rewritten(
        writing.new,
        writing.moved,
        writing.padding,
        writing.narrow,
        writing.relaid,
        writing.freed,
    )


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
        self.new = ConversionGraph(graph.name, graph.opset)
        self.moved: dict[str, Moved] = {}
        self.padding: dict[str, str] = {}
        self.narrow: dict[str, Shape] = {}
        self.relaid: dict[str, Relaid] = {}
        self.freed: dict[str, Permutation] = {}
        self.names = Names(graph, values)
        self.orders = orders
        self.laid: list[Laid] = [Laid(value.shape) for value in values.every]
        for name, tensor in graph.tensors.items():
            if tensor.kind == "input":
                self._input(name, tensor)

    def _input(self, name: str, tensor: Tensor) -> None:
        number = self.values.number[name]
        shape = self.values.every[number].shape
        form: Form = tuple(range(len(shape)))
        order = self.orders.get(number)
        if order is not None and order != order_of(form, shape):
            form = spread(order, shape)
            self._free(name, form)
        sizes = None if tensor.shape is None else self.laid[number].sizes(form)
        self.new.input(name, sizes, _arranged(tensor.layout, form), tensor.element_bytes)
        self.names.take(name)
        self.laid[number].add(form, name)

    def op(self, one: Choices, number: int) -> None:
        """Add an op in one of its modes."""
        mode = one.mode(number)
        read = tuple(
            self._read(name, form) if name else ""
            for name, form in zip(one.op.inputs, mode.inputs, strict=True)
        )
        names, shapes = list[str](), list[Shape | None]()
        for name, own, shape in zip(
            one.op.outputs, mode.outputs, one.op.output_shapes, strict=True
        ):
            new = name
            if name:
                frame = self.values.frame[name]
                form = frame if own is None else renamed(own, frame)
                new = self._given(self.values.number[name], form, name)
                self._note(new, self.values.number[name], form)
            names.append(new)
            shapes.append(shape if own is None or shape is None else sizes_of(own, shape))
        changed = Op(
            one.op.type,
            mode.attributes,
            read,
            tuple(names),
            tuple([self.new.tensors[n].shape if n else None for n in read]),
            tuple(shapes),
            one.op.name,
            one.op.opset,
            mode.layouts,
        )
        sizes = [self.old.tensors[n].element_bytes if n else None for n in one.op.outputs]
        self.new.add(changed, sizes)

    def _given(self, number: int, form: Form, name: str) -> str:
        """Return the name of a value as an op gives it."""
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
                found = self._materialised(number, form, name)
                if found != name:
                    self._insert("Identity", found, {}, name, self.new.tensors[found].shape)
            self.new.output(name)

    def _read(self, name: str, own: Form | None) -> str:
        number, frame = self.values.number[name], self.values.frame[name]
        return self._materialised(number, frame if own is None else renamed(own, frame), name)

    def _whole(self, number: int) -> Form:
        """Return the form in which a value came about, with a dimension for each axis."""
        laid = self.laid[number]
        order = order_of(laid.forms[0], laid.shape)
        whole = (form for form in laid.forms if is_permutation(form, laid.shape))
        return next(whole, spread(order, laid.shape))

    def _materialised(self, number: int, form: Form, wanted: str) -> str:
        """Return the name of a value in a form; what is missing is added."""
        laid, value = self.laid[number], self.values.every[number]
        found = laid.name(form)
        if found is not None:
            return found
        if value.kind == "constant" and laid.like(form) is None:
            return self._constant(number, form, wanted)
        source = laid.like(form)
        if source is None:
            return self._transformed(number, form, wanted)
        name = laid.name(source) or ""
        for step in moves(source, form, value.shape):
            name = self._step(number, name, step, wanted)[0]
        return name

    def _transformed(self, number: int, form: Form, wanted: str) -> str:
        """Return the name of a value in a form of another order than it has."""
        laid, shape = self.laid[number], self.values.every[number].shape
        source = laid.forms[0]
        how, name = Moved(number, source, form), laid.name(source) or ""
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
        self, number: int, before: str, step: Step, wanted: str, passing: bool = False
    ) -> tuple[str, str]:
        """Return the names of a value after a step, and of its op; ``passing``: nobody else's."""
        laid = self.laid[number]
        existing = None if passing else laid.name(step.form)
        if existing is not None:
            return existing, ""
        name = self.names.of(number, step.form, wanted)
        op = self._insert(step.type, before, step.attributes, name, laid.sizes(step.form))
        self._note(name, number, step.form)
        if not passing:
            laid.add(step.form, name)
        return name, op

    def _note(self, name: str, number: int, form: Form) -> None:
        """Keep the shape without padding of a tensor that is padded."""
        shape = self.values.every[number].shape
        if has_parts(form) and padded_axes(form, shape):
            self.narrow[name] = shape

    def _insert(
        self,
        type: str,
        source: str,
        attributes: Mapping[str, object],
        name: str,
        shape: Shape | None,
    ) -> str:
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
        self.new.constant(name, shape, _arranged(tensor.layout, form), tensor.element_bytes)
        laid.add(form, name)
        whole = tuple(range(len(value.shape)))
        if name != value.root or same(form, value.shape) != same(whole, value.shape):
            self.relaid[name] = relaid(value.root, form, value.shape)
        return name


def _arranged(layout: Layout, form: Form) -> Layout:
    """Return the layout of a tensor in another form."""
    if layout.undefined or form == tuple(range(len(layout.dims))):
        return layout
    added = Dim((Block(ANY),))
    dims = (layout.dims[d] if isinstance(d, int) and d >= 0 else added for d in form)
    return Layout(tuple(dims), layout.dialect)
