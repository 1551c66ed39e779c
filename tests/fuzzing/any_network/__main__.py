"""Draw networks, convert each in all ways, and print the kinds of failures."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnx import printer

from tests.fuzzing.any_network.draw import draw_case
from tests.fuzzing.any_network.promises import VARIANTS, Failure, Given, failures
from tests.fuzzing.any_network.reduce import reduce

CHUNK = 50
REDUCED = 3
"""Failures that are reduced of those that look alike, of wrong outputs ten times these."""


@dataclass
class Tally:
    """What became of some networks.

    Parameters
    ----------
    drawn, run, conversions
        Networks drawn, those that onnxruntime runs, and how often these were converted.
    ops
        In how many networks that run each op is.
    failed
        Failures with the network's seed and number of nodes, one of each kind and network.
    """

    drawn: int = 0
    run: int = 0
    conversions: int = 0
    ops: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[int, int, Failure]] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add the figures of other networks."""
        self.drawn += other.drawn
        self.run += other.run
        self.conversions += other.conversions
        self.ops += other.ops
        self.failed += other.failed


@dataclass(frozen=True)
class Small:
    """A failure reduced: the promise broken and the ops it takes, and how it reads."""

    key: tuple[str, ...]
    text: str


def try_networks(seeds: Sequence[int], variants: int, bodies: bool = False) -> Tally:
    """Draw networks and hold them to all promises.

    Parameters
    ----------
    seeds
        A seed for each network.
    variants
        Conversions of each beside the default one; all if it is 0.
    bodies
        Whether each begins with a loop, scan or branches between transposes.
    """
    tally = Tally()
    for seed in seeds:
        tally.drawn += 1
        case = draw_case(seed, bodies)
        given = Given.of(case)
        if given is None:
            continue
        tally.run += 1
        nodes = case.model.graph.node
        tally.ops.update({f"{n.domain}.{n.op_type}" for n in nodes})
        names = list(VARIANTS)
        if variants:
            names = ["default", *random.Random(seed).sample(names[1:], variants)]
        seen: set[tuple[str, str]] = set()
        for name in names:
            tally.conversions += 1
            for failure in failures(given, name):
                if failure.signature not in seen:
                    seen.add(failure.signature)
                    tally.failed.append((seed, len(nodes), failure))
    return tally


def reduced(seed: int, failure: Failure, bodies: bool) -> Small:
    """Return a failure of a seed's network made small."""
    case, said = reduce(draw_case(seed, bodies), failure)
    text = printer.to_text(case.model)
    feeds = [f"{n}: {v.dtype}{list(v.shape)}" for n, v in case.feeds.items() if hasattr(v, "shape")]
    kinds = sorted(n.op_type for n in case.model.graph.node if n.op_type != "Transpose")
    text = f"variant {said.variant}, seed {seed}: {said.text[:500]}\n```\n{text[:3000]}\n"
    return Small((*said.signature, *kinds), f"{text}fed with {'; '.join(feeds)}\n```")


def report(tally: Tally, small: Iterable[Small], seconds: float) -> str:
    """Return the kinds of failures as Markdown, the most frequent ones first."""
    failing = len({seed for seed, _, _ in tally.failed})
    counts = Counter(failure.signature for _, _, failure in tally.failed)
    lines = [
        f"{tally.drawn} networks drawn, {tally.run} run, {tally.conversions} conversions, "
        f"{failing} networks fail in {len(counts)} ways; {len(tally.ops)} types of ops, "
        f"{seconds:.0f} s"
    ]
    found: dict[tuple[str, str], dict[tuple[str, ...], Small]] = {}
    for one in small:
        signature = (one.key[0], one.key[1])
        same = found.setdefault(signature, {})
        if one.key not in same or len(one.text) < len(same[one.key].text):
            same[one.key] = one
    for signature, count in sorted(
        counts.items(), key=lambda x: (x[0][0] == "leaves no more than onnxruntime", -x[1])
    ):
        seeds = [seed for seed, _, failure in tally.failed if failure.signature == signature]
        variants = Counter(f.variant for _, _, f in tally.failed if f.signature == signature)
        lines.append(f"\n## {signature[0]}: {count} networks\n")
        lines.append(f"{signature[1]}\n\nseeds {seeds[:8]}, {dict(variants.most_common(5))}")
        every = sorted(found.get(signature, {}).values(), key=lambda x: len(x.text))
        lines += [f"\n{one.text}" for one in every[:12]]
    return "\n".join(lines)


def main() -> int:
    """Run the command; return 1 if anything was found."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzzing.any_network", description=__doc__
    )
    parser.add_argument("--networks", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first network's seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--variants", type=int, default=0, help="beside the default; 0 for all")
    parser.add_argument("--bodies", action="store_true", help="each has a loop, scan or branches")
    parser.add_argument("--report", type=Path, help="a file that is kept up to date")
    options = parser.parse_args()
    started, tally = time.monotonic(), Tally()
    small: list[Small] = []
    taken: Counter[tuple[str, str]] = Counter()
    seeds = range(options.seed, options.seed + options.networks)
    chunks = [seeds[n : n + CHUNK] for n in range(0, len(seeds), CHUNK)]
    while chunks:
        wave, chunks = chunks[: options.jobs * 4], chunks[options.jobs * 4 :]
        new: list[tuple[int, int, Failure]] = []
        chosen = [(list(seeds), options.variants, options.bodies) for seeds in wave]
        for part in _wave(chosen, options.jobs):
            tally.add(part)
            new += part.failed
        work = []
        for seed, _, failure in sorted(new, key=lambda x: x[:2][::-1]):
            most = REDUCED * (10 if failure.promise in ("gives the same", "runs") else 1)
            if taken[failure.signature] < most and failure.promise != "ends":
                taken[failure.signature] += 1
                work.append((seed, failure, options.bodies))
        small += [one for one in _apply(reduced, work, options.jobs) if one is not None]
        if options.report:
            options.report.write_text(report(tally, small, time.monotonic() - started))
    sys.stdout.write(report(tally, small, time.monotonic() - started) + "\n")
    return 1 if tally.failed else 0


def _wave(chunks: list[tuple[list[int], int, bool]], jobs: int) -> Iterator[Tally]:
    """Run some chunks at once; one whose process dies is run again in halves."""
    for chunk, found in zip(chunks, _apply(try_networks, chunks, jobs), strict=True):
        seeds, variants, bodies = chunk
        if found is not None:
            yield found
        elif len(seeds) > 1:
            middle = len(seeds) // 2
            for half in (seeds[:middle], seeds[middle:]):
                yield from _wave([(half, variants, bodies)], 1)
        else:
            died = Failure("", "ends", "the process dies", "the process dies")
            yield Tally(1, 1, 1, failed=[(seeds[0], 0, died)])


def _apply(work: Callable[..., Any], every: Sequence[Any], jobs: int) -> list[Any]:
    """Call a function with each of some arguments; None where its process dies."""
    found: list[Any] = [None] * len(every)
    with ProcessPoolExecutor(jobs) as pool:
        places: dict[Future[Any], int] = {
            pool.submit(work, *arguments): n for n, arguments in enumerate(every)
        }
        for future in as_completed(places):
            try:
                found[places[future]] = future.result()
            except BrokenProcessPool:
                continue
    return found


if __name__ == "__main__":
    raise SystemExit(main())
