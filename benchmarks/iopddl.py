"""Instances of the IOPDDL contest (ASPLOS 2025): what is proved, beside the published values.

``python -m benchmarks.iopddl FOLDER [--seconds 600] [--only B G] [--certificates]`` solves every
``.json`` and ``.json.gz`` of a folder, each in a process of its own of 8 GB, and prints a table.
Costs and usages of answers are recomputed from the files here, without the solver's code.  With
certificates, the bound is what the certificate proves, and its size and the seconds of its check
are in the table.

Published values are the contest's and those of github.com/ti2-group/iopddl_experiments; published
lower bounds are toulbar2's and Gurobi's, in floating point and without certificates.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import Timed, markdown, measure, timed

FORBIDDEN = 10**18

MEMORY = 8 * 2**30
"""Bytes of address space of each process."""

PUBLISHED: dict[str, tuple[str, str]] = {
    "A": ("6,548,641,531", "6,513,812,172"),
    "B": ("532,843", "532,843"),
    "G": ("217,039", "216,933"),
    "P": ("651.833e9 or 662.197e9", "621.3e9"),
    "V": ("1,617,084", "1,617,084"),
}
"""Best upper and lower values."""


def evaluated(path: Path, choice: list[int]) -> int:
    """Return what a choice of strategies costs, by the contest's rules.

    Raises
    ------
    ValueError
        If it is not allowed.
    """
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        problem = json.load(file)["problem"]
    nodes, edges = problem["nodes"], problem["edges"]
    total = sum(own[i] for own, i in zip(nodes["costs"], choice, strict=True))
    if len(choice) != len(nodes["costs"]) or min(choice, default=0) < 0:
        raise ValueError("not a strategy for each node")
    for (u, v), costs in zip(edges["nodes"], edges["costs"], strict=True):
        total += costs[choice[u] * len(nodes["costs"][v]) + choice[v]]
    if total >= FORBIDDEN:
        raise ValueError("a forbidden strategy or pair")
    change: dict[int, int] = {}
    for (begin, end), usage, i in zip(nodes["intervals"], nodes["usages"], choice, strict=True):
        if begin < end:
            change[begin] = change.get(begin, 0) + usage[i]
            change[end] = change.get(end, 0) - usage[i]
    used = 0
    for moment in sorted(change):
        used += change[moment]
        if used > problem.get("usage_limit", used):
            raise ValueError(f"{used} is used at time {moment}")
    return int(total)


def solved(path: str, seconds: float, certificate: bool) -> Timed:
    """Read and solve a file."""
    import resource

    from layoutopt.base.limits import limited
    from layoutopt.network import solve
    from layoutopt.network.certify import check_certificate
    from layoutopt.network.iopddl import read

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    def run() -> Any:
        limits = limited(seconds)  # reading included
        network = read(path)
        found = solve(network, limits, certificate=certificate)
        labels = None if found.choice is None else found.choice.tolist()
        bound, proof = found.least, None
        if found.certificate is not None:
            text = json.dumps(found.certificate)
            begun = time.process_time()
            proved = check_certificate(network, json.loads(text)).bound
            bound = None if proved is None else int(proved)
            proof = f"{len(text) / 1e6:.1f}", f"{time.process_time() - begun:.1f}"
        return str(found.status), found.cost, bound, labels, proof

    return timed(run)


def row(path: Path, seconds: float, certificate: bool) -> list[str]:
    """Return a line of the table."""
    name = path.name.split(".")[0]
    longest = 2 * seconds if certificate else seconds  # its check is not limited
    done = measure(solved, str(path), seconds, certificate, seconds=longest)
    proof = ("", "")
    cells = [name, "failed: " + done.failure, "", "", ""]
    if done.answer is not None:
        status, cost, bound, labels, written = done.answer
        proof = written or proof
        gap = f"{(cost - bound) / max(abs(cost), 1):.4%}" if labels and bound is not None else ""
        if labels is not None and evaluated(path, labels) != cost:
            raise SystemExit(f"{name}: the solver claims {cost}, not {evaluated(path, labels)}")
        cells = [name, status, *("" if x is None else f"{x:,}" for x in (cost, bound)), gap]
    spent = [f"{done.seconds:.1f}", f"{done.cpu:.1f}", f"{done.peak_mb:.0f}"]
    return [*cells, *spent, *PUBLISHED.get(name, ("", "")), *(proof if certificate else ())]


def main() -> None:
    """Solve the instances of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--only", nargs="*", default=None)
    parser.add_argument("--certificates", action="store_true")
    given = parser.parse_args()
    paths = [*given.folder.glob("*.json"), *given.folder.glob("*.json.gz")]
    known = {path.name.split(".")[0]: path for path in paths}
    head = ["instance", "status", "cost", "bound", "gap", "seconds", "CPU s", "MiB"]
    lines: list[list[str]] = []
    for name in sorted(known, key=lambda name: known[name].stat().st_size):
        if given.only is None or name in given.only:
            lines.append(row(known[name], given.seconds, given.certificates))
            print(" | ".join(lines[-1]), flush=True)
    head += ["published cost", "published bound"]
    print(markdown(head + ["MB", "check s"] * given.certificates, lines))


if __name__ == "__main__":
    main()
