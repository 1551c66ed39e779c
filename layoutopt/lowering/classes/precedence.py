"""Barrier order without touching elements: which barriers read which cells, and each other."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from layoutopt.base.numbers import unique
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.classes.reduced import Reduced, trace_group
from layoutopt.lowering.classes.systems import orbits_of
from layoutopt.lowering.elements.groups import Group, PrecedenceConflicts, first_alike, sources_of
from layoutopt.network.problem import IntArray


def conflicts_by_classes(
    graph: GraphStore, barriers: Sequence[int], groups: Collection[int], free: Sequence[bool]
) -> PrecedenceConflicts:
    """Return the barriers that can exclude each other, and which reads outputs of which.

    Barriers, by op numbers, and groups are those that lie on possible cycles.
    """
    place = {b: k for k, b in enumerate(barriers)}
    firsts = first_alike(graph)
    arcs = []
    for c, barrier in enumerate(barriers):
        inputs = {firsts[t] for t in graph.op_inputs[barrier]}
        cone = Group((), tuple(sources_of(graph, inputs, firsts)), (), (), firsts)
        producers = {graph.producers[t] for t in cone.tensors} & place.keys()
        if producers:
            held = _roots_held(graph, cone, inputs, free)
            arcs += [(place[b], c) for b in sorted(producers) if b in held]
    return PrecedenceConflicts(
        tuple(barriers), np.array(arcs, np.int64).reshape(-1, 2), [()], {}, frozenset(groups)
    )


def _roots_held(
    graph: GraphStore, cone: Group, wanted: Collection[int], free: Sequence[bool]
) -> set[int]:
    """Return the ops whose outputs some elements of the wanted tensors come from."""
    traced = trace_group(graph, orbits_of(graph, cone, free))
    parts = traced.cells.orbits.slotted.system.parts
    starts = traced.numbers.starts
    found: set[int] = set()
    for part, array in zip(parts, traced.tensors, strict=True):
        if part.tensor in wanted:
            roots = np.searchsorted(starts, unique(array[array >= 0]), side="right") - 1
            # Locations that mappings name come last, and are of no barrier.
            known = [traced.roots[r] for r in roots.tolist() if r < len(traced.roots)]
            found.update(graph.producers[parts[p].tensor] for p in known)
    return found


def with_readers(graph: GraphStore, group: Group, conflicts: PrecedenceConflicts) -> Group:
    """Return a contested group with the tensors that barriers read its sinks through."""
    tensors = set(group.tensors)
    for barrier in conflicts.barriers:
        inputs = {group.firsts[t] for t in graph.op_inputs[barrier]}
        cone = sources_of(graph, inputs, group.firsts)
        if not set(cone).isdisjoint(group.sinks):
            tensors.update(cone)
    return replace(group, tensors=tuple(sorted(tensors)))


def readers_of(
    graph: GraphStore, group: Group, reduced: Reduced, conflicts: PrecedenceConflicts
) -> IntArray:
    """Return for each free cell the index of the set of barriers that read it.

    New sets are added to the conflicts's.
    """
    free = reduced.edges.numbers.free
    read = np.zeros((free, len(conflicts.barriers)), bool)
    parts = reduced.cells.orbits.slotted.system.parts
    for c, barrier in enumerate(conflicts.barriers):
        inputs = {group.firsts[t] for t in graph.op_inputs[barrier]}
        for part, array in zip(parts, reduced.tensors, strict=True):
            if part.tensor in inputs:
                read[array[(array >= 0) & (array < free)], c] = True
    rows, of = np.unique(read, axis=0, return_inverse=True)
    index = []
    for row in rows:
        barriers = tuple(np.flatnonzero(row).tolist())
        if barriers not in conflicts.reader_sets:
            conflicts.reader_sets.append(barriers)
        index.append(conflicts.reader_sets.index(barriers))
    return np.array(index, np.int64)[of.reshape(-1)]
