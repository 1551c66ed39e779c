"""The program in a process of its own, and what it leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.conftest import Ran

COMMAND = [sys.executable, "-c", "from layoutopt.cli.main import main; main()"]

PATIENCE = 120.0
"""Seconds after which a process that should have ended is a failure; no measurement."""


def begun(*words: object, **how: Any) -> subprocess.Popen[str]:
    """Begin a command in a process of its own."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*COMMAND, *map(str, words)], **(pipes | how))


def ended(process: subprocess.Popen[str], *signals: signal.Signals) -> Ran:
    """Wait for a process; nothing that it says is a traceback, and no other signal ends it."""
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    said = err or ""
    assert "Traceback" not in said, said
    assert "Exception ignored" not in said, said
    assert process.returncode >= 0 or -process.returncode in signals, said
    return Ran(process.returncode, out or "", said)


def ran(*words: object, **how: Any) -> Ran:
    """Run a command in a process of its own."""
    return ended(begun(*words, **how))


def closed(*numbers: int) -> Callable[[], None]:
    """Return what closes files of a process before it begins."""

    def close() -> None:
        for number in numbers:
            os.close(number)

    return close


def wait_for_line(process: subprocess.Popen[str]) -> str:
    """Return the first line of progress: solving is under way."""
    assert process.stderr is not None
    return process.stderr.readline()


def signalled(process: subprocess.Popen[str], *signals: signal.Signals) -> Ran:
    """Send signals when a process is under way, and wait for its end."""
    assert wait_for_line(process)
    for number in signals:
        process.send_signal(number)
        time.sleep(0.2)
    return ended(process, *signals)


def files(folder: Path) -> list[str]:
    """Return the names of all that is in a folder."""
    return sorted(path.name for path in folder.iterdir())
