"""The heuristics by name.

To add one, write a function ``(problem, limits, start) -> labels`` in a module of this room (see
:mod:`layoutopt.approximate.frame`) and name it here.
"""

from __future__ import annotations

from layoutopt.approximate.expansion import expand
from layoutopt.approximate.frame import method
from layoutopt.approximate.greedy import grow
from layoutopt.approximate.isolating import isolate
from layoutopt.approximate.refine import refine
from layoutopt.approximate.rounding import round_off
from layoutopt.exact.methods import Method

APPROXIMATE: dict[str, Method] = {
    "refined": method(refine, improves=True),
    "isolating-cuts": method(isolate, improves=False),
    "alpha-expansion": method(expand, improves=True),
    "rounded": method(round_off, improves=False),
    "random-greedy": method(grow, improves=False),
}
