"""The nine networks that the ``onnx`` wheel ships.

Their weights are stubs; shapes are all that layouts depend on.
"""

from __future__ import annotations

from pathlib import Path


def files() -> dict[str, Path]:
    """Return the networks' files by name."""
    import onnx

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return {path.stem.removeprefix("light_"): path for path in sorted(folder.glob("light_*.onnx"))}
