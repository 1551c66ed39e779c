"""Layouts on tensors of ten million elements: offsets, the way back, and transforms of arrays.

``python -m benchmarks.layout_offsets [--quick]`` prints a table.  The last column is a copy of an
array of that size, which is what a machine needs at least.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median

import numpy as np

from benchmarks.measure import Timed, markdown, measure, timed
from layoutopt.layout.placement import placement
from layoutopt.layout.transform import apply, restore

CASES = (
    ("NHWC", (16, 64, 100, 100)),
    ("NCHW16c", (16, 64, 100, 100)),
    ("NCHW32c", (16, 60, 100, 100)),
    ("OIHW[4o4i]", (512, 512, 6, 6)),
    ("NCH[a=64]W", (16, 64, 100, 100)),
    ("{3,2,1,0:T(8,128)}", (16, 64, 100, 100)),
    ("{1,0:T(8,128)(2,1)}", (3200, 3200)),
)
"""Layouts, and shapes in logical order."""

HEAD = (
    *("layout", "shape", "elements", "map of all s", "offsets of given s", "back s"),
    *("apply s", "restore s", "peak MiB", "plain copy s"),
)

REPEATS = 5
"""Every act is timed so many times; the table has the median."""


def run(layout: str, shape: tuple[int, ...]) -> Timed:
    """Return the seconds of each act, each result checked against another one."""
    place = placement(layout, shape)
    places = place.offset_map()
    every = tuple(np.indices(shape))
    tensor = np.arange(places.size, dtype=np.float32).reshape(shape)
    physical = apply(layout, tensor)
    acts: list[Callable[[], object]] = [
        place.offset_map,
        lambda: place.offsets(every),
        lambda: place.indices(places),
        lambda: apply(layout, tensor),
        lambda: restore(layout, physical, shape),
        tensor.copy,
    ]
    seconds = [median(timed(act).seconds for _ in range(REPEATS)) for act in acts]
    assert np.array_equal(place.offsets(every), places)
    assert all(map(np.array_equal, place.indices(places)[0], every))
    assert np.array_equal(restore(layout, physical, shape), tensor)
    return Timed((places.size, seconds), sum(seconds))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="axes of a third of the size")
    divide = 3 if parser.parse_args().quick else 1
    rows = []
    for layout, shape in CASES:
        used = tuple(n // divide for n in shape)
        found = measure(run, layout, used)
        shown = " x ".join(map(str, used))
        if found.failure:
            rows.append([layout, shown, found.failure, *[""] * (len(HEAD) - 3)])
            continue
        size, seconds = found.answer
        *figures, copy = (f"{s:.3f}" for s in seconds)
        rows.append([layout, shown, f"{size:,}", *figures, f"{found.peak_mb:,.0f}", copy])
    print(markdown(HEAD, rows))


if __name__ == "__main__":
    main()
