"""Worker processes of batch runs.

``python -m layoutopt.bench.process LINE PARENT`` calls methods of a
:class:`~layoutopt.bench.job.Worker` as requested through the socket ``LINE`` by a
:class:`~layoutopt.bench.executors.WorkerProcess`.  A request is a tuple of seconds, method and
arguments; the answer is the method's result, and whether the process accepts further requests.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import signal
import sys
from multiprocessing.connection import Connection

from layoutopt.base.limits import memory_taken, put_limit
from layoutopt.base.processes import end_with
from layoutopt.bench.job import Worker


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
        now = memory_taken() or 0
        if memory is not None and now >= memory:
            few = f"{memory >> 20} MiB of memory are too few"
            return f"{few}: a worker takes {now >> 20} MiB before it begins"
        put_limit(memory)
        return ""


def main() -> None:
    """Serve requests until the socket is closed."""
    line, parent = Connection(int(sys.argv[1])), int(sys.argv[2])
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)  # asked for before a worker that hangs is killed
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    end_with(parent)
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


if __name__ == "__main__":
    main()
