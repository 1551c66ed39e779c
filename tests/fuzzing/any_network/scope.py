"""A graph that grows node by node; each new one is run at once, so that all values are known."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper
from onnx import numpy_helper as numpy_of

from layoutopt.onnx.runtime import Session

Array: TypeAlias = Any

Value: TypeAlias = Any
"""An array, or a list of arrays."""

LARGEST = 3000
"""Elements of the largest tensor."""

CLASHES = (
    *("x_to_0312", "x_to_0231", "Transpose_0", "Reshape_0", "x_parts_0_1x2", "x_pads", "x_axes"),
    *("Conv_0", "Relu_0", "t0_to_10", "t1_to_021", "t2_to_0312", "t0_perm", "t1_0", "w0_to_10"),
    *("a b", "ä/ö:0", "0", "t1_copy", "None", "x_shape", "t0_as_1", "t0_2", "w0_1"),
)
"""Names of tensors like those that a rewriter might make, and others that are unusual."""

SECONDS = 60.0  # how long a run may take: a loop that was made smaller may have lost its end


def execute(
    model: ModelProto,
    feeds: dict[str, Value],
    names: Sequence[str],
    more: Mapping[str, Any] = MappingProxyType({}),
    times: int = 1,
) -> list[Value]:
    """Run a model in onnxruntime, unoptimised, in one thread; it may crash on what is drawn."""
    options = {"intra_op_num_threads": 1, "use_deterministic_compute": True, **more}
    with Session(model.SerializeToString(), options) as session:  # training ops change its weights
        return [session.run(feeds, names, SECONDS) for _ in range(times)][-1]


def free_names(nodes: Iterable[NodeProto]) -> list[str]:
    """Return what nodes read that none of them makes, bodies included."""
    made: set[str] = set()
    found: dict[str, None] = {}
    for node in nodes:
        reads = [*node.input]
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                own = {x.name for x in (*body.input, *body.initializer)}
                own |= {x.values.name for x in body.sparse_initializer}
                inner = [*free_names(body.node), *(x.name for x in body.output)]
                own |= {name for n in body.node for name in n.output}
                reads += [name for name in inner if name not in own]
        found.update(dict.fromkeys(name for name in reads if name and name not in made))
        made |= set(node.output)
    return list(found)


def kind_of(value: Value) -> int:
    """Return ONNX's element type of an array."""
    return int(helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype))


def info(name: str, value: Value, shape: Sequence[Any] | str | None = "its") -> ValueInfoProto:
    """Return the declaration of a value, with the shape that it has or another one."""
    if isinstance(value, list):
        inner = kind_of(value[0]) if value else TensorProto.FLOAT
        return helper.make_tensor_sequence_value_info(name, inner, None)
    own = np.asarray(value).shape if shape == "its" else shape
    return helper.make_tensor_value_info(name, kind_of(value), own)


def declared(draw: random.Random, name: str, value: Any, *, wrong: float) -> ValueInfoProto:
    """Return a declaration: exact, with open sizes, of unknown rank, or wrong."""
    if isinstance(value, list):
        return info(name, value)
    shape: list[Any] = [*value.shape]
    choice = draw.random()
    if choice < wrong:
        if shape and draw.random() < 0.5:
            draw.shuffle(shape)
        elif shape:
            shape[draw.randrange(len(shape))] += 1
        else:
            shape = [1]
    elif choice < 0.5:
        pass
    elif choice < 0.75:
        shape = [f"n{n}_{size}" if draw.random() < 0.5 else size for n, size in enumerate(shape)]
    elif choice < 0.96:
        shape = [None if draw.random() < 0.5 else size for size in shape]
    else:
        return info(name, value, None)
    return info(name, value, shape)


class Names:
    """Names of tensors, each given once, some of which a rewriter would like to use itself."""

    def __init__(self, draw: random.Random) -> None:
        self.draw, self.count = draw, 0
        self.odd = [*CLASHES] if draw.random() < 0.4 else []
        self.taken: set[str] = set()

    def new(self, stem: str) -> str:
        """Return a new name."""
        if self.odd and self.draw.random() < 0.3:
            return self.odd.pop(self.draw.randrange(len(self.odd)))
        self.count += 1
        return f"{stem}{self.count - 1}"

    def node(self, op: str) -> str:
        """Return a name for a node, mostly none."""
        found = self.draw.choice(("", "", "", f"{op}_{self.draw.randrange(3)}", "Transpose_1"))
        if found in self.taken:
            return ""
        self.taken.add(found)
        return found


class NotAdded(ValueError):
    """A node that a piece cannot do without does not run."""


def needed(name: str | None) -> str:
    """Return the name of a result that a piece cannot do without."""
    if name is None:
        raise NotAdded
    return name


class Scope:
    """A graph under construction, whose values are all known.

    Parameters
    ----------
    draw
        Source of all choices.
    opset
        Version of ONNX's operator set.
    names
        Names still to be given.
    outer
        The graph whose node holds this one.
    """

    def __init__(
        self, draw: random.Random, opset: int, names: Names, outer: Scope | None = None
    ) -> None:
        self.draw, self.opset, self.names, self.outer = draw, opset, names, outer
        self.nodes: list[NodeProto] = []
        self.initialisers: list[TensorProto] = []
        self.sparse: list[Any] = []
        self.inputs: dict[str, Value] = {}
        self.feeds: dict[str, Value] = {}
        self.values: dict[str, Value] = {}
        self.constants: dict[str, Any] = {}
        self.fixed: set[str] = set()
        self.functions: list[Any] = []
        self.domains: set[str] = set()
        self.closed = False
        self.random = False

    @property
    def depth(self) -> int:
        """Return how many graphs this one is inside of."""
        return 0 if self.outer is None else self.outer.depth + 1

    def within_function(self) -> bool:
        """Return whether this is a function, or in one."""
        return self.closed or (self.outer is not None and self.outer.within_function())

    def root(self) -> Scope:
        """Return the network's own graph."""
        return self if self.outer is None else self.outer.root()

    def visible(self) -> dict[str, Value]:
        """Return all values that a node here may read, own ones last."""
        outside = {} if self.outer is None or self.closed else self.outer.visible()
        return {**outside, **self.values}

    def __getitem__(self, name: str) -> Value:
        """Return a visible value."""
        return self.visible()[name]

    def known(self) -> dict[str, Any]:
        """Return the visible values that are initialisers or constant nodes."""
        outside = {} if self.outer is None or self.closed else self.outer.known()
        return {**outside, **self.constants}

    def varies(self, name: str) -> bool:
        """Return whether a value is none of constants alone."""
        outside = self.outer is not None and not self.closed and name not in self.values
        if outside and self.outer is not None:
            return self.outer.varies(name)
        return name not in self.constants and name not in self.fixed

    def number(self, shape: Sequence[int], kind: Any = "float32") -> Any:
        """Return random data: few values, so that sums are exact and equal ones are met."""
        draw = np.random.default_rng(self.draw.randrange(2**32))
        dtype = np.dtype(object if kind == "str" else kind)
        if dtype.kind == "O":
            return np.array(draw.choice(["a", "b c", "", "Ä"], shape), object).reshape(shape)
        if dtype.kind == "b":
            return draw.integers(0, 2, shape).astype(bool)
        if dtype.kind == "u":
            return draw.integers(0, 7, shape).astype(dtype)
        if dtype.kind == "i":
            return draw.integers(-3, 4, shape).astype(dtype)
        return np.asarray(draw.integers(-8, 9, shape) / 4).astype(dtype)

    def constant(self, array: Any, stem: str = "w", *, plain: bool = False) -> str:
        """Return the name of a constant: an initialiser, a node of any kind, or an input."""
        array = np.asarray(array)
        for name, known in self.known().items():
            same = known.dtype == array.dtype and known.shape == array.shape
            if same and self.draw.random() < 0.7 and np.array_equal(known, array):
                return name
        name = self.names.new(stem)
        choice = 0.0 if plain else self.draw.random()
        tensor = numpy_of.from_array(array, name)
        if choice < 0.6:
            if array.dtype.kind == "f" and self.draw.random() < 0.3:
                tensor = helper.make_tensor(name, kind_of(array), array.shape, array.ravel())
            self.initialisers.append(tensor)
        elif choice < 0.75:
            if self.opset >= 12 and array.ndim < 2 and array.dtype in (np.int64, np.float32):
                word = "int" if array.dtype.kind == "i" else "float"
                more = {f"value_{word}{'s' * array.ndim}": array.tolist()}
            else:
                more = {"value": tensor}
            self.nodes.append(helper.make_node("Constant", [], [name], **more))
        elif choice < 0.8 and array.size and (array == array.flat[0]).all() and array.ndim:
            value = numpy_of.from_array(array.ravel()[:1], "")
            shape = self.constant(np.array(array.shape, np.int64), "s", plain=True)
            made = helper.make_node("ConstantOfShape", [shape], [name], value=value)
            if self.opset < 9:
                self.initialisers.append(tensor)
            else:
                self.nodes.append(made)
        elif (
            *(choice < 0.84, array.dtype == np.float32, self.opset >= 11, array.size > 0),
            not self.within_function(),  # onnxruntime ends the process
        ) == (True,) * 5:
            where = np.flatnonzero(array)
            parts = [numpy_of.from_array(array.ravel()[where], name)]
            parts.append(numpy_of.from_array(where.astype(np.int64), ""))
            sparse = helper.make_sparse_tensor(parts[0], parts[1], list(array.shape))
            if self.depth == 0 and self.draw.random() < 0.5 and not self.closed:
                self.sparse.append(sparse)
            else:
                self.nodes.append(helper.make_node("Constant", [], [name], sparse_value=sparse))
        elif choice < 0.9 and self.depth == 0 and not self.closed:
            self.inputs[name] = self.feeds[name] = self.values[name] = array
            return name
        elif choice < 0.94 and self.depth == 0 and not self.closed:
            self.initialisers.append(tensor)
            self.inputs[name] = array  # an initialiser that a caller may replace
        elif choice < 0.97 and array.ndim > 1:
            order = self.draw.sample(range(array.ndim), array.ndim)
            turned = self.constant(array.transpose(np.argsort(order)), "w", plain=True)
            self.nodes.append(helper.make_node("Transpose", [turned], [name], perm=order))
        else:
            self.initialisers.append(tensor)
        if self.closed:  # functions have no initialisers
            for held in self.initialisers:
                self.nodes.append(helper.make_node("Constant", [], [held.name], value=held))
            self.initialisers.clear()
        self.values[name] = self.constants[name] = array
        return name

    def indices(self, low: int, high: int, shape: Sequence[int]) -> Any:
        """Return random indices."""
        return np.random.default_rng(self.draw.randrange(99)).integers(low, high, shape)

    def drawn(self, shape: Sequence[int], kind: Any = "float32") -> str:
        """Return the name of a constant of random data."""
        return self.constant(self.number(shape, kind))

    def typed(self, values: Any, kind: Any) -> str:
        """Return the name of a constant of numbers of some type."""
        return self.constant(np.array(values, kind))

    def integers(self, values: Any) -> str:
        """Return the name of a constant of integers."""
        return self.typed(values, np.int64)

    def scale(self, shape: Sequence[int]) -> str:
        """Return the name of a constant of scales of integers."""
        return self.constant(np.abs(self.number(shape)) + np.float32(0.25))

    def scale_and_zero(self, shape: Sequence[int], kinds: Sequence[str]) -> list[str]:
        """Return the names of scales and of zero points, which are of one of some kinds."""
        scale = self.scale(shape)
        return [scale, self.constant(np.abs(self.number(shape, self.draw.choice(kinds))))]

    def divisor(self, size: int) -> int:
        """Return a number of groups that a size can be split into."""
        return self.draw.choice([k for k in range(1, size + 1) if size % k == 0] or [1])

    def given(self, array: Any) -> str:
        """Return the name of a value that a caller gives, or a constant where none can be given."""
        if self.depth or self.closed:
            return self.constant(array)
        name = self.names.new("x")
        self.inputs[name] = self.feeds[name] = self.values[name] = np.asarray(array)
        return name

    def imports(self) -> list[Any]:
        """Return the operator sets that nodes here may use."""
        found = [helper.make_opsetid("", self.opset)]
        domains = self.root().domains | self.domains
        return [*found, *(helper.make_opsetid(name, 1) for name in sorted(domains))]

    def run(self, nodes: Sequence[NodeProto], wanted: Sequence[str]) -> list[Value] | None:
        """Return what nodes give, None if onnxruntime cannot run them."""
        visible, known = self.visible(), self.known()
        graph = GraphProto(name="piece", node=nodes)
        feeds = {}
        for name in free_names(nodes):
            if name not in visible:
                return None
            if name in known:
                graph.initializer.append(numpy_of.from_array(known[name], name))
            else:
                feeds[name] = visible[name]
                graph.input.append(info(name, visible[name]))
        graph.output.extend(ValueInfoProto(name=name) for name in wanted)
        model = helper.make_model(graph, opset_imports=self.imports(), ir_version=10)
        model.functions.extend(self.root().functions)
        try:
            found = execute(model, feeds, wanted)
        except Exception:  # what cannot be run is not taken
            return None
        if any(isinstance(x, list) or x is None for x in found):
            return found if all(isinstance(x, list) or x is not None for x in found) else None
        return found if all(np.asarray(x).size <= LARGEST for x in found) else None

    def add_nodes(self, *nodes: NodeProto, keep: Sequence[str] | None = None) -> bool:
        """Add nodes if onnxruntime runs them; ``keep`` are the values that others may read."""
        wanted = [n for node in nodes for n in node.output if n] if keep is None else [*keep]
        found = self.run(nodes, wanted)
        if found is None or not wanted or any(map(self._misreads, nodes)):
            return False
        self.nodes.extend(nodes)
        if not any(map(self.varies, free_names(nodes))):
            self.fixed.update(wanted)
        self.values.update(zip(wanted, map(_as_array, found), strict=True))
        return True

    def add(self, op: str, inputs: Sequence[str], **more: Any) -> str:
        """Add a node of one result; return its name.

        Raises
        ------
        NotAdded
            If it does not run.
        """
        return needed(self.tried(op, inputs, **more))

    def tried(self, op: str, inputs: Sequence[str], *, domain: str = "", **more: Any) -> str | None:
        """Add a node of one result; return its name if it runs."""
        made = helper.make_node(op, inputs, [self.names.new("t")], domain=domain or None, **more)
        made.name = self.names.node(op)
        return str(made.output[0]) if self.add_nodes(made) else None

    def add_many(
        self, op: str, inputs: Sequence[str], count: int, *, domain: str = "", **more: Any
    ) -> list[str]:
        """Add a node of some of its first results, the last one at least; return their names."""
        draw = self.draw
        outputs = [self.names.new("t") if draw.random() < 0.7 else "" for _ in range(count)]
        outputs[-1] = outputs[-1] or self.names.new("t")
        made = helper.make_node(op, inputs, outputs, domain=domain or None, **more)
        made.name = self.names.node(op)
        return [name for name in outputs if name] if self.add_nodes(made) else []

    def add_named(self, op: str, inputs: list[str], outputs: list[str], **more: Any) -> bool:
        """Add a node of named results, if it runs; empty names at the ends of lists are dropped."""
        for names in (inputs, outputs):
            while names and not names[-1]:
                names.pop()
        return self.add_nodes(helper.make_node(op, inputs, outputs, **more))

    def twice_transposed(self, name: str, order: Sequence[int]) -> str:
        """Add a transpose that swaps two axes, and the same one behind it."""
        return self.transposed(self.transposed(name, order), order)

    def add_all(self, op: str, inputs: list[str], count: int, **more: Any) -> list[str]:
        """Add a node of so many results; return their names, none if it does not run."""
        outputs = [self.names.new("t") for _ in range(count)]
        return outputs if self.add_named(op, inputs, outputs, **more) else []

    def transposed(self, name: str, order: Any = None) -> str:
        """Add a transpose, by a random order if none is given."""
        rank = self[name].ndim
        perm = self.draw.sample(range(rank), rank) if order is None else [*map(int, order)]
        return self.add("Transpose", [name], perm=perm)

    def _misreads(self, node: NodeProto) -> bool:
        """Return whether onnxruntime reads what is not meant.

        That is of each block of texts the first, and beside images without elements.
        """
        data = np.asarray(self.visible().get(node.input[0])) if node.input else None
        if node.op_type == "Gather":
            return data is not None and data.dtype == object
        return node.op_type in ("RoiAlign", "MaxRoiPool") and data is not None and not data.size

    def arrays(self, kinds: str | None = None, rank: int = 0, most: int = 9) -> dict[str, Any]:
        """Return visible arrays of some kinds of numbers and some ranks."""
        return {
            name: value
            for name, value in self.visible().items()
            if not isinstance(value, list)
            and rank <= value.ndim <= most
            and (kinds is None or value.dtype.kind in kinds)
        }

    def pick(
        self, kinds: str | None = None, rank: int = 0, most: int = 9, *, varying: bool = False
    ) -> str | None:
        """Return a visible array, late ones more often; None if there is none."""
        names = list(self.arrays(kinds, rank, most))
        names = [name for name in names if self.varies(name)] if varying else names
        if not names:
            return None
        return names[max(self.draw.randrange(len(names)), self.draw.randrange(len(names)))]


def _as_array(value: Value) -> Value:
    return value if isinstance(value, list) else np.asarray(value)
