"""Names of tensors and ops of a new graph."""

from __future__ import annotations

from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.orders import AxisFactor, Form, is_whole, items_of, same
from layoutopt.conversion.values import Values


class TensorNames:
    """Names that are taken, and those that are to come.

    Parameters
    ----------
    graph
        The graph as it is given; none of its names is given to anything else.
    values
        Its values.
    """

    def __init__(self, graph: ConversionGraph, values: Values) -> None:
        self._values = values
        self._outputs = set(graph.outputs)
        self._known = set(graph.tensors)
        self._ops = {op.name for op in graph.ops}
        self._given: set[str] = set()

    def take(self, name: str) -> str:
        """Return a name of the graph that is given to a tensor."""
        self._given.add(name)
        return name

    def of(self, number: int, form: Form, wanted: str) -> str:
        """Return the name of a value in a form.

        It is that of a tensor of the graph that is the same: of an output, or the one wanted, or
        any; else one that tells how the tensor wanted is permuted.
        """
        value = self._values.every[number]
        own, frame = same(form, value.shape), self._values.frame
        equal = [
            name
            for name in value.tensors
            if name not in self._given and same(frame[name], value.shape) == own
        ]
        equal.sort(key=lambda name: (name not in self._outputs, name != wanted))
        found = equal[0] if equal else self._new(value.root, form)
        self._given.add(found)
        return found

    def new(self, name: str) -> str:
        """Return a name of a tensor that is not taken, like one that is wished for."""
        found = _unused(name, self._known)
        self._given.add(found)
        return found

    def op(self, name: str) -> str:
        """Return a name of an op that is not taken."""
        return _unused(name, self._ops)

    def _new(self, root: str, form: Form) -> str:
        if is_whole(form):
            mark = "" if all(axis < 10 for axis in form) else "_"
            how = "reshaped" if -1 in form else f"to_{mark.join(map(str, form))}"
        else:
            items = (i for i in items_of(form) if i != -1)
            parts = (f"{i.axis}x{i.size}" if isinstance(i, AxisFactor) else f"{i}" for i in items)
            how = f"parts_{'_'.join(parts)}"
        return _unused(f"{root}_{how}", self._known)


def _unused(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found
