"""Steps of pieces: the arrays that they read, and the nodes and weights that they add."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TypeAlias

import numpy as np

from tests.fuzzing.any_network.scope import Array, Scope

Found: TypeAlias = str | list[str] | bool | None
"""Names of what nodes give that were added, or True; nothing true if they do not run."""

Piece: TypeAlias = Callable[[Scope], Found]
"""Adds some nodes to a graph."""


def reads(
    kinds: str | None = None,
    rank: int = 0,
    most: int = 9,
    *,
    since: int = 0,
    single: bool = False,
    varying: bool = False,
) -> Callable[[Callable[[Scope, str, Array], Found]], Piece]:
    """Give a piece a visible array to read, by name and value, if there is one that fits.

    Parameters
    ----------
    kinds, rank, most, varying
        Which arrays fit, as :meth:`Scope.pick` takes them.
    since
        The first version of the operator set that has what the piece adds.
    single
        Whether only numbers of single precision will do.
    """

    def decorated(piece: Callable[[Scope, str, Array], Found]) -> Piece:
        @wraps(piece)
        def with_array(scope: Scope) -> Found:
            name = scope.pick(kinds, rank, most, varying=varying)
            if name is None or scope.opset < since or (single and scope[name].dtype != np.float32):
                return False
            return piece(scope, name, scope[name])

        return with_array

    return decorated


def transposed_weight(scope: Scope, array: Array, order: Sequence[int]) -> str:
    """Add a transpose of a constant that gives an array."""
    held = scope.constant(np.ascontiguousarray(array.transpose(np.argsort(order))))
    return scope.transposed(held, order)


def product_weight(scope: Scope, data: Array) -> tuple[str, dict[str, int]]:
    """Return a weight that a Gemm multiplies a matrix by, and which of both it transposes."""
    flags = {key: scope.draw.choice((0, 1)) for key in ("transA", "transB")}
    rows = data.shape[flags["transA"] - 1]
    return scope.drawn((3, rows) if flags["transB"] else (rows, 3), data.dtype), flags


def recurrent_weights(scope: Scope, data: Array, rows: Sequence[int], hidden: int) -> list[str]:
    """Return the weights of a recurrent op: for what it reads, and for its state."""
    return [scope.drawn((*rows, n), data.dtype) for n in (data.shape[2], hidden)]


def scale_of(scope: Scope, shape: Sequence[int]) -> str:
    """Return scales that integers are multiplied by."""
    return scope.constant(np.abs(scope.number(shape)) + np.float32(0.25))


def quantised_by(scope: Scope, shape: Sequence[int], kinds: Sequence[str]) -> list[str]:
    """Return scales, and zero points of one of some kinds of integers."""
    scale = scale_of(scope, shape)
    return [scale, scope.constant(np.abs(scope.number(shape, scope.draw.choice(kinds))))]


def divisor(scope: Scope, size: int) -> int:
    """Return a number of groups or heads that a size can be split into."""
    return scope.draw.choice([k for k in range(1, size + 1) if size % k == 0] or [1])
