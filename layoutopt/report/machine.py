"""How full tiles are, and what moves between them."""

from __future__ import annotations

from layoutopt.errors import InputError, SizeError
from layoutopt.machine.simulation import Simulation, occupancy_rows, simulate
from layoutopt.pictures import pages
from layoutopt.result import UnwindingResult

PHASES = 12
"""Length of the table of exchanges."""


def occupancy(result: UnwindingResult) -> str:
    """Return what layouts mean on the graph's machine; nothing if it has none."""
    if result.layouts is None or result.graph is None or result.graph.tile_memory is None:
        return ""
    try:
        return occupancy_of(simulate(result.graph, result))
    except (InputError, SizeError) as error:
        return pages.paragraph(f"Not simulated: {error}", "soft")


def occupancy_of(found: Simulation) -> str:
    """Return a simulation: numbers, tiles by bytes and by tensor, the longest exchanges."""
    rows = [*occupancy_rows(found.memory, found.always), *found.rows()]
    phases = sorted(found.phases, key=lambda phase: -phase.cycles)
    longest = [
        [p.op, f"{p.bytes:,}", f"{p.most:,}", f"{p.tile:,}", f"{p.cycles:,}"]
        for p in phases[:PHASES]
    ]
    head = ["exchange for", "bytes", "most on a tile", "tile", "cycles"]
    told = f"The longest of {len(phases):,} exchanges" if len(phases) > PHASES else "Exchanges"
    pictures = (
        "<figure><figcaption>By bytes that always stay there</figcaption>"
        f"{pages.picture(str(found.draw('bytes')), shades=True)}</figure>"
        "<figure><figcaption>By the tensor that has most there</figcaption>"
        f"{pages.picture(str(found.draw('tensor')))}</figure>"
    )
    return (
        pages.listing(rows)
        + f'<div class="beside">{pictures}</div>'
        + pages.table(head, longest, caption=told, sortable=True)
    )
