"""The exact methods by name.

A method is a callable ``(problem, limits, start) -> Result``.  To add one, write it in a module
of ``solvers`` and name it here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from layoutopt.base.limits import Limits
from layoutopt.base.result import Result
from layoutopt.network.exact import order
from layoutopt.network.problem import IntArray, Labelling
from layoutopt.network.solvers import cpsat, mip

Method: TypeAlias = Callable[[Labelling, Limits, IntArray | None], Result]

METHODS: dict[str, Method] = {
    "auto": order.solve,
    "cpsat": cpsat.solve,
    "mip": mip.solve,
}
