"""What commands say of forged results, missing files, odd names and wrong addresses."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from benchmarks.figures import FIGURES
from layoutopt import Graph, unwind, write_instance, write_result
from layoutopt.bench import executors
from layoutopt.cli import main
from tests.cli.conftest import Run


@pytest.fixture
def figure(tmp_path: Path) -> Path:
    """Return the file of an instance of which greedy0 misses the optimum, 130."""
    path = tmp_path / "figure.json"
    write_instance(FIGURES["chained_calls_copies"](), path)
    return path


def test_names_cannot_steer_a_terminal(run: Run, tmp_path: Path) -> None:
    """No command sends what a name holds to the terminal as it is."""
    graph = Graph("a\x1b[31m", "b\x1b[0m\nc")
    x, t = graph.sink((2,), name="x\x1b]0;title\x07"), graph.source((2,), name="t\u202e")
    graph.valued_pair(x, t, 1)
    path, result = tmp_path / "odd.json", tmp_path / "result.json"
    write_instance(graph, path)
    write_result(unwind(graph), result)
    other = tmp_path / "other.json"
    write_result(unwind(FIGURES["chained_calls_copies"]()), other)
    for words in (
        ("solve", path),
        ("compare", "--pairs", path),
        ("show", path),
        ("show", result),
        ("check", path, result),
        ("check", path, other),
        ("explain", path, "--sink", x.name),
        ("explain", path, "--sink", "\x1b"),
        ("compare", path, "--solver", "greedy0", "--markdown", "-"),
    ):
        ran = run(*words)
        assert (ran.out + ran.err).replace("\n", "").isprintable(), words


@pytest.mark.parametrize("kind", ["refused", "silent", "no port", "no scheduler file", "scheme"])
def test_a_wrong_address_is_told_soon(
    run: Run, figure: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, within seconds, whatever is wrong with it."""
    pytest.importorskip("distributed", reason="Dask is not installed")
    assert executors.GREETING <= 5
    monkeypatch.setattr(executors, "GREETING", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        address = {
            "refused": "tcp://127.0.0.1:1",
            "silent": f"tcp://127.0.0.1:{port}",
            "no port": "nope",
            "no scheduler file": str(figure),
            "scheme": "tls://127.0.0.1:1",
        }[kind]
        begun = time.monotonic()
        ran = run("bench", "run", figure, "--store", tmp_path / "s.sqlite", "--dask", address)
    assert ran.code == 2
    assert ran.err.startswith(f"layoutopt: --dask {address}: ")
    assert ran.err.count("\n") == 1
    assert ("no scheduler answers" in ran.err) == (kind != "no scheduler file")
    assert time.monotonic() - begun < 25  # of which importing Dask may take much


def test_places_of_errors_are_those_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the folder is called that it, or a caller, lies in."""
    monkeypatch.setattr(main, "HOUSE", Path("/elsewhere/layoutopt"))
    try:
        raise KeyError("x")
    except KeyError as error:
        assert main._described(error) == "KeyError: 'x'"  # noqa: SLF001
