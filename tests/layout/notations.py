"""Shared by the tests of notation: texts with what they mean, and offsets by the definition."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from string import ascii_lowercase, ascii_uppercase

import pytest
from hypothesis import strategies as st

from layoutopt.layout.layout import Block, Dialect, Dim, Layout, LayoutError

Written = tuple[str, tuple[Dim, ...]]
"""A text, and its dimensions."""

SIZES = st.integers(1, 40)


def misread(text: str, dialect: Dialect | None, column: int, *parts: str) -> None:
    """Expect an error of one line with the given parts, and a caret under a column (from 1)."""
    with pytest.raises(LayoutError) as caught:
        Layout.parse(text, dialect)
    error = caught.value
    assert str(error).startswith(f"column {column} of layout {text!r}: ")
    assert all(part in str(error) for part in parts)
    assert len(str(error).splitlines()) == 1
    assert (error.text, error.at) == (text, column - 1)
    assert error.picture.split("\n")[1] == "^".rjust(column)


def offsets(layout: Layout, order: str, shape: tuple[int, ...]) -> dict[tuple[int, ...], int]:
    """Return where each element lies, in elements, of a layout with no alignment.

    Parameters
    ----------
    order
        The axes in the order of the shape.
    """
    blocks = [block for dim in layout.dims for block in dim.blocks]
    inner = {axis: prod(b.size or 1 for b in blocks if b.axis == axis) for axis in order}
    found = {}
    for element in product(*map(range, shape)):
        offset = 0
        rest = {axis: i % inner[axis] for axis, i in zip(order, element, strict=True)}
        left = dict(inner)
        for block in blocks:
            at = order.index(block.axis)
            if block.size is None:
                extent = -(-shape[at] // inner[block.axis])
                digit = element[at] // inner[block.axis]
            else:
                extent = block.size
                left[block.axis] //= extent
                digit, rest[block.axis] = divmod(rest[block.axis], left[block.axis])
            offset = offset * extent + digit
        found[element] = offset
    return found


@st.composite
def glow_texts(draw: st.DrawFn) -> Written:
    """Return a Glow text: letters in both cases and ``*``, extensions of all kinds."""
    letters = draw(st.lists(st.sampled_from(ascii_uppercase), max_size=6, unique=True))
    inside = st.text(st.characters(exclude_characters="]"), max_size=5)
    text, dims = "", []
    for letter in letters:
        letter = draw(st.sampled_from([letter, letter.lower(), "*"]))
        boxes = draw(st.lists(st.tuples(inside, inside).map(":".join), max_size=3))
        if draw(st.booleans()):
            at = draw(st.integers(0, len(boxes)))
            boxes.insert(at, f"a={draw(st.integers(1, 2**40))}")
        text += letter + "".join(f"[{box}]" for box in boxes)
        dims.append(Dim((Block(letter.upper()),), tuple(boxes), lower=letter.islower()))
    return text, tuple(dims)


@st.composite
def tvm_texts(draw: st.DrawFn) -> Written:
    """Return a TVM text: axes and blocks anywhere, some neighbouring blocks packed."""
    axes = draw(st.lists(st.sampled_from(ascii_uppercase), max_size=7, unique=True))
    sizes = {axis: draw(SIZES) for axis in axes if draw(st.booleans())}
    blocks = draw(st.permutations([*map(Block, axes), *map(Block, sizes, sizes.values())]))
    text, dims = "", []
    while blocks:
        many = draw(st.integers(1, 3))
        few = blocks[: many if all(b.size for b in blocks[:many]) else 1]
        blocks = blocks[len(few) :]
        one = "".join(f"{b.size}{b.axis.lower()}" if b.size else b.axis for b in few)
        text += f"[{one}]" if len(few) > 1 else one
        dims.append(Dim(tuple(few)))
    return text, tuple(dims)


@st.composite
def onednn_texts(draw: st.DrawFn) -> Written:
    """Return a oneDNN tag: by position or by names, with up to four blocks."""
    names = draw(st.sampled_from([ascii_lowercase[: draw(st.integers(1, 12))], "ncdhwoigtlx"]))
    axes = draw(st.permutations(names))
    if names == "ncdhwoigtlx":
        axes = axes[: draw(st.integers(1, 11))]
    inner = draw(st.lists(st.tuples(SIZES, st.sampled_from(axes)), max_size=4))
    blocked = {axis for _, axis in inner}
    text = "".join(axis.upper() if axis in blocked else axis for axis in axes)
    blocks = [Block(axis.upper()) for axis in axes]
    blocks += [Block(axis.upper(), size) for size, axis in inner]
    return text + "".join(f"{n}{axis}" for n, axis in inner), tuple(Dim((b,)) for b in blocks)


@st.composite
def xla_texts(draw: st.DrawFn) -> Written:
    """Return an XLA text with up to three tiles, each no longer than the one before."""
    rank = draw(st.integers(0, 6))
    order = draw(st.permutations(range(rank)))
    axes = [ascii_uppercase[axis] for axis in reversed(order)]
    runs: list[list[int]] = []
    longest = rank
    while longest and len(runs) < 3 and draw(st.booleans()):
        longest = draw(st.integers(1, longest))
        runs.append([draw(SIZES) for _ in range(longest)])
    tiles = []
    for n, run in enumerate(runs):
        # A tile has as many values of an axis as its own blocks and all later ones together.
        later = [[1] * (len(run) - len(other)) + other for other in runs[n:]]
        tiles.append(f"({','.join(str(prod(column)) for column in zip(*later, strict=True))})")
    text = "{" + ",".join(map(str, order)) + (":T" + "".join(tiles) if tiles else "") + "}"
    blocks = [Block(axis) for axis in axes]
    for run in runs:
        blocks += [Block(axis, n) for axis, n in zip(axes[-len(run) :], run, strict=True)]
    return text, tuple(Dim((block,)) for block in blocks)


TEXTS: dict[Dialect, Callable[[], st.SearchStrategy[Written]]] = {
    "glow": glow_texts,
    "tvm": tvm_texts,
    "onednn": onednn_texts,
    "xla": xla_texts,
}
