"""Provably optimal memory layouts for neural-network graphs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any
from warnings import warn

if TYPE_CHECKING:
    from layoutopt.base.errors import (
        InputError,
        InternalError,
        LayoutoptError,
        SizeError,
        SolverError,
    )
    from layoutopt.base.limits import Limits, Progress
    from layoutopt.base.memory import memory_limit
    from layoutopt.base.result import PairScore, Result, Status, Stopped, UnwindingResult
    from layoutopt.check.elements import Evaluation
    from layoutopt.comparison import Comparison, compare
    from layoutopt.conversion.graph import ConversionGraph
    from layoutopt.conversion.requirements import Requirements
    from layoutopt.converting import convert
    from layoutopt.explain.explanation import (
        Change,
        Obstacle,
        PairExplanation,
        Share,
        SinkExplanation,
    )
    from layoutopt.explain.pair import explain_pair
    from layoutopt.explain.sink import explain_sink
    from layoutopt.graphs.growers import (
        ConvTensor,
        DynamicTensor,
        MatmulTensor,
        OptimizerStep,
        SumLikeTensor,
    )
    from layoutopt.graphs.ops import Kind
    from layoutopt.graphs.store import ValuedPair
    from layoutopt.graphs.tensor import Tensor
    from layoutopt.graphs.unwinding import Graph
    from layoutopt.io.instance import write_instance
    from layoutopt.io.result import read_result, write_result
    from layoutopt.layout.layout import Layout, LayoutError
    from layoutopt.lowering.assignment import evaluate
    from layoutopt.machine.simulation import Simulation, cycle_values, simulate
    from layoutopt.machine.whatif import (
        CapacityPoint,
        ShadowPrices,
        SinkCost,
        SmallestMachine,
        TilePrice,
        capacity_sweep,
        shadow_prices,
        smallest_machine,
    )
    from layoutopt.network.problem import Labelling
    from layoutopt.onnx.result import ConversionResult
    from layoutopt.pictures.svg import Picture
    from layoutopt.program.lower import lower
    from layoutopt.program.numpy_target import NumpyTarget
    from layoutopt.program.steps import BarrierReady, Place, Run, Schedule, schedule, steps
    from layoutopt.program.target import Target
    from layoutopt.reading import read
    from layoutopt.registry import heuristic, solver
    from layoutopt.unwinding import SOLVERS, solve, unwind

__version__ = "0.1.0"

_HOME = {
    "CapacityPoint": "machine.whatif",
    "Change": "explain.explanation",
    "Comparison": "comparison",
    "ConvTensor": "graphs.growers",
    "ConversionGraph": "conversion.graph",
    "ConversionResult": "onnx.result",
    "DynamicTensor": "graphs.growers",
    "Evaluation": "check.elements",
    "Graph": "graphs.unwinding",
    "InputError": "base.errors",
    "InternalError": "base.errors",
    "Kind": "graphs.ops",
    "BarrierReady": "program.steps",
    "Labelling": "network.problem",
    "Layout": "layout.layout",
    "LayoutError": "layout.layout",
    "LayoutoptError": "base.errors",
    "Limits": "base.limits",
    "MatmulTensor": "graphs.growers",
    "NumpyTarget": "program.numpy_target",
    "Obstacle": "explain.explanation",
    "OptimizerStep": "graphs.growers",
    "PairExplanation": "explain.explanation",
    "PairScore": "base.result",
    "Picture": "pictures.svg",
    "Place": "program.steps",
    "Progress": "base.limits",
    "Requirements": "conversion.requirements",
    "Result": "base.result",
    "Run": "program.steps",
    "SOLVERS": "unwinding",
    "Schedule": "program.steps",
    "ShadowPrices": "machine.whatif",
    "Share": "explain.explanation",
    "Simulation": "machine.simulation",
    "SinkCost": "machine.whatif",
    "SinkExplanation": "explain.explanation",
    "SizeError": "base.errors",
    "SmallestMachine": "machine.whatif",
    "SolverError": "base.errors",
    "Status": "base.result",
    "Stopped": "base.result",
    "SumLikeTensor": "graphs.growers",
    "Target": "program.target",
    "Tensor": "graphs.tensor",
    "TilePrice": "machine.whatif",
    "UnwindingResult": "base.result",
    "ValuedPair": "graphs.store",
    "capacity_sweep": "machine.whatif",
    "compare": "comparison",
    "convert": "converting",
    "cycle_values": "machine.simulation",
    "evaluate": "lowering.assignment",
    "explain_pair": "explain.pair",
    "explain_sink": "explain.sink",
    "heuristic": "registry",
    "lower": "program.lower",
    "memory_limit": "base.memory",
    "read": "reading",
    "read_result": "io.result",
    "schedule": "program.steps",
    "shadow_prices": "machine.whatif",
    "simulate": "machine.simulation",
    "smallest_machine": "machine.whatif",
    "steps": "program.steps",
    "solve": "unwinding",
    "solver": "registry",
    "unwind": "unwinding",
    "write_instance": "io.instance",
    "write_result": "io.result",
}

__all__ = [
    "SOLVERS",
    "BarrierReady",
    "CapacityPoint",
    "Change",
    "Comparison",
    "ConvTensor",
    "ConversionGraph",
    "ConversionResult",
    "DynamicTensor",
    "Evaluation",
    "Graph",
    "InputError",
    "InternalError",
    "Kind",
    "Labelling",
    "Layout",
    "LayoutError",
    "LayoutoptError",
    "Limits",
    "MatmulTensor",
    "NumpyTarget",
    "Obstacle",
    "OptimizerStep",
    "PairExplanation",
    "PairScore",
    "Picture",
    "Place",
    "Progress",
    "Requirements",
    "Result",
    "Run",
    "Schedule",
    "ShadowPrices",
    "Share",
    "Simulation",
    "SinkCost",
    "SinkExplanation",
    "SizeError",
    "SmallestMachine",
    "SolverError",
    "Status",
    "Stopped",
    "SumLikeTensor",
    "Target",
    "Tensor",
    "TilePrice",
    "UnwindingResult",
    "ValuedPair",
    "__version__",
    "capacity_sweep",
    "compare",
    "convert",
    "cycle_values",
    "evaluate",
    "explain_pair",
    "explain_sink",
    "heuristic",
    "lower",
    "memory_limit",
    "read",
    "read_result",
    "schedule",
    "shadow_prices",
    "simulate",
    "smallest_machine",
    "solve",
    "solver",
    "steps",
    "unwind",
    "write_instance",
    "write_result",
]


_RENAMED = {"Know": "BarrierReady"}
"""Old public names, supported for one more release, and their new names."""


def __getattr__(name: str) -> Any:
    """Import a public name at its first use; this keeps ``import layoutopt`` fast."""
    if name in _RENAMED:
        message = f"layoutopt.{name} is now layoutopt.{_RENAMED[name]}"
        warn(message, DeprecationWarning, stacklevel=2)
        name = _RENAMED[name]
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
