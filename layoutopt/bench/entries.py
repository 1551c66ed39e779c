"""Suite files: TOML tables, read with the place of every mistake."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct

from layoutopt.errors import InputError
from layoutopt.io.files import read_utf8

Seconds = Annotated[float, Meta(ge=0, le=1e6)]
"""No more than system calls can wait for."""

Count = Annotated[int, Meta(ge=1)]
Seeds: TypeAlias = tuple[int, ...] | str
"""Some numbers, or a range such as ``"0..99"``, both ends included."""

DEFAULT_SOLVERS = ("auto", "greedy0")


class SuiteEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[suite]``: how every instance is solved; ``instances`` for short.

    Parameters
    ----------
    instances
        Patterns of files, relative to the suite's own.
    solvers
        Names.
    time_limit, grace
        Seconds of a solve, and past that until it is killed.
    gap
        Relative gap to stop at.
    seeds
        Seeds of solvers.
    repeats
        How often the same is solved again.
    workers
        Threads of a search.
    memory
        Bytes that a worker may take, or text such as ``"2G"``.
    """

    name: str = ""
    description: str = ""
    instances: tuple[str, ...] = ()
    solvers: Annotated[tuple[str, ...], Meta(min_length=1)] = DEFAULT_SOLVERS
    time_limit: Seconds = 60.0
    grace: Seconds = 10.0
    gap: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    seeds: Seeds = (0,)
    repeats: Count = 1
    workers: Count = 1
    memory: str | Count | None = None


class FilesEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A table ``[[instances]]``: files that are all read in the same way."""

    files: Annotated[tuple[str, ...], Meta(min_length=1)]
    attractions: str = ""
    dims: dict[str, Count] = {}
    training: str = ""
    tiles: str = ""


class FamilyEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A table ``[[family]]``: instances of one family, one for each seed."""

    name: str
    parameters: dict[str, bool | int | tuple[int, ...]] = {}
    seeds: Seeds | None = None
    tiles: str = ""


class Document(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole suite file."""

    suite: SuiteEntry = SuiteEntry()
    instances: tuple[FilesEntry, ...] = ()
    family: tuple[FamilyEntry, ...] = ()


TABLES = {"suite": SuiteEntry, "instances": FilesEntry, "family": FamilyEntry}


def read_document(path: Path) -> Document:
    """Read a suite file.

    Raises
    ------
    InputError
        If it cannot be read, is not TOML, or holds what no suite can hold.
    """
    file = str(path)
    try:
        content = tomllib.loads(read_utf8(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not TOML ({error})", file=file) from None
    except RecursionError:
        raise InputError("the TOML is nested too deeply", file=file) from None
    try:
        return msgspec.convert(content, Document)
    except msgspec.ValidationError as error:
        raise _refusal(error).located(file=file) from None


def replaced(suite: SuiteEntry, wishes: Mapping[str, Any]) -> SuiteEntry:
    """Return a suite with some entries replaced.

    Raises
    ------
    InputError
        If an entry does not exist, or cannot be what is wished.
    """
    try:
        return msgspec.convert(msgspec.structs.asdict(suite) | dict(wishes), SuiteEntry)
    except msgspec.ValidationError as error:
        raise _refusal(error, "suite") from None


def _refusal(error: msgspec.ValidationError, table: str = "") -> InputError:
    """Return what is wrong with a document, or with one of its tables, and where."""
    reason, _, place = str(error).partition(" - at `$")
    place = (table + place.rstrip("`")).removeprefix(".")
    if "unknown field" in reason:
        known = TABLES.get(re.split(r"\W", place)[0], Document)
        reason += f"; allowed: {', '.join(known.__struct_fields__)}"
    return InputError(reason[:1].lower() + reason[1:], place)


def parse_seeds(given: Seeds, place: str) -> tuple[int, ...]:
    """Return the numbers that stand for seeds, each once.

    Raises
    ------
    InputError
        If there are none.
    """
    found: Sequence[int]
    if isinstance(given, str):
        ends = re.fullmatch(r"(\d+)\.\.(\d+)", given)
        found = range(int(ends[1]), int(ends[2]) + 1) if ends else ()
    else:
        found = tuple(dict.fromkeys(given))
    if not found:
        raise InputError(f"{given!r}: must be numbers, or a range such as '0..99'", place)
    return tuple(found)
