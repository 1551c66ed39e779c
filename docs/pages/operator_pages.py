"""A page for each category of ops of conversion graphs."""

from __future__ import annotations

from collections import Counter

from layoutopt.conversion.rules.operator import Category, Operator
from layoutopt.conversion.rules.registry import OPERATORS
from texts import page, ran, summary, table

NAMES = {
    Category.AGNOSTIC: "agnostic",
    Category.LIGHT: "light",
    Category.HEAVY: "heavy",
    Category.VIEW: "view",
    Category.OPAQUE: "opaque",
}
"""Names of the pages."""

TEXTS = {
    Category.AGNOSTIC: (
        "Elementwise ops, independent of the order of axes. Operands of lower rank get leading "
        "axes of size 1.",
        'graph.op("Add", [x, graph.constant("c", (3, 1, 1))], name="y")',
    ),
    Category.LIGHT: (
        "Attributes name axes, and are changed to name others.",
        'graph.op("Softmax", [x], {"axis": 1}, name="y")',
    ),
    Category.HEAVY: (
        "Each axis has a meaning. Spatial axes may be permuted, for some ops the batch "
        "too. *Axes* gives a letter for each axis as ONNX writes the op: `+` stands for the "
        "spatial axes, `*` for an axis without such a meaning.",
        'graph.op("MaxPool", [x], {"kernel_shape": (3, 5)}, name="y")',
    ),
    Category.VIEW: (
        "The same elements in another shape. Permutations compose; axes that are merged or split "
        "stay together.",
        'graph.op("Transpose", [x], {"perm": (0, 2, 3, 1)}, name="y")',
    ),
    Category.OPAQUE: (
        "The meaning of the order of axes is unknown, so operands keep their layouts. This applies "
        "to all types that are not on these pages, until a "
        "[rule](../requirements.md#rules-of-ops) is added.",
        "",
    ),
}
"""Text of each category, and the op of its example."""

ORDERS = {Category.HEAVY: (0, 1, 3, 2)}
"""The orders of the examples, if not ``(0, 2, 3, 1)``."""


def operator_pages() -> dict[str, str]:
    """Return the page of each category by its path."""
    return {f"operators/{name}.md": _page(category) for category, name in NAMES.items()}


def operator_table() -> str:
    """Return a table of all categories with links to their pages."""
    count = Counter(versions[0].category for versions in OPERATORS.values())
    rows = [
        (f"[{category}](operators/{name}.md)", str(count[category]), TEXTS[category][0])
        for category, name in NAMES.items()
    ]
    text = table(["category", "types", ""], rows)
    return text.replace("(../", "(")


def _page(category: Category) -> str:
    title = f"# Ops of models: {category}"
    text, op = TEXTS[category]
    if category is Category.OPAQUE:
        reasons = {entry.type: entry.reason for (entry, *_) in OPERATORS.values() if entry.reason}
        return page(title, text, table(["type", "reason"], sorted(_coded(reasons))))
    found = sorted(
        (entry for versions in OPERATORS.values() for entry in versions),
        key=lambda entry: ("::" in entry.type, entry.type, entry.since),
    )
    chosen = [entry for entry in found if entry.category is category]
    head = ["type", "since", "permuted inputs", "under a permutation"]
    if category is Category.HEAVY:
        head.append("axes")
    code = f"""
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.rules.registry import remap

graph = ConversionGraph()
x = graph.input("x", (1, 3, 8, 10))
y = {op}
changed = remap(graph.producer("y"), {ORDERS.get(category, (0, 2, 3, 1))})
changed.attributes
changed.inputs, changed.outputs
"""
    return page(
        title,
        text,
        "## Example",
        ran(code),
        "With inputs in the orders `changed.inputs` and these attributes, results are in the "
        "orders `changed.outputs`; None means unchanged.",
        "## Types",
        "*Since* is the first opset to which a row applies.",
        table(head, [_row(entry)[: len(head)] for entry in chosen]),
    )


def _row(entry: Operator) -> tuple[str, ...]:
    inputs = "all" if entry.operands is None else ", ".join(map(str, entry.operands))
    axes = entry.axes if isinstance(entry.axes, str) else summary(entry.axes)
    shown = f"`{axes}`" if isinstance(entry.axes, str) else axes.rstrip(".")
    return f"`{entry.type}`", str(entry.since), inputs, _rule(entry).rstrip("."), shown


def _rule(entry: Operator) -> str:
    """Return what a rule does, from the docstring of the rule or of the function that made it."""
    text = summary(entry.rule)
    if not text and "<locals>" in entry.rule.__qualname__:
        outer = entry.rule.__qualname__.partition(".")[0]
        text = summary(entry.rule.__globals__[outer]).replace("Return a rule that ", "")
        text = text[:1].upper() + text[1:]
    return text


def _coded(reasons: dict[str, str]) -> list[tuple[str, str]]:
    return [(f"`{name}`", reason) for name, reason in reasons.items()]
