"""Limits of computations (time, memory, Ctrl-C, seed, threads), and progress reports.

A limit of memory applies to the private memory of the process (``VmData``); mapped files, such as
libraries, do not count.  It is enforced by the system (``RLIMIT_DATA``); before it is reached,
searches stop, and work that would not fit is refused.
"""

from __future__ import annotations

import math
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from numbers import Integral, Real
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any, Literal, TypeAlias

from layoutopt.base.errors import InputError, SizeError
from layoutopt.base.numbers import least, nearest

TAIL = 0.5  # largest share of the time reserved for steps after solving


class Stopped(StrEnum):
    """Reason why a computation ended."""

    FINISHED = "finished"
    TIME_LIMIT = "time limit"
    GAP_LIMIT = "gap limit"
    INTERRUPTED = "interrupted"
    SIZE_LIMIT = "size limit"
    MEMORY_LIMIT = "memory limit"


@dataclass(frozen=True)
class Progress:
    """One message from a running computation.

    Parameters
    ----------
    phase
        Current step, in a few words.
    seconds
        Seconds since the whole call began.
    objective, bound
        Best score and bound so far, in the instance's unit; ``None`` while unknown.
    """

    phase: str
    seconds: float
    objective: float | None = None
    bound: float | None = None

    @property
    def gap(self) -> float | None:
        """``|bound - objective| / max(|objective|, 1e-9)``; ``None`` if either is unknown."""
        if self.objective is None or self.bound is None:
            return None
        return abs(self.bound - self.objective) / max(abs(self.objective), 1e-9)


class Interrupt(Event):
    """A request to stop as soon as possible, at ``time.monotonic()`` or never."""

    at = math.inf
    in_use = False  # by a call in progress, whose progress callback is that of calls within

    def set(self) -> None:
        """Request to stop; later requests are ignored."""
        self.at = min(self.at, time.monotonic())
        super().set()


@dataclass
class Effort:
    """Remaining work of a turn in about seconds of a current CPU, counted, so deterministic."""

    left: float


@dataclass(frozen=True)
class Limits:
    """Limits of one call; its parts get the same or tighter limits.

    Parameters
    ----------
    deadline
        ``time.monotonic()`` at which to stop; infinity for no limit.
    interrupt
        Set by others to request a stop.
    gap
        Relative gap at which to stop; 0 for a proof of optimality.
    debt
        Certain loss outside the current problem, in its unit, 0 or more; it is subtracted
        from the objective to which the gap is relative.
    seed
        Random seed.
    workers
        Number of threads for a search.
    tell
        Callback for each :class:`Progress`, or ``None``.
    started
        ``time.monotonic()`` at the start of the call.
    effort
        Remaining work of the current turn of a method; ``None`` outside turns.
    full
        Set once memory has run out, also if some is freed later.
    """

    deadline: float = float("inf")
    interrupt: Interrupt = field(default_factory=Interrupt)
    gap: float = 0.0
    debt: int = 0
    seed: int = 0
    workers: int = 1
    tell: Callable[[Progress], None] | None = None
    started: float = field(default_factory=time.monotonic)
    effort: Effort | None = None
    full: Event = field(default_factory=Event)

    @property
    def left(self) -> float:
        """Remaining seconds, 0 or more."""
        return max(0.0, self.deadline - time.monotonic())

    @property
    def over(self) -> bool:
        """Whether to stop now."""
        return self.stopped is not None

    @property
    def stopped(self) -> Stopped | None:
        """Reason to stop now, or ``None``."""
        if self.interrupt.is_set():
            return Stopped.INTERRUPTED
        if time.monotonic() >= self.deadline:
            return Stopped.TIME_LIMIT
        if self.full.is_set() or memory_full():
            self.full.set()
            return Stopped.MEMORY_LIMIT
        return Stopped.TIME_LIMIT if self.counted <= 0 else None

    @property
    def lacking(self) -> str:
        """What a phase that did not end lacked, in words."""
        return f"not enough {'memory' if self.full.is_set() else f'time ({self.stopped})'}"

    @property
    def counted(self) -> float:
        """Remaining effort, infinite outside turns."""
        return math.inf if self.effort is None else self.effort.left

    def turn(self, effort: float) -> Limits:
        """Return limits for a turn of at most so much effort.

        Unlike limits of time, this does not make results depend on the machine.
        """
        return replace(self, effort=Effort(min(effort, self.counted)))

    def spend(self, effort: float) -> None:
        """Subtract work from the remaining effort of a turn."""
        if self.effort is not None:
            self.effort.left -= effort

    def close(self, objective: int, bound: int) -> bool:
        """Return whether ``bound - objective`` is within the relative gap, computed exactly.

        If this holds for all parts of a problem, and each has an objective of 0 or more, it holds
        for the problem.
        """
        earned = max(0, objective - self.debt)
        if bound <= objective or not self.gap or math.isinf(self.gap):
            return bound <= objective or (self.gap > 0 and earned > 0)
        # The gap is the user's decimal, such as 0.3, not the nearest double.
        return int(bound - objective) <= Fraction(str(self.gap)) * int(earned)

    def restated(
        self, objective: Callable[[float], float | None], bound: Callable[[float], float | None]
    ) -> Limits:
        """Return the same limits, with objective and bound of progress converted or left out."""

        def restated(message: Progress) -> Progress:
            low = None if message.objective is None else objective(message.objective)
            high = None if message.bound is None else bound(message.bound)
            return replace(message, objective=low, bound=high)

        return self._passing(restated)

    def steady(self, sense: Literal["min", "max"]) -> Limits:
        """Return the same limits, whose progress has the best objective and bound so far."""
        better, tighter = (max, min) if sense == "max" else (min, max)
        best: float | None = None
        bound: float | None = None

        def completed(message: Progress) -> Progress:
            nonlocal best, bound
            best = better((x for x in (best, message.objective) if x is not None), default=None)
            bound = tighter((x for x in (bound, message.bound) if x is not None), default=None)
            return replace(message, objective=best, bound=bound)

        return self._passing(completed)

    def _passing(self, change: Callable[[Progress], Progress]) -> Limits:
        tell = self.tell
        return self if tell is None else replace(self, tell=lambda message: tell(change(message)))

    def beside(self, constant: int) -> Limits:
        """Return the same limits for the rest of a problem, without a constant of the objective."""
        limits = self.restated(lambda x: x + constant, lambda x: x + constant)
        return replace(limits, debt=max(0, self.debt - constant))

    def per(self, unit: int) -> Limits:
        """Return the same limits for a problem whose numbers are multiples of ``unit``."""
        limits = self.restated(lambda x: x * unit, lambda x: x * unit)
        return replace(limits, debt=-(-self.debt // unit))

    def partial(self) -> Limits:
        """Return the same limits for a part, whose figures would mislead in progress reports."""
        return self.restated(lambda _: None, lambda _: None)

    def silent(self) -> Limits:
        """Return the same limits without progress reports."""
        return replace(self, tell=None)

    def within(self, seconds: float) -> Limits:
        """Return the same limits with a deadline in at most so many seconds."""
        return replace(self, deadline=min(self.deadline, time.monotonic() + seconds))

    def saving(self, seconds: float) -> Limits:
        """Return limits that reserve so many seconds, at most half of the remaining time."""
        if self.left == math.inf:
            return self
        return self.within(self.left - min(seconds, TAIL * self.left))

    def report(
        self, phase: str, objective: float | None = None, bound: float | None = None
    ) -> None:
        """Report progress, if there is a callback; raise CallbackError if it fails."""
        if self.tell is not None:
            try:
                self.tell(Progress(phase, time.monotonic() - self.started, objective, bound))
            except Exception as error:  # whatever a user's function raises
                raise CallbackError(self.interrupt, error) from error


class CallbackError(BaseException):
    """An exception of a progress callback, ``cause``, on its way past the handlers of others."""

    def __init__(self, interrupt: Interrupt, cause: Exception) -> None:
        self.interrupt, self.cause = interrupt, cause


class callbacks_raise:
    """Let exceptions of the call's progress callback, not those of enclosing calls, reach users."""

    def __init__(self, limits: Limits) -> None:
        self.interrupt = limits.interrupt

    def __enter__(self) -> None:
        self.first, self.interrupt.in_use = not self.interrupt.in_use, True

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self.interrupt.in_use = not self.first
        if self.first and isinstance(error, CallbackError) and error.interrupt is self.interrupt:
            cause = error.cause
            before = cause.__context__
            try:
                raise cause
            finally:
                cause.__context__ = before  # not the CallbackError


class SumOfParts:
    """Objective and bound of a sum whose parts are solved one by one.

    ``limits`` are those of all parts together; ``known`` has the objective of each part, ``None``
    while there is none, and its bound.
    """

    def __init__(self, limits: Limits, known: Iterable[tuple[int | None, int]]) -> None:
        self._limits, self._known = limits, list(known)
        self._open = sum(objective is None for objective, _ in self._known)
        self._objective = sum(objective or 0 for objective, _ in self._known)
        self._bound = sum(bound for _, bound in self._known)

    def limits_for(self, part: int) -> Limits:
        """Return limits whose messages speak of the sum while a part is solved."""
        objective, bound = self._known[part]
        others = None if self._open > (objective is None) else self._objective - (objective or 0)
        rest = self._bound - bound
        return self._limits.restated(
            lambda x: None if others is None else others + x, lambda x: rest + x
        )

    def settle(self, part: int, objective: int | None, bound: int) -> None:
        """Take in what a part was found to have."""
        before, least = self._known[part]
        self._open += (objective is None) - (before is None)
        self._objective += (objective or 0) - (before or 0)
        self._bound += bound - least
        self._known[part] = objective, bound


class Unlimited(Limits):
    """No limits, not even of memory: for short work that is wrong unless it is complete."""

    @property
    def stopped(self) -> None:
        """Never a reason to stop."""
        return None


LARGEST = 1e300  # of a gap, as solvers refuse infinity


def limited(
    time_limit: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> Limits:
    """Return the limits of a call that starts now, from users' arguments."""
    numbers: dict[str, Any] = {"time_limit": 0 if time_limit is None else time_limit, "gap": gap}
    for name, value in numbers.items():
        if isinstance(value, bool) or not issubclass(type(value), Real) or not value >= 0:
            raise InputError(f"{name} must be a number of 0 or more, got {value!r}")
    whole: Any = seed
    if isinstance(whole, bool) or not isinstance(whole, Integral):
        raise InputError(f"seed must be an integer, got {seed!r}")
    seed, workers = int(seed), least("workers", workers)  # NumPy's integers overflow
    if not (progress is None or callable(progress)):
        raise InputError(f"progress must be a function, not {type(progress).__name__}")
    begun = time.monotonic()
    lasting = math.inf if time_limit is None else nearest(time_limit)
    deadline = math.inf if lasting > threading.TIMEOUT_MAX else begun + lasting
    gap = min(nearest(gap), LARGEST)
    return Limits(deadline, gap=gap, seed=seed, workers=workers, tell=progress, started=begun)


@contextmanager
def interruptible(limits: Limits) -> Iterator[None]:
    """Turn a first Ctrl-C into a request to stop; a second one raises KeyboardInterrupt.

    The request is passed on to enclosing calls.  Only the main thread can do this, and only if the
    handler so far is one of Python.  Where Ctrl-C is ignored, only other signals make the request.
    """
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if main else None
    if before is None:
        yield
        return
    stop = _Stop(limits, before)
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is stop:
            signal.signal(signal.SIGINT, before)


class _Stop:
    """Handler of a first Ctrl-C, or of another signal that is to stop the computation."""

    def __init__(self, limits: Limits, before: Any) -> None:
        outer = before if isinstance(before, _Stop) else None
        self.interrupts: list[Interrupt] = [limits.interrupt, *(outer.interrupts if outer else ())]
        self.first: Any = outer.first if outer else before  # handler before all of them

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGINT or self.first != signal.SIG_IGN:
            for interrupt in self.interrupts:
                interrupt.set()
            signal.signal(signal.SIGINT, self.first)


RESERVE = 128 * 2**20  # searches stop if fewer bytes are free; the rest is needed for the result

RESERVE_SHARE, MOST_RESERVE = 0.1, 2**30
"""Share of a memory limit reserved for the result, and its largest number of bytes."""

LOOK = 0.05  # seconds between two measurements

SMALL_WORK = 2**20
"""Work of so many bytes or fewer is never refused; measuring takes longer than the work."""

GROUPS = Path("/sys/fs/cgroup")  # Linux's files of memory limits of containers
ENDLESS = 2**60  # limits of at least so many bytes mean that a container has no limit
_looked: list[Any] = [0.0, False]  # time and result of the last measurement by :func:`memory_full`


def require(needed: float, what: str) -> None:
    """Raise SizeError if work, named ``what``, needs more bytes than are available."""
    free = None if needed <= SMALL_WORK else available_memory()
    if free is not None and needed > free:
        left = _memory_left()
        whose = "the memory limit leaves" if left is not None and left <= free else ""
        raise SizeError(
            f"{what} needs about {needed / 2**30:.3g} GiB; {whose or 'this machine has'} "
            f"{free / 2**30:.3g} GiB{'' if whose else ' free'}"
        )


def fits_memory(needed: float) -> bool:
    """Return whether work of about so many bytes fits into memory."""
    free = available_memory()
    return free is None or needed <= free


def available_memory() -> int | None:
    """Return the bytes available to this process; None if unknown."""
    known = [size for size in (_machine(), _container(), _memory_left()) if size is not None]
    return max(min(known), 0) if known else None


def memory_full() -> bool:
    """Return whether so little memory is left that searches should stop."""
    now = time.monotonic()
    if now - _looked[0] >= LOOK:
        _looked[:] = now, _memory_full()
    return bool(_looked[1])


def _memory_full() -> bool:
    free = [size for size in (_machine(), _container()) if size is not None]
    if free and min(free) < RESERVE:
        return True
    left, limit = _memory_left(), _memory_limit()
    return (
        left is not None and limit is not None and left < min(RESERVE_SHARE * limit, MOST_RESERVE)
    )


@contextmanager
def memory_limit(size: int | str | None) -> Iterator[None]:
    """Limit the memory of this process in a ``with`` block, bytes already allocated included.

    Work that would not fit raises :class:`~layoutopt.base.errors.SizeError`; searches stop with
    their best solution when nine tenths are used.

    Parameters
    ----------
    size
        Bytes, or a string such as ``"512M"`` or ``"4G"``, in powers of 1024; ``None``: no limit.

    Raises
    ------
    InputError
        If the size is invalid or already exceeded, or the system does not support limits.

    Examples
    --------
    >>> import layoutopt
    >>> with layoutopt.memory_limit("4G"):
    ...     pass
    """
    with _changing:
        before = set_limit(size)
        own = None if size is None else parse_memory(size)
        _limits.extend([own] if _limits else [before, own])
    try:
        yield
    finally:
        with _changing:
            _limits.remove(own)
            put_limit(min((limit for limit in _limits if limit is not None), default=None))
            if len(_limits) == 1:
                _limits.clear()


_changing = threading.Lock()
_limits: list[int | None] = []
"""While there are blocks with limits, in any thread: the limit outside of them, and theirs."""


def set_limit(size: int | str | None) -> int | None:
    """Set a limit, unless the present one is lower, and return the previous limit."""
    before = _memory_limit()
    if size is None:
        return before
    wanted, now = parse_memory(size), memory_taken()
    if now is None or _resource() is None:
        raise InputError("this system does not support memory limits")
    if now >= wanted:
        raise InputError(f"the memory limit {size} is exceeded already: {now >> 20} MiB are in use")
    put_limit(wanted if before is None else min(wanted, before))
    return before


def put_limit(limit: int | None) -> None:
    """Set this process's own limit, as far as the system allows."""
    system = _resource()
    if system is not None:
        most = system.getrlimit(system.RLIMIT_DATA)[1]
        above = limit is None or (most != system.RLIM_INFINITY and limit > most)
        soft = most if above else limit
        system.setrlimit(system.RLIMIT_DATA, (soft, most))
    _looked[:] = 0.0, False


def memory_taken() -> int | None:
    """Return the private memory of this process in bytes; other systems than Linux: its peak."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[5])
    except (OSError, IndexError):
        system = _resource()
        return None if system is None else int(system.getrusage(system.RUSAGE_SELF).ru_maxrss)
    return pages * os.sysconf("SC_PAGE_SIZE")


def parse_memory(given: str | int) -> int:
    """Parse a number of bytes: ``"512M"``, ``"2G"``, ``"1.5GiB"``, in powers of 1024."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", str(given).strip(), re.IGNORECASE)
    size = 0.0
    if found is not None:
        size = float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " ")
    if not 1 <= size < 2**62:
        raise InputError(f"invalid size of memory {given!r}; valid are, for example, 2G and 512M")
    return int(size)


def _memory_left() -> int | None:
    """Return the bytes that this process's own limit leaves; None without a limit."""
    limit, now = _memory_limit(), memory_taken()
    return None if limit is None or now is None else limit - now


def _memory_limit() -> int | None:
    """Return this process's own limit in bytes, if any."""
    system = _resource()
    if system is None:
        return None
    soft: int = system.getrlimit(system.RLIMIT_DATA)[0]
    return None if soft == system.RLIM_INFINITY else soft


def _resource() -> Any:
    """Return the module ``resource``, which not all systems have."""
    try:
        import resource
    except ImportError:
        return None
    return resource


def _machine() -> int | None:
    """Return the free bytes of the machine."""
    try:
        with open("/proc/meminfo") as table:
            for line in table:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    names: dict[str, Any] = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" in names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _container() -> int | None:
    """Return the bytes that the container's limit leaves; page cache counts as free."""
    for most, now, stat in (
        ("memory.max", "memory.current", "memory.stat"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
    ):
        try:
            limit, used = ((GROUPS / name).read_text().strip() for name in (most, now))
            if not limit.isdecimal() or int(limit) > ENDLESS:
                return None
            rows = dict(line.split() for line in (GROUPS / stat).read_text().splitlines())
            files = sum(int(rows.get(name, 0)) for name in ("active_file", "inactive_file"))
            return int(limit) - int(used) + files
        except (OSError, ValueError):
            continue
    return None


Point: TypeAlias = tuple[float, float | None, float | None]
"""Seconds since the start of the call, best score and best bound so far."""

POINTS = 200  # largest number of points


class Trace:
    """Recorder of progress, a ``progress`` callback of :func:`layoutopt.unwinding.unwind`.

    ``heard`` has the points that improved score or bound, with the best of both so far; it is
    thinned evenly if there are many.
    """

    def __init__(self) -> None:
        self.heard: list[Point] = []
        self.every, self.left = 1, 0
        self.score: float | None = None
        self.bound: float | None = None

    def __call__(self, message: Progress) -> None:
        """Record a message that improves score or bound."""
        before = self.score, self.bound
        score, bound = message.objective, message.bound
        if score is not None and (self.score is None or score > self.score):
            self.score = score
        if bound is not None and (self.bound is None or bound < self.bound):
            self.bound = bound
        if (self.score, self.bound) == before:
            return
        self.left -= 1
        if self.left <= 0:
            self.left = self.every
            self.heard.append((message.seconds, self.score, self.bound))
        if len(self.heard) == 2 * POINTS:
            self.heard = self.heard[::2]
            self.every *= 2

    def points(self, seconds: float, result: Any) -> tuple[Point, ...]:
        """Return the recorded points, at most :data:`POINTS`; the last one is the result's.

        ``seconds`` are those of the whole call; ``result`` is an answer with ``objective`` and
        ``bound``.
        """
        known = result.objective, result.bound
        score, bound = (None if x is None else float(x) for x in known)
        step = -(-len(self.heard) // (POINTS - 1)) or 1
        return (*self.heard[::step], (seconds, score, bound))
