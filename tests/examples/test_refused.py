"""What graphs, handles and layouts refuse: one line that says why, and nothing is added.

``refused.txt`` has sections, each with calls and, below each call, what is said.
``python -m tests.examples.test_refused`` writes what is said now where it is something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import layoutopt as lo
from layoutopt.base.errors import InputError
from layoutopt.graphs import ops
from layoutopt.graphs.unwinding import Graph
from layoutopt.layout.descriptor import Descriptor
from layoutopt.layout.grouping import filter_shape, grouped_convolution, windows
from layoutopt.layout.layout import Block, Dim, Layout
from layoutopt.layout.mapping import tile_mapping
from layoutopt.layout.placement import convert_shape, placement
from layoutopt.layout.reshape import reshape_dims
from layoutopt.layout.transform import apply, restore, transform
from layoutopt.tiles.memory import TileMemory

PAGE = Path(__file__).with_name("refused.txt")


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
        elif line:
            call = line


def graph_of(**shapes: tuple[int, ...]) -> Graph:
    """Return a graph with a sink of each name and shape."""
    graph = Graph()
    for name, shape in shapes.items():
        graph.sink(shape, name=name)
    return graph


def operands() -> Graph:
    """Return a graph with a sink of each of several shapes, named by shape."""
    shapes: list[tuple[int, ...]] = [(), (0,), (4,), (2, 3), (2, 1), (3,), (1, 3, 1), (2, 3, 4)]
    return graph_of(**{"x" + "_".join(map(str, shape)): shape for shape in shapes})


def subgraphs() -> Graph:
    """Return a graph with outside tensors ``a``, ``b`` and two bodies ``x -> y``, ``u -> v``."""
    graph = graph_of(a=(2,), b=(2,), x=(2,), u=(2,), long=(3,))
    graph.reverse("x", [0], name="y")
    graph.reverse("u", [0], name="v")
    return graph


def kinds() -> Graph:
    """Return a graph with an op of most kinds."""
    graph = graph_of(x=(2, 3), y=(2, 3))
    graph.barrier(["x"], shapes=[(2, 3), (2, 3)], name="bar")
    graph.source((2, 3), name="src")
    graph.fixed_point(["x"], (2, 3), name="fix")
    graph.sum_like_reduce("x", (3,), name="red")
    graph.sum_like(["x", "y"], unwindable=1, name="sum")
    return graph


def conv(*shapes: tuple[int, ...], **given: Any) -> None:
    """Ask for a convolution of ``x`` by ``y``, perhaps with a bias ``z``, of these shapes."""
    shaped = dict(zip("xyz", shapes, strict=False))
    graph = graph_of(**shaped)
    try:
        graph.grow_conv("x", "y", **given)
    finally:
        assert graph == graph_of(**shaped)


def small() -> Graph:
    """Return a graph of one sink, worth 12."""
    graph = Graph("small")
    x, t = graph.sink((2, 3), name="x"), graph.source((3, 2), name="t")
    graph.valued_pair(graph.dim_shuffle(x, (1, 0), name="y"), t, 2)
    return graph


ODD = small()

GRAPHS: dict[str, Callable[[], Graph]] = {
    "ops of operands": operands,
    "short forms": lambda: graph_of(x=(2, 3), s=()),
    "copies into subgraphs": subgraphs,
    "regions": kinds,
    "handles": lambda: graph_of(x=(4, 6)),
    "sums and steps": lambda: graph_of(
        x=(2, 3), y=(2, 3), row=(1, 3), w=(2,), v=(2,), m=(2,), long=(3,), z=(4, 3)
    ),
    "convolutions": Graph,
    "layouts": Graph,
    "descriptors and windows": Graph,
    "odd arguments": lambda: ODD,
}
"""The graph of each section, called ``g``; its first tensor is ``x``."""

NAMES: dict[str, Any] = {
    "Block": Block,
    "Descriptor": Descriptor,
    "Dim": Dim,
    "GRAPH": ODD,
    "Graph": Graph,
    "Layout": Layout,
    "MEMORY": TileMemory(4, 1024),
    "NC": placement("NC", (2, 3)),
    "RESULT": lo.unwind(ODD),
    "ONES": np.ones((2, 3), np.float32),
    "apply": apply,
    "conv": conv,
    "convert_shape": convert_shape,
    "filter_shape": filter_shape,
    "grouped_convolution": grouped_convolution,
    "lo": lo,
    "np": np,
    "ops": ops,
    "placement": placement,
    "reshape_dims": reshape_dims,
    "restore": restore,
    "small": small,
    "tagged": Descriptor.from_tag,
    "tile_mapping": tile_mapping,
    "transform": transform,
    "windows": windows,
}


def said(section: str, call: str) -> str:
    """Return what is said to a call, which must be one line, and change nothing."""
    graph = GRAPHS[section]()
    names = NAMES | {"g": graph, **{x.name: x for x in graph.tensors()[:1]}}
    with pytest.raises(InputError) as error:
        eval(call, names)  # of the page beside this file
    assert graph == GRAPHS[section]()
    [line] = str(error.value).splitlines()
    return line


@pytest.mark.parametrize("row", list(calls()), ids=lambda row: f"{row.section}: {row.call}")
def test_refused(row: Call) -> None:
    """The words are those of the page; ``...`` stands for any."""
    start, dots, end = row.said.partition("...")
    found = said(row.section, row.call)
    assert (found == row.said) or (dots and found.startswith(start) and found.endswith(end))


if __name__ == "__main__":
    lines = [""]
    for one in calls():
        if (head := f"# {one.section}") not in lines:
            lines += [head, ""]
        lines += [one.call, f"  {said(one.section, one.call)}"]
    PAGE.write_text("\n".join(lines).strip() + "\n")
