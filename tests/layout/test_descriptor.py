"""Memory descriptors: where elements lie, and other dims for the same bytes."""

from __future__ import annotations

import itertools
import random
from math import prod
from string import ascii_uppercase

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutopt.layout.descriptor import Descriptor
from layoutopt.layout.layout import Block, Dim, Layout, LayoutError

# Memory descriptors: where elements lie, and other dims for the same bytes


Shape = tuple[int, ...]


def tagged(dims: Shape, tag: str) -> Descriptor:
    """Return a descriptor by tag."""
    return Descriptor.from_tag(dims, tag)


def placed(d: Descriptor) -> dict[Shape, int]:
    """Return the place of each element, index by index, as oneDNN's guide to blocking has it."""
    found = {}
    for index in itertools.product(*map(range, d.dims)):
        rest, place, weight = list(index), 0, 1
        for axis, size in reversed(d.blocks):
            rest[axis], digit = divmod(rest[axis], size)
            place += digit * weight
            weight *= size
        found[index] = place + sum(r * s for r, s in zip(rest, d.strides, strict=True))
    return found


def packed(dims: Shape, order: str, blocks: list[tuple[str, int]]) -> np.ndarray:
    """Return the place of each element by padding, cutting and transposing an array of numbers."""
    letters = sorted(order)
    padded = [
        -(-n // (u := prod(s for a, s in blocks if a == x))) * u
        for n, x in zip(dims, letters, strict=True)
    ]
    numbers = np.full(padded, -1)
    numbers[tuple(map(slice, dims))] = np.arange(prod(dims)).reshape(dims)
    cut, where = [], {}
    for letter, size in zip(letters, padded, strict=True):
        inner = [(k, s) for k, (a, s) in enumerate(blocks) if a == letter]
        where[letter] = len(cut)
        cut.append(size // prod(s for _, s in inner))
        for k, s in inner:
            where[k] = len(cut)
            cut.append(s)
    axes = [where[a] for a in order] + [where[k] for k in range(len(blocks))]
    memory = numbers.reshape(cut).transpose(axes).ravel()
    places = np.empty(prod(dims), np.int64)
    at = np.flatnonzero(memory >= 0)
    places[memory[at]] = at
    return places.reshape(dims)


@st.composite
def tags(draw: st.DrawFn) -> tuple[Shape, str, list[tuple[str, int]]]:
    """Draw dims, the order of axes, and blocks."""
    rank = draw(st.integers(1, 4))
    dims = tuple(draw(st.lists(st.integers(1, 6), min_size=rank, max_size=rank)))
    order = draw(st.permutations("abcd"[:rank]))
    block = st.tuples(st.sampled_from("abcd"[:rank]), st.integers(2, 4))
    return dims, "".join(order), draw(st.lists(block, max_size=2))


def text(order: str, blocks: list[tuple[str, int]]) -> str:
    """Write a tag."""
    blocked = {axis for axis, _ in blocks}
    outer = "".join(a.upper() if a in blocked else a for a in order)
    return outer + "".join(f"{size}{axis}" for axis, size in blocks)


@given(tags())
def test_places_of_tags(drawn: tuple[Shape, str, list[tuple[str, int]]]) -> None:
    """Elements lie where padding, cutting and transposing puts them, and the tag comes back."""
    dims, order, blocks = drawn
    tag = text(order, blocks)
    d = tagged(dims, tag)
    assert np.array_equal(d.offsets(), packed(dims, order, blocks))
    assert dict(np.ndenumerate(d.offsets())) == placed(d)
    assert d.size == prod(d.padded_dims)
    assert tagged(dims, str(d.layout)) == d
    # Axes that are never stepped along may stand anywhere.
    if all(n > u for n, u in zip(dims, d.blocked, strict=True)):
        assert str(d.layout) == tag


def test_equal() -> None:
    """As in oneDNN's test, strides of axes of size 1 make no difference, but padding does."""
    simple, strided = Descriptor((1, 1, 1, 1), (1, 1, 1, 1)), Descriptor((1, 1, 1, 1), (8, 4, 2, 1))
    assert simple == strided
    assert hash(simple) == hash(strided)
    blocked = tagged((1, 4, 1, 1), "nChw8c")
    assert blocked != tagged((1, 4, 1, 1), "nchw")
    assert blocked != simple
    assert Descriptor((2, 2), (2, 1)) != Descriptor((2, 2), (3, 1))
    assert Descriptor((2, 2), (0, 1)) != Descriptor((2, 2), (2, 1))
    assert simple != "abcd"


def test_layouts_that_are_no_tags() -> None:
    """Blocks outside of axes have no descriptor, unless of 1; alignments become strides."""
    outer = Layout((Dim((Block("A"),)), Dim((Block("A", 2),)), Dim((Block("B"),))))
    with pytest.raises(LayoutError, match="blocks must be innermost, side by side"):
        Descriptor.from_layout((4, 3), outer)
    trivial = Layout((Dim((Block("A"),)), Dim((Block("A", 1),)), Dim((Block("B"),))))
    assert Descriptor.from_layout((4, 3), trivial) == tagged((4, 3), "ab")
    aligned = Layout((Dim((Block("A"),), ("a=32",)), Dim((Block("B"),))))
    assert Descriptor.from_layout((4, 3), aligned, element_bytes=4).strides == (8, 1)
    with pytest.raises(LayoutError, match="3 entries"):
        tagged((1, 2, 3), "ab")


def test_most_axes_and_places() -> None:
    """Tags have 26 letters, and places 64 bits."""
    assert Descriptor((1,) * 26, (1,) * 26).layout.axes == ascii_uppercase
    with pytest.raises(LayoutError, match="a layout has up to 26 axes, not 27"):
        _ = Descriptor((1,) * 27, (1,) * 27).layout
    assert Descriptor((2,), (2**63 - 2,)).offsets().tolist() == [0, 2**63 - 2]


def same_bytes(before: Descriptor, after: Descriptor) -> bool:
    """Reshape a descriptor to another of the same bytes, and return whether that leads back."""
    assert before.reshape(after.dims) == after
    assert list(placed(before).values()) == list(placed(after).values())
    assert before.size == after.size
    return after.reshape(before.dims) == before


BLOCKED = Descriptor((2, 16), (64, 4), blocks=((1, 4),))
"""A window of a tensor of 64 channels in blocks of 4: the blocks of a row end where the next
row would begin if they were all of it."""


def test_blocked_axis_in_a_join() -> None:
    """The window that oneDNN would join has no strides as one axis: its places are not even."""
    flat = list(placed(BLOCKED).values())
    assert BLOCKED.dims[1] * BLOCKED.strides[1] == BLOCKED.strides[0]
    assert strided(flat, (32,)) is None


def strided(flat: list[int], dims: Shape) -> Shape | None:
    """Return strides with which elements of new dims lie at these places, if there are any."""
    places = np.array(flat).reshape(dims)
    zero = (0,) * len(dims)
    at = [tuple(np.eye(len(dims), dtype=int)[d]) if n > 1 else zero for d, n in enumerate(dims)]
    strides = tuple(int(places[index] - places[zero]) for index in at)
    found = sum(np.indices(dims)[d] * s for d, s in enumerate(strides)) + np.zeros(dims, int)
    return strides if np.array_equal(found, places - places[zero]) else None


def random_descriptor(draw: random.Random) -> Descriptor:
    """Return a descriptor with blocks, padding or gaps, or with none of them."""
    rank = draw.randint(0, 4)
    dims = [draw.choice([1, 1, 2, 3, 4, 6]) for _ in range(rank)]
    blocks = tuple(
        (draw.randrange(rank), draw.choice([2, 3]))
        for _ in range(rank and draw.choice([0, 0, 1, 2]))
    )
    extra = [draw.choice([0, 0, 0, 1]) for _ in dims]
    padded, strides, reach = [], [0] * rank, prod(size for _, size in blocks)
    for axis, n in enumerate(dims):
        unit = prod(size for at, size in blocks if at == axis)
        padded.append((-(-n // unit) + extra[axis]) * unit)
    order = (
        sorted(range(rank), reverse=True) if draw.random() < 0.7 else draw.sample(range(rank), rank)
    )
    for axis in order:
        strides[axis] = reach + draw.choice([0, 0, 0, 0, 1])
        unit = prod(size for at, size in blocks if at == axis)
        reach = strides[axis] * (padded[axis] // unit)
    return Descriptor(tuple(dims), tuple(strides), tuple(padded), blocks)


def factorings(volume: int, most: int) -> list[Shape]:
    """Return all shapes of some number of elements, and up to some rank."""
    if most == 0:
        return [()] if volume == 1 else []
    divisors = [n for n in range(1, volume + 1) if volume % n == 0]
    longer = [(n, *rest) for n in divisors for rest in factorings(volume // n, most - 1)]
    return list(dict.fromkeys([*([()] if volume == 1 else []), *longer]))


def test_random_permutations() -> None:
    """Permuting axes leaves every element where it is, and its index permuted."""
    draw = random.Random(1)
    for _ in range(300):
        d = random_descriptor(draw)
        perm = draw.sample(range(d.rank), d.rank)
        moved, before = d.permute_axes(perm), placed(d)
        after = placed(moved)
        assert moved.size == d.size
        for index, place in before.items():
            to = [0] * d.rank
            for axis, i in enumerate(index):
                to[perm[axis]] = i
            assert after[tuple(to)] == place


def test_random_reshapes() -> None:
    """Accepted reshapes keep all bytes; refused ones of plain tensors have no strides at all."""
    draw, outcomes = random.Random(2), {"kept": 0, "plain": 0, "other": 0}
    for _ in range(1000):
        d = random_descriptor(draw)
        shapes = factorings(prod(d.dims), 4)
        flat = list(placed(d).values())
        plain = not d.blocks and d.padded_dims == d.dims
        for dims in draw.sample(shapes, min(8, len(shapes))):
            try:
                after = d.reshape(dims)
            except LayoutError:
                outcomes["plain" if plain else "other"] += 1
                assert not plain or strided(flat, dims) is None
                continue
            outcomes["kept"] += 1
            assert after.dims == dims
            assert after.size == d.size
            assert after.offsets().ravel().tolist() == list(placed(after).values()) == flat
            assert not plain or strided(flat, dims) == tuple(
                s if n > 1 else 0 for n, s in zip(dims, after.strides, strict=True)
            )
    assert min(outcomes.values()) > 150
