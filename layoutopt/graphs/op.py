"""What all ops of unwinding graphs share: kinds, shapes and errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any, ClassVar, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Shape: TypeAlias = tuple[int, ...]
Array: TypeAlias = NDArray[Any]

MAX_ELEMENTS = 2**62
"""No tensor may have more elements, so that flat indices fit 64 bits."""


class OpError(ValueError):
    """An op's attributes do not fit its operands; the text says which and why."""


class Kind(Enum):
    """How an op's outputs get their locations."""

    SINK = "sink"
    SOURCE = "source"
    BARRIER = "barrier"
    FIXED_POINT = "fixed point"
    VIEW = "view"


# gc=False: an op refers to nothing that refers back, and large graphs have very many of them.
class UnwindingOp(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False
):
    """What all ops share.

    Parameters
    ----------
    id
        The op's unique name.
    inputs
        Names of the tensors that it reads: ``"id"`` for an op's only output, ``"id:1"`` for
        output 1.
    """

    id: str
    inputs: tuple[str, ...]

    kind: ClassVar[Kind] = Kind.VIEW
    arity: ClassVar[int | None] = 1
    """Number of inputs; ``None`` for any number."""

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the outputs' shapes for inputs of the given shapes.

        Raises
        ------
        OpError
            If the attributes do not fit.
        """
        raise NotImplementedError  # every type of op has its own

    def carriers(self, inputs: int) -> range:
        """Return which of so many inputs pass their locations on."""
        return range(inputs if self.kind is Kind.VIEW else 0)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the output of a view, for one array per carrier."""
        raise NotImplementedError  # asked of views alone, which have their own


class ShapedOp(UnwindingOp, frozen=True, kw_only=True):
    """An op whose single output shape is given, or derived and then checked."""

    shape: Shape | None = None

    def given(self) -> Shape:
        """Return the shape of an op that cannot derive it."""
        if self.shape is None:
            raise OpError("shape is missing")
        return self.shape


def size(shape: Shape) -> int:
    """Return the number of elements of a tensor; 1 for rank 0."""
    return math.prod(shape)


def type_name(op: UnwindingOp) -> str:
    """Return the op's type as files name it, for instance ``"dim_shuffle"``."""
    return str(op.__struct_config__.tag)


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Return the shape that operands of the given shapes broadcast to, by NumPy's rules."""
    if not shapes:
        raise OpError("needs at least one input")
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise OpError(f"shapes {[list(s) for s in shapes]} do not broadcast") from None


def dominates(large: Shape, small: Shape) -> bool:
    """Return whether ``small`` broadcasts to ``large`` by NumPy's rules."""
    tail = large[len(large) - len(small) :] if small else ()
    return len(small) <= len(large) and all(s in (1, n) for s, n in zip(small, tail, strict=True))
