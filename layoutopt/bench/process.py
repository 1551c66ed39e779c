"""Worker processes, and their communication with the run.

``python -m layoutopt.bench.process LINE PARENT`` calls methods of a
:class:`~layoutopt.bench.job.Worker` as requested through the socket ``LINE``.  A request is a tuple
of seconds, method and arguments; the answer is the method's result, and whether the process accepts
further requests.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from layoutopt.base.errors import InputError
from layoutopt.bench.job import Instance, Job, Outcome, Solve, Spent, Worker, failure, now

START_LIMIT = 600.0
"""Seconds that a worker may take to start."""

LOG_BYTES = 100_000
"""Largest number of bytes of a worker's output in a log; the last ones are kept."""


class WorkerError(InputError):
    """No worker can be started."""


class WorkerLost(Exception):
    """Unexpected end of a worker process.

    Parameters
    ----------
    how
        Description of its end.
    log
        Its output.
    """

    def __init__(self, how: str, log: str) -> None:
        super().__init__(how)
        self.log = log


class WorkerProcess:
    """A worker in a separate process, killed after its time limit and restarted on demand."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.loaded: tuple[Job, Instance] | None = None
        self.jobs = 0
        self.over = False

    def solvers(self) -> tuple[str, ...]:
        """Return the names of all solvers.

        Raises
        ------
        WorkerError
            If the process does not start.
        """
        self._start()
        names: tuple[str, ...] = self._at_start("solvers")
        return names

    def load(self, job: Job) -> Instance:
        """Build the instance of a job, unless the process has done so.

        Raises
        ------
        WorkerError
            If the process does not start, or takes more memory than the job may.
        """
        if self.loaded is not None and self.loaded[0] is job and self._alive():
            return self.loaded[1]
        self._prepare(job.solves[0].memory)
        self.jobs += 1
        spent = Spent()
        begun = time.perf_counter()
        instance: Instance
        try:
            instance, log = self._call(job.solves[0].time_limit + job.grace, "load", job)
        except WorkerLost as lost:
            spent = replace(spent, seconds=time.perf_counter() - begun)
            return Instance.unreadable(job, spent, f"the worker {lost}", lost.log)
        if instance.error:
            return replace(instance, log=instance.log + log)
        self.loaded = job, instance
        return instance

    def solve(self, job: Job, solve: Solve, instance: Instance) -> Outcome:
        """Solve the instance that was built last."""
        started, begun = now(), time.perf_counter()
        outcome: Outcome
        try:
            outcome, log = self._call(solve.time_limit + job.grace, "solve", job, solve, instance)
        except WorkerLost as lost:
            spent = Spent(started, time.perf_counter() - begun)
            return failure(job, solve, instance, spent, f"the worker {lost}", lost.log)
        return replace(outcome, log=outcome.log + log) if outcome.row.error else outcome

    def kill(self) -> None:
        """Kill the process from any thread, and prevent a restart."""
        self.over = True
        if self.process is not None:
            self.process.kill()

    def stop(self) -> None:
        """End the process."""
        self.loaded = None
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.line.close()
            self.output.close()
            self.process = None

    def _alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def _prepare(self, memory: int | None) -> None:
        """Ensure a running process that has imported solvers, within a memory limit."""
        while True:
            if not self._alive():
                self._start()
                self._at_start("warm_up")
            refusal = self._at_start("limit_memory", memory)
            if not refusal:
                return
            if not self.jobs:
                raise WorkerError(refusal)
            self.stop()  # a new one takes less

    def _start(self) -> None:
        if self._alive():
            return
        self.stop()
        self.jobs = 0
        self.line, other = Pipe()
        self.output = tempfile.TemporaryFile("a+b", buffering=0)  # noqa: SIM115 (it lives as long)
        end = other.fileno()
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "layoutopt.bench.process", str(end), str(os.getpid())],
            pass_fds=[end],
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=self.output,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # Ctrl-C on the terminal is not for workers
        )
        other.close()
        if self.over:  # it was killed before it was there
            self.stop()
            raise WorkerError("the run has ended")

    def _at_start(self, method: str, *arguments: object) -> Any:
        """Call a method whose failure is not due to a solve."""
        try:
            return self._call(START_LIMIT, method, *arguments)[0]
        except WorkerLost as lost:
            last = lost.log.strip().rpartition("\n")[2]
            raise WorkerError(f"a worker {lost} at its start{last and ': '}{last}") from None

    def _call(self, limit: float, method: str, *arguments: object) -> tuple[Any, str]:
        """Return the result of a worker's method, and the output of the process.

        Raises
        ------
        WorkerLost
            If the process ends, or is killed after the time limit.
        """
        assert self.process is not None
        self.output.truncate(0)
        try:
            self.line.send((limit, method, arguments))
            if not self.line.poll(limit):
                self.process.send_signal(signal.SIGUSR1)  # prints a traceback
                time.sleep(0.1)
                self.process.kill()
                raise self._lost(f"was killed after {limit:g} s without an answer")
            answer, reusable = self.line.recv()
        except (EOFError, OSError):
            raise self._lost(f"was ended by {_ending(self.process.wait())}") from None
        log = self._written()
        if not reusable:
            self.stop()
        return answer, log

    def _lost(self, how: str) -> WorkerLost:
        if self.over:
            raise WorkerError("the run has ended")
        lost = WorkerLost(how, self._written())
        self.stop()
        return lost

    def _written(self) -> str:
        """Return the output of the process since the last request."""
        size = os.fstat(self.output.fileno()).st_size
        tail = os.pread(self.output.fileno(), LOG_BYTES, max(0, size - LOG_BYTES))
        return tail.decode(errors="replace")


def _ending(code: int) -> str:
    """Describe the end of a process."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


class WorkerPool:
    """Worker processes shared by threads; new ones are started if none is idle."""

    def __init__(self) -> None:
        self.idle: list[WorkerProcess] = []
        self.busy: set[WorkerProcess] = set()
        self.lock = threading.Lock()
        self.closed = False

    @contextmanager
    def worker(self) -> Iterator[WorkerProcess]:
        """Yield a worker for exclusive use.

        Raises
        ------
        WorkerError
            If the pool is closed.
        """
        with self.lock:
            if self.closed:
                raise WorkerError("the run has ended")
            worker = self.idle.pop() if self.idle else WorkerProcess()
            self.busy.add(worker)
        try:
            yield worker
        finally:
            self._give_back(worker)

    def _give_back(self, worker: WorkerProcess) -> None:
        with self.lock:
            self.busy.discard(worker)
            if self.closed:
                worker.stop()
            else:
                self.idle.append(worker)

    def close(self) -> None:
        """Kill all workers; their jobs have no outcomes."""
        with self.lock:
            self.closed = True
            for worker in self.busy:
                worker.kill()  # the thread that has it stops it
            while self.idle:
                self.idle.pop().stop()


class _LimitedWorker(Worker):
    """A worker that is alone in its process, whose memory it can limit."""

    def warm_up(self) -> None:
        """Import the solvers' modules by solving a tiny instance."""
        from layoutopt.graphs.unwinding import Graph
        from layoutopt.registry import load_all
        from layoutopt.unwinding import SOLVERS, unwind

        graph = Graph()
        x = graph.sink((4,))
        for value in (2, 3):
            graph.valued_pair(x, graph.source((4,)), value)
            graph.valued_pair(x, graph.reverse(x, (0,)), -value)
        load_all()
        for solver in SOLVERS:
            unwind(graph, solver)
        gc.collect()
        gc.freeze()  # excludes modules from garbage collection

    def limit_memory(self, memory: int | None) -> str:
        """Set the process's memory limit; return the reason if this is impossible."""
        gc.collect()  # memory freed by earlier jobs must not count
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of the GNU C library only
        if trim is not None:
            trim(0)
        wanted = resource.RLIM_INFINITY if memory is None else memory
        status = Path("/proc/self/status")
        if memory is not None and status.is_file():
            found = re.search(r"VmData:\s*(\d+)", status.read_text())
            taken = int(found[1]) * 1024 if found else 0
            if taken >= memory:
                few = f"{memory >> 20} MiB of memory are too few"
                return f"{few}: a worker takes {taken >> 20} MiB before it begins"
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        if most != resource.RLIM_INFINITY:
            wanted = most if memory is None else min(memory, most)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))
        return ""


def main() -> None:
    """Serve requests until the socket is closed."""
    line, parent = Connection(int(sys.argv[1])), int(sys.argv[2])
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)  # asked for before a worker that hangs is killed
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    worker = _LimitedWorker()
    while True:
        try:
            limit, method, arguments = line.recv()
        except (EOFError, OSError):
            break
        # The parent kills sooner.  If it is no more, and a solver keeps the interpreter to itself,
        # this ends the process all the same.
        faulthandler.dump_traceback_later(limit + 1, exit=True)
        line.send((getattr(worker, method)(*arguments), worker.reusable))
        faulthandler.cancel_dump_traceback_later()
    sys.stdout.flush()
    os._exit(0)  # no solver that still runs may abort the end


def _end_with(parent: int) -> None:
    """End this process soon after its parent."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


if __name__ == "__main__":
    main()
