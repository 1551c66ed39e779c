"""Without an extra, whatever needs it says in one line how it is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from layoutopt.base.errors import needed
from tests.support import refused

NETWORK = Path(__file__).parents[1] / "instances/conversion/residual.onnx"
FIGURE = Path(__file__).parents[1] / "instances/figures/single_pair.json"

WITHOUT = (
    "import sys; sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(',')));"
    "from layoutopt.cli.main import main; sys.argv[0] = 'layoutopt'; main()"
)

COMMANDS = {
    "convert net.onnx": ("onnx", "net.onnx: reading a network needs onnx"),
    "check net.onnx net.onnx --certificate c.json": ("onnx", "reading a network needs onnx"),
    "solve net.onnx": ("onnx", "net.onnx: reading a network needs onnx"),
    "show net.onnx": ("onnx", "net.onnx: reading a network needs onnx"),
    "import net.onnx -o -": ("onnx", "net.onnx: reading a network needs onnx"),
    "verify net.onnx --backend nhwc": ("onnx", "net.onnx: reading a network needs onnx"),
    "convert net.onnx --check": ("onnxruntime", "running a network needs onnxruntime"),
    "convert net.onnx --peers": ("onnxruntime", "running a network needs onnxruntime"),
    "show g.json --png g.png": ("matplotlib", "a picture as PNG needs matplotlib"),
    "bench run g.json --dask 127.0.0.1:1": ("distributed", "--dask needs distributed"),
}
EXTRA = {"onnx": "onnx", "onnxruntime": "onnx", "matplotlib": "plot", "distributed": "dask"}


def run(folder: Path, without: str, words: str) -> subprocess.CompletedProcess[str]:
    """Return what a command says where a package is missing."""
    command = [sys.executable, "-c", WITHOUT, without, *words.split()]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, timeout=120, check=False
    )


@pytest.mark.parametrize("words", COMMANDS)
def test_commands_without_an_extra(words: str, tmp_path: Path) -> None:
    package, told = COMMANDS[words]
    shutil.copy(NETWORK, tmp_path / "net.onnx")
    shutil.copy(FIGURE, tmp_path / "g.json")
    if words.startswith("check"):
        assert run(tmp_path, "none", "convert net.onnx --certificate c.json -q").returncode == 0
    ran = run(tmp_path, package, words)
    assert ran.returncode == 2, ran.stderr
    assert ran.stdout == ""
    line = ran.stderr.splitlines()[-1]
    assert told in line
    assert line.endswith(f'pip install ".[{EXTRA[package]}]" in a clone of layoutopt')
    assert "Traceback" not in ran.stderr


def test_a_package_that_is_there_but_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why it cannot be imported is told, too."""

    def broken(_name: str) -> None:
        raise ImportError("libgomp.so.1 is missing")

    monkeypatch.setattr("layoutopt.base.errors.import_module", broken)
    with refused("running needs onnxruntime (libgomp.so.1 is missing), an extra"):
        needed("onnxruntime", "running")
