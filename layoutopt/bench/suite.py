"""Suites: instances of a batch run, and options of their solves."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct

from layoutopt.base.errors import InputError, errors_at
from layoutopt.base.files import parse_toml, read_utf8
from layoutopt.base.limits import parse_memory
from layoutopt.bench.job import InstanceSource, Solve
from layoutopt.generate.families import parameters, text
from layoutopt.io.instance import tile_memory
from layoutopt.network.files import SUFFIXES as NETWORK_SUFFIXES
from layoutopt.network.files import is_network
from layoutopt.reading import SUFFIXES
from layoutopt.tiles.memory import PRESETS

Seconds = Annotated[float, Meta(ge=0, le=1e6)]  # limited by what system calls support

Count = Annotated[int, Meta(ge=1, le=10**6)]
Seeds: TypeAlias = tuple[int, ...] | str
"""Some numbers, or a range such as ``"0..99"``, both ends included."""

KNOWN = (*SUFFIXES, *NETWORK_SUFFIXES)

DEFAULT_SOLVERS = ("auto", "greedy0")


class SuiteEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[suite]``: options for every instance; optionally files, relative to its folder.

    A solve is killed ``grace`` seconds after its time limit; a worker may take ``memory`` bytes, or
    text such as ``"2G"``.
    """

    name: str = ""
    description: str = ""
    instances: tuple[str, ...] = ()
    solvers: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None
    time_limit: Seconds = 60.0
    grace: Seconds = 10.0
    gap: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    seeds: Seeds = (0,)
    repeats: Count = 1
    workers: Count = 1
    memory: str | Count | None = None


class FilesEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A table ``[[instances]]``: files with common options of reading."""

    files: Annotated[tuple[str, ...], Meta(min_length=1)]
    attractions: str = ""
    dims: dict[str, Count] = {}
    training: str = ""
    tiles: str = ""


class FamilyEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A table ``[[family]]``: instances of one family, one for each seed."""

    name: str
    parameters: dict[str, Any] = {}
    seeds: Seeds | None = None
    tiles: str = ""


class Document(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole suite file."""

    suite: SuiteEntry = SuiteEntry()
    instances: tuple[FilesEntry, ...] = ()
    family: tuple[FamilyEntry, ...] = ()


TABLES = {"suite": SuiteEntry, "instances": FilesEntry, "family": FamilyEntry}


def read_document(path: Path) -> Document:
    """Read a suite file."""
    file = str(path)
    content = parse_toml(read_utf8(path), file)
    try:
        return msgspec.convert(content, Document)
    except msgspec.ValidationError as error:
        raise _refusal(error).located(file=file) from None


def replaced(suite: SuiteEntry, overrides: Mapping[str, Any]) -> SuiteEntry:
    """Return a suite with some entries replaced."""
    try:
        return msgspec.convert(msgspec.structs.asdict(suite) | dict(overrides), SuiteEntry)
    except msgspec.ValidationError as error:
        raise _refusal(error, "suite") from None


def _refusal(
    error: msgspec.ValidationError, table: str = "", kind: type[Struct] | None = None
) -> InputError:
    """Return the error of a document or one of its tables, with its place."""
    reason, _, place = str(error).partition(" - at `$")
    place = (table + place.rstrip("`")).removeprefix(".")
    if "unknown field" in reason:
        known = kind or TABLES.get(re.split(r"\W", place)[0], Document)
        reason += f"; allowed: {', '.join(known.__struct_fields__)}"
    return InputError(reason[:1].lower() + reason[1:], place)


def parse_seeds(given: Seeds, place: str) -> tuple[int, ...]:
    """Return the distinct seeds, at least one."""
    found: Sequence[int]
    if isinstance(given, str):
        ends = re.fullmatch(r"(\d{1,18})\.\.(\d{1,18})", given)
        found = range(int(ends[1]), int(ends[2]) + 1) if ends else ()
    else:
        found = tuple(dict.fromkeys(given))
    if not 0 < len(found) <= 10**6 or max(map(abs, found)) >= 2**63:
        reason = "must be numbers of 64 bits, or a range such as '0..99', a million at most"
        raise InputError(f"{repr(given)[:40]}: {reason}", place)
    return tuple(found)


@dataclass(frozen=True)
class Suite:
    """Instances and their solves, which are killed ``grace`` seconds after their time limits.

    Without ``named`` solvers, the solves are those by :data:`DEFAULT_SOLVERS`.
    """

    name: str
    sources: tuple[InstanceSource, ...]
    solves: tuple[Solve, ...]
    grace: float
    named: bool

    def solves_of(self, source: InstanceSource) -> tuple[Solve, ...]:
        """Return the solves of an instance: of a cost network by default those by auto.

        Heuristics refuse networks with rows.
        """
        if self.named or not is_network(Path(source.path)):
            return self.solves
        return tuple(solve for solve in self.solves if solve.solver == "auto")


def read_suite(
    path: str | Path, solvers: Callable[[], Collection[str]], /, **overrides: Any
) -> Suite:
    """Read a suite file (``.toml``), or make one of a folder's instances, or of one instance.

    ``solvers`` returns the names of available solvers; it is called last, and only for names other
    than :data:`DEFAULT_SOLVERS`.  Overrides replace entries of the table ``[suite]``.
    """
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    if path.suffix == ".toml":
        document = read_document(path)
    elif path.is_dir():
        document = Document(SuiteEntry(instances=(".",)))
    elif path.is_file() and path.name.endswith(KNOWN):
        document = Document(SuiteEntry(instances=(glob.escape(path.name),)))
    else:
        allowed = f"a folder, a suite (.toml) and an instance ({', '.join(KNOWN)})"
        raise InputError(f"is no suite; allowed: {allowed}", file=str(path))
    with errors_at(file=str(path)):
        suite = replaced(document.suite, overrides)
        sources = tuple(_sources(document, folder))
        if not sources:
            raise InputError("names no instances; give [suite] instances, or [[family]]")
        solves = tuple(_solves(suite, solvers, overrides))
    name = suite.name or path.resolve().stem
    return Suite(name, sources, solves, suite.grace, suite.solvers is not None)


def _solves(
    suite: SuiteEntry, known: Callable[[], Collection[str]], overrides: Collection[str]
) -> Iterator[Solve]:
    """Yield all solves of an instance, with repetitions as far apart as possible."""
    solvers = suite.solvers or DEFAULT_SOLVERS
    for i, solver in enumerate(solvers):
        if solver not in DEFAULT_SOLVERS and solver not in known():
            place = "" if "solvers" in overrides else f"suite.solvers[{i}]"
            raise InputError(f"unknown solver {solver!r}; known: {', '.join(known())}", place)
    with errors_at("" if "memory" in overrides else "suite.memory"):
        memory = None if suite.memory is None else parse_memory(suite.memory)
    seeds = parse_seeds(suite.seeds, "suite.seeds")
    for repeat, seed, solver in product(range(suite.repeats), seeds, dict.fromkeys(solvers)):
        limits = suite.time_limit, suite.gap, suite.workers
        yield Solve(solver, *limits, memory, seed, repeat)


def _sources(document: Document, folder: Path) -> Iterator[InstanceSource]:
    yield from _files(FilesEntry(document.suite.instances), folder, "suite", "instances")
    for i, entry in enumerate(document.instances):
        sources = list(_files(entry, folder, f"instances[{i}]"))
        _check_reading(entry, sources, folder, f"instances[{i}]")
        yield from sources
    for i, family in enumerate(document.family):
        yield from _family(family, folder, f"family[{i}]")


def _check_reading(
    entry: FilesEntry, sources: Sequence[InstanceSource], folder: Path, place: str
) -> None:
    """Refuse options for networks that do not exist, or of files none of which is a network."""
    given = [name for name in ("training", "attractions", "dims") if getattr(entry, name)]
    if given and not any(source.path.endswith(".onnx") for source in sources):
        raise InputError("applies to .onnx files only", f"{place}.{given[0]}")
    if entry.training or entry.attractions:
        from layoutopt.onnx.read import check_training, read_attractions

        with errors_at(f"{place}.training"):
            check_training(entry.training or None)
        read_attractions(_beside(entry.attractions, folder) or None)


def _files(
    entry: FilesEntry, folder: Path, place: str, key: str = "files"
) -> Iterator[InstanceSource]:
    parts = (entry.training, Path(entry.tiles).stem)
    tiles = _tiles(entry.tiles, folder, place)
    suffix = "".join(f"+{part}" for part in parts if part)
    for i, pattern in enumerate(entry.files):
        paths = _matches(pattern, folder, f"{place}.{key}[{i}]")
        for path in paths:
            onnx = path.suffix == ".onnx"
            yield InstanceSource(
                _name(path, folder) + suffix,
                str(path),
                attractions=_beside(entry.attractions, folder) if onnx else "",
                dims=tuple(sorted(entry.dims.items())) if onnx else (),
                training=entry.training if onnx else "",
                tiles=tiles,
            )


def _matches(pattern: str, folder: Path, place: str) -> list[Path]:
    """Return the instances that match a pattern, or are in a matching folder."""
    whole = re.sub(r"\{(\w+)\}", lambda found: _package(found[1], place), pattern)
    matches = glob.glob(str(Path(glob.escape(str(folder))) / whole), recursive=True)
    paths = set()
    for match in map(Path, matches):
        inside = match.rglob("*") if match.is_dir() else [match]
        paths |= {path for path in inside if path.name.endswith(KNOWN) and path.is_file()}
    if not paths:
        raise InputError(f"no instance fits {pattern!r} ({', '.join(KNOWN)})", place)
    return sorted(paths)


def _package(name: str, place: str) -> str:
    """Return the folder of an installed package."""
    found = find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise InputError(f"package {name!r} is not installed", place)
    return glob.escape(str(Path(found.submodule_search_locations[0])))


def _name(path: Path, folder: Path) -> str:
    """Return a file's name in tables: its path relative to the suite, without ``..`` and suffix."""
    inside = path.is_relative_to(folder)
    name = path.relative_to(folder).as_posix() if inside else path.name
    name = re.sub(r"^(\.\./)+", "", name)
    return next((name.removesuffix(end) for end in SUFFIXES if name.endswith(end)), name)


def _beside(file: str, folder: Path) -> str:
    return str(folder / file) if file else ""


def _tiles(which: str, folder: Path, place: str) -> str:
    """Return a preset's name, or the path of a file, once it is read."""
    found = which if which in PRESETS else _beside(which, folder)
    if found:
        with errors_at(f"{place}.tiles"):
            tile_memory(found)
    return found


def _family(entry: FamilyEntry, folder: Path, place: str) -> Iterator[InstanceSource]:
    with errors_at(f"{place}.name"):
        defaults = parameters(entry.name)
    fields = [
        (name, tuple[int, ...] if isinstance(value, tuple) else type(value), value)
        for name, value in defaults.items()
    ]
    table = msgspec.defstruct("Parameters", fields, forbid_unknown_fields=True)
    try:
        checked = msgspec.structs.asdict(msgspec.convert(entry.parameters, table))
    except msgspec.ValidationError as error:
        raise _refusal(error, f"{place}.parameters", table) from None
    given = {name: checked[name] for name in entry.parameters}
    if entry.seeds is not None and "seed" not in defaults:
        reason = f"family {entry.name!r} draws nothing, and has no seed"
        raise InputError(reason, f"{place}.seeds")
    seeds = [] if entry.seeds is None else parse_seeds(entry.seeds, f"{place}.seeds")
    suffix = f"+{Path(entry.tiles).stem}" if entry.tiles else ""
    tiles = _tiles(entry.tiles, folder, place)
    for own in [given | {"seed": seed} for seed in seeds] or [given]:
        changed = [n for n in defaults if own.get(n, defaults[n]) != defaults[n]]
        settings = tuple((name, text(value)) for name, value in own.items())
        name = "-".join([entry.name, *(f"{n}={text(own[n])}" for n in changed)]) + suffix
        yield InstanceSource(name, family=entry.name, settings=settings, tiles=tiles)
