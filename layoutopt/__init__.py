"""Provably optimal memory layouts for neural-network graphs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any
from warnings import warn

if TYPE_CHECKING:
    from layoutopt.base.errors import InputError as InputError
    from layoutopt.base.errors import InternalError as InternalError
    from layoutopt.base.errors import LayoutoptError as LayoutoptError
    from layoutopt.base.errors import SizeError as SizeError
    from layoutopt.base.errors import SolverError as SolverError
    from layoutopt.base.limits import Limits as Limits
    from layoutopt.base.limits import Progress as Progress
    from layoutopt.base.limits import Stopped as Stopped
    from layoutopt.base.limits import memory_limit as memory_limit
    from layoutopt.base.result import PairScore as PairScore
    from layoutopt.base.result import Result as Result
    from layoutopt.base.result import Status as Status
    from layoutopt.base.result import UnwindingResult as UnwindingResult
    from layoutopt.check.elements import Evaluation as Evaluation
    from layoutopt.comparison import Comparison as Comparison
    from layoutopt.comparison import compare as compare
    from layoutopt.conversion.graph import ConversionGraph as ConversionGraph
    from layoutopt.conversion.requirements import Requirements as Requirements
    from layoutopt.converting import convert as convert
    from layoutopt.explain.explanation import Change as Change
    from layoutopt.explain.explanation import Obstacle as Obstacle
    from layoutopt.explain.explanation import PairExplanation as PairExplanation
    from layoutopt.explain.explanation import Share as Share
    from layoutopt.explain.explanation import SinkExplanation as SinkExplanation
    from layoutopt.explain.pair import explain_pair as explain_pair
    from layoutopt.explain.sink import explain_sink as explain_sink
    from layoutopt.graphs.growers import ConvTensor as ConvTensor
    from layoutopt.graphs.growers import DynamicTensor as DynamicTensor
    from layoutopt.graphs.growers import MatmulTensor as MatmulTensor
    from layoutopt.graphs.growers import OptimizerStep as OptimizerStep
    from layoutopt.graphs.growers import SumLikeTensor as SumLikeTensor
    from layoutopt.graphs.ops import Kind as Kind
    from layoutopt.graphs.store import ValuedPair as ValuedPair
    from layoutopt.graphs.tensor import Tensor as Tensor
    from layoutopt.graphs.unwinding import Graph as Graph
    from layoutopt.io.instance import write_instance as write_instance
    from layoutopt.io.result import read_result as read_result
    from layoutopt.io.result import write_result as write_result
    from layoutopt.layout.layout import Layout as Layout
    from layoutopt.layout.layout import LayoutError as LayoutError
    from layoutopt.lowering.assignment import evaluate as evaluate
    from layoutopt.machine.simulation import Simulation as Simulation
    from layoutopt.machine.simulation import cycle_values as cycle_values
    from layoutopt.machine.simulation import simulate as simulate
    from layoutopt.machine.whatif import CapacityPoint as CapacityPoint
    from layoutopt.machine.whatif import ShadowPrices as ShadowPrices
    from layoutopt.machine.whatif import SinkCost as SinkCost
    from layoutopt.machine.whatif import SmallestMachine as SmallestMachine
    from layoutopt.machine.whatif import TilePrice as TilePrice
    from layoutopt.machine.whatif import capacity_sweep as capacity_sweep
    from layoutopt.machine.whatif import shadow_prices as shadow_prices
    from layoutopt.machine.whatif import smallest_machine as smallest_machine
    from layoutopt.network.problem import Labelling as Labelling
    from layoutopt.onnx.result import ConversionResult as ConversionResult
    from layoutopt.pictures.svg import Picture as Picture
    from layoutopt.program.lower import lower as lower
    from layoutopt.program.steps import BarrierReady as BarrierReady
    from layoutopt.program.steps import Place as Place
    from layoutopt.program.steps import Run as Run
    from layoutopt.program.steps import Schedule as Schedule
    from layoutopt.program.steps import schedule as schedule
    from layoutopt.program.steps import steps as steps
    from layoutopt.program.target import NumpyTarget as NumpyTarget
    from layoutopt.program.target import Target as Target
    from layoutopt.reading import read as read
    from layoutopt.registry import heuristic as heuristic
    from layoutopt.registry import solver as solver
    from layoutopt.unwinding import SOLVERS as SOLVERS
    from layoutopt.unwinding import solve as solve
    from layoutopt.unwinding import unwind as unwind

__version__ = "0.1.0"

_NAMES = {
    "base.errors": "InputError InternalError LayoutoptError SizeError SolverError",
    "base.limits": "Limits Progress Stopped memory_limit",
    "base.result": "PairScore Result Status UnwindingResult",
    "check.elements": "Evaluation",
    "comparison": "Comparison compare",
    "conversion.graph": "ConversionGraph",
    "conversion.requirements": "Requirements",
    "converting": "convert",
    "explain.explanation": "Change Obstacle PairExplanation Share SinkExplanation",
    "explain.pair": "explain_pair",
    "explain.sink": "explain_sink",
    "graphs.growers": "ConvTensor DynamicTensor MatmulTensor OptimizerStep SumLikeTensor",
    "graphs.ops": "Kind",
    "graphs.store": "ValuedPair",
    "graphs.tensor": "Tensor",
    "graphs.unwinding": "Graph",
    "io.instance": "write_instance",
    "io.result": "read_result write_result",
    "layout.layout": "Layout LayoutError",
    "lowering.assignment": "evaluate",
    "machine.simulation": "Simulation cycle_values simulate",
    "machine.whatif": "CapacityPoint ShadowPrices SinkCost SmallestMachine TilePrice "
    "capacity_sweep shadow_prices smallest_machine",
    "network.problem": "Labelling",
    "onnx.result": "ConversionResult",
    "pictures.svg": "Picture",
    "program.lower": "lower",
    "program.steps": "BarrierReady Place Run Schedule schedule steps",
    "program.target": "NumpyTarget Target",
    "reading": "read",
    "registry": "heuristic solver",
    "unwinding": "SOLVERS solve unwind",
}
"""The public names of each module."""

_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_HOME, "__version__"]

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
