"""Ops with operands and attributes, and how many orders of axes each can run in.

The cases are in ``tests/cases/ops.toml``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutopt.conversion.rules.op import LATEST
from tests.onnx.networks import constant

Array = NDArray[Any]
Operand = Sequence[int] | Array | None
"""A shape, to be filled at random; an array; or None for one that is left out."""


@dataclass(frozen=True)
class Case:
    """An op.

    Parameters
    ----------
    type
        Its type.
    operands
        What it is given.
    taken
        Of all permutations, how many it can run in.
    attributes
        Its attributes, inputs of axes and sizes among them.
    every
        In how many ways it runs in all, if operands are permuted each alone.
    opset, outputs, runtime
        Of :func:`tests.layout.onnx_ops.op_of` and ``results``.
    kind
        What operands are filled with: ``real``, ``positive`` (below 1), ``whole`` (small
        integers) or ``bool``.
    """

    type: str
    operands: Sequence[Operand]
    taken: int
    attributes: dict[str, Any] = field(default_factory=dict)
    every: int = 0
    opset: int = LATEST
    outputs: int = 1
    runtime: str = "onnx"
    kind: str = "real"

    def __str__(self) -> str:
        settings = ",".join(f"{k}={v}" for k, v in self.attributes.items())
        return f"{self.type}-{self.opset}({settings})".replace(" ", "")

    def arrays(self) -> list[Array | None]:
        """Return the operands."""
        draw = np.random.default_rng(len(self.type) + 7 * self.opset)
        return [
            one if one is None or isinstance(one, np.ndarray) else filled(draw, one, self.kind)
            for one in self.operands
        ]


def filled(draw: np.random.Generator, shape: Sequence[int], kind: str) -> Array:
    """Return a random array."""
    if kind == "whole":
        return draw.integers(1, 5, shape).astype(np.int64)
    if kind == "bool":
        return draw.integers(0, 2, shape).astype(bool)
    values = draw.uniform(0.2, 0.9, shape) if kind == "positive" else draw.normal(size=shape)
    return values.astype(np.float32)


def _cases() -> Iterator[Case]:
    for rows in tomllib.loads((Path(__file__).parents[1] / "cases/ops.toml").read_text()).values():
        for row in rows:
            operands = [constant(one) for one in row.pop("given")]
            for name in row.pop("op").split(" "):
                yield Case(name, operands, **row)


CASES = tuple(_cases())
