"""Named families of instances, and their parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, getdoc, signature
from typing import TypeAlias

from layoutopt.base.errors import InputError, errors_of
from layoutopt.generate import networks, resnet, transformer, views
from layoutopt.generate.layers import training_step
from layoutopt.generate.random_graphs import random_graph, random_views
from layoutopt.graphs.unwinding import Graph

Setting: TypeAlias = int | float | bool | tuple[int, ...]  # type of a family's parameter

FAMILIES: dict[str, Callable[..., Graph]] = {
    "transformer": transformer.transformer_step,
    **transformer.PRESETS,
    "resnet": resnet.resnet_step,
    **resnet.PRESETS,
    "mixture-of-experts": networks.mixture_of_experts_step,
    "rnn": networks.rnn_unrolled,
    "recomputed": networks.recomputed,
    "chained-calls": networks.chained_calls,
    "dense-layers": training_step,
    "random": random_graph,
    "random-views": random_views,
    "diagonals": views.diagonals,
    "double-reversals": views.double_reversals,
    "coprime-reshapes": views.coprime_reshapes,
    "sliding-windows": views.sliding_windows,
    "strides": views.strides,
    "split-rounds": views.split_rounds,
    "aliases": views.aliases,
}
"""Functions that build an instance, by the family's name."""

NEEDED: dict[str, Setting] = {"seed": 0, "layers": 2, "width": 8}
"""Defaults of parameters without a default in the family's function."""


def parameters(family: str) -> dict[str, Setting]:
    """Return a family's parameters with their defaults."""
    if family not in FAMILIES:
        raise InputError(f"there is no family {family!r}; allowed: {', '.join(FAMILIES)}")
    given = signature(FAMILIES[family]).parameters.values()
    return {p.name: NEEDED[p.name] if p.default is Parameter.empty else p.default for p in given}


def summary(family: str) -> str:
    """Return a one-line description of a family."""
    build = FAMILIES[family]
    text = getdoc(getattr(build, "func", build)) or ""
    line = text.partition("\n")[0].removeprefix("Return ").rstrip(".")
    return f"{line}, in the shapes of {family}" if isinstance(build, partial) else line


def generate(family: str, settings: Mapping[str, str]) -> Graph:
    """Build an instance, with the family and its settings in name and description.

    Settings are text: numbers, ``true`` or ``false``, numbers with commas between.
    """
    defaults = parameters(family)
    for name in settings:
        if name not in defaults:
            told = f"family {family!r} has no parameter {name!r}"
            raise InputError(f"{told}; allowed: {', '.join(defaults)}")
    chosen = {name: _value(name, text, defaults[name]) for name, text in settings.items()}
    own = defaults | chosen
    with errors_of(f"family {family!r}"):
        graph = FAMILIES[family](**own)
    changed = [f"{name}={text(own[name])}" for name in own if own[name] != defaults[name]]
    graph.name = "-".join([family, *changed])
    graph.description = f"{summary(family)}: {listing(own)}"
    return graph


def listing(settings: Mapping[str, Setting]) -> str:
    """Return settings as text, in the form in which they are given."""
    return " ".join(f"{name}={text(value)}" for name, value in settings.items())


def text(value: Setting) -> str:
    """Return one setting as text."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower()


def _value(name: str, given: str, default: Setting) -> Setting:
    """Return a text as a value of the default's type."""
    if isinstance(default, bool):
        if given not in ("true", "false"):
            raise InputError(f"{name}={given}: must be true or false")
        return given == "true"
    try:
        if isinstance(default, tuple):
            return tuple(map(int, given.split(",")))
        if isinstance(default, float):
            return float(given)
        return int(given)
    except ValueError:
        what = "integers with commas between" if isinstance(default, tuple) else "an integer"
        what = "a number" if isinstance(default, float) else what
        raise InputError(f"{name}={given}: must be {what}") from None
