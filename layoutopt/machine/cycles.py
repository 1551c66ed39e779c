"""What a mismatch costs on a machine: the bytes of an element, and the cycles that it travels."""

from __future__ import annotations

from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from layoutopt.errors import InputError
from layoutopt.graphs.layouts import check_graph
from layoutopt.graphs.op import Kind
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import memory_of
from layoutopt.graphs.values import exact_decimal
from layoutopt.tiles.memory import DEFAULT_EXCHANGE, TileMemory

AnyGraph = TypeVar("AnyGraph", bound=GraphStore)


def cycle_values(graph: AnyGraph, memory: TileMemory | None = None) -> AnyGraph:
    """Return a copy of a graph whose values are the cycles that a mismatch costs.

    Every positive value becomes ``element_bytes / exchange_bytes_per_cycle``, in cycles per
    element: that long a tile sends, or receives, an element of the tensor that moves (see
    :func:`moving` and :func:`bytes_of`).  What a tile can exchange in a cycle is 4 bytes where
    the machine does not say it.  Values of zero and below stay as they are: such pairs cost
    nothing where they differ.

    Parameters
    ----------
    graph
        The graph.
    memory
        The machine, which the copy gets; by default the graph's own.

    Raises
    ------
    InputError
        If there is no machine, or the cycles of an element are no finite decimal.

    Examples
    --------
    >>> from layoutopt import Graph
    >>> from layoutopt.tiles.memory import TileMemory
    >>> graph = Graph()
    >>> pair = graph.valued_pair(graph.sink((8,)), graph.source((8,)), 100)
    >>> machine = TileMemory(16, 1024, {"default": 2}, exchange_bytes_per_cycle=8)
    >>> cycle_values(graph, machine).valued_pairs()[0].value
    Decimal('0.25')
    """
    found = on_machine(graph, memory)
    machine = memory_of(found)
    for p, (a, b, value) in enumerate(graph.pairs):
        if value > 0:
            width = bytes_of(found, moving(found, a, b))
            found.pairs[p] = a, b, _cycles(width, exchange_rate(machine))
    return found


def on_machine(graph: AnyGraph, memory: TileMemory | None) -> AnyGraph:
    """Return a copy of a graph with another tile memory, or with its own.

    Raises
    ------
    InputError
        If there is neither.
    """
    check_graph(graph)
    found = deepcopy(graph)
    if memory is not None:
        found.tile_memory = memory
    memory_of(found)
    return found


def exchange_rate(memory: TileMemory) -> int:
    """Return how many bytes a tile receives, and sends, in a cycle; 4 where nothing says it."""
    return memory.exchange_bytes_per_cycle or DEFAULT_EXCHANGE


def bytes_of(graph: GraphStore, t: int) -> int:
    """Return the bytes of an element of a tensor of a graph with a tile memory.

    They are what ``element_bytes`` says of its name; of a view that it does not name, those of
    the first tensor whose elements the view carries on; of all others the default.

    Parameters
    ----------
    t
        The tensor's number.
    """
    memory = memory_of(graph)
    while graph.tensor_name(t) not in memory.element_bytes:
        producer = graph.producers[t]
        if graph.ops[producer].kind is not Kind.VIEW:
            break
        t = graph.carriers(producer)[0]
    return memory.bytes_of(graph.tensor_name(t))


def moving(graph: GraphStore, a: int, b: int) -> int:
    """Return which tensor of a pair comes to where the other lies.

    If one of the two is a source, a target, it is the other; else the one that stands first in
    the graph.

    Parameters
    ----------
    a, b
        The tensors' numbers.
    """
    first, second = sorted((a, b))
    targets = [graph.ops[graph.producers[t]].kind is Kind.SOURCE for t in (first, second)]
    return second if targets == [True, False] else first


def _cycles(width: int, rate: int) -> Decimal:
    try:
        return exact_decimal(Fraction(width, rate))
    except InputError:
        raise InputError(
            f"{width} bytes at {rate} bytes per cycle are no finite decimal number of cycles; "
            "exchange_bytes_per_cycle must divide a power of ten times element_bytes"
        ) from None
