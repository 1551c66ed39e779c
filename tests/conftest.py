"""Settings of all tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from layoutopt import registry
from layoutopt.conversion.backends import BACKENDS
from layoutopt.conversion.rules.registry import OPERATORS
from layoutopt.tiles.hooks import HOOKS, READS
from layoutopt.tiles.rules import RULES

# The same examples on every machine, however slow, and nothing left on disk.
settings.register_profile("tests", deadline=None, derandomize=True, database=None)
settings.load_profile("tests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark notebooks as slow."""
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker(pytest.mark.slow)


TABLES: tuple[dict[str, Any], ...] = (
    *(OPERATORS, BACKENDS, HOOKS, READS, RULES),
    registry._registered,  # noqa: SLF001  # there is no way to take a solver away
)
"""What users add to by decorators."""


@pytest.fixture(autouse=True)
def _nothing_stays_registered() -> Iterator[None]:
    """What a test registers, others do not see, in whatever order they run."""
    before = [dict(table) for table in TABLES]
    yield
    for table, entries in zip(TABLES, before, strict=True):
        if table != entries:
            table.clear()
            table.update(entries)
