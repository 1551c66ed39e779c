"""Explanations as JSON: format ``layoutopt/explanation/1``."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from layoutopt.errors import InputError
from layoutopt.explain.told import Change, PairExplanation, SinkExplanation
from layoutopt.graphs.values import exact_decimal
from layoutopt.io import files
from layoutopt.result import PairScore

FORMAT = "layoutopt/explanation/1"


def explanation_bytes(instance: str, told: PairExplanation | SinkExplanation) -> bytes:
    """Return the bytes of the file of an explanation.

    Parameters
    ----------
    instance
        The graph's name.
    """
    head: dict[str, Any] = {"format": FORMAT, "instance": instance}
    about = _pair(told) if isinstance(told, PairExplanation) else _sink(told)
    return files.encode_lines(head | about)


def _pair(told: PairExplanation) -> dict[str, Any]:
    return {
        "pair": [told.a, told.b],
        "value": told.value,
        "elements": told.elements,
        "matched": told.matched,
        "loses": told.loses,
        "score": told.score,
        "status": str(told.status),
        "most": told.most,
        "obstacles": [{"positions": x.positions, "why": x.why} for x in told.obstacles],
        "reason": told.reason,
        "alternative_score": told.alternative_score,
        "cost": told.cost,
        "changes": _changes(told.changes),
        "layouts": told.layouts,
        "threshold": _number(told.threshold),
        "threshold_more": _number(told.threshold_more),
        "smallest": None if told.smallest is None else _scores(told.smallest),
        "most_proved": told.most_proved,
        "alternative_proved": told.alternative_proved,
        "threshold_proved": told.threshold_proved,
        "smallest_proved": told.smallest_proved,
    }


def _sink(told: SinkExplanation) -> dict[str, Any]:
    shares = [
        {"origin": x.origin, "elements": x.elements, "pieces": x.pieces, "earns": x.earns}
        for x in told.shares
    ]
    return {
        "sink": told.sink,
        "elements": told.elements,
        "score": told.score,
        "status": str(told.status),
        "shares": shares,
        "pairs": _scores(told.pairs),
        "alternatives": [_pair(x) for x in told.alternatives],
        "left": told.left,
    }


def _changes(changes: Iterable[Change]) -> list[dict[str, Any]]:
    return [
        {"a": x.a, "b": x.b, "value": x.value, "before": x.before, "after": x.after}
        for x in changes
    ]


def _scores(pairs: Iterable[PairScore]) -> list[dict[str, Any]]:
    return [
        {"a": x.a, "b": x.b, "value": x.value, "elements": x.elements, "matched": x.matched}
        for x in pairs
    ]


def _number(value: Fraction | None) -> Decimal | str | None:
    """Return a number as a decimal, or as the text of a fraction where that does not end."""
    if value is None:
        return None
    try:
        return exact_decimal(value)
    except InputError:
        return str(value)
