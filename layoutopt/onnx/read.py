"""Networks from ``.onnx`` files."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from layoutopt.errors import InputError
from layoutopt.graphs.unwinding import Graph
from layoutopt.onnx.attractions import read_attractions
from layoutopt.onnx.barriers import BODIES
from layoutopt.onnx.files import load
from layoutopt.onnx.functions import inlined
from layoutopt.onnx.network import OnnxGraphBuilder
from layoutopt.onnx.ordering import is_in_order, sort_nodes
from layoutopt.onnx.protobuf import load_model
from layoutopt.onnx.rules import is_known, type_of
from layoutopt.onnx.shapes import Shaped, infer, set_dims
from layoutopt.onnx.sizing import listed, sized
from layoutopt.onnx.training import Trainer, check_training
from layoutopt.onnx.wellformed import check_nodes, check_version

if TYPE_CHECKING:
    from onnx import ModelProto

LOG = logging.getLogger(__name__)

OLDEST = 6
"""The first version of ONNX's own operator set that is read."""


@dataclass(frozen=True, eq=False)
class Network:
    """A network as an unwinding problem.

    Parameters
    ----------
    graph
        The problem.
    unknown_ops
        Op types without a rule, which became barriers, with the number of their nodes; a
        type of another domain than ONNX's own is written ``domain::Type``.
    unread_bodies
        Op types that hold graphs, which became barriers and were not looked into, with the
        number of their nodes.
    opaque_gradients
        Op types without a backward rule, whose gradients became barriers, with the number of
        their nodes.
    notes
        What a user should know of how shapes were found; a line each.
    """

    graph: Graph
    unknown_ops: Mapping[str, int]
    unread_bodies: Mapping[str, int]
    opaque_gradients: Mapping[str, int]
    notes: tuple[str, ...] = ()

    def warnings(self) -> tuple[str, ...]:
        """Return a line for each way in which the graph only roughly describes the network."""
        lines = (
            ("unknown op types, taken for barriers", self.unknown_ops),
            ("graphs inside ops, which became barriers, are not read", self.unread_bodies),
            (
                "op types without a backward rule, gradients taken for barriers",
                self.opaque_gradients,
            ),
        )
        found = (f"{what}: {listed(counts)}" for what, counts in lines if counts)
        return (*found, *self.notes)


def read_onnx(
    path: str | Path,
    attractions: str | Path | None = None,
    dims: Mapping[str, int] | None = None,
    training: str | None = None,
) -> Graph:
    """Return a network's graph, and log a warning for ops of unknown meaning.

    See :func:`read_network` for the parameters and the meaning of the graph.
    """
    network = read_network(path, attractions, dims, training)
    for line in network.warnings():
        LOG.warning("%s: %s", path, line)
    return network.graph


def read_network(
    path: str | Path,
    attractions: str | Path | None = None,
    dims: Mapping[str, int] | None = None,
    training: str | None = None,
) -> Network:
    """Read a network.

    Inputs, initialisers and constants become sinks, each drawn weakly to a source.
    Convolutions and matrix products become fixed points whose operands are drawn to the
    layouts that the operation wants.  Elementwise operations follow one operand and draw
    all together.  Operations that only move elements become views, all others barriers.
    Tensors keep the names that the network gives them.

    Parameters
    ----------
    path
        The file.  Data that it keeps in other files is not needed, and not read.
    attractions
        A TOML file with values that replace some of the shipped table's.
    dims
        Sizes of symbolic dimensions by name; ``"x.0"`` is a name for dimension 0 of input
        ``x`` if it has none.
    training
        Add the backward pass and the update by an optimiser: ``"sgd"``, ``"momentum"`` or
        ``"adam"``, which keep none, one and two states for every trained tensor.  Those are
        the initialisers of floating-point numbers that an output follows from, but for
        statistics of normalisations.

    Raises
    ------
    InputError
        If a file cannot be read, a dimension remains open, a shape cannot be inferred, or a
        node does not fit its operands.
    """
    check_training(training)
    values = read_attractions(attractions)
    model = load_model(path)
    kind = "from an ONNX network" if training is None else f"{training} step of an ONNX network"
    graph = Graph("-".join(filter(None, (Path(path).stem, training))), kind)
    opaque: Mapping[str, int] = {}
    try:
        shaped = _shaped(model, path, dims or {})
        builder = OnnxGraphBuilder(shaped, graph, values)
        builder.build()
        if training is not None:
            trainer = Trainer(builder)
            trainer.build(training)
            opaque = trainer.opaque
    except InputError as error:
        raise error.located(file=str(path)) from None
    unknown = Counter(type_of(x) for x in builder.live if not is_known(x.domain, x.op_type))
    bodies = Counter(type_of(x) for x in builder.live if type_of(x) in BODIES)
    misfits = listed(builder.misfits)
    notes = (f"ops that sizes of 1 do not fit, taken for barriers: {misfits}",) if misfits else ()
    counts = [dict(sorted(x.items())) for x in (unknown, bodies, opaque)]
    return Network(graph, counts[0], counts[1], counts[2], shaped.notes + notes)


def _shaped(model: ModelProto, path: str | Path, dims: Mapping[str, int]) -> Shaped:
    """Return a network with all shapes, whose nodes are in order.

    Parameters
    ----------
    path
        Its file, with weights, for the case that only a run tells some shapes.
    """

    def whole() -> ModelProto:
        model = _prepared(load(path).model)
        set_dims(model, dims)
        return model

    check_version(model, OLDEST)
    model = _prepared(model)
    check_nodes(model)
    return sized(infer(model, dims), whole)


def _prepared(model: ModelProto) -> ModelProto:
    """Return a network without functions, its nodes in order."""
    model = inlined(model)
    if not is_in_order(model.graph):
        sort_nodes(model.graph)
    return model
