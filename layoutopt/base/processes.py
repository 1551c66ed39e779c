"""Python processes of our own: how they begin and end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, TypeAlias

Process: TypeAlias = subprocess.Popen[bytes]  # a process that has been started


def start_python(
    arguments: Sequence[str],
    output: int | IO[bytes] = subprocess.DEVNULL,
    descriptors: Sequence[int] = (),
) -> Process:
    """Start this interpreter with the modules that it can import here, out of reach of Ctrl-C.

    Its arguments are ``-m`` and a module, or ``-c`` and a text, then words for it; it inherits the
    files of ``descriptors``.
    """
    return subprocess.Popen(
        [sys.executable, "-P", *arguments],
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )


def ending(code: int) -> str:
    """Return how a process ended: its exit code, or the name of a signal."""
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"


def end_with(parent: int) -> None:
    """End this process soon after the given one, whatever it is doing."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
