"""Random networks of convolutions with costs of their layouts, and their least times."""

from __future__ import annotations

from itertools import product
from random import Random

from layoutopt.conversion.convert import convert_graph
from layoutopt.conversion.cost_table import OpCosts
from layoutopt.conversion.desired import parse_desired
from layoutopt.conversion.graph import ConversionGraph, size_of

LAYOUTS = ("NCHW,OIHW", "NHWC,HWIO", "NCHW2c,OIHW2i2o")


def mixed(seed: int) -> ConversionGraph:
    """Return a random graph of up to five convolutions with sums and a concatenation between."""
    draw = Random(seed)
    graph = ConversionGraph(f"mixed {seed}")
    layers = [graph.input("x", (1, 4, 3, 2))]
    for n in range(draw.randint(2, 5)):
        kind = draw.choice(["conv", "conv", "add", "concat", "relu"])
        x = draw.choice(layers[-2:])
        channels = int(graph.tensors[x].shape[1])  # type: ignore[index,arg-type]
        if kind == "conv":
            w = graph.constant(f"w{n}", (4, channels, 1, 1))
            layers.append(graph.op("Conv", [x, w], name=f"conv{n}"))
        elif kind == "concat":
            layers.append(graph.op("Concat", [x, layers[-1]], {"axis": 1}))
        elif kind == "add":
            others = [y for y in layers if graph.tensors[y].shape == graph.tensors[x].shape]
            layers.append(graph.op("Add", [x, draw.choice(others)]))
        else:
            layers.append(graph.op("Relu", [x]))
    graph.output(layers[-1])
    return graph


def table(seed: int, fixed: int, per_byte: int) -> dict[str, object]:
    """Return a document of costs: by type, and of one op by name."""
    draw = Random(seed)
    lines = [
        {
            "type": "Conv",
            "layouts": layouts,
            "us": draw.randint(0, 9),
            "us_per_megabyte": draw.randint(0, 3),
        }
        for layouts in LAYOUTS
    ]
    lines += [
        {"name": "conv0", "layouts": layouts, "us": draw.randint(0, 9)} for layouts in LAYOUTS[1:]
    ]
    return {"transform": {"us": fixed, "us_per_megabyte": per_byte}, "op": lines}


def least_time(graph: ConversionGraph, costs: OpCosts, fixed: int) -> int:
    """Return the least time, every op's layouts fixed in all ways."""
    convs = [op for op in graph.ops if op.type == "Conv"]
    ways: list[tuple[int, str]] = []
    for choice in product(*(costs.of(op) for op in convs)):
        entries, time = list[str](), 0
        for op, line in zip(convs, choice, strict=True):
            entries.append(f"@{op.name}={line.desired.layouts(op)}")
            size = sum(size_of(graph.tensors[n]) for n in (*op.inputs, *op.outputs))
            time += line.fixed + line.per_byte * size
        ways.append((time, ";".join(entries)))
    best = None
    for time, desired in sorted(ways):
        if best is not None and time >= best:
            break  # transforms make it no shorter
        one = convert_graph(
            graph, desired=parse_desired(desired), objective="count" if fixed else "bytes"
        )
        whole = time + one.objective[0] * (costs.fixed if fixed else costs.per_byte)
        best = whole if best is None else min(best, whole)
    assert best is not None
    return best
