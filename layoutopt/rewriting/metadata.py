"""Metadata of rewritten networks, as viewers show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from layoutopt.rewriting.result import ConversionResult

PREFIX = "layoutopt."


def describe(result: ConversionResult) -> None:
    """Write a conversion's figures into its network, in place of earlier ones."""
    names = result.objectives
    tell(
        result.model,
        {
            "version": result.version,
            "status": str(result.status),
            "objective": _numbers(names, result.objective),
            "bound": _numbers(names, result.bound),
            "transforms.before": str(result.before.transforms),
            "transforms.after": str(result.after.transforms),
            "bytes.before": str(result.before.bytes),
            "bytes.after": str(result.after.bytes),
        },
    )


def tell(message: Any, entries: Mapping[str, str]) -> None:
    """Give a network or a node of ONNX entries of its metadata, in place of earlier ones."""
    new = {PREFIX + key for key in entries}
    kept = [(entry.key, entry.value) for entry in message.metadata_props if entry.key not in new]
    del message.metadata_props[:]
    for key, value in [*kept, *((PREFIX + key, value) for key, value in entries.items())]:
        message.metadata_props.add(key=key, value=value)


def _numbers(names: tuple[str, ...], values: tuple[int, ...]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))
