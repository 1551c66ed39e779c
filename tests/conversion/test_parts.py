"""Parts of a conversion: values, forms, costs, names."""

from __future__ import annotations

import numpy as np
import pytest

from layoutopt.conversion.costs import costs
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.materialise import moves
from layoutopt.conversion.orders import Form, spread
from layoutopt.conversion.rules.op import Shape
from layoutopt.conversion.values import values_of


def test_values() -> None:
    """Tensors that transposes join are one value, each with its axes in the first one's."""
    graph = ConversionGraph()
    x = graph.input("x", (2, 1, 5))
    y = graph.op("Transpose", [x], {"perm": (2, 0, 1)}, name="y")
    z = graph.op("Transpose", [y], {"perm": (1, 0, 2)}, name="z")
    graph.op("Relu", [z], name="r")
    values = values_of(graph)
    assert [value.tensors for value in values.every] == [["x", "y", "z"], ["r"]]
    assert values.frame == {"x": (0, 1, 2), "y": (2, 0, 1), "z": (0, 2, 1), "r": (0, 1, 2)}
    assert values.written("y") == (0, (2, 0))
    assert values.written("z") == values.written("x") == (0, (0, 2))


def test_spread() -> None:
    """Axes of size 1 stay in their places, others take theirs in the new order."""
    assert spread((3, 0), (4, 1, 1, 5)) == (3, 1, 2, 0)


FREE: list[tuple[Form, Form, Shape, list[str]]] = [
    ((0, 1, 2), (1, 0, 2), (1, 4, 5), ["Reshape"]),
    ((0, 1), (-1, 0, -1, 1), (4, 5), ["Reshape"]),
    ((0, 1, 2), (1, 0, 2), (1, 4, "n"), ["Reshape"]),
    ((0, 1, 2), (1, 2, 0), (1, "n", "m"), ["Squeeze", "Unsqueeze"]),
    ((0, 1), (-1, 0, 1), ("n", "m"), ["Unsqueeze"]),
    ((0, 1, 2), (1, 0, 2), (1, 0, 5), ["Squeeze", "Unsqueeze"]),
]
"""Forms before and after, the value's shape, and the ops that lead from one to the other."""


@pytest.mark.parametrize(("source", "target", "shape", "types"), FREE)
def test_free_moves(source: Form, target: Form, shape: Shape, types: list[str]) -> None:
    """Axes of size 1 move by ops that NumPy, with numbers for unknown sizes, finds right."""
    given = {"n": 3, "m": 2}
    sizes = [given.get(size, size) if isinstance(size, str) else size for size in shape]
    value = np.arange(int(np.prod(sizes))).reshape(sizes)  # type: ignore[arg-type]
    array, expected = _in_form(value, source), _in_form(value, target)
    steps = list(moves(source, target, shape))
    assert [step.type for step in steps] == types
    for step in steps:
        if step.type == "Reshape":
            wanted = step.attributes["shape"]
            copied = [array.shape[i] if size == 0 else size for i, size in enumerate(wanted)]
            array = array.reshape(copied)
        elif step.type == "Squeeze":
            array = array.squeeze(step.attributes["axes"])
        else:
            array = np.expand_dims(array, step.attributes["axes"])
    assert steps[-1].form == target
    np.testing.assert_array_equal(array, expected)


def _in_form(value: np.ndarray, form: Form) -> np.ndarray:
    whole = value.transpose([axis for axis in form if axis >= 0])
    return np.expand_dims(whole, tuple(i for i, axis in enumerate(form) if axis < 0))


def test_costs_keep_the_order_of_objectives() -> None:
    """One unit of the first objective weighs more than all of the second can."""
    weights = costs(("count", "bytes"), [8, 12, 20])
    assert weights.units == (1, 4)
    assert 2 * weights.weight(0) > weights.weight(8 + 12 + 20)
    assert weights.split(weights.weight(8) + weights.weight(20)) == (2, 28)
    assert costs(("bytes", "count"), [8, 12]).split(3 * 2 + 2 + 3) == (12, 2)


def test_one_objective() -> None:
    """With one objective a cost is its value in units; without any transform, a unit is 1."""
    assert costs(("bytes",), [8, 12]).split(5) == (20,)
    assert costs(("count",), [8, 12]).split(5) == (5,)
    assert costs(("bytes",), []).units == (1,)
