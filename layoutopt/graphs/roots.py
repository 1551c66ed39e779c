"""Ops whose outputs have locations of their own, and sinks, whose locations are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layoutopt.graphs.op import Kind, OpError, Shape, ShapedOp, dominates, size


class Sink(ShapedOp, frozen=True, kw_only=True, tag="sink"):
    """A graph input whose locations are the solver's to choose."""

    kind = Kind.SINK
    arity = 0

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the given shape."""
        return (self.given(),)


class Source(ShapedOp, frozen=True, kw_only=True, tag="source"):
    """A tensor with locations of its own.

    Parameters
    ----------
    mapping
        One location per element, in row-major order.  Equal values are equal locations, in
        all sources of a graph.  Without it every element has a location of its own.
    rule
        A tile mapping by name, for graphs with a tile memory; without one it does nothing.
    """

    mapping: tuple[int | str, ...] | None = None
    rule: dict[str, Any] | None = None

    kind = Kind.SOURCE
    arity = 0

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the given shape, if a mapping fits it."""
        shape = self.given()
        if self.mapping is not None:
            if self.rule is not None:
                raise OpError("mapping and rule exclude each other")
            if len(self.mapping) != size(shape):
                raise OpError(
                    f"mapping has {len(self.mapping)} entries, shape {list(shape)} "
                    f"has {size(shape)} elements"
                )
        if self.rule is not None and not isinstance(self.rule.get("kind"), str):
            raise OpError('rule needs a "kind", which is a string')
        return (shape,)


class OpaqueOp(ShapedOp, frozen=True, kw_only=True):
    """An op with given outputs, one or several, that no input location passes through.

    Parameters
    ----------
    shape
        Shape of a single output.
    shapes
        Shapes of several outputs.
    """

    shapes: tuple[Shape, ...] | None = None

    arity = None

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the given shapes."""
        if (self.shape is None) == (self.shapes is None):
            raise OpError("exactly one of shape and shapes must be given")
        return (self.shape,) if self.shape is not None else self.shapes or ()


class Barrier(OpaqueOp, frozen=True, kw_only=True, tag="barrier"):
    """An op whose outputs' locations are known once all its inputs' are.

    Parameters
    ----------
    hook
        Name of the tile-memory function that gives the outputs' tiles.
    """

    hook: str | None = None

    kind = Kind.BARRIER


class FixedPoint(OpaqueOp, frozen=True, kw_only=True, tag="fixed_point"):
    """An op whose outputs' locations do not depend on its inputs."""

    kind = Kind.FIXED_POINT


class SumLikeReduce(ShapedOp, frozen=True, kw_only=True, tag="sum_like_reduce"):
    """A barrier that stands for the layout of an elementwise op's broadcast operand."""

    kind = Kind.BARRIER

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the given shape, which must broadcast to the input's."""
        shape = self.given()
        if not dominates(shapes[0], shape):
            raise OpError(f"shape {list(shape)} does not broadcast to {list(shapes[0])}")
        return (shape,)
