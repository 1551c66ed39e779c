"""What there is to do in a batch run, beside what a store knows already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from layoutopt.bench.columns import canonical
from layoutopt.bench.job import Job, Solve
from layoutopt.bench.row import Row
from layoutopt.bench.source import identity
from layoutopt.bench.store import Key, Store, key
from layoutopt.bench.suite import Suite

SHARE = 8
"""Jobs that each worker gets at least, where there are enough solves: short ones at the end leave
nobody idle."""


@dataclass(frozen=True)
class Plan:
    """A batch run before it begins.

    Parameters
    ----------
    jobs
        What is to be done, in the order of the suites.
    wanted
        Identity of the source, and solve, of all that the suites ask for.
    version, machine
        For the keys.
    """

    jobs: tuple[Job, ...]
    wanted: tuple[tuple[str, Solve], ...]
    version: str
    machine: str

    @property
    def left(self) -> int:
        """Number of solves that are to be done."""
        return sum(len(job.solves) for job in self.jobs)


def plan(
    suites: Sequence[Suite], store: Store, version: str, machine: str, slots: int, retry: bool
) -> Plan:
    """Return what is left to do of some suites.

    Parameters
    ----------
    slots
        How many jobs will be carried out at once.
    retry
        Whether failures are to be done again.
    """
    known, hashes = store.keys(failed=not retry), store.instances()
    wanted: dict[tuple[str, Solve], None] = {}
    jobs = []
    for suite in suites:
        for source in suite.sources:
            which = identity(source, version)
            asked = [solve for solve in suite.solves if (which, solve) not in wanted]
            wanted |= dict.fromkeys((which, solve) for solve in asked)
            graph = hashes.get(which)
            left = tuple(
                solve
                for solve in asked
                if graph is None or solve_key(graph, solve, version, machine) not in known
            )
            if left:
                jobs.append(Job(source, which, left, suite.grace, version, machine))
    size = max(1, sum(len(job.solves) for job in jobs) // (SHARE * slots))
    parts = [part for job in jobs for part in _parts(job, size)]
    return Plan(tuple(parts), tuple(wanted), version, machine)


def _parts(job: Job, size: int) -> list[Job]:
    """Return a job in parts of up to so many solves."""
    starts = range(0, len(job.solves), size)
    return [replace(job, solves=job.solves[i : i + size]) for i in starts]


def solve_key(graph: str, solve: Solve, version: str, machine: str) -> Key:
    """Return the key of the row that a solve makes, for a graph's hash."""
    text = canonical(solve.parameters)
    return graph, solve.solver, text, solve.seed, solve.repeat, version, machine


def asked(plan: Plan, store: Store) -> list[Row]:
    """Return the rows that there are of all that a plan wanted."""
    hashes = store.instances()
    keys = {
        solve_key(hashes.get(which, which), solve, plan.version, plan.machine)
        for which, solve in plan.wanted
    }
    return [row for row in store.rows() if key(row) in keys]
