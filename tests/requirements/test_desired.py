"""Layouts that users want, read from a line and turned into requirements."""

from __future__ import annotations

import pytest

from layoutopt.conversion.desired import for_axes, parse_desired, without_blocks
from layoutopt.conversion.rules.op import Op, Shape
from layoutopt.layout.layout import Layout
from tests.requirements.test_requirements import CONV, GRID, LINE, POOL, RELU, STEM, VOLUME, needs
from tests.support import refused

SUM = Op("Add", {}, ("x", "b"), ("y",), ((1, 32, 8, 8), (8,)), ((1, 32, 8, 8),))

NEEDS = [
    ("Conv=NHWC,HWIO", CONV, "NHWC,HWIO,O->NHWC"),
    ("Conv=NHWC", CONV, "NHWC,HWIO,O->NHWC"),  # weights go with channels-last data
    ("Conv=NCHW", CONV, "NCHW,OIHW,O->NCHW"),
    ("Conv=NHWC,OHWI->NCHW", CONV, "NHWC,OHWI,O->NCHW"),
    ("Conv=default,HWIO", CONV, "NCHW,HWIO,O->NCHW"),
    ("Conv=NHWC", LINE, "NWC,WIO->NWC"),
    ("Conv=NHWC,OHWI", VOLUME, "NDHWC,ODHWI->NDHWC"),
    ("Conv=NWC", CONV, "NHWC,HWIO,O->NHWC"),
    ("Conv=NHWC", POOL, "NCHW->NCHW"),  # nothing is desired: as it is written
    ("default=NHWC", POOL, "NHWC->NHWC"),
    ("default=NHWC", RELU, "****->****"),
    ("default=NHWC", GRID, "NHWC,NHW*->NHWC"),
    ("default=NHWC; MaxPool=NCHW", POOL, "NCHW->NCHW"),
    ("Relu=NHWC", RELU, "NHWC->NHWC"),
    ("Relu=NWC", RELU, "****->****"),  # axes without letters: of tensors with as many only
    ("Add=NHWC", SUM, "NHWC,*->NHWC"),
    ("Add=NHWC,NHWC", SUM, "NHWC,*->NHWC"),
    ("Conv=NHWC; @it=NCHW", CONV, "NCHW,OIHW,O->NCHW"),
    ("Conv=NHWC; skip=@it", CONV, "NCHW,OIHW,O->NCHW"),
    ("default=NHWC\nskip=MaxPool, LRN", POOL, "NCHW->NCHW"),
    ("default=NHWC; skip=Conv", POOL, "NHWC->NHWC"),
    ("Conv=NCHW16c,OIHW16i16o", CONV, "NCHW16c,OIHW16i16o,O->NCHW16c"),
    ("Conv=NCHW16c,OIHW16i16o", STEM, "NCHW,OIHW,O->NCHW"),  # of three channels, no operand is
    ("Conv=NCHW16c,OIHW16i16o", LINE, "NCW16c,OIW16i16o->NCW16c"),
    ("Conv=NCHW64c,OIHW", CONV, "NCHW,OIHW,O->NCHW"),  # 64 of the result, but 32 of the data
    ("Conv=NHWC,OIHW16o", STEM, "NHWC,OIHW16o,O->NHWC"),
    ("Conv=N[a=64]HWC[ns:x;y,z]", CONV, "N[a=64]HWC[ns:x;y,z],HWIO,O->N[a=64]HWC[ns:x;y,z]"),
]


@pytest.mark.parametrize(("text", "op", "wanted"), NEEDS)
def test_desired_layouts_are_requirements(text: str, op: Op, wanted: str) -> None:
    """By name, else by type, else by default; skipped and unnamed ops stay as written."""
    assert needs(parse_desired(text), op) == wanted


def test_padding_takes_blocks_that_do_not_divide() -> None:
    wanted = "NCHW16c,OIHW16i16o,O->NCHW16c"
    assert needs(parse_desired("Conv=NCHW16c,OIHW16i16o", padding=True), STEM) == wanted


def test_operands_with_the_datas_axes_follow_it() -> None:
    """The indices of a pool, and what MaxUnpool takes of them."""
    shape: Shape = (1, 32, 8, 8)
    unpool = Op("MaxUnpool", {}, ("x", "i"), ("y",), (shape, shape), (shape,))
    assert needs(parse_desired("default=NHWC"), unpool) == "NHWC,NHWC->NHWC"
    pool = Op("MaxPool", {}, ("x",), ("y", "i"), (shape,), (shape, shape))
    assert str(parse_desired("MaxPool=NHWC").result_requirement(pool, 1)) == "NHWC"


def test_layouts_of_other_axes_are_refused_when_used() -> None:
    """As a default they are passed over, as not every op has all axes."""
    with refused("Conv 'it'", "the desired NHWK is no order of its axes N, C, H, W"):
        parse_desired("Conv=NHWK").input_requirement(CONV, 0)
    assert needs(parse_desired("default=NHWK"), POOL) == "NCHW->NCHW"


REFUSED = [
    ("Conv", "desired layout 'Conv' must be like Conv=NHWC,HWIO"),
    ("Conv=", "desired layout 'Conv=' must be like"),
    ("=NHWC", "desired layout '=NHWC' must be like"),
    ("@=NHWC", "desired layout '@=NHWC' must be like"),
    ("Conw=NHWC", "there is no type of op 'Conw'; did you mean Conv?"),
    ("Qqqqqqqqq=NHWC", "other domains are written domain::Type"),
    ("skip=Convv", "there is no type of op 'Convv'; did you mean Conv?"),
    ("Conv=NHWC,,OIHW", "desired layout 'Conv=NHWC,,OIHW': a layout is missing"),
    ("Conv=NHW4", "desired layout 'Conv=NHW4': column"),
    ("Conv=NHWC MaxPool=NHWC", "desired layout 'Conv=NHWC MaxPool=NHWC': column"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_wrong_entries_are_quoted(text: str, reason: str) -> None:
    with refused(reason):
        parse_desired(text)


def test_other_spatial_axes() -> None:
    assert str(for_axes(Layout.parse("NCHW16c"), "NCDHW")) == "NCDHW16c"
    assert str(for_axes(Layout.parse("H[a=8]WIO"), "OIHW")) == "H[a=8]WIO"
    assert for_axes(Layout.parse("NHCW"), "NCW") is None  # which of the two is it?
    assert for_axes(Layout.parse("NC"), "NCW") is None
    assert str(without_blocks(Layout.parse("OIHW16i16o"))) == "OIHW"
    assert str(without_blocks(Layout.parse("OIHW[4o4i]"))) == "OIHW"
