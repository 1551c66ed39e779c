"""Export networks, measure them, and write the table of the documentation.

``python -m benchmarks.real_networks [--folder FOLDER] [--only REGEX] [--again] [--write]`` needs
the extras ``onnx`` and ``networks``.  An export that lies in the folder is not made again, nor is
it measured again; with ``--again`` it is, but for what other optimisers do.  With ``--packages``,
networks that packages ship take the place of exports, and no framework is needed; with ``--flax``,
exports of Flax, which need jax2onnx.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measure import measure
from benchmarks.real_networks import packages
from benchmarks.real_networks.export import FLAX, NEWEST, Export, exports, write
from benchmarks.real_networks.measuring import measured
from benchmarks.real_networks.table import page, summary, table

PAGE = Path(__file__).with_name("README.md")

EXPORT_SECONDS = 600.0
"""Seconds that an exporter may take."""

TOOLS = ("layoutopt", "onnxruntime", "onnxsim", "onnxslim", "onnx")
FRAMEWORKS = {
    "results": ("torch", "timm", "transformers", "tensorflow-cpu", "tf2onnx"),
    "flax": ("jax", "flax", "jax2onnx"),
    "packages": (),
}
"""What writes the networks of each table."""


def row(export: Export | packages.Shipped, folder: Path, again: bool) -> dict[str, Any] | None:
    """Write and measure a network, unless that was done; say what was done."""
    path = folder / f"{export.name}.onnx"
    result = path.with_suffix(".json")
    if not path.with_suffix(".npz").exists():
        written = write if isinstance(export, Export) else packages.write
        found = measure(written, export, folder, seconds=EXPORT_SECONDS)
        if found.failure:
            print(f"{export.name}: not written: {found.failure}", flush=True)
            return None
        result.unlink(missing_ok=True)
    answer: dict[str, Any] = json.loads(result.read_text()) if result.exists() else {}
    if again or not answer:
        answer = measured(path, folder / "converted" / path.name, answer)
        result.write_text(json.dumps(answer))
    print(f"{export.name}: {answer['transposes']} {answer['failures'] or ''}", flush=True)
    return answer


def versions(names: Sequence[str]) -> str:
    """Return what the figures depend on."""
    named = ", ".join(f"{name} {version(name)}" for name in names)
    return f"Python {platform.python_version()}, {named}"


def main() -> None:
    """Measure all networks that are asked for, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("real_networks"))
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--again", action="store_true", help="convert once more what was converted")
    parser.add_argument("--write", action="store_true", help="write the page of the documentation")
    parser.add_argument("--packages", action="store_true", help="take networks that packages ship")
    parser.add_argument("--flax", action="store_true", help="take networks of Flax")
    given = parser.parse_args()
    (given.folder / "converted").mkdir(parents=True, exist_ok=True)
    every: Sequence[Export | packages.Shipped]
    if given.packages:
        place, every = "packages", packages.shipped(given.folder)
    elif given.flax:
        place, every = "flax", [Export("flax", each, "jax2onnx", NEWEST) for each in FLAX]
    else:
        place, every = "results", exports()
    wanted = [each for each in every if re.search(given.only, each.name)]
    rows = [found for each in wanted if (found := row(each, given.folder, given.again))]
    if given.write:
        told = versions((*TOOLS, *FRAMEWORKS[place]))
        text = page(PAGE.read_text("utf-8"), rows, told, place)
        PAGE.write_text(text, "utf-8")
    else:
        print(summary(rows), table(rows), sep="\n\n")


if __name__ == "__main__":
    main()
