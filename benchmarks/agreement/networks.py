"""Random cost networks: the solver, its certificates and its reasons, and all labellings.

Network ``k`` of a seed is always the same.  Status, cost and bound must be those of all
labellings, the checker must accept the certificate and prove as much, and what an infeasible
network is said to be infeasible for must be so alone.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure import markdown
from layoutopt.certificate.refused import Refused
from layoutopt.network import Network, evidence, solve, write
from layoutopt.network.certify import check_answer, check_certificate
from tests.network.oracle import best, draw

KINDS = ("no rows", "rows", "few nodes", "prices", "messages")
"""Of networks; the last two forbid the certificate other evidence."""


@dataclass
class Comparison:
    """Networks compared, by kind."""

    graphs: Counter[str] = field(default_factory=Counter)
    disagreements: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    uncertified: Counter[str] = field(default_factory=Counter)

    def compare(self, seed: int, k: int, folder: Path) -> None:
        """Compare network ``k``; one that is disagreed on is written to a folder."""
        kind = KINDS[k % len(KINDS)]
        number = random.Random(f"network/{seed}/{k}").getrandbits(40)
        few = 3 if kind == "few nodes" else 5
        network = draw(number, nodes=few, rows=kind in ("rows", "few nodes", "prices"))
        before = evidence.LABELLINGS, evidence.TABLE
        if kind in ("prices", "messages"):
            evidence.LABELLINGS, evidence.TABLE = 1, 8 if kind == "messages" else before[1]
        try:
            wrong = self._wrong(kind, network)
        except Exception as error:  # whatever it is, it should not have happened
            wrong = f"{type(error).__name__}: {error}"
        finally:
            evidence.LABELLINGS, evidence.TABLE = before
        self.graphs[kind] += 1
        if wrong:
            self.disagreements[kind] += 1
            folder.mkdir(parents=True, exist_ok=True)
            write(network, folder / f"network-{number}.json")
            print(f"network {k} ({kind}, drawn from {number}): {wrong}", flush=True)

    def _wrong(self, kind: str, network: Network) -> str:
        wanted, found = best(network), solve(network, certificate=True)
        self.statuses[str(found.status)] += 1
        answer = {
            "status": str(found.status),
            "objective": found.objective,
            "bound": found.bound,
            "labels": None if found.choice is None else found.choice.tolist(),
        }
        if (found.cost, found.least, found.infeasible) != (wanted, wanted, wanted is None):
            return f"{found} but the best is {wanted}"
        if found.why is not None and best(found.why.part) is not None:
            return f"a reason is none: {found.why}"
        if found.uncertified:
            self.uncertified[kind] += 1
        if found.certificate is None:
            return "" if kind in ("prices", "messages") else f"no certificate: {found.uncertified}"
        given = json.loads(json.dumps(found.certificate))
        self.kinds.update(_kinds(given["evidence"]))
        try:
            verdict = check_certificate(network, given)
        except Refused as why:
            return f"the certificate is refused: {why}"
        if found.uncertified:
            if verdict.bound is None or wanted is None:
                return "a certificate of no bound is not told to be weak"
            over = verdict.bound - wanted * network.unit
            return "" if (over <= 0 if network.sense == "min" else over >= 0) else "a forged bound"
        return check_answer(network, answer, verdict)

    def tables(self) -> str:
        """Return how many networks were compared, and what proved their answers."""
        rows = [
            [kind, f"{n:,}", f"{self.uncertified[kind]:,}", str(self.disagreements[kind])]
            for kind, n in self.graphs.items()
        ]
        counts = [[x, f"{n:,}"] for own in (self.statuses, self.kinds) for x, n in own.items()]
        head = ("networks", "compared", "weaker certificates", "disagreements")
        return markdown(head, rows) + "\n" + markdown(("status or evidence", "networks"), counts)


def _kinds(found: Any) -> set[str]:
    """Return the kinds of evidence that are in some evidence."""
    if isinstance(found, list):
        return set().union(*map(_kinds, found))
    if not isinstance(found, dict):
        return set()
    return ({found["kind"]} if "kind" in found else set()) | _kinds([*found.values()])
