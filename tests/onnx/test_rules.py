"""The table of rules covers ONNX, and nothing else."""

from __future__ import annotations

from onnx import defs

from layoutopt.onnx.rules import (
    BARRIERS,
    CONSTANTS,
    CONTRACTIONS,
    ELEMENTWISE,
    RULES,
    VIEWS,
)

NEWEST = 28
"""The operator set up to which the table is complete."""


def test_every_op_type_of_onnx_has_a_rule() -> None:
    schemas = [s for s in defs.get_all_schemas_with_history() if s.domain == ""]
    first = {name: min(s.since_version for s in schemas if s.name == name) for name in
             {s.name for s in schemas}}  # fmt: skip
    assert [name for name, since in first.items() if since <= NEWEST and name not in RULES] == []
    assert defs.onnx_opset_version() < NEWEST or set(RULES) <= set(first)


def test_every_op_type_has_one_rule() -> None:
    families = (BARRIERS, CONSTANTS, CONTRACTIONS, ELEMENTWISE, VIEWS)
    assert sum(map(len, families)) == len(RULES)


def test_structure_names_operands_that_exist() -> None:
    for schema in defs.get_all_schemas():
        if schema.domain == "":
            rule = RULES[schema.name]
            assert not set(rule.structure) & set(rule.unread)
            # Tile and Upsample had more operands, or had them elsewhere, in older sets.
            assert max((*rule.structure, *rule.unread), default=0) < max(schema.max_input, 1)
