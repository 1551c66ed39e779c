"""Bytes on tiles, exchanges and cycles: by hand, by going through elements, and by formula."""

from __future__ import annotations

import random
from collections import defaultdict
from fractions import Fraction
from xml.etree import ElementTree

import numpy as np
import pytest

from layoutopt import Graph, cycle_values, evaluate, read_result, simulate, unwind, write_result
from layoutopt.check import elements
from layoutopt.generate.families import generate
from layoutopt.graphs.locations import TILE
from layoutopt.graphs.ops import Array, Kind
from layoutopt.machine.simulation import PairExchange, Phase, Simulation, bytes_of, moving
from layoutopt.tiles.memory import PRESETS, TileMemory
from tests.check.samples import Layouts
from tests.check.test_occupancy import tiles_of
from tests.check.test_spread import sample
from tests.support import refused

FOUR = TileMemory(4, 100, {"default": 2, "x": 4}, exchange_bytes_per_cycle=4)


def chain() -> tuple[Graph, Layouts]:
    """Return a sink, three ops one after the other, and what a target asks of the first two.

    Barrier ``b`` and fixed point ``f`` make an element for each of four tiles, ``g`` two.
    """
    graph = Graph("chain")
    x = graph.sink((4,), name="x")
    b = graph.barrier([x], (4,), name="b")
    graph.valued_pair(x, graph.source((4,), [0, 0, 1, 1], name="s"), 5)
    back = graph.reverse(b, (0,), name="back")
    f = graph.fixed_point([back], (4,), name="f")
    graph.valued_pair(graph.source((4,), [3] * 4, name="t"), back, 1)
    graph.valued_pair(x, f, 0)
    graph.fixed_point([f], (8,), name="g")
    return graph, {"x": ((TILE, 0, 0, ((1, 1, 1),)), (TILE, 1, 1, ((3, 0, 1),)))}


def test_a_chain_by_hand() -> None:
    """All numbers of four tiles, where ``x`` lies as 0 1 1 1, ``b`` as 0 1 2 3, ``g`` by twos.

    ``b`` is there while ``f`` is made, as that reads its view, and gone when ``g`` is.
    """
    graph, layouts = chain()
    found = simulate(graph, layouts, FOUR)
    assert found.always.tolist() == [4, 12, 0, 0]
    assert found.peak.tolist() == [10, 18, 6, 6]  # at g: 2 of f and 4 of g on each tile
    assert found.pairs == (
        PairExchange("x", "s", "b", 4, 1, 4),
        PairExchange("t", "back", "f", 4, 3, 6),
        PairExchange("x", "f", "b", 4, 2, 0),
    )
    assert found.phases == (Phase("b", 4, 0, 4, 1), Phase("f", 6, 3, 6, 2))
    assert found.received.tolist() == [4, 0, 0, 6]
    assert found.sent.tolist() == [2, 6, 2, 0]  # back lies as 3 2 1 0
    assert (found.bytes, found.cycles) == (10, 3)
    assert found.fullest() == [(1, 12), (0, 4)]
    assert found.busiest(2) == [(0, 6), (1, 6)]
    assert graph.tile_memory is None


def test_hooks_are_obeyed() -> None:
    """What a barrier makes lies where its hook says, and takes room and moves from there."""
    graph = Graph()
    x = graph.sink((4,), name="x")
    b = graph.barrier([x], (4,), hook="same", name="b")
    graph.valued_pair(b, graph.source((4,), [3, 3, 0, 0], name="s"), 1)
    graph.fixed_point([b], (4,), name="f")
    layouts: Layouts = {"x": ((TILE, 3, 0, ((4, 0, 1),)),)}  # b as well; f on 0 1 2 3
    found = simulate(graph, layouts, TileMemory(4, 100))
    assert found.peak.tolist() == [4, 4, 4, 16 + 16 + 4]
    assert found.phases == (Phase("f", 8, 0, 8, 2),)
    assert (found.received.tolist(), found.sent.tolist()) == ([8, 0, 0, 0], [0, 0, 0, 8])
    graph.tile_memory = TileMemory(4, 100)
    assert "x: sink" in str(graph.draw(layouts))
    with refused("waits for itself"):
        simulate(graph, {"x": (("b", 0, 0, ((4, 1, 1),)),)})


def test_which_op_a_pair_is_counted_with() -> None:
    """Targets, chained outputs, operands of a sum, and pairs that no op reads."""
    graph = Graph()
    x, w = graph.sink((4, 4), name="x"), graph.sink((4, 4), name="w")
    u, v = graph.sink((4, 4), name="u"), graph.sink((4, 4), name="v")
    graph.valued_pair(u, v, 1)  # nobody reads them: the later one
    y = graph.grow_matmul(x, w, name="y")  # targets of x and w, x beside y, w beside y
    graph.grow_matmul(y, w.T, name="z")
    graph.sum_like([x, u], name="sum")
    graph.valued_pair(v, graph.source((4, 4), name="s"), 1)
    graph.fixed_point([v], (1,), name="reads v")
    layouts = unwind(graph).layouts
    assert layouts is not None
    found = simulate(graph, layouts, TileMemory(4, 1000))
    told = [(p.a, p.b, p.op) for p in found.pairs]
    turned = "dim_shuffle0"
    assert told == [
        ("u", "v", "sum"),
        ("x", "y.lhs.target", "y"),
        ("w", "y.rhs.target", "y"),
        ("x", "y", "y"),
        ("w", "y", "y"),
        ("y", "z.lhs.target", "z"),
        (turned, "z.rhs.target", "z"),
        ("y", "z", "z"),
        (turned, "z", "z"),
        ("x", "u", "sum"),
        ("v", "s", "reads v"),
    ]
    graph.remove("sum", "reads v")
    assert simulate(graph, layouts, TileMemory(4, 1000)).pairs[0].op == "v"


def check_elements(graph: Graph, layouts: Layouts, found: Simulation) -> None:
    """Hold a simulation against sums over elements, one by one."""
    tiles, memory = [np.array(own, int) for own in tiles_of(graph, layouts)], found.memory
    always = np.zeros(memory.tiles, int)
    for sink in graph.sinks():
        np.add.at(always, tiles[sink.index], memory.bytes_of(sink.name))
    assert found.always.tolist() == always.tolist()
    arrives: dict[str, Array] = defaultdict(lambda: np.zeros((2, memory.tiles), int))
    for (a, b, value), told in zip(graph.pairs, found.pairs, strict=True):
        moves = moving(graph, a, b)
        width = bytes_of(graph, moves) * (value > 0)
        stays = b if moves == a else a
        apart = tiles[moves] != tiles[stays]
        assert (told.elements, told.apart) == (len(apart), np.count_nonzero(apart))
        assert told.bytes == told.apart * width
        np.add.at(arrives[told.op][0], tiles[stays][apart], width)
        np.add.at(arrives[told.op][1], tiles[moves][apart], width)
    rate = memory.exchange_bytes_per_cycle or 4
    phases = {}
    for op, numbers in arrives.items():
        most = int(numbers.max())
        if most:
            tile = int(np.flatnonzero((numbers == most).any(axis=0))[0])
            phases[op] = Phase(op, int(numbers[0].sum()), tile, most, -(-most // rate))
    order = sorted(phases, key=graph.op_number)
    assert found.phases == tuple(phases[op] for op in order)
    total = sum(arrives.values(), np.zeros((2, memory.tiles), int))
    assert [found.received.tolist(), found.sent.tolist()] == total.tolist()
    assert found.peak.tolist() == peak(graph, tiles, found).tolist()


def peak(graph: Graph, tiles: list[Array], found: Simulation) -> Array:
    """Return the most bytes on each tile, adding up at each op all that is there."""
    uses: dict[int, set[int]] = defaultdict(set)
    for t in reversed(range(len(graph.shapes))):
        for name, k in graph.consumers(graph.handle(t)):
            i = graph.op_number(name)
            kind = type(graph.ops[i]).__name__
            if graph.op_inputs[i][k] in graph.carriers(i):
                uses[t] |= uses[graph.op_outputs[i][0]]
            if kind == "SumLike" or graph.ops[i].kind in (Kind.BARRIER, Kind.FIXED_POINT):
                uses[t] |= {i} if kind != "SumLikeReduce" else set()
    most = found.always.copy()
    for i in range(len(graph.ops)):
        there = found.always.copy()
        for t in [t.index for t in (*graph.barriers(), *graph.fixed_points())]:
            made = graph.producers[t]
            reduces = type(graph.ops[made]).__name__ == "SumLikeReduce"
            if made <= i <= max(uses[t], default=made) and not reduces:
                np.add.at(there, tiles[t], bytes_of(graph, t))
        most = np.maximum(most, there)
    return most


@pytest.mark.parametrize("by_pieces", [False, True])
def test_random_graphs(by_pieces: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All numbers are sums over elements, whichever way elements are counted."""
    if by_pieces:
        monkeypatch.setattr(elements, "SMALL", -1)
    exchanged = temporaries = 0
    for seed in range(120):
        graph, layouts = sample(seed)
        found = simulate(graph, layouts)
        check_elements(graph, layouts, found)
        exchanged += found.bytes
        temporaries += int((found.peak - found.always).sum())
    assert min(exchanged, temporaries) > 500


def test_bytes_are_what_is_lost_of_cycle_values() -> None:
    """With values in cycles, what is missing to the highest score is all bytes at the rate."""
    lost = 0
    for seed in range(60):
        graph, layouts = sample(seed)
        priced = cycle_values(graph)
        found, score = simulate(priced, layouts), evaluate(priced, layouts)
        assert score.score is not None
        kept = [p for p in score.pairs if p.value <= 0]
        missing = score.max_score - score.score - sum(p.loss for p in kept)
        assert Fraction(missing) * 8 == found.bytes
        lost += found.bytes
    assert lost > 1000


def test_a_matrix_of_2_to_the_40_elements() -> None:
    """By blocks of rows, beside blocks of columns: a 16th of it is where it is wanted."""
    n, tiles = 2**20, 16
    graph = Graph()
    w = graph.sink((n, n), name="w")
    rows = {"kind": "grid", "blocks": [tiles, 1]}
    s = graph.source((n, n), rule=rows, name="s")
    graph.valued_pair(w.T, s, 1)
    graph.valued_pair(w, s, 1)
    memory = TileMemory(tiles, 2**40, exchange_bytes_per_cycle=3)
    found = simulate(graph, {"w": (("s", 0, 0, ((n * n, 1, 1),)),)}, memory)
    moved = n * n * 15 // 16
    assert [(p.apart, p.bytes) for p in found.pairs] == [(moved, 4 * moved), (0, 0)]
    assert found.received.tolist() == found.sent.tolist() == [4 * moved // tiles] * tiles
    assert found.always.tolist() == found.peak.tolist() == [4 * n * n // tiles] * tiles
    assert found.cycles == -(-4 * moved // tiles // 3)


def test_a_large_training_step() -> None:
    """Where everything matches but what cannot, bytes and score of a large graph agree."""
    graph = generate("transformer", {"layers": "1", "width": "128", "vocabulary": "1000"})
    priced = cycle_values(graph, PRESETS["ipu-mk2"])
    result = unwind(priced)
    found = simulate(priced, result)
    assert result.size["elements"] > elements.SMALL
    assert result.score is not None
    assert (result.max_score - result.score) * 4 == found.bytes
    assert found.always.sum() == 4 * result.size["free_elements"]


def test_nothing_to_tell() -> None:
    """Sinks of no elements, no pairs, or no sinks at all make empty tiles."""
    graph = Graph()
    x = graph.sink((0, 3), name="x")
    graph.valued_pair(x, graph.source((0, 3)), 2)
    found = simulate(graph, {"x": ()}, TileMemory(3, 8))
    assert found.always.tolist() == found.peak.tolist() == [0, 0, 0]
    assert (found.bytes, found.cycles, found.phases, found.fullest()) == (0, 0, (), [])
    assert found.pairs[0].elements == 0
    assert ("busiest tiles", "none") in found.rows()
    ElementTree.fromstring(found._repr_html_())
    alone = Graph()
    alone.fixed_point([], (2,))
    assert simulate(alone, {}, TileMemory(3, 8)).peak.tolist() == [4, 4, 0]


def test_results_and_their_files(tmp_path: object) -> None:
    """A result is simulated as its layouts are, also one that comes from a file."""
    graph, _ = chain()
    graph.tile_memory = FOUR
    result = unwind(graph)
    assert result.layouts is not None
    path = f"{tmp_path}/result.json"
    write_result(result, path)
    again = simulate(graph, read_result(path))
    assert again.pairs == simulate(graph, result).pairs == simulate(graph, result.layouts).pairs


def test_pictures_tell_the_heaviest_sinks() -> None:
    """Each tile names up to three sinks, heaviest first, whatever their order in the graph."""
    draw = random.Random(1)
    graph = Graph()
    layouts, held = {}, {}
    for k in range(6):
        sink = graph.sink((draw.randint(5, 30),), name=f"s{k}")
        held[sink.name] = draw.randint(1, sink.size - 1)
        rest = (TILE, 1, held[sink.name], ((sink.size - held[sink.name], 0, 1),))
        layouts[sink.name] = ((TILE, 0, 0, ((held[sink.name], 0, 1),)), rest)
    found = simulate(graph, layouts, TileMemory(2, 1000))
    heaviest = sorted(held, key=lambda name: -held[name])[:3]
    assert found.shares.of(0) == [(name, 4 * held[name]) for name in heaviest]
    for by in ("bytes", "tensor"):
        assert f"{heaviest[0]}: {4 * held[heaviest[0]]}" in str(found.draw(by))
    assert str(found.draw("bytes")) != str(found.draw("tensor"))


def test_temporaries_end_with_their_last_reader() -> None:
    """What nobody reads is there during its op only; a reader far on keeps it, sums too."""
    graph = Graph()
    x = graph.sink((4,), name="x")
    a = graph.fixed_point([x], (4,), name="a")
    graph.fixed_point([x], (12,), name="unread")
    late = graph.unpaired_sum_like([x, a], [0], name="late")
    graph.fixed_point([late], (4,), name="end")
    layouts: Layouts = {"x": ((TILE, 0, 0, ((4, 0, 1),)),)}
    found = simulate(graph, layouts, TileMemory(4, 100))
    assert found.peak.tolist() == [32, 16, 16, 16]  # 16 of x; 4 of a, 12 of the unread one
    graph.fixed_point([graph.identity(graph.tensor("unread"))], (8,), name="reader")
    found = simulate(graph, layouts, TileMemory(4, 100))
    assert found.peak.tolist() == [36, 20, 20, 20]  # 16 of x, 12, 8


def ruled() -> Graph:
    """Return a graph with a rule that there is not."""
    graph = Graph()
    graph.valued_pair(graph.sink((4,), name="x"), graph.source((4,), rule={"kind": "cube"}), 1)
    return graph


def hooked_graph() -> Graph:
    """Return a graph with a hook that there is not."""
    graph = Graph()
    graph.barrier([], (4,), hook="spin", name="b")
    return graph
