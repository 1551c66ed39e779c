"""Provably optimal memory layouts for neural-network graphs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from layoutopt.check.elements import Evaluation, evaluate
    from layoutopt.comparison import Comparison, compare
    from layoutopt.errors import (
        InputError,
        InternalError,
        LayoutoptError,
        SizeError,
        SolverError,
    )
    from layoutopt.graphs.store import ValuedPair
    from layoutopt.graphs.tensor import Tensor
    from layoutopt.graphs.unwinding import Graph
    from layoutopt.io.instance import write_instance
    from layoutopt.io.result import read_result, write_result
    from layoutopt.limits import Progress
    from layoutopt.reading import read
    from layoutopt.result import PairScore, Status, Stopped, UnwindingResult
    from layoutopt.unwinding import SOLVERS, unwind

__version__ = "0.1.0"

_HOME = {
    "Comparison": "comparison",
    "Evaluation": "check.elements",
    "Graph": "graphs.unwinding",
    "InputError": "errors",
    "InternalError": "errors",
    "LayoutoptError": "errors",
    "PairScore": "result",
    "Progress": "limits",
    "SOLVERS": "unwinding",
    "SizeError": "errors",
    "SolverError": "errors",
    "Status": "result",
    "Stopped": "result",
    "Tensor": "graphs.tensor",
    "UnwindingResult": "result",
    "ValuedPair": "graphs.store",
    "compare": "comparison",
    "evaluate": "check.elements",
    "read": "reading",
    "read_result": "io.result",
    "unwind": "unwinding",
    "write_instance": "io.instance",
    "write_result": "io.result",
}

__all__ = [
    "SOLVERS",
    "Comparison",
    "Evaluation",
    "Graph",
    "InputError",
    "InternalError",
    "LayoutoptError",
    "PairScore",
    "Progress",
    "SizeError",
    "SolverError",
    "Status",
    "Stopped",
    "Tensor",
    "UnwindingResult",
    "ValuedPair",
    "__version__",
    "compare",
    "evaluate",
    "read",
    "read_result",
    "unwind",
    "write_instance",
    "write_result",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, so that ``import layoutopt`` is cheap."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
