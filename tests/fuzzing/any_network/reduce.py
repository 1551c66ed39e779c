"""A network that fails made as small as it can be while it fails in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnx import GraphProto, ModelProto, ValueInfoProto

from tests.fuzzing.any_network.draw import Case
from tests.fuzzing.any_network.promises import Failure, Given, failures
from tests.fuzzing.any_network.scope import execute, free_names, info


def reduce(case: Case, failure: Failure, tries: int = 150) -> tuple[Case, Failure]:
    """Return the smallest network found that fails so, and how it fails."""
    progress = True
    while progress and tries > 0:
        progress = False
        for smaller in candidates(case):
            tries -= 1
            if tries <= 0:
                break
            found = _fails(smaller, failure)
            if found is not None:
                case, failure, progress = smaller, found, True
                break
    return case, failure


def _fails(case: Case, failure: Failure) -> Failure | None:
    given = Given.of(case)
    if given is None:
        return None
    found = failures(given, failure.variant)
    return next((f for f in found if f.signature == failure.signature), None)


def candidates(case: Case) -> Iterator[Case]:
    """Yield smaller networks: large steps first."""
    graph = case.model.graph
    if len(graph.output) > 1:
        for n in range(len(graph.output)):
            yield _only(case, n)
        for n in range(len(graph.output)):
            yield _without(case, output=n)
    if case.runs:
        yield from _cuts(case)
    for g, body in enumerate(_graphs(graph)):
        for n in range(len(body.node)):
            yield from _bypassed(case, g, n)
    for n in range(len(graph.value_info)):
        yield _without(case, value=n)
    for n, node in enumerate(graph.node):
        for m in range(len(node.attribute)):
            yield _without(case, attribute=(n, m))
        for m, name in enumerate(node.input):
            if name:
                yield _without(case, operand=(n, m))
        if node.name:
            yield _without(case, name=n)
    if case.model.metadata_props or graph.doc_string:
        yield _without(case, texts=True)


def _tidied(case: Case, model: ModelProto) -> Case:
    """Return a case without what nothing reads any more."""
    graph = model.graph
    while True:
        used = {x.name for x in graph.output} | set(free_names(graph.node))
        # free_names leaves out what is made inside
        used |= {name for node in graph.node for name in free_names([node])}
        if not _keep(graph.node, [not used.isdisjoint(n.output) for n in graph.node]):
            break
    for field in (graph.initializer, graph.input):
        _keep(field, [x.name in used for x in field])
    _keep(graph.sparse_initializer, [x.values.name in used for x in graph.sparse_initializer])
    made = {n for node in graph.node for n in node.output}
    _keep(graph.value_info, [x.name in made for x in graph.value_info])
    calls = {n.op_type for g in _graphs(graph) for n in g.node if n.domain == "own"}
    calls |= {n.op_type for f in model.functions for n in f.node if n.domain == "own"}
    _keep(model.functions, [f.name in calls for f in model.functions])
    inputs = {x.name for x in graph.input}
    return Case(model, {n: v for n, v in case.feeds.items() if n in inputs}, case.runs, case.random)


def _keep(field: Any, wanted: list[bool]) -> bool:
    """Take the messages that are not wanted out of a field; return whether there were some."""
    for n in reversed(range(len(wanted))):
        if not wanted[n]:
            del field[n]
    return not all(wanted)


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                if body.node or body.output:
                    yield from _graphs(body)


def _copy(case: Case) -> ModelProto:
    model = ModelProto()
    model.CopyFrom(case.model)
    return model


def _without(
    case: Case,
    *,
    output: int = -1,
    value: int = -1,
    attribute: tuple[int, int] | None = None,
    operand: tuple[int, int] | None = None,
    name: int = -1,
    texts: bool = False,
) -> Case:
    """Return a case without one thing."""
    model = _copy(case)
    if output >= 0:
        del model.graph.output[output]
    if value >= 0:
        del model.graph.value_info[value]
    if attribute is not None:
        del model.graph.node[attribute[0]].attribute[attribute[1]]
    if operand is not None:
        inputs = model.graph.node[operand[0]].input
        if operand[1] == len(inputs) - 1:
            del inputs[-1]
        else:
            inputs[operand[1]] = ""
    if name >= 0:
        model.graph.node[name].name = ""
    if texts:
        del model.metadata_props[:]
        model.graph.doc_string = ""
    return _tidied(case, model)


def _only(case: Case, output: int) -> Case:
    model = _copy(case)
    kept = case.model.graph.output[output]
    del model.graph.output[:]
    model.graph.output.append(kept)
    return _tidied(case, model)


def _cuts(case: Case) -> Iterator[Case]:
    """Yield networks that are given what a node makes in place of the node."""
    made = [n for node in case.model.graph.node for n in node.output if n]
    model = _copy(case)
    present = {x.name for x in model.graph.output}
    model.graph.output.extend(ValueInfoProto(name=n) for n in made if n not in present)
    try:
        values = dict(zip(made, execute(model, case.feeds, made), strict=True))
    except Exception:  # some values cannot be given to the caller
        return
    for n in reversed(range(len(case.model.graph.node))):
        node = case.model.graph.node[n]
        if any(isinstance(values[name], list) for name in node.output if name):
            continue
        new = _copy(case)
        del new.graph.node[n]
        new.graph.input.extend(info(name, values[name]) for name in node.output if name)
        feeds = {**case.feeds, **{name: values[name] for name in node.output if name}}
        yield _tidied(Case(new, feeds, case.runs, case.random), new)


def _bypassed(case: Case, which: int, n: int) -> Iterator[Case]:
    """Yield networks that read an operand of a node of a graph in place of its result."""
    node = list(_graphs(case.model.graph))[which].node[n]
    reads = dict.fromkeys(x for x in free_names([node]) if x)
    for name in reads:
        model = _copy(case)
        graph = list(_graphs(model.graph))[which]
        taken = graph.node[n].output[0]
        if which == 0 and any(x.name == taken for x in graph.output):
            continue
        del graph.node[n]
        _rename(graph, taken, name)
        yield _tidied(case, model)


def _rename(graph: GraphProto, old: str, new: str) -> None:
    for body in _graphs(graph):
        for node in body.node:
            for n, name in enumerate(node.input):
                if name == old:
                    node.input[n] = new
        for value in body.output:
            if value.name == old and body is not graph:
                value.name = new
            elif value.name == old:
                body.node.add(op_type="Identity", input=[new], output=[old])
