"""Answers, CPU seconds and peak memory of commands, held against those of an older package.

``python -m benchmarks.gates --old PYTHON`` runs each command with the ``layoutopt`` of another
interpreter and with this one, in turns, and prints a table; it ends with 1 if an answer differs
or a limit is passed.  ``--write`` keeps the old figures in ``benchmarks/gates.json``; without
``--old`` the new ones are held against that file, which tells of times only on the same machine.

An answer is the status with objective (score, transforms or verdict) and bound.  CPU seconds,
those of the command and all that it starts, and peak memory are medians of ``--times`` runs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import networks
from benchmarks.measure import markdown

HERE = Path(__file__).with_name("gates.json")
INSTANCES = Path(__file__).parents[1] / "instances"

TIME_FACTOR, TIME_MORE, MEMORY_FACTOR = 1.15, 0.02, 1.1
"""A command may take so many times its CPU seconds, and as many more, and so much memory."""


@dataclass(frozen=True)
class Figures:
    """What one command answered and took: the answer, CPU seconds, and peak memory in MiB."""

    answer: list[Any]
    seconds: float
    peak: float


def commands(folder: Path) -> dict[str, list[str]]:
    """Return the commands by name, without the name of the program."""
    found = {}
    for room in ("figures", "greedy", "families", "random_views", "tiles", "training", "hard"):
        for path in sorted((INSTANCES / room).glob("*.json*")):
            found[f"solve {room}/{path.stem}"] = ["solve", str(path)]
    for path in sorted((INSTANCES / "conversion").glob("*.onnx")):
        found[f"convert {path.stem}"] = ["convert", str(path)]
        found[f"solve {path.stem}"] = ["solve", str(path), "--training", "sgd"]
    for path in networks.files().values():
        found[f"convert {path.stem}"] = ["convert", str(path)]
    views = INSTANCES / "random_views" / "views-64x16.json"
    certified = ["solve", str(views), "--certificate", str(folder / "certificate.json")]
    found["certify views-64x16"] = [*certified, "--overwrite"]
    return {name: [*args, "--json", "-", "--quiet"] for name, args in found.items()}


def run(python: str, arguments: list[str], limit: float) -> Figures:
    """Run a command once."""
    call = [python, "-c", "from layoutopt.cli.main import start; start()", *arguments]
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(  # the interpreter that the user names
            [*call, "--time-limit", str(limit)],
            stdout=out,
            stderr=subprocess.DEVNULL,
            cwd=tempfile.gettempdir(),  # not where this package would be found first
        )
        _, code, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(code)
        out.seek(0)
        text = out.read()
    answer: list[Any] = [child.returncode]
    if text.strip():
        told = json.loads(text)
        for key in ("status", "score", "transforms", "after", "objective", "bound"):
            if key in told:
                answer.append(told[key])
    return Figures(answer, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def middle(runs: list[Figures]) -> Figures:
    """Return the medians of several runs; answers that differ are all named."""
    answers = [figures.answer for figures in runs]
    same = all(answer == answers[0] for answer in answers)
    seconds, peak = median(f.seconds for f in runs), median(f.peak for f in runs)
    return Figures(answers[0] if same else answers, round(seconds, 3), round(peak, 1))


def verdict(old: Figures, new: Figures) -> str:
    """Return what is worse than it was; empty if nothing is."""
    faults = []
    if new.answer != old.answer:
        faults.append(f"answer {old.answer} -> {new.answer}")
    if new.seconds > TIME_FACTOR * old.seconds + TIME_MORE:
        faults.append("time")
    if new.peak > MEMORY_FACTOR * old.peak:
        faults.append("memory")
    return ", ".join(faults)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--old", metavar="PYTHON", help="an interpreter with the older package")
    parser.add_argument("--only", default="", help="commands whose names hold this")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each command")
    parser.add_argument("--write", action="store_true", help=f"keep the old figures in {HERE.name}")
    asked = parser.parse_args()
    kept = json.loads(HERE.read_text()) if HERE.exists() else {}
    rows, worse = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in commands(Path(folder)).items():
            if asked.only not in name:
                continue
            before, after = [], []
            for _ in range(asked.times):
                if asked.old:
                    before.append(run(asked.old, arguments, asked.limit))
                after.append(run(sys.executable, arguments, asked.limit))
            if before:
                kept[name] = asdict(middle(before))
            elif name not in kept:
                continue
            old, new = Figures(**kept[name]), middle(after)
            fault = verdict(old, new)
            worse += bool(fault)
            times = [f"{old.seconds:.2f}", f"{new.seconds:.2f}"]
            rows.append([name, *times, f"{old.peak:.0f}", f"{new.peak:.0f}", fault])
            print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
    head = ("command", "CPU s, old", "new", "MiB, old", "new", "worse in")
    print(markdown(head, rows))
    if asked.write:
        HERE.write_text(json.dumps(dict(sorted(kept.items())), indent=0) + "\n")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
