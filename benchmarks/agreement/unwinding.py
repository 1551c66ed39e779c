"""Graphs to unwind: what was seen of them, and one of them compared."""

from __future__ import annotations

from collections import Counter
from math import inf
from pathlib import Path

from benchmarks.agreement.cases import KINDS, case
from benchmarks.agreement.compare import SPECIFICATION, compare, due
from benchmarks.agreement.partners import PARTNERS
from benchmarks.agreement.shrink import shrink, written
from benchmarks.agreement.stated import begun
from benchmarks.measure import markdown


class Comparison:
    """Graphs compared, and what was seen of them."""

    def __init__(self) -> None:
        self.graphs: Counter[str] = Counter()
        self.elements: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.open: Counter[str] = Counter()
        self.disagreements: Counter[str] = Counter()

    def compare(self, seed: int, k: int, folder: Path) -> None:
        """Compare what is said of one graph; a disagreement is made smaller and written down."""
        own = begun(case(seed, k))
        names = due(own, k)
        verdict = compare(own, names)
        self.graphs[own.kind] += 1
        self.elements[own.kind] += sum(sink.size for sink in own.graph.sinks())
        self.asked.update(names)
        for name, claim in verdict.claims.items():
            self.open[name] += -inf < claim.score < claim.bound < inf
        if verdict.what:
            self.disagreements[own.kind] += 1
            path = written(shrink(own, names, verdict), folder)
            print(f"seed {seed}, graph {k}: {verdict.what}; see {path}", flush=True)

    def tables(self) -> str:
        """Return a table of kinds, and one of partners."""
        counts = (self.graphs, self.elements, self.disagreements)
        kinds = [[kind, *(f"{count[kind]:,}" for count in counts)] for kind in KINDS]
        asked = [
            [name, f"{partner.share:,}", f"{self.asked[name]:,}", f"{self.open[name]:,}"]
            for name, partner in PARTNERS.items()
        ]
        asked.append([SPECIFICATION, "1", f"{self.graphs.total():,}", "0"])
        first = markdown(["kind", "graphs", "sink elements", "disagreements"], kinds)
        return f"{first}\n\n{markdown(['partner', 'one of', 'graphs', 'not proved'], asked)}"
