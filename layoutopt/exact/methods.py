"""The exact methods by name.

A method is a callable ``(problem, limits, start) -> Result``.  To add one, write it in a module
of ``solvers`` and name it here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from layoutopt.exact import order
from layoutopt.limits import Limits
from layoutopt.problem import IntArray, Labelling
from layoutopt.result import Result
from layoutopt.solvers import cpsat, mip

Method: TypeAlias = Callable[[Labelling, Limits, IntArray | None], Result]

METHODS: dict[str, Method] = {
    "auto": order.solve,
    "cpsat": cpsat.solve,
    "mip": mip.solve,
}
