"""Instances of the IOPDDL contest as networks."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from layoutopt.base.errors import InputError
from layoutopt.network import Network, solve
from layoutopt.network.iopddl import read

NEVER = 10**18

PROBLEM: dict[str, Any] = {
    "name": "small",
    "nodes": {
        "intervals": [[0, 2], [1, 4], [3, 3], [2, 5]],
        "costs": [[4, 7], [1, 0, NEVER], [3], [2, 9]],
        "usages": [[6, 2], [5, 9, 1], [7], [5, 3]],
    },
    "edges": {"nodes": [[1, 0], [2, 3]], "costs": [[1, 5, NEVER, 0, 2, 2], [1, 4]]},
    "usage_limit": 10,
}


def _written(path: Path, problem: Any) -> Path:
    text = json.dumps({"problem": problem}).encode()
    text = b"\xef\xbb\xbf" * (path.stem == "marked") + text
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "marked.json"])
def test_network_is_the_problem(tmp_path: Path, name: str) -> None:
    """Costs, what is forbidden, and a row for each largest set of live nodes."""
    network = read(_written(tmp_path / name, PROBLEM))
    assert network.name == "small"
    assert [usage.names for usage in network.usages] == [("t=1", "t=2")]
    found = solve(network)  # t=1: nodes 0 and 1; t=2: 1 and 3
    assert found.status == "optimal"
    assert found.choice is not None
    assert found.choice.tolist() == [1, 0, 0, 0]
    assert found.objective == 7 + 1 + 3 + 2 + 5 + 1


def test_text_ends_with_the_problem(tmp_path: Path) -> None:
    """A file that was cut off, or goes on, is told so."""
    path = _written(tmp_path / "a.json", PROBLEM)
    whole = path.read_bytes()
    for text, why in (whole[:80], "too early"), (whole + b" x", "goes on after the last }"):
        path.write_bytes(text)
        with pytest.raises(InputError, match=why):
            read(path)


def changed_file(change: dict[str, Any]) -> Network:
    """Return the network of a problem in which something is changed."""
    with tempfile.TemporaryDirectory() as folder:
        return read(_written(Path(folder, "a.json"), PROBLEM | change))
