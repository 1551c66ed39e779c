"""Layouts that ops need and users want."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutopt.conversion.backends import BACKENDS, backend, backend_named
from layoutopt.conversion.desired import for_axes, parse_desired, without_blocks
from layoutopt.conversion.requirements import Requirements, mismatch
from layoutopt.conversion.rules.op import UNKNOWN, Op, Shape, any_layout, parse_operands
from layoutopt.layout.layout import Layout
from tests.support import refused

# What backends need, and when a tensor is as they need it


def op(op_type: str, *shapes: Shape | None, out: Shape | None = None, layouts: str = "") -> Op:
    """Return an op with inputs and one result of some shapes."""
    return Op(
        op_type,
        {},
        tuple(f"x{n}" for n in range(len(shapes))),
        ("y",),
        shapes,
        (out,),
        "it",
        layouts=parse_operands(layouts) if layouts else None,
    )


def needs(requirements: Requirements, given_op: Op) -> str:
    """Return all requirements of an op in one line."""
    inputs = [requirements.input_requirement(given_op, n) for n in range(len(given_op.inputs))]
    return f"{','.join(map(str, inputs))}->{requirements.result_requirement(given_op, 0)}"


CONV = op("Conv", (1, 32, 8, 8), (64, 32, 3, 3), (64,), out=(1, 64, 6, 6))
STEM = op("Conv", (1, 3, 8, 8), (64, 3, 3, 3), (64,), out=(1, 64, 6, 6))
LINE = op("Conv", (1, 32, 8), (64, 32, 3), out=(1, 64, 6))
VOLUME = op("Conv", (1, 32, 8, 8, 8), (64, 32, 3, 3, 3), out=(1, 64, 6, 6, 6))
TURNED = op("ConvTranspose", (1, 32, 8, 8), (32, 64, 3, 3), out=(1, 64, 10, 10))
POOL = op("MaxPool", (1, 32, 8, 8), out=(1, 32, 4, 4))
ROWS = op("BatchNormalization", (5, 32), *[(32,)] * 4, out=(5, 32))
RELU = op("Relu", (1, 32, 8, 8), out=(1, 32, 8, 8))
LSTM = op("LSTM", (9, 1, 32), out=(9, 1, 1, 8))
GRID = op("GridSample", (1, 3, 8, 8), (1, 4, 4, 2), out=(1, 3, 4, 4))
ROIS = op("RoiAlign", (1, 3, 8, 8), (5, 4), (5,), out=(5, 3, 2, 2))

NEEDS = [
    ("canonical", CONV, "NHWC,OHWI,O->NHWC"),
    ("canonical", TURNED, "NHWC,IHWO->NHWC"),
    ("canonical", LINE, "***,***->***"),  # Glow's default has a say on four axes and on one
    ("canonical", ROWS, "**,C,C,C,C->**"),
    ("canonical", RELU, "****->****"),
    ("canonical", LSTM, "***->****"),
    ("canonical", GRID, "NHWC,NHW*->NHWC"),  # a grid has no channels: as ONNX writes it
    ("canonical", ROIS, "NHWC,**,*->*HWC"),
    ("nchw", CONV, "NCHW,OIHW,*->NCHW"),
    ("nchw", LINE, "NCW,OIW->NCW"),
    ("nchw", VOLUME, "NCDHW,OIDHW->NCDHW"),
    ("nchw", RELU, "****->****"),
    ("nhwc", CONV, "NHWC,HWIO,*->NHWC"),
    ("nhwc", LINE, "NWC,WIO->NWC"),
    ("nhwc", VOLUME, "NDHWC,DHWIO->NDHWC"),
    ("nhwc", TURNED, "NHWC,HWIO->NHWC"),
    ("nhwc", POOL, "NHWC->NHWC"),
    ("blocked", CONV, "NCHW16c,OIHW16i16o,*->NCHW16c"),
    ("blocked", STEM, "NCHW,OIHW,*->NCHW"),  # three channels do not divide
    ("blocked", LINE, "NCW16c,OIW16i16o->NCW16c"),
    ("blocked", POOL, "NCHW16c->NCHW16c"),
    ("blocked", TURNED, "NCHW,IOHW->NCHW"),  # not among its types
    ("blocked", op("MaxPool", (1, "c", 8, 8), out=(1, "c", 4, 4)), "NCHW->NCHW"),
]


@pytest.mark.parametrize(("name", "given_op", "wanted"), NEEDS)
def test_backends_need(name: str, given_op: Op, wanted: str) -> None:
    """Each example of a backend, on ops of all kinds of sensitivity."""
    assert needs(BACKENDS[name], given_op) == wanted


@pytest.mark.parametrize("name", ["nchw", "nhwc"])
def test_data_of_other_ranks_may_have_any_layout(name: str) -> None:
    for rank in (0, 1, 2, 6):
        assert BACKENDS[name].default_layout(rank) == any_layout(rank)


def test_unknown_ranks_satisfy_nothing_but_any() -> None:
    assert mismatch(UNKNOWN, Layout.parse("NC"), None, 4) == "the rank is unknown"
    assert mismatch(UNKNOWN, UNKNOWN, None, 4) is None
    assert mismatch(UNKNOWN, any_layout(2), None, 4) is None
    assert mismatch(Layout.parse("NC"), UNKNOWN, (1, 2), 4) is None


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 40)), min_size=2, max_size=4),
    st.data(),
)
def test_known_divisors_divide(dims: list[tuple[int, int]], data: st.DataObject) -> None:
    """Whatever an unknown size is, the stride is a multiple of what is said of it."""
    text = "".join(f"*[a={a}]" for _, a in dims)
    layout, sizes = Layout.parse(text), [size for size, _ in dims]
    hidden = data.draw(st.sets(st.integers(0, len(sizes) - 1)))
    open_shape = tuple(None if i in hidden else size for i, size in enumerate(sizes))
    said = layout.byte_strides(open_shape, 4)
    real = layout.byte_strides(tuple(sizes), 4)
    for (divisor, exact), (stride, _) in zip(said, real, strict=True):
        assert stride == divisor if exact else stride % divisor == 0


def test_a_backend_of_ones_own() -> None:
    """What it does not say is as in the class it derives from."""

    class Aligned(Requirements):
        """Data of four axes is aligned."""

        def default_layout(self, rank: int) -> Layout:
            return Layout.parse("N[a=64]HWC") if rank == 4 else super().default_layout(rank)

    try:
        backend("aligned")(Aligned)
        assert needs(backend_named("aligned"), CONV) == "N[a=64]HWC,O[a=64]HWI,O->N[a=64]HWC"
    finally:
        BACKENDS.pop("aligned", None)


def test_wrong_backends_are_refused() -> None:
    with refused("backend 'nwhc' must be one of canonical, nchw, nhwc, blocked"):
        backend_named("nwhc")
    with refused("backend 'mine' must be a class derived from Requirements"):
        backend("mine")(int)  # type: ignore[type-var]

    class Needy(Requirements):
        def __init__(self, block: int) -> None:
            self.block = block

    with refused("backend 'mine' must need no arguments"):
        backend("mine")(Needy)
    assert "mine" not in BACKENDS


# Layouts that users want, read from a line and turned into requirements


SUM = Op("Add", {}, ("x", "b"), ("y",), ((1, 32, 8, 8), (8,)), ((1, 32, 8, 8),))

NEEDS_DESIRED = [
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


@pytest.mark.parametrize(("text", "op", "wanted"), NEEDS_DESIRED)
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


def test_other_spatial_axes() -> None:
    assert str(for_axes(Layout.parse("NCHW16c"), "NCDHW")) == "NCDHW16c"
    assert str(for_axes(Layout.parse("H[a=8]WIO"), "OIHW")) == "H[a=8]WIO"
    assert for_axes(Layout.parse("NHCW"), "NCW") is None  # which of the two is it?
    assert for_axes(Layout.parse("NC"), "NCW") is None
    assert str(without_blocks(Layout.parse("OIHW16i16o"))) == "OIHW"
    assert str(without_blocks(Layout.parse("OIHW[4o4i]"))) == "OIHW"


def test_grouped_convolutions_are_not_blocked() -> None:
    grouped = Op("Conv", {"group": 32}, ("x", "w"), ("y",), ((1, 32, 8, 8), (32, 16, 3, 3)))
    assert str(BACKENDS["blocked"].input_requirement(grouped, 0)) == "NCHW"
