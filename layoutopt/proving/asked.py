"""What a user asked of a conversion, as plain data in its certificate."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from typing import Any

from layoutopt.certificate.refused import Refused, entry
from layoutopt.conversion.costs import parse_objective
from layoutopt.errors import InputError
from layoutopt.requirements.backends import backend_named
from layoutopt.requirements.costs import OpCosts, costs_from
from layoutopt.requirements.desired import parse_desired
from layoutopt.requirements.requirements import Requirements

MICROSOFT = "microsoft"
"""What certificates that were written before it came do not tell."""


@dataclass(frozen=True)
class Asked:
    """The arguments of :func:`layoutopt.converting.convert` that say what is minimised.

    Parameters
    ----------
    objective
        What is minimised, in order, as in ``"count,bytes"``.
    layout, padding, backend
        Layouts that ops must run in, as texts; a backend by its name.
    costs
        The text of a file of costs.
    free_io
        Whether inputs and outputs may come in other layouts.
    microsoft
        Whether products may become ops of onnxruntime alone; certificates that do not tell are
        of none that may.
    """

    objective: str
    layout: str | None = None
    padding: bool = False
    backend: str | None = None
    costs: str | None = None
    free_io: bool = False
    microsoft: bool = False

    @classmethod
    def of(cls, given: object) -> Asked:
        """Read what a certificate says.

        Raises
        ------
        Refused
            If something is missing, or is not what it must be.
        """
        flags = ("padding", "free_io", "microsoft")
        allowed = {**dict.fromkeys(flags, (bool,)), "objective": (str,)}
        said = isinstance(given, dict) and MICROSOFT in given
        told = [own.name for own in fields(cls) if own.name != MICROSOFT or said]
        found = {name: entry(given, name) for name in told}
        for name, value in found.items():
            if type(value) not in allowed.get(name, (str, type(None))):
                raise Refused(f"{name} is {type(value).__name__} in what was asked")
        return cls(**found)

    def document(self) -> dict[str, Any]:
        """Return it as plain data; that nothing is asked of onnxruntime goes without saying."""
        return {name: value for name, value in asdict(self).items() if name != MICROSOFT or value}

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of :func:`layoutopt.conversion.convert.state_graph`.

        Raises
        ------
        Refused
            If a text says nothing that is known.
        """
        try:
            return self._arguments()
        except InputError as error:
            raise Refused(f"what was asked is not known: {error}") from None

    def objectives(self) -> tuple[str, ...]:
        """Return the names of what is minimised."""
        return parse_objective(self.objective, self.costs is not None)

    def _arguments(self) -> dict[str, Any]:
        self.objectives()
        return {
            "desired": self._desired(),
            "costs": self._costs(),
            "objective": self.objective,
            "free_io": self.free_io,
            "microsoft": self.microsoft,
        }

    def _desired(self) -> Requirements | None:
        if self.layout is not None:
            return parse_desired(self.layout, self.padding)
        return None if self.backend is None else backend_named(self.backend)

    def _costs(self) -> OpCosts | None:
        if self.costs is None:
            return None
        try:
            return costs_from(tomllib.loads(self.costs, parse_float=Decimal))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InputError(f"costs are not TOML ({error})") from None
