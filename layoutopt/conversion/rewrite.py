"""The graph with its ops in chosen modes, and the transforms that this takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layoutopt.conversion.candidates import Choices
from layoutopt.conversion.forms import Form, Laid, moves, same
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.names import Names
from layoutopt.conversion.result import Relaid
from layoutopt.conversion.tensor import Tensor
from layoutopt.conversion.values import Order, Values, order_of, spread
from layoutopt.layout.layout import ANY, Block, Dim, Layout
from layoutopt.layout.permutations import Permutation
from layoutopt.operators.op import Op, Shape


@dataclass
class Rewritten:
    """A new graph.

    Parameters
    ----------
    graph
        The graph.
    relaid
        New constants, by name.
    freed
        How inputs and outputs are permuted that come in another layout.
    """

    graph: ConversionGraph
    relaid: dict[str, Relaid]
    freed: dict[str, Permutation]


def rewrite(
    graph: ConversionGraph,
    values: Values,
    every: Sequence[Choices],
    numbers: Sequence[int],
    orders: Mapping[int, Order],
    free_io: bool,
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
    free_io
        Whether inputs and outputs may come in other layouts.
    """
    writing = _Writing(graph, values, orders, free_io)
    for one, number in zip(every, numbers, strict=True):
        writing.op(one, number)
    writing.outputs()
    return Rewritten(writing.new, writing.relaid, writing.freed)


class _Writing:
    def __init__(
        self,
        graph: ConversionGraph,
        values: Values,
        orders: Mapping[int, Order],
        free_io: bool,
    ) -> None:
        self.old, self.values, self.free_io = graph, values, free_io
        self.ends = set(graph.outputs)
        self.new = ConversionGraph(graph.name, graph.opset)
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
        inputs, outputs = mode.remapped.inputs or (), mode.remapped.outputs or ()
        read = tuple(
            self._read(name, order) if name else ""
            for name, order in zip(one.op.inputs, inputs, strict=True)
        )
        names, shapes = list[str](), list[Shape | None]()
        for name, order, shape in zip(one.op.outputs, outputs, one.op.output_shapes, strict=True):
            new = name
            if name:
                frame = self.values.frame[name]
                form = frame if order is None else tuple(frame[i] for i in order)
                new = self._given(self.values.number[name], form, name)
            names.append(new)
            shapes.append(shape if order is None or shape is None else _permuted(shape, order))
        changed = Op(
            one.op.type,
            mode.remapped.attributes,
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
        free = [n for n in self.values.every[number].tensors if n in self.ends]
        if self.free_io and free:
            found = self.names.take(name if name in free else free[0])
            self._free(found, form)
        else:
            found = self.names.of(number, form, name)
        self.laid[number].add(form, found)
        return found

    def _free(self, name: str, form: Form) -> None:
        frame = self.values.frame[name]
        if form != frame:
            self.freed[name] = tuple(map(frame.index, form))

    def outputs(self) -> None:
        """Give back the graph's outputs, under their names."""
        for name in self.old.outputs:
            if name not in self.new.tensors:
                number, form = self.values.number[name], self.values.frame[name]
                if self.free_io and self.laid[number].forms:
                    form = self._whole(number)
                    self._free(name, form)
                found = self._materialised(number, form, name)
                if found != name:
                    self._insert("Identity", found, {}, name, self.new.tensors[found].shape)
            self.new.output(name)

    def _read(self, name: str, order: Permutation | None) -> str:
        number, frame = self.values.number[name], self.values.frame[name]
        if order is None:
            return self._materialised(number, frame, name)
        front = len(order) - len(frame)
        form = tuple(-1 if axis < front else frame[axis - front] for axis in order)
        return self._materialised(number, form, name)

    def _whole(self, number: int) -> Form:
        """Return the form in which a value came about, without axes of size 1 that were added."""
        laid = self.laid[number]
        order = order_of(laid.forms[0], laid.shape)
        return next((f for f in laid.forms if -1 not in f), spread(order, laid.shape))

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
            source = laid.forms[0]
            # All axes are moved at once; those of size 1 that are added come afterwards.
            whole = form if -1 not in form else spread(order_of(form, value.shape), value.shape)
            perm = tuple(map(source.index, whole))
            name = self._moved(number, source, whole, "Transpose", {"perm": perm}, wanted)
            if laid.name(form) is not None:
                return name
            source = whole
        name = ""
        for step in moves(source, form, value.shape):
            name = self._moved(number, source, step.form, step.type, step.attributes, wanted)
            source = step.form
        return name

    def _moved(
        self,
        number: int,
        source: Form,
        form: Form,
        type: str,
        attributes: Mapping[str, object],
        wanted: str,
    ) -> str:
        laid = self.laid[number]
        before = laid.name(source)
        assert before is not None
        existing = laid.name(form)
        if existing is not None:
            return existing
        name = self.names.of(number, form, wanted)
        self._insert(type, before, attributes, name, laid.sizes(form))
        laid.add(form, name)
        return name

    def _insert(
        self,
        type: str,
        source: str,
        attributes: Mapping[str, object],
        name: str,
        shape: Shape | None,
    ) -> None:
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

    def _constant(self, number: int, form: Form, wanted: str) -> str:
        value = self.values.every[number]
        tensor, laid = self.old.tensors[value.root], self.laid[number]
        name = self.names.of(number, form, wanted)
        shape = None if tensor.shape is None else laid.sizes(form)
        self.new.constant(name, shape, _arranged(tensor.layout, form), tensor.element_bytes)
        laid.add(form, name)
        whole = tuple(range(len(value.shape)))
        if name != value.root or same(form, value.shape) != same(whole, value.shape):
            added = form.count(-1)
            new = iter(range(added))
            order = tuple(next(new) if axis < 0 else axis + added for axis in form)
            self.relaid[name] = Relaid(
                value.root, (1,) * added + value.shape if added else None, order
            )
        return name


def _permuted(shape: Shape, order: Permutation) -> Shape:
    return tuple(shape[i] for i in order)


def _arranged(layout: Layout, form: Form) -> Layout:
    """Return the layout of a tensor in another form."""
    if layout.undefined or form == tuple(range(len(layout.dims))):
        return layout
    added = Dim((Block(ANY),))
    return Layout(tuple(layout.dims[a] if a >= 0 else added for a in form), layout.dialect)
