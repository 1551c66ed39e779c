from __future__ import annotations

from pathlib import Path

import pytest

from layoutopt import Graph, write_instance
from tests.cli.conftest import run
from tests.support import hard_graph

__all__ = ["run"]


@pytest.fixture(scope="session")
def easy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an instance that is solved at once."""
    graph = Graph("easy")
    x = graph.sink((4,), name="x")
    graph.valued_pair(x, graph.source((4,), name="s"), 2)
    path = tmp_path_factory.mktemp("easy") / "easy.json"
    write_instance(graph, path)
    return path


@pytest.fixture(scope="session")
def hard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an instance that takes much longer to prove than these tests wait."""
    path = tmp_path_factory.mktemp("hard") / "hard.json"
    write_instance(hard_graph(0, 24), path)
    return path
