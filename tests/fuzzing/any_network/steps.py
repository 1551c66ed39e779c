"""Steps of pieces: the arrays that they read, and the nodes and weights that they add."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from random import Random
from typing import TypeAlias

import numpy as np

from tests.fuzzing.any_network.scope import Array, Scope

Found: TypeAlias = str | list[str] | bool | None
"""Names of what nodes give that were added, or True; nothing true if they do not run."""

Piece: TypeAlias = Callable[[Scope], Found]
"""Adds some nodes to a graph."""

Reader: TypeAlias = Callable[[Scope, Random, str, Array], Found]
"""Adds some nodes that read an array, given by name and value, and draws what they are like."""


def reads(
    kinds: str | None = None,
    rank: int = 0,
    most: int = 9,
    *,
    since: int = 0,
    single: bool = False,
    varying: bool = False,
) -> Callable[[Reader], Piece]:
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

    def decorated(piece: Reader) -> Piece:
        @wraps(piece)
        def with_array(scope: Scope) -> Found:
            name = scope.pick(kinds, rank, most, varying=varying)
            if name is None or scope.opset < since or (single and scope[name].dtype != np.float32):
                return False
            return piece(scope, scope.draw, name, scope[name])

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
