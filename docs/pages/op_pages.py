"""A page for each op of unwinding graphs."""

from __future__ import annotations

import re
from typing import NamedTuple, get_args

from layoutopt.graphs.ops import AnyOp, UnwindingOp
from texts import documented, page, ran, summary, table


class OpText(NamedTuple):
    """Text of an op's page that is not in its docstrings.

    Parameters
    ----------
    where
        The input element that element ``i`` of the output comes from, or its location; ``i[d]`` is
        the index along dimension ``d``.
    example
        A program that ends in expressions.
    """

    where: str
    example: str


HEAD = "import layoutopt as lo\n\ngraph = lo.Graph()\n"
X = 'x = graph.sink((2, 3), name="x")\n'
FROM = 'y.shape\ngraph.index_map("x", "y").tolist()\n'

OPS = {
    "sink": OpText(
        "the solver chooses its location",
        """x = graph.sink((2, 3), name="x")
graph.valued_pair(x, graph.source((2, 3), name="like"), 1)
lo.unwind(graph).layouts["x"]""",
    ),
    "source": OpText(
        "its own location: that in `mapping`, or a unique one",
        """a = graph.source((3,), mapping=[7, 8, 7])
b = graph.source((2,), mapping=[8, 9])
[where.tolist() for where in graph.locations().values()]""",
    ),
    "barrier": OpText(
        "its own location, known after those of all elements of all inputs; "
        "on a tile memory that which its `hook` computes",
        X + 'y = graph.barrier([x], (4,), name="y")\ny.shape, graph.kind(y).value',
    ),
    "fixed_point": OpText(
        "its own location, known from the start",
        X + 'y = graph.fixed_point([x], (4,), name="y")\ny.shape, graph.kind(y).value',
    ),
    "sum_like_reduce": OpText(
        "its own location, known after those of all elements of the input",
        X + 'y = graph.sum_like_reduce(x, (3,), name="y")\ny.shape, graph.kind(y).value',
    ),
    "sum_like": OpText(
        "`in[i]` of the first input listed as unwindable",
        X
        + """bias = graph.sink((3,), name="bias")
y = graph.sum_like([x, bias], 1, unwindable=0, name="y")
y.shape, graph.is_unwindable("y", input=0), graph.is_unwindable("y", input=1)
y.reduces""",
    ),
    "identity": OpText("`in[i]`", X + 'y = graph.identity(x, name="y")\n' + FROM),
    "flatten": OpText(
        "the element at the same row-major position",
        X + 'y = graph.flatten(x, name="y")\n' + FROM,
    ),
    "squeeze": OpText(
        "the element at the same row-major position",
        'x = graph.sink((2, 1, 3), name="x")\ny = graph.squeeze(x, name="y")\n' + FROM,
    ),
    "reshape": OpText(
        "the element at the same row-major position",
        X + 'y = graph.reshape(x, (3, 2), name="y")\n' + FROM,
    ),
    "dim_shuffle": OpText(
        "`in[j]` with `j[permutation[d]] = i[d]`",
        X + 'y = graph.dim_shuffle(x, (1, 0), name="y")\n' + FROM,
    ),
    "reverse": OpText(
        "`in[j]` with `j[d] = n[d] - 1 - i[d]` for `d` in `dims`, of size `n[d]`, else `i[d]`",
        X + 'y = graph.reverse(x, [1], name="y")\n' + FROM,
    ),
    "slice": OpText(
        "`in[j]` with `j[d] = lower[d] + i[d]`",
        X + 'y = graph.slice(x, (0, 1), (2, 3), name="y")\n' + FROM,
    ),
    "sub_sample": OpText(
        "`in[j]` with `j[d] = strides[d] * i[d]`",
        X + 'y = graph.sub_sample(x, (1, 2), name="y")\n' + FROM,
    ),
    "sett_sample": OpText(
        "`in[j]`, where `j[d]` is the `i[d]`-th index that is on in all stripes of dimension `d`. "
        "Index `k` is on in `[on, off, phase]` if `(k - phase) mod (on + off) < on`; an inner "
        "stripe counts from that remainder",
        'x = graph.sink((2, 6), name="x")\n'
        'y = graph.sett_sample(x, [[], [(2, 1, 0)]], name="y")\n' + FROM,
    ),
    "concat": OpText(
        "of the input that contains `i[axis]`, minus the sizes of the inputs before it",
        X
        + """z = graph.sink((2, 1), name="z")
y = graph.concat([x, z], 1, name="y")
y.shape
graph.index_map("x", "y").tolist()
graph.index_map("z", "y").tolist()""",
    ),
    "expand": OpText(
        "`in[j]`, the last dimensions aligned: `j[d]` is 0 if the input has size 1, else `i[d]`",
        'x = graph.sink((2, 1), name="x")\ny = graph.expand(x, (2, 3), name="y")\n' + FROM,
    ),
}
"""Text of each op, by type."""

OPS_BY_TYPE: dict[str, type[UnwindingOp]] = {
    str(cls.__struct_config__.tag): cls for cls in get_args(AnyOp)
}


def op_pages() -> dict[str, str]:
    """Return the page of each op by its path."""
    return {f"ops/{name}.md": _page(name, cls) for name, cls in OPS_BY_TYPE.items()}


def op_table() -> str:
    """Return a table of all ops with links to their pages."""
    rows = [
        (f"[`{name}`](ops/{name}.md)", cls.kind.value, summary(cls), OPS[name].where)
        for name, cls in OPS_BY_TYPE.items()
    ]
    return table(["op", "kind", "description", "origin of element `i`"], rows)


def _page(name: str, cls: type[UnwindingOp]) -> str:
    own = [field for field in cls.__struct_fields__ if field not in ("id", "inputs")]
    inputs = {None: "any number", 0: "none", 1: "one"}[cls.arity]
    shape = re.sub(r"^Return (.*)\.$", r"\1", summary(cls.infer))
    facts = [
        ("kind", f"[{cls.kind.value}](../glossary.md#{cls.kind.value.replace(' ', '-')})"),
        ("inputs", inputs),
        ("shape", shape),
        ("element `i`", OPS[name].where),
        ("in files", ", ".join([f'`"type": "{name}"`', *(f"`{field}`" for field in own)])),
    ]
    note = ""
    if "index_map" in OPS[name].example:
        note = "`index_map` gives the flat element of `x` that each element of `y` comes from" + (
            ", and -1 for other elements." if name == "concat" else "."
        )
    method = "layoutopt.graphs.builder.Builder." + name
    if name == "sum_like":
        method = "layoutopt.graphs.growers.sum_like"
    return page(
        f"# `{name}`",
        summary(cls),
        table(["", ""], facts),
        "## Example",
        ran(HEAD + OPS[name].example),
        note,
        "## In Python",
        documented(method),
        "## As stored",
        documented(f"{cls.__module__}.{cls.__name__}", members="false", inherited_members="false"),
    )
