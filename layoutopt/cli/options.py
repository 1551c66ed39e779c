"""Options and steps that several commands share: limits, reading, and files to write."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand

from layoutopt.base.errors import InputError, LayoutoptError
from layoutopt.base.files import check_writable
from layoutopt.cli import LOADED, streams
from layoutopt.cli.streams import STDOUT_NAME, all_done, reserved_stdout, say, shown, write_out

if TYPE_CHECKING:
    from layoutopt.base.result import UnwindingResult
    from layoutopt.graphs.unwinding import Graph
    from layoutopt.network import Solution
    from layoutopt.tiles.memory import TileMemory

T = TypeVar("T")

MOMENT = 1e-3  # smallest time limit in seconds that remains after reading, unless the limit is 0

WRONG, BAD_INPUT, INFEASIBLE, NO_ANSWER, DEFECT, SIGNALLED = 1, 2, 3, 4, 70, 128
"""Exit codes; a signal's number is added to the last one."""

BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that limit the threads of BLAS libraries, by default one per core."""

_begun = LOADED


def begin(when: float) -> None:
    """Set the start of the command, a value of ``time.monotonic()``."""
    global _begun
    _begun = when


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


def group(**settings: Any) -> typer.Typer:
    """Return a command with subcommands, which shows its help if none is given."""
    found = typer.Typer(rich_markup_mode=None, **settings)

    @found.callback(invoke_without_command=True)
    def show_help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            say(context.get_help())

    return found


class Command(TyperCommand):
    """A command whose usage line shows arguments as ``INSTANCE [RESULT]``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a command line; errors tell the command that refuses, and the refused value."""
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            given: Any = error
            given.ctx = getattr(error, "ctx", None) or ctx
            if hasattr(given.__cause__, "errors"):  # of Pydantic, which checks values
                told = given.__cause__.errors()[0]
                words = told["msg"].removeprefix("Value error, ").partition(", unable to")[0]
                given.message = words.replace("Input should", f"{told['input']!r} must", 1)
            raise

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


def option(metavar: str, text: str, *names: str, **more: Any) -> Any:
    """Declare an option, by default named after its parameter."""
    return typer.Option(*names, metavar=metavar, help=text, **more)


def argument(metavar: str, text: str) -> Any:
    """Declare an argument."""
    return typer.Argument(metavar=metavar, help=text)


def flag(text: str, *names: str) -> Any:
    """Declare an option without a value."""
    return typer.Option(*names, help=text)


_GRAPH = (
    "An instance (.json, .json.gz), an ONNX model (.onnx), a Python function that returns a graph "
    "(module:function), or - to read a file from standard input"
)
_INSTANCE = f"{_GRAPH}; or a cost network (.json, .npz, .cfn, .wcsp, .uai)."
GraphPath = Annotated[Path, argument("INSTANCE", f"{_GRAPH}.")]
InstancePath = Annotated[Path, argument("INSTANCE", _INSTANCE)]
InstancePaths = Annotated[list[Path], argument("INSTANCE", _INSTANCE)]
Model = Annotated[Path, argument("MODEL.onnx", "An ONNX model; - reads standard input.")]
SOLVER_NAMES = (
    "Exact: auto, cpsat, mip.  Heuristics: refined, isolating-cuts, alpha-expansion, rounded, "
    "random-greedy, greedy0.  Or one that an installed package offers."
)
TimeLimit = Annotated[
    float | None, option("SECONDS", "Time limit of the whole command; none by default.")
]
MemoryLimit = Annotated[
    str | None, option("SIZE", "Memory limit of this process, such as 4G or 512M.")
]
Seed = Annotated[int, option("N", "Seed of all random choices.")]
Workers = Annotated[int, option("N", "Search threads; with 1, runs are reproducible.")]
Quiet = Annotated[bool, flag("Print no progress and no summary.", "--quiet", "-q")]
Json = Annotated[Path | None, option("FILE", "Write the result as JSON; - is standard output.")]
Output = Annotated[
    Path | None,
    option(
        "FILE",
        "File to write; its extension says the format, - is standard output.",
        "--output",
        "-o",
    ),
]
Html = Annotated[Path | None, option("FILE", "Write an HTML report; - is standard output.")]
Svg = Annotated[Path | None, option("FILE", "Write a picture as SVG; - is standard output.")]
Png = Annotated[Path | None, option("FILE", "Write a picture as PNG.")]
Certificate = Annotated[
    Path | None, option("FILE", "Write a certificate that `check` verifies without a solver.")
]
NoSeconds = Annotated[
    bool, flag("Omit measured times, so that equal runs write identical files.", "--no-seconds")
]
Overwrite = Annotated[bool, flag("Replace an existing output file.", "--overwrite")]
Barriers = Annotated[
    str | None,
    option(
        "opaque|simulated",
        "On a tile memory: compute where outputs of barriers lie by their hooks (simulated, the "
        "default), or ignore hooks (opaque).",
    ),
]


def exit_code(result: UnwindingResult | Solution) -> int:
    """Return the exit code of an answer."""
    return {"infeasible": INFEASIBLE, "unknown": NO_ANSWER}.get(str(result.status), 0)


@contextmanager
def reported(codes: list[int], path: Path) -> Iterator[None]:
    """Print the error of an instance, so that others can follow, and add its exit code."""
    try:
        yield
    except InputError as error:
        codes.append(BAD_INPUT)
        streams.note(f"layoutopt: {error.located(file=str(path))}")
    except TimeoutError as error:
        codes.append(NO_ANSWER)
        streams.note(f"layoutopt: {error}")
    except LayoutoptError as error:
        codes.append(DEFECT)
        reason = " ".join(str(error).split())
        streams.note(f"layoutopt: {path}: internal error, no result: {reason}")


def check_words(solvers: Iterable[str], barriers: str | None, instances: list[Path]) -> None:
    """Refuse unknown words before the first of several instances is solved.

    Graphs and networks have others; a single instance is asked itself.
    """
    if len(instances) == 1:
        return
    from layoutopt.graphs.tiling import check_hook_mode
    from layoutopt.network.files import is_network
    from layoutopt.registry import ALL

    check_hook_mode(barriers)
    kinds = {*map(is_network, instances)}
    functions = any(":" in path.name for path in instances)  # their modules may define solvers
    if len(kinds) != 1 or functions:
        return
    from layoutopt.network.pipeline import check_solver
    from layoutopt.unwinding import solver_named

    check: Callable[[str], object] = check_solver if True in kinds else solver_named
    for name in (name for name in solvers if name != ALL):
        check(name)


def limit(
    time_limit: float | None, memory: str | None = None, gap: float = 0.0, workers: int = 1
) -> None:
    """Refuse invalid limits, and set the memory limit, which ends with the command."""
    if time_limit is not None and not (time_limit >= 0 and math.isfinite(time_limit)):
        raise InputError(f"--time-limit {time_limit}: must be a number of seconds, 0 or more")
    if not (gap >= 0 and math.isfinite(gap)):
        raise InputError(f"--gap {gap}: must be a ratio, 0 or more")
    if workers < 1:
        raise InputError(f"--workers {workers}: must be 1 or more")
    if memory is None:
        return
    from layoutopt.base.limits import set_limit
    from layoutopt.registry import load_all

    load_all()  # before the limit, as a failed import cannot be repeated
    try:
        set_limit(memory)
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


Files: TypeAlias = dict[str, Path | None]  # output files by option

FORMS = {
    "--json": (".json", ".json.gz"),
    "--csv": (".csv",),
    "--markdown": (".md",),
    "--svg": (".svg",),
    "--png": (".png",),
    "--html": (".html",),
}
"""File suffixes for which ``-o`` stands for these options."""


def place_output(output: Path | None, files: Files) -> None:
    """Assign the file of ``-o`` to the option of its suffix."""
    if output is None:
        return
    forms = {option: FORMS[option] for option in files if option in FORMS}
    fitting = [option for option, endings in forms.items() if output.name.endswith(endings)]
    if str(output) == "-" or (output.exists() and not output.is_file()):  # without suffix
        fitting = list(forms)
    if not fitting:
        allowed = ", ".join(ending for endings in forms.values() for ending in endings)
        raise InputError(f"-o must end in {allowed}, or be -", file=str(output))
    if files[fitting[0]] is not None:
        raise InputError(f"give -o or {fitting[0]}, not both", file=str(output))
    files[fitting[0]] = output


@dataclass
class OutputFiles:
    """The files that a command writes, by option, which are checked before any work.

    A text is printed beside them, unless the command is quiet or a file is standard output.
    Files in ``inputs`` are refused, even with ``overwrite``.
    """

    files: Files
    overwrite: bool
    quiet: bool = False
    output: InitVar[Path | None] = None
    inputs: InitVar[Iterable[Path | None]] = ()

    def __post_init__(self, output: Path | None, inputs: Iterable[Path | None]) -> None:
        place_output(output, self.files)
        self.refuse(path for path in inputs if path and str(path) != "-")
        seen: dict[Path, str] = {}
        for name, path in self.given.items():
            place = path if str(path) == "-" else Path(os.path.realpath(path))
            check_target(path, self.overwrite)
            if place in seen:
                raise InputError(f"{seen[place]} and {name} name the same file", file=str(path))
            seen[place] = name
        if "--png" in self.given:
            from layoutopt.report import raster

            if str(self.files["--png"]) == "-":
                raise InputError("--png -: a file is required")
            raster.check_installed()

    def refuse(self, read: Iterable[Path]) -> None:
        """Raise InputError if a file to write is one of those that were read."""
        places = {os.path.realpath(path) for path in read}
        for path in self.given.values():
            if str(path) != "-" and os.path.realpath(path) in places:
                raise InputError("is read by this command; give another name", file=str(path))

    @property
    def given(self) -> dict[str, Path]:
        """The files to write, by option."""
        return {option: path for option, path in self.files.items() if path is not None}

    @property
    def pictured(self) -> bool:
        """Whether a picture is to be written."""
        return "--svg" in self.given or "--png" in self.given

    @property
    def readable(self) -> bool:
        """Whether a text is printed."""
        return not self.quiet and "-" not in map(str, self.given.values())

    def write(
        self, makers: Mapping[str, Callable[[], bytes | None]], text: Callable[[], str] = str
    ) -> None:
        """Write the files for which there are makers, then print the text; all are attempted.

        A maker may return ``None`` if there is nothing to write.
        """
        with all_done() as attempt:
            for name, path in self.given.items():
                if name in makers:
                    with attempt():
                        data = makers[name]()
                        if data is not None:
                            write_out(data, path, self.overwrite)
            if self.readable:
                say(text())


def picture_makers(svg: str) -> dict[str, Callable[[], bytes]]:
    """Return makers of the files of a picture."""
    from layoutopt.report import raster

    return {"--svg": lambda: f"{svg}\n".encode(), "--png": lambda: raster.png(svg)}


@dataclass(frozen=True)
class Search:
    """Options of solving; a time limit counts from the start of the command or instance."""

    time_limit: Annotated[
        float | None, option("SECONDS", "Time limit of each solve; none by default.")
    ] = None
    memory_limit: MemoryLimit = None
    gap: Annotated[
        float, option("RATIO", "Relative gap at which to stop; 0 means proven optimality.")
    ] = 0.0
    seed: Seed = 0
    workers: Workers = 1
    quiet: Quiet = False

    def begin(self) -> None:
        """Refuse invalid limits, and set the memory limit."""
        limit(self.time_limit, self.memory_limit, self.gap, self.workers)

    @property
    def left(self) -> float | None:
        """Remaining seconds; ``None`` without a limit."""
        return left(self.time_limit)

    def asked(self) -> dict[str, Any]:
        """Return the arguments of a solve."""
        more = {"gap": self.gap, "seed": self.seed, "workers": self.workers}
        return {"time_limit": self.left, **more}


CYCLES = "cycles"  # keyword for values computed from the tile memory


@dataclass(frozen=True)
class Reading:
    """Options of reading a graph."""

    attractions: Annotated[
        Path | None,
        option(
            "FILE|cycles",
            "Values of pairs: a TOML file that replaces the built-in values for ONNX models, or "
            "'cycles' for the cycles that a mismatch costs on the tile memory.",
        ),
    ] = None
    dim: Annotated[
        list[str] | None, option("NAME=SIZE", "Size of a symbolic dimension of an ONNX model.")
    ] = None
    training: Annotated[
        str | None,
        option(
            "sgd|momentum|adam", "Add the backward pass and the weight update of an ONNX model."
        ),
    ] = None
    tiles: Annotated[
        str | None,
        option(
            "PRESET|FILE", "Tile memory (preset or JSON file); replaces the one of the instance."
        ),
    ] = None

    def __post_init__(self) -> None:
        """Refuse invalid words once, before any graph is read."""
        self._memory()
        _sizes(self.dim)
        if self.training is not None:
            from layoutopt.onnx.read import check_training

            check_training(self.training)

    def _memory(self) -> TileMemory | None:
        from layoutopt.io.instance import tile_memory

        return None if self.tiles is None else tile_memory(self.tiles)

    @property
    def files(self) -> list[Path]:
        """The files that are read besides the graph's own."""
        return [Path(path) for path in (self.attractions, self.tiles) if path is not None]

    def load(
        self, path: Path, time_limit: float | None = None, quiet: bool = True
    ) -> tuple[Graph, float]:
        """Read a graph, with a message on a terminal; return it with the seconds that this took."""
        from layoutopt.base.limits import Progress
        from layoutopt.reading import read

        memory = self._memory()
        by_cycles = str(self.attractions) == CYCLES
        values = None if by_cycles else self.attractions
        work = partial(
            read, path, attractions=values, dims=_sizes(self.dim), training=self.training
        )
        with shown(quiet) as tell, reserved_stdout():  # a function that builds a graph may print
            if tell is not None:
                tell(Progress("reading", spent()))
            graph, seconds = read_in_time(path, work, time_limit)
        if memory is not None:
            graph.tile_memory = memory
        return _in_cycles(graph, path) if by_cycles else graph, seconds


def _in_cycles(graph: Graph, path: Path) -> Graph:
    from layoutopt.machine.simulation import cycle_values

    if graph.tile_memory is None:
        reason = "has no tile memory, which --attractions cycles requires; give one by --tiles"
        raise InputError(reason, file=str(path))
    return cycle_values(graph)


def _sizes(dims: list[str] | None) -> dict[str, int]:
    """Parse symbolic dimensions of the form ``NAME=SIZE``."""
    found = {}
    for text in dims or []:
        name, _, size = text.rpartition("=")
        if not name or not size.isdecimal():
            raise InputError(f"--dim {text}: must be NAME=SIZE, such as --dim batch=1")
        found[name] = int(size)
    return found


def read_in_time(path: Path, work: Callable[[], T], time_limit: float | None) -> tuple[T, float]:
    """Read a file; return what it holds with the seconds that this took, or raise TimeoutError."""
    from layoutopt.base.deadline import LATE, grace, run_with_timeout
    from layoutopt.base.limits import limited

    started, limits = time.monotonic(), limited(time_limit)
    last = limits.deadline + max(grace(limits), LATE)
    try:
        found = run_with_timeout(work, lambda: time.monotonic() >= last)
    except TimeoutError:
        raise TimeoutError(f"{path}: time ran out while reading") from None
    return found, time.monotonic() - started


def check_instance(target: Path, overwrite: bool) -> None:
    """Refuse instance files that cannot or must not be written."""
    from layoutopt.io.instance import check_name

    check_target(target, overwrite)
    if str(target) != "-":
        check_name(target)


def write_instance(graph: Graph, target: Path, overwrite: bool, quiet: bool) -> None:
    """Write an instance file, and print its size unless the file is standard output."""
    from layoutopt.io import instance

    if str(target) == "-":
        write_out(instance.instance_bytes(graph), target, overwrite)
        return
    instance.write_instance(graph, target, overwrite=overwrite)
    if not quiet:
        free = sum(t.size for t in graph.sinks())
        say(f"{target}: {len(graph.ops):,} ops, {len(graph.pairs):,} pairs, {free:,} free")


def verified(path: Path, check: Callable[[], T]) -> T | None:
    """Return the verdict on a certificate; if it is refused, print why, and return ``None``."""
    from layoutopt.certificate.refused import Refused

    try:
        return check()
    except Refused as why:
        say(f"{path}: refused: {why}")
        return None
