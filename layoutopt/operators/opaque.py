"""Standard ops that nothing may be done to, and why."""

from __future__ import annotations

_SEQUENCE = "its operands are sequences, optional values or text, which have no axes"
_SOURCE = "it makes its elements in their order"
_RECURRENT = "time, batch and features each have their place in it"
_BODY = "its body is a graph of its own"
_ORDER = "its result counts elements or axes in their order"
_ATTENTION = "heads, sequences and features each have their place in it"
_LOSS = "it takes axis 1 for the classes, and may add over all others in order"
_BOXES = "its axes hold boxes and scores, each in its place"
_SIGNAL = "its last axis holds real and imaginary parts"
_MATRIX = "its last two axes are one matrix"

_TYPES = {
    _SEQUENCE: (
        "ConcatFromSequence Optional OptionalGetElement OptionalHasElement RegexFullMatch "
        "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength "
        "SplitToSequence StringConcat StringNormalizer StringSplit TfIdfVectorizer"
    ),
    _SOURCE: (
        "Bernoulli BlackmanWindow Constant EyeLike HammingWindow HannWindow "
        "ImageDecoder MelWeightMatrix Multinomial RandomNormal RandomNormalLike RandomUniform "
        "RandomUniformLike Range"
    ),
    _RECURRENT: "CausalConvWithState GRU LSTM RNN",
    _BODY: "If Loop Scan SequenceMap",
    _ORDER: "NonZero Unique",
    _ATTENTION: "Attention LinearAttention RotaryEmbedding TensorScatter",
    _LOSS: "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    _BOXES: "AffineGrid Col2Im NonMaxSuppression",
    _SIGNAL: "DFT STFT",
    _MATRIX: "Det",
}

REASONS = {name: reason for reason, names in _TYPES.items() for name in names.split()}
"""For each opaque type of ONNX the reason."""
