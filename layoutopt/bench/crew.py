"""Worker processes, and the watch over them: limits that hold, and crashes that end one solve."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing import Pipe

from layoutopt.bench.job import Job, Outcome
from layoutopt.bench.messages import Full, Made, Message, NotMade, Ready, Solved
from layoutopt.bench.work import Instance, Spent, failure, now, unreadable
from layoutopt.errors import InputError

START_LIMIT = 600.0
"""Seconds that a worker may take to start."""

LOG_BYTES = 100_000
"""Most bytes of a worker's output in a log, the last ones."""

Deliver = Callable[[Outcome], object]


class WorkerError(InputError):
    """No worker can be started."""


class Lost(Exception):
    """A worker that is no more; the text says how it ended."""


class Worker:
    """A worker process, as seen from outside."""

    def __init__(self) -> None:
        self.solvers: tuple[str, ...] = ()
        self.jobs = 0
        self.line, other = Pipe()
        self.output = tempfile.TemporaryFile("a+b", buffering=0)  # noqa: SIM115 (it lives as long)
        end = other.fileno()
        words = [sys.executable, "-P", "-m", "layoutopt.bench.worker", str(end), str(os.getpid())]
        self.process = subprocess.Popen(
            words,
            pass_fds=[end],
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=self.output,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # Ctrl-C on the terminal is not for workers
        )
        other.close()

    def start(self) -> tuple[str, ...]:
        """Wait until it hears jobs; return the names of the solvers that it has.

        Raises
        ------
        WorkerError
            If it does not start.
        """
        if not self.solvers:
            try:
                message = self.hear(START_LIMIT)
            except Lost as error:
                last = self.said().strip().rpartition("\n")[2]
                raise WorkerError(f"a worker {error} at its start{last and ': '}{last}") from None
            assert isinstance(message, Ready)
            self.solvers = message.solvers
        return self.solvers

    def begin(self, job: Job) -> None:
        """Hand a job over, to a worker that has nothing to do."""
        self.jobs += 1
        self.output.truncate(0)
        with suppress(OSError):  # if it has died, who listens will hear
            self.line.send(job)

    def hear(self, patience: float) -> Message:
        """Return the next message.

        Raises
        ------
        Lost
            If the worker ends, or has to be killed because nothing comes.
        """
        try:
            if not self.line.poll(patience):
                self.process.send_signal(signal.SIGUSR1)  # it writes down where it hangs
                time.sleep(0.1)
                self.process.kill()
                raise Lost(f"was killed after {patience:g} s without an answer")
            message: Message = self.line.recv()
        except (EOFError, OSError):
            raise Lost(f"was ended by {_ending(self.process.wait())}") from None
        return message

    def said(self) -> str:
        """Return what the process wrote to stdout and stderr since its job began."""
        size = os.fstat(self.output.fileno()).st_size
        tail = os.pread(self.output.fileno(), LOG_BYTES, max(0, size - LOG_BYTES))
        return tail.decode(errors="replace")

    def close(self) -> None:
        """End the process, and forget it."""
        self.process.kill()
        self.process.wait()
        self.line.close()
        self.output.close()


def _ending(code: int) -> str:
    """Return how a process ended."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


class Watch:
    """The watch over one worker while it carries a job out."""

    def __init__(self, worker: Worker, job: Job, deliver: Deliver) -> None:
        self.worker, self.job, self.deliver = worker, job, deliver
        self.instance: Instance | None = None
        self.began = now(), time.perf_counter()

    def attend(self) -> bool:
        """Hand on outcomes until all are there, or the worker is lost.

        Returns
        -------
        bool
            Whether the worker can take another job.

        Raises
        ------
        WorkerError
            If it did not start, or has too little memory for any job.
        """
        try:
            self.worker.start()
            self.worker.begin(self.job)
            while self.job.solves:
                self.began = now(), time.perf_counter()
                message = self.worker.hear(self.job.solves[0].time_limit + self.job.grace)
                if isinstance(message, Full):
                    if self.worker.jobs == 1:
                        raise WorkerError(message.reason)
                    return False  # a new one takes less
                if isinstance(message, Made):
                    self.instance = message.instance
                elif isinstance(message, NotMade):
                    self._not_made(message.reason, message.log)
                elif isinstance(message, Solved):
                    self._solved(message.outcome)
                    if message.worn:
                        return False
        except Lost as error:
            self._lost(f"the worker {error}")
            return False
        return True

    def _solved(self, outcome: Outcome) -> None:
        if outcome.row.error:
            outcome = replace(outcome, log=outcome.log + self.worker.said())
        self.deliver(outcome)
        self.job = replace(self.job, solves=self.job.solves[1:])

    def _not_made(self, why: str, log: str) -> None:
        for outcome in unreadable(self.job, self._spent(), why, log + self.worker.said()):
            self.deliver(outcome)
        self.job = replace(self.job, solves=())

    def _lost(self, why: str) -> None:
        """Blame what was being done."""
        if self.instance is None:
            self._not_made(why, "")
        else:
            solve = self.job.solves[0]
            self._solved(failure(self.job, solve, self.instance, self._spent(), why, ""))

    def _spent(self) -> Spent:
        started, begun = self.began
        return Spent(started, time.perf_counter() - begun)


class Crew:
    """Workers that carry out jobs, as many at once as there are threads that ask."""

    def __init__(self) -> None:
        self.idle: list[Worker] = []
        self.busy: set[Worker] = set()
        self.lock = threading.Lock()
        self.over = False

    def hire(self, count: int) -> None:
        """Begin to start workers that will be needed."""
        self.idle += [Worker() for _ in range(count)]

    def solvers(self) -> tuple[str, ...]:
        """Return the names of the solvers that workers have.

        Raises
        ------
        WorkerError
            If none can be started.
        """
        worker = self._take()
        try:
            return worker.start()
        finally:
            self._give_back(worker, bool(worker.solvers))

    def carry(self, job: Job, deliver: Deliver) -> None:
        """Carry a job out, and hand on each outcome as it comes.

        Raises
        ------
        WorkerError
            If no worker can be started.
        """
        while job.solves and not self.over:
            worker = self._take()
            watch, fit = Watch(worker, job, lambda outcome: self.over or deliver(outcome)), False
            try:
                fit = watch.attend()
            finally:
                self._give_back(worker, fit)
            job = watch.job

    def end(self) -> None:
        """Kill all workers; what they were doing has no outcomes."""
        with self.lock:
            self.over = True
            for worker in self.busy:
                worker.process.kill()  # it is closed by the thread that listens to it
            while self.idle:
                self.idle.pop().close()

    def _take(self) -> Worker:
        with self.lock:
            if self.over:
                raise WorkerError("the run has ended")
            while self.idle:
                worker = self.idle.pop()
                if worker.process.poll() is None:
                    break
                worker.close()
            else:
                worker = Worker()
            self.busy.add(worker)
            return worker

    def _give_back(self, worker: Worker, fit: bool) -> None:
        with self.lock:
            self.busy.discard(worker)
            if fit and not self.over:
                self.idle.append(worker)
            else:
                worker.close()
