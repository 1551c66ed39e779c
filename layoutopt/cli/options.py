"""Options shared by several commands."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

import typer
from typer.core import TyperCommand

from layoutopt.base.errors import InputError
from layoutopt.base.files import check_writable
from layoutopt.cli import LOADED
from layoutopt.cli.streams import STDOUT_NAME, reserved_stdout, shown

if TYPE_CHECKING:
    from layoutopt.base.result import Piece, UnwindingResult
    from layoutopt.graphs.unwinding import Graph
    from layoutopt.network import Solution

    Layouts: TypeAlias = dict[str, tuple[Piece, ...]]

MOMENT = 1e-3
"""Smallest time limit in seconds that remains after reading, unless the limit is 0."""

BAD_INPUT = 2
"""Exit code for invalid input."""

SIGNALLED = 128
"""Exit code minus signal number of a process that a signal ended."""

BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that limit the threads of BLAS libraries, by default one per core."""

_begun = LOADED


def begin(when: float) -> None:
    """Set the start of the command, a value of ``time.monotonic()``."""
    global _begun
    _begun = when


def begun() -> float:
    """Return the start of the command."""
    return _begun


def spent() -> float:
    """Return the seconds since the start of the command."""
    return time.monotonic() - _begun


def left(time_limit: float | None) -> float | None:
    """Return the remaining seconds of a limit for the whole command; ``None`` without one.

    At least :data:`MOMENT` remains, unless the limit is 0.
    """
    return None if time_limit is None else max(time_limit - spent(), min(time_limit, MOMENT))


HELP = ("-h", "--help")


def grouped(command: Callable[..., int]) -> Callable[..., int]:
    """Expand parameters that are dataclasses of options into one option per field."""
    hints: dict[str, Any] = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters = []
    for given in signature(command).parameters.values():
        kind = hints[given.name]
        if given.name not in groups:
            parameters.append(given.replace(kind=Parameter.KEYWORD_ONLY, annotation=kind))
            continue
        types = get_type_hints(kind, include_extras=True)
        for entry in fields(kind):
            option = Parameter(entry.name, Parameter.KEYWORD_ONLY, annotation=types[entry.name])
            parameters.append(option.replace(default=entry.default))

    @wraps(command)
    def call(**words: Any) -> int:
        made = {
            name: kind(**{entry.name: words.pop(entry.name) for entry in fields(kind)})
            for name, kind in groups.items()
        }
        return command(**words, **made)

    plain: Any = call
    plain.__signature__ = Signature(parameters)
    plain.__annotations__ = {given.name: given.annotation for given in parameters}
    return call


class Command(TyperCommand):
    """A command whose usage line shows arguments as ``INSTANCE [RESULT]``."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage line after the command's name."""
        pieces = ["[OPTIONS]"]
        for argument in (p for p in self.params if p.param_type_name == "argument"):
            name = f"{argument.metavar or argument.name}{'...' if argument.nargs != 1 else ''}"
            pieces.append(name if argument.required else f"[{name}]")
        return pieces

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the help of arguments and options."""
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        params: list[Any] = list(self.get_params(ctx))
        for given in params:
            if given.param_type_name == "argument" and given.metavar:
                rows["Arguments"].append((given.metavar, given.help or ""))
            elif record := given.get_help_record(ctx):
                rows["Options"].append(record)
        for title, lines in rows.items():
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)


_GRAPH = (
    "An instance (.json, .json.gz), an ONNX model (.onnx), a Python function that returns a graph "
    "(module:function), or - to read a file from standard input"
)
_INSTANCE = f"{_GRAPH}; or a cost network (.json, .npz, .cfn, .wcsp, .uai)."
GraphPath = Annotated[Path, typer.Argument(metavar="INSTANCE", help=f"{_GRAPH}.")]
InstancePath = Annotated[Path, typer.Argument(metavar="INSTANCE", help=_INSTANCE)]
InstancePaths = Annotated[list[Path], typer.Argument(metavar="INSTANCE", help=_INSTANCE)]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL.onnx", help="An ONNX model; - reads standard input.")
]
SOLVER_NAMES = (
    "Exact: auto, cpsat, mip.  Heuristics: refined, isolating-cuts, alpha-expansion, rounded, "
    "random-greedy, greedy0.  Or your own, as module:function."
)
Solver = Annotated[str, typer.Option(metavar="NAME", help=SOLVER_NAMES)]
TimeLimit = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Time limit of the whole command; none by default."),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit", metavar="SIZE", help="Memory limit of this process, such as 4G or 512M."
    ),
]
Gap = Annotated[
    float,
    typer.Option(metavar="RATIO", help="Relative gap at which to stop; 0 means proven optimality."),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of all random choices.")]
Workers = Annotated[
    int,
    typer.Option(metavar="N", help="Search threads; with 1, runs are reproducible."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no summary.")]
Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write the result as JSON; - is standard output."),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="File to write; its extension says the format, - is standard output.",
    ),
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write an HTML report; - is standard output."),
]
Certificate = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write a certificate that `check` verifies without a solver."
    ),
]
NoSeconds = Annotated[
    bool,
    typer.Option(
        "--no-seconds", help="Omit measured times, so that equal runs write identical files."
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing output file.")]
Fixed = Annotated[
    Path | None,
    typer.Option(
        metavar="RESULT",
        help="Keep the layouts of this result, which may have only some of the sinks.",
    ),
]
Start = Annotated[
    Path | None,
    typer.Option(metavar="RESULT", help="Start the search from the layouts of this result."),
]
Attractions = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE|cycles",
        help="Values of pairs: a TOML file that replaces the built-in values for ONNX models, or "
        "'cycles' for the cycles that a mismatch costs on the tile memory.",
    ),
]
Tiles = Annotated[
    str | None,
    typer.Option(
        metavar="PRESET|FILE",
        help="Tile memory (preset or JSON file); replaces the one of the instance.",
    ),
]
Barriers = Annotated[
    str | None,
    typer.Option(
        metavar="opaque|simulated",
        help="On a tile memory: compute where outputs of barriers lie by their hooks "
        "(simulated, the default), or ignore hooks (opaque).",
    ),
]
Dim = Annotated[
    list[str] | None,
    typer.Option(
        "--dim", metavar="NAME=SIZE", help="Size of a symbolic dimension of an ONNX model."
    ),
]

Training = Annotated[
    str | None,
    typer.Option(
        metavar="sgd|momentum|adam",
        help="Add the backward pass and the weight update of an ONNX model.",
    ),
]


CYCLES = "cycles"
"""Keyword for values computed from the tile memory."""


def exit_code(result: UnwindingResult | Solution) -> int:
    """Return 0 for a solution, 3 for proved infeasibility, 4 otherwise."""
    return {"infeasible": 3, "unknown": 4}.get(str(result.status), 0)


def check_limits(time_limit: float | None, gap: float, workers: int) -> None:
    """Raise InputError for invalid limits."""
    if time_limit is not None and not (time_limit >= 0 and math.isfinite(time_limit)):
        raise InputError(f"--time-limit {time_limit}: must be a number of seconds, 0 or more")
    if not (gap >= 0 and math.isfinite(gap)):
        raise InputError(f"--gap {gap}: must be a ratio, 0 or more")
    if workers < 1:
        raise InputError(f"--workers {workers}: must be 1 or more")


def limit_memory(size: str | None) -> None:
    """Set a command's memory limit, which ends with the command.

    Raises
    ------
    InputError
        If it is malformed, or exceeded already.
    """
    if size is None:
        return
    from layoutopt.base.memory import set_limit
    from layoutopt.registry import load_all

    load_all()  # before the limit, as a failed import cannot be repeated
    try:
        set_limit(size)
    except InputError as error:
        raise InputError(f"--memory-limit: {error.reason}") from None


def check_target(path: Path | None, overwrite: bool) -> None:
    """Refuse output files that cannot or must not be written, before any work."""
    if path is None:
        return
    if str(path) == "-":
        if sys.stdout is None:
            raise InputError("cannot be written (it is closed)", file=STDOUT_NAME)
        return
    if path.is_dir():
        raise InputError("is a directory, not a file", file=str(path))
    if not path.parent.is_dir():
        raise InputError("its directory does not exist", file=str(path))
    if path.is_file() and not overwrite:
        raise InputError("exists already; --overwrite replaces it", file=str(path))
    if path.is_file() or not path.exists():  # not for devices
        try:
            check_writable(Path(os.path.realpath(path)).parent)
        except OSError as error:
            reason = f"its directory cannot be written to ({error.strerror})"
            raise InputError(reason, file=str(path)) from None


Targets: TypeAlias = dict[str, Path | None]
"""Output files by option."""

FORMS = {
    "--json": (".json", ".json.gz"),
    "--csv": (".csv",),
    "--markdown": (".md",),
    "--svg": (".svg",),
    "--png": (".png",),
    "--html": (".html",),
}
"""File suffixes for which ``-o`` stands for these options."""


def place_output(output: Path | None, targets: Targets) -> None:
    """Assign the file of ``-o`` to the option of its suffix.

    Raises
    ------
    InputError
        If the suffix is unknown, or the option has a file already.
    """
    if output is None:
        return
    forms = {option: FORMS[option] for option in targets if option in FORMS}
    fitting = [option for option, endings in forms.items() if output.name.endswith(endings)]
    if str(output) == "-" or (output.exists() and not output.is_file()):  # without suffix
        fitting = list(forms)
    if not fitting:
        allowed = ", ".join(ending for endings in forms.values() for ending in endings)
        raise InputError(f"-o must end in {allowed}, or be -", file=str(output))
    if targets[fitting[0]] is not None:
        raise InputError(f"give -o or {fitting[0]}, not both", file=str(output))
    targets[fitting[0]] = output


def check_targets(targets: Targets, overwrite: bool) -> None:
    """Refuse output files that must not be replaced, or are given twice."""
    seen: dict[Path, str] = {}
    for option, path in targets.items():
        check_target(path, overwrite)
        if path is None:
            continue
        place = path if str(path) == "-" else Path(os.path.realpath(path))
        if place in seen:
            raise InputError(f"{seen[place]} and {option} name the same file", file=str(path))
        seen[place] = option


def sizes(dims: list[str] | None) -> dict[str, int]:
    """Parse symbolic dimensions of the form ``NAME=SIZE``."""
    found = {}
    for text in dims or []:
        name, _, size = text.rpartition("=")
        if not name or not size.isdecimal():
            raise InputError(f"--dim {text}: must be NAME=SIZE, such as --dim batch=1")
        found[name] = int(size)
    return found


def layouts(path: Path | None, graph: Graph, barriers: str | None) -> Layouts | None:
    """Return the layouts of a graph's result file; ``None`` without one.

    Raises
    ------
    InputError
        If the file is not a result, belongs to another graph, or has no layouts.
    """
    if path is None:
        return None
    from layoutopt.graphs.tiling import apply_hook_mode
    from layoutopt.io.instance import check_hash
    from layoutopt.io.result import read_result

    found = read_result(path)
    check_hash(found.instance_hash, apply_hook_mode(graph, barriers), str(path))
    if found.layouts is None:
        raise InputError("has no layouts", "$.layouts", str(path))
    return found.layouts


@dataclass(frozen=True)
class Search:
    """Options of solving; a time limit counts from the start of the command or instance."""

    time_limit: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Time limit of each solve; none by default."),
    ] = None
    memory_limit: MemoryLimit = None
    gap: Gap = 0.0
    seed: Seed = 0
    workers: Workers = 1
    quiet: Quiet = False

    def begin(self) -> None:
        """Refuse invalid limits, and set the memory limit."""
        check_limits(self.time_limit, self.gap, self.workers)
        limit_memory(self.memory_limit)

    @property
    def left(self) -> float | None:
        """Remaining seconds; ``None`` without a limit."""
        return left(self.time_limit)

    def asked(self) -> dict[str, Any]:
        """Return the arguments of a solve."""
        more = {"gap": self.gap, "seed": self.seed, "workers": self.workers}
        return {"time_limit": self.left, **more}


@dataclass(frozen=True)
class Reading:
    """Options of reading a graph."""

    attractions: Attractions = None
    dim: Dim = None
    training: Training = None
    tiles: Tiles = None

    def load(
        self, path: Path, time_limit: float | None = None, quiet: bool = True
    ) -> tuple[Graph, float]:
        """Read a graph, with a message on a terminal; return it with the seconds that this took.

        Raises
        ------
        TimeoutError
            If it takes longer than the limit.
        """
        from layoutopt.base.deadline import LATE, grace, run_with_timeout
        from layoutopt.base.limits import Progress, limited
        from layoutopt.io.instance import tile_memory
        from layoutopt.reading import read

        started = time.monotonic()
        memory = None if self.tiles is None else tile_memory(self.tiles)
        by_cycles = str(self.attractions) == CYCLES
        values = None if by_cycles else self.attractions
        limits, given = limited(time_limit), sizes(self.dim)
        work = partial(read, path, attractions=values, dims=given, training=self.training)
        with shown(quiet) as tell, reserved_stdout():  # a function that builds a graph may print
            if tell is not None:
                tell(Progress("reading", spent()))
            try:
                last = limits.deadline + max(grace(limits), LATE)
                graph = run_with_timeout(work, lambda: time.monotonic() >= last)
            except TimeoutError:
                raise TimeoutError(f"{path}: time ran out while reading") from None
        if memory is not None:
            graph.tile_memory = memory
        if by_cycles:
            graph = _in_cycles(graph, path)
        return graph, time.monotonic() - started


def _in_cycles(graph: Graph, path: Path) -> Graph:
    from layoutopt.machine.simulation import cycle_values

    if graph.tile_memory is None:
        reason = "has no tile memory, which --attractions cycles requires; give one by --tiles"
        raise InputError(reason, file=str(path))
    return cycle_values(graph)
