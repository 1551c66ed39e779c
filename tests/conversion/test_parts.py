"""Parts of a conversion: values, forms, costs, names."""

from __future__ import annotations

import numpy as np
import pytest

from layoutopt.conversion.materialise import moves
from layoutopt.conversion.orders import Form
from layoutopt.conversion.rules.op import Shape

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
