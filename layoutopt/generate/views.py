"""Graphs of views in which one element has many names, each structured to be awkward.

The values of the ties are drawn with the seed, so that each structure has many instances.
"""

from __future__ import annotations

import random
from math import gcd

from layoutopt.base.errors import InputError
from layoutopt.generate.layers import at_least
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph


def diagonals(size: int = 6, seed: int = 0) -> Graph:
    """Return a square matrix tied to its transpose, and either way to a source.

    On the diagonal an element is its own image; off it two elements share a fate.
    """
    at_least(1, size=size)
    draw, graph = _begin("diagonals", size, seed)
    w = graph.sink((size, size), name="w")
    graph.valued_pair(w, w.T, draw.randint(1, 9))
    graph.valued_pair(w, graph.source(w.shape, name="forward"), draw.randint(1, 9))
    graph.valued_pair(w.T, graph.source(w.shape, name="backward"), draw.randint(1, 9))
    return graph


def double_reversals(size: int = 5, depth: int = 3, seed: int = 0) -> Graph:
    """Return a tensor of rank 3 tied to itself reversed on two axes, and with these exchanged.

    The centre of the two axes, if their length is odd, is its own image.
    """
    at_least(1, size=size, depth=depth)
    draw, graph = _begin("double-reversals", size, seed)
    x = graph.sink((size, size, depth), name="x")
    images = [x[::-1], x[:, ::-1], x[::-1, ::-1], x.swapaxes(0, 1)]
    for image in images:
        graph.valued_pair(x, image, draw.randint(1, 9))
    for name in "ab":
        target = graph.source(x.shape, name=name)
        graph.valued_pair(draw.choice([x, *images]), target, draw.randint(1, 9))
    return graph


def coprime_reshapes(size: int = 5, first: int = 3, second: int = 4, seed: int = 0) -> Graph:
    """Return a tensor whose last two axes are also read the other way round, with coprime lengths.

    The reading as ``first x second`` is tied to the transpose of that as ``second x first``, and no
    block size serves both.
    """
    at_least(1, size=size, first=first, second=second)
    if gcd(first, second) > 1:
        raise InputError(f"first is {first} and second {second}; they must have no common divisor")
    draw, graph = _begin("coprime-reshapes", size, seed)
    x = graph.sink((size, size, first, second), name="x")
    other = x.reshape(size, size, second, first)
    graph.valued_pair(x, other.swapaxes(2, 3), draw.randint(1, 9))
    graph.valued_pair(other, graph.source(other.shape, name="target"), draw.randint(1, 9))
    turned = x.swapaxes(2, 3).reshape(size, size * first * second)
    graph.valued_pair(turned, graph.source(turned.shape, name="turned"), draw.randint(1, 9))
    return graph


def sliding_windows(size: int = 12, columns: int = 4, windows: int = 2, seed: int = 0) -> Graph:
    """Return a matrix tied to itself shifted by 1, 2, ... rows, and to a source.

    Each column is one chain of all its rows, which no symmetry shortens; columns are alike.
    """
    at_least(1, size=size, columns=columns, windows=windows)
    if windows >= size:
        raise InputError(f"windows is {windows}; it must be less than size, which is {size}")
    draw, graph = _begin("sliding-windows", size, seed)
    x = graph.sink((size, columns), name="x")
    for shift in range(1, windows + 1):
        graph.valued_pair(x[shift:], x[:-shift], draw.randint(1, 9))
    graph.valued_pair(x, graph.source(x.shape, name="target"), draw.randint(1, 9))
    return graph


def strides(size: int = 17, columns: int = 4, seed: int = 0) -> Graph:
    """Return a matrix of which every third and every fifth row are tied to targets and rows.

    The two strides meet in every fifteenth row only, so that rows are of several kinds.
    """
    at_least(1, size=size, columns=columns)
    draw, graph = _begin("strides", size, seed)
    x = graph.sink((size, columns), name="x")
    graph.valued_pair(x, graph.source(x.shape, name="all"), draw.randint(1, 9))
    for stride in (3, 5):
        part = x[::stride]
        graph.valued_pair(part, x[: part.shape[0]], draw.randint(1, 9))
        target = graph.source(part.shape, name=f"every{stride}")
        graph.valued_pair(part, target, draw.randint(1, 9))
    return graph


def split_rounds(size: int = 8, rounds: int = 5, seed: int = 0) -> Graph:
    """Return a matrix that is split in two and joined the other way round, again and again.

    Splits alternate between rows and columns and are halves or ragged; after each round there is a
    new target, so that views of ever more parts compete.
    """
    at_least(2, size=size)
    at_least(1, rounds=rounds)
    draw, graph = _begin("split-rounds", size, seed)
    y: Tensor = graph.sink((size, size), name="x")
    for n in range(rounds):
        if n % 2:
            y = y.T
        cut = draw.choice([size // 2, draw.randint(1, size - 1)])
        y = graph.concat([y[cut:], y[:cut]], 0, name=f"round{n}")
        graph.valued_pair(y, graph.source(y.shape, name=f"target{n}"), draw.randint(1, 9))
    return graph


def aliases(copies: int = 8, seed: int = 0) -> Graph:
    """Return one element under many names, some drawn to one location and some to another."""
    at_least(1, copies=copies)
    draw, graph = _begin("aliases", copies, seed)
    x = graph.sink((1,), name="x")
    targets = [graph.source((1,), name=name) for name in "ab"]
    for n in range(copies):
        alias: Tensor = graph.identity(x, name=f"alias{n}")
        graph.valued_pair(alias, draw.choice(targets), draw.randint(1, 9))
    return graph


def _begin(name: str, size: int, seed: int) -> tuple[random.Random, Graph]:
    return random.Random(seed), Graph(f"{name}-{size}-{seed}", f"{name}, size {size}, seed {seed}")
