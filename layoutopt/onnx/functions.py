"""Functions that a network brings along, and calls in place of ops."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from layoutopt.base.errors import InputError
from layoutopt.onnx.protobuf import bodies, first_line

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

MOST_TIMES = 100
"""How many times as many nodes there may be once all calls are replaced by their functions."""

ALWAYS = 2**14
"""So many nodes are never too many."""

DEEPEST = 100
"""Most functions that call each other in a row."""


def inlined(model: ModelProto, kept: Collection[tuple[str, str]] = ()) -> ModelProto:
    """Return a network with the nodes of its functions in place of all calls.

    Parameters
    ----------
    model
        The network.
    kept
        Domains and names of functions whose calls stay.

    Raises
    ------
    InputError
        If calls do not come to an end, or do not fit their functions.
    """
    import onnx.inliner

    if not model.functions:
        return model
    check_functions(model)
    try:
        return onnx.inliner.inline_selected_functions(model, list(kept), exclude=True)
    except (onnx.checker.ValidationError, RuntimeError, ValueError) as error:
        reason = first_line(error).rpartition("failed: ")[2]
        raise InputError(f"its functions cannot be inlined ({reason})") from None


def check_functions(model: ModelProto) -> None:
    """Check that the calls of a network's functions come to an end, before anybody follows them.

    Raises
    ------
    InputError
        If a function calls itself, or the nodes are too many once calls are replaced by them.
    """
    functions = {(f.domain, f.name): f.node for f in model.functions}
    counts: dict[tuple[str, str], int] = {}

    def count(nodes: Iterable[NodeProto], above: tuple[tuple[str, str], ...]) -> int:
        total = 0
        for node in nodes:
            called = node.domain, node.op_type
            if called in above:
                raise InputError(f"function {'::'.join(called)!r} calls itself")
            if len(above) > DEEPEST:
                raise InputError(f"more than {DEEPEST} functions call each other in a row")
            if called in functions and called not in counts:
                counts[called] = count(functions[called], (*above, called))
            total += counts.get(called, 1) + sum(count(b.node, above) for b in bodies(node))
        return total

    whole = count(model.graph.node, ())
    own = len(model.graph.node) + sum(len(nodes) for nodes in functions.values())
    if whole > max(ALWAYS, MOST_TIMES * own):
        raise InputError(f"its {own:,} nodes become {whole:,} once its functions are inlined")
