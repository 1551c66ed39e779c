"""Small networks full of transposes, as channels-last exporters write them."""

from __future__ import annotations

from collections.abc import Callable

from onnx import ModelProto

from tests.onnx.exports import TO_FIRST, Export


def residual() -> ModelProto:
    """Return two convolutions with a shortcut: every transpose can go but those at its ends."""
    net = Export(0)
    x = net.input((1, 6, 6, 4))
    y = net.op("Relu", [net.conv(x, 4)], net.shapes[x])
    y = net.op("Add", [net.conv(y, 4), x], net.shapes[x])
    return _ended(net, net.op("Relu", [y], net.shapes[x]))


def squeeze_excite() -> ModelProto:
    """Return a convolution whose channels are scaled by what their means say."""
    net = Export(1)
    x = net.input((1, 6, 6, 4))
    y = net.squeeze_excite(net.conv(x, 4))
    return _ended(net, net.conv(y, 3))


def concatenated() -> ModelProto:
    """Return branches of convolution, pool and input joined along channels."""
    net = Export(2)
    x = net.input((1, 6, 6, 3))
    parts = [net.conv(x, 2), net.pool(x), x]
    channels = sum(net.shapes[part][3] for part in parts)
    y = net.op("Concat", parts, (1, 6, 6, channels), axis=3)
    return _ended(net, net.conv(y, 4))


def two_readers() -> ModelProto:
    """Return a convolution that one reader wants channels-first and another channels-last."""
    net = Export(3)
    y = net.conv(net.input((1, 6, 6, 4)), 4)
    last = net.op("Softmax", [y], net.shapes[y], axis=3)
    flat = net.op("Flatten", [y], (1, 6 * 6 * 4), axis=1)
    heads = net.op("Gemm", [flat, net.constant((6 * 6 * 4, 5))], (1, 5))
    return _ended(net, last, heads, net.turn(y, TO_FIRST))


def pixels() -> ModelProto:
    """Return a classifier: convolutions, a global pool, a matrix product on what it leaves."""
    net = Export(4)
    x = net.input((1, 8, 8, 3))
    y = net.pool(net.conv(net.pool(net.conv(x, 4)), 8))
    y = net.op("GlobalAveragePool", [net.turn(y, TO_FIRST)], (1, 8, 1, 1))
    y = net.op("Reshape", [y, net.values([1, 8])], (1, 8))
    return _ended(net, net.op("MatMul", [y, net.constant((8, 4))], (1, 4)))


def _ended(net: Export, *outputs: str) -> ModelProto:
    net.outputs += outputs
    return net.model()


NETWORKS: dict[str, Callable[[], ModelProto]] = {
    build.__name__: build for build in (residual, squeeze_excite, concatenated, two_readers, pixels)
}
"""All of them by name."""
