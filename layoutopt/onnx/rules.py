"""How each op type of ONNX enters the graph.

To add an op type, write a function from a sketch and a node to the node's outputs in the
module of its family, and enter it in the table there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutopt.onnx.barriers import BARRIERS, CONSTANTS, UNKNOWN
from layoutopt.onnx.contractions import CONTRACTIONS
from layoutopt.onnx.elementwise import ELEMENTWISE
from layoutopt.onnx.sketch import Rule
from layoutopt.onnx.views import VIEWS

if TYPE_CHECKING:
    from onnx import NodeProto

RULES: dict[str, Rule] = CONTRACTIONS | ELEMENTWISE | VIEWS | BARRIERS | CONSTANTS
"""Rules by op type, for ONNX's own operator set."""


def rule_of(domain: str, op_type: str) -> Rule:
    """Return the rule of an op type; that of unknown ones takes them for barriers."""
    return RULES.get(op_type, UNKNOWN) if is_standard(domain) else UNKNOWN


def is_known(domain: str, op_type: str) -> bool:
    """Return whether an op type has a rule of its own."""
    return is_standard(domain) and op_type in RULES


def is_standard(domain: str) -> bool:
    """Return whether a domain is that of ONNX's own operator set."""
    return domain in ("", "ai.onnx")


def type_of(node: NodeProto) -> str:
    """Return a node's op type, written ``domain::Type`` in other domains than ONNX's own."""
    return node.op_type if is_standard(node.domain) else f"{node.domain}::{node.op_type}"
