"""A graph in the making: what the rules of all op types work with."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib.resources import files as resources
from pathlib import Path
from typing import Any, TypeAlias

from layoutopt.base.errors import InputError
from layoutopt.base.files import read_utf8
from layoutopt.base.numbers import exact_decimal
from layoutopt.graphs.ops import Array, Shape, dominates
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph

Attractions: TypeAlias = Mapping[str, Decimal]
"""Value per element by table and key, for instance ``"matmul.lhs"``."""


def read_attractions(path: str | Path | None = None) -> Attractions:
    """Return the shipped values, some of them replaced by a user's.

    Parameters
    ----------
    path
        A TOML file in the form of the shipped ``attractions.toml``; it may hold any part
        of it.

    Raises
    ------
    InputError
        If the file cannot be read, names an entry that does not exist, or holds a value
        that is no finite number.
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
    try:
        document = tomllib.loads(raw.decode(), parse_float=Decimal)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not TOML ({error})", file=file) from None
    except RecursionError:
        raise InputError("the TOML is nested too deeply", file=file) from None
    entries: dict[str, Decimal] = {}
    for table, members in document.items():
        if not isinstance(members, dict):
            raise InputError("must stand in a table, as in [matmul]", table, file)
        for key, value in members.items():
            place = f"{table}.{key}"
            if isinstance(value, str):  # "1.5" would be a number to exact_decimal
                raise InputError(f"value {value!r} is not a decimal number", place, file)
            try:
                entries[place] = exact_decimal(value)
            except InputError as error:
                raise error.located(place, file) from None
    return entries


@dataclass(frozen=True, eq=False)
class Node:
    """One operation of a network, ready for its rule.

    Parameters
    ----------
    op_type
        Its type, for instance ``"Conv"``.
    inputs
        The operands; ``None`` for one that is left out, and for one that only carries
        structure.
    outputs
        The outputs' names; ``None`` for one that nobody reads.
    shapes
        The outputs' shapes; ``None`` for one that nobody reads.
    attributes
        By name; strings are bytes.
    values
        The operands' values, where they are known and small.
    version
        Version of the operator set.
    captured
        Tensors that the bodies inside the node read.
    """

    op_type: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[str | None, ...]
    shapes: tuple[Shape | None, ...]
    attributes: dict[str, Any]
    values: tuple[Array | None, ...]
    version: int
    captured: tuple[Tensor, ...] = ()

    @property
    def name(self) -> str:
        """The name of the first output that is read."""
        return next(name for name in self.outputs if name is not None)

    @property
    def shape(self) -> Shape:
        """The shape of the first output that is read."""
        return next(shape for shape in self.shapes if shape is not None)

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """Everything that the node reads, in order."""
        return tuple(x for x in self.inputs if x is not None) + self.captured

    def operand(self, position: int) -> Tensor:
        """Return an operand that the node cannot do without."""
        x = self.optional(position)
        if x is None:
            raise InputError(f"operand {position} is missing")
        return x

    def optional(self, position: int) -> Tensor | None:
        """Return an operand, if it is there."""
        return self.inputs[position] if position < len(self.inputs) else None

    def required(self, attribute: str) -> Any:
        """Return an attribute that the node cannot do without."""
        if attribute not in self.attributes:
            raise InputError(f"attribute {attribute!r} is missing")
        return self.attributes[attribute]

    def integers(self, attribute: str, position: int) -> list[int] | None:
        """Return what older operator sets give as attribute and newer ones as operand."""
        if attribute in self.attributes:
            return [int(v) for v in self.attributes[attribute]]
        value = self.values[position] if position < len(self.values) else None
        return None if value is None else [int(v) for v in value.reshape(-1)]

    def unknown(self, position: int) -> bool:
        """Return whether an operand is there whose value is not known before a run."""
        return self.optional(position) is not None and self.values[position] is None


Outputs: TypeAlias = Tensor | Sequence[Tensor | None]
Build: TypeAlias = Callable[["UnwindingGraphBuilder", Node], Outputs]


@dataclass(frozen=True)
class Rule:
    """Rule by which an op type enters the graph.

    Parameters
    ----------
    build
        Adds the ops and pairs of a node, and returns its outputs.
    structure
        Positions of operands that carry shapes, axes, sizes or settings.  Where their value
        is known they are no tensors of the problem.
    unread
        Positions of operands of which only shape or type matter.
    """

    build: Build
    structure: Collection[int] = ()
    unread: Collection[int] = ()


def column(shape: Shape, rank: int, axis: int) -> Shape:
    """Return a shape with ones behind it, so that its first axis becomes ``axis`` of ``rank``."""
    return (*shape, *(1,) * (rank - axis - len(shape)))


Step: TypeAlias = tuple[Callable[..., Tensor], *tuple[Any, ...]]
"""A method of the graph that adds a view, and its arguments."""


class UnwindingGraphBuilder:
    """A graph, and the ways in which all rules add to it.

    Parameters
    ----------
    graph
        Where ops and pairs are added.
    attractions
        The pairs' values.
    taken
        Names that helper ops must not have.
    """

    def __init__(self, graph: Graph, attractions: Attractions, taken: Collection[str]) -> None:
        self.graph = graph
        self.attractions = attractions
        self._taken = set(taken)

    def helper(self, base: str, role: str) -> str:
        """Return an unused name for an op that the network does not have."""
        name, count = f"{base}.{role}", 1
        while name in self._taken:
            count += 1
            name = f"{base}.{role}{count}"
        self._taken.add(name)
        return name

    def sink(self, name: str, shape: Shape) -> Tensor:
        """Add a tensor whose locations are free, drawn weakly to a row-major spread."""
        x = self.graph.sink(shape, name=name)
        self._draw(x, "sink.linear", self.helper(name, "linear"))
        return x

    def target(self, x: Tensor, value: str, base: str, role: str) -> None:
        """Draw an operand to the layout that an operation wants it in."""
        self._draw(x, value, self.helper(base, f"{role}.target"))

    def _draw(self, x: Tensor, value: str, name: str) -> None:
        if self.attractions[value]:
            source = self.graph.source(x.shape, name=name)
            self.graph.valued_pair(x, source, self.attractions[value])

    def pair(self, x: Tensor, y: Tensor, value: str) -> None:
        """Draw two tensors together, if they are different ones of the same shape."""
        if x.index != y.index and x.shape == y.shape and self.attractions[value]:
            self.graph.valued_pair(x, y, self.attractions[value])

    def tie(self, large: Tensor, small: Tensor, value: str, base: str, role: str) -> None:
        """Draw a tensor to one that it broadcasts to, if it does, through a reduce."""
        if large.shape == small.shape:
            self.pair(large, small, value)
        elif dominates(large.shape, small.shape) and self.attractions[value]:
            name = self.helper(base, f"{role}.reduce")
            reduced = self.graph.sum_like_reduce(large, small.shape, name=name)
            self.graph.valued_pair(reduced, small, self.attractions[value])

    def aligned(self, x: Tensor, rank: int, axis: int, base: str, role: str) -> Tensor:
        """Return a tensor with ones behind it, so that its first axis becomes ``axis``."""
        shape = column(x.shape, rank, axis)
        if shape == x.shape:
            return x
        return self.graph.reshape(x, shape, name=self.helper(base, f"{role}.aligned"))

    def gradient_name(self, x: Tensor) -> str:
        """Return an unused name for a gradient of a tensor."""
        return self.helper(x.name, "gradient")

    def chain(self, x: Tensor, name: str, steps: Sequence[Step]) -> Tensor:
        """Add views one after the other; the last has the given name.

        Parameters
        ----------
        steps
            Methods of :class:`~layoutopt.graphs.unwinding.Graph` with their arguments; at
            least one.
        """
        for k, (method, *arguments) in enumerate(steps):
            last = k == len(steps) - 1
            own = name if last else self.helper(name, method.__name__)
            x = method(self.graph, x, *arguments, name=own)
        return x
