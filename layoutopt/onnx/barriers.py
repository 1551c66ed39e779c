"""Operations that locations do not pass through, and tensors that are made from nothing."""

from __future__ import annotations

from functools import partial

from layoutopt.onnx.sketch import Node, Outputs, Rule, Sketch

ONNX_BARRIERS = """
    AffineGrid ArgMax ArgMin Attention AveragePool Bernoulli CausalConvWithState CenterCropPad
    Col2Im Compress ConcatFromSequence CumProd CumSum DFT Det DynamicQuantizeLinear EyeLike GRU
    Gather GatherElements GatherND GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample
    Hardmax ImageDecoder LRN LSTM LinearAttention LogSoftmax LpNormalization LpPool MaxPool
    MaxRoiPool MaxUnpool MeanVarianceNormalization Multinomial NegativeLogLikelihoodLoss
    NonMaxSuppression NonZero OneHot Optional OptionalGetElement OptionalHasElement Pad RNN
    RandomNormal RandomNormalLike RandomUniform RandomUniformLike ReduceL1 ReduceL2 ReduceLogSum
    ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare
    RegexFullMatch Resize ReverseSequence RoiAlign RotaryEmbedding STFT Scatter ScatterElements
    ScatterND SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert
    SequenceLength Softmax SoftmaxCrossEntropyLoss SplitToSequence StringNormalizer StringSplit
    TensorScatter TfIdfVectorizer TopK Unique Upsample
"""
"""Op types of ONNX that are barriers, with no parameter that broadcasts to the data."""

STRUCTURE = {
    "AffineGrid": (1,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "CumProd": (1,),
    "CumSum": (1,),
    "DFT": (1, 2),
    "MaxUnpool": (2,),
    "NonMaxSuppression": (2, 3, 4),
    "OneHot": (1, 2),
    "Pad": (1, 2, 3),
    "Resize": (1, 2, 3),
    "STFT": (1, 3),
    "TopK": (1,),
    "Upsample": (1,),
} | {name: (1,) for name in ONNX_BARRIERS.split() if name.startswith("Reduce")}
"""Positions of their operands that only carry structure."""

UNREAD = dict.fromkeys(("EyeLike", "RandomNormalLike", "RandomUniformLike"), (0,))
"""Positions of their operands of which only the shape matters."""


def barrier(sketch: Sketch, node: Node) -> Outputs:
    """Add one barrier for each output that is read.

    They read the same operands, so they become known together, as the outputs of a single
    barrier would; but each keeps its own name.
    """
    operands = tuple({x.index: x for x in node.operands}.values())
    return [
        None if name is None or shape is None else sketch.graph.barrier(operands, shape, name=name)
        for name, shape in zip(node.outputs, node.shapes, strict=True)
    ]


def normalisation(sketch: Sketch, node: Node, channels: bool = True) -> Outputs:
    """Add a barrier whose parameters broadcast to the data.

    Parameters
    ----------
    channels
        Whether a vector belongs to the channels, axis 1, rather than to the last axis.
    """
    x = node.operand(0)
    for i, p in enumerate(node.inputs[1:], 1):
        if p is not None:
            if channels and p.shape == x.shape[1:2]:
                p = sketch.aligned(p, len(x.shape), 1, node.name, f"parameter{i}")
            sketch.tie(x, p, "barrier.parameter", node.name, f"parameter{i}")
    return barrier(sketch, node)


def unknown(sketch: Sketch, node: Node) -> Outputs:
    """Add a barrier for an op of unknown meaning.

    Operands that broadcast to the first one, and are smaller, are taken for its parameters.
    """
    first, *others = node.inputs or (None,)
    for i, p in enumerate(others, 1):
        if first is not None and p is not None and p.size < first.size:
            sketch.tie(first, p, "barrier.parameter", node.name, f"parameter{i}")
    return barrier(sketch, node)


def constant(sketch: Sketch, node: Node) -> Outputs:
    """Add a tensor that depends on no data: its locations are free."""
    return sketch.sink(node.name, node.shape)


BODIES = ("If", "Loop", "Scan", "SequenceMap")
"""Op types with graphs inside, which are not looked into."""

BARRIERS = (
    {
        name: Rule(barrier, STRUCTURE.get(name, ()), UNREAD.get(name, ()))
        for name in (*ONNX_BARRIERS.split(), *BODIES)
    }
    | dict.fromkeys(
        ("BatchNormalization", "InstanceNormalization", "GroupNormalization"),
        Rule(normalisation),
    )
    | dict.fromkeys(
        ("LayerNormalization", "RMSNormalization"), Rule(partial(normalisation, channels=False))
    )
)

CONSTANTS = {
    "Constant": Rule(constant),
    "ConstantOfShape": Rule(constant, structure=(0,)),
    "Range": Rule(constant, structure=(0, 1, 2)),
    "MelWeightMatrix": Rule(constant, structure=range(5)),
    "HannWindow": Rule(constant, structure=(0,)),
    "HammingWindow": Rule(constant, structure=(0,)),
    "BlackmanWindow": Rule(constant, structure=(0,)),
    "Shape": Rule(constant, unread=(0,)),
    "Size": Rule(constant, unread=(0,)),
}

UNKNOWN = Rule(unknown)
