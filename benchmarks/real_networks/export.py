"""The networks, and one function that writes any of them with an exporter."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray

NEWEST = 23
"""The newest operator set that exporters write."""

TRANSLATORS = (("torchscript", 17), ("dynamo", 20), ("tf2onnx", 17), ("tf2onnx, not optimised", 17))
"""Exporters, each with the operator set in which it writes."""

PYTORCH = (
    *("mobilenetv2", "mobilenetv3", "efficientnet", "shufflenetv2", "convnext", "vit", "swin"),
    *("levit", "efficientformer", "mobilevit", "cbam", "deeplabv3", "segformer", "detr", "sam"),
    *("bert", "deberta", "gpt2", "llama", "t5", "clip", "whisper", "wav2vec2", "encodec"),
    *("vits", "mamba", "crnn"),
)

AS_NEWEST = ("vit", "gpt2", "llama", "bert")
"""Networks that are written in the newest operator set, too."""

ONLY_TORCHSCRIPT = ("vits",)
"""Networks that PyTorch's newer exporter does not take, or writes in a way that cannot be run."""

ONLY_DYNAMO = ("whisper",)
"""Networks that the older one does not take."""

KERAS = (
    *("mobilenetv2", "mobilenetv3", "efficientnet", "resnet50", "densenet121", "convnext"),
    *("unet", "unet_layer_norm", "vit", "crnn"),
)

FLAX = (
    *("resnet", "mobilenetv3", "densenet", "convnext", "unet", "vit", "mixer", "gpt"),
    *("resnet_any_batch", "convnext_any_batch", "vit_any_batch"),
)


@dataclass(frozen=True)
class Export:
    """A network as one exporter writes it.

    Parameters
    ----------
    framework
        ``"pytorch"``, ``"keras"`` or ``"flax"``.
    network
        Its name in the framework's table of networks.
    exporter, opset
        What writes it, and in which operator set.
    """

    framework: str
    network: str
    exporter: str
    opset: int

    @property
    def name(self) -> str:
        """A name that is a file's name, too."""
        exporter = self.exporter.replace(", not optimised", "-raw")
        return f"{self.framework}-{self.network}-{exporter}-{self.opset}"


def exports() -> list[Export]:
    """Return all exports of PyTorch and Keras."""
    torchscript, dynamo, *tf2onnx = TRANSLATORS
    found = []
    for network in PYTORCH:
        if network not in ONLY_DYNAMO:
            found.append(Export("pytorch", network, *torchscript))
        if network not in ONLY_TORCHSCRIPT:
            found.append(Export("pytorch", network, *dynamo))
        if network in AS_NEWEST:
            found.append(Export("pytorch", network, "dynamo", NEWEST))
    found += [Export("keras", network, *each) for network in KERAS for each in tf2onnx]
    return found


def write(export: Export, folder: Path) -> None:
    """Write a network as ``NAME.onnx``, and inputs that it takes as ``NAME.npz``."""
    import numpy as np
    import onnx

    if export.framework == "pytorch":
        from benchmarks.real_networks.pytorch import exported
    elif export.framework == "flax":
        from benchmarks.real_networks.flax import exported
    else:
        from benchmarks.real_networks.keras import exported
    path = folder / f"{export.name}.onnx"
    arrays = exported(export, path)
    inputs = _named(onnx.load(path), arrays)
    np.savez(path.with_suffix(".npz"), allow_pickle=False, **inputs)


def _named(
    model: onnx.ModelProto, arrays: list[NDArray[np.generic]]
) -> dict[str, NDArray[np.generic]]:
    """Return arrays by the names of a network's inputs."""
    constants = {each.name for each in model.graph.initializer}
    names = [each.name for each in model.graph.input if each.name not in constants]
    return dict(zip(names, arrays, strict=True))
