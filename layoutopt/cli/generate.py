"""``layoutopt generate``: an instance of a named family."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from layoutopt.base.errors import InputError
from layoutopt.cli import options
from layoutopt.cli.options import argument, flag, option
from layoutopt.cli.streams import say


def command(
    family: Annotated[
        str | None, argument("FAMILY", "Name of the family; without it, families are listed.")
    ] = None,
    settings: Annotated[
        list[str] | None, option("NAME=VALUE", "A parameter of the family; repeatable.", "--set")
    ] = None,
    seed: Annotated[int | None, option("N", "Seed of random families.")] = None,
    output: Annotated[
        Path | None,
        option("FILE", "File to write (.json, .json.gz); - is standard output.", "--output", "-o"),
    ] = None,
    listed: Annotated[bool, flag("List all families with their parameters.", "--list")] = False,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
) -> int:
    """Write an instance of a named family, or list the families."""
    from layoutopt.generate.families import FAMILIES, generate

    if family is None and (settings or seed is not None or output is not None):
        raise InputError(f"give a family; allowed: {', '.join(FAMILIES)}")
    if family is None or listed:
        say(_families())
        return 0
    given = _settings(settings or [], seed)
    if output is None:
        raise InputError("give --output FILE; - is standard output")
    options.check_instance(output, overwrite)
    options.write_instance(generate(family, given), output, overwrite, quiet)
    return 0


def _families() -> str:
    """Return two lines for each family: a summary, and its parameters with defaults."""
    from layoutopt.generate.families import FAMILIES, listing, parameters, summary

    width = max(map(len, FAMILIES))
    return "\n".join(
        f"{name:<{width}}  {summary(name)}\n{'':<{width}}  {listing(parameters(name))}"
        for name in FAMILIES
    )


def _settings(given: list[str], seed: int | None) -> dict[str, str]:
    """Parse parameters of the form ``NAME=VALUE``."""
    found = {} if seed is None else {"seed": str(seed)}
    for entry in given:
        name, equals, value = entry.partition("=")
        if not name or not equals:
            raise InputError(f"--set {entry}: must be NAME=VALUE, such as --set layers=4")
        if name in found:
            raise InputError(f"--set {entry}: {name} is given twice")
        found[name] = value
    return found
