"""Training steps of networks: backward pass, gradients and update."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from layoutopt.base.errors import InputError
from layoutopt.graphs.tensor import Tensor
from layoutopt.onnx.gradients import (
    BARRIER_GRADIENTS,
    CONTRACTION_GRADIENTS,
    ELEMENTWISE_GRADIENTS,
    UNLISTED,
    VIEW_GRADIENTS,
    Backward,
    Use,
)
from layoutopt.onnx.network import AddedNode, OnnxGraphBuilder
from layoutopt.onnx.protobuf import captured, title
from layoutopt.onnx.rules import is_standard, rule_of, together, type_of

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

STATES = {"sgd": (), "momentum": ("momentum",), "adam": ("m", "v")}
"""Optimisers, and the names of the states that each keeps for every trained tensor."""

BACKWARD: dict[str, Backward] = (
    CONTRACTION_GRADIENTS | ELEMENTWISE_GRADIENTS | VIEW_GRADIENTS | BARRIER_GRADIENTS
)
"""Backward rules by op type, for ONNX's own operator set."""

FLAT = """
    Bernoulli Ceil DequantizeLinear DynamicQuantizeLinear Floor Hardmax Multinomial OneHot
    QuantizeLinear Round Sign
"""
"""Op types that no gradient passes, because they are constant almost everywhere or integer."""


def check_training(training: str | None) -> None:
    """Refuse an optimiser that does not exist.

    Raises
    ------
    InputError
        That names those that do.
    """
    if training is not None and training not in STATES:
        allowed = ", ".join(STATES)
        raise InputError(f"there is no training {training!r}; allowed: {allowed}")


class Trainer:
    """The backward pass of a network, as it grows.

    Parameters
    ----------
    builder
        The network, built.
    """

    def __init__(self, builder: OnnxGraphBuilder) -> None:
        self.builder = builder
        self.sketch = builder.sketch
        self.floats = _floats(builder.network)
        self.trained = [
            (name, builder.tensors[name])
            for name in _parameters(builder.network)
            if name in builder.tensors and name in self.floats
        ]
        self.flowing = {x.index for _, x in self.trained}
        self.found: dict[int, list[Tensor]] = {}
        self.opaque: Counter[str] = Counter()

    def build(self, training: str) -> None:
        """Add the backward pass, and the update of every tensor that gets a gradient.

        Raises
        ------
        InputError
            If there is nothing to train, or a node does not fit its operands.
        """
        plans = [self._plan(placed) for placed in self.builder.placed]
        for name in dict.fromkeys(x.name for x in self.builder.network.output):
            y = self.builder.tensors[name]
            if y.index in self.flowing:
                own = self.sketch.helper(name, "loss")
                self._note(y, self.sketch.graph.fixed_point([y], y.shape, name=own))
        for placed, wanted in zip(reversed(self.builder.placed), reversed(plans), strict=True):
            try:
                self._go_back(placed, wanted)
            except InputError as error:
                raise error.located(title(placed.proto)) from None
        learned = [(name, w) for name, w in self.trained if w.index in self.found]
        if not learned:
            raise InputError("there is nothing to train: no output follows from an initialiser")
        for name, w in learned:
            self._update(name, w, STATES[training])

    def _plan(self, placed: AddedNode) -> tuple[int, ...]:
        """Return the positions of operands that need gradients, and say so of the outputs."""
        proto = placed.proto
        if is_standard(proto.domain) and proto.op_type in FLAT.split():
            return ()
        wanted = tuple(
            i for i, x in self._learnable(placed) if x is not None and x.index in self.flowing
        )
        if wanted:
            self.flowing.update(y.index for y in self._differentiable(placed) if y is not None)
        return wanted

    def _learnable(self, placed: AddedNode) -> Iterator[tuple[int, Tensor | None]]:
        """Yield number and tensor of each operand that gradients may go to."""
        proto, node = placed.proto, placed.node
        rule = rule_of(proto.domain, proto.op_type)
        barred = {*rule.structure, *rule.unread, *backward_of(proto).constant}
        names = (*proto.input, *sorted(captured(proto)))
        for i, (name, x) in enumerate(zip(names, (*node.inputs, *node.captured), strict=True)):
            if i not in barred and name in self.floats:
                yield i, x

    def _differentiable(self, placed: AddedNode) -> Iterator[Tensor | None]:
        """Yield the outputs, ``None`` for those that have no gradients."""
        every = backward_of(placed.proto).every
        for i, (name, y) in enumerate(zip(placed.proto.output, placed.outputs, strict=True)):
            yield y if name in self.floats and (every or i == 0) else None

    def _go_back(self, placed: AddedNode, wanted: tuple[int, ...]) -> None:
        outputs = tuple(self._differentiable(placed)) if wanted else ()
        gradients = tuple(None if y is None else self._gradient(y) for y in outputs)
        if all(dy is None for dy in gradients):
            return
        rule = backward_of(placed.proto)
        if rule is UNLISTED:
            self.opaque[type_of(placed.proto)] += 1
        use = Use(placed.node, outputs, gradients, wanted)
        for position, dx in rule.build(self.sketch, use):
            self._note(use.operand(position), dx)

    def _note(self, x: Tensor, gradient: Tensor) -> None:
        self.found.setdefault(x.index, []).append(gradient)

    def _gradient(self, x: Tensor) -> Tensor | None:
        """Return the gradient of a tensor, once all that reads it has been gone back through."""
        found = self.found.get(x.index, [])
        if len(found) > 1:
            name = self.sketch.helper(x.name, "gradient.sum")
            found[:] = [together(self.sketch, name, found, "gradient_sum")]
        return found[0] if found else None

    def _update(self, name: str, w: Tensor, states: Sequence[str]) -> None:
        gradient = self._gradient(w)
        assert gradient is not None  # tensors without one are not learned
        kept = [self.sketch.sink(self.sketch.helper(name, state), w.shape) for state in states]
        values = self.sketch.attractions
        self.sketch.graph.grow_optimizer_step(
            w,
            gradient,
            kept,
            weights_value=values["optimiser.weights"],
            states_value=values["optimiser.states"],
            name=self.sketch.helper(name, "update"),
        )


def backward_of(node: NodeProto) -> Backward:
    """Return the backward rule of an op type; that of unknown ones is opaque."""
    return BACKWARD.get(node.op_type, UNLISTED) if is_standard(node.domain) else UNLISTED


def _parameters(network: GraphProto) -> list[str]:
    """Return the names of a network's initialisers.

    A constant that is filled to a shape that an initialiser gives stands for one: networks are
    handed on without their weights in this form.
    """
    names = [x.name for x in network.initializer]
    own = set(names)
    filled = [
        node.output[0]
        for node in network.node
        if node.op_type == "ConstantOfShape" and is_standard(node.domain) and node.input[0] in own
    ]
    return names + filled


def _floats(network: GraphProto) -> set[str]:
    """Return the names of tensors of floating-point numbers."""
    from onnx import TensorProto

    kinds = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
    values = (*network.input, *network.value_info, *network.output)
    found = {x.name for x in values if x.type.tensor_type.elem_type in kinds}
    return found | {x.name for x in network.initializer if x.data_type in kinds}
