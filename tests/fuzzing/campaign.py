"""A campaign: one target and many spoilt files, in this process."""

from __future__ import annotations

import faulthandler
import hashlib
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.fuzzing.guard import Fence, limit_memory, small_machine, timed
from tests.fuzzing.mutations import spoil_bytes
from tests.fuzzing.targets import TARGETS, Target, refusals

LONGEST = 16384
"""Bytes of the longest file."""

PATIENCE = 40
"""Seconds of the clock after which a run is taken to hang in code that is not Python."""


class Campaign:
    """Runs of one target, and what they found.

    Parameters
    ----------
    target
        What is run.
    findings
        Folder for inputs that break a promise, each with its traceback.
    folder
        Where runs may read and write.
    """

    def __init__(self, target: Target, findings: Path, folder: Path) -> None:
        self.target, self.findings, self.folder = target, findings, folder
        self.fence = Fence(folder)
        self.taken = 0

    def run(self, raw: bytes) -> None:
        """Run the target on a file, and write down what breaks a promise."""
        try:
            with self.fence.up(), timed(), small_machine(), refusals():
                self.target.run(raw, self.folder)
                self.taken += 1
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever it is, it is a finding
            self._keep(raw, error)

    def _keep(self, raw: bytes, error: BaseException) -> None:
        """Write a finding down, if it is the first of its kind or the shortest."""
        text = f"{type(error).__name__} {_place(error.__traceback__)}"
        path = self.findings / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.bin"
        if not path.exists() or path.stat().st_size > len(raw):
            path.write_bytes(raw)
            lines = traceback.format_exception(error)
            path.with_suffix(".txt").write_text("".join(lines), errors="backslashreplace")
            sys.stderr.write(f"finding {path}: {text}: {str(error)[:200]!a}\n")

    def mutated(self, data: bytes, draw: random.Random) -> bytes:
        """Return a file like another one, but spoilt."""
        try:
            return draw.choice(self.target.mutations)(data, draw)
        except Exception:  # it is too broken already to be spoilt in this way
            return spoil_bytes(data, draw)


def _place(trace: TracebackType | None) -> str:
    """Return the innermost lines of the package and of all."""
    frames = traceback.extract_tb(trace)
    own = [frame for frame in frames if "layoutopt" in frame.filename] or frames
    return " ".join(f"{frame.filename}:{frame.lineno}" for frame in (*own[-1:], *frames[-1:]))


def warm_up(name: str) -> None:
    """Run a target on all good files, after which all that it needs is imported.

    Raises
    ------
    InputError
        If one is no good file.
    """
    with tempfile.TemporaryDirectory() as folder:
        for raw in TARGETS[name].seeds():
            TARGETS[name].run(raw, Path(folder))


def fuzz(name: str, seconds: int, corpus: Path, findings: Path) -> None:
    """Run a target on spoilt files until the time is over.

    Parameters
    ----------
    corpus
        Folder of files to begin with; those that reach new code are added.
    """
    warm_up(name)
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(TARGETS[name], findings, Path(folder))
        for raw in campaign.target.seeds():
            (corpus / hashlib.sha256(raw).hexdigest()[:12]).write_bytes(raw)
        limit_memory()
        try:
            import atheris
        except ImportError:
            _plainly(campaign, seconds, corpus)
        else:
            _covering(atheris, campaign, seconds, corpus)


def _covering(atheris: Any, campaign: Campaign, seconds: int, corpus: Path) -> None:
    """Let libFuzzer look for files that reach new code."""

    def mutate(data: bytes, longest: int, seed: int) -> bytes:
        draw = random.Random(seed)
        made = campaign.mutated(data, draw) if draw.random() < 0.7 else None
        if made is not None and 0 < len(made) <= longest:
            return made
        return bytes(atheris.Mutate(data, longest))

    options = {
        "max_total_time": seconds,
        "max_len": LONGEST,
        "timeout": PATIENCE,
        "rss_limit_mb": 0,
        "artifact_prefix": f"{campaign.findings}/",
        "print_final_stats": 1,
    }
    words = [sys.argv[0], *(f"-{key}={value}" for key, value in options.items()), str(corpus)]
    atheris.Setup(words, campaign.run, custom_mutator=mutate)
    atheris.Fuzz()


def _plainly(campaign: Campaign, seconds: int, corpus: Path) -> None:
    """Spoil files at random; what is still read is spoilt further."""
    sys.stderr.write("atheris is not installed: files are spoilt without regard to code\n")
    draw, count = random.Random(0), 0
    pool = [path.read_bytes() for path in sorted(corpus.iterdir())]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        raw = draw.choice(pool)
        for _ in range(draw.choice((1, 1, 2, 4))):
            raw = campaign.mutated(raw, draw)
        before = campaign.taken
        (campaign.findings / "last").write_bytes(raw)  # should the process die
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        campaign.run(raw[:LONGEST])
        faulthandler.cancel_dump_traceback_later()
        count += 1
        if campaign.taken > before and len(pool) < 1000:
            pool.append(raw)
    (campaign.findings / "last").unlink(missing_ok=True)
    sys.stderr.write(f"#{count} DONE corp: {len(pool)}\n")
