"""Rewritten networks verified by ONNX, and conversion again without what does not pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from layoutopt.conversion.result import Conversion
from layoutopt.conversion.rules.op import Op
from layoutopt.onnx.attributes import attributes
from layoutopt.onnx.inference import infer_shapes, is_short, misread_sizes, refusals, tell_ranks
from layoutopt.onnx.protobuf import all_nodes, bodies, copied, first_line, graphs, onnx, set_items
from layoutopt.onnx.types import (
    Declared,
    differ,
    set_shape,
    shape_of,
    take_declared,
    types_of,
)
from layoutopt.onnx.weights import variable_initialisers, without_weights


def fault(before: onnx.ModelProto, after: onnx.ModelProto) -> str:
    """Return what is wrong with a rewritten network, in one line; nothing if it is sound.

    It is held against the checker, then against the inference of types and shapes, which must
    agree with the types that it declares.  What the given network does not keep to either, as its
    ops are not known or its shapes are stale, is not asked of it.

    Declared sizes of the rewritten network that only defaults contradict, which a caller may
    replace, or that ONNX would misread, are left open.
    """
    reason, held = _fault(before, after), variable_initialisers(after)
    bare = any(x.name in held and shape_of(x.type) is None for x in after.graph.input)
    if (reason or bare) and _tell_options(after):
        reason = _fault(before, after)
    if not reason:
        return ""
    told = _undeclared(after)
    misread = any(node.op_type == "Attention" for node in all_nodes(after.graph))
    misread = misread or bool(misread_sizes(told))
    if held and not misread:  # and only defaults contradict it
        bare_of_defaults = copied(after)
        kept = [x for x in after.graph.initializer if x.name not in held]
        set_items(bare_of_defaults.graph.initializer, kept)
        misread = not _fault(before, bare_of_defaults)
    if misread:
        _open_contradicted(after, types_of(told.graph))
        reason = _fault(before, after)
    return reason


def _fault(before: onnx.ModelProto, after: onnx.ModelProto) -> str:
    missing = next(_unmade(after.graph, frozenset()), None)
    if missing is not None:
        return f"nothing makes {missing!r}, which is read"
    light = without_weights(after)
    for check in (_checked, _typed):
        reason = _refusal(check, light)
        given = _refusal(check, without_weights(before)) if reason else ""
        if reason and (not given or any(x in reason and x not in given for x in REFUSED)):
            return reason
    return ""


REFUSED = ("Mismatch between number of inferred and declared dimensions", "Invalid attribute perm")
"""What ONNX says of branches of other ranks and of transposes of them; runtimes load neither."""


def _undeclared(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a network with what ONNX infers of it where nothing is declared of results."""
    trial = without_weights(model)
    take_declared(trial.graph)
    return infer_shapes(trial, as_onnx=True, data_prop=True)


def _open_contradicted(model: onnx.ModelProto, told: Declared) -> None:
    """Leave declared sizes open that ONNX infers otherwise, as ``told``."""
    for graph in graphs(model.graph):
        for value in (*graph.value_info, *graph.output):
            own, right = shape_of(value.type), shape_of(told.get(value.name))
            if own is not None and right is not None and len(own) == len(right):
                pairs = zip(own, right, strict=True)
                set_shape(value.type, tuple(None if differ((a,), (b,)) else a for a, b in pairs))


def _tell_options(model: onnx.ModelProto) -> bool:
    """Tell what ONNX must know of optional operands; return whether any of it was unknown.

    It takes one whose rank it does not know for one that is not there, and sizes or scales of a
    Resize whose number it does not know for none.
    """
    found = infer_shapes(without_weights(model))
    changed = tell_ranks(model, found)
    told = types_of(found.graph)
    for graph in graphs(model.graph):
        values = (*graph.value_info, *graph.output, *graph.input)
        kinds = {value.name: value.type.tensor_type for value in values}
        for node in graph.node:
            if node.op_type != "Resize":  # of ONNX, or in another layout
                continue
            axes = attributes(node).get("axes") or shape_of(told.get(node.input[0])) or ()
            for name in node.input[2:] if axes else ():
                dims = list(kinds[name].shape.dim) if name in kinds else []
                if len(dims) == 1 and not dims[0].HasField("dim_value"):
                    dims[0].dim_value = len(axes)
                    changed = True
    return changed


def _checked(model: onnx.ModelProto) -> None:
    """Hold a network against the checker, which wants outputs to have any shapes."""
    model = copied(model)
    for value in model.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.shape.SetInParent()
    onnx.checker.check_model(model)


def _typed(model: onnx.ModelProto) -> None:
    """Hold a network against inference, which takes defaults for known sizes where asked to."""
    found = infer_shapes(model, as_onnx=True, check_type=True, strict_mode=True)
    held = variable_initialisers(model)
    set_items(found.graph.output, [x for x in found.graph.output if x.name not in held])
    if held and is_short(infer_shapes(found)):
        infer_shapes(model, as_onnx=True, check_type=True, strict_mode=True, data_prop=True)


def _refusal(check: Callable[[onnx.ModelProto], None], model: onnx.ModelProto) -> str:
    try:
        check(model)
    except refusals() as error:
        return " ".join(str(error).split()) or first_line(error)
    return ""


def _unmade(graph: onnx.GraphProto, outside: Collection[str]) -> Iterator[str]:
    """Yield the names that a graph, or one inside it, reads before something makes them."""
    made = {"", *outside, *(x.name for x in (*graph.input, *graph.initializer))}
    made.update(x.values.name for x in graph.sparse_initializer)
    for node in graph.node:
        yield from (name for name in node.input if name not in made)
        for body in bodies(node):
            yield from _unmade(body, made)
        made.update(node.output)
    yield from (value.name for value in graph.output if value.name not in made)


MOST = 8
"""So many ops are looked for one by one; then all of their types stay as they are."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """A network that was rewritten, and is sound."""

    conversion: Conversion  # what became of its graph
    model: onnx.ModelProto
    difference: float | None  # the largest relative difference of outputs, if it was run


class Unsound(Exception):  # it says what a network is
    """Raised where a rewritten network is not sound; the reason is one line.

    The conversion is None if it did not come so far.
    """

    def __init__(self, reason: str, conversion: Conversion | None = None) -> None:
        super().__init__(reason)
        self.reason, self.conversion = reason, conversion

    def changed(self, name: str) -> bool:
        """Return whether an op runs in another mode than it is written in."""
        return self.conversion is None or name in self.conversion.changed


Try: TypeAlias = Callable[[frozenset[str]], Attempt]
"""Converts a network with some ops as they are written; raises :class:`Unsound`."""


@dataclass
class Found:
    """Outcome of a verification."""

    attempt: Attempt | None  # None if no network is sound, though no op were converted
    error: Unsound | None = None  # what was wrong at first
    # the ops that stay as they are written, and why
    written: dict[str, str] = field(default_factory=dict)


def soundest(ops: Mapping[str, Op], attempt: Try, over: Callable[[], bool]) -> Found:
    """Return a network that is sound, with as few ops as they are written as are found.

    ``ops`` come in order; ``over`` says whether no time is left to look for some.
    """
    try:
        return Found(attempt(frozenset()))
    except Unsound as error:
        first = last = error
    try:
        fallback = attempt(frozenset(ops))
    except Unsound:
        return Found(None, first)
    written: dict[str, str] = {}
    while len(written) < MOST and not over():
        candidates = [name for name in ops if last.changed(name) and name not in written]
        culprit = _culprit(list(ops), candidates, attempt, over)
        if culprit is None:
            break
        written[culprit] = last.reason
        try:
            return Found(attempt(frozenset(written)), first, written)
        except Unsound as error:
            last = error
    types = {ops[name].type for name in written}
    alike = {name: first.reason for name, op in ops.items() if op.type in types}
    for kept in (alike, dict.fromkeys(ops, first.reason)):
        if len(kept) == len(ops):
            return Found(fallback, first, kept)
        try:
            return Found(attempt(frozenset(kept)), first, kept)
        except Unsound:
            continue
    return Found(fallback, first, dict.fromkeys(ops, first.reason))


def _culprit(
    ops: Sequence[str], candidates: Sequence[str], attempt: Try, over: Callable[[], bool]
) -> str | None:
    """Return the op with which the first candidates cannot be converted, without which they can."""
    if not candidates or not _fails(ops, candidates, attempt):
        return None
    low, high = 0, len(candidates)  # so many can be converted, so many cannot
    while high - low > 1:
        if over():
            return None
        middle = (low + high) // 2
        if _fails(ops, candidates[:middle], attempt):
            high = middle
        else:
            low = middle
    return candidates[low]


def _fails(ops: Sequence[str], converted: Collection[str], attempt: Try) -> bool:
    """Return whether a network is not sound if of all ops only some are converted."""
    try:
        attempt(frozenset(ops).difference(converted))
    except Unsound:
        return True
    return False
