"""The order of setting sinks, against the definition of what is known, begun anew at each step."""

from __future__ import annotations

import random
from collections import Counter

from layoutopt.base.result import Step
from layoutopt.check.order import Dependencies, derive, faults


def random_dependencies(draw: random.Random) -> Dependencies:
    """Return a few sinks of up to three pieces, and barriers that need some of them and others.

    Barriers have small numbers, so that these are numbers of pieces, too.
    """
    sinks = ["x", "y", "z"][: draw.randint(1, 3)]
    spans, count = [], 0
    for _ in sinks:
        spans.append(range(count, count + draw.choice([0, 1, 1, 2, 3])))
        count = spans[-1].stop
    barriers = draw.sample(range(7), draw.randint(0, 5))
    waits_for = [
        draw.choice(barriers) if barriers and draw.random() < 0.6 else None for _ in range(count)
    ]
    likely = draw.choice([0.1, 0.2, 0.3])
    needs = {
        b: (
            frozenset(p for p in range(count) if draw.random() < likely),
            frozenset(c for c in barriers if draw.random() < likely),
        )
        for b in barriers
    }
    return Dependencies(sinks, spans, waits_for, needs)


def known(given: Dependencies, done: set[int]) -> set[int]:
    """Return the barriers all of whose inputs are known once some pieces are set."""
    found: set[int] = set()
    while True:
        more = {b for b, (p, c) in given.needs.items() if p <= done and c <= found}
        if more == found:
            return found
        found = more


def ready(given: Dependencies, done: set[int]) -> set[int]:
    """Return the pieces that wait for nothing once some are set."""
    there = known(given, done)
    return {p for p, b in enumerate(given.waits_for) if b is None or b in there}


def expected_order(given: Dependencies) -> tuple[list[Step], list[int]]:
    """Return the first sink that can be set, again and again; else the first piece that can."""
    steps: list[Step] = []
    done: set[int] = set()
    open_sinks = list(range(len(given.sinks)))
    while True:
        can = ready(given, done)
        whole = [s for s in open_sinks if set(given.sink_pieces[s]) <= can | done]
        parts = sorted(can - done)
        if whole:
            sink = whole[0]
            pieces = [p for p in given.sink_pieces[sink] if p not in done]
            open_sinks.remove(sink)
        elif parts:
            pieces = parts[:1]
            [sink] = [s for s in open_sinks if pieces[0] in given.sink_pieces[s]]
        else:
            return steps, sorted(set(given.needs) - known(given, done))
        if whole and len(pieces) == len(given.sink_pieces[sink]):
            steps.append(given.sinks[sink])
        else:
            begin = given.sink_pieces[sink].start
            steps += [(given.sinks[sink], p - begin) for p in pieces]
        done |= set(pieces)


def expected_faults(given: Dependencies, steps: list[Step]) -> list[str]:
    """Return what is wrong with an order, each step judged by what was set before it."""
    found = []
    done: set[int] = set()
    for step in steps:
        name, part = (step, None) if isinstance(step, str) else step
        if name not in given.sinks:
            found.append(f"order: {name!r} is not a sink")
            continue
        span = given.sink_pieces[given.sinks.index(name)]
        if part is not None and part not in range(len(span)):
            found.append(f"order: sink {name!r} has no piece {part}")
            continue
        for piece in span if part is None else span[part : part + 1]:
            if piece in done:
                found.append(f"order: {step!r} is set twice")
            elif piece not in ready(given, done):
                found.append(f"order: {step!r} is set before the barrier at its origin is known")
            else:
                done.add(piece)
    left = [n for n, span in zip(given.sinks, given.sink_pieces, strict=True) if {*span} - done]
    return found or [f"order: {name!r} is never set" for name in left[:1]]


def test_orders_are_derived_as_defined() -> None:
    """Whole sinks first, then pieces, as soon as what they wait for is known; cycles are told."""
    draw, seen = random.Random(1), Counter[str]()
    for _ in range(3000):
        given = random_dependencies(draw)
        steps, cycle = derive(given)
        assert (list(steps), cycle) == expected_order(given), given
        seen["cycle" if cycle else "order"] += bool(given.needs)
        seen["parts"] += any(not isinstance(step, str) for step in steps)
        behind = {c for _, others in given.needs.values() for c in others}
        seen["chain"] += not cycle and bool(behind)
    assert min(seen.values()) > 100, seen


def test_orders_are_judged_as_defined() -> None:
    """Of right orders, some of them spoilt, all that is wrong is told, and nothing else."""
    draw, seen = random.Random(2), Counter[str]()
    for _ in range(3000):
        given = random_dependencies(draw)
        steps, _ = expected_order(given)
        luck = draw.random()
        if luck < 0.4:
            draw.shuffle(steps)
        elif luck < 0.6 and steps:
            steps.pop(draw.randrange(len(steps)))
        elif luck < 0.8:
            some: list[Step] = [*given.sinks, "u"]
            some += [(name, draw.randint(-1, 3)) for name in given.sinks]
            steps.insert(draw.randint(0, len(steps)), draw.choice(some))
        found = faults(given, steps)
        assert found == expected_faults(given, steps), (given, steps)
        for line in found or ["right"]:
            seen[line.split()[-1]] += 1
    assert min(seen[word] for word in ["right", "sink", "twice", "known", "set"]) > 100, seen
