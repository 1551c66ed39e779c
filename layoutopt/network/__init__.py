"""Labels on nodes, with costs of labels and of pairs of labels: solved with proof.

``import layoutopt.network`` needs NumPy and SciPy only; OR-Tools is imported where it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from layoutopt.base.limits import Limits
    from layoutopt.network.builder import CostNetwork
    from layoutopt.network.files import read, write
    from layoutopt.network.network import CostTable, Domain, Network, Usage
    from layoutopt.network.pipeline import Solution, solve

_HOME = {
    "CostNetwork": "network.builder",
    "Domain": "network.network",
    "Limits": "base.limits",
    "Network": "network.network",
    "Solution": "network.pipeline",
    "CostTable": "network.network",
    "Usage": "network.network",
    "read": "network.files",
    "solve": "network.pipeline",
    "write": "network.files",
}

__all__ = [
    "CostNetwork",
    "CostTable",
    "Domain",
    "Limits",
    "Network",
    "Solution",
    "Usage",
    "read",
    "solve",
    "write",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"layoutopt.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
