"""What ``layoutopt show`` tells of tile memories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutopt.cli.text import ratio, table
from layoutopt.errors import InputError

if TYPE_CHECKING:
    from layoutopt.graphs.unwinding import Graph
    from layoutopt.machine.simulation import Simulation
    from layoutopt.result import UnwindingResult

HEAVIEST = 5
"""How many tensors that weigh most are shown."""

PHASES_SHOWN = 8
"""Length of the table of exchanges."""


def machine_text(graph: Graph) -> str:
    """Return a graph's machine, what its sinks take of it, and which weigh most."""
    from layoutopt.graphs.tiling import memory_of
    from layoutopt.machine.cycles import bytes_of

    memory = memory_of(graph)
    weights = {t.name: t.size * bytes_of(graph, t.index) for t in graph.sinks()}
    total = sum(weights.values())
    rows = [
        ["tiles", f"{memory.tiles:,} of {memory.bytes_per_tile:,} bytes"],
        ["sinks", f"{total:,} bytes of {memory.total:,} ({ratio(total / memory.total)})"],
    ]
    if memory.grain > 1:
        rows.append(["grain", f"{memory.grain:,} elements"])
    heavy = sorted(weights.items(), key=lambda item: -item[1])[:HEAVIEST]
    for i, (name, weight) in enumerate(heavy):
        share = ratio(weight / memory.total)
        rows.append(["" if i else "heaviest", f"{name}: {weight:,} bytes ({share})"])
    return table(rows, left=2)


def occupancy_text(result: UnwindingResult) -> str:
    """Return how full a result's sinks make the tiles."""
    from layoutopt.check.occupancy import occupied
    from layoutopt.graphs.tiling import memory_of
    from layoutopt.machine.simulation import occupancy_rows

    rows = occupancy_rows(memory_of(result.graph), occupied(result.graph, result.layouts or {}))
    return table(rows, left=2)


def simulation_text(found: Simulation) -> str:
    """Return what a simulation found, and its longest exchanges."""
    text = table(found.rows(), left=2)
    if not found.phases:
        return text
    phases = sorted(found.phases, key=lambda phase: -phase.cycles)
    rows = [["exchange for", "bytes", "most on a tile", "tile", "cycles"]]
    for p in phases[:PHASES_SHOWN]:
        rows.append([p.op, f"{p.bytes:,}", f"{p.most:,}", str(p.tile), f"{p.cycles:,}"])
    lines = [text, "", table(rows)]
    if len(phases) > PHASES_SHOWN:
        lines.append(f"  ... and {len(phases) - PHASES_SHOWN:,} more phases")
    return "\n".join(lines)


def simulated(shown: UnwindingResult | Graph, why: str) -> Simulation:
    """Return the simulation of a result on its graph's machine.

    Parameters
    ----------
    why
        The option that asks for it, for errors.

    Raises
    ------
    InputError
        If there is no result with layouts and graph, or no machine.
    """
    from layoutopt.machine.simulation import simulate
    from layoutopt.result import UnwindingResult

    if not isinstance(shown, UnwindingResult) or shown.layouts is None:
        raise InputError(f"{why} is for a RESULT with layouts")
    if shown.graph.tile_memory is None:
        raise InputError(f"{why} needs a tile memory; --tiles PRESET|FILE gives one")
    return simulate(shown.graph, shown)
