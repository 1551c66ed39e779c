"""Rules by name, from a tensor's shape to the tile of each of its elements."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from layoutopt.errors import InputError
from layoutopt.tiles.answers import Rule, check_parameters, check_range, mapped
from layoutopt.tiles.arguments import integers, least
from layoutopt.tiles.blocks import TileMap
from layoutopt.tiles.convolutions import conv_data, conv_filter, conv_out
from layoutopt.tiles.followers import broadcast_indices, reduced_indices, taken, window_indices
from layoutopt.tiles.memory import TileMemory
from layoutopt.tiles.products import matmul_lhs, matmul_out, matmul_rhs
from layoutopt.tiles.spreads import grid, linear

AnyRule = TypeVar("AnyRule", bound=Rule)


def tile_map(
    shape: Sequence[int], memory: TileMemory, rule: Mapping[str, Any] | None = None
) -> TileMap:
    """Return which tile each element of a tensor is on.

    Parameters
    ----------
    shape
        The tensor's shape.
    memory
        The machine.
    rule
        ``{"kind": name, parameter: value, ...}``, as instance files have it; if ``None``, the
        linear rule that gives every tile a box.

    Raises
    ------
    InputError
        If there is no such rule, its parameters are wrong or do not fit the shape, or it puts
        an element on a tile that the machine does not have.

    Examples
    --------
    >>> from layoutopt.tiles.memory import TileMemory
    >>> halves = {"kind": "grid", "blocks": [1, 2]}
    >>> tile_map((2, 4), TileMemory(8, 1024), halves).tiles().reshape(2, 4).tolist()
    [[0, 0, 1, 1], [0, 0, 1, 1]]
    """
    shape = integers("shape", shape, 0)
    name, function, parameters = _looked_up(DEFAULT if rule is None else rule)
    try:
        check_parameters(function, parameters)
        found = mapped(_called(name, function, shape, memory, parameters), shape)
        check_range(found, memory)
    except InputError as error:
        raise InputError(f"rule {name!r}: {error.reason}") from None
    return found


def rule(name: str) -> Callable[[AnyRule], AnyRule]:
    """Return a decorator that makes a function the rule of a name.

    Parameters
    ----------
    name
        The rule's ``kind``.  A name of this package cannot be taken; one of your own can be
        taken again, and then means the new function.

    Raises
    ------
    InputError
        If the name cannot be taken, or the function does not take a shape and a memory.

    Examples
    --------
    >>> @rule("corner")
    ... def corner(shape, memory, *, tile=0):
    ...     return np.full(shape, tile)
    """
    if not isinstance(name, str) or not name:
        raise InputError(f"a rule's name must be a text, got {name!r}")
    if name in BUILT_IN:
        raise InputError(f"rule {name!r} is one of the package's own; take another name")

    def add(function: AnyRule) -> AnyRule:
        try:
            inspect.signature(function).bind_partial((), None)
        except TypeError:
            raise InputError(
                f"rule {name!r} must be a function (shape, memory, **parameters)"
            ) from None
        RULES[name] = function
        return function

    return add


def bias(
    shape: tuple[int, ...],
    memory: TileMemory,
    *,
    of: Sequence[int],
    rule: Mapping[str, Any] | None = None,
    axis: int | None = None,
) -> TileMap:
    """Lay an operand that is broadcast like what it is broadcast to.

    An element is on the tile of the first element of the other tensor that it is broadcast to:
    the one whose index is 0 along all dimensions that the operand lacks, or has as 1.

    Parameters
    ----------
    shape, memory
        The operand's shape, and the machine.
    of, rule
        Shape and rule of the tensor that it is broadcast to; the linear rule by default.
    axis
        The dimension of ``of`` that the operand's first one belongs to.  By default the last
        ones belong together, as in NumPy; the bias of a convolution has 1.

    Raises
    ------
    InputError
        If the shape does not broadcast so, or the other rule does not fit.
    """
    large = integers("of", of, 0)
    first = len(large) - len(shape) if axis is None else least("axis", axis, 0)
    indices = broadcast_indices(shape, large, first)
    return taken(tile_map(large, memory, rule), large, indices)


def reduction(
    shape: tuple[int, ...],
    memory: TileMemory,
    *,
    of: Sequence[int],
    axes: Sequence[int],
    rule: Mapping[str, Any] | None = None,
) -> TileMap:
    """Lay the result of a reduction like the first element of each range that is reduced.

    Parameters
    ----------
    shape, memory
        The result's shape, where reduced dimensions are 1 or missing, and the machine.
    of, rule
        Shape and rule of the tensor that is reduced; the linear rule by default.
    axes
        The reduced dimensions of ``of``, counted from 0.

    Raises
    ------
    InputError
        If the shapes do not fit each other, or the other rule does not fit.
    """
    large = integers("of", of, 0)
    indices = reduced_indices(shape, large, integers("axes", axes, 0))
    return taken(tile_map(large, memory, rule), large, indices)


def pooling(
    shape: tuple[int, ...],
    memory: TileMemory,
    *,
    of: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int] | None = None,
    rule: Mapping[str, Any] | None = None,
) -> TileMap:
    """Lay the result of a pooling like the first element of each window.

    In a dimension with stride ``s`` and ``p`` elements of padding before the first, the window of
    index ``o`` begins at ``max(o * s - p, 0)``.

    Parameters
    ----------
    shape, memory
        The result's shape, and the machine.
    of, rule
        Shape and rule of the tensor that windows move over; the linear rule by default.
    strides, padding
        One number for each of the last dimensions; no padding by default.

    Raises
    ------
    InputError
        If the shapes do not fit each other, or the other rule does not fit.
    """
    large, steps = integers("of", of, 0), integers("strides", strides)
    before = integers("padding", [0] * len(steps) if padding is None else padding, 0, len(steps))
    indices = window_indices(shape, large, steps, before)
    return taken(tile_map(large, memory, rule), large, indices)


RULES: dict[str, Rule] = {
    "linear": linear,
    "grid": grid,
    "matmul_lhs": matmul_lhs,
    "matmul_rhs": matmul_rhs,
    "matmul_out": matmul_out,
    "conv_data": conv_data,
    "conv_filter": conv_filter,
    "conv_out": conv_out,
    "bias": bias,
    "reduction": reduction,
    "pooling": pooling,
}
"""Rules by name; :func:`rule` adds to them."""

DEFAULT: Mapping[str, Any] = {"kind": "linear", "boxes": True}
"""The rule of what has none."""

BUILT_IN = frozenset(RULES)
"""The names that users' rules cannot take."""


def _looked_up(given: Mapping[str, Any]) -> tuple[str, Rule, dict[str, Any]]:
    """Return a rule's name, function and parameters."""
    if not isinstance(given, Mapping):
        raise InputError(f"a rule must be a dictionary with a 'kind', not {given!r}")
    name = given.get("kind")
    if not isinstance(name, str) or name not in RULES:
        raise InputError(f"unknown rule {name!r}; known: {', '.join(RULES)}")
    return name, RULES[name], {key: value for key, value in given.items() if key != "kind"}


def _called(
    name: str,
    function: Rule,
    shape: tuple[int, ...],
    memory: TileMemory,
    parameters: Mapping[str, Any],
) -> Any:
    """Return what a rule returns; whatever a user's rule raises becomes one line."""
    try:
        return function(shape, memory, **parameters)
    except InputError:
        raise
    except Exception as error:  # a user's function may raise anything
        if name in BUILT_IN:
            raise
        raise InputError(f"failed with {type(error).__name__}: {error}") from error
