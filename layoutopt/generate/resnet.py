"""Training steps of residual convolutional networks.

Weights of convolutions are used in the forward pass and, flipped and with input and output channels
exchanged, in the backward pass.  Gains and biases of batch normalisation broadcast over batch
and image.  Every stage but the first halves the image and doubles the width.

The shapes of ``PRESETS`` are those of the table of He et al. 2016, with the stride of a bottleneck
in its kernel of 3, as in the networks that are usually handed on (25,557,032 parameters for 50
layers).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from layoutopt.generate.layers import Back, TrainingStep, at_least, linear, loss
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph


def resnet_step(
    blocks: tuple[int, ...] = (1, 1),
    width: int = 4,
    bottleneck: bool = False,
    stem: int = 3,
    pooled: bool = False,
    size: int = 8,
    channels: int = 3,
    classes: int = 5,
    batch: int = 2,
) -> Graph:
    """Return one training step of a residual network with momentum.

    ``blocks`` has the number of residual blocks of each stage, and ``width`` the channels of the
    first stage's.  A ``bottleneck`` is a block of kernels 1, 3 and 1 with four times the width at
    its ends, in place of two kernels of 3.  ``stem`` is the size of the first kernel; if
    ``pooled``, it and a pooling after it halve the image, of ``size`` rows and columns.
    """
    at_least(1, width=width, stem=stem, size=size, channels=channels, classes=classes, batch=batch)
    at_least(1, stages=len(blocks), blocks=min(blocks, default=1))
    graph = Graph(
        f"resnet-{sum(blocks)}x{width}", f"momentum step of {sum(blocks)} residual blocks"
    )
    step = TrainingStep(graph, ("momentum",))
    x, back = _stem(step, graph.sink((batch, channels, size, size), name="x"), width, stem, pooled)
    backs = [back]
    for stage, count in enumerate(blocks):
        for n in range(count):
            wide, stride = width * 2**stage, 2 if stage and not n else 1
            x, back = _block(step, x, wide, bottleneck, stride, f"stage{stage}.{n}")
            backs.append(back)
    gradient = _classifier(step, x, classes)
    for back in reversed(backs):
        gradient = back(gradient)
    step.update()
    return graph


def _conv(
    step: TrainingStep, x: Tensor, wide: int, kernel: int, stride: int, name: str
) -> tuple[Tensor, Back]:
    graph, pad, n = step.graph, kernel // 2, x.shape[2]
    w = step.parameter((wide, x.shape[1], kernel, kernel), f"{name}.w")
    gain, bias = (step.parameter((wide,), f"{name}.{role}") for role in ("gain", "bias"))
    y = graph.grow_conv(x, w, strides=stride, padding=pad, name=name)
    normed = graph.grow_elementwise(
        [y, gain.reshape(wide, 1, 1), bias.reshape(wide, 1, 1)], name=f"{name}.normed"
    )

    def back(dy: Tensor) -> Tensor:
        for parameter in (gain, bias):
            step.learn(parameter, graph.sum_like_reduce(dy, (wide, 1, 1)).reshape(wide))
        gradient: Tensor = graph.grow_elementwise([dy, y])
        step.learn(w, graph.fixed_point([x, gradient], w.shape, name=f"{name}.gradient"))
        if stride > 1:  # zeros between the rows and columns
            side = (y.shape[2] - 1) * stride + 1
            gradient = graph.fixed_point([gradient], (*y.shape[:2], side, side))
        before = kernel - 1 - pad
        after = before + (n + 2 * pad - kernel) % stride
        turned = w.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1]
        around = [(before, after)] * 2
        return graph.grow_conv(gradient, turned, padding=around, name=f"{name}.back")

    return normed, back


def _stem(
    step: TrainingStep, x: Tensor, wide: int, kernel: int, pooled: bool
) -> tuple[Tensor, Back]:
    graph = step.graph
    y, conv_back = _conv(step, x, wide, kernel, 2 if pooled else 1, "stem")
    active = graph.grow_elementwise([y], name="stem.active")
    if not pooled:
        return active, lambda dy: conv_back(graph.grow_elementwise([dy, active]))
    side = (active.shape[2] - 1) // 2 + 1
    small = graph.fixed_point([active], (*active.shape[:2], side, side), name="stem.pooled")

    def back(dy: Tensor) -> Tensor:
        return conv_back(graph.fixed_point([dy, active], active.shape, name="stem.pooled.back"))

    return small, back


def _block(
    step: TrainingStep, x: Tensor, wide: int, bottleneck: bool, stride: int, name: str
) -> tuple[Tensor, Back]:
    """Add convolutions beside which their input goes on, through one more where shapes differ."""
    graph = step.graph
    plan = [(wide, 1, 1), (wide, 3, stride), (4 * wide, 1, 1)]
    y, backs, actives = x, [], []
    for n, (channels, kernel, by) in enumerate(
        plan if bottleneck else [(wide, 3, stride), (wide, 3, 1)]
    ):
        if n:
            y = graph.grow_elementwise([y], name=f"{name}.active{n}")
            actives.append(y)
        y, back = _conv(step, y, channels, kernel, by, f"{name}.conv{n}")
        backs.append(back)
    beside, beside_back = x, None
    if y.shape != x.shape:
        beside, beside_back = _conv(step, x, y.shape[1], 1, stride, f"{name}.beside")
    added = graph.grow_elementwise([y, beside], name=name)

    def back_all(dy: Tensor) -> Tensor:
        total = graph.grow_elementwise([dy, added])
        gradient = backs[-1](total)
        for active, conv_back in zip(reversed(actives), reversed(backs[:-1]), strict=True):
            gradient = conv_back(graph.grow_elementwise([gradient, active]))
        return graph.grow_elementwise([gradient, beside_back(total) if beside_back else total])

    return added, back_all


def _classifier(step: TrainingStep, x: Tensor, classes: int) -> Tensor:
    graph, channels = step.graph, x.shape[1]
    mean = graph.fixed_point([x], x.shape[:2], name="mean")
    w = step.parameter((channels, classes), "output.w")
    bias = step.parameter((classes,), "output.b")
    scores, back = linear(step, mean, [w], [bias], "output")
    return graph.fixed_point([back(loss(graph, scores))], x.shape, name="mean.back")


PRESETS: dict[str, Callable[..., Graph]] = {
    "resnet-50": partial(
        resnet_step,
        blocks=(3, 4, 6, 3),
        width=64,
        bottleneck=True,
        stem=7,
        pooled=True,
        size=224,
        classes=1000,
        batch=32,
    )
}
"""Training steps of well-known networks; every number can be replaced."""
