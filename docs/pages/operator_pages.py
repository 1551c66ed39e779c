"""A page for each category of ops of conversion graphs."""

from __future__ import annotations

from layoutopt.conversion.rules.operator import Category, Operator
from layoutopt.conversion.rules.registry import OPERATORS, REASONS
from texts import page, ran, summary, table

NAMES = {
    Category.AGNOSTIC: "agnostic",
    Category.LIGHT: "light",
    Category.HEAVY: "heavy",
    Category.VIEW: "view",
    Category.OPAQUE: "opaque",
}
"""How the pages are called."""

TEXTS = {
    Category.AGNOSTIC: (
        "Elementwise ops: the order of axes does not matter to them. Operands of lower rank get "
        "axes of 1 in front.",
        'graph.op("Add", [x, graph.constant("c", (3, 1, 1))], name="y")',
    ),
    Category.LIGHT: (
        "Attributes name axes, and can name others.",
        'graph.op("Softmax", [x], {"axis": 1}, name="y")',
    ),
    Category.HEAVY: (
        "Each axis has a meaning of its own. Spatial axes may be permuted, of some ops the batch "
        "as well. *Axes* gives a letter for each axis as ONNX writes the op: `+` stands for the "
        "spatial axes, `*` for an axis without such a meaning.",
        'graph.op("MaxPool", [x], {"kernel_shape": (3, 5)}, name="y")',
    ),
    Category.VIEW: (
        "The same elements under another shape. Permutations compose; axes that become others "
        "together stay together.",
        'graph.op("Transpose", [x], {"perm": (0, 2, 3, 1)}, name="y")',
    ),
    Category.OPAQUE: (
        "Nothing is known of what the order of axes means, so operands stay as they are. So it "
        "is for all types that stand on none of these pages, until a "
        "[rule](../requirements.md#rules-of-ops) is added.",
        "",
    ),
}
"""What is told of each category, and the op of its example."""

ORDERS = {Category.HEAVY: (0, 1, 3, 2)}
"""The orders of the examples, where they are not ``(0, 2, 3, 1)``."""


def operator_pages() -> dict[str, str]:
    """Return the page of each category by its path."""
    return {f"operators/{name}.md": _page(category) for category, name in NAMES.items()}


def operator_table() -> str:
    """Return a table of all categories with links to their pages."""
    count = dict.fromkeys(Category, 0)
    for versions in OPERATORS.values():
        count[versions[0].category] += 1
    count[Category.OPAQUE] = len(REASONS)
    rows = [
        (f"[{category}](operators/{name}.md)", str(count[category]), TEXTS[category][0])
        for category, name in NAMES.items()
    ]
    text = table(["category", "types", ""], rows)
    return text.replace("(../", "(")


def _page(category: Category) -> str:
    title = f"# Ops of networks: {category}"
    text, op = TEXTS[category]
    if category is Category.OPAQUE:
        return page(title, text, table(["type", "why"], sorted(_coded(REASONS))))
    found = sorted(
        (entry for versions in OPERATORS.values() for entry in versions),
        key=lambda entry: ("::" in entry.type, entry.type, entry.since),
    )
    chosen = [entry for entry in found if entry.category is category]
    head = ["type", "since", "permuted inputs", "what becomes of it"]
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
        "With inputs in the orders `changed.inputs` and these attributes, results come in the "
        "orders `changed.outputs`; None is as before.",
        "## Types",
        "*Since* is the first version of the operator set for which a line holds.",
        table(head, [_row(entry)[: len(head)] for entry in chosen]),
    )


def _row(entry: Operator) -> tuple[str, ...]:
    inputs = "all" if entry.operands is None else ", ".join(map(str, entry.operands))
    axes = entry.axes if isinstance(entry.axes, str) else summary(entry.axes)
    shown = f"`{axes}`" if isinstance(entry.axes, str) else axes.rstrip(".")
    return f"`{entry.type}`", str(entry.since), inputs, _rule(entry).rstrip("."), shown


def _rule(entry: Operator) -> str:
    """Return what a rule does; one that a function makes is told by that function."""
    told = summary(entry.rule)
    if not told and "<locals>" in entry.rule.__qualname__:
        outer = entry.rule.__qualname__.partition(".")[0]
        told = summary(entry.rule.__globals__[outer]).replace("Return a rule that ", "")
        told = told[:1].upper() + told[1:]
    return told


def _coded(reasons: dict[str, str]) -> list[tuple[str, str]]:
    return [(f"`{name}`", reason) for name, reason in reasons.items()]
