"""The graph with its ops in chosen modes: transforms and constants are added where needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from layoutopt.conversion.graph import HELD, ConversionGraph, ConversionTensor
from layoutopt.conversion.modes import Mode
from layoutopt.conversion.result import TransformedConstant
from layoutopt.conversion.rules.op import Op, Shape
from layoutopt.conversion.rules.registry import operator_of
from layoutopt.conversion.values import Values
from layoutopt.layout.factors import (
    OPEN,
    AxisFactor,
    Form,
    Order,
    TransformStep,
    dim_size,
    elements_of,
    has_factors,
    is_group,
    is_permutation,
    is_whole,
    items_of,
    open_sizes,
    order_of,
    padded_axes,
    renamed,
    same,
    sizes_of,
    spread,
    steps,
    view,
    whole_axes,
)
from layoutopt.layout.layout import ANY, Block, Dim, Layout
from layoutopt.layout.permutations import Permutation

SMALL = 1024
"""Constants of up to so many elements are stored in each shape that is read, not reshaped."""


class TensorNames:
    """Names that are taken, those of the given graph first, and those that are to come."""

    def __init__(self, graph: ConversionGraph, values: Values, orders: Mapping[int, Order]) -> None:
        self._values, self._orders = values, orders
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
        any; else one that tells how the tensor wanted is permuted.  An output whose order is chosen
        gives its name to no other.
        """
        value = self._values.every[number]
        own, frame = same(form, value.shape), self._values.frame
        order = order_of(form, value.shape)
        chosen = self._orders.get(number, order) == order or value.kind == "input"
        equal = [
            name
            for name in value.tensors
            if name not in self._given
            and same(frame[name], value.shape) == own
            and (chosen or name not in self._outputs)
        ]
        equal.sort(key=lambda name: (name not in self._outputs, name != wanted))
        found = equal[0] if equal else self._new(value.root, form)
        self._given.add(found)
        return found

    def new(self, name: str) -> str:
        """Return a name of a tensor that is not taken, like one that is wished for."""
        found = unused(name, self._known)
        self._given.add(found)
        return found

    def op(self, name: str) -> str:
        """Return a name of an op that is not taken."""
        return unused(name, self._ops)

    def _new(self, root: str, form: Form) -> str:
        if is_whole(form):
            mark = "" if all(axis < 10 for axis in form) else "_"
            how = "reshaped" if -1 in form else f"to_{mark.join(map(str, form))}"
        else:
            items = (i for i in items_of(form) if i != -1)
            parts = (
                f"{i.axis}x{'n' if i.size == OPEN else i.size}"
                if isinstance(i, AxisFactor)
                else f"{i}"
                for i in items
            )
            how = f"parts_{'_'.join(parts)}"
        return unused(f"{root}_{how}", self._known)


def unused(name: str, taken: set[str]) -> str:
    """Return a name like the one wished for that is not taken, and remember that it is."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found


@dataclass
class ValueForms:
    """The forms in which a value is there."""

    shape: Shape
    forms: list[Form] = field(default_factory=list)  # in the order in which they came about
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


@dataclass(frozen=True)
class FormStep:
    """An op that takes a value from one form to another."""

    # `type`, `attributes`: what it is; all but `Transpose`, `Pad` and `Slice` move nothing
    type: str
    attributes: Mapping[str, Any]
    form: Form


def ops_of(source: Form, steps: Iterable[TransformStep], shape: Shape) -> Iterator[FormStep]:
    """Yield the ops of ONNX that take a value from one form to another.

    Steps are those of :func:`~layoutopt.layout.transform.steps`.  A Reshape whose shape cannot be
    written down is a Squeeze and an Unsqueeze: axes of size 1 are taken away, and added.
    """
    for step in steps:
        before, target = sizes_of(source, shape), step.form
        if step.kind == "permute":
            yield FormStep("Transpose", {"perm": step.numbers}, target)
        elif step.kind in ("pad", "crop"):
            changed = [i for i, size in enumerate(step.numbers) if size != before[i]]
            if step.kind == "pad":
                pairs = zip(step.numbers, before, strict=True)
                ends = [0 if n == m else int(n or 0) - int(m or 0) for n, m in pairs]
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

    Beside a copied size, which may be 0, none is left open by -1.  A size of 0 would be a copied
    one, and is left open.
    """
    found: list[int] = []
    for i, dim in enumerate(target):
        size = dim_size(dim, shape)
        if isinstance(size, int):
            found.append(size or -1)
        else:
            copied = i < len(source) and source[i] == dim and not is_group(dim)
            found.append(0 if copied else -1)
    return tuple(found) if found.count(-1) < (1 if 0 in found else 2) else None


PADDING = ("Pad", "Slice")
"""Types of ops that pad blocks and cut padding off."""


@dataclass(frozen=True)
class MovedValue:
    """Effect of a transpose of the new graph."""

    value: int  # the number of the value that it moves
    source: Form  # `source`, `target`: its forms before and after
    target: Form


def arranged(layout: Layout, form: Form) -> Layout:
    """Return the layout of a tensor in another form."""
    if layout.undefined or form == tuple(range(len(layout.dims))):
        return layout
    added = Dim((Block(ANY),))
    dims = (layout.dims[d] if isinstance(d, int) and d >= 0 else added for d in form)
    return Layout(tuple(dims), layout.dialect)


VECTOR_RANKS = {(1, 0), (1, 1)}
"""Ranks of what a Gather reads where it picks one or several entries of a vector."""


def _scopes(
    graph: ConversionGraph, values: Values, modes: Mapping[str, Mode], orders: Mapping[int, Order]
) -> list[str]:
    """Return for each value the body in which it is transformed.

    That is where it comes about; or, of bodies inside that run once at most, the innermost one that
    holds all ops that need it in another form.
    """
    homes = _first_forms(values, orders)
    paths, once, made = {"": [""]}, set[str](), dict[int, set[Form]]()
    taken: list[tuple[str, str, Form | None]] = [(name, "", None) for name in graph.outputs]
    for op in reversed(graph.ops):  # outer ones first
        if op.name not in modes:
            continue
        scopes = [op.scope] * len(op.inputs)
        for body, _, back in op.places():
            paths[body.scope] = [*paths[op.scope], body.scope]
            once.update([body.scope] if body.rounds == 1 else [])
            scopes[back.start : back.stop] = [body.scope] * len(back)
        taken += zip(op.inputs, scopes, modes[op.name].inputs, strict=True)
        for name, own in zip(op.outputs, modes[op.name].outputs, strict=True):
            if name:
                made.setdefault(values.number[name], set()).add(_form(values, name, own))
    homes.update(made)
    takers: list[list[list[str]]] = [[] for _ in values.every]
    for number in orders.keys() & {values.number[name] for name in graph.outputs}:
        takers[number].append(paths[""])
    for name, scope, own in taken:
        if name and _form(values, name, own) not in homes[values.number[name]]:
            takers[values.number[name]].append(paths[scope])
    found = []
    for value, every in zip(values.every, takers, strict=True):
        path = paths[graph.tensors[value.root].scope]
        found.append(path[-1])
        for inner in zip(*(other[len(path) :] for other in every), strict=False):
            if len({*inner}) > 1 or inner[0] not in once:
                break
            found[-1] = inner[0]
    return found


def _form(values: Values, name: str, own: Form | None) -> Form:
    """Return a form of a tensor as one of its value, None: as it is written."""
    value, frame = values.of(name)
    return same(frame if own is None else renamed(own, frame), value.shape)


def _first_forms(values: Values, orders: Mapping[int, Order]) -> dict[int, set[Form]]:
    """Return the form of each value as it is written, or as it comes where that is free."""
    return {
        number: {
            spread(orders[number], value.shape)
            if number in orders
            else _form(values, value.root, None)
        }
        for number, value in enumerate(values.every)
    }


def with_few_reshapes(
    graph: ConversionGraph, values: Values, modes: Mapping[str, Mode], orders: Mapping[int, Order]
) -> dict[str, Mode]:
    """Return modes of the same orders that need few reshapes of axes of size 1.

    Ops choose in the order of the graph: the mode for which the fewest operands, and outputs of the
    graph, have to be reshaped.  Ops of several results keep theirs, as each might be reshaped.
    """
    there: dict[int, set[Form]] = {n: set() for n in range(len(values.every))}
    first = _first_forms(values, orders)
    there |= {n: first[n] for n, value in enumerate(values.every) if value.kind == "input"}
    outputs, chosen = set(graph.outputs), dict(modes)

    def forms(names: Iterable[str], own: Iterable[Form | None]) -> list[tuple[str, Form]]:
        pairs = zip(names, own, strict=True)
        return [(name, _form(values, name, form)) for name, form in pairs if name]

    def reshaped(op: Op, mode: Mode) -> int:
        read = {(values.number[n], form) for n, form in forms(op.inputs, mode.inputs)}
        missing = (n for n, form in read if form not in there[n])
        back = (n for n, form in forms(op.outputs, mode.outputs) if form != _form(values, n, None))
        return sum(values.every[n].kind != "constant" for n in missing) + len(outputs & {*back})

    def add(names: Iterable[str], own: Iterable[Form | None]) -> None:
        for name, form in forms(names, own):
            there[values.number[name]].add(form)

    ops = [op for op in graph.ops if op.name in modes]
    for op in ops:
        if op.bodies:  # its results hold the inputs of its bodies, whose ops stand before it
            add(op.outputs, modes[op.name].outputs)
    for op in ops:
        mode = modes[op.name]
        if len(op.outputs) == 1 and mode.alike and reshaped(op, mode):
            mode = chosen[op.name] = min((mode, *mode.alike), key=partial(reshaped, op))
        add((*op.inputs, *op.outputs), mode.forms)
    return chosen


class RewrittenGraph:
    """A graph with its ops in chosen modes.

    Transforms stand before the first op that needs them, and serve all.  ``modes`` are those of
    the given graph's ops, without transposes, by name; ``orders`` are those chosen of inputs and
    outputs.  With ``free_io`` other outputs are given back as they come about, without as they are
    written.
    """

    def __init__(
        self,
        graph: ConversionGraph,
        values: Values,
        modes: Mapping[str, Mode],
        orders: Mapping[int, Order],
        free_io: bool,
    ) -> None:
        self.old, self.values, self.orders = graph, values, orders
        self.modes = modes = with_few_reshapes(graph, values, modes, orders)
        self.new = ConversionGraph(graph.name, graph.opset)
        self.names = TensorNames(graph, values, orders)
        self.scopes = _scopes(graph, values, modes, orders)  # where each value is transformed
        # names of the given graph's transposes, by what they make
        self.transposes = {op.outputs[0]: op.name for op in graph.ops if op.name not in modes}
        self.laid: list[ValueForms] = [ValueForms(value.shape) for value in values.every]
        self.moved: dict[str, MovedValue] = {}  # what transposes of the new graph do, by name
        # For each op that pads blocks, or cuts padding off, its transpose; "" without one.
        self.padding: dict[str, str] = {}
        # Of tensors that are padded, or whose open axis is cut: the shape that counts.
        self.narrow: dict[str, Shape] = {}
        self.relaid: dict[str, TransformedConstant] = {}
        # Vectors that a Gather is to make once they are read: of which vector, which entries.
        self.waiting: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._gathered: dict[tuple[str, tuple[int, ...]], str] = {}
        outputs = graph.outputs if free_io else []
        self.free = {name for name in outputs if values.of(name)[0].kind != "constant"}
        # how inputs and outputs are permuted that come in another layout
        self.freed: dict[str, Permutation] = {}
        for name, tensor in graph.tensors.items():
            if tensor.kind == "input":
                self._input(name, tensor)
        self.given: dict[str, str] = {}  # inputs of bodies, by their names in the given graph
        for op in graph.ops:
            for body, places, _ in op.places():
                for n in places:
                    size = graph.tensors[op.outputs[n]].element_bytes
                    name, shape = self._result(op, n)
                    self.given[op.outputs[n]] = self.new.body_input(name, shape, size, body.scope)
        for op in graph.ops:
            if op.name in modes:
                self._op(op)
        self._outputs()

    def _input(self, name: str, tensor: ConversionTensor) -> None:
        number = self.values.number[name]
        shape = self.values.every[number].shape
        form: Form = tuple(range(len(shape)))
        order = self.orders.get(number)
        if order is not None and order != order_of(form, shape):
            form = spread(order, shape)
            self._free(name, form)
        sizes = None if tensor.shape is None else sizes_of(form, shape)
        self.new.input(name, sizes, arranged(tensor.layout, form), tensor.element_bytes)
        self.names.take(name)
        self.laid[number].add(form, name)

    def _op(self, op: Op) -> None:
        """Add an op in its mode."""
        mode = self.modes[op.name]
        attributes, read = self._operands(op, mode)
        results = [self._result(op, n) for n in range(len(op.outputs))]
        changed = replace(
            op,
            type=mode.type or op.type,
            attributes=attributes,
            inputs=read,
            outputs=tuple(name for name, _ in results),
            input_shapes=tuple([self.new.tensors[n].shape if n else None for n in read]),
            output_shapes=tuple(shape for _, shape in results),
            layouts=mode.layouts,
        )
        sizes = [self.old.tensors[n].element_bytes if n else None for n in op.outputs]
        if changed.type == "MatMul" and len(read) == 3:
            name, shapes = self.names.new(f"{op.outputs[0]}_product"), changed.input_shapes
            product = replace(changed, inputs=read[:2], outputs=(name,), input_shapes=shapes[:2])
            self.new.add(product, sizes)
            shapes = (*changed.output_shapes, shapes[2])
            changed = replace(changed, type="Add", inputs=(name, read[2]), input_shapes=shapes)
            changed = replace(changed, name=self.names.op(f"add_{name}"))
        self.new.add(changed, sizes)

    def _result(self, op: Op, n: int) -> tuple[str, Shape | None]:
        """Return the name of an op's result in its mode, and its shape."""
        name, mode = op.outputs[n], self.modes[op.name]
        own, shape = mode.outputs[n], op.output_shapes[n]
        if name in self.given:
            return self.given[name], self.new.tensors[self.given[name]].shape
        if name:
            number, frame = self.values.number[name], self.values.frame[name]
            form = frame if own is None else renamed(own, frame)
            name = self._given(number, form, name)
            self.note(name, number, form)
            picked = mode.entries.get(len(op.inputs) + n)
            if picked is not None:
                waiting, name = name, self.names.new(f"{op.outputs[n]}_entries")
                self.waiting[waiting] = name, picked
                own, shape = None, None
        return name, shape if own is None or shape is None else sizes_of(own, shape)

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
                read.append(self.entries(vector, picked, name))
        return attributes, tuple(read[n] for n in mode.operands or range(len(read)))

    def _picked(self, op: Op, mode: Mode) -> tuple[Mapping[str, Any], tuple[str, ...]] | None:
        """Return a Gather of entries of a vector that waits to be made, as one of its source."""
        indices = mode.attributes.get("indices")
        if op.type != "Gather" or indices is None or (op.rank(0), op.rank(1)) not in VECTOR_RANKS:
            return None
        name = self.laid[self.values.number[op.inputs[0]]].name((0,))
        if name not in self.waiting:
            return None
        source, first = self.waiting[name]
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
        free = [] if self.new.tensors.keys() & free else free  # another op gives it as well
        if free and self._fits(number, form):
            found = self.names.take(name if name in free else free[0])
            self._free(found, form)
        else:
            found = self.names.of(number, form, name)
        self.laid[number].add(form, found)
        return found

    def _fits(self, number: int, form: Form) -> bool:
        """Return whether a free output may be given back in a form of its value."""
        shape = self.values.every[number].shape
        order = order_of(form, shape)
        return is_permutation(form, shape) and self.orders.get(number, order) == order

    def _free(self, name: str, form: Form) -> None:
        frame, axes = self.values.frame[name], whole_axes(form)
        if axes != frame:
            self.freed[name] = tuple(map(frame.index, axes))

    def _outputs(self) -> None:
        """Give back the graph's outputs, under their names."""
        for name in self.old.outputs:
            if name not in self.new.tensors:
                number = self.values.number[name]
                form: Form = self.values.frame[name]
                laid = self.laid[number]
                if name in self.free and laid.forms:  # as it came about, a dimension for each axis
                    order = self.orders.get(number, order_of(laid.forms[0], laid.shape))
                    fitting = (form for form in laid.forms if self._fits(number, form))
                    form = next(fitting, spread(order, laid.shape))
                    self._free(name, form)
                found = self.materialised(number, form, name)
                if found != name:
                    self.insert("Identity", found, {}, name, self.new.tensors[found].shape)
            self.new.output(name)

    def _read(self, name: str, own: Form | None) -> str:
        number, frame = self.values.number[name], self.values.frame[name]
        return self.materialised(number, frame if own is None else renamed(own, frame), name)

    def materialised(self, number: int, form: Form, wanted: str) -> str:
        """Return the name of a value in a form; what is missing is added."""
        laid, value = self.laid[number], self.values.every[number]
        found = laid.name(form)
        if found is not None:
            return self._made(found)
        source = laid.like(form)
        count = elements_of(value.shape)
        small = count is not None and count <= SMALL
        if value.kind == "constant" and (source is None or small):
            return self._constant(number, form, wanted)
        if source is None:
            return self._transformed(number, form, wanted)
        name = self._made(laid.name(source) or "")
        for step in ops_of(source, view(source, form, value.shape), value.shape):
            name = self._step(number, name, step, wanted)[0]
        return name

    def entries(self, name: str, indices: tuple[int, ...], wanted: str) -> str:
        """Return the name of a vector of entries, by their indices, of another one.

        The other one may wait to be made of a third; ``wanted`` is what its name should tell of.
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
        scope = self.new.tensors[source].scope
        self.insert("Gather", source, attributes, name, (len(indices),), scope)
        self._gathered.setdefault((source, indices), name)

    def _transformed(self, number: int, form: Form, wanted: str) -> str:
        """Return the name of a value in a form of another order than it has."""
        laid, shape = self.laid[number], self.values.every[number].shape
        source = laid.forms[0]
        how, name = MovedValue(number, source, form), self._made(laid.name(source) or "")
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
        sizes, scope = sizes_of(step.form, laid.shape), self.scopes[number]
        op = self.insert(step.type, before, step.attributes, name, sizes, scope)
        self.note(name, number, step.form)
        if not passing:
            laid.add(step.form, name)
        return name, op

    def note(self, name: str, number: int, form: Form) -> None:
        """Keep the shape that counts of a tensor that is padded, or whose size is not known."""
        shape = self.values.every[number].shape
        if has_factors(form) and (padded_axes(form, shape) or open_sizes(shape)):
            self.narrow[name] = shape

    def insert(
        self,
        type: str,
        source: str,
        attributes: Mapping[str, object],
        name: str,
        shape: Shape | None,
        scope: str = "",
    ) -> str:
        """Add an op of one operand and result, and return its name.

        A transpose that makes the same tensor as one of the given graph has the same name.
        """
        kept = self.transposes.get(name) if type == "Transpose" else None
        op = Op(
            type,
            dict(attributes),
            (source,),
            (name,),
            output_shapes=(shape,),
            name=kept or self.names.op(f"{type.lower()}_{name}"),
            opset=self.old.opset,
            scope=scope,
        )
        self.new.add(op, [self.new.tensors[source].element_bytes])
        return op.name

    def _constant(self, number: int, form: Form, wanted: str) -> str:
        value = self.values.every[number]
        tensor, laid = self.old.tensors[value.root], self.laid[number]
        name = self.names.of(number, form, wanted)
        shape = None if tensor.shape is None else sizes_of(form, value.shape)
        layout = arranged(tensor.layout, form)
        self.new.constant(name, shape, layout, tensor.element_bytes, tensor.scope)
        laid.add(form, name)
        whole = tuple(range(len(value.shape)))
        if name != value.root or same(form, value.shape) != same(whole, value.shape):
            self.relaid[name] = TransformedConstant(value.root, form, value.shape)
        return name
