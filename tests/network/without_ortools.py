"""A pytest plugin that makes OR-Tools impossible to import.

``pytest -p tests.network.without_ortools tests/network`` runs tests as if it were not installed.
"""

from __future__ import annotations

import sys

import pytest

sys.modules["ortools"] = None  # type: ignore[assignment]  # so that importing it fails


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is about CP-SAT itself."""
    about = [item for item in items if item.get_closest_marker("cpsat") or "cpsat" in item.name]
    config.hook.pytest_deselected(items=about)
    items[:] = [item for item in items if item not in about]
