"""Generated graphs: named families, and random ones."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from fractions import Fraction
from functools import cache

import pytest

from layoutopt.base.limits import Limits
from layoutopt.base.result import Status
from layoutopt.generate.families import FAMILIES, generate, parameters, summary
from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.ops import type_name
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import OP_TYPES, instance_bytes, parse_instance
from layoutopt.lowering.lower import lower
from layoutopt.unwinding import unwind
from tests.lowering.test_optima import assert_alike, solved

# The named families: sizes as published, optima as counted by hand, and both ways to solve


STATES = (".m", ".momentum")

SMALL = {
    "gpt2-small": "layers=2 width=24 feed_forward=40 vocabulary=17 context=9 batch=2 sequence=6",
    "gpt2-xl": "layers=1 width=50 feed_forward=60 vocabulary=11 context=4 batch=1 sequence=4",
    "llama-7b": "layers=2 width=64 feed_forward=24 vocabulary=19 sequence=5",
    "llama-70b": "layers=1 width=128 feed_forward=16 vocabulary=13 sequence=3",
    "resnet-50": "blocks=1,2,1 width=3 size=20 classes=7 batch=2",
    "random": "barriers=false elements=20 ops=16 pairs=9",
}
"""Settings that make instances small, where the defaults are those of a large network."""

PUBLISHED = {
    "gpt2-small": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "llama-7b": 6_738_415_616,
    "llama-70b": 68_976_648_192,
    "resnet-50": 25_557_032,
}
"""Trainable parameters of the networks as they were released."""

SHAPES = {"gpt2-xl", "llama-7b", "resnet-50"}
"""Families that are shapes of others, which have all their options."""


def build(family: str, settings: str = "") -> Graph:
    """Return an instance from settings as they are listed."""
    return generate(family, dict(entry.split("=") for entry in settings.split()))


@cache
def full_size(family: str) -> Graph:
    """Return the step of a released network."""
    return build(family)


def weights(graph: Graph) -> tuple[int, int]:
    """Return how many elements trained matrices have, and how many all other parameters.

    A parameter is a sink that has optimiser's states; a table of positions is no operand of a
    product, and so counts with the vectors.
    """
    shapes = {sink.name: sink for sink in graph.sinks()}
    trained = [t for name, t in shapes.items() if any(name + s in shapes for s in STATES)]
    products = [t for t in trained if t.ndim > 1 and t.name != "positions"]
    matrices = sum(t.size for t in products)
    return matrices, sum(t.size for t in trained) - matrices


def optimum(graph: Graph) -> Fraction:
    """Return the proved optimum of a graph, without tracing large groups."""
    return solved(lower(graph, Limits()))[1]


def counted(graph: Graph, rotated: int = 0, layers: int = 0) -> int:
    """Return the optimum of a transformer's step by counting.

    A weight is worth 100 where one of its products wants it, and 20 at the places of each
    of its two states, which are worth 20 at each other's: 160 with all three there, and one product
    only can be served.  A vector is worth 20 where a sum wants it; with its gradient, which
    no product draws it away from, and its states it earns 6 times 20.  The tables of angles meet in
    every rotation, four times a layer, and can be together where one of the rotations wants them.

    Parameters
    ----------
    rotated
        Elements of a table of angles.
    """
    matrices, vectors = weights(graph)
    return 160 * matrices + 120 * vectors + rotated * (4 * layers * 20 + 20)


@pytest.mark.parametrize("family", PUBLISHED)
def test_networks_have_as_many_parameters_as_published(family: str) -> None:
    """Sinks with optimiser's states add up to the released networks' numbers of parameters."""
    assert sum(weights(full_size(family))) == PUBLISHED[family]


@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in SHAPES])
def test_lifting_and_tracing_agree(family: str) -> None:
    """Small instances have the same optimum and layouts that earn it, lifted or traced."""
    assert_alike(build(family, SMALL.get(family, "")))


@pytest.mark.parametrize("family", FAMILIES)
def test_small_instances_are_proved(family: str) -> None:
    """`unwind` proves the optimum of a small instance, which files hold as it is."""
    graph = build(family, SMALL.get(family, ""))
    assert unwind(graph).status is Status.OPTIMAL
    assert parse_instance(instance_bytes(graph)) == graph


@pytest.mark.parametrize("family", [f for f in FAMILIES if "seed" in parameters(f)])
def test_seeds(family: str) -> None:
    """Equal seeds give equal graphs, and five seeds at least three graphs."""
    files = [instance_bytes(build(family, f"seed={seed}")) for seed in range(5)]
    assert files == [instance_bytes(build(family, f"seed={seed}")) for seed in range(5)]
    bodies = {file[file.index(b'"ops"') :] for file in files}
    assert len(bodies) >= 3


@pytest.mark.parametrize(
    "settings",
    ["", "flat=true", "joined=true", "flat=true joined=true", "tied=false", "biased=false"]
    + ["gated=true", "kv_heads=2 joined=true", "layers=3 batch=1 vocabulary=5", "context=0"],
)
def test_optima_of_transformers(settings: str) -> None:
    """However a small transformer is built, its optimum is what counting uses gives.

    Flat buffers keep every parameter beside its own part of the states, and so change nothing.
    """
    graph = build("transformer", settings)
    assert optimum(graph) == counted(build("transformer", settings.replace("flat=true", "")))


def test_large_transformers_are_built_in_little_memory() -> None:
    """A whole training step of the largest takes less than 200 MiB: a tenth of it, a tenth."""
    tracemalloc.start()
    build("llama-70b", f"layers={int(str(parameters('llama-70b')['layers'])) // 10}")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 2**20


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        *(("gpt2-small", "flat=true layers=4"), ("llama-7b", "layers=4")),
        *(("gpt2-xl", ""), ("llama-70b", "")),
    ],
)
def test_large_transformers_are_proved(family: str, settings: str) -> None:
    """The optima of training steps at full width, the largest ones whole, are those counted.

    Flat buffers change nothing.
    """
    graph = build(family, settings) if settings else full_size(family)
    uses = build(family, settings.replace("flat=true ", "")) if settings else graph
    own = parameters(family)
    size = int(str(own["width"])) // int(str(own["heads"]))
    rotated = int(str(own["sequence"])) * size if own["rotary"] else 0
    assert optimum(graph) == counted(uses, rotated, 4 if settings else int(str(own["layers"])))


@pytest.mark.parametrize(("layers", "width", "batch"), [(2, 5, 3), (3, 4, 7), (2, 1000, 64)])
def test_optimum_of_recomputed_layers(layers: int, width: int, batch: int) -> None:
    """A weight serves one of its three uses: 160; biases earn 120, the input 100."""
    graph = build("recomputed", f"layers={layers} width={width} batch={batch}")
    assert optimum(graph) == layers * width * (160 * width + 120) + 100 * batch * width


@pytest.mark.parametrize(("calls", "copy"), [(1, 10), (11, 10), (12, 10), (200, 10), (3, 60)])
def test_optimum_of_chained_calls(calls: int, copy: int) -> None:
    """The callee's input lies where its product wants it, or where its results are.

    In the first case every caller's tensor is worth one copy, in the second one between two
    calls is worth two, but the first 100 are lost.  The callee's two weights earn 100 each.
    """
    width, batch = 5, 3
    graph = build("chained-calls", f"calls={calls} width={width} batch={batch} copy={copy}")
    best = max(100 + copy * (calls + 1), 2 * copy * calls)
    assert optimum(graph) == 200 * width**2 + best * width * batch


@pytest.mark.parametrize("size", [1, 2, 7, 3000])
def test_optimum_of_diagonals(size: int) -> None:
    """On the diagonal an element is its own image and earns one source.

    Off it two elements are together, which both positions of the image reward, where one of them
    has a source; or each is at a source of its own.
    """
    for seed in range(6):
        graph = build("diagonals", f"size={size} seed={seed}")
        image, forward, backward = (int(value) for *_, value in graph.pairs)
        best = max(forward, backward)
        apart, together = 2 * best, 2 * image + best
        pairs = size * (size - 1) // 2
        assert optimum(graph) == size * (image + best) + pairs * max(apart, together)


def test_optimum_of_aliases() -> None:
    """One element goes where its names earn more, with 1000 names as with 3."""
    for copies in (3, 1000):
        graph = build("aliases", f"copies={copies}")
        earned = {"a": 0, "b": 0}
        for pair in graph.valued_pairs():
            earned[pair.b.name] += int(pair.value)
        assert optimum(graph) == max(earned.values())


def test_every_family_is_described() -> None:
    """Each has a line of its own, short enough for a terminal, and parameters with defaults."""
    lines = [summary(family) for family in FAMILIES]
    assert len(set(lines)) == len(lines)
    for family, line in zip(FAMILIES, lines, strict=True):
        assert 10 < len(line) < 100
        assert parameters(family)


# The family of random graphs: seeded, legal, and of every kind


def test_every_op_type_occurs() -> None:
    """A few hundred graphs hold every op of the format, and odd sizes besides."""
    types: Counter[str] = Counter()
    shapes = set()
    for seed in range(400):
        graph = random_graph(seed)
        types.update(type_name(op) for op in graph.ops)
        shapes.update(graph.shapes)
    assert set(types) == set(OP_TYPES)
    assert min(types.values()) > 20
    assert () in shapes
    assert any(0 in shape for shape in shapes)
