"""Requirements of backends, by name; users add their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from layoutopt.base.errors import InputError
from layoutopt.conversion.requirements import Requirements, axis_sizes
from layoutopt.conversion.rules.op import Op, Size, plain
from layoutopt.conversion.rules.operator import SPATIAL_AXES
from layoutopt.conversion.rules.registry import operand_axes, written_layout
from layoutopt.layout.factors import open_sizes
from layoutopt.layout.layout import ANY, Layout

AnyBackend = TypeVar("AnyBackend", bound=type[Requirements])


class ChannelsFirst(Requirements):
    """All in the order in which ONNX writes it: NCW, NCHW, NCDHW, OIHW."""

    def default_layout(self, rank: int) -> Layout:
        """Return N, C and the spatial axes."""
        return plain("NC" + SPATIAL_AXES[rank - 2] if 3 <= rank <= 5 else ANY * rank)


class MobileChannelsLast(Requirements):
    """Data with channels last and weights as HWIO, whatever the number of spatial axes."""

    def default_layout(self, rank: int) -> Layout:
        """Return N, the spatial axes, and C."""
        return plain(f"N{SPATIAL_AXES[rank - 2]}C" if 3 <= rank <= 5 else ANY * rank)

    def operand_layout(self, op: Op, axes: str, sizes: Mapping[str, Size]) -> Layout:
        """Return HWIO for weights, whatever else the default says for other operands."""
        if {"O", "I"} <= set(axes):
            return plain(axes.replace("O", "").replace("I", "") + "IO")
        return super().operand_layout(op, axes, sizes)


class BlockedCpu(ChannelsFirst):
    """Channels in blocks of 16 where all of them divide, as NCHW16c and OIHW16i16o; else plain.

    That is what oneDNN's convolutions, pools and normalisations take.  An op of which more than
    one size is open is plain, too: what is cut into blocks is written as a Reshape.

    Parameters
    ----------
    block
        The size of a block.
    """

    types = frozenset(
        {"AveragePool", "BatchNormalization", "Conv", "LRN", "MaxPool"}
        | {"GlobalAveragePool", "GlobalMaxPool"}
    )
    """The types of ops that have such an implementation."""

    def __init__(self, block: int = 16) -> None:
        self.block = block

    def operand_layout(self, op: Op, axes: str, sizes: Mapping[str, Size]) -> Layout:
        """Return blocks for data and weights if channels of both divide by the block's size."""
        if len(axes) < 3 or not self._divides(op):
            return super().operand_layout(op, axes, sizes)
        inner = f"{self.block}i{self.block}o" if "I" in axes else f"{self.block}c"
        return Layout.parse(axes + inner)

    def _divides(self, op: Op) -> bool:
        if op.type not in self.types or op.attributes.get("group", 1) != 1:
            return False
        if any(open_sizes(shape) > 1 for shape in op.shapes):
            return False
        known = operand_axes(op)
        for n, layout in enumerate(known.inputs if known else ()):
            sizes = axis_sizes(written_layout(op, n), op.shape(n))
            for axis in set(layout.axes if layout else "") & set("COI"):
                size = sizes.get(axis)
                if op.has(n) and not (isinstance(size, int) and size % self.block == 0):
                    return False
        return True


BACKENDS: dict[str, Requirements] = {
    "canonical": Requirements(),
    "nchw": ChannelsFirst(),
    "nhwc": MobileChannelsLast(),
    "blocked": BlockedCpu(),
}
"""Requirements of backends by name."""


def backend(name: str) -> Callable[[AnyBackend], AnyBackend]:
    """Register a class of requirements under a name, as a decorator; it replaces what had it.

    Raises ``InputError`` if the class is none of requirements, or cannot be made without
    arguments.
    """

    def add(cls: AnyBackend) -> AnyBackend:
        if not (isinstance(cls, type) and issubclass(cls, Requirements)):
            raise InputError(f"backend {name!r} must be a class derived from Requirements")
        try:
            BACKENDS[name] = cls()
        except TypeError as error:
            raise InputError(f"backend {name!r} must need no arguments: {error}") from None
        return cls

    return add


def backend_named(name: str) -> Requirements:
    """Return the requirements of the backend of a name; raises ``InputError`` if there is none."""
    if name not in BACKENDS:
        raise InputError(f"backend {name!r} must be one of {', '.join(BACKENDS)}")
    return BACKENDS[name]
