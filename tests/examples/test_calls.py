"""Calls of graphs and layouts: what they answer, and what they are refused for, worked out by hand.

``calls.txt`` has sections, each with calls and, below each call, ``= answer`` or the one line that
says why there is none; then nothing was added.  Lines that begin with ``##`` are comments; a
heading ``# section, from modules`` names modules whose names the section uses.
``python -m tests.examples.test_calls`` writes what is said now where it is something else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import layoutopt as lo
from benchmarks.figures import FIGURES
from layoutopt.base.errors import InputError, LayoutoptError
from layoutopt.base.numbers import number
from layoutopt.certificate.refused import Refused
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.requirements import Requirements, mismatch
from layoutopt.conversion.rules.op import Op, Shape
from layoutopt.conversion.rules.operator import Remapped
from layoutopt.conversion.rules.registry import remap
from layoutopt.graphs import ops
from layoutopt.graphs.ops import Kind
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from layoutopt.layout.descriptor import Descriptor
from layoutopt.layout.layout import Layout
from layoutopt.layout.mapping import tile_mapping
from layoutopt.layout.placement import placement
from layoutopt.lowering.assignment import evaluate
from layoutopt.pictures.chart import ChartAxis, scale
from layoutopt.tiles.memory import TileMemory
from tests.conftest import registered_before
from tests.graphs.test_editing import small as small_to_edit
from tests.network.capacity.cases import case
from tests.network.costs.cases import stated
from tests.support import fits, named_pairs, refused, sinks
from tests.test_assignment import chain

PAGE = Path(__file__).with_name("calls.txt")


class Call(NamedTuple):
    """A call, the section that it stands in, and what is said."""

    section: str
    call: str
    said: str


def calls() -> Iterator[Call]:
    """Yield the calls of the page in order."""
    section = call = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("# "):
            section = line[2:]
        elif line.startswith("  "):
            yield Call(section, call, line[2:])
        elif not line.startswith("##"):
            call = line


def operands() -> Graph:
    """Return a graph with a sink of each of several shapes, named by shape."""
    shapes: list[tuple[int, ...]] = [(), (0,), (4,), (2, 3), (2, 1), (3,), (1, 3, 1), (2, 3, 4)]
    return sinks(**{"x" + "_".join(map(str, shape)): shape for shape in shapes})


def subgraphs() -> Graph:
    """Return a graph with outside tensors ``a``, ``b`` and two bodies ``x -> y``, ``u -> v``."""
    graph = sinks(a=(2,), b=(2,), x=(2,), u=(2,), long=(3,))
    graph.reverse("x", [0], name="y")
    graph.reverse("u", [0], name="v")
    return graph


def kinds() -> Graph:
    """Return a graph with an op of most kinds."""
    graph = sinks(x=(2, 3), y=(2, 3))
    graph.barrier(["x"], shapes=[(2, 3), (2, 3)], name="bar")
    graph.source((2, 3), name="src")
    graph.fixed_point(["x"], (2, 3), name="fix")
    graph.sum_like_reduce("x", (3,), name="red")
    graph.sum_like(["x", "y"], unwindable=1, name="sum")
    return graph


def conv(*shapes: tuple[int, ...], **given: Any) -> None:
    """Ask for a convolution of ``x`` by ``y``, perhaps with a bias ``z``, of these shapes."""
    shaped = dict(zip("xyz", shapes, strict=False))
    graph = sinks(**shaped)
    try:
        graph.grow_conv("x", "y", **given)
    finally:
        assert graph == sinks(**shaped)


def edited() -> Graph:
    """Return the graph of the tests of editing, in which an op ``d`` may have no second output."""
    graph = small_to_edit()
    graph.sink((1,), name="d:1")
    return graph


def small() -> Graph:
    """Return a graph of one sink, worth 12."""
    graph = Graph("small")
    x, t = graph.sink((2, 3), name="x"), graph.source((3, 2), name="t")
    graph.valued_pair(graph.dim_shuffle(x, (1, 0), name="y"), t, 2)
    return graph


def as_numpy(act: Callable[[Any], Any], *shape: int) -> list[str]:
    """Return the types of ops that an act appends to a tensor, which moves it as it does arrays."""
    x = Graph().sink(shape, name="x")
    y, array = act(x), act(np.arange(x.size).reshape(shape))
    assert y.shape == array.shape
    assert np.array_equal(x.graph.index_map(x, y), array)
    types = [ops.type_name(op) for op in x.graph.ops[1:]]
    assert types or y is x
    return types


def memory_sizes(layout: str, shape: tuple[int, ...], width: int) -> tuple[Any, ...]:
    """Return strides in elements and in bytes, bytes in all, and bytes of padding."""
    place = placement(layout, shape, element_bytes=width)
    return place.strides, place.byte_strides, place.nbytes, place.padding


def offsets(layout: str, shape: tuple[int, ...], *more: Any) -> Any:
    """Return the offsets of all elements of a layout."""
    return placement(layout, shape, *more).offset_map().tolist()


def ticks(axis: ChartAxis, *values: float) -> list[str]:
    """Return what the ticks of an axis say."""
    return [words for _, words in scale(axis, values).ticks]


def tiles(layout: str, shape: tuple[int, ...], **options: Any) -> Any:
    """Return the tiles of all elements on a machine of four."""
    found = tile_mapping(layout, shape, MEMORY, **options)
    assert found.dtype == np.int64
    return found.tolist()


def made(graph: Graph, sinks: Sequence[Tensor]) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Return the names of new sinks of two elements, all that was added, and the graph's pairs."""
    names = [sink.name for sink in sinks]
    assert [op.id for op in graph.ops[len(subgraphs().ops) :]] == names
    assert all(sink.kind is Kind.SINK and sink.shape == (2,) for sink in sinks)
    return names, [(a, b, str(value)) for a, b, value in named_pairs(graph)]


def lacks(carried: str, required: str, shape: tuple[int | str | None, ...]) -> str | None:
    """Return what a layout of floats lacks of what is required, None if this is satisfied."""
    has, wants = Layout.parse(carried), Layout.parse(required)
    found = mismatch(has, wants, shape, 4)
    assert Requirements().is_satisfied_by(has, wants, shape, 4) == (found is None)
    return found


def remapped(given: Op, order: tuple[int, ...]) -> Remapped:
    """Remap an op, which with all axes in their places is never refused."""
    assert remap(given, range(len(order))).attributes == given.attributes
    return remap(given, order)


def shape_of(op_type: str, attributes: dict[str, Any], *inputs: Shape | None) -> Shape | None:
    """Return the shape of the first result of an op."""
    graph = ConversionGraph()
    names = tuple(graph.input(f"x{n}", given) for n, given in enumerate(inputs))
    return graph.tensors[graph.add(Op(op_type, attributes, names, ("y",), name="it"))[0]].shape


def add_to_two(change: Callable[[ConversionGraph], object]) -> object:
    """Add to a graph of two inputs, of which one is taken; what is refused changes nothing."""
    graph = ConversionGraph()
    graph.input("x", (2, 3))
    graph.input("y", (2, 4))
    graph.op("Relu", ["x"], name="z")
    try:
        return change(graph)
    except InputError:
        assert list(graph.tensors) == ["x", "y", "z"]
        assert graph.consumers("x") == [(op, 0) for op in graph.ops]
        assert (len(graph.ops), graph.outputs) == (1, [])
        raise


def given(layouts: Any) -> Any:
    """Evaluate layouts that do not fit; fixed and first ones are refused in the same words."""
    for what in ("fixed", "start"):
        with pytest.raises(InputError) as caught:
            lo.unwind(chain(), **{what: layouts})
        says = str(caught.value).removeprefix(f"{what}: ")
        with refused(f"layouts: {says}"):
            evaluate(chain(), layouts)
    return evaluate(chain(), layouts)


PAIR = stated(
    [[3, None], [0, -2, 5]], [(0, 1, [[1, 2, None], [0, 0, 0]]), (1, 0, [[7, 0], [9, 0], [0, 0]])]
)
"""Two edges, one in each direction."""

ODD = small()

GRAPHS: dict[str, Callable[[], Graph]] = {
    "ops of operands": operands,
    "short forms": lambda: sinks(x=(2, 3), s=()),
    "copies into subgraphs": subgraphs,
    "regions": kinds,
    "handles": lambda: sinks(x=(4, 6)),
    "sums and steps": lambda: sinks(
        x=(2, 3), y=(2, 3), row=(1, 3), w=(2,), v=(2,), m=(2,), long=(3,), z=(4, 3)
    ),
    "odd arguments": lambda: ODD,
    "editing": edited,
}
"""The graph of each section that has one, called ``g``; its first tensor is ``x``."""

GIVEN = case([0, 0, 1], [2, 3], [1, 1, 4], [9, 9], {(0, 1): 1})
GRAPH, RESULT, CALLS = ODD, lo.unwind(ODD), FIGURES["chained_calls_copies"]()
AB, MEMORY = ("a", "b"), TileMemory(4, 1024)
NC = placement("NC", (2, 3))
ONES, SQUARE = np.ones((2, 3), np.float32), np.arange(8).reshape(2, 4)
RESIDUAL = Path(__file__).parents[2] / "instances/conversion/residual.onnx"
parse, tagged = Layout.parse, Descriptor.from_tag


def said(section: str, call: str) -> str:
    """Return the answer to a call, or its refusal, which must be one line and change nothing."""
    name, _, homes = section.partition(", from ")
    graph = GRAPHS.get(name, Graph)()
    names = {**globals(), "g": graph, **{x.name: x for x in graph.tensors()[:1]}}
    for home in homes.split():
        names |= vars(import_module(home))
    try:
        return f"= {eval(call, names)!r}"  # of the page beside this file
    except (LayoutoptError, Refused) as error:
        assert graph == GRAPHS.get(name, Graph)()
        [line] = str(error).splitlines()
        return line


SECTIONS: defaultdict[str, list[Call]] = defaultdict(list)
for _row in calls():
    SECTIONS[_row.section.partition(",")[0]].append(_row)


@pytest.mark.parametrize("title", SECTIONS)
def test_calls(title: str) -> None:
    """The answers, or the lines that say why there is none, are those of the page."""
    wrong = []
    for row in SECTIONS[title]:
        with registered_before():
            found = said(row.section, row.call)
        wrong += [] if fits(found, row.said) else [row._replace(said=found)]
    assert wrong == []


if __name__ == "__main__":
    rows, lines = calls(), PAGE.read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("  "):
            one = next(rows)
            with registered_before():
                now = said(one.section, one.call)
            lines[number] = line if fits(now, one.said) else f"  {now}"
    PAGE.write_text("\n".join(lines) + "\n")
