"""Provably optimal memory layouts for neural-network graphs."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from layoutopt.check.elements import Evaluation, evaluate
    from layoutopt.compare import Comparison, compare
    from layoutopt.errors import InputError, InternalError, LayoutoptError, SizeError
    from layoutopt.graphs.store import Tensor, ValuedPair
    from layoutopt.graphs.unwinding import Graph
    from layoutopt.io.instance import write_instance
    from layoutopt.io.result import read_result, write_result
    from layoutopt.limits import Progress
    from layoutopt.read import read
    from layoutopt.result import PairScore, Status, Stopped, UnwindingResult
    from layoutopt.unwind import SOLVERS, unwind

__version__ = "0.1.0"

_HOME = {
    "Comparison": "compare",
    "Evaluation": "check.elements",
    "Graph": "graphs.unwinding",
    "InputError": "errors",
    "InternalError": "errors",
    "LayoutoptError": "errors",
    "PairScore": "result",
    "Progress": "limits",
    "SOLVERS": "unwind",
    "SizeError": "errors",
    "Status": "result",
    "Stopped": "result",
    "Tensor": "graphs.store",
    "UnwindingResult": "result",
    "ValuedPair": "graphs.store",
    "compare": "compare",
    "evaluate": "check.elements",
    "read": "read",
    "read_result": "io.result",
    "unwind": "unwind",
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


class _Package(ModuleType):
    """Keeps ``layoutopt.unwind`` the function when the module of that name is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        hides = isinstance(value, ModuleType) and _HOME.get(name) == name
        super().__setattr__(name, getattr(value, name) if hides else value)


sys.modules[__name__].__class__ = _Package
