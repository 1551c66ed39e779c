"""Axes of charts: which values they span, where these stand, and what ticks say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

TICKS = 5
"""About so many ticks on an axis."""

ZERO = 0.09
"""Share of a logarithmic axis that leads from 0, which has no logarithm, to the least value."""

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Axis:
    """One axis of a chart.

    Parameters
    ----------
    label
        What it shows, with its unit.
    log
        Whether equal distances are equal ratios; 0 then has a place of its own at the low end.
    percent
        Whether values are ratios that ticks tell in percent.
    low, high
        Ends; by default the values' own.
    """

    label: str
    log: bool = False
    percent: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Scale:
    """An axis with its ends and ticks.

    Parameters
    ----------
    low, high
        The values at both ends; of a logarithmic axis without 0.
    log, zero
        Whether it is logarithmic, and whether it begins with 0 all the same.
    ticks
        Values and what they are called.
    """

    low: float
    high: float
    log: bool
    zero: bool
    ticks: tuple[tuple[float, str], ...]

    def at(self, value: float) -> float:
        """Return where a value stands, 0 at the low end and 1 at the high one."""
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        if value <= 0:
            return 0.0
        first = ZERO if self.zero else 0.0
        span = math.log(self.high / self.low)
        return first + (1 - first) * math.log(max(value, self.low) / self.low) / span


def scale(axis: Axis, values: Iterable[float]) -> Scale:
    """Return the scale on which an axis shows values, of which there may be none."""
    known = [*values, *(end for end in (axis.low, axis.high) if end is not None)]
    return _logarithmic(axis, known) if axis.log else _linear(axis, known)


def _linear(axis: Axis, values: Sequence[float]) -> Scale:
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low == high:
        low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    step = _nice((high - low) / TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [round(i * step, 12) for i in range(first, last + 1)]
    low = ticks[0] if axis.low is None else low
    high = ticks[-1] if axis.high is None else high
    inside = [tick for tick in ticks if low - step / 1e6 <= tick <= high + step / 1e6]
    top = max(abs(low), abs(high))
    words = tuple((tick, _told(tick, step, top, axis.percent)) for tick in inside)
    return Scale(low, high, False, False, words)


def _nice(step: float) -> float:
    """Return the least of 1, 2 and 5 times a power of ten that is not below a step."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(f * power for f in (1, 2, 5, 10) if f * power >= step * (1 - 1e-9))


def _told(value: float, step: float, top: float, percent: bool) -> str:
    """Return a tick's words, with as many digits as its axis needs."""
    if percent:
        value, step, top = 100 * value, 100 * step, 100 * top
    exponent = math.floor(math.log10(top)) if top >= 1e7 else 0
    digits = max(0, exponent - math.floor(math.log10(step) + 1e-9))
    words = f"{value / 10.0**exponent:,.{digits}f}"
    if exponent and value:
        words += f"·10{str(exponent).translate(SUPERSCRIPTS)}"
    return words + ("%" if percent else "")


def _logarithmic(axis: Axis, values: Sequence[float]) -> Scale:
    positive = [value for value in values if value > 0]
    low, high = min(positive, default=1.0), max(positive, default=1.0)
    if high < 2 * low:
        low, high = (low, 2 * low) if axis.low == low else (low / 1.5, high * 1.5)
    zero = any(value <= 0 for value in values)
    ticks = [(tick, power(tick, axis.percent)) for tick in _decades(low, high)]
    return Scale(low, high, True, zero, tuple([(0.0, "0")] * zero + ticks))


def _decades(low: float, high: float) -> list[float]:
    """Return powers of ten between two values, or finer steps if there are few of them."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    fine = math.log10(high / low) < 2
    factors = (1, 2, 5) if fine else (1,)
    stride = 1 if fine else math.ceil((last - first) / (TICKS + 1))
    every = [f * 10.0**k for k in range(first, last + 1) if k % stride == 0 for f in factors]
    return [tick for tick in every if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]


def power(value: float, percent: bool = False) -> str:
    """Return a small number of digits times a power of ten, as short as it can be read."""
    if percent and 1e-5 <= value < 1e3:
        return f"{100 * value:,.10g}%"
    if 1e-3 <= value < 1e6:
        return f"{value:,.10g}"
    exponent = math.floor(math.log10(value) + 1e-9)
    head = round(value / 10.0**exponent)
    return f"{'' if head == 1 else f'{head}·'}10{str(exponent).translate(SUPERSCRIPTS)}"
