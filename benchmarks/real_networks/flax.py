"""Networks of Flax with random weights, channels last, written by jax2onnx."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import onnx
from flax import nnx
from jax import numpy as jnp
from jax2onnx import to_onnx

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.real_networks.export import Export

RANDOM = nnx.Rngs(0)
IMAGE = (64, 64, 3)
Layer = Callable[[Any], Any]


def exported(export: Export, path: Path) -> list[NDArray[np.generic]]:
    """Write a network to a file, and return inputs that it takes."""
    name, any_batch, _ = export.network.partition("_any_batch")
    make, shape, kind = NETWORKS[name]
    size: Any = "B" if any_batch else 1
    given = (size, *shape) if kind is np.float32 else jax.ShapeDtypeStruct((size, *shape), kind)
    onnx.save(to_onnx(make(), [given], opset=export.opset), path)
    draw = np.random.default_rng(0)
    values = draw.random((2 if any_batch else 1, *shape)) * (1 if kind is np.float32 else WORDS)
    return [values.astype(kind)]


def conv(inputs: int, outputs: int, size: int = 3, stride: int = 1, **options: Any) -> Layer:
    """Return a convolution in two dimensions."""
    made: Layer = nnx.Conv(inputs, outputs, (size, size), stride, rngs=RANDOM, **options)
    return made


def norm(channels: int) -> Layer:
    """Return a batch normalisation with known statistics."""
    made: Layer = nnx.BatchNorm(channels, use_running_average=True, rngs=RANDOM)
    return made


def linear(inputs: int, outputs: int) -> Layer:
    """Return a linear layer."""
    made: Layer = nnx.Linear(inputs, outputs, rngs=RANDOM)
    return made


def layer_norm(channels: int) -> Layer:
    """Return a normalisation of the last axis."""
    made: Layer = nnx.LayerNorm(channels, rngs=RANDOM)
    return made


def chain(*layers: Layer) -> Layer:
    """Return layers one behind the other."""

    def call(x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return x

    return call


def with_skip(*layers: Layer, skip: Layer = lambda x: x) -> Layer:
    """Return layers whose result is added to what they are given."""
    inner = chain(*layers)
    return lambda x: skip(x) + inner(x)


def pool(x: Any) -> Any:
    """Halve the sides of images."""
    return nnx.max_pool(x, window_shape=(2, 2), strides=(2, 2))


def head(channels: int) -> Layer:
    """Return a classifier of what images are on average."""
    return chain(lambda x: x.mean((1, 2)), linear(channels, 10))


def resnet() -> Layer:
    """Return a small ResNet."""

    def block(inputs: int, outputs: int, stride: int) -> Layer:
        body = (conv(inputs, outputs, 3, stride), norm(outputs), nnx.relu, conv(outputs, outputs))
        skip = (lambda x: x) if inputs == outputs else conv(inputs, outputs, 1, stride)
        return chain(with_skip(*body, norm(outputs), skip=skip), nnx.relu)

    sizes = ((16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1))
    stem = (conv(3, 16, 7, 2), norm(16), nnx.relu, pool)
    return chain(*stem, *(block(*each) for each in sizes), head(64))


def mobilenet() -> Layer:
    """Return a small MobileNet of the third version."""

    def excited(channels: int) -> Layer:
        reduced, back = conv(channels, channels // 4, 1), conv(channels // 4, channels, 1)
        return lambda x: (
            x * jax.nn.hard_sigmoid(back(nnx.relu(reduced(x.mean((1, 2), keepdims=True)))))
        )

    def block(inputs: int, outputs: int, stride: int) -> Layer:
        wide, swish = 4 * inputs, jax.nn.hard_swish
        depthwise = conv(wide, wide, 3, stride, feature_group_count=wide)
        body = [conv(inputs, wide, 1), norm(wide), swish, depthwise, norm(wide), swish]
        body += [excited(wide), conv(wide, outputs, 1), norm(outputs)]
        return with_skip(*body) if (inputs, stride) == (outputs, 1) else chain(*body)

    sizes = ((8, 8, 1), (8, 16, 2), (16, 16, 1), (16, 24, 2), (24, 24, 1))
    return chain(conv(3, 8, 3, 2), jax.nn.hard_swish, *(block(*each) for each in sizes), head(24))


def densenet() -> Layer:
    """Return a small DenseNet."""

    def layer(channels: int) -> Layer:
        inner = chain(norm(channels), nnx.relu, conv(channels, 8))
        return lambda x: jnp.concatenate([x, inner(x)], -1)

    stage = [layer(16), layer(24), layer(32), norm(40), nnx.relu, conv(40, 16, 1), pool]
    return chain(conv(3, 16, 3, 2), *stage, *stage, head(16))


def convnext() -> Layer:
    """Return a small ConvNeXt."""

    def block(channels: int) -> Layer:
        depthwise = conv(channels, channels, 7, feature_group_count=channels)
        wide = (linear(channels, 4 * channels), nnx.gelu, linear(4 * channels, channels))
        return with_skip(depthwise, layer_norm(channels), *wide)

    stem, down = (conv(*each, padding="VALID") for each in ((3, 16, 4, 4), (16, 32, 2, 2)))
    first = (stem, layer_norm(16), block(16), block(16), layer_norm(16))
    return chain(*first, down, block(32), block(32), head(32))


def unet() -> Layer:
    """Return a small U-Net with group normalisation."""

    def block(inputs: int, outputs: int) -> Layer:
        both = [
            (conv(n, outputs), nnx.GroupNorm(outputs, 4, rngs=RANDOM)) for n in (inputs, outputs)
        ]
        return chain(*both[0], nnx.silu, *both[1], nnx.silu)

    def level(inputs: int, outputs: int, inner: Layer) -> Layer:
        down, up = block(inputs, outputs), block(2 * outputs, outputs)
        grown = nnx.ConvTranspose(2 * outputs, outputs, (2, 2), (2, 2), rngs=RANDOM)

        def call(x: Any) -> Any:
            kept = down(x)
            return up(jnp.concatenate([grown(inner(pool(kept))), kept], -1))

        return call

    return chain(level(3, 8, level(8, 16, block(16, 32))), conv(8, 3, 1))


def transformer(width: int, causal: bool = False) -> Layer:
    """Return three blocks of a transformer."""

    def attention() -> Layer:
        inner = nnx.MultiHeadAttention(4, width, decode=False, rngs=RANDOM)

        def call(x: Any) -> Any:
            mask = nnx.make_causal_mask(jnp.ones((1, x.shape[1]))) if causal else None
            return inner(x, mask=mask, deterministic=True)

        return call

    def block() -> Layer:
        wide = (linear(width, 4 * width), nnx.gelu, linear(4 * width, width))
        attended = with_skip(layer_norm(width), attention())
        return chain(attended, with_skip(layer_norm(width), *wide))

    return chain(*(block() for _ in range(3)), layer_norm(width))


def vit() -> Layer:
    """Return a small vision transformer."""
    patches = chain(conv(3, 32, 8, 8, padding="VALID"), lambda x: x.reshape(x.shape[0], 64, 32))
    places = jnp.ones((1, 64, 32))
    called = chain(lambda x: patches(x) + places, transformer(32), lambda x: x.mean(1))
    return chain(called, linear(32, 10))


def mixer() -> Layer:
    """Return a small MLP-Mixer."""

    def mixed(width: int) -> Layer:
        return chain(linear(width, 48), nnx.gelu, linear(48, width))

    def turned(x: Any) -> Any:
        return x.swapaxes(1, 2)

    def block() -> Layer:
        tokens = with_skip(layer_norm(32), turned, mixed(64), turned)
        return chain(tokens, with_skip(layer_norm(32), mixed(32)))

    patches = chain(conv(3, 32, 8, 8, padding="VALID"), lambda x: x.reshape(x.shape[0], 64, 32))
    return chain(patches, *(block() for _ in range(3)), lambda x: x.mean(1), linear(32, 10))


WORDS = 100
"""How many words a language has."""


def gpt() -> Layer:
    """Return a small language model."""
    words, places = nnx.Embed(WORDS, 32, rngs=RANDOM), jnp.ones((16, 32))
    return chain(lambda x: words(x) + places, transformer(32, causal=True), words.attend)


NETWORKS: dict[str, tuple[Callable[[], Layer], tuple[int, ...], type[np.generic]]] = {
    "resnet": (resnet, IMAGE, np.float32),
    "mobilenetv3": (mobilenet, IMAGE, np.float32),
    "densenet": (densenet, IMAGE, np.float32),
    "convnext": (convnext, IMAGE, np.float32),
    "unet": (unet, IMAGE, np.float32),
    "vit": (vit, IMAGE, np.float32),
    "mixer": (mixer, IMAGE, np.float32),
    "gpt": (gpt, (16,), np.int32),
}
"""What makes a network, and the shape and type of its input without the batch, by name."""
