"""onnxruntime in a process of its own, whose crash ends no command.

The process begins where a network has to run, and serves one session after the other; each
request is a tuple on a pipe, and so is each answer.  ``python -m layoutopt.onnx.runtime IN OUT
PARENT`` is the process itself: it is asked on the pipe ``IN``, and answers on ``OUT``.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from layoutopt.base.errors import lacking
from layoutopt.base.processes import end_with, ending, start_python

POLL = 0.1
"""Seconds between two moments at which whoever waits can be interrupted."""

CLOSE = 10.0
"""Seconds that it gets to forget a network."""

THREADS = 4
"""Most threads of an op."""


class RunError(Exception):
    """Raised where onnxruntime refuses something; the text says why."""


class CrashError(RunError):
    """Raised where its process ends, or is ended since it takes too long; the text says how."""


class Session:
    """A network in memory of onnxruntime, on the CPU, given as bytes or by the name of its file.

    Use it as a context manager: its process serves others afterwards.  ``options`` are attributes
    of ``SessionOptions``; levels of optimisation by name, ``"ORT_DISABLE_ALL"`` by default.
    Loading may take so many ``seconds``, without limit by default.  ``outputs`` are the names of
    the network's outputs.  Raises ``InputError`` if onnxruntime is not installed, and ``RunError``
    if it refuses the network.
    """

    def __init__(
        self,
        model: bytes | str,
        options: Mapping[str, Any] | None = None,
        seconds: float | None = None,
    ) -> None:
        self._given = model, dict(options or {})
        self._process: _Process | None = None
        self.outputs: list[str] = self._load(seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            with suppress(RunError):
                self._ask(("close",), CLOSE)
        self._give_back()

    def run(
        self,
        inputs: Mapping[str, Any],
        names: Sequence[str] | None = None,
        seconds: float | None = None,
        *,
        types: bool = False,
    ) -> list[Any]:
        """Return outputs for inputs, which are arrays or lists of them; all outputs by default.

        The run may take so many ``seconds``, without limit by default.  With ``types``, only the
        element type and the shape of each output is returned, None for what is no tensor.  Raises
        ``RunError`` if onnxruntime refuses to run it; a session that crashed can run again.
        """
        if self._process is None:
            self._load(seconds)
        request = "run", dict(inputs), list(names or self.outputs), types
        found: list[Any] = self._ask(request, seconds)
        return found

    def _load(self, seconds: float | None) -> list[str]:
        self._process = _idle_process()
        found: list[str] = self._ask(("load", *self._given), seconds)
        return found

    def _ask(self, request: tuple[Any, ...], seconds: float | None) -> Any:
        """Return the answer to a request; a process that does not end with one is ended."""
        process = self._process
        assert process is not None
        try:
            said, answer = process.ask(request, seconds)
        except BaseException:
            self._process = None
            process.kill()
            raise
        if said == "refused":
            if request[0] == "load":
                self._give_back()
            model = self._given[0]
            if isinstance(model, str):  # in a temporary folder, which differs each time
                answer = answer.replace(f"{Path(model).parent}{os.sep}", "")
            raise RunError(answer)
        if said == "missing":
            self._process = None
            process.kill()
            raise lacking("onnxruntime", "running a network", answer)
        return answer

    def _give_back(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            _IDLE.append(process)


class _Process:
    """A process that runs networks, as seen from outside."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        (heard, self.to), (self.back, said) = Pipe(duplex=False), Pipe(duplex=False)
        ends = [heard.fileno(), said.fileno()]
        numbers = [str(number) for number in (*ends, os.getpid())]
        words = ["-m", "layoutopt.onnx.runtime", *numbers]
        try:
            self.process = start_python(words, descriptors=ends)
        finally:
            heard.close()
            said.close()

    @property
    def alive(self) -> bool:
        """Whether it runs, and this process began it and not one that this is a fork of."""
        return self.owner == os.getpid() and self.process.poll() is None

    def ask(self, request: tuple[Any, ...], seconds: float | None) -> tuple[str, Any]:
        """Return its answer; raises ``CrashError`` if it ends, or takes longer."""
        end = None if seconds is None else time.monotonic() + seconds
        try:
            self.to.send(request)
            while not self.back.poll(POLL):  # in pieces, as exceptions come between two of these
                if end is not None and time.monotonic() > end:
                    raise CrashError(f"took longer than {seconds:.3g} s")
            answer: tuple[str, Any] = self.back.recv()
        except (EOFError, OSError):
            raise CrashError(f"crashed ({ending(self.process.wait())})") from None
        return answer

    def kill(self) -> None:
        """End it."""
        if self.owner == os.getpid():
            self.process.kill()
            self.process.wait()
        self.to.close()
        self.back.close()


_IDLE: list[_Process] = []
"""Processes that have nothing to do."""


def _idle_process() -> _Process:
    """Return a process that has nothing to do, a new one if there is none."""
    if find_spec("onnxruntime") is None:
        raise lacking("onnxruntime", "running a network")
    while _IDLE:
        process = _IDLE.pop()
        if process.alive:
            return process
        process.kill()
    return _Process()


@atexit.register
def _end() -> None:
    while _IDLE:
        _IDLE.pop().kill()


class _Server:
    """What the process does."""

    def __init__(self, runtime: Any) -> None:
        self.runtime = runtime
        self.session: Any = None

    def load(self, model: bytes | str, given: Mapping[str, Any]) -> list[str]:
        """Take a network in place of the last one; return the names of its outputs."""
        self.session = None
        options = self.runtime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = min(os.cpu_count() or 1, THREADS)
        for name, value in {"graph_optimization_level": "ORT_DISABLE_ALL", **given}.items():
            if name == "graph_optimization_level":
                value = getattr(self.runtime.GraphOptimizationLevel, value)
            setattr(options, name, value)
        self.session = self.runtime.InferenceSession(model, options, ["CPUExecutionProvider"])
        return [value.name for value in self.session.get_outputs()]

    def close(self) -> None:
        """Forget it."""
        self.session = None

    def run(self, inputs: Mapping[str, Any], names: Sequence[str], types: bool) -> list[Any]:
        """Run it."""
        options = self.runtime.RunOptions()
        options.log_severity_level = 4
        found: list[Any] = self.session.run(names, inputs, options)
        if types:
            return [(x.dtype, x.shape) if hasattr(x, "dtype") else None for x in found]
        return found


def main() -> None:
    """Answer requests until nobody is left who has any."""
    heard, said, parent = map(int, sys.argv[1:])
    line = Connection(heard, writable=False)
    back = Connection(said, readable=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who began it ends it
    end_with(parent)
    missing = None
    try:
        import onnxruntime

        server = _Server(onnxruntime)
    except ImportError as error:
        missing = str(error)
    with suppress(EOFError, OSError):
        while True:
            kind, *arguments = line.recv()
            if missing is not None:
                back.send(("missing", missing))
                continue
            try:
                answer = "done", getattr(server, kind)(*arguments)
            except Exception as error:  # classes of its own for each status, some private
                answer = "refused", str(error).strip() or type(error).__name__
            back.send(answer)
    os._exit(0)


if __name__ == "__main__":
    main()
