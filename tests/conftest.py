"""Settings of all tests."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from layoutopt import registry
from layoutopt.conversion.backends import BACKENDS
from layoutopt.conversion.rules.registry import OPERATORS
from layoutopt.tiles.hooks import HOOKS
from layoutopt.tiles.rules import RULES
from tests.hooked import own_hooks

# The same examples on every machine, however slow, and nothing left on disk.
settings.register_profile("tests", deadline=None, derandomize=True, database=None)
settings.load_profile("tests")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in background jobs of a script
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Return one more than there are processors, as some tests wait, unless xdist is told."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    return (len(allowed) or os.cpu_count() or 1) + 1


SLOW = Path(__file__).with_name("slow.txt")
"""Names of the tests, notebooks included, that take half a second or more.

``long`` stands behind those that take :data:`LONG` or more.
"""

LONG = 3.0
"""Seconds for all parameters of a test, beside other tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes the list of slow tests."""
    parser.addoption("--list-slow", action="store_true", help=f"write {SLOW.name} anew")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow and long tests; let garbage be looked for less often, as all of this stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    slow = marked()
    for item in items:
        for mark in slow.get(item.nodeid.partition("[")[0], ()):
            item.add_marker(mark)


def marked() -> dict[str, list[str]]:
    """Return the marks of slow tests by name."""
    lines = [line.split() for line in SLOW.read_text().splitlines()]
    return {name: ["slow", *marks] for name, *marks in lines}


class Seconds(Counter[str]):
    """Seconds that tests took, with all their parameters."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a step of a test."""
        self[report.nodeid.partition("[")[0]] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the list, in which tests that did not run stay."""
        found = {name: marks[1:] for name, marks in marked().items() if name not in self}
        for name, seconds in self.items():
            if seconds >= 0.5:
                found[name] = ["long"] if seconds >= LONG else []
        lines = sorted(" ".join([name, *marks]) for name, marks in found.items())
        SLOW.write_text("".join(f"{line}\n" for line in lines))


def pytest_configure(config: pytest.Config) -> None:
    """Measure where it is asked for, in the process that hears of all tests."""
    if config.getoption("--list-slow") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Seconds())


TABLES: tuple[dict[str, Any], ...] = (
    *(OPERATORS, BACKENDS, HOOKS, RULES),
    registry._registered,  # noqa: SLF001  # there is no way to take a solver away
)
"""What users add to by decorators."""


@contextmanager
def registered_before() -> Iterator[None]:
    """Forget what is registered meanwhile."""
    before = [dict(table) for table in TABLES]
    yield
    for table, entries in zip(TABLES, before, strict=True):
        if table != entries:
            table.clear()
            table.update(entries)


@pytest.fixture(autouse=True)
def _nothing_stays_registered() -> Iterator[None]:
    """What a test registers, others do not see, in whatever order they run."""
    with registered_before():
        yield


@pytest.fixture
def hooks() -> Iterator[None]:
    """Know the user's hooks of :mod:`tests.hooked`, and forget those that a test adds."""
    with own_hooks():
        yield
