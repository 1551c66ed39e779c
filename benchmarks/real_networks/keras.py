"""Networks of Keras with random weights, channels last, written by tf2onnx."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow
from keras import layers
from tf2onnx import convert, optimizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from benchmarks.real_networks.export import Export

SIDE = 64
"""Pixels of an image's side."""


def exported(export: Export, path: Path) -> list[NDArray[np.generic]]:
    """Write a network to a file, and return inputs that it takes."""
    keras.utils.set_random_seed(0)
    network = NETWORKS[export.network]()
    for layer in network.layers:
        if isinstance(layer, layers.Normalization):  # whose tensors tf2onnx takes for inputs
            layer.mean, layer.variance = map(
                keras.ops.convert_to_numpy, (layer.mean, layer.variance)
            )
    [given] = network.inputs
    example = tensorflow.random.uniform((1, *given.shape[1:]))
    signature = [tensorflow.TensorSpec(example.shape, tensorflow.float32, name="x")]
    called = tensorflow.function(lambda x: network(x, training=False))
    if export.exporter != "tf2onnx":
        optimizer.optimize_graph = lambda graph, *rest, **options: graph
    convert.from_function(
        called, input_signature=signature, opset=export.opset, output_path=str(path)
    )
    return [example.numpy()]


def application(name: str, **options: Any) -> Callable[[], Any]:
    """Return what makes a network of those that Keras has."""

    def made() -> Any:
        kind = getattr(keras.applications, name)
        return kind(weights=None, input_shape=(SIDE, SIDE, 3), classes=10, **options)

    return made


def unet(normalise: Callable[[], Any]) -> Any:
    """Return a U-Net with a normalisation behind each convolution."""

    def block(x: Any, channels: int) -> Any:
        for _ in range(2):
            x = layers.Conv2D(channels, 3, padding="same")(x)
            x = layers.Activation("swish")(normalise()(x))
        return x

    given = x = layers.Input((32, 32, 3))
    kept = []
    for channels in (8, 16):
        x = block(x, channels)
        kept.append(x)
        x = layers.MaxPooling2D()(x)
    x = block(x, 24)
    for channels, other in zip((16, 8), reversed(kept), strict=True):
        x = layers.Conv2DTranspose(channels, 2, strides=2, padding="same")(x)
        x = block(layers.Concatenate()([x, other]), channels)
    return keras.Model(given, layers.Conv2D(3, 1, activation="softmax")(x))


def vit() -> Any:
    """Return a small vision transformer."""
    given = layers.Input((32, 32, 3))
    x = layers.Reshape((16, 32))(layers.Conv2D(32, 8, strides=8)(given))
    for _ in range(3):
        y = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.MultiHeadAttention(4, 8)(y, y)])
        y = layers.Dense(64, activation="swish")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(32)(y)])
    return keras.Model(given, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))


def crnn() -> Any:
    """Return convolutions and a recurrent network that read a line of text in an image."""
    given = layers.Input((16, 40, 1))
    x = layers.Conv2D(8, 3, padding="same", activation="relu")(given)
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(layers.MaxPooling2D()(x))
    x = layers.Permute((2, 1, 3))(layers.MaxPooling2D((2, 1))(x))
    x = layers.Bidirectional(layers.LSTM(8, return_sequences=True))(layers.Reshape((20, 64))(x))
    return keras.Model(given, layers.Dense(11, activation="softmax")(x))


NETWORKS: dict[str, Callable[[], Any]] = {
    "mobilenetv2": application("MobileNetV2", alpha=0.35),
    "mobilenetv3": application("MobileNetV3Small"),
    "efficientnet": application("EfficientNetB0"),
    "resnet50": application("ResNet50"),
    "densenet121": application("DenseNet121"),
    "convnext": application("ConvNeXtTiny"),
    "unet": lambda: unet(layers.BatchNormalization),
    "unet_layer_norm": lambda: unet(layers.LayerNormalization),
    "vit": vit,
    "crnn": crnn,
}
"""Networks by name, each made by a call."""
