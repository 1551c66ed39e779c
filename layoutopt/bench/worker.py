"""The process that solves: ``python -m layoutopt.bench.worker LINE PARENT``.

It hears jobs on the socket ``LINE`` and answers there.  It ends when nobody is left to hear it.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import re
import resource
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from layoutopt.bench.job import Job
from layoutopt.bench.messages import Full, Made, NotMade, Ready, SolveDone
from layoutopt.bench.work import RunState, Unreadable, warm_up


def main() -> None:
    """Solve what comes in, until the line is closed."""
    line, parent = Connection(int(sys.argv[1])), int(sys.argv[2])
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)  # asked for before a worker that hangs is killed
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who began it ends it
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    solvers = warm_up()
    gc.collect()
    gc.freeze()  # modules are not searched for garbage, again and again, while solvers run
    line.send(Ready(solvers))
    desk = RunState()
    while True:
        try:
            job = line.recv()
        except (EOFError, OSError):
            break
        _work(line, desk, job)
    sys.stdout.flush()
    os._exit(0)  # no solver that still runs may abort the end


def _work(line: Connection, desk: RunState, job: Job) -> None:
    """Send what becomes of a job."""
    refused = _limit(job.solves[0].memory)
    if refused:
        line.send(Full(refused))
        return
    # Whoever listens kills sooner.  If nobody does any more, and a solver keeps the interpreter to
    # itself, this ends the process all the same.
    most = sum(solve.time_limit + job.grace for solve in (job.solves[0], *job.solves))
    faulthandler.dump_traceback_later(most + 1, exit=True)
    _tidy()
    try:
        line.send(Made(desk.instance(job)))
        for solve in job.solves:
            outcome = desk.outcome(job, solve)
            line.send(SolveDone(outcome, desk.worn or _left_running()))
    except Unreadable as error:
        line.send(NotMade(str(error), error.log))
    faulthandler.cancel_dump_traceback_later()


def _tidy() -> None:
    """Give memory back that earlier jobs have freed, so that it does not count as a later one's."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of the GNU C library only
    if trim is not None:
        trim(0)


def _left_running() -> bool:
    threads = sys.modules.get("layoutopt.base.deadline")
    return threads is not None and threads.left_running()


def _leave_with(parent: int) -> None:
    """End this process soon after the one that began it, whatever it is doing."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


def _limit(memory: int | None) -> str:
    """Keep this process's own memory below a number of bytes; return why that cannot be."""
    wanted = resource.RLIM_INFINITY if memory is None else memory
    status = Path("/proc/self/status")
    if memory is not None and status.is_file():
        found = re.search(r"VmData:\s*(\d+)", status.read_text())
        taken = int(found[1]) * 1024 if found else 0
        if taken >= memory:
            told = f"{memory >> 20} MiB of memory are too few"
            return f"{told}: a worker takes {taken >> 20} MiB before it begins"
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if most != resource.RLIM_INFINITY:
        wanted = most if memory is None else min(memory, most)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))
    return ""


if __name__ == "__main__":
    main()
