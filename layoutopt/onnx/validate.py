"""Validation of nodes before their attributes are read, their order, and functions put in place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from heapq import heapify, heappop, heappush
from typing import Any

from layoutopt.base.errors import InputError, errors_at
from layoutopt.conversion.rules.op import LATEST
from layoutopt.conversion.rules.registry import OPERATORS
from layoutopt.onnx.protobuf import (
    FunctionKey,
    all_nodes,
    bodies,
    called_by,
    captured,
    copied,
    first_line,
    functions_of,
    is_standard,
    onnx,
    set_items,
    title,
    type_of,
    versions_of,
)


def sort_nodes(graph: onnx.GraphProto, outside: Collection[str] = ()) -> None:
    """Bring the nodes of a graph, and of all inside it, into order; the first one first.

    It may capture names from ``outside``.  Raises ``InputError`` if a name is made twice, or by
    nobody, or nodes form a cycle.
    """
    maker: dict[str, int] = {}
    own = {x.name for x in (*graph.input, *graph.initializer)}
    for k, node in enumerate(graph.node):
        for name in filter(None, node.output):
            if name in maker or name in own:
                raise InputError(f"{name!r} is made already", title(node))
            maker[name] = k
    known = own | {x.values.name for x in graph.sparse_initializer} | {"", *outside}
    for value in graph.output:
        if value.name not in known and value.name not in maker:
            raise InputError(f"no node makes the output {value.name!r}")
    readers: list[list[int]] = [[] for _ in graph.node]
    waits = [0] * len(graph.node)
    for k, node in enumerate(graph.node):
        reads = {*node.input, *captured(node)}
        missing = [name for name in reads - known if name not in maker]
        if missing:
            raise InputError(f"nothing above it makes {min(missing)!r}", title(node))
        for other in {maker[name] for name in reads if name in maker}:
            readers[other].append(k)
            waits[k] += 1
    found = _sorted(readers, waits)
    if len(found) < len(waits):
        stuck = next(k for k, count in enumerate(waits) if count)
        node = graph.node[stuck]
        every = (*node.input, *sorted(captured(node)))
        name = next(x for x in every if x in maker and waits[maker[x]])
        raise InputError(f"it reads {name!r}, and nodes there form a cycle", title(node))
    if found != sorted(found):
        set_items(graph.node, [graph.node[k] for k in found])
    for node in graph.node:
        for body in bodies(node):
            sort_nodes(body, {*known, *maker})


def _sorted(readers: list[list[int]], waits: list[int]) -> list[int]:
    """Return what can be done in turn, the lowest number first; ``waits`` keeps what cannot."""
    ready = [k for k, count in enumerate(waits) if not count]
    heapify(ready)
    found = []
    while ready:
        k = heappop(ready)
        found.append(k)
        for reader in readers[k]:
            waits[reader] -= 1
            if not waits[reader]:
                heappush(ready, reader)
    return found


def as_runtimes_read(model: onnx.ModelProto) -> tuple[onnx.ModelProto, list[str]]:
    """Return a network as runtimes read it, and a line for each node that is not well-formed.

    tf2onnx gives some Identity a shape as well where its own optimiser is off: it reads one input.
    The default axes of MeanVarianceNormalization, which ONNX's inference forgets, are stated, and
    so is a version of ONNX's operator set where no node needs one.
    """

    def meant(model: onnx.ModelProto) -> list[onnx.NodeProto]:
        kinds = ((type_of(node), node) for node in all_nodes(model.graph))
        return [
            node
            for kind, node in kinds
            if (kind == "Identity" and len(node.input) > 1)
            or (kind == "MeanVarianceNormalization" and not node.attribute)
        ]

    standard = any(is_standard(node.domain) for node in all_nodes(model.graph))
    told = standard or "" in versions_of(model) or not model.graph.node
    if told and not meant(model):
        return model, []
    new, notes = copied(model), []
    if not told:
        new.opset_import.append(onnx.helper.make_opsetid("", LATEST))
    for node in meant(new):
        if node.op_type == "Identity":
            names = ", ".join(map(repr, node.input[1:]))
            del node.input[1:]
            notes.append(f"{title(node)}: it has one input, and does not read {names}")
        else:
            node.attribute.append(onnx.helper.make_attribute("axes", [0, 2, 3]))
    return new, notes


def check_version(model: onnx.ModelProto, oldest: int) -> None:
    """Check that a network follows a version of ONNX's operator set that can be read.

    That is one from the oldest to that of the onnx package that is installed; else ``InputError``
    is raised.
    """
    latest = onnx.defs.onnx_opset_version()
    for version in (x.version for x in model.opset_import if is_standard(x.domain)):
        if not oldest <= version <= latest:
            newer = "as the onnx package that is installed knows no newer ones"
            why = newer if version > latest else "which onnx.version_converter can make of others"
            read = f"{oldest} to {latest} are read"
            raise InputError(f"its operator set is of version {version}; {read}, {why}")


def check_nodes(model: onnx.ModelProto) -> None:
    """Check operands and attributes of all nodes of a network, in graphs inside nodes too.

    Of ops that are not ONNX's own, only that no attribute stands there twice.  Raises
    ``InputError`` if a node has more or fewer inputs or outputs than its op, or an attribute of
    another kind.
    """
    versions = versions_of(model)
    for node in all_nodes(model.graph):
        with errors_at(title(node)):
            _check(node, versions.get("", 1))


IN_ONNXRUNTIME = ("LayerNormalization", "SimplifiedLayerNormalization")
"""Ops that onnxruntime has in ONNX's domain with every operator set, and its optimiser writes."""


def _check(node: onnx.NodeProto, version: int) -> None:
    known = schema(node.op_type, version) if is_standard(node.domain) else None
    own = is_standard(node.domain) and node.op_type not in IN_ONNXRUNTIME
    if known is None and own and node.op_type in OPERATORS:
        raise InputError(f"ONNX's operator set of version {version} has no such op")
    if known is not None:
        _check_count("inputs", len(node.input), known.min_input, known.max_input)
        _check_count("outputs", len(node.output), known.min_output, known.max_output)
    kinds = None if known is None else kinds_of(known)
    seen: set[str] = set()
    for attribute in node.attribute:
        if attribute.name in seen:
            raise InputError(f"attribute {attribute.name!r} stands there twice")
        seen.add(attribute.name)
        if attribute.ref_attr_name:
            raise InputError(f"attribute {attribute.name!r} is that of a function's call")
        if kinds is not None:
            _check_known(attribute, kinds)


def _check_count(what: str, count: int, least: int, most: int) -> None:
    if not least <= count <= most:
        allowed = f"{least}" if least == most else f"{least} to {most}"
        raise InputError(f"has {count} {what}, its op has {allowed}")


def _check_known(attribute: onnx.AttributeProto, kinds: Mapping[str, int]) -> None:
    """Check an attribute against those that its op has."""
    if attribute.name not in kinds:
        known = ", ".join(kinds) or "none"
        raise InputError(f"its op has no attribute {attribute.name!r}; known: {known}")
    if attribute.type != kinds[attribute.name]:
        names = onnx.AttributeProto.AttributeType
        own, right = names.Name(attribute.type), names.Name(kinds[attribute.name])
        raise InputError(f"attribute {attribute.name!r} is of kind {own}, {right} is needed")
    if attribute.name == "equation" and b"." in attribute.s.replace(b" ", b"").replace(b"...", b""):
        raise InputError(f"equation {attribute.s.decode()!r} has a dot that is none of '...'")


@cache
def schema(type: str, version: int) -> onnx.defs.OpSchema | None:
    """Return what ONNX says of an op in a version of its operator set, None if that is nothing.

    The type is written as by :func:`~layoutopt.onnx.protobuf.type_of`.
    """
    domain, _, name = type.rpartition("::")
    try:
        return onnx.defs.get_schema(name, version, domain)
    except (onnx.defs.SchemaError, TypeError):  # there is none, or no such number
        return None


def kinds_of(known: onnx.defs.OpSchema) -> dict[str, Any]:
    """Return the kind of each attribute of an op, as a number of ``AttributeProto``."""
    attributes: Mapping[str, Any] = known.attributes  # typed without its value
    return {name: int(attribute.type.value) for name, attribute in attributes.items()}


MOST_TIMES = 100
"""How many times as many nodes there may be once all calls are replaced by their functions."""

ALWAYS = 2**14
"""So many nodes are never too many."""

DEEPEST = 100
"""Most functions that call each other in a row."""


def inlined(model: onnx.ModelProto, kept: Collection[tuple[str, str]] = ()) -> onnx.ModelProto:
    """Return a network with the nodes of its functions in place of all calls.

    Calls of the functions ``kept``, by domain and name, stay.  Raises ``InputError`` if calls do
    not come to an end, or do not fit their functions.
    """
    import onnx.inliner

    if not model.functions:
        return model
    check_functions(model)
    model = copied(model)
    versions = {each.domain: each.version for each in model.opset_import}
    own = {f.domain for f in model.functions}
    for each in (each for f in model.functions for each in f.opset_import):
        if each.domain in own:  # versions mean nothing there, but calls stay where they differ
            each.version = versions.setdefault(each.domain, each.version)
    try:
        if any(f.attribute_proto for f in model.functions):
            model = _inlined_in_turn(model, kept)
        return onnx.inliner.inline_selected_functions(model, list(kept), exclude=True)
    except (onnx.checker.ValidationError, RuntimeError, ValueError) as error:
        reason = first_line(error).rpartition("failed: ")[2]
        raise InputError(f"its functions cannot be inlined ({reason})") from None


def _inlined_in_turn(model: onnx.ModelProto, kept: Collection[tuple[str, str]]) -> onnx.ModelProto:
    """Inline outer functions first, and give calls the defaults that ONNX's inliner leaves out."""
    import onnx.inliner

    while True:
        functions = functions_of(model)
        for node in all_nodes(model.graph):
            given = {a.name for a in node.attribute}
            known = functions.get(called_by(node))
            node.attribute.extend(
                a for a in (known.attribute_proto if known else ()) if a.name not in given
            )
        left = {(f.domain, f.name): None for f in model.functions if (f.domain, f.name) not in kept}
        own = (f for f in model.functions if (f.domain, f.name) in left)
        inner = {(n.domain, n.op_type) for f in own for n in all_nodes(f)}
        outer = [key for key in left if key not in inner]
        if not outer:
            if left:
                raise InputError("overloads of its functions call each other")
            return model
        model = onnx.inliner.inline_selected_functions(model, outer)


def check_functions(model: onnx.ModelProto) -> None:
    """Check that the calls of a network's functions come to an end, before anybody follows them.

    Raises ``InputError`` if a function calls itself, or the nodes are too many once calls are
    replaced by them.
    """
    functions = functions_of(model)
    counts: dict[FunctionKey, int] = {}

    def count(nodes: Iterable[onnx.NodeProto], above: tuple[FunctionKey, ...]) -> int:
        total = 0
        for node in nodes:
            called = called_by(node)
            if called in above:
                raise InputError(f"function {'::'.join(filter(None, called))!r} calls itself")
            if len(above) > DEEPEST:
                raise InputError(f"more than {DEEPEST} functions call each other in a row")
            if called in functions and called not in counts:
                counts[called] = count(functions[called].node, (*above, called))
            total += counts.get(called, 1) + sum(count(b.node, above) for b in bodies(node))
        return total

    whole = count(model.graph.node, ())
    own = len(model.graph.node) + sum(len(f.node) for f in functions.values())
    if whole > max(ALWAYS, MOST_TIMES * own):
        raise InputError(f"its {own:,} nodes become {whole:,} once its functions are inlined")
