"""Graphs of ops that run in layouts: what is verified, and what is optimised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal

from layoutopt.base.errors import InputError
from layoutopt.base.files import digest
from layoutopt.base.numbers import least
from layoutopt.conversion.rules.bodies import parts
from layoutopt.conversion.rules.op import LATEST, Op, Shape, Size, any_layout, parse_operands
from layoutopt.conversion.rules.operator import Category
from layoutopt.conversion.rules.registry import category_of
from layoutopt.conversion.shapes import infer
from layoutopt.layout.layout import Layout, LayoutError
from layoutopt.layout.parts import is_positional

Kind = Literal["input", "constant", "activation"]


@dataclass(frozen=True)
class ConversionTensor:
    """A tensor of a conversion graph."""

    name: str
    # The size of each dimension as it is written: a number, a name for a symbolic size, None for
    # an unknown one.  None if not even the rank is known.
    shape: Shape | None
    element_bytes: int  # bytes of an element
    kind: Kind  # `input` (of the graph), `constant` or `activation` (the result of an op)
    # The layout that it comes in, a dimension for each of the shape; `*` for any axis.  That of a
    # result follows from its op, see :func:`~layoutopt.conversion.carried.carried`.
    layout: Layout
    scope: str = ""  # the body of an op that it is in; "" for none


def checked_tensor(
    name: str,
    shape: Iterable[Size] | None,
    kind: Kind,
    layout: str | Layout,
    element_bytes: Any,
    scope: str = "",
) -> ConversionTensor:
    """Return a tensor; the arguments are its fields, and ``"*"`` is any layout of its rank.

    Raises ``InputError`` if one of them is wrong; the text names the tensor.
    """
    try:
        known = checked_shape(shape)
        rank = None if known is None else len(known)
        laid = any_layout(rank) if layout == "*" else _layout(layout, rank)
        element_bytes = least("element_bytes", element_bytes)
    except InputError as error:
        raise InputError(f"tensor {name!r}: {error.reason}") from None
    return ConversionTensor(name, known, element_bytes, kind, laid, scope)


def _layout(given: str | Layout, rank: int | None) -> Layout:
    layout = given if isinstance(given, Layout) else Layout.parse(given)
    if layout.axes and is_positional(layout.axes):
        raise InputError(f"layout {layout} names axes by their place; give letters, as in NHWC")
    if not layout.undefined and len(layout.dims) != rank:
        has = "of unknown rank" if rank is None else f"of {rank} dimensions"
        raise InputError(f"layout {layout} has {len(layout.dims)} dimensions, for a tensor {has}")
    return layout


def size_of(tensor: ConversionTensor, shape: Shape | None = None) -> int:
    """Return the bytes of a tensor, or of one like it; a size that is not known counts as 1."""
    sizes = shape or tensor.shape or ()
    return prod(size for size in sizes if isinstance(size, int)) * tensor.element_bytes


def checked_shape(given: Iterable[Size] | None) -> Shape | None:
    """Return a shape of Python integers, names and None.

    Raises ``InputError`` if a size is something else, or negative.
    """
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"shape must be a list of sizes, not {given!r}")
    return tuple(x if x is None or isinstance(x, str) else least("size", x, 0) for x in given)


HELD = "layoutopt::Held"
"""Type of ops without inputs that stand for tensors that are to stay as they are, and are nobody's
to free: initialisers that a caller may replace, sparse ones."""


class ConversionGraph:
    """Ops over tensors, each after those that it reads from.

    Methods add to the graph and return names of tensors, by which later ops read them.  Ops in the
    body of an op stand before it.

    Parameters
    ----------
    name
        Its name.
    opset
        The version of ONNX's operator set that its ops follow.

    Attributes
    ----------
    tensors
        By name.
    ops
        In order.
    outputs
        Names of tensors that the graph gives back.

    Examples
    --------
    >>> graph = ConversionGraph("two ops")
    >>> x = graph.input("x", (1, 3, 8, 8))
    >>> w = graph.constant("w", (16, 3, 3, 3))
    >>> y = graph.op("Conv", [x, w], {"pads": (1, 1, 1, 1)}, name="conv")
    >>> graph.output(graph.op("Relu", [y]))
    >>> graph.tensors[y].shape
    (1, 16, 8, 8)
    """

    def __init__(self, name: str = "", opset: int = LATEST) -> None:
        self.name = name
        self.opset = opset
        self.tensors: dict[str, ConversionTensor] = {}
        self.ops: list[Op] = []
        self.outputs: list[str] = []
        self._producers: dict[str, Op] = {}
        self._consumers: dict[str, list[tuple[Op, int]]] = {}
        self._given: set[str] = set()
        self._op_names: set[str] = set()
        self._counts: dict[str, int] = {}

    def input(
        self,
        name: str,
        shape: Iterable[Size] | None,
        layout: str | Layout = "*",
        element_bytes: int = 4,
    ) -> str:
        """Add a tensor that the graph is given.

        Parameters
        ----------
        name
            Its name.
        shape
            The size of each dimension: a number, a name, or None; None if the rank is unknown.
        layout
            The layout that it comes in, ``NHWC`` or ``N[a=64]HWC``; ``*`` stands for any.
        element_bytes
            Bytes of an element.

        Raises
        ------
        InputError
            If the name is taken, the layout cannot be read or has another rank, or a size is
            none.
        """
        return self._tensor(name, shape, "input", layout, element_bytes)

    def constant(
        self,
        name: str,
        shape: Iterable[Size] | None,
        layout: str | Layout = "*",
        element_bytes: int = 4,
        scope: str = "",
    ) -> str:
        """Add a tensor whose values are known, in a body if ``scope`` names one.

        The other arguments are as for :meth:`input`.
        """
        return self._tensor(name, shape, "constant", layout, element_bytes, scope)

    def body_input(
        self, name: str, shape: Iterable[Size] | None, element_bytes: int, scope: str
    ) -> str:
        """Add an input of a body, before the ops in it and the op that makes it for each round."""
        self._given.add(name)
        return self._tensor(name, shape, "activation", "*", element_bytes, scope)

    def op(
        self,
        type: str,
        inputs: Iterable[str],
        attributes: Mapping[str, Any] | None = None,
        *,
        shape: Iterable[Size] | None = None,
        name: str | None = None,
        layouts: str = "",
        element_bytes: int | None = None,
    ) -> str:
        """Add an op with one result, and return its name, which is the op's.

        Parameters
        ----------
        type
            As ONNX names it; ``domain::Type`` for other domains.
        inputs
            Names of tensors, ``""`` for one that is left out.
        attributes
            By the names of ONNX; inputs that hold axes or sizes are given here, too.
        shape
            The result's shape, which is not compared with those of operands; may be left out where
            ONNX infers it (package ``onnx``).
        name
            By default the type and a number.
        layouts
            How operands and results are written, where that is not ONNX's way: ``"NHWC,HWIO"``,
            or for the result alone ``"->NHWC"``.
        element_bytes
            Bytes of an element of the result, by default those of the first input.

        Raises
        ------
        InputError
            If a name is taken or unknown, or the shape cannot be told or is no list of sizes.
        """
        own = self._free_name(type) if name is None else name
        try:
            written = parse_operands(layouts) if layouts else None
        except LayoutError as error:
            raise InputError(f"{type} {own!r}: {error.reason}") from None
        op = Op(
            type,
            dict(attributes or {}),
            tuple(inputs) if not isinstance(inputs, str) else (inputs,),
            (own,),
            output_shapes=(None if shape is None else tuple(shape),),
            name=own,
            opset=self.opset,
            layouts=written,
        )
        [result] = self._completed(op).output_shapes
        if result is None:
            raise InputError(f"{op}: give its shape, which does not follow from its operands")
        return self.add(op, [element_bytes])[0]

    def add(self, op: Op, element_bytes: Iterable[int | None] = ()) -> tuple[str, ...]:
        """Add an op as it is, and return the names of its results.

        Parameters
        ----------
        op
            The op.  Shapes of its inputs are taken from the graph; those of results that are None
            are inferred by ONNX where it can, and are unknown elsewhere.
        element_bytes
            Bytes of an element of each result, by default those of the first input.

        Raises
        ------
        InputError
            If a name is taken or unknown, or a shape is no list of sizes, or too long or short for
            the layout.
        """
        op = self._completed(op)
        default = self.tensors[op.inputs[0]].element_bytes if op.has(0) else 4
        widths = [default if width is None else width for width in element_bytes]
        widths += [default] * len(op.outputs)
        results = [
            checked_tensor(name, shape, "activation", "*", width, op.scope)
            for name, shape, width in zip(op.outputs, op.output_shapes, widths, strict=False)
        ]
        self.ops.append(op)
        self._op_names.add(op.name)
        for tensor in results:
            if tensor.name:
                self.tensors.setdefault(tensor.name, tensor)
                self._producers[tensor.name] = op
        for n, name in enumerate(op.inputs):
            if name:
                self._consumers.setdefault(name, []).append((op, n))
        return op.outputs

    def output(self, *names: str) -> None:
        """Name tensors that the graph gives back.

        Raises
        ------
        InputError
            If there is no such tensor.
        """
        for name in names:
            self._known(name, "output")
        self.outputs.extend(names)

    def producer(self, name: str) -> Op | None:
        """Return the op that a tensor is a result of, None for inputs and constants.

        Raises
        ------
        InputError
            If there is no such tensor.
        """
        self._known(name, "producer")
        return self._producers.get(name)

    def consumers(self, name: str) -> list[tuple[Op, int]]:
        """Return the ops that read a tensor, with the number of the input.

        Raises
        ------
        InputError
            If there is no such tensor.
        """
        self._known(name, "consumers")
        return list(self._consumers.get(name, ()))

    def opaque(self) -> list[Op]:
        """Return the ops that nothing is known of, and whose operands must stay as they are."""
        opaque = (op for op in self.ops if category_of(op) is Category.OPAQUE)
        return [op for op in opaque if len(parts(op)) == 1 and op.type != HELD]

    def rounds(self) -> dict[str, int]:
        """Return how often each body runs at most, 2 for each op of which that is unknown."""
        found = {"": 1}
        for op in reversed(self.ops):  # outer ones first
            for body in op.bodies:
                found[body.scope] = found[op.scope] * body.rounds
        return found

    def _completed(self, op: Op) -> Op:
        """Return an op that fits the graph, with all shapes that can be told."""
        if not op.name or op.name in self._op_names:
            what = f"name {op.name!r} is taken" if op.name else "it has no name"
            raise InputError(f"op of type {op.type}: {what}")
        for name in op.inputs:
            if name:
                self._known(name, str(op))
        results = [name for name in op.outputs if name]
        given = op.given() & self._given
        self._given -= given
        for name in results:
            if (name in self.tensors and name not in given) or results.count(name) > 1:
                raise InputError(f"{op}: there is a tensor {name!r} already")
        shapes = op.output_shapes or (None,) * len(op.outputs)
        if not results or len(shapes) != len(op.outputs):
            raise InputError(f"{op}: it has {len(shapes)} shapes for {len(op.outputs)} results")
        known = tuple(self.tensors[n].shape if n else None for n in op.inputs)
        if known != op.input_shapes:
            op = replace(op, input_shapes=known)
        found = tuple(map(checked_shape, shapes))
        if None in found or (op.type == "Transpose" and None in (found[0] or ())):
            pairs = zip(found, infer(op), strict=True)  # a value has one shape
            found = tuple(b if a is None or (b and None in a) else a for a, b in pairs)
        if found != op.output_shapes:
            op = replace(op, output_shapes=found)
        for n, shape in enumerate(op.output_shapes):
            written = op.layouts.output(n) if op.layouts else None
            if written and shape is not None and len(written.dims) != len(shape):
                raise InputError(f"{op}: result {n} of shape {shape} is written as {written}")
        return op

    def _tensor(
        self,
        name: str,
        shape: Iterable[Size] | None,
        kind: Kind,
        layout: str | Layout,
        element_bytes: int,
        scope: str = "",
    ) -> str:
        if not name or name in self.tensors:
            what = f"there is a tensor {name!r} already" if name else "a tensor must have a name"
            raise InputError(what)
        self.tensors[name] = checked_tensor(name, shape, kind, layout, element_bytes, scope)
        return name

    def _known(self, name: str, reader: str) -> None:
        if name not in self.tensors:
            raise InputError(f"{reader}: there is no tensor {name!r}")

    def _free_name(self, type: str) -> str:
        stem = type.rpartition("::")[2].lower()
        number = self._counts.get(stem, 0)
        while (name := f"{stem}{number}") in self.tensors or name in self._op_names:
            number += 1
        self._counts[stem] = number
        return name


FORMAT = "layoutopt/network/1"


def network_hash(graph: ConversionGraph) -> str:
    """Return the hash of a network, however its file is written.

    It is ``"sha256:"`` and the digest of a canonical text, see ``docs/reproducibility.md``.
    Everything counts that layouts are chosen by: ops, tensors, inputs and outputs, in order and
    with their names.  Values of weights, names of graphs and metadata do not.

    Parameters
    ----------
    graph
        The network.

    Raises
    ------
    InputError
        If an attribute of an op holds what JSON cannot.

    Examples
    --------
    >>> graph = ConversionGraph()
    >>> x = graph.input("x", (1, 3, 8, 8))
    >>> graph.output(graph.op("Relu", [x]))
    >>> network_hash(graph)[:15]
    'sha256:2c7431b3'
    """
    tensors = [
        [t.kind, t.name, t.shape, t.element_bytes, str(t.layout)]
        for t in graph.tensors.values()
        if t.kind != "activation"
    ]
    ops = [_op(graph, op) for op in graph.ops]
    one = {"tensors": tensors, "ops": ops, "out": graph.outputs}
    return digest({"format": FORMAT, "graphs": [one]})


def _op(graph: ConversionGraph, op: Op) -> list[Any]:
    widths = [graph.tensors[name].element_bytes if name else None for name in op.outputs]
    results = [op.outputs, op.output_shapes, widths]
    layouts = None if op.layouts is None else str(op.layouts)
    told = [op.name, op.type, op.opset, op.inputs, results, dict(op.attributes), layouts]
    bodies = [[body.scope, body.inputs, body.outputs, body.rounds] for body in op.bodies]
    return [*told, op.scope, bodies] if op.scope or bodies else told
