"""Answers that are found and checked early, so that a limit never ends without one.

What an exact method needs before it has any layouts, tracing a graph and reducing it, may take
longer than all the time there is.  So where time is limited, a heuristic's layouts are checked
first; where they are not ready soon, default layouts are, and only then does the search begin.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress
from typing import NamedTuple

from layoutopt.base.deadline import BUSY, LATE, run_with_timeout
from layoutopt.base.entries import ENTRIES, Takes
from layoutopt.base.errors import InputError, SizeError
from layoutopt.base.limits import Limits
from layoutopt.check.elements import Evaluation, evaluate
from layoutopt.graphs.locations import Origins
from layoutopt.graphs.ops import size
from layoutopt.lowering.assignment import WarmStart
from layoutopt.lowering.elements.kinds import LayoutDict, layouts_of
from layoutopt.lowering.greedy0 import greedy0

START_LIMIT = 10**6
"""Graphs of up to so many elements begin with what ``greedy0`` chooses."""

SHARE = 0.2
"""Share of the time in which nothing else is done."""

POLL = 0.02
"""Seconds between two looks at the limits while waiting."""


class Secured(NamedTuple):
    """Layouts that break no rule, and what they are worth."""

    layouts: LayoutDict
    evaluation: Evaluation


class Reserve:
    """Answers in hand while better ones are sought.

    Parameters
    ----------
    begun
        What the whole computation begins with.
    limits
        Those of the whole computation.

    Attributes
    ----------
    best
        The best that is checked; ``None`` while nothing is.
    origins
        What ``greedy0`` chooses by element, if it was asked and has answered.
    """

    def __init__(self, begun: WarmStart, limits: Limits) -> None:
        self.begun, self.graph = begun, begun.given.graph
        self.limits = limits
        self.best: Secured | None = None
        if begun.layouts is not None and begun.evaluation is not None:
            self.best = Secured(begun.layouts, begun.evaluation)
        self.origins: Origins | None = None
        self._unforeseen: BaseException | None = None
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Whether a heuristic is still at work."""
        return self._thread is not None and self._thread.is_alive()

    def open(self, heuristic: bool) -> None:
        """Secure an answer if time is limited; return as soon as there is one, or soon anyway.

        Parameters
        ----------
        heuristic
            Whether ``greedy0`` is asked; otherwise only default layouts are looked at.
        """
        left = self.limits.left
        asked = self.limits.started < self.limits.deadline < math.inf
        if not asked or self.limits.interrupt.is_set() or self.begun.start is not None:
            return
        short = left < LATE
        if short:
            self._plainly()
        if heuristic and self.limits.left:
            self.limits.report("securing an answer by greedy0")
            self._thread = threading.Thread(target=self._work, daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # the system gives none
                self._thread = None
            self._wait(SHARE * left)
        if self.best is None and not short:
            self._plainly()

    def _plainly(self) -> None:
        """Check default layouts, up to a little after the deadline."""
        self.limits.report("checking default layouts")
        self.plain(self.limits.left + LATE)

    def close(self, patience: float = 0.0) -> None:
        """End what is still at work, after so many seconds and at the deadline at the latest."""
        self._wait(min(patience, self.limits.left))
        self._closed.set()
        if self._unforeseen is not None:
            raise self._unforeseen

    def plain(self, seconds: float) -> None:
        """Secure what ``greedy0`` chose, or locations of their own for all, if that is quick.

        Nothing is known without it, so that it does not end with the limits, but for Ctrl-C.
        """
        end, interrupt = time.monotonic() + seconds, self.limits.interrupt
        late, worked = interrupt.is_set(), time.process_time()

        def over() -> bool:
            if interrupt.is_set() and not late:
                return True
            busy = time.process_time() - worked < LATE
            return time.monotonic() >= end + (BUSY if busy else 0.0)

        with suppress(TimeoutError, MemoryError, SizeError):
            run_with_timeout(self._keep_plain, over)

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while self.running and not self.limits.over and time.monotonic() < end:
            assert self._thread is not None
            self._thread.join(POLL)

    def _work(self) -> None:
        """Ask a heuristic, and check what it says; whatever keeps it from that may do so."""
        try:
            run_with_timeout(self._ask, lambda: self._closed.is_set() or self.limits.over)
        except (TimeoutError, MemoryError, SizeError, InputError):
            pass
        except BaseException as error:  # handed to the caller
            self._unforeseen = error

    def _ask(self) -> None:
        quiet, given = self.limits.silent(), self.begun.given
        elements = sum(map(size, self.graph.shapes))
        if elements > START_LIMIT:
            from layoutopt.lowering.heuristics import choose

            layouts = choose(self.graph, ENTRIES["greedy0", Takes.GRAPH], quiet, given)
        else:
            origins = greedy0(self.graph, quiet, given)
            layouts, self.origins = layouts_of(self.graph, origins), origins
        if layouts is not None:
            self._keep(layouts)

    def _keep_plain(self) -> None:
        if self.origins is not None:
            self._keep(layouts_of(self.graph, self.origins))
            return
        own: LayoutDict = {}
        for sink in self.graph.sinks():
            own[sink.name] = ((sink.name, 0, 0, ((sink.size, 1, 1),)),) if sink.size else ()
        self._keep(own)

    def _keep(self, layouts: LayoutDict) -> None:
        """Check layouts, and keep them if they are the best ones so far."""
        found = evaluate(self.graph, layouts)
        score, best = found.score, self.best
        if found.violations or score is None:
            return
        if best is None or best.evaluation.score is None or score > best.evaluation.score:
            self.best = Secured(layouts, found)
