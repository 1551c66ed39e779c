"""Graphs of any size with layouts made by hand, and what their pairs match by formula."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import NamedTuple

from layoutopt.base.result import Piece
from layoutopt.graphs.unwinding import Graph
from tests.check.samples import Layouts


class Case(NamedTuple):
    """A graph, its layouts, the number of matches of each pair, and violations if any."""

    graph: Graph
    layouts: Layouts
    matched: list[int]
    violations: tuple[str, ...] = ()


def whole(origin: str, size: int) -> tuple[Piece, ...]:
    """Return the layout that takes a tensor as it is."""
    return ((origin, 0, 0, ((size, 1, 1),)),)


def transposes(n: int) -> Case:
    """W beside s, W^T beside t and s, W beside W^T; its diagonal lies as t, the rest as s."""
    graph = Graph()
    w, s, t = graph.sink((n, n), name="w"), graph.source((n, n), name="s"), graph.source((n, n))
    turned = graph.dim_shuffle(w, (1, 0))
    graph.valued_pair(w, s, 3)
    graph.valued_pair(turned, t, 2)
    graph.valued_pair(turned, s, 1)
    graph.valued_pair(w, turned, 4)
    graph.valued_pair(graph.dim_shuffle(turned, (1, 0)), w, 5)
    off = ("s", 1, 1, ((n - 1, n + 1, n + 1), (n, 1, 1)))
    layouts = {"w": ((t.name, 0, 0, ((n, n + 1, n + 1),)), off)}
    return Case(graph, layouts, [n * n - n, n, 0, n, n * n])


def symmetric(n: int, deep: int) -> Case:
    """W lies as s above the diagonal, by columns, and as s^T below, by rows: it is W^T.

    Each of its elements is a vector.
    """
    graph = Graph()
    w, s = graph.sink((n, n, deep), name="w"), graph.source((n, n, deep), name="s")
    turned = graph.dim_shuffle(w, (1, 0, 2))
    graph.valued_pair(w, turned, 1)
    graph.valued_pair(w, s, 1)
    graph.valued_pair(graph.reverse(turned, (0, 1)), graph.reverse(w, (0, 1)), 1)
    row, each = n * deep, (deep, 1, 1)
    above = [("s", k * deep, k * deep, ((k + 1, row, row), each)) for k in range(n)]
    below = [("s", k * deep, k * row, ((k, row, deep), each)) for k in range(1, n)]
    matched = [n * row, (n + 1) * row // 2, n * row]
    return Case(graph, {"w": (*above, *below)}, matched)


def attention(n: int) -> Case:
    """Queries, keys and values in one matrix, each cut into 8 heads; the values lie by rows.

    Element b of head a in row i is ``(a n + i) d + b`` of the values' heads, and lies as
    ``i n + a d + b`` of them, with ``n = 8 d``: equal where ``a (n - 1) = i (8 - 1)``.
    """
    heads, deep = 8, n // 8
    graph = Graph()
    w = graph.sink((n, 3 * n), name="w")
    matched = []
    for k in range(3):
        part = graph.slice(w, (0, k * n), (n, k * n + n))
        split = graph.dim_shuffle(graph.reshape(part, (n, heads, deep)), (1, 0, 2))
        graph.valued_pair(split, graph.source((heads, n, deep), name=f"s{k}"), 2)
        back = graph.reshape(graph.dim_shuffle(split, (1, 0, 2)), (n, n))
        graph.valued_pair(back, part, 1)
        matched += [n * n, n * n]
    by_heads = ((heads, n * deep, deep), (n, deep, 3 * n), (deep, 1, 1))
    by_rows = ((n, n, 3 * n), (n, 1, 1))
    pieces = (("s0", 0, 0, by_heads), ("s1", 0, n, by_heads), ("s2", 0, 2 * n, by_rows))
    matched[4] = (gcd(n - 1, heads - 1) + 1) * deep
    return Case(graph, {"w": pieces}, matched)


def flat(n: int) -> Case:
    """One buffer of 200 matrices, each wanted transposed; every second one lies so.

    A matrix of r rows and c columns and its transposed share the elements (i, j) for which
    ``i c + j = j r + i``.
    """
    graph = Graph()
    shapes = [(n // 8 + 17 * (k % 5), 8 + k % 3) for k in range(200)]
    total = sum(r * c for r, c in shapes)
    x = graph.sink((total,), name="x")
    at, pieces, matched, parts = 0, [], [], []
    for k, (r, c) in enumerate(shapes):
        matrix = graph.reshape(graph.slice(x, (at,), (at + r * c,)), (r, c))
        graph.valued_pair(graph.dim_shuffle(matrix, (1, 0)), graph.source((c, r), name=f"s{k}"), 1)
        by_columns = ((r, 1, c), (c, r, 1))
        pieces.append((f"s{k}", 0, at, by_columns if k % 2 else ((r * c, 1, 1),)))
        matched.append(r * c if k % 2 else gcd(r - 1, c - 1) + 1)
        parts.append(graph.flatten(matrix))
        at += r * c
    graph.valued_pair(graph.concat(parts, 0), x, 1)
    return Case(graph, {"x": tuple(pieces)}, [*matched, total])


def reversals(n: int) -> Case:
    """Rows and columns backwards, once and twice; ``n`` is even."""
    graph = Graph()
    x = graph.sink((n, n), name="x")
    once = graph.reverse(x, (0,))
    twice = graph.reverse(once, (1,))
    graph.valued_pair(x, once, 1)
    graph.valued_pair(x, twice, 1)
    graph.valued_pair(graph.reverse(graph.reverse(twice, (0, 1)), (0,)), once, 1)
    graph.valued_pair(graph.dim_shuffle(twice, (1, 0)), x, 1)
    return Case(graph, {"x": whole("x", n * n)}, [0, 0, n * n, n])


def rotations(n: int) -> Case:
    """Sixteen rounds of cutting n / 8 rows, or columns, off and putting them to the other end."""
    graph = Graph()
    x = graph.sink((n, n), name="x")
    y, step = x, n // 8
    for k in range(16):
        axis = k % 2
        ends = (step, n) if axis == 0 else (n, step)
        head = graph.slice(y, (0, 0), ends)
        rest = graph.slice(y, (step, 0) if axis == 0 else (0, step), (n, n))
        y = graph.concat([rest, head], axis)
        graph.valued_pair(x, y, 1)
    return Case(graph, {"x": whole("x", n * n)}, [0] * 15 + [n * n])


def samples(n: int) -> Case:
    """Every second row and every third column; stripes of 5 of 8 rows; ``n`` is 8 k + 2."""
    graph = Graph()
    x, s = graph.sink((n, n), name="x"), graph.source((n, n), name="s")
    rows, columns = graph.sub_sample(x, (2, 1)), graph.sub_sample(x, (1, 3))
    graph.valued_pair(graph.sub_sample(rows, (1, 3)), graph.sub_sample(columns, (2, 1)), 1)
    striped = graph.sett_sample(x, [[(5, 3, 0)], []])
    kept = 5 * (n // 8) + 2
    graph.valued_pair(striped, graph.slice(s, (0, 0), (kept, n)), 1)
    graph.valued_pair(striped, graph.sett_sample(s, [[(5, 3, 0)], []]), 1)
    third = -(-n // 3)
    return Case(graph, {"x": whole("s", n * n)}, [n // 2 * third, 5 * n, kept * n])


def broadcast(n: int) -> Case:
    """A bias along rows beside a source of 4 locations that go round, and a matrix of them."""
    graph = Graph()
    b, x = graph.sink((n,), name="b"), graph.sink((n, n), name="x")
    graph.source((8,), [0, 1, 2, 3, 0, 1, 2, 3], name="s")
    wide = graph.expand(b, (n, n))
    graph.valued_pair(x, wide, 2)
    graph.valued_pair(x, graph.dim_shuffle(wide, (1, 0)), 1)
    round_ = (("s", 0, 0, ((n // 8, 0, 8), (8, 1, 1))),)
    rows = (("s", 0, 0, ((n // 8, 0, 8 * n), (8, 1, n), (n, 0, 1))),)
    return Case(graph, {"b": round_, "x": rows}, [n * n // 4, n * n])


def chain(n: int, layers: int) -> Case:
    """Layers whose weights lie as the one before's barrier, or transposed as a source of theirs.

    The first lies as s0, beside which it is wanted transposed.
    """
    graph = Graph()
    layouts: Layouts = {}
    matched: list[int] = []
    before = None
    for k in range(layers):
        w, m = graph.sink((n, n), name=f"w{k}"), graph.sink((n, n), name=f"m{k}")
        turned = graph.dim_shuffle(w, (1, 0))
        graph.valued_pair(turned, graph.source((n, n), name=f"s{k}"), 1)
        graph.valued_pair(m, w, 2)
        if before is not None:
            half = graph.reshape(graph.slice(w, (0, 0), (n, n // 2)), (n // 2, n))
            graph.valued_pair(half, graph.reshape(before, (n // 2, n)), 1)
        graph.barrier([graph.slice(turned, (1, 1), (n, n))], (n, n), name=f"b{k}")
        by_columns = ((f"s{k}", 0, 0, ((n, 1, n), (n, n, 1))),)
        layouts[w.name] = by_columns if k % 2 else whole(f"b{k - 1}" if k else "s0", n * n)
        layouts[m.name] = layouts[w.name]
        matched += [n * n if k % 2 else n * (k == 0), n * n]
        matched += [] if before is None else [0]
        before = graph.slice(w, (0, n // 2), (n, n))
    return Case(graph, layouts, matched)


def circle(n: int) -> Case:
    """Two barriers that each read a part of what lies as the other."""
    graph = Graph()
    x, y = graph.sink((n, n), name="x"), graph.sink((n, n), name="y")
    graph.valued_pair(graph.barrier([graph.slice(y, (0, 0), (1, 1))], (n, n), name="up"), x, 1)
    graph.valued_pair(graph.barrier([graph.sub_sample(x, (n, n))], (n, n), name="down"), y, 1)
    layouts = {"x": whole("up", n * n), "y": whole("down", n * n)}
    line = "barrier order: 'up', 'down' wait for each other"
    return Case(graph, layouts, [n * n, n * n], (line,))


SMALL: dict[str, Callable[[], Case]] = {
    "transposes": lambda: transposes(8),
    "symmetric": lambda: symmetric(8, 2),
    "attention": lambda: attention(16),
    "flat": lambda: flat(16),
    "reversals": lambda: reversals(8),
    "rotations": lambda: rotations(8),
    "samples": lambda: samples(18),
    "broadcast": lambda: broadcast(16),
    "chain": lambda: chain(8, 6),
    "circle": lambda: circle(4),
}
"""Each family at a size that can be looked at element by element."""

LARGE: dict[str, Callable[[], Case]] = {
    "transposes": lambda: transposes(65536),
    "symmetric": lambda: symmetric(100, 90),
    "attention": lambda: attention(65536),
    "flat": lambda: flat(400_000_000),
    "reversals": lambda: reversals(65536),
    "rotations": lambda: rotations(65536),
    "samples": lambda: samples(65538),
    "broadcast": lambda: broadcast(65536),
    "chain": lambda: chain(65536, 256),
    "circle": lambda: circle(65536),
}
"""Each family with tens of millions of elements, or billions, or many more."""
