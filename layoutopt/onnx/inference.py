"""Shapes as ONNX's own inference tells them, asked with care."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count

import numpy as np

from layoutopt.base.errors import InputError
from layoutopt.conversion.rules.op import Op, Shape
from layoutopt.conversion.rules.registry import type_facts
from layoutopt.conversion.shapes import infer, is_misread_product
from layoutopt.graphs.ops import Array
from layoutopt.layout.factors import elements_of, numbers_of
from layoutopt.onnx.attributes import NO_LAYOUTS, KnownLayouts, op_of
from layoutopt.onnx.layout_functions import known_layouts
from layoutopt.onnx.protobuf import (
    SMALL,
    all_nodes,
    bodies,
    copied,
    defined,
    first_line,
    graphs,
    is_standard,
    names_read,
    onnx,
    set_items,
    type_of,
    versions_of,
)
from layoutopt.onnx.types import (
    Declared,
    differ,
    fill_type,
    in_names,
    input_names,
    own_types,
    set_shape,
    shape_of,
    type_name,
    type_of_tensor,
    types_of,
)
from layoutopt.onnx.validate import schema
from layoutopt.onnx.weights import known_values

SHRINKING = {"CenterCropPad", "Multinomial", "Pad", "Split", "TopK"}
"""Op types of whose results ONNX may infer sizes below 0, besides those with windows."""

NEEDING_TYPES = {"EyeLike", "RegexFullMatch"}
"""Op types of which ONNX's inference ends the process if it knows no type of their operand."""

UNREAD = "layoutopt.unread"
"""A domain of ops that nothing is known of."""


def infer_shapes(
    model: onnx.ModelProto, *, as_onnx: bool = False, **options: bool
) -> onnx.ModelProto:
    """Return what ONNX's inference makes of a model.

    Nodes are left out at which it would end the process (:data:`NEEDING_TYPES`), and unless it is
    all ``as_onnx`` has it, those of which it makes up sizes (:func:`is_misread_product`).
    ``InputError`` names a tensor with a size below 0, of which a slice is taken.  Declared sizes
    below 0, which mean that they are not known, are taken away.  Options are those of
    ``onnx.shape_inference.infer_shapes``.
    """
    _without_negative_sizes(model)
    types = {node.op_type for node in all_nodes(model.graph)}
    asked = types & NEEDING_TYPES
    if any(map(_may_shrink, types)):
        asked |= types & {"Slice"}
    left_out = _untyped(model, asked, options.get("data_prop", False)) if asked else set()
    found = _inferred_without(model, left_out, options)
    while "Attention" in types and not as_onnx and (misread := _misread(found) - left_out):
        left_out |= misread
        found = _inferred_without(model, left_out, options)
    return found


def _inferred_without(
    model: onnx.ModelProto, numbers: Collection[int], options: Mapping[str, bool]
) -> onnx.ModelProto:
    """Return what ONNX infers of a model where nothing is known of some of its nodes."""
    _set_domains(model, numbers, UNREAD)
    try:
        found = onnx.shape_inference.infer_shapes(model, **options)
    finally:
        _set_domains(model, numbers, "")
    _set_domains(found, numbers, "")
    return found


def _misread(model: onnx.ModelProto) -> set[int]:
    """Return the numbers of nodes whose results have sizes that ONNX made up."""
    kinds, every = _kinds(model.graph), enumerate(all_nodes(model.graph))
    shapes = ((k, x, [shape_of(kinds.get(name)) for name in x.input]) for k, x in every)
    return {k for k, x, known in shapes if is_misread_product(type_of(x), known)}


def _untyped(model: onnx.ModelProto, asked: Collection[str], data_prop: bool) -> set[int]:
    """Return the numbers of nodes that need to know a type that ONNX does not infer.

    Nodes of the types ``asked`` are left out at first, and come in as what they are given becomes
    known, slices all at once where every size that could be below 0 is known.  Raises
    ``InputError`` if a slice is taken of a size below 0.
    """
    trial = copied(model)
    trial.opset_import.append(onnx.helper.make_opsetid(UNREAD, 1))
    every = list(all_nodes(trial.graph))
    left = {
        k: x
        for k, x in enumerate(every)
        if x.op_type in asked and is_standard(x.domain) and x.input
    }
    for node in left.values():
        node.domain = UNREAD
    shrunk = {y for x in every if _may_shrink(x.op_type) for y in x.output if y}
    while left:
        kinds = _kinds(onnx.shape_inference.infer_shapes(trial, data_prop=data_prop).graph)
        least = {
            name: min((dim.dim_value for dim in kind.tensor_type.shape.dim), default=0)
            for name, kind in kinds.items()
            if kind.tensor_type.HasField("shape")
        }
        safe = all(least.get(name, -1) >= 0 for name in shrunk)
        told = {"Slice": {x.input[0] for x in left.values()} if safe else least}
        ready = [k for k, x in left.items() if x.input[0] in told.get(x.op_type, kinds)]
        if not ready:
            break
        for node in map(left.pop, ready):
            if least.get(node.input[0], 0) < 0:
                shape = [dim.dim_value for dim in kinds[node.input[0]].tensor_type.shape.dim]
                raise InputError(f"{node.input[0]!r} would have a size below 0: {shape}")
            node.domain = ""
    return {k for k, node in left.items() if node.op_type != "Slice"}


def _may_shrink(op_type: str) -> bool:
    """Return whether ONNX may infer sizes below 0 for results of an op."""
    return op_type in SHRINKING or type_facts(op_type).takes_room


def _kinds(graph: onnx.GraphProto) -> dict[str, onnx.TypeProto]:
    """Return the types of a graph's tensors, and of those inside, by name, as they are declared."""
    kinds = {x.name: type_of_tensor(x) for one in graphs(graph) for x in one.initializer}
    values = (x for one in graphs(graph) for x in (*one.value_info, *one.output, *one.input))
    return kinds | {x.name: x.type for x in values if x.type.WhichOneof("value")}


def _kinds_of_all(graph: onnx.GraphProto) -> Declared:
    """Return the types of a graph's tensors, and of those inside; None where these differ."""
    held = {x.name: type_of_tensor(x) for one in graphs(graph) for x in one.initializer}
    return held | types_of(graph)


COUNTING = {"AffineGrid", "BlackmanWindow", "HammingWindow", "HannWindow", "Range"}
"""Op types that count up to a value, which inside of a function nobody knows."""


def refusals() -> tuple[type[Exception], ...]:
    """Return the classes of errors by which ONNX refuses a network."""
    own = onnx.shape_inference.InferenceError, onnx.checker.ValidationError
    return (*own, ValueError, RuntimeError)


def with_shapes(model: onnx.ModelProto, *, strict: bool = False) -> onnx.ModelProto:
    """Return a model with all shapes that ONNX can infer; it is changed as well.

    Sizes below 0, which mean that they are not known, are taken away, and ranks told of which ONNX
    would guess.  Raises ``InputError`` if shapes contradict each other, if the model is not
    well-formed, and, where inference is ``strict``, if some shapes cannot be inferred.
    """
    old = versions_of(model).get("", SINCE_AXES_FROM_THE_LAST) < SINCE_AXES_FROM_THE_LAST
    hidden = [k for k, n in enumerate(all_nodes(model.graph)) if old and _counts_from_the_last(n)]
    copies = _copy_captured(model)
    try:
        _set_domains(model, hidden, UNREAD)
        found, carried, told = infer_shapes(model), CarriedShapes(), True
        while told:
            while _hide_misread(model, found, hidden):
                found = infer_shapes(model)
            carried.forget()
            for proved in (False, True):
                while carried.tell(model, found, proved):
                    found = infer_shapes(model)
            told = (
                (old and count_from_the_first(model, types_of(found.graph)))
                or tell_ranks(model, found)
                or _tell_results(model, found)
                or _tell_elements(model, found)
            )
            found = infer_shapes(model) if told else found
        short = is_short(found)
        again = short or strict
        while again:
            found = infer_shapes(model, strict_mode=strict, data_prop=short)
            again = _hide_misread(model, found, hidden)
    except InputError:
        raise
    except refusals() as error:
        raise InputError(f"shapes cannot be inferred ({first_line(error)})") from None
    finally:
        _set_domains(model, hidden, "")
        _drop_initialisers(model, copies)
    _set_domains(found, hidden, "")
    _drop_initialisers(found, copies)
    _rename_told(model, found)
    return found


def _rename_told(*models: onnx.ModelProto) -> None:
    """Give open sizes that were told names as ONNX makes them, which no other size has."""
    every = [graph for model in models for graph in graphs(model.graph)]
    values = (x for graph in every for x in (*graph.value_info, *graph.output, *graph.input))
    dims = [d for x in values for d in x.type.tensor_type.shape.dim if d.dim_param]
    taken, numbers, names = {d.dim_param for d in dims}, count(), dict[str, str]()
    for dim in dims:
        if dim.dim_param.startswith(f"{UNREAD}."):
            if dim.dim_param not in names:
                names[dim.dim_param] = next(
                    name for name in map("unk__{}".format, numbers) if name not in taken
                )
            dim.dim_param = names[dim.dim_param]


def _hide_misread(model: onnx.ModelProto, found: onnx.ModelProto, hidden: list[int]) -> bool:
    """Hide further nodes that ONNX's inference misread; return whether there are any."""
    misread = misread_sizes(found)
    _set_domains(model, misread, UNREAD)
    hidden += misread
    return bool(misread)


def _copy_captured(model: onnx.ModelProto) -> list[int]:
    """Copy vectors of integers into the bodies that read them from outside; tell how many, each.

    ONNX's inference does not look for sizes and axes in the graph around a body.
    """
    counts: list[int] = []

    def visit(graph: onnx.GraphProto, outside: Mapping[str, Array]) -> None:
        read = names_read(graph.node) - defined(graph) if outside else set()
        new = [onnx.numpy_helper.from_array(outside[x], x) for x in sorted(read & outside.keys())]
        graph.initializer.extend(new)
        counts.append(len(new))
        inner = [body for node in graph.node for body in bodies(node)]
        inputs = {value.name for value in graph.input}
        values = known_values(graph) if inner else {}
        held = {k: v for k, v in outside.items() if k not in defined(graph)} if inner else {}
        held |= {k: v for k, v in values.items() if v.dtype == np.int64 and k not in inputs}
        for body in inner:
            visit(body, held)

    visit(model.graph, {})
    return counts


def _drop_initialisers(model: onnx.ModelProto, counts: Sequence[int]) -> None:
    """Take the last initialisers away, so many of each graph."""
    for graph, number in zip(graphs(model.graph), counts, strict=True):
        del graph.initializer[len(graph.initializer) - number :]


class CarriedShapes:
    """Shapes of what loops carry, of which ONNX takes what is declared, and infers nothing.

    At first, sizes of body inputs that are not declared are taken to be those of what comes in.
    Then sizes are taken away until those that are left are those of what comes in and of what the
    body gives back: these hold in all rounds.
    """

    def __init__(self) -> None:
        self.proposed: set[tuple[int, str]] = set()
        self.ranked: set[tuple[int, str]] = set()
        self.results: set[tuple[int, str]] = set()

    def forget(self) -> None:
        """Propose again, as more is known of the graph around: sizes may be proved now."""
        self.proposed.clear()
        self.ranked.clear()

    def tell(self, model: onnx.ModelProto, inferred: onnx.ModelProto, proved: bool) -> bool:
        """Tell shapes of body inputs and results of loops in a model; return whether any changed.

        ``inferred`` is the model with shapes.  If ``proved``, all is taken away that is not
        proved, instead of what is wrong.
        """
        changed, names = False, input_names(model.graph)
        kinds = _kinds_of_all(inferred.graph)
        every = zip(graphs(model.graph), graphs(inferred.graph), strict=True)
        for number, (graph, known) in enumerate(every):
            for node, same in zip(graph.node, known.node, strict=True):
                if node.op_type != "Loop" or not is_standard(node.domain):
                    continue
                [body], [inner] = bodies(node), bodies(same)
                rows = zip(
                    *(node.input[2:], body.input[2:], inner.output[1:], node.output), strict=False
                )
                for name, given, returned, result in rows:
                    ends = tuple(
                        in_names(shape_of(kinds.get(x)), names) for x in (name, returned.name)
                    )
                    place = number, result
                    own = number, given.name
                    if not proved and self._propose(given.type, ends[0], own, names):
                        changed = True
                    else:
                        changed |= self._correct(given.type, ends, own, proved)
                    changed |= self._tell_result(graph, returned.type, ends, place)
        return changed

    def _propose(
        self, kind: onnx.TypeProto, given: Shape | None, key: tuple[int, str], names: Container[str]
    ) -> bool:
        """Fill in, once, what is open of a body input's shape; return whether there was anything.

        ``names`` are those of sizes that a caller chooses; others that are declared tell nothing.
        """
        sizes = shape_of(kind)
        if given is None or key in self.proposed or not kind.HasField("tensor_type"):
            return False
        self.proposed.add(key)
        if sizes is None:
            set_shape(kind, given)
            return True
        self.ranked.add(key)
        if len(sizes) != len(given):
            return False
        pairs = zip(sizes, given, strict=True)
        new = tuple(a if isinstance(a, int) or a in names else b for a, b in pairs)
        set_shape(kind, new)
        return new != sizes

    def _correct(
        self,
        kind: onnx.TypeProto,
        ends: tuple[Shape | None, ...],
        key: tuple[int, str],
        proved: bool,
    ) -> bool:
        """Take away what ``ends``, all that a body input is given, do not have; tell whether any.

        If nothing is known of what a body gives back, it may have another rank, unless one is
        declared.
        """
        sizes = shape_of(kind)
        if sizes is None:
            return False
        unknown = ends[1] is None and key in self.proposed - self.ranked
        if (proved and unknown) or any(x is not None and len(x) != len(sizes) for x in ends):
            kind.tensor_type.ClearField("shape")
            return True
        kept = sizes
        for shape in ends:
            every = zip(kept, shape or (None,) * len(sizes), strict=True)
            kept = tuple(
                None if (x != size if proved else differ((x,), (size,))) else size
                for size, x in every
            )
        set_shape(kind, kept)
        return kept != sizes

    def _tell_result(
        self,
        graph: onnx.GraphProto,
        like: onnx.TypeProto,
        ends: tuple[Shape | None, ...],
        key: tuple[int, str],
    ) -> bool:
        """Tell the shape of a result, which is what comes in or what the body gives back."""
        values = {value.name: value for value in (*graph.value_info, *graph.output)}
        first, last = ends
        before = shape_of(values[key[1]].type) if key[1] in values else None
        if not key[1] or (before is not None and key not in self.results):
            return False
        if first is None or last is None or len(first) != len(last):
            if before is not None:
                values[key[1]].type.tensor_type.ClearField("shape")
            return before is not None
        shape = tuple(a if a == b else None for a, b in zip(first, last, strict=True))
        if shape == before:
            return False
        self.results.add(key)
        kind = (values.get(key[1]) or graph.value_info.add(name=key[1])).type
        kind.tensor_type.elem_type = like.tensor_type.elem_type
        set_shape(kind, shape)
        return True


def _set_domains(model: onnx.ModelProto, numbers: Collection[int], domain: str) -> None:
    """Set the domain of some nodes, :data:`UNREAD` or ONNX's own."""
    if not numbers:
        return
    hidden = False
    for k, node in enumerate(all_nodes(model.graph)):
        if k in numbers:
            node.domain = domain
        hidden |= node.domain == UNREAD
    versions = [x for x in model.opset_import if x.domain != UNREAD]
    set_items(
        model.opset_import, [*versions, *([onnx.helper.make_opsetid(UNREAD, 1)] if hidden else [])]
    )


def misread_sizes(model: onnx.ModelProto) -> list[int]:
    """Return the numbers of nodes of which ONNX's inference told other sizes than runtimes make.

    Their ops have a shape of their own in the table of rules.  Of a Range only numbers with a
    fraction are misread.
    """
    found, names, versions = list[int](), input_names(model.graph), versions_of(model)
    kinds, numbers = _kinds(model.graph), count()
    for graph in graphs(model.graph):
        ruled = {t for t in {n.op_type for n in graph.node} if type_facts(t).shape is not None}
        values = known_values(graph) if ruled else {}
        for node, number in zip(graph.node, numbers, strict=False):
            if node.op_type not in ruled or not is_standard(node.domain):
                continue
            told = in_names(shape_of(kinds.get(node.output[0])), names)
            kind = kinds.get(node.input[0])
            counts = kind is not None and "int" in type_name(kind.tensor_type.elem_type)
            if told is None or (counts and node.op_type == "Range"):
                continue
            op = _op_of_shapes(node, lambda x: shape_of(kinds.get(x)), values, versions)
            first, rule, own = op.shape(0), type_facts(op.type).shape, None
            with suppress(InputError):  # which ONNX tells as well
                own = None if first is None or rule is None else rule(op, first)
            pairs = zip(told, told if own is None else own, strict=False)
            if any(size is not None and size != right for size, right in pairs):
                found.append(number)
    return found


SINCE_AXES_FROM_THE_LAST = 11
"""The operator set since which all axes may be counted from the last."""


def _counts_from_the_last(node: onnx.NodeProto) -> bool:
    """Return whether a node names axes in a way that an old version of ONNX misreads."""
    given = [a for a in node.attribute if a.name in ("axes", "axis")]
    if node.op_type == "Squeeze" and any(list(a.ints) != sorted(a.ints) for a in given):
        return True
    negative = any(min(a.ints, default=a.i) < 0 for a in given)
    return negative and node.op_type in ("Compress", "Concat", "Slice", "Squeeze", "Unsqueeze")


def count_from_the_first(
    model: onnx.ModelProto, types: Mapping[str, onnx.TypeProto | None]
) -> bool:
    """Count axes of nodes from the first, where ranks are known; return whether any were not.

    Before operator set 11 runtimes take axes that are counted from the last, or in any order, but
    ONNX's inference tells no shapes for them, or wrong ones.
    """
    if versions_of(model).get("", SINCE_AXES_FROM_THE_LAST) >= SINCE_AXES_FROM_THE_LAST:
        return False
    done = False
    held = {x.name: tuple(x.dims) for graph in graphs(model.graph) for x in graph.initializer}
    for node in filter(_counts_from_the_last, all_nodes(model.graph)):
        every = (held.get(name) or shape_of(types.get(name)) for name in node.input)
        shapes = [shape for shape in every if shape is not None]
        if not shapes or node.domain not in ("", UNREAD) or any(0 in shape for shape in shapes):
            continue  # what has no elements need not fit other operands
        for a in node.attribute:
            if a.name == "axes":
                rank = len(shapes[0]) + len(a.ints) * (node.op_type == "Unsqueeze")
                axes = [axis % rank for axis in a.ints]
                set_items(a.ints, sorted(axes) if node.op_type == "Squeeze" else axes)
            elif a.name == "axis":
                a.i %= len(shapes[0])
        node.domain, done = "", True
    return done


def _tell_results(model: onnx.ModelProto, inferred: onnx.ModelProto) -> bool:
    """Tell shapes of results that ONNX does not infer; return whether any were unknown.

    Nodes of the model that ONNX misreads are in the domain :data:`UNREAD`; ``inferred`` is the
    model with shapes.  What is told is followed through nodes behind it, to the next such result.
    """
    told = False
    outside: Declared = {}
    versions, layouts = versions_of(model), known_layouts(model)
    for graph, known in zip(graphs(model.graph), graphs(inferred.graph), strict=True):
        chosen = [_is_told(node, layouts) for node in graph.node]
        if not any(chosen):
            continue
        kinds = own_types(known)
        sized = {name for name, kind in kinds.items() if numbers_of(shape_of(kind)) is not None}
        if known is not inferred.graph:  # it may read tensors of the graphs around it
            outside, mine = outside or _kinds_of_all(inferred.graph), defined(known)
            kinds = {x: kind for x, kind in outside.items() if kind and x not in mine} | kinds
        own = {x.name: x.type for x in (*graph.value_info, *graph.output)}
        values = known_values(graph)
        symbols, changed = set[str](), set[str]()
        for node, tells in zip(graph.node, chosen, strict=True):
            if not tells and (changed.isdisjoint(node.input) or not is_standard(node.domain)):
                continue
            if (node.domain, node.op_type) in layouts and sized.issuperset(node.output):
                continue
            results = _results if tells else _own_results
            for name, new in results(node, kinds, values, versions, layouts):
                kind = copied(kinds.get(name, onnx.TypeProto()))
                if not fill_type(kind, new):
                    continue
                if name not in own:
                    own[name] = graph.value_info.add(name=name).type
                fill_type(own[name], new)
                kinds[name], told = kind, True
                changed.add(name)
                symbols.update(x for x in shape_of(new) or () if isinstance(x, str))
        # ONNX names sizes that it computes anew each time: what shares one is told, too.
        symbols -= input_names(model.graph)
        for value in known.value_info if symbols else ():
            if value.name not in own and not symbols.isdisjoint(shape_of(value.type) or ()):
                graph.value_info.add().CopyFrom(value)
    return told


def _is_told(node: onnx.NodeProto, layouts: KnownLayouts) -> bool:
    """Return whether the shapes of a node's results are told to ONNX, which does not infer them."""
    facts = type_facts(type_of(node))
    hidden = node.domain == UNREAD and not _counts_from_the_last(node)
    named = node.op_type == "Attention" or (node.domain, node.op_type) in layouts
    return hidden or named or facts.like is not None or facts.same_rank


def _tell_elements(model: onnx.ModelProto, inferred: onnx.ModelProto) -> bool:
    """Tell types of elements that ONNX leaves open where they are those of an operand.

    It goes on from no result of which it does not know that type, as the keys and values that an
    Attention gives back.
    """
    types, told, versions = _kinds(inferred.graph), False, versions_of(model)
    for graph in graphs(model.graph):
        for node in graph.node:
            unknown = [n for n, name in enumerate(node.output) if name and name not in types]
            elements = _elements_of_operands(node, types, versions) if unknown else []
            for n, element in enumerate(elements):
                if n in unknown and element:
                    value = graph.value_info.add(name=node.output[n])
                    value.type.tensor_type.elem_type = element
                    told = True
    return told


def _elements_of_operands(
    node: onnx.NodeProto, kinds: Mapping[str, onnx.TypeProto], versions: Mapping[str, int]
) -> list[int]:
    """Return the types of the elements of results that are those of an operand; 0 for others."""
    known = None if node.domain else schema(node.op_type, versions.get("", 0))
    if known is None:
        return []
    given = zip(node.input, known.inputs, strict=False)
    found = {formal.type_str: kinds[x].tensor_type.elem_type for x, formal in given if x in kinds}
    return [found.get(formal.type_str, 0) for formal in known.outputs]


def _results(
    node: onnx.NodeProto,
    kinds: Mapping[str, onnx.TypeProto],
    values: Mapping[str, Array],
    versions: Mapping[str, int],
    layouts: KnownLayouts,
) -> Iterator[tuple[str, onnx.TypeProto]]:
    """Yield name and type of each result of a node that is known by its op alone."""
    op, shapes = result_shapes(node, lambda x: shape_of(kinds.get(x)), values, versions, layouts)
    shape_like = type_facts(op.type).like
    place = 0 if shape_like is None else shape_like.typed
    typed = op.has(place) and (op.layouts is None or shape_like is not None)
    like = kinds.get(op.inputs[place]) if typed else None
    for n, (name, shape) in enumerate(zip(op.outputs, shapes, strict=False)):
        element = like.tensor_type.elem_type if like is not None else 0
        if op.type == "NonZero" or (n and op.type == "MaxPool"):
            element = onnx.TensorProto.INT64
        if name and (shape is not None or element):
            yield name, onnx.helper.make_tensor_type_proto(element, shape)


def _own_results(
    node: onnx.NodeProto,
    kinds: Mapping[str, onnx.TypeProto],
    values: Mapping[str, Array],
    versions: Mapping[str, int],
    layouts: KnownLayouts,
) -> Iterator[tuple[str, onnx.TypeProto]]:
    """Yield name and type of each result of a node of ONNX's own, with names for open sizes."""
    _, shapes = result_shapes(node, lambda x: shape_of(kinds.get(x)), values, versions, layouts)
    elements = _elements_of_operands(node, kinds, versions)
    for name, shape, element in zip(node.output, shapes, elements, strict=False):
        if name and element and shape is not None and shape_of(kinds.get(name)) is None:
            sizes = [f"{UNREAD}.{name}.{k}" if x is None else x for k, x in enumerate(shape)]
            yield name, onnx.helper.make_tensor_type_proto(element, sizes)


def result_shapes(
    node: onnx.NodeProto,
    shape: Callable[[str], Shape | None],
    values: Mapping[str, Array],
    versions: Mapping[str, int],
    layouts: KnownLayouts = NO_LAYOUTS,
) -> tuple[Op, list[Shape | None]]:
    """Return a node as an op, and what is known of the shape of each result by this op alone."""
    op = _op_of_shapes(node, shape, values, versions, layouts)
    if op.type == "ConstantOfShape" and op.inputs[0] in values:
        return op, [tuple(values[op.inputs[0]].tolist())]
    try:
        return op, infer(op)
    except InputError:
        return op, []


def _op_of_shapes(
    node: onnx.NodeProto,
    shape: Callable[[str], Shape | None],
    values: Mapping[str, Array],
    versions: Mapping[str, int],
    layouts: KnownLayouts = NO_LAYOUTS,
) -> Op:
    own = copied(node)
    own.domain = "" if node.domain == UNREAD else node.domain
    op = op_of(own, versions, values, known=layouts)
    return replace(op, input_shapes=tuple(map(shape, op.inputs)))


VECTORS = {"Pad": {3}, "Resize": {2, 3}, "Slice": {3, 4}}
"""Places of optional operands that are vectors, by op type."""


def tell_ranks(model: onnx.ModelProto, inferred: onnx.ModelProto) -> bool:
    """Tell that axes, steps and sizes are vectors; return whether the rank of any was unknown.

    ONNX takes what has no known rank for what is not there: it slices the first axes, by 1.  So do
    runtimes with an initialiser that is an input without a shape.
    """
    kinds = _kinds(inferred.graph)
    known = {name for name, kind in kinds.items() if kind.tensor_type.HasField("shape")}
    places = (
        (node, place) for node in all_nodes(model.graph) for place in VECTORS.get(node.op_type, ())
    )
    wanted = {node.input[n] for node, n in places if n < len(node.input)} - known - {""}
    told = False
    for graph in graphs(model.graph) if wanted else ():
        every = {value.name: value for value in (*graph.value_info, *graph.output, *graph.input)}
        made = {name for node in graph.node for name in node.output}
        for name in sorted(wanted & {*every, *made}):
            tensor = (every.get(name) or graph.value_info.add(name=name)).type.tensor_type
            element = kinds[name].tensor_type.elem_type if name in kinds else 0
            tensor.elem_type = tensor.elem_type or element or onnx.TensorProto.INT64
            told |= not tensor.HasField("shape")
            if not tensor.HasField("shape"):
                tensor.shape.dim.add()
    return told


def _without_negative_sizes(model: onnx.ModelProto) -> None:
    """Forget what ONNX would take for sizes, and fall over; tensors cannot do without."""
    for graph in graphs(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_value < 0:
                    dim.Clear()
        held = (a.t for node in graph.node for a in node.attribute if a.HasField("t"))
        for tensor in (*graph.initializer, *held):
            if min(tensor.dims, default=0) < 0:
                raise InputError(f"tensor {tensor.name!r} has a size below 0: {list(tensor.dims)}")


def is_short(model: onnx.ModelProto) -> bool:
    """Return whether all that gives shapes is known to be short.

    ONNX follows values element by element, through any number of them.
    """
    inside = [node for function in model.functions for node in function.node]
    nodes = list(all_nodes(model.graph))
    if any(node.op_type in COUNTING for node in inside):
        return False
    sizes: dict[str, float] = {}
    rows = set[str]()  # results of one axis, which may be followed though no shape needs them
    for graph in graphs(model.graph):
        for name, kind in own_types(graph).items():
            count = elements_of(shape_of(kind))
            sizes[name] = math.inf if count is None else count
        results = (*graph.value_info, *graph.output)
        rows |= {x.name for x in results if len(x.type.tensor_type.shape.dim) == 1}
    if any(SMALL < sizes[name] < math.inf for name in rows):
        return False
    return all(
        sizes.get(node.input[i], math.inf) <= SMALL
        for node in nodes
        for i in type_facts(type_of(node)).structural
        if i < len(node.input) and node.input[i]
    ) and not any(node.op_type in COUNTING - {"Range"} for node in nodes)
