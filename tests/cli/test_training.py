"""The option that turns a network into its training step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layoutopt.io.instance import read_instance
from layoutopt.onnx.read import read_onnx
from tests.cli.conftest import Run
from tests.onnx.networks import model, node, save


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """Return a network of one product: its Adam step earns 600 for x, and 1920 for w."""
    constants = {"w": np.zeros((3, 4), np.float32)}
    return save(model([node("MatMul", "x w")], {"x": (2, 3)}, constants=constants), tmp_path)


def test_import_writes_the_step_beside_the_network(run: Run, network: Path) -> None:
    assert run("import", network, "--training", "adam").code == 0
    step = read_instance(network.with_name("net-adam.json"))
    assert step == read_onnx(network, training="adam")
    assert len(step.sinks()) == 4  # x, w and two states


def test_every_command_reads_the_step(run: Run, network: Path) -> None:
    """Solve, check, compare and show speak of the same graph."""
    given = ("--training", "adam")
    target = network.with_name("result.json")
    assert "2,520" in run("solve", network, *given, "--json", target).out
    assert run("check", network, target, *given).code == 0
    assert run("check", network, target).code != 0
    assert "2520" in run("compare", network, *given, "--quiet", "--json", "-").out
    assert "net-adam" in run("show", network, *given).out


@pytest.mark.parametrize("command", ["import", "solve", "compare", "show"])
def test_unknown_optimiser(run: Run, network: Path, command: str) -> None:
    found = run(command, network, "--training", "lion")
    assert found.code == 2
    assert "'lion'; allowed: sgd, momentum, adam" in found.err
    assert len(found.err.splitlines()) == 1
