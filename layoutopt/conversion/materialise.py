"""Values in the forms that ops need: transforms and constants are added where they are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.result import Relaid
from layoutopt.conversion.rules.op import Op, Shape
from layoutopt.conversion.values import Values
from layoutopt.layout.factors import (
    AxisFactor,
    Form,
    Order,
    TransformStep,
    dim_size,
    has_factors,
    is_group,
    is_whole,
    items_of,
    order_of,
    padded_axes,
    same,
    sizes_of,
    steps,
    view,
)
from layoutopt.layout.layout import ANY, Block, Dim, Layout


class TensorNames:
    """Names that are taken, and those that are to come.

    Parameters
    ----------
    graph
        The graph as it is given; none of its names is given to anything else.
    values
        Its values.
    """

    def __init__(self, graph: ConversionGraph, values: Values) -> None:
        self._values = values
        self._outputs = set(graph.outputs)
        self._known = set(graph.tensors)
        self._ops = {op.name for op in graph.ops}
        self._given: set[str] = set()

    def take(self, name: str) -> str:
        """Return a name of the graph that is given to a tensor."""
        self._given.add(name)
        return name

    def of(self, number: int, form: Form, wanted: str) -> str:
        """Return the name of a value in a form.

        It is that of a tensor of the graph that is the same: of an output, or the one wanted, or
        any; else one that tells how the tensor wanted is permuted.
        """
        value = self._values.every[number]
        own, frame = same(form, value.shape), self._values.frame
        equal = [
            name
            for name in value.tensors
            if name not in self._given and same(frame[name], value.shape) == own
        ]
        equal.sort(key=lambda name: (name not in self._outputs, name != wanted))
        found = equal[0] if equal else self._new(value.root, form)
        self._given.add(found)
        return found

    def new(self, name: str) -> str:
        """Return a name of a tensor that is not taken, like one that is wished for."""
        found = _unused(name, self._known)
        self._given.add(found)
        return found

    def op(self, name: str) -> str:
        """Return a name of an op that is not taken."""
        return _unused(name, self._ops)

    def _new(self, root: str, form: Form) -> str:
        if is_whole(form):
            mark = "" if all(axis < 10 for axis in form) else "_"
            how = "reshaped" if -1 in form else f"to_{mark.join(map(str, form))}"
        else:
            items = (i for i in items_of(form) if i != -1)
            parts = (f"{i.axis}x{i.size}" if isinstance(i, AxisFactor) else f"{i}" for i in items)
            how = f"parts_{'_'.join(parts)}"
        return _unused(f"{root}_{how}", self._known)


def _unused(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found


@dataclass
class Laid:
    """The forms in which a value is there.

    Parameters
    ----------
    shape
        The value's shape.
    forms
        In the order in which they came about.
    """

    shape: Shape
    forms: list[Form] = field(default_factory=list)
    _names: dict[Form, str] = field(default_factory=dict)
    _by_order: dict[Order, Form] = field(default_factory=dict)

    def name(self, form: Form) -> str | None:
        """Return the name of the tensor of a form, or of one that is the same, if there is one."""
        return self._names.get(same(form, self.shape))

    def like(self, form: Form) -> Form | None:
        """Return a form that differs in axes of size 1 only, if there is one."""
        return self._by_order.get(order_of(form, self.shape))

    def add(self, form: Form, name: str) -> None:
        """Say that a tensor has a form."""
        self.forms.append(form)
        self._names.setdefault(same(form, self.shape), name)
        self._by_order.setdefault(order_of(form, self.shape), form)

    def sizes(self, form: Form) -> Shape:
        """Return the shape of a tensor of a form."""
        return sizes_of(form, self.shape)


@dataclass(frozen=True)
class FormStep:
    """An op that takes a value from one form to another.

    Parameters
    ----------
    type, attributes
        What it is; all but ``Transpose``, ``Pad`` and ``Slice`` move nothing.
    form
        The form afterwards.
    """

    type: str
    attributes: Mapping[str, Any]
    form: Form


def ops_of(source: Form, steps: Iterable[TransformStep], shape: Shape) -> Iterator[FormStep]:
    """Yield the ops of ONNX that take a value from one form to another.

    A Reshape whose shape cannot be written down is a Squeeze and an Unsqueeze: axes of size 1 are
    taken away, and added.

    Parameters
    ----------
    source
        The form before.
    steps
        What is to be done, as :func:`~layoutopt.layout.transform.steps` has it.
    shape
        The value's shape.
    """
    for step in steps:
        before, target = sizes_of(source, shape), step.form
        if step.kind == "permute":
            yield FormStep("Transpose", {"perm": step.numbers}, target)
        elif step.kind in ("pad", "crop"):
            changed = [i for i, size in enumerate(step.numbers) if size != before[i]]
            if step.kind == "pad":
                ends = [0] * len(before)
                for i in changed:
                    ends[i] = int(step.numbers[i] or 0) - int(before[i] or 0)
                yield FormStep("Pad", {"pads": (*[0] * len(ends), *ends)}, target)
            else:
                ends = [int(step.numbers[i] or 0) for i in changed]
                cut = {"starts": (0,) * len(ends), "ends": tuple(ends), "axes": tuple(changed)}
                yield FormStep("Slice", cut, target)
        elif (written := _written(source, target, shape)) is not None:
            yield FormStep("Reshape", {"shape": written}, target)
        else:
            gone = tuple(i for i, size in enumerate(before) if size == 1)
            if gone:
                bare = tuple(dim for i, dim in enumerate(source) if i not in gone)
                yield FormStep("Squeeze", {"axes": gone}, bare)
            added = tuple(i for i, size in enumerate(step.numbers) if size == 1)
            if added:
                yield FormStep("Unsqueeze", {"axes": added}, target)
        source = target


def _written(source: Form, target: Form, shape: Shape) -> tuple[int, ...] | None:
    """Return a shape as Reshape takes it, None if it cannot be written.

    Beside a copied size, which may be 0, none is left open by -1.
    """
    found: list[int] = []
    for i, dim in enumerate(target):
        size = dim_size(dim, shape)
        if size == 0:
            return None
        if isinstance(size, int):
            found.append(size)
        else:
            copied = i < len(source) and source[i] == dim and not is_group(dim)
            found.append(0 if copied else -1)
    return tuple(found) if found.count(-1) < (1 if 0 in found else 2) else None


PADDING = ("Pad", "Slice")
"""Types of ops that pad blocks and cut padding off."""


@dataclass(frozen=True)
class Moved:
    """Effect of a transpose of the new graph.

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
        for step in ops_of(source, view(source, form, value.shape), value.shape):
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
        ops = list(ops_of(source, steps(source, form, shape), shape))
        alone = any(step.type in PADDING for step in ops)  # padded tensors are not shared
        padding, transposing = "", ""
        for n, step in enumerate(ops):
            name, op = self._step(number, name, step, wanted, alone and n + 1 < len(ops))
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
        if has_factors(form) and padded_axes(form, shape):
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
            self.relaid[name] = Relaid(value.root, form, value.shape)
        return name


def arranged(layout: Layout, form: Form) -> Layout:
    """Return the layout of a tensor in another form."""
    if layout.undefined or form == tuple(range(len(layout.dims))):
        return layout
    added = Dim((Block(ANY),))
    dims = (layout.dims[d] if isinstance(d, int) and d >= 0 else added for d in form)
    return Layout(tuple(dims), layout.dialect)
