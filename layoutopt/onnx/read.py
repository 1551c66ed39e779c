"""Networks from ``.onnx`` files as unwinding graphs, and their training steps.

Shapes are declared, or measured in one run.  Each node enters by its op type.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib.resources import files as resources
from pathlib import Path

import numpy as np

from layoutopt.base.errors import InputError, errors_at
from layoutopt.base.files import parse_toml, read_utf8
from layoutopt.base.numbers import exact_decimal
from layoutopt.conversion.rules.builder import Attractions, Build, GraphBuilder, Node, Use
from layoutopt.conversion.rules.gradients import flat, opaque
from layoutopt.conversion.rules.registry import OPERATORS, build_of, type_facts
from layoutopt.conversion.rules.unwinding import barrier, together
from layoutopt.graphs.builder import all_or_nothing
from layoutopt.graphs.ops import Shape
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from layoutopt.onnx.attributes import op_of
from layoutopt.onnx.protobuf import (
    bodies,
    captured,
    copied,
    load,
    load_model,
    onnx,
    set_items,
    title,
    type_of,
    versions_of,
)
from layoutopt.onnx.running import run_at_random
from layoutopt.onnx.shapes import ShapedModel, infer, set_dims, with_known_shapes
from layoutopt.onnx.types import set_shape, shape_of
from layoutopt.onnx.validate import (
    as_runtimes_read,
    check_nodes,
    check_version,
    inlined,
    sort_nodes,
)
from layoutopt.onnx.weights import sparse_value


@dataclass(frozen=True, eq=False)
class AddedNode:
    """A node that has been added."""

    proto: onnx.NodeProto  # the node in the file
    node: Node  # what its rule was given
    outputs: Sequence[Tensor | None]  # None for those that nobody reads


class OnnxGraphBuilder:
    """The graph of a network, as it grows; ``attractions`` are the pairs' values."""

    def __init__(self, shaped: ShapedModel, graph: Graph, attractions: Attractions) -> None:
        self.shaped = shaped
        self.network = shaped.model.graph
        outside = (*self.network.input, *self.network.initializer)
        self.roots = {x.name: shaped.shapes[x.name] for x in outside if x.name in shaped.shapes}
        names = {name for node in self.network.node for name in node.output}
        self.unwinding = GraphBuilder(graph, attractions, names | set(self.roots))
        self.versions = versions_of(shaped.model)
        self.tensors: dict[str, Tensor] = {}
        self.wanted: set[str] = set()
        self.live: list[onnx.NodeProto] = []
        self.placed: list[AddedNode] = []
        self.misfits: Counter[str] = Counter()

    def build(self) -> None:
        """Add the network's inputs and initialisers as sinks, then its nodes.

        What no output of the network depends on as data is left out.  Raises ``InputError`` if a
        node has no known output shape, or does not fit its operands.
        """
        self.live, self.wanted = live_nodes(self.shaped)
        for name, shape in self.roots.items():
            if name in self.wanted:
                self.tensors[name] = self.unwinding.sink(name, shape)
        for node in self.live:
            with errors_at(title(node)):
                self._add(node)

    def _add(self, node: onnx.NodeProto) -> None:
        names = [name if name in self.wanted else "" for name in node.output]
        shapes = [self._shape(name) if name else None for name in names]
        op = replace(op_of(node, self.versions, self.shaped.values), outputs=tuple(names))
        inside = tuple(self.tensors[name] for name in sorted(captured(node)))
        inputs = [self.tensors[name] if name else None for name in _data(self.shaped, node)]
        ready = Node(op, tuple(inputs), tuple(shapes), inside)
        outputs = self._built(node, ready)
        self.placed.append(AddedNode(node, ready, outputs))
        self.tensors.update(
            (name, x) for name, x in zip(names, outputs, strict=True) if name and x is not None
        )

    def _built(self, node: onnx.NodeProto, ready: Node) -> Sequence[Tensor | None]:
        """Return the outputs of a node: by its rule, or of a barrier if sizes are taken for 1."""
        build, guessed = build_of(type_of(node)), self.shaped.guessed
        if not guessed:
            return _follow(build, self.unwinding, ready)
        if guessed.isdisjoint(node.output):
            by_rule = all_or_nothing(lambda _: _follow(build, self.unwinding, ready))
            try:
                return by_rule(self.unwinding.graph)
            except InputError:  # other sizes fit
                self.misfits[type_of(node)] += 1
        return _follow(barrier, self.unwinding, ready)

    def _shape(self, name: str) -> Shape:
        shape = self.shaped.shapes.get(name)
        if shape is not None:
            return shape
        if name in self.shaped.others:
            raise InputError(f"{name!r} is no tensor, but a sequence, map or optional")
        why = "; ".join(filter(None, (self.shaped.why(), self.shaped.unmeasured)))
        raise InputError(f"the shape of {name!r} cannot be inferred" + (f" ({why})" if why else ""))


def _follow(build: Build, builder: GraphBuilder, node: Node) -> Sequence[Tensor | None]:
    """Return the outputs that a rule adds, of the shapes that they must have."""
    made = build(builder, node)
    outputs = [made] if isinstance(made, Tensor) else made
    for name, shape, x in zip(node.op.outputs, node.shapes, outputs, strict=True):
        if name and x is not None and x.shape != shape:
            raise InputError(
                f"{name!r} has shape {list(shape or ())}, {list(x.shape)} follows from the operands"
            )
    return outputs


def live_nodes(shaped: ShapedModel) -> tuple[list[onnx.NodeProto], set[str]]:
    """Return the nodes that outputs depend on as data, in order, and the names that these read."""
    live: list[onnx.NodeProto] = []
    wanted = {x.name for x in shaped.model.graph.output}
    for node in reversed(shaped.model.graph.node):
        if not wanted.isdisjoint(node.output):
            live.append(node)
            wanted.update(filter(None, _data(shaped, node)), captured(node))
    return live[::-1], wanted


def _data(shaped: ShapedModel, node: onnx.NodeProto) -> list[str]:
    """Return the names of a node's inputs, empty ones for those that it does not read as data."""
    facts = type_facts(type_of(node))
    known = {i for i in facts.structural if i < len(node.input) and node.input[i] in shaped.values}
    skipped = known.union(facts.unread)
    return ["" if i in skipped else name for i, name in enumerate(node.input)]


STATES = {"sgd": (), "momentum": ("momentum",), "adam": ("m", "v")}
"""Optimisers, and the names of the states that each keeps for every trained tensor."""


class Trainer:
    """The backward pass of a network that has been built, as it grows."""

    def __init__(self, builder: OnnxGraphBuilder) -> None:
        self.builder = builder
        self.unwinding = builder.unwinding
        self.floats = _floats(builder.network)
        self.trained = [
            (name, builder.tensors[name])
            for name in builder.shaped.weights
            if name in self.floats and name in builder.tensors and builder.tensors[name].shape
        ]
        self.flowing = {x.index for _, x in self.trained}
        self.found: dict[int, list[Tensor]] = {}
        self.opaque: Counter[str] = Counter()

    def build(self, training: str) -> None:
        """Add the backward pass, and the update of every tensor that gets a gradient.

        Raises ``InputError`` if there is nothing to train, or a node does not fit its operands.
        """
        plans = [self._plan(placed) for placed in self.builder.placed]
        for name in dict.fromkeys(x.name for x in self.builder.network.output):
            y = self.builder.tensors[name]
            if y.index in self.flowing:
                own = self.unwinding.helper(name, "loss")
                self._note(y, self.unwinding.graph.fixed_point([y], y.shape, name=own))
        for placed, wanted in zip(reversed(self.builder.placed), reversed(plans), strict=True):
            with errors_at(title(placed.proto)):
                self._go_back(placed, wanted)
        learned = [(name, w) for name, w in self.trained if w.index in self.found]
        if not learned:
            raise InputError(
                "there is nothing to train: no output follows from a weight (an initialiser or "
                "Constant node of floating-point numbers with axes)"
            )
        for name, w in learned:
            self._update(name, w, STATES[training])

    def _plan(self, placed: AddedNode) -> tuple[int, ...]:
        """Return the positions of operands that need gradients, and say so of the outputs."""
        if type_facts(type_of(placed.proto)).gradient is flat:
            return ()
        wanted = tuple(
            i for i, x in self._learnable(placed) if x is not None and x.index in self.flowing
        )
        if wanted:
            self.flowing.update(y.index for y in self._differentiable(placed) if y is not None)
        return wanted

    def _learnable(self, placed: AddedNode) -> Iterator[tuple[int, Tensor | None]]:
        """Yield number and tensor of each operand that gradients may go to."""
        node, facts = placed.node, type_facts(type_of(placed.proto))
        barred = {*facts.structural, *facts.unread, *facts.unlearned}
        names = (*node.op.inputs, *sorted(captured(placed.proto)))
        for i, (name, x) in enumerate(zip(names, (*node.inputs, *node.captured), strict=True)):
            if i not in barred and name in self.floats:
                yield i, x

    def _differentiable(self, placed: AddedNode) -> Iterator[Tensor | None]:
        """Yield the outputs, ``None`` for those that have no gradients."""
        facts = type_facts(type_of(placed.proto))
        every = facts.all_differentiable or facts.gradient is None
        for i, (name, y) in enumerate(zip(placed.proto.output, placed.outputs, strict=True)):
            yield y if name in self.floats and (every or i == 0) else None

    def _go_back(self, placed: AddedNode, wanted: tuple[int, ...]) -> None:
        outputs = tuple(self._differentiable(placed)) if wanted else ()
        gradients = tuple(None if y is None else self._gradient(y) for y in outputs)
        if all(dy is None for dy in gradients):
            return
        rule = type_facts(type_of(placed.proto)).gradient
        if rule is None:
            self.opaque[type_of(placed.proto)] += 1
        use = Use(placed.node, outputs, gradients, wanted)
        for position, dx in (rule or opaque)(self.unwinding, use):
            self._note(use.operand(position), dx)

    def _note(self, x: Tensor, gradient: Tensor) -> None:
        self.found.setdefault(x.index, []).append(gradient)

    def _gradient(self, x: Tensor) -> Tensor | None:
        """Return the gradient of a tensor, once all that reads it has been gone back through."""
        found = self.found.get(x.index, [])
        if len(found) > 1:
            name = self.unwinding.helper(x.name, "gradient.sum")
            found[:] = [together(self.unwinding, name, found, "gradient_sum")]
        return found[0] if found else None

    def _update(self, name: str, w: Tensor, states: Sequence[str]) -> None:
        gradient = self._gradient(w)
        assert gradient is not None  # tensors without one are not learned
        kept = [
            self.unwinding.sink(self.unwinding.helper(name, state), w.shape) for state in states
        ]
        values = self.unwinding.attractions
        self.unwinding.graph.grow_optimizer_step(
            w,
            gradient,
            kept,
            weights_value=values["optimiser.weights"],
            states_value=values["optimiser.states"],
            name=self.unwinding.helper(name, "update"),
        )


def _weights(network: onnx.GraphProto) -> tuple[str, ...]:
    """Return the names of what may be weights: initialisers and Constant nodes, unless sparse.

    A constant that is filled to a shape that one of them gives stands for one: networks are handed
    on without their weights in this form.
    """
    names = [x.name for x in network.initializer]
    constants = (x for x in network.node if type_of(x) == "Constant" and sparse_value(x) is None)
    names += [node.output[0] for node in constants]
    own = set(names)
    filled = (x for x in network.node if type_of(x) == "ConstantOfShape" and x.input[0] in own)
    return (*names, *(node.output[0] for node in filled))


def _floats(network: onnx.GraphProto) -> set[str]:
    """Return the names of tensors of floating-point numbers."""
    kinds = (
        onnx.TensorProto.FLOAT,
        onnx.TensorProto.DOUBLE,
        onnx.TensorProto.FLOAT16,
        onnx.TensorProto.BFLOAT16,
    )
    values = (*network.input, *network.value_info, *network.output)
    found = {x.name for x in values if x.type.tensor_type.elem_type in kinds}
    return found | {x.name for x in network.initializer if x.data_type in kinds}


SECONDS = 20.0
"""Seconds that a run may take."""

MOST_ELEMENTS = 2**28
"""Elements of all tensors of known shape, above which a network is not run."""

ROUNDS = 20
"""So often are sizes of 1 taken where nothing is known, before what follows is inferred."""


def read_attractions(path: str | Path | None = None) -> Attractions:
    """Return the shipped values, some of them replaced by those of a user's TOML file.

    It has the form of the shipped ``attractions.toml``, and may hold any part of it.  Raises
    ``InputError`` if it cannot be read, names an entry that does not exist, or holds a value that
    is no finite number.
    """
    shipped = resources("layoutopt.onnx").joinpath("attractions.toml").read_bytes()
    values = _entries(shipped, "attractions.toml")
    if path is None:
        return values
    changes = _entries(read_utf8(Path(path)), str(path))
    for key in changes:
        if key not in values:
            raise InputError(f"there is no such entry; known: {', '.join(values)}", key, str(path))
    return values | changes


def _entries(raw: bytes, file: str) -> dict[str, Decimal]:
    """Return the entries of a TOML document by dotted key."""
    entries: dict[str, Decimal] = {}
    for table, members in parse_toml(raw, file, Decimal).items():
        if not isinstance(members, dict):
            raise InputError("must stand in a table, as in [matmul]", table, file)
        for key, value in members.items():
            place = f"{table}.{key}"
            if isinstance(value, str):  # "1.5" would be a number to exact_decimal
                raise InputError(f"value {value!r} is not a decimal number", place, file)
            with errors_at(place, file):
                entries[place] = exact_decimal(value)
    return entries


def sized(shaped: ShapedModel, whole: Callable[[], onnx.ModelProto]) -> ShapedModel:
    """Return a network with shapes for all tensors that have at least a rank.

    They are those of one run on random inputs if there is one; else sizes that nothing tells are
    taken for 1.  Its notes say so.  ``whole`` returns the same network with its weights and the
    sizes of its inputs.
    """
    unknown = _unknown(shaped)
    if not unknown:
        return shaped
    origins = listed(Counter(map(type_of, _origins(shaped, unknown))))
    try:
        found = _measured(shaped, whole, unknown | (_made(shaped) & shaped.declared))
    except InputError as error:
        return _guessed(replace(shaped, unmeasured=error.reason))
    note = f"shapes that are those of one run on random inputs, from these ops on: {origins}"
    return _guessed(replace(_with(shaped, found), notes=(*shaped.notes, note)))


def _guessed(shaped: ShapedModel) -> ShapedModel:
    """Return a network with sizes of 1 where tensors have a rank but no known shape."""
    counts: Counter[str] = Counter()
    for k in range(ROUNDS + 1):
        unknown = _unknown(shaped)
        ranked = _ranked(shaped, unknown)
        nodes = _origins(shaped, unknown) if k < ROUNDS else shaped.model.graph.node
        first = [node for node in nodes if not ranked.keys().isdisjoint(node.output)]
        if not first:
            break
        counts.update(map(type_of, first))
        names = {name for node in first for name in node.output}
        chosen = {name: ranked[name] for name in names & ranked.keys()}
        shaped = replace(_with(shaped, chosen), guessed=shaped.guessed | chosen.keys())
    if not counts:
        return shaped
    why = f" ({shaped.unmeasured})" if shaped.unmeasured else ""
    note = f"sizes that nothing tells, taken for 1{why}: {listed(counts)}"
    return replace(shaped, notes=(*shaped.notes, note))


def _unknown(shaped: ShapedModel) -> set[str]:
    """Return the tensors that matter whose shapes are not known."""
    return _made(shaped) - shaped.shapes.keys() - set(shaped.others)


def _made(shaped: ShapedModel) -> set[str]:
    nodes, wanted = live_nodes(shaped)
    return {name for node in nodes for name in node.output if name in wanted}


def _origins(shaped: ShapedModel, unknown: set[str]) -> list[onnx.NodeProto]:
    """Return the nodes that make tensors of unknown shape of those of known ones."""
    return [
        node
        for node in shaped.model.graph.node
        if not unknown.isdisjoint(node.output)
        and unknown.isdisjoint(node.input)
        and unknown.isdisjoint(captured(node))
    ]


def _ranked(shaped: ShapedModel, names: set[str]) -> dict[str, onnx.TypeProto]:
    """Return the types of those tensors that have a rank, with sizes of 1 where none is known."""
    found = {}
    graph = shaped.model.graph
    for value in (*graph.value_info, *graph.output):
        if value.name in names and value.type.tensor_type.HasField("shape"):
            kind = copied(value.type)
            set_shape(kind, tuple(n if isinstance(n, int) else 1 for n in shape_of(kind) or ()))
            found[value.name] = kind
    return found


def listed(counts: Mapping[str, int]) -> str:
    """Return names with how many there are of each, in one line."""
    return ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))


def _measured(
    shaped: ShapedModel, whole: Callable[[], onnx.ModelProto], names: set[str]
) -> dict[str, onnx.TypeProto]:
    """Return types of tensors as one run on random inputs makes them, or raise InputError."""
    if sum(int(np.prod(x, dtype=object)) for x in shaped.shapes.values()) > MOST_ELEMENTS:
        raise InputError("it is too large for a run that would tell them")
    model = whole()
    del model.graph.output[:]
    del model.graph.value_info[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in sorted(names))
    found = run_at_random(model, seconds=SECONDS, types=True)[1]
    return {
        name: onnx.helper.make_tensor_type_proto(
            onnx.helper.np_dtype_to_tensor_dtype(kind[0]), kind[1]
        )
        for name, kind in found.items()
        if kind is not None
    }


def _with(shaped: ShapedModel, kinds: Mapping[str, onnx.TypeProto]) -> ShapedModel:
    """Return a network with types of some more tensors, and what follows from these."""
    graph = shaped.model.graph
    kept = [value for value in graph.value_info if value.name not in kinds]
    set_items(graph.value_info, kept)
    outputs = {value.name: value for value in graph.output}
    for name, kind in kinds.items():
        value = outputs.get(name) or graph.value_info.add(name=name)
        value.type.CopyFrom(kind)
    new = with_known_shapes(shaped.model)
    return replace(shaped, model=new.model, shapes=new.shapes, values=new.values, others=new.others)


LOG = logging.getLogger(__name__)

OLDEST = 6
"""The first version of ONNX's own operator set that is read."""


@dataclass(frozen=True, eq=False)
class UnwindingModel:
    """A network as an unwinding problem."""

    graph: Graph
    # op types without a rule, which became barriers, with the number of their nodes; a type of
    # another domain than ONNX's own is written `domain::Type`
    unknown_ops: Mapping[str, int]
    # op types that hold graphs, which became barriers and were not looked into, with the number of
    # their nodes
    unread_bodies: Mapping[str, int]
    # op types without a backward rule, whose gradients became barriers, with the number of their
    # nodes
    opaque_gradients: Mapping[str, int]
    notes: tuple[str, ...] = ()  # what a user should know of how shapes were found; a line each

    def warnings(self) -> tuple[str, ...]:
        """Return a line for each way in which the graph only roughly describes the network."""
        lines = (
            ("unknown op types, taken for barriers", self.unknown_ops),
            ("graphs inside ops, which became barriers, are not read", self.unread_bodies),
            (
                "op types without a backward rule, gradients taken for barriers",
                self.opaque_gradients,
            ),
        )
        found = (f"{what}: {listed(counts)}" for what, counts in lines if counts)
        return (*found, *self.notes)


def read_onnx(
    path: str | Path,
    attractions: str | Path | None = None,
    dims: Mapping[str, int] | None = None,
    training: str | None = None,
) -> Graph:
    """Return a network's graph, and log a warning for ops of unknown meaning.

    See :func:`read_network` for the parameters and the meaning of the graph.
    """
    network = read_network(path, attractions, dims, training)
    for line in network.warnings():
        LOG.warning("%s: %s", path, line)
    return network.graph


def check_training(training: str | None) -> None:
    """Refuse an optimiser that there is not."""
    if training is not None and training not in STATES:
        raise InputError(f"there is no training {training!r}; allowed: {', '.join(STATES)}")


def read_network(
    path: str | Path,
    attractions: str | Path | None = None,
    dims: Mapping[str, int] | None = None,
    training: str | None = None,
) -> UnwindingModel:
    """Read a network.

    Inputs, initialisers and constants become sinks, each drawn weakly to a source.  Convolutions
    and matrix products become fixed points whose operands are drawn to the layouts that the
    operation wants.  Elementwise operations follow one operand and draw all together.  Operations
    that only move elements become views, all others barriers.  Tensors keep the names that the
    network gives them.

    Data that the file keeps in other files is not needed, and not read.  ``attractions`` is a TOML
    file with values that replace some of the shipped table's.  ``dims`` has sizes of symbolic
    dimensions by name; ``"x.0"`` is a name for dimension 0 of input ``x`` if it has none.

    ``training`` adds the backward pass and the update by an optimiser: ``"sgd"``, ``"momentum"`` or
    ``"adam"``, which keep none, one and two states for every trained tensor.  Those are the
    initialisers and Constant nodes of floating-point numbers that an output follows from, but for
    numbers without axes and statistics of normalisations.

    Raises ``InputError`` if a file cannot be read, a dimension remains open, a shape cannot be
    inferred, or a node does not fit its operands.
    """
    check_training(training)
    values = read_attractions(attractions)
    model = load_model(path)
    kind = "from an ONNX network" if training is None else f"{training} step of an ONNX network"
    graph = Graph("-".join(filter(None, (Path(path).stem, training))), kind)
    opaque: Mapping[str, int] = {}
    with errors_at(file=str(path)):
        shaped = _shaped(model, path, dims or {})
        builder = OnnxGraphBuilder(shaped, graph, values)
        builder.build()
        if training is not None:
            trainer = Trainer(builder)
            trainer.build(training)
            opaque = trainer.opaque
    types = [type_of(x) for x in builder.live]
    unknown = Counter(x for x in types if "::" in x or x not in OPERATORS)
    within = Counter(type_of(x) for x in builder.live if any(bodies(x)))
    misfits = listed(builder.misfits)
    notes = (f"ops that sizes of 1 do not fit, taken for barriers: {misfits}",) if misfits else ()
    counts = [dict(sorted(x.items())) for x in (unknown, within, opaque)]
    return UnwindingModel(graph, counts[0], counts[1], counts[2], shaped.notes + notes)


def _shaped(model: onnx.ModelProto, path: str | Path, dims: Mapping[str, int]) -> ShapedModel:
    """Return a network with all shapes, whose nodes are in order.

    The file, with weights, is for the case that only a run tells some shapes.
    """

    def whole() -> onnx.ModelProto:
        model = _prepared(load(path).model)
        set_dims(model, dims)
        return model

    check_version(model, OLDEST)
    notes = as_runtimes_read(model)[1]
    model = _prepared(model)
    check_nodes(model)
    weights = _weights(model.graph)  # before shapes that are computed become Constant nodes
    shaped = sized(infer(model, dims), whole)
    return replace(shaped, notes=(*notes, *shaped.notes), weights=weights)


def _prepared(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a network without functions, its nodes in order, each Identity with one input."""
    model = inlined(as_runtimes_read(model)[0])
    sort_nodes(model.graph)
    return model
