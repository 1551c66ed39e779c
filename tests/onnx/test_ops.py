"""The tables that networks are read by: rules of ops, and values of pairs."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
from onnx import defs

from layoutopt.base.errors import InputError
from layoutopt.conversion.rules.registry import OPERATORS, type_facts
from layoutopt.onnx.read import read_attractions, read_onnx
from tests.onnx.networks import model, node, pairs, save, types

# The table of rules covers ONNX, and nothing else


NEWEST = 28
"""The operator set up to which the table is complete."""


def test_every_op_type_of_onnx_has_a_rule() -> None:
    schemas = [s for s in defs.get_all_schemas_with_history() if s.domain == ""]
    names = {s.name for s in schemas}
    first = {name: min(s.since_version for s in schemas if s.name == name) for name in names}
    assert [
        name for name, since in first.items() if since <= NEWEST and name not in OPERATORS
    ] == []
    own = {name for name in OPERATORS if "::" not in name} - {"SimplifiedLayerNormalization"}
    assert defs.onnx_opset_version() < NEWEST or own <= set(first)


def test_structure_names_operands_that_exist() -> None:
    for schema in defs.get_all_schemas():
        if schema.domain == "":
            facts = type_facts(schema.name)
            assert not set(facts.structural) & set(facts.unread)
            # Tile and Upsample had more operands, or had them elsewhere, in older sets.
            assert max((*facts.structural, *facts.unread), default=0) < max(schema.max_input, 1)


# The table of values, and a user's changes to it


def test_shipped_values() -> None:
    """Targets are worth more than chains, and the linear spread least of all."""
    values = read_attractions()
    assert values["matmul.lhs"] == values["matmul.rhs"] == 100
    assert values["convolution.data"] == values["convolution.weights"] == 100
    assert values["matmul.chain"] == values["convolution.chain"] == 50
    others = [value for key, value in values.items() if key != "sink.linear"]
    assert 0 < values["sink.linear"] < min(others) / 10


def test_values_reach_the_pairs(tmp_path: Path) -> None:
    table = tmp_path / "mine.toml"
    table.write_text("[matmul]\nlhs = 3\nrhs = 4\nchain = 5\n[sink]\nlinear = 0.25\n")
    path = save(model([node("MatMul", "a b")], {"a": (2, 3), "b": (3, 3)}), tmp_path)
    graph = read_onnx(path, attractions=table)
    assert pairs(graph) == [("a", "y.lhs.target", 3), ("b", "y.rhs.target", 4), ("a", "y", 5)]
    assert [v for _, v in graph.valued_partners("a")] == [Decimal("0.25"), 3, 5]


def test_zero_leaves_pairs_out(tmp_path: Path) -> None:
    table = tmp_path / "mine.toml"
    table.write_text(
        "[matmul]\nlhs = 0\nchain = 0\n[sink]\nlinear = 0.0\n[elementwise]\nbroadcast = 0\n"
    )
    nodes = [node("MatMul", "a b", "h"), node("Add", "h c")]
    path = save(model(nodes, {"a": (2, 3), "b": (3, 3), "c": (3,)}), tmp_path)
    graph = read_onnx(path, attractions=table)
    assert pairs(graph) == [("b", "h.rhs.target", 100)]
    assert (
        set(types(graph)) == {"a", "b", "c", "h", "h.rhs.target", "y"} == {x.id for x in graph.ops}
    )


REFUSED = tomllib.loads((Path(__file__).parents[1] / "cases/attractions.toml").read_text())[
    "refused"
]


@pytest.mark.parametrize(
    ("text", "reason"), [*REFUSED, ("a = " + "[" * 10**5, "the TOML is nested too deeply")]
)
def test_bad_tables_are_refused(text: str, reason: str, tmp_path: Path) -> None:
    table = tmp_path / "mine.toml"
    table.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        read_attractions(table)
    assert str(caught.value).startswith(f"{table}: {reason}")
    assert "\n" not in str(caught.value)
