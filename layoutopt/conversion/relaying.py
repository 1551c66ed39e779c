"""Constants in another form."""

from __future__ import annotations

from layoutopt.conversion.cuts import padded_axes
from layoutopt.conversion.orders import AxisFactor, Form, is_whole, items_of, sizes_of
from layoutopt.conversion.result import Relaid
from layoutopt.operators.op import Shape, Size


def relaid(source: str, form: Form, shape: Shape) -> Relaid:
    """Return how a constant is brought into a form.

    Parameters
    ----------
    source
        Its name.
    form
        The form, of its own axes.
    shape
        Its own shape.
    """
    added = form.count(-1)
    if is_whole(form):
        new = iter(range(added))
        order = tuple([next(new) if axis < 0 else axis + added for axis in form])
        return Relaid(source, (1,) * added + shape if added else None, order)
    return _cut(source, form, shape)


def _cut(source: str, form: Form, shape: Shape) -> Relaid:
    """Return how axes are cut into parts, these permuted, and joined to dimensions."""
    items = list(items_of(form))
    parts = [item for item in items if isinstance(item, AxisFactor)]
    cut: list[tuple[int, int, Size]] = []  # axis, from the outermost part on, size
    for axis, size in enumerate(shape):
        own = sorted((part for part in parts if part.axis == axis), key=lambda part: -part.stride)
        cut += [(axis, -part.stride, part.size) for part in own] or [(axis, 0, size)]
    place = {(axis, stride): i for i, (axis, stride, _) in enumerate(cut)}
    wanted = [
        place[(item.axis, -item.stride) if isinstance(item, AxisFactor) else (item, 0)]
        for item in items
        if item != -1
    ]
    ones = [i for i in range(len(cut)) if i not in wanted]  # of size 1
    sizes = tuple(size for _, _, size in cut)
    wide = padded_axes(form, shape)
    padding = tuple(wide[a] - int(n or 0) if a in wide else 0 for a, n in enumerate(shape))
    result = sizes_of(form, shape)
    if wide:
        return Relaid(source, sizes, (*wanted, *ones), result, padding, shape)
    return Relaid(source, sizes, (*wanted, *ones), result)
