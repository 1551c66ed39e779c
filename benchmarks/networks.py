"""The nine networks that the ``onnx`` wheel ships.

Their weights are stubs; shapes are all that layouts depend on.
"""

from __future__ import annotations

from pathlib import Path

NAMES = (
    *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50"),
    *("shufflenet", "squeezenet", "vgg19", "zfnet512"),
)


def folder() -> Path:
    """Return where the ``onnx`` wheel keeps its networks."""
    import onnx

    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
