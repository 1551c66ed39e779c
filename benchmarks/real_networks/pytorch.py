"""Networks of PyTorch with random weights, small, but with the topology of the real ones."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import nn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from benchmarks.real_networks.export import Export

Example: TypeAlias = tuple[nn.Module, tuple[torch.Tensor, ...]]
"""A network, and inputs that it takes."""

try:
    import_module("torchvision")  # its compiled part defines its ops
except RuntimeError:
    # A wheel of torchvision for CUDA lies beside a CPU build of PyTorch, and its compiled part is
    # not loaded: its import needs these two to be defined.  No network here runs them.
    LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        LIBRARY.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

VOCABULARY, WIDTH, DEPTH, HEADS = 99, 32, 4, 4
TEXT: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "num_hidden_layers": DEPTH,
    "num_attention_heads": HEADS,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
"""The configuration of a text network, and of the transformer in one for sound."""

VISION: dict[str, Any] = {
    "hidden_size": WIDTH,
    "num_hidden_layers": DEPTH,
    "num_attention_heads": HEADS,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
}
"""The configuration of a vision transformer."""


def exported(export: Export, path: Path) -> list[NDArray[np.generic]]:
    """Write a network to a file, and return inputs that it takes."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.manual_seed(0)
    network, example = NETWORKS[export.network]()
    options: dict[str, Any] = {"dynamo": False}
    if export.exporter == "dynamo":
        options = {"dynamo": True, "external_data": False, "verbose": False}
    with warnings.catch_warnings():  # of traced branches, deprecated calls and the like
        warnings.simplefilter("ignore")
        torch.onnx.export(network.eval(), example, path, opset_version=export.opset, **options)
    return [each.numpy() for each in example]


class Fields(nn.Module):
    """A network of transformers with tensors as inputs and outputs.

    Parameters
    ----------
    network
        The network.
    inputs
        Names of its inputs, in the order in which they are given.
    outputs
        Fields of what it returns.
    options
        Further arguments of each call.
    """

    def __init__(
        self, network: nn.Module, inputs: Sequence[str], outputs: Sequence[str], **options: Any
    ) -> None:
        super().__init__()
        self.network, self.inputs, self.outputs, self.options = network, inputs, outputs, options

    def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Run the network."""
        found = self.network(**dict(zip(self.inputs, given, strict=True)), **self.options)
        return tuple(found[field] for field in self.outputs)


class Attention(nn.Module):
    """CBAM: attention over channels, then over places (Woo et al., ECCV 2018)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = channels // 4
        self.shared = nn.Sequential(
            nn.Linear(channels, inner), nn.ReLU(), nn.Linear(inner, channels)
        )
        self.places = nn.Conv2d(2, 1, 7, padding=3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Weigh channels, then places."""
        count, channels = x.shape[:2]
        ends = x.mean((2, 3)), x.amax((2, 3))
        weights = torch.sigmoid(self.shared(ends[0]) + self.shared(ends[1]))
        x = x * weights.view(count, channels, 1, 1)
        ends = x.mean(1, keepdim=True), x.amax(1, keepdim=True)
        return x * torch.sigmoid(self.places(torch.cat(ends, 1)))


class AttentiveResidual(nn.Module):
    """Residual blocks with CBAM, on images with channels last."""

    def __init__(self, channels: int = 16, blocks: int = 5) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(channels, channels, 3, padding=1) for _ in range(blocks)
        )
        self.attentions = nn.ModuleList(Attention(channels) for _ in range(blocks))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run the blocks."""
        x = torch.relu(self.stem(x.permute(0, 3, 1, 2))).permute(0, 2, 3, 1)
        for convolution, attention in zip(self.convolutions, self.attentions, strict=True):
            y = attention(convolution(x.permute(0, 3, 1, 2)))
            x = torch.relu(x + y.permute(0, 2, 3, 1))
        return x


class TextLines(nn.Module):
    """Convolutions and a recurrent network that read a line of text in an image (CRNN)."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, (2, 1), 1), nn.ReLU()
        )
        self.recurrent = nn.LSTM(64, 16, num_layers=2, bidirectional=True)
        self.letters = nn.Linear(32, 11)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return probabilities of letters by image and place."""
        y = self.convolutions(x)
        count, channels, height, width = y.shape
        y = y.permute(3, 0, 1, 2).reshape(width, count, channels * height)
        y, _ = self.recurrent(y)
        return torch.log_softmax(self.letters(y), 2).permute(1, 0, 2)


class Segments(nn.Module):
    """DeepLabV3 without the dictionary that it returns."""

    def __init__(self) -> None:
        super().__init__()
        from torchvision.models.segmentation import deeplabv3_mobilenet_v3_large

        self.network = deeplabv3_mobilenet_v3_large(
            weights=None, weights_backbone=None, num_classes=5
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return scores of classes by pixel."""
        found: torch.Tensor = self.network(x)["out"]
        return found


class Codec(nn.Module):
    """EnCodec's encoder and decoder, without the quantiser between them."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import EncodecConfig, EncodecModel

        self.network = EncodecModel(
            EncodecConfig(
                num_filters=4,
                hidden_size=16,
                codebook_size=32,
                codebook_dim=16,
                upsampling_ratios=[4, 2],
                num_lstm_layers=1,
                target_bandwidths=[1.5],
                sampling_rate=8000,
            )
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sound again."""
        found: torch.Tensor = self.network.decoder(self.network.encoder(x))
        return found


def image(size: int, channels: int = 3) -> torch.Tensor:
    """Return a random image."""
    return torch.rand(1, channels, size, size)


def words(count: int = 12, vocabulary: int = VOCABULARY) -> torch.Tensor:
    """Return random tokens."""
    return torch.randint(3, vocabulary, (1, count))


def timm(name: str, size: int, **options: Any) -> Callable[[], Example]:
    """Return what makes a network of timm."""

    def made() -> Example:
        import timm

        network = timm.create_model(name, pretrained=False, num_classes=10, **options)
        return network, (image(size),)

    return made


def torchvision(name: str, size: int) -> Callable[[], Example]:
    """Return what makes a network of torchvision."""

    def made() -> Example:
        from torchvision import models

        return getattr(models, name)(weights=None, num_classes=10), (image(size),)

    return made


def transformers(
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    example: Callable[[], tuple[torch.Tensor, ...]],
    options: dict[str, Any] | None = None,
    **config: Any,
) -> Callable[[], Example]:
    """Return what makes a network of transformers, of a configuration; see :class:`Fields`."""

    def made() -> Example:
        import transformers

        kind = getattr(transformers, name)
        network = kind(kind.config_class(**config))
        return Fields(network, inputs, outputs, **(options or {})), example()

    return made


MASKED = ("input_ids", "attention_mask")
HIDDEN, LOGITS = ("last_hidden_state",), ("logits",)
UNCACHED = {"use_cache": False}


def masked(count: int = 12, vocabulary: int = VOCABULARY) -> tuple[torch.Tensor, ...]:
    """Return random tokens, and a mask that hides none."""
    return words(count, vocabulary), torch.ones(1, count, dtype=torch.long)


NETWORKS: dict[str, Callable[[], Example]] = {
    "mobilenetv2": torchvision("mobilenet_v2", 64),
    "mobilenetv3": timm("mobilenetv3_small_050", 64),
    "efficientnet": timm("efficientnet_b0", 64),
    "shufflenetv2": torchvision("shufflenet_v2_x0_5", 64),
    "convnext": timm("convnext_atto", 64),
    "vit": timm("vit_tiny_patch16_224", 64, img_size=64),
    "swin": timm("swin_tiny_patch4_window7_224", 224),
    "levit": timm("levit_128s", 224),
    "efficientformer": timm("efficientformer_l1", 224),
    "mobilevit": timm("mobilevit_xxs", 64),
    "cbam": lambda: (AttentiveResidual(), (torch.rand(1, 32, 32, 3),)),
    "deeplabv3": lambda: (Segments(), (image(64),)),
    "segformer": transformers(
        "SegformerForSemanticSegmentation",
        ("pixel_values",),
        LOGITS,
        lambda: (image(64),),
        hidden_sizes=[8, 16, 24, 32],
        depths=[2, 2, 2, 2],
        num_attention_heads=[1, 2, 2, 4],
        decoder_hidden_size=16,
        num_labels=4,
    ),
    "detr": transformers(
        "DetrForObjectDetection",
        ("pixel_values", "pixel_mask"),
        ("logits", "pred_boxes"),
        lambda: (image(64), torch.ones(1, 64, 64, dtype=torch.long)),
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config={
            "model_type": "resnet",
            "embedding_size": 8,
            "hidden_sizes": [8, 16, 24, 32],
            "depths": [1, 1, 1, 1],
            "layer_type": "basic",
            "out_features": ["stage4"],
        },
        d_model=WIDTH,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_queries=10,
        num_labels=4,
    ),
    "sam": transformers(  # from an image and points to masks
        "SamModel",
        ("pixel_values", "input_points", "input_labels"),
        ("pred_masks", "iou_scores"),
        lambda: (image(64), 64 * torch.rand(1, 1, 2, 2), torch.ones(1, 1, 2, dtype=torch.int64)),
        vision_config={
            "hidden_size": WIDTH,
            "output_channels": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": HEADS,
            "image_size": 64,
            "patch_size": 8,
            "mlp_dim": 64,
            "window_size": 4,
            "global_attn_indexes": [1],
            "num_pos_feats": 8,
        },
        prompt_encoder_config={
            "hidden_size": 16,
            "image_size": 64,
            "patch_size": 8,
            "mask_input_channels": 8,
        },
        mask_decoder_config={
            "hidden_size": 16,
            "mlp_dim": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "iou_head_hidden_dim": 16,
        },
    ),
    "bert": transformers("BertModel", MASKED, HIDDEN, masked, **TEXT),
    "deberta": transformers(
        "DebertaV2Model",
        MASKED,
        HIDDEN,
        masked,
        **TEXT,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
    ),
    "gpt2": transformers(
        "GPT2LMHeadModel",
        MASKED,
        LOGITS,
        masked,
        UNCACHED,
        vocab_size=VOCABULARY,
        n_embd=WIDTH,
        n_layer=DEPTH,
        n_head=HEADS,
        n_positions=64,
    ),
    "llama": transformers(
        "LlamaForCausalLM", MASKED, LOGITS, masked, UNCACHED, **TEXT, num_key_value_heads=2
    ),
    "t5": transformers(
        "T5ForConditionalGeneration",
        ("input_ids", "decoder_input_ids"),
        LOGITS,
        lambda: (words(12), words(7)),
        UNCACHED,
        vocab_size=VOCABULARY,
        d_model=WIDTH,
        d_kv=8,
        d_ff=64,
        num_layers=DEPTH,
        num_heads=HEADS,
        decoder_start_token_id=0,
    ),
    "clip": transformers(
        "CLIPModel",
        ("input_ids", "pixel_values"),
        ("logits_per_image",),
        lambda: (words(), image(32)),
        text_config={**TEXT, "max_position_embeddings": 16, "eos_token_id": 2},
        vision_config=VISION,
        projection_dim=16,
    ),
    "whisper": transformers(
        "WhisperModel",
        ("input_features", "decoder_input_ids"),
        HIDDEN,
        lambda: (torch.rand(1, 20, 100), words(7)),
        UNCACHED,
        vocab_size=VOCABULARY,
        d_model=WIDTH,
        encoder_layers=DEPTH,
        decoder_layers=DEPTH,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_source_positions=50,
        max_target_positions=32,
        num_mel_bins=20,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    ),
    "wav2vec2": transformers(
        "Wav2Vec2Model",
        ("input_values",),
        HIDDEN,
        lambda: (torch.rand(1, 2000),),
        **TEXT,
        conv_dim=(16, 16, 16),
        conv_stride=(5, 4, 2),
        conv_kernel=(10, 3, 3),
        num_feat_extract_layers=3,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
    ),
    "encodec": lambda: (Codec(), (torch.rand(1, 1, 400),)),
    "vits": transformers(  # from letters to sound
        "VitsModel",
        MASKED,
        ("waveform",),
        lambda: masked(10, 38),
        vocab_size=40,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        ffn_dim=64,
        spectrogram_bins=33,
        flow_size=WIDTH,
        upsample_initial_channel=32,
        upsample_rates=[4, 4],
        upsample_kernel_sizes=[8, 8],
        resblock_kernel_sizes=[3],
        resblock_dilation_sizes=[[1, 3]],
        prior_encoder_num_flows=2,
        posterior_encoder_num_wavenet_layers=2,
        prior_encoder_num_wavenet_layers=2,
        depth_separable_num_layers=1,
        use_stochastic_duration_prediction=False,
        noise_scale=0.0,
    ),
    "mamba": transformers(
        "MambaModel",
        ("input_ids",),
        HIDDEN,
        lambda: (words(),),
        UNCACHED,
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        state_size=4,
    ),
    "crnn": lambda: (TextLines(), (torch.rand(1, 1, 16, 40),)),
}
"""Networks by name, each made by a call."""
