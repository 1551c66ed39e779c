"""Ops in required layouts: the forms of their operands, and what cannot be had."""

from __future__ import annotations

import pytest

from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.orders import AxisFactor, Form
from layoutopt.conversion.required import in_layouts
from layoutopt.conversion.rules.op import Op, Shape, parse_operands
from tests.support import refused


def conv(shape: Shape | None, written: str = "") -> Op:
    """Return a convolution of data of a shape; nothing is known of its result."""
    graph = ConversionGraph()
    x, w = graph.input("x", shape), graph.constant("w", (8, 12, 1, 1))
    layouts = parse_operands(f"{written}->NCHW") if written else None
    graph.add(Op("Conv", {}, (x, w), ("y",), (), (None,), "conv", layouts=layouts))
    return graph.ops[0]


PLAIN, BLOCKED = (2, 12, 3, 5), (2, 3, 3, 5, 4)


@pytest.mark.parametrize(
    ("written", "wanted", "form"),
    [
        ("", "NHWC", (0, 2, 3, 1)),
        ("", "NCHW", None),
        ("", "N*HW", None),
        ("", "NCHW4c", (0, AxisFactor(1, 4, 3), 2, 3, AxisFactor(1, 1, 4))),
        ("", "NCHW5c", (0, AxisFactor(1, 5, 3), 2, 3, AxisFactor(1, 1, 5))),
        ("NCHW4c", "NCHW4c", None),
        ("NCHW4c", "NCHW", (0, (1, 4), 2, 3)),
        ("NCHW4c", "NHWC", (0, 2, 3, (1, 4))),
        ("NCHW4c", "NCHW2c", (0, (1, AxisFactor(4, 2, 2)), 2, 3, AxisFactor(4, 1, 2))),
        ("NCHW4c", "NCHW12c", (0, -1, 2, 3, (1, 4))),
    ],
)
def test_forms_by_hand(written: str, wanted: str, form: Form | None) -> None:
    """Twelve channels, as they are or in blocks of four, in each layout that is required.

    Where blocks do not divide them, the last block is filled up.
    """
    found = in_layouts(conv(BLOCKED if written else PLAIN, written), parse_operands(f"{wanted}->*"))
    assert found is not None
    assert found[0] == (form, None)


@pytest.mark.parametrize(
    ("shape", "written", "wanted", "reason"),
    [
        (PLAIN, "", "N[a=64]HWC", "N[a=64]HWC is required; alignments cannot be converted"),
        (PLAIN, "NWC", "NCW", "it is written in NWC, for a tensor of 4 axes"),
        (None, "NCHW", "NCHW4c", "NCHW4c is required of a tensor of unknown rank"),
        ((2, "C", 3, 5), "", "NCHW4c", "blocks of axis C, whose size 'C' is no number"),
        ((2, None, 3, 5), "", "NCHW4c", "blocks of axis C, whose size None is no number"),
        (BLOCKED, "NCHW4c", "NCHW8c", "NCHW8c is required; blocks do not divide axis C of 12"),
        (BLOCKED, "NCHW4c", "NCHW6c", "NCHW6c is required, and its blocks cut through those it"),
    ],
)
def test_what_cannot_be_had(shape: Shape | None, written: str, wanted: str, reason: str) -> None:
    """What no transform gives is refused by the op's name, with the reason."""
    op = conv(shape, written)
    with refused("Conv 'conv': ", reason):
        in_layouts(op, parse_operands(f"{wanted}->*"))
