"""Some of a store's rows."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from layoutopt.bench.row import Row
from layoutopt.errors import InputError


def select(rows: Sequence[Row], **patterns: Sequence[str]) -> list[Row]:
    """Return the rows whose fields fit patterns, as those of a shell: ``figures/*``.

    Parameters
    ----------
    patterns
        By name of the field; one of several must fit, and any does if there is none.

    Raises
    ------
    InputError
        If no row fits a pattern, with what there is.
    """
    chosen = list(rows)
    for name, wanted in patterns.items():
        values = dict.fromkeys(str(getattr(row, name)) for row in rows)
        fit = {value for value in values for pattern in wanted if fnmatchcase(value, pattern)}
        for pattern in wanted:
            if rows and not any(fnmatchcase(value, pattern) for value in values):
                raise InputError(f"no {name} fits {pattern!r}; there are {_listed(list(values))}")
        if wanted:
            chosen = [row for row in chosen if str(getattr(row, name)) in fit]
    return chosen


def side(rows: Sequence[Row], version: str | None, machine: str | None) -> list[Row]:
    """Return the rows of one version on one machine.

    Raises
    ------
    InputError
        If there are several, and none of them is asked for.
    """
    chosen = select(
        rows,
        version=[] if version is None else [version],
        machine=[] if machine is None else [machine],
    )
    for name in ("version", "machine"):
        values = list(dict.fromkeys(str(getattr(row, name)) for row in chosen))
        if len(values) > 1:
            told = f"there is more than one {name}: {_listed(values)}"
            raise InputError(f"{told}; choose by --{name}")
    return chosen


def _listed(values: Sequence[str], limit: int = 8) -> str:
    more = f", ... ({len(values) - limit} more)" if len(values) > limit else ""
    return ", ".join(map(repr, values[:limit])) + more
