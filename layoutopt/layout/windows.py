"""Windows that slide along dimensions: how many places they have, and what that needs padded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from layoutopt.layout.parts import LayoutError
from layoutopt.layout.sizes import check_word, sizes

AutoPad: TypeAlias = Literal["explicit", "none", "valid", "same_lower", "same_upper"]
"""How data is padded: as told (two words for this); not at all; so that a window of stride 1 has
as many places as there is data, an odd element going before it or behind."""

Pads: TypeAlias = tuple[tuple[int, int], ...]
"""Padding before and behind each dimension."""


def windows(
    size: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    data_dilations: Sequence[int] = (),
    *,
    autopad: AutoPad = "same_upper",
    padding: Sequence[int] = (),
) -> tuple[tuple[int, ...], Pads]:
    """Return the number of places of a window along each dimension, and the padding.

    Dilated by ``d``, ``n`` elements take ``d (n - 1) + 1``.  With data that takes ``t``, a window
    that takes ``w`` and stride ``s``, there are ``ceil(t / s)`` places if the padding is to keep
    them the same, and else ``floor((before + t + behind - w) / s) + 1``.

    Parameters
    ----------
    size, window
        Elements of the data and of the window, along each dimension.
    strides, dilations, data_dilations
        From one place to the next, from one element of the window to the next, and of the data;
        1 by default.
    autopad
        How to pad.
    padding
        If that is as told: before each dimension, and then behind each; if the latter are left
        out they are the former, and if all are, nothing is padded.

    Raises
    ------
    LayoutError
        If a number is wrong, if padding is told but not asked for, or if a window does not fit.

    Notes
    -----
    PlaidML's ``compute_padding_and_output_size`` and ``extend_manual_padding``; these take any
    number of paddings, and find no places, or fewer, for a window that does not fit.
    """
    check_word("autopad", autopad, AutoPad)
    data = sizes("size", size, 1)
    rank = len(data)
    steps = _each("strides", strides, rank)
    room = _taken(data, _each("data_dilations", data_dilations, rank))
    reach = _taken(sizes("window", window, 1, rank), _each("dilations", dilations, rank))
    if autopad in ("explicit", "none"):
        pads = _told(padding, rank)
    elif told := sizes("padding", padding):
        raise LayoutError(f"autopad {autopad} takes no padding, got {told}")
    elif autopad == "valid":
        pads = ((0, 0),) * rank
    else:
        pads = tuple(map(_same, room, reach, steps, [autopad == "same_lower"] * rank))
    return tuple(map(_places, room, reach, steps, pads)), pads


def _each(name: str, given: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return a number of 1 or more for each dimension."""
    return sizes(name, sizes(name, given, 1) or (1,) * rank, 1, rank)


def _taken(counts: Sequence[int], dilations: Sequence[int]) -> list[int]:
    """Return how much room dilated elements take along each dimension."""
    return [d * (n - 1) + 1 for n, d in zip(counts, dilations, strict=True)]


def _told(padding: Sequence[int], rank: int) -> Pads:
    """Return padding as pairs."""
    given = sizes("padding", padding)
    if len(given) not in (0, rank, 2 * rank):
        raise LayoutError(
            f"padding must have {rank} entries, {2 * rank} or none; got {len(given)}: {given}"
        )
    before = given[:rank] or (0,) * rank
    return tuple(zip(before, given[rank:] or before, strict=True))


def _same(room: int, reach: int, stride: int, before: bool) -> tuple[int, int]:
    """Return the padding that keeps the number of places, its odd element before or behind."""
    places = -(-room // stride)
    total = max(0, (places - 1) * stride + reach - room)
    first = (total + before) // 2
    return first, total - first


def _places(room: int, reach: int, stride: int, pads: tuple[int, int]) -> int:
    """Return the number of places of one window."""
    padded = room + sum(pads)
    if reach > padded:
        raise LayoutError(f"a window over {reach} elements does not fit into {padded}")
    return (padded - reach) // stride + 1
