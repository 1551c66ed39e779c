"""Layouts that ops need and users want."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from layoutopt.conversion.backends import BACKENDS, backend, backend_named
from layoutopt.conversion.requirements import Requirements
from layoutopt.conversion.rules.op import Op
from layoutopt.layout.layout import Layout
from tests.conversion.onnx_ops import op
from tests.support import refused

# What backends need, and when a tensor is as they need it


def needs(requirements: Requirements, given_op: Op) -> str:
    """Return all requirements of an op in one line."""
    inputs = [requirements.input_requirement(given_op, n) for n in range(len(given_op.inputs))]
    return f"{','.join(map(str, inputs))}->{requirements.result_requirement(given_op, 0)}"


# Ops of all kinds of sensitivity, also for rows of tests/examples/calls.txt.
CONV = op("Conv", (1, 32, 8, 8), (64, 32, 3, 3), (64,), out=(1, 64, 6, 6))
STEM = op("Conv", (1, 3, 8, 8), (64, 3, 3, 3), (64,), out=(1, 64, 6, 6))
DEPTHWISE = op("Conv", (1, 32, 8, 8), (32, 1, 3, 3), out=(1, 32, 6, 6), group=32)
LINE = op("Conv", (1, 32, 8), (64, 32, 3), out=(1, 64, 6))
VOLUME = op("Conv", (1, 32, 8, 8, 8), (64, 32, 3, 3, 3), out=(1, 64, 6, 6, 6))
TURNED = op("ConvTranspose", (1, 32, 8, 8), (32, 64, 3, 3), out=(1, 64, 10, 10))
POOL = op("MaxPool", (1, 32, 8, 8), out=(1, 32, 4, 4))
ROWS = op("BatchNormalization", (5, 32), *[(32,)] * 4, out=(5, 32))
RELU = op("Relu", (1, 32, 8, 8), out=(1, 32, 8, 8))
SUM = op("Add", (1, 32, 8, 8), (8,), out=(1, 32, 8, 8))
LSTM = op("LSTM", (9, 1, 32), out=(9, 1, 1, 8))
GRID = op("GridSample", (1, 3, 8, 8), (1, 4, 4, 2), out=(1, 3, 4, 4))
ROIS = op("RoiAlign", (1, 3, 8, 8), (5, 4), (5,), out=(5, 3, 2, 2))


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 40)), min_size=2, max_size=4), st.data()
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
