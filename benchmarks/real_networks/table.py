"""The table of the documentation, from measurements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from benchmarks.measure import markdown
from benchmarks.real_networks.measuring import OPTIMISERS

HEAD = (
    *("network", "exporter or version", "nodes", "transposes given", "**layoutopt**", *OPTIMISERS),
    *("status", "s", "peak MiB", "difference", "ms before", "ms after", "after / before"),
)

NOTICED = 0.05
"""Share of the latency from which on a change is counted."""


def page(text: str, rows: Sequence[dict[str, Any]], versions: str, place: str = "results") -> str:
    """Return the text of the page with a table, and what it adds up to, written anew."""
    content = f"{summary(rows)}\n\n{table(rows)}\n\nMeasured with {versions}."
    pattern = rf"(<!-- {place} -->\n).*?(\n<!-- end of {place} -->)"
    if not re.search(pattern, text, re.DOTALL):
        raise ValueError("the page has no place for the table")
    return re.sub(
        pattern, lambda found: f"{found[1]}\n{content}\n{found[2]}", text, flags=re.DOTALL
    )


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a line for each export."""
    return markdown(HEAD, [_line(row) for row in rows], left=2)


def _line(row: dict[str, Any]) -> list[str]:
    framework, network, *exporter = row["name"].split("-")
    left = row["transposes"]
    names = ("given", "layoutopt", *OPTIMISERS)
    counts = [_count(left.get(name), name in row["foreign"]) for name in names]
    counts[1] = f"**{counts[1]}**"
    told = row["status"] or _without_path(row["failures"].get("layoutopt", ""))
    amounts = (row["seconds"], row["peak_mb"], row["difference"])
    latencies = (row["latency"], row["latency_after"], row["latency_ratio"])
    return [
        *(f"{framework} {network}", " ".join(exporter), f"{row['nodes']:,}", *counts, told),
        *map(_amount, amounts, ("{:.2f}", "{:,.0f}", "{:.0e}")),
        *map(_amount, latencies, ("{:.2f}", "{:.2f}", "{:.2f}")),
    ]


def _count(value: int | None, foreign: bool) -> str:
    return "failed" if value is None else f"{value:,}{' †' * foreign}"


def _amount(value: float | None, form: str) -> str:
    return "-" if value is None else "0" if value == 0 else form.format(value)


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """Return in words what the table says."""
    done = [row for row in rows if "layoutopt" in row["transposes"]]
    lines = [
        f"{len(done)} of {len(rows)} networks are converted, "
        f"{sum(row['status'] == 'optimal' for row in done)} with proof; "
        f"{_sum(done, 'given'):,} transposes become {_sum(done, 'layoutopt'):,}."
    ]
    for name in OPTIMISERS:
        both = [row for row in done if name in row["transposes"]]
        fewer = [row for row in both if row["transposes"][name] < row["transposes"]["layoutopt"]]
        more = [row for row in both if row["transposes"][name] > row["transposes"]["layoutopt"]]
        named = ", ".join(row["name"] for row in fewer if name not in row["foreign"])
        lines.append(
            f"Of {len(both)} that {name} also accepts, it leaves {_sum(both, name):,} and "
            f"layoutopt {_sum(both, 'layoutopt'):,}: more in {len(more)}, fewer in {len(fewer)}; "
            f"fewer with standard ops in {named or 'none'}."
        )
    run = [
        round(row["latency_ratio"], 2)
        for row in done
        if row["latency_ratio"] and row["transposes"]["layoutopt"] < row["transposes"]["given"]
    ]
    lines.append(
        f"Of {len(run)} with fewer transposes that onnxruntime runs before and after, "
        f"{sum(x <= 1 - NOTICED for x in run)} became at least {NOTICED * 100:.0f} % faster, and "
        f"{sum(x >= 1 + NOTICED for x in run)} at least {NOTICED * 100:.0f} % slower."
    )
    return "\n".join(f"- {line}" for line in lines)


def _sum(rows: Sequence[dict[str, Any]], name: str) -> int:
    return sum(row["transposes"][name] for row in rows)


def _without_path(reason: str) -> str:
    """Return why a network was refused, without the file that it lies in."""
    return re.sub(r"\S*/\S+\.onnx: ", "", reason)
